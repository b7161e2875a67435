"""Why a state has no answer: a Refusal with its reason and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.algorithms.closed import closure_kinematics
from spanloop.errors import Reason, Refusal, UnsupportedError
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.sweeps import walked
from spanloop.topology.link_class import Anonymous

if TYPE_CHECKING:
    from spanloop.kernels.spec import Question


SINGULAR_MASS = Refusal(
    Reason.SINGULAR_MASS,
    "the answer is not finite at this state. The mass matrix is singular "
    "(a body without inertia about its joint?) or the numbers overflow",
)
SINGULAR_CLOSURE = Refusal(
    Reason.SINGULAR_CLOSURE,
    "the loops are in a singular position, or too near one: constraints that are independent elsewhere depend on "
    "each other here, so that accelerations are not unique. See robot.diagnose(q); on_singular='minimum_norm' "
    "gives one answer",
)


def explain(question: Question, *arrays: np.ndarray) -> Refusal:
    """Why this state has no answer."""
    return (
        input_fault(question, *arrays)
        or _open_loop(question, *arrays)
        or _unmet_demand(question, *arrays)
        or SINGULAR_MASS
    )


def input_fault(question: Question, *arrays: np.ndarray) -> Refusal | None:
    """The first number that is not finite, or quaternion off unit length; None where the inputs are in order."""
    inputs, _ = question.signature()
    for (name, _), x in zip(inputs, arrays, strict=True):
        wrong = np.flatnonzero(~np.isfinite(x))
        if len(wrong):
            k = int(wrong[0])
            sentence = f"{name}[{k}]{_owner(question, name, k)} is {x[k]}; every number must be finite"
            return Refusal(Reason.NOT_FINITE, sentence)
        if name in POSITIONS:
            for joint in question.model.joints:
                where = question.model.q_slice(joint.name)
                for part in joint.kind.unit_parts(tuple(x[where])):
                    length = float(np.sqrt(sum(float(v) ** 2 for v in part)))
                    if abs(length - 1.0) > UNIT_TOLERANCE:
                        return Refusal(
                            Reason.QUATERNION,
                            f"{name}[{where.start}:{where.start + 4}] (joint {joint.name!r}) "
                            "is a quaternion of length "
                            f"{length:.9g}; expected 1 to within {UNIT_TOLERANCE:g}. Divide it by its length",
                        )
    return None


def _open_loop(question: Question, *arrays: np.ndarray) -> Refusal | None:
    """The loop that is open most, and by how much; None where all are closed or the method checks none."""
    inputs, _ = question.signature()
    m, program = question.baked
    if program.demands is None:
        return None
    q = [float(x) for x in arrays[[n for n, _ in inputs].index("q")]]
    errors = np.abs(np.array(walked(closure_kinematics.closure_error(m), m, {"q": q})[0], dtype=float))
    worst = max(m.closures, key=lambda c: max(errors[list(c.rows)], default=0.0), default=None)
    if worst is None or errors[list(worst.rows)].max() < 0.5 * closure_kinematics.OPEN:
        return None
    loop = next(x for x in question.model.loops if x.name == worst.name)
    return Refusal(
        Reason.OPEN_LOOP,
        f"loop {loop.name!r}, between {loop.a!r} and {loop.b!r}, is open by {errors[list(worst.rows)].max():.3g} "
        "(metres or radians). Close it first: q = robot.assemble(q)",
    )


def _unmet_demand(question: Question, *arrays: np.ndarray) -> Refusal | None:
    """The demand of the method that the state does not meet (closures keep their rank, ...); None if it meets all."""
    inputs, _ = question.signature()
    given = {n: [float(v) for v in x] for (n, _), x in zip(inputs, arrays, strict=True)}
    try:
        _, demands = question.compute(given)
    except (ZeroDivisionError, OverflowError):
        return None
    except UnsupportedError as error:  # a method does not fit these live parameters
        return Refusal(Reason.UNSUPPORTED, str(error))
    if all(a < b for a, b in demands):
        return None
    return question.baked[1].refusal or SINGULAR_CLOSURE


def _owner(question: Question, name: str, k: int) -> str:
    """The joint, body or parameter that number k of an input belongs to."""
    if name in question.baked[1].sizes:  # belongs to no joint
        return ""
    if name in ("forces", "parameters"):
        loaded = name == "forces"
        owner = question.options["loaded"][k // 6] if loaded else Parameters.of(question.model).names[k]
        return f" ({owner!r})"
    of = question.model.q_slice if name in POSITIONS else question.model.v_slice
    for joint in question.model.joints:
        s = of(joint.name)
        if s.start <= k < s.stop:
            return f" (joint {joint.name!r})"
    return ""


# ---- Quaternions must have length 1: the conditions on coordinates.


UNIT_TOLERANCE = 1e-6

POSITIONS = ("q", "start")  # inputs that hold coordinates


def unit_conditions(model: Model, inputs: Mapping[str, Sequence[Any]]) -> Iterator[Any]:
    """The conditions on the coordinates of all joints."""
    for name in POSITIONS:
        for joint in model.joints if name in inputs else ():
            for part in joint.kind.unit_parts(tuple(inputs[name][model.q_slice(joint.name)])):
                yield _is_unit(part)


def units_of(link: Anonymous, inputs: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The conditions on one link's coordinates."""
    return [_is_unit(part) for n in POSITIONS if n in inputs for part in link.kind.unit_parts(tuple(inputs[n]))]


def _is_unit(part: Sequence[Any]):
    square = sum((x * x for x in part), 0.0)
    return (square < 1.0 + 2.0 * UNIT_TOLERANCE) & (square > 1.0 - 2.0 * UNIT_TOLERANCE)
