"""Moving one independent freedom at a time, with every loop kept closed.

A long way is cut into short ones. On each the dependent freedoms follow along T (v = T v_i), and Newton steps on them
alone close what that leaves open, so that the freedom that was moved stands exactly where it was put. Where a short
way fails it is halved; where that no longer helps the mechanism cannot go further, and a sentence says why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.loops import IndependentCoordinates
from spanloop.loops.assembly import Limits
from spanloop.loops.closure_errors import errors, positional, worst
from spanloop.loops.independent import dof_names, maps, structure_of

CLOSED = 1e-12  # m or rad: what is left open
STRIDE = 0.1  # rad or m: the most that any freedom moves at once
SHORTEST = 1e-5  # rad or m: shorter ways are not tried
_NEWTON = 8


@dataclass(frozen=True)
class Moved:
    """Where the mechanism came to: q (nq,), how far the freedom moved, and why no further ("" if all the way)."""

    q: np.ndarray
    way: float
    why: str = ""


def moved(robot: Dynamics, q: np.ndarray, chosen: IndependentCoordinates, freedom: int, way: float) -> Moved:
    """q with entry `freedom` of v moved along by `way` [rad or m], the other independent freedoms where they are."""
    limits = Limits(robot.model)
    k = chosen.dofs.index(freedom)
    done, part = 0.0, way
    while abs(way - done) > 1e-15:
        T, _, faults = maps(robot, q[None], chosen)
        reach = np.abs(T[0, :, k]).max()
        part = np.copysign(min(abs(way - done), abs(part), STRIDE / max(reach, 1.0)), way)
        found, why = (None, faults[0]) if faults else _tried(robot, q, chosen, part * T[0, :, k], limits)
        if found is not None:
            q, done, part = found, done + part, 2.0 * part
        elif abs(part) < 2.0 * SHORTEST:
            return Moved(q, done, f"{dof_names(robot.model)[freedom]} cannot go further: {why}")
        else:
            part *= 0.5
    return Moved(q, done)


def _tried(robot: Dynamics, q, chosen: IndependentCoordinates, step, limits: Limits) -> tuple[np.ndarray | None, str]:
    """The closed state after a short step (nv,), or why there is none."""
    rows = positional(robot.model)
    trial = robot.integrate(q, step)
    for _ in range(_NEWTON):
        e = errors(robot, trial[None])
        if np.abs(e[:, rows]).max(initial=0.0) <= CLOSED:
            break
        _, backward, faults = maps(robot, trial[None], chosen)
        if faults:
            return None, faults[0]
        correction = -backward[0] @ structure_of(robot, trial[None]).scaled_errors(np.where(rows, e[0], 0.0))
        if not np.abs(correction).max() < STRIDE:
            return None, f"{worst(robot.model, e[0]).what} would open"
        trial = robot.integrate(trial, correction)
    e = errors(robot, trial[None])
    if np.abs(e[:, rows]).max(initial=0.0) > CLOSED:
        return None, f"{worst(robot.model, e[0]).what} would open"
    beyond = _beyond(limits, trial)
    return (None, f"joint {beyond!r} is at its limit") if beyond else (trial, "")


def _beyond(limits: Limits, q: np.ndarray) -> str:
    """The joint that is farthest beyond a limit, if one is."""
    if not limits.names:
        return ""
    x = q[limits.in_q]
    by = np.maximum(limits.lower - x, x - limits.upper)
    return limits.names[int(np.argmax(by))] if by.max() > 1e-9 else ""
