"""Joints beyond their limits during a motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.model.parts import Joint
from spanloop.trajectory.events import STOP

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

GIVES_WAY = 0.02  # rad or m, of springs at limits (limits="stop")
_TORQUES = {"rad": "N m", "m": "N"}


@dataclass(frozen=True)
class Excess:
    """A joint's farthest way beyond a limit: by how much, and in which sample (run..., time)."""

    joint: str
    limit: str  # "upper limit 1.5 rad"
    by: float
    unit: str
    sample: tuple[int, ...]


def exceeded(run: Trajectory, slack: float) -> list[Excess]:
    """All limits that were exceeded by more than the slack, or than a spring gives way; the worst sample of each."""
    slacks = {j.name: GIVES_WAY if has_spring(run, j) else slack for j in run.model.joints}
    return [x for j in run.model.joints for x in _of(run, j) if x.by > slacks[j.name]]


def limited(run: Trajectory) -> bool:
    """Has any joint a limit?"""
    return any(_dof_limits(run, j) for j in run.model.joints)


def _of(run: Trajectory, joint: Joint) -> Iterator[Excess]:
    for beyond, bounds, name, units in _dof_limits(run, joint):
        for k, (bound, unit) in enumerate(zip(bounds, units, strict=True)):
            by = beyond[..., k]
            if np.isfinite(bound) and np.isfinite(by).any():
                worst = np.unravel_index(np.nanargmax(by), by.shape)
                sample = tuple(int(i) for i in worst)
                yield Excess(joint.name, f"{name} {bound:g} {unit}".rstrip(), float(by[worst]), unit, sample)


def _dof_limits(run: Trajectory, joint: Joint) -> list[tuple[np.ndarray, tuple[float, ...], str, tuple[str, ...]]]:
    """By how much (..., n, nv) a joint is beyond each of its limits, the limits, and what they are."""
    model, units = run.model, joint.kind.units
    v, tau = (x[..., model.v_slice(joint.name)] for x in (run.v, run.tau))
    rates = tuple(f"{u}/s" if u else "" for u in units)
    torques = tuple(_TORQUES.get(u, "") for u in units)
    out = []
    if joint.kind.nq == joint.kind.nv:
        q = run.q[..., model.q_slice(joint.name)]
        if joint.lower is not None:
            out.append((np.array(joint.lower) - q, joint.lower, "lower limit", units))
        if joint.upper is not None:
            out.append((q - np.array(joint.upper), joint.upper, "upper limit", units))
    if joint.speed is not None:
        out.append((np.abs(v) - np.array(joint.speed), joint.speed, "speed limit", rates))
    stopped = has_spring(run, joint) and any((x[0] > 0.0).any() for x in out)
    if joint.effort is not None and not joint.driven and not stopped:  # a stop's torque is not the drive's
        out.append((np.abs(tau) - np.array(joint.effort), joint.effort, "effort limit", torques))
    return out


def has_spring(run: Trajectory, joint: Joint) -> bool:
    """Whether a joint is stopped at its limits by springs, which give way."""
    has_limits = joint.lower is not None or joint.upper is not None
    return has_limits and run.settings.get("limits") == "stop" and joint.name + STOP not in run.events.switches
