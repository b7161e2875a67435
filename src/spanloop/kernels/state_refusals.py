"""Why a state has no answer, as a Refusal with its reason and a sentence; why a model has no such kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.redundancy import scaled_jacobian
from spanloop.algorithms.tree import operational_space
from spanloop.errors import Reason, Refusal, UnsupportedError, listed
from spanloop.kernels.lowering import POSITIONS, UNIT_TOLERANCE
from spanloop.model import Model
from spanloop.model.parameters import NEGLIGIBLE, Parameters, not_negative, out_of_proportion, proportions
from spanloop.sweeps import walk, walked
from spanloop.sweeps.program import Demand
from spanloop.sweeps.tested_pivots import IN_MATRIX, IN_SWEEPS, PivotTest
from spanloop.topology import Mechanism, mechanism

if TYPE_CHECKING:
    from spanloop.kernels.spec import KernelSpec


SINGULAR_MASS = Refusal(
    Reason.SINGULAR_MASS,
    "the answer is not finite at this state. The mass matrix is singular "
    "(a body without inertia about its joint?) or the numbers overflow",
)
_ARGUMENTS = {"given": "loop_accelerations", "active": "active_loops"}  # of Dynamics, by a kernel's inputs
_INVOLVED = 0.1  # of the largest weight of a row in a combination of rows that vanishes
_SLACK = 1e3  # by which a pivot that a kernel found too small may differ on floats here


OTHER_ASSEMBLY = Refusal(
    Reason.OTHER_ASSEMBLY,
    "constraints of the loops that depend on each other in the assemblies known so far are independent here, and the "
    "accelerations found do not satisfy all of them. See robot.diagnose(q); sl.compile(..., near=q) makes a kernel for "
    "this assembly",
)


def explain(spec: KernelSpec, *arrays: np.ndarray) -> Refusal:
    """Why this state has no answer."""
    causes = (input_fault, _open_loop, _singular_joint, _unmet_demand, partial(_singular_joint, slack=_SLACK))
    return next((found for cause in causes if (found := cause(spec, *arrays))), SINGULAR_MASS)


def input_fault(spec: KernelSpec, *arrays: np.ndarray) -> Refusal | None:
    """The first number that is not finite or possible, or quaternion off unit length; None if all is in order."""
    inputs, _ = spec.signature()
    for (name, _), x in zip(inputs, arrays, strict=True):
        wrong = np.flatnonzero(~np.isfinite(x))
        if len(wrong):
            k = int(wrong[0])
            bound = " and at most 3.4e38, the largest of float32" if spec.single and np.isinf(x[k]) else ""
            entry = f"{_ARGUMENTS.get(name, name)}[{k}]{_owner(spec, name, k)}"
            sentence = f"{entry} is {x[k]}; every number must be finite{bound}"
            return Refusal(Reason.NOT_FINITE, sentence)
        if name in POSITIONS and (found := off_unit_length(spec.model, x, name)) is not None:
            return found
        if name == "parameters":
            for parameter, value in not_negative(spec.model, _all_parameters(spec, x)):
                if value < -NEGLIGIBLE:
                    words = f"parameters: {parameter!r} is {value:g}; must be >= 0"
                    return Refusal(Reason.IMPOSSIBLE_PARAMETER, words)
            for body, value in proportions(spec.model, _all_parameters(spec, x)):
                if value < -NEGLIGIBLE:
                    return Refusal(Reason.IMPOSSIBLE_PARAMETER, f"parameters: {out_of_proportion(body)}")
    return None


def off_unit_length(model: Model, q: np.ndarray, name: str = "q") -> Refusal | None:
    """The first quaternion of a state q (nq,) that is off unit length; name: of the input."""
    for joint in model.joints:
        where = model.q_slice(joint.name)
        for part in joint.kind.unit_parts(tuple(q[where])):
            length = math.hypot(*(float(v) for v in part))
            if abs(length - 1.0) > UNIT_TOLERANCE:
                return Refusal(
                    Reason.QUATERNION,
                    f"{name}[{where.start}:{where.start + 4}] (joint {joint.name!r}) is a quaternion of length "
                    f"{length:.9g}; expected 1 to within {UNIT_TOLERANCE:g}. Divide it by its length",
                )
    return None


def _all_parameters(spec: KernelSpec, values: np.ndarray) -> Sequence[float]:
    """All parameters of the model, in floats, where these are inputs."""
    return spec.with_all_parameters({"parameters": [float(x) for x in values]})["parameters"]


def _open_loop(spec: KernelSpec, *arrays: np.ndarray) -> Refusal | None:
    """The loop that is open most, and by how much; None where all are closed or the method checks none."""
    inputs, _ = spec.signature()
    m, program = spec.program
    if program.demands is None or not m.closures:
        return None
    given = {n: [float(v) for v in x] for (n, _), x in zip(inputs, arrays, strict=True)}
    found = open_loop(spec.model, spec.mechanism_of(given), given["q"], _closed_rows(m, given))
    if found is None:
        return None
    closer = "sl.Dynamics(model.with_parameters(parameters))" if spec.live else "robot"
    return Refusal(Reason.OPEN_LOOP, f"{found}. Close it first: q = {closer}.assemble(q)", found)


def open_loop(model: Model, m: Mechanism, q: Sequence[float], closed: np.ndarray) -> str | None:
    """The loop that is open most, and by how much; None where all are closed. closed: whether each row shall be."""
    state = {"q": q}
    errors = np.abs(np.array(walk(closure_kinematics.closure_error(m), m, state), dtype=float))
    facing = walk(closure_kinematics.closure_facing(m), m, state)
    shares = np.where(closed, errors / np.array(m.row_lengths), 0.0)
    facing = [x if closed[list(c.rows)].any() else 1.0 for c, x in zip(m.closures, facing, strict=True)]
    worst = max(m.closures, key=lambda c: max(shares[list(c.rows)].max(initial=0.0), 10.0 * (facing[c.number] <= 0.0)))
    rows = list(worst.rows)
    loop = next(x for x in model.loops if x.name == worst.name)
    which = f"loop {loop.name!r}, between {loop.a!r} and {loop.b!r}, is"
    if facing[worst.number] <= 0.0:
        return f"{which} turned the wrong way round: its frames face away from each other"
    if shares[rows].max(initial=0.0) >= 0.5 * closure_kinematics.OPEN:
        k = int(np.argmax(shares[rows]))
        return f"{which} open by {errors[rows[k]]:.3g} {'m' if worst.row_kind(k) == 'force' else 'rad'}"
    return None


def _closed_rows(m, given: dict[str, list[float]]) -> np.ndarray:
    """Which rows (n_rows,) are not switched off."""
    closed = np.ones(m.n_rows, bool)
    closed[list(m.switched_rows)] = np.array(given.get("active", ()), float) != 0.0
    return closed


def _singular_joint(spec: KernelSpec, *arrays: np.ndarray, slack: float = 1.0) -> Refusal | None:
    """The joint whose pivot of the mass matrix is smallest for what it carries; None where all are large enough.

    slack: how many times the least pivot still counts as too small.
    """
    given = {n: [float(v) for v in x] for (n, _), x in zip(spec.signature()[0], arrays, strict=True)}
    if "q" not in given:
        return None
    m = replace(
        mechanism(spec.model, spec.with_all_parameters(given).get("parameters")), single=spec.single, coarse=spec.coarse
    )
    tested = PivotTest(m, IN_MATRIX if spec.method in ("composite_body", "unit_vector") else IN_SWEEPS)
    numbers = walked(operational_space.pivots(m, tested), m, given)[0]
    return tested.refusal(m, [(slack * x, pivot) for x, pivot in zip(numbers[::2], numbers[1::2], strict=True)])


def _unmet_demand(spec: KernelSpec, *arrays: np.ndarray) -> Refusal | None:
    """The demand of the method that the state does not meet (closures keep their rank, ...); None if it meets all."""
    inputs, _ = spec.signature()
    given = {n: [float(v) for v in x] for (n, _), x in zip(inputs, arrays, strict=True)}
    try:
        answer, demands = spec.compute(given)
        dropped = spec.dropped_row_demands(spec.mechanism_of(given), given, answer[: spec.model.nv])
    except (ZeroDivisionError, OverflowError):
        return None
    except UnsupportedError as error:  # a method does not fit these live parameters
        return Refusal(Reason.UNSUPPORTED, str(error))
    m, program = spec.program
    if all(a < b for a, b in demands) or not (program.refusal or m.closures or m.gears):
        return None
    own = [pair.refusal if isinstance(pair, Demand) else None for pair in demands if not pair[0] < pair[1]]
    if all(own):
        return own[0]
    if dropped and all(a < b for a, b in demands[: -len(dropped)]):
        return OTHER_ASSEMBLY
    return program.refusal or _too_much_driven(spec, given) or _singular_closure(spec, given)


def _singular_closure(spec: KernelSpec, given: dict[str, list[float]]) -> Refusal:
    """Rows that are kept and depend on each other, with the loops and couplings that they belong to."""
    m = spec.mechanism_of(given)
    closed = _closed_rows(m, given)
    rows = np.array([r for r in range(m.n_rows) if r not in spec.redundancy.dropped and closed[r]], dtype=int)
    J = scaled_jacobian(m, np.array(given["q"]))[rows]
    weights = np.abs(np.linalg.svd(J)[0][:, -1]) if np.isfinite(J).all() else np.zeros(len(rows))  # u with uᵀ J = 0
    involved = set(rows[weights > _INVOLVED * weights.max(initial=0.0)].tolist())
    owners = [(c.name, c.rows) for c in m.closures] + [(g.name, (g.row,)) for g in m.gears]
    names = [repr(name) for name, own in owners if involved.intersection(own)]
    which = f" (in {listed(names, 5)})" if names else ""
    return Refusal(
        Reason.SINGULAR_CLOSURE,
        "the loops are in a singular configuration, or too near one: constraints that are independent elsewhere depend "
        f"on each other here{which}, so that accelerations are not unique. See robot.diagnose(q); "
        "on_singular='minimum_norm' gives one answer",
    )


def _too_much_driven(spec: KernelSpec, given: dict[str, list[float]]) -> Refusal | None:
    """Driven joints and loops that leave each other no motion, at a state where the loops by themselves are regular."""
    m = spec.mechanism_of(given)
    driven = [link.name for link in m.links if link.driven]
    if not driven or not spec.redundancy.is_known:
        return None
    J = scaled_jacobian(m, np.array(given["q"]))
    free = [k for link in m.links if not link.driven for k in range(link.v.start, link.v.stop)]
    whole, without = (int(np.linalg.matrix_rank(x, tol=1e-6)) for x in (J, J[:, free]))
    usual = max(int(np.linalg.matrix_rank(x, tol=1e-6)) for x in spec.redundancy.jacobians)
    if whole < usual or without == whole:
        return None
    return Refusal(
        Reason.SINGULAR_CLOSURE,
        f"the driven joints ({listed(map(repr, driven), 5)}) prescribe more than the loops leave free: the loops leave "
        f"{m.nv - whole} DoF here, and the other joints cannot follow every motion of the driven ones. Drive fewer "
        f"joints; robot.diagnose(q) has the mobility",
    )


def _owner(spec: KernelSpec, name: str, k: int) -> str:
    """The joint, body or parameter that number k of an input belongs to."""
    if name in spec.program[1].sizes or name == "captured":  # belongs to no joint
        return ""
    if name in ("forces", "parameters"):
        loaded = name == "forces"
        owner = spec.options["loaded"][k // 6] if loaded else Parameters.of(spec.model).names[k]
        return f" ({owner!r})"
    of = spec.model.q_slice if name in POSITIONS else spec.model.v_slice
    for joint in spec.model.joints:
        s = of(joint.name)
        if s.start <= k < s.stop:
            return f" (joint {joint.name!r})"
    return ""


def refuse_closures(model: Model, name: str, instead: str = "forward_dynamics") -> None:
    """Raise UnsupportedError if the model has closures; instead: what to use for them."""
    if not (model.loops or model.couplings):
        return
    if model.loops:
        loop = model.loops[0]
        what = f"model {model.name!r} has a loop ({loop.name!r}, between {loop.a!r} and {loop.b!r})"
        kind, advice = "closed loops", "lock the loop's joints: model.lock(...)"
    else:
        c = model.couplings[0]
        does = "is held" if c.source is None else f"follows joint {c.source!r}"
        what = f"joint {c.joint!r} of model {model.name!r} {does} (a coupling)"
        kind, advice = "coupled joints", f"leave it out of the motion: model.lock({', '.join(map(repr, c.joints))})"
    if name == "inverse_dynamics":
        raise UnsupportedError(
            f"{name}: {what}; a kernel of it is for trees. Use sl.Dynamics(model).inverse_dynamics(q, v, a)"
        )
    raise UnsupportedError(f"{name}: {what}; {name} of {kind} is not there yet. Use {instead}, or {advice}")


def refuse_flexible(model: Model, owner: str, instead: str) -> None:
    """Raise UnsupportedError if the model has a flexible body; owner: what does not know it, instead: what does."""
    found = next((j for j in model.joints if j.kind.bends), None)
    if found is not None:
        raise UnsupportedError(
            f"{owner} is for rigid bodies: body {found.child!r} of {model.name!r} bends. Use {instead}"
        )
