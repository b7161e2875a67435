"""One state or many: inputs are checked once, and a state without an answer is reported as kernels do it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from spanloop.compiler.runtime.arrays import converted, leading_shape
from spanloop.compiler.runtime.kernel import warn_of_states
from spanloop.errors import InputError, Reason, Refusal, StateError
from spanloop.kernels import UNIT_TOLERANCE
from spanloop.model import Model

Faults = dict[int, str | Refusal]  # number of a state: why it has no answer

Answers = tuple[np.ndarray, ...]


def over_states(
    name: str, robot: Robot, compute: Callable[..., tuple[Answers, Faults]], **inputs: tuple
) -> list[np.ndarray]:
    """The answers of compute(*rows (n, size)) for all states, batch axes restored.

    inputs: name=(array, size); one of them is q. One state without an answer raises StateError; in a batch its
    rows are NaN (−1 for whole numbers), with one warning.
    """
    given = [converted(name, n, size, x, np.dtype(float)) for n, (x, size) in inputs.items()]
    leading = leading_shape(name, list(inputs), given)
    count = math.prod(leading)
    rows = {
        n: np.broadcast_to(a, (*leading, a.shape[-1])).reshape(count, a.shape[-1])
        for n, a in zip(inputs, given, strict=True)
    }
    faults: Faults = {**faulty_states(robot, rows)}
    good = [k for k in range(count) if k not in faults]
    answers, further = compute(*(a[good] for a in rows.values()))
    faults |= {good[k]: why for k, why in further.items()}
    _report(name, faults, count, leading)
    return [_spread(a, good, list(faults), count).reshape(leading + a.shape[1:]) for a in answers]


def one_state(name: str, robot: Robot, q) -> np.ndarray:
    """q (nq,), checked; a batch is refused."""
    if np.ndim(q) > 1:
        raise InputError(
            f"{name}: q has shape {np.shape(q)}; expected one state ({robot.model.nq},). Ask for each in turn"
        )
    return over_states(name, robot, lambda x: ((x,), {}), q=(q, robot.model.nq))[0]


def faulty_states(robot: Robot, rows: dict[str, np.ndarray]) -> dict[int, Refusal]:
    """States whose numbers are not finite, or whose quaternions are not of unit length."""
    faults: dict[int, Refusal] = {}
    for name, a in rows.items():
        wrong = ~np.isfinite(a).all(axis=1)
        if name == "q":
            wrong |= _off_unit(robot.model, a)
        for k in np.flatnonzero(wrong):
            faults[int(k)] = _why(robot, name, a[k])
    return faults


def _off_unit(model: Model, q: np.ndarray) -> np.ndarray:
    wrong = np.zeros(len(q), dtype=bool)
    for joint in model.joints:
        for part in joint.kind.unit_parts(tuple(q[:, model.q_slice(joint.name)].T)):
            wrong |= ~(np.abs(np.sqrt(sum(x * x for x in part)) - 1.0) <= UNIT_TOLERANCE)
    return wrong


def _why(robot: Robot, name: str, x: np.ndarray) -> Refusal:
    if name == "q":
        try:
            robot.kernel("integrate").evaluate(x, np.zeros(robot.model.nv))
        except StateError as error:
            return error.refusal
    k = int(np.argmax(~np.isfinite(x)))
    return Refusal(Reason.NOT_FINITE, f"{name}[{k}] is {x[k]}; every number must be finite")


def _report(name: str, faults: Faults, count: int, leading: tuple[int, ...]) -> None:
    if faults:
        first = min(faults)
        why = faults[first]
        refusal = why if isinstance(why, Refusal) else Refusal(Reason.OTHER, why)
        if not leading:
            raise StateError.of(name, refusal)
        warn_of_states(name, len(faults), count, first, leading, refusal)


def _spread(answer: np.ndarray, good: list[int], bad: list[int], count: int) -> np.ndarray:
    """The answers of the good states among all, the others' rows filled."""
    fill = np.nan if answer.dtype.kind == "f" else -1
    out = np.full((count, *answer.shape[1:]), fill, answer.dtype)
    out[good] = answer
    out[bad] = fill
    return out


# ---- What these functions ask of a robot: its model and its kernels.


class Robot(Protocol):
    """A model with compiled kernels by name; Dynamics is one."""

    model: Model

    def kernel(self, function: str, **options) -> Any: ...


def values(robot: Robot, function: str, *inputs: np.ndarray, **options) -> np.ndarray:
    """A kernel's answers for rows of states (n, ...), in double precision."""
    return np.asarray(robot.kernel(function, **options).evaluate(*inputs), dtype=float)


def resolution(robot: Robot) -> float:
    """The relative size of rounding errors in the robot's kernels."""
    return float(np.finfo(robot.kernel("closure_error").dtype).eps)
