"""Where a run starts: states that are given, checked, and brought to the closed loops if they are a little off."""

from __future__ import annotations

import warnings

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import OPEN
from spanloop.compiler.runtime.arrays import converted, leading_shape
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopWarning, StateError
from spanloop.loops.closure_errors import errors, positional, worst
from spanloop.simulation.events import Watch

NOTICED = 1e-9  # m, rad or their rates: a smaller correction of the start is not worth a word


def states(robot: Dynamics, q, v, batch: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Rows q (n, nq) and v (n, nv), and the shape of the batch (with that of other inputs)."""
    model = robot.model
    q = _resting_place(robot) if q is None else q
    v = np.zeros(model.nv) if v is None else v
    q = converted("simulate", "q", model.nq, q, np.dtype(float))
    v = converted("simulate", "v", model.nv, v, np.dtype(float))
    leading = leading_shape("simulate", ["q", "v", "inputs"], [q, v, np.empty((*batch, 0))])
    if 0 in leading:
        raise InputError(f"simulate: the batch has the shape {leading}; there is nothing to simulate")
    q = np.array(np.broadcast_to(q, (*leading, model.nq)).reshape(-1, model.nq))
    v = np.array(np.broadcast_to(v, (*leading, model.nv)).reshape(-1, model.nv))
    _check(robot, q, v, leading)
    return q, v, leading


def refuse_open(robot: Dynamics, q: np.ndarray) -> None:
    """States with a loop that is far from closed are refused."""
    model = robot.model
    if not (model.loops or model.couplings):
        return
    far = np.flatnonzero(_openness(robot, q) > OPEN)
    if len(far):
        k = int(far[0])
        miss = worst(model, errors(robot, q[k : k + 1])[0])
        which = f"run {k} starts where " if len(q) > 1 else ""
        raise StateError(f"simulate: {which}{miss.what} is open by {miss.by()}. Close it first: q = robot.assemble(q)")


def _openness(robot: Dynamics, q: np.ndarray) -> np.ndarray:
    return np.abs(errors(robot, q)[:, positional(robot.model)]).max(axis=1, initial=0.0)


def note(robot: Dynamics, q: np.ndarray, v: np.ndarray, shut: tuple[np.ndarray, np.ndarray]) -> str:
    """Words for what was done to states that are now closed, if that moved them by more than NOTICED."""
    by_q, by_v = _openness(robot, q).max(initial=0.0), np.abs(shut[1] - v).max(initial=0.0)
    if max(by_q, by_v) <= NOTICED:
        return ""
    parts = [f"loops were open by up to {by_q:.1e} (m or rad)"] if by_q > NOTICED else []
    parts += [f"velocities opened the loops, and were changed by up to {by_v:.1e}"] if by_v > NOTICED else []
    words = "the start was brought to the closed loops: " + "; ".join(parts)
    warnings.warn(f"simulate: {words}", SpanloopWarning, stacklevel=4)
    return words


def tell_of_limits(watch: Watch, q: np.ndarray) -> None:
    """A warning for joints that start beyond a limit: nothing looks at that limit before they have come inside."""
    beyond = [x for x in watch.limits if (x.value(q.T) <= 0.0).any()]
    if beyond:
        first = beyond[0]
        at = float(q[np.argmin(first.value(q.T)), first.place])
        more = f" (and {len(beyond) - 1} more)" if len(beyond) > 1 else ""
        warnings.warn(
            f"simulate: joint {first.joint!r} starts at {at:g}, beyond its {first.word} limit {first.bound:g}{more}; "
            "that limit stops the run only after the joint has come inside. limits='ignore' leaves limits out",
            SpanloopWarning,
            stacklevel=4,
        )


def _resting_place(robot: Dynamics) -> np.ndarray:
    neutral = np.array(robot.model.neutral())
    return robot.assemble(neutral) if robot.model.loops or robot.model.couplings else neutral


def _check(robot: Dynamics, q: np.ndarray, v: np.ndarray, leading: tuple[int, ...]) -> None:
    """Every number finite, every quaternion of unit length; nothing of a batch runs if one state fails."""
    kernel = robot.kernel("integrate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        moved = kernel.evaluate(q, np.zeros_like(v))
    for name, x, wrong in (("q", q, ~np.isfinite(moved).all(axis=1)), ("v", v, ~np.isfinite(v).all(axis=1))):
        if wrong.any():
            k = int(np.argmax(wrong))
            run = f"run {k}: " if leading else ""
            if name == "q":
                why = kernel.definition.explain(q[k], np.zeros(robot.model.nv))
            else:
                j = int(np.argmax(~np.isfinite(x[k])))
                why = f"v[{j}] is {x[k][j]}; every number must be finite"
            raise StateError(f"simulate: {run}{why}")
