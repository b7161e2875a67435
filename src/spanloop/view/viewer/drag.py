"""Drag one independent degree of freedom and keep every loop closed.

A long motion is cut into short steps. On each step the dependent degrees of freedom follow along T (v = T v_i), and
Newton steps on them alone remove the remaining closure error, so that the dragged one takes exactly its new value. A
step that fails is halved; when halving no longer helps, the motion ends there, with a message that gives the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.loops import IndependentCoordinates
from spanloop.loops.arguments import dof_names
from spanloop.loops.assembly.assembly import Limits
from spanloop.loops.closure_errors import errors, positional, relative_errors, worst
from spanloop.loops.independent_dofs import maps, structure_of

CLOSED = 1e-12  # rad, or of the loop's length: closure error that may remain
STRIDE = 0.1  # rad or m: largest change of any degree of freedom in one step
SHORTEST = 1e-5  # rad or m: steps are not halved below this
_NEWTON = 8


@dataclass(frozen=True)
class Drag:
    """The result of a drag: q (nq,), the distance moved [rad or m], and why no further ("" if all the way)."""

    q: np.ndarray
    distance: float
    message: str = ""


def drag(robot: Dynamics, q: np.ndarray, chosen: IndependentCoordinates, dof: int, distance: float) -> Drag:
    """Move entry `dof` of v by `distance` [rad or m]; the other independent degrees of freedom stay where they are."""
    limits = Limits(robot.model)
    k = chosen.dofs.index(dof)
    done, part = 0.0, distance
    while abs(distance - done) > 1e-15:
        T, _, faults = maps(robot, q[None], chosen)
        reach = np.abs(T[0, :, k]).max()
        part = np.copysign(min(abs(distance - done), abs(part), STRIDE / max(reach, 1.0)), distance)
        found, reason = (None, faults[0]) if faults else _step(robot, q, chosen, part * T[0, :, k], limits)
        if found is not None:
            q, done, part = found, done + part, 2.0 * part
        elif abs(part) < 2.0 * SHORTEST:
            return Drag(q, done, f"{dof_names(robot.model)[dof]} cannot go further: {reason}")
        else:
            part *= 0.5
    return Drag(q, done)


def _step(robot: Dynamics, q, chosen: IndependentCoordinates, step, limits: Limits) -> tuple[np.ndarray | None, str]:
    """The closed configuration after a short step (nv,), or the reason why there is none."""
    rows = positional(robot.model)
    trial = robot.integrate(q, step)
    for _ in range(_NEWTON):
        e = errors(robot, trial[None])
        if np.abs(relative_errors(robot, trial[None])[:, rows]).max(initial=0.0) <= CLOSED:
            break
        _, backward, faults = maps(robot, trial[None], chosen)
        if faults:
            return None, str(faults[0])
        correction = -backward[0] @ structure_of(robot, trial[None]).scaled_errors(np.where(rows, e[0], 0.0))
        if not np.abs(correction).max() < STRIDE:
            return None, f"{worst(robot.model, e[0]).what} would open"
        trial = robot.integrate(trial, correction)
    e = errors(robot, trial[None])
    if np.abs(relative_errors(robot, trial[None])[:, rows]).max(initial=0.0) > CLOSED:
        return None, f"{worst(robot.model, e[0]).what} would open"
    beyond = _beyond(limits, trial)
    return (None, f"joint {beyond!r} is at its limit") if beyond else (trial, "")


def _beyond(limits: Limits, q: np.ndarray) -> str:
    """The joint that is farthest beyond a limit; "" if none is."""
    if not limits.names:
        return ""
    x = q[limits.in_q]
    by = np.maximum(limits.lower - x, x - limits.upper)
    return limits.names[int(np.argmax(by))] if by.max() > 1e-9 else ""
