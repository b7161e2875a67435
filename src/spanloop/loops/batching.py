"""Functions of one state or of many: inputs are checked once, and states are refused as kernels refuse them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import converted, leading_shape
from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.errors import InputError, Reason, Refusal, StateError
from spanloop.kernels import UNIT_TOLERANCE
from spanloop.model import Model

Refusals = dict[int, Refusal]  # by number of the state
Computed = tuple[tuple[np.ndarray, ...], Refusals]  # arrays (n, ...), and the states that have no answer


class Robot(Protocol):
    """A model with compiled kernels by name; Dynamics is one."""

    @property
    def model(self) -> Model: ...

    def kernel(self, function: str, **options: Any) -> Any: ...


def values(robot: Robot, function: str, *inputs: np.ndarray, **options: Any) -> np.ndarray:
    """A kernel's answers for rows of states (n, ...), in double precision; NaN for a state without an answer."""
    return np.asarray(robot.kernel(function, **options).evaluate(*inputs), dtype=float)


def resolution(robot: Robot) -> float:
    """The relative size of rounding errors in the robot's kernels."""
    return float(np.finfo(robot.kernel("closure_error").dtype).eps)


def over_states(
    function: str, robot: Robot, compute: Callable[..., Computed], **inputs: tuple[ArrayLike, int]
) -> list[np.ndarray]:
    """The results of compute(*rows (n, size)) for all states, with their batch axes.

    inputs: name=(array, size); one of them is q. A single state that is refused raises StateError; in a batch its
    rows are NaN (−1 in arrays of integers), with one warning.
    """
    arrays = [converted(function, name, size, x, np.dtype(float)) for name, (x, size) in inputs.items()]
    leading = leading_shape(function, list(inputs), arrays)
    count = math.prod(leading)
    rows = {
        name: np.broadcast_to(a, (*leading, a.shape[-1])).reshape(count, a.shape[-1])
        for name, a in zip(inputs, arrays, strict=True)
    }
    refusals = faulty_states(robot, rows)
    good = np.delete(np.arange(count), list(refusals)) if refusals else np.arange(count)
    answers, further = compute(*(a[good] if refusals else a.copy() for a in rows.values()))
    refusals |= {int(good[k]): refusal for k, refusal in further.items()}
    results = [_spread(a, good, count) if len(good) < count else a for a in answers]
    refuse_states(function, list(refusals), refusals.__getitem__, leading, *results)
    return [a.reshape(leading + a.shape[1:]) for a in results]


def one_state(function: str, robot: Robot, q: ArrayLike) -> np.ndarray:
    """q (nq,), checked; InputError for a batch."""
    if np.ndim(q) > 1:
        raise InputError(
            f"{function}: q has shape {np.shape(q)}; expected one state ({robot.model.nq},). Ask for each in turn"
        )
    return over_states(function, robot, lambda x: ((x,), {}), q=(q, robot.model.nq))[0]


def faulty_states(robot: Robot, rows: dict[str, np.ndarray]) -> Refusals:
    """States whose numbers are not finite, or whose quaternions are not of unit length."""
    refusals: Refusals = {}
    for name, a in rows.items():
        wrong = ~np.isfinite(a).all(axis=1)
        if name == "q":
            wrong |= _off_unit(robot.model, a)
        for k in np.flatnonzero(wrong):
            refusals[int(k)] = _explain(robot, name, a[k])
    return refusals


def _off_unit(model: Model, q: np.ndarray) -> np.ndarray:
    wrong = np.zeros(len(q), dtype=bool)
    if model.nq == model.nv:  # no joint has a quaternion
        return wrong
    for joint in model.joints:
        for part in joint.kind.unit_parts(tuple(q[:, model.q_slice(joint.name)].T)):
            wrong |= ~(np.abs(np.sqrt(sum(x * x for x in part)) - 1.0) <= UNIT_TOLERANCE)
    return wrong


def _explain(robot: Robot, name: str, x: np.ndarray) -> Refusal:
    if name == "q":
        try:
            robot.kernel("integrate").evaluate(x, np.zeros(robot.model.nv))
        except StateError as error:
            return error.refusal
    k = int(np.argmax(~np.isfinite(x)))
    return Refusal(Reason.NOT_FINITE, f"{name}[{k}] is {x[k]}; every number must be finite")


def _spread(answer: np.ndarray, good: np.ndarray, count: int) -> np.ndarray:
    """The answers of the good states as rows among all states."""
    out = np.zeros((count, *answer.shape[1:]), answer.dtype)
    out[good] = answer
    return out
