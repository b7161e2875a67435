"""The momentum of a mechanism that nothing holds: it changes by gravity and by forces from outside alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.results.auditing.balance import highest
from spanloop.results.auditing.quadrature import integral
from spanloop.results.quantities import pose

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Drift:
    """error (..., n): size of what momentum changed without a cause; doubt (..., n): the quadrature's own error in it;
    scale (...): the momentum that the motion's kinetic energy could carry."""

    error: np.ndarray
    doubt: np.ndarray
    scale: np.ndarray


def floats(model: Model) -> bool:
    """Does nothing hold the mechanism? Joints to the world are free ones without springs, dampers and drives."""
    roots = [j for j in model.joints if j.parent == WORLD]
    loose = all(j.kind.name == "free" and not (j.driven or any(j.damping) or any(j.stiffness)) for j in roots)
    return bool(roots) and loose and not any(WORLD in (x.a, x.b) for x in model.loops)


def drifts(run: Trajectory) -> tuple[Drift, Drift]:
    """Angular momentum about the centre of mass, and linear momentum."""
    pushed = _any(_from_outside(run))
    mass, kinetic = run.model.mass, highest(run.energy[..., 0])
    weight = mass * np.array(run.model.gravity)
    scales = np.sqrt(2.0 * kinetic * _turning_inertia(run)), np.sqrt(2.0 * kinetic * mass)
    out = []
    for half, scale in zip((slice(0, 3), slice(3, 6)), scales, strict=True):
        course = run.momentum[..., half] - run.momentum[..., :1, half]
        if half.start:
            course = course - (run.times - run.times[0])[:, None] * weight
        doubt = np.zeros(course.shape[:-1])
        for k in range(3 if pushed else 0):
            impulse = integral(run, lambda r, k=half.start + k: _from_outside(r)[..., k])  # type: ignore[misc]
            course[..., k] -= impulse.course
            doubt += impulse.doubt
        out.append(Drift(np.linalg.norm(course, axis=-1), doubt, scale))
    return out[0], out[1]


def _from_outside(run: Trajectory) -> np.ndarray:
    """[moment about the centre of mass; force] (..., n, 6) of all that acts from outside but gravity, world axes."""
    total = np.zeros((*run.q.shape[:-1], 6))
    acting: list[tuple[str, np.ndarray]] = list((run.forces or {}).items())
    for j in run.model.joints:
        tau = run.tau[..., run.model.v_slice(j.name)]
        if j.parent == WORLD and _any(tau):
            turn = pose(run, j.child)[..., :3, :3]  # a free joint's torque and force are in the child's axes
            acting.append((j.child, np.einsum("...ij,...hj->...hi", turn, _halves(tau)).reshape(tau.shape)))
    for body, six in acting:
        lever = pose(run, body)[..., :3, 3] - run.center_of_mass
        total += np.concatenate([six[..., :3] + np.cross(lever, six[..., 3:]), six[..., 3:]], axis=-1)
    return total


def _halves(six: np.ndarray) -> np.ndarray:
    return six.reshape(*six.shape[:-1], 2, 3)


def _turning_inertia(run: Trajectory) -> float:
    """About the inertia [kg m²] against turning as a whole: of the first state, at the origins of the root bodies."""
    first = run.q[np.isfinite(run.q).all(axis=-1)][0]
    inertia = np.diag(run.robot.mass_matrix(first))
    roots = [run.model.v_slice(j.name).start for j in run.model.joints if j.parent == WORLD]
    return float(sum(inertia[k : k + 3].sum() for k in roots))


def _any(values: np.ndarray) -> bool:
    return bool(np.any(np.nan_to_num(values)))
