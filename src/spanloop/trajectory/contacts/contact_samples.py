"""Contacts at the samples of a run: geometry, forces along the axes of each point, and wrenches on bodies.

| symbol | shape | meaning | axes |
|---|---|---|---|
| gap | (..., n, points) | distance of the surfaces, negative where they overlap [m] | |
| axes | (..., n, points, 3, 3) | rows: normal from b to a, and two tangents | world |
| slip | (..., n, points, 3) | velocity of a relative to the surface of b [m/s] | world |
| gap_rate | (..., n, points) | its part along the normal [m/s] | |
| spin | (..., n, points, 3) | angular velocity of a relative to b [rad/s] | world |
| bounced | (..., n, points) | whether it rebounds in the step that ends at the sample | |
| local | (..., n, points, 3 or 6) | force on a, and torque where there is torsion or rolling [N, N m] | of the point |

Forces are means over the step that ends at a sample; what they do at the sample is seen in the axes there. A point of a
body that is not there (sl.events.Appear, Vanish) has no gap: NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, StateWarning
from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.trajectory.quantities import over_samples, pose
from spanloop.trajectory.topologies import has_same_joints, is_uniform, model_of, topologies, with_carried

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

TOUCHES = 1e-9  # m: a start with a smaller gap touches
ONE_STEP = 1.0 + 1e-6  # of a step: an interval that is no longer is one
_WIDTH = 20  # numbers of a point: gap, its rate, position, axes, slip, spin


@dataclass(frozen=True, eq=False)
class Points:
    """The candidate points of a model's contacts, in order.

    owner (points,): number of the contact of each. size: numbers of a point's force, 3, or 6 with torques.
    friction, restitution, torsion, rolling, resting (points,): of their contacts; stiffness, damping (points,): zero of
    hard ones. friction and restitution are (..., 1, points) where the runs of a batch differ in them.
    """

    names: tuple[str, ...]
    contacts: tuple[str, ...]
    owner: np.ndarray
    size: int
    friction: np.ndarray
    restitution: np.ndarray
    torsion: np.ndarray
    rolling: np.ndarray
    resting: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray

    @staticmethod
    def of_run(run: Trajectory) -> Points:
        """The points of a run's model, with the friction and restitution of each run."""
        found = Points.of(run.model)
        if run.surfaces is None:
            return found
        friction, restitution = (run.surfaces[..., None, found.owner, k] for k in (0, 1))
        return replace(found, friction=friction, restitution=restitution)

    @staticmethod
    def of(model: Model) -> Points:
        """The points of a model."""
        contacts = model.contacts
        owner = np.array([k for k, c in enumerate(contacts) for _ in range(c.n_points)], int)

        def each(name: str) -> np.ndarray:
            return np.array([float(getattr(contacts[k], name) or 0.0) for k in owner])

        return Points(
            tuple(name for c in contacts for name in c.point_names),
            tuple(c.name for c in contacts),
            owner,
            6 if any(c.has_torques for c in contacts) else 3,
            *map(each, ("friction", "restitution", "torsion", "rolling", "resting", "stiffness", "damping")),
        )

    def __len__(self) -> int:
        return len(self.names)

    def chosen(self, numbers: np.ndarray) -> Points:
        """Some of the points."""
        arrays = {f.name: x[..., numbers] for f in fields(self) if isinstance(x := getattr(self, f.name), np.ndarray)}
        own: dict[str, Any] = {**arrays, "names": tuple(self.names[k] for k in numbers)}
        return replace(self, **own)


@dataclass(frozen=True, eq=False)
class ContactSamples:
    """Contacts of one model at samples; see the table above."""

    points: Points
    gap: np.ndarray
    point: np.ndarray
    axes: np.ndarray
    gap_rate: np.ndarray
    slip: np.ndarray
    spin: np.ndarray
    local: np.ndarray
    bounced: np.ndarray

    @cached_property
    def force(self) -> np.ndarray:
        """Forces on a (..., n, points, 3) in world axes [N]."""
        return in_world(self.axes, self.local[..., :3])

    @cached_property
    def torque(self) -> np.ndarray:
        """Torques on a (..., n, points, 3) by torsional and rolling friction, in world axes [N m]."""
        if self.points.size == 3:
            return np.zeros_like(self.force)
        return in_world(self.axes, self.local[..., 3:])

    @cached_property
    def normal_force(self) -> np.ndarray:
        """Forces along the normal (..., n, points) [N]."""
        return self.local[..., 0]

    @cached_property
    def tangential(self) -> np.ndarray:
        """The part of the slip in the tangent plane (..., n, points, 3), world axes [m/s]."""
        return self.slip - self.gap_rate[..., None] * self.axes[..., 0, :]

    @cached_property
    def rates(self) -> np.ndarray:
        """Velocities of a on b along the axes of the points (..., n, points, size) [m/s, rad/s]."""
        return in_axes(self.points, self.axes, self.slip, self.spin)

    def chosen(self, numbers: np.ndarray) -> ContactSamples:
        """Some of the points."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "points"}
        axis = len(self.gap.shape) - 1
        return ContactSamples(self.points.chosen(numbers), **{n: x.take(numbers, axis) for n, x in arrays.items()})

    @property
    def known(self) -> np.ndarray:
        """Whether a sample (..., n) has numbers: it is not after its run's end."""
        return np.isfinite(self.point).all(axis=(-2, -1))


def in_world(axes: np.ndarray, local: np.ndarray) -> np.ndarray:
    """Components (..., 3) along rows of axes (..., 3, 3), as vectors in the axes in which these rows are."""
    return np.einsum("...i,...ij->...j", local, axes)


class Geometry(NamedTuple):
    """Points at states; see the table above."""

    gap: np.ndarray
    point: np.ndarray
    axes: np.ndarray
    gap_rate: np.ndarray
    slip: np.ndarray
    spin: np.ndarray


def in_axes(points: Points, axes: np.ndarray, slip: np.ndarray, spin: np.ndarray) -> np.ndarray:
    """Velocities (..., points, size) along the axes of the points."""
    linear = in_point(axes, slip)
    return linear if points.size == 3 else np.concatenate([linear, in_point(axes, spin)], axis=-1)


def in_point(axes: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Components (..., 3) of a vector (..., 3) along rows of axes (..., 3, 3)."""
    return np.einsum("...ij,...j->...i", axes, vector)


def contact_samples(run: Trajectory) -> ContactSamples:
    """The contacts of a run whose segments have the contacts of its model."""
    if run.parameters is not None:
        raise InputError(
            "contacts: the runs of this batch have parameters of their own, and with them masses and lengths; contacts "
            "are those of one run: run[0].contacts"
        )
    points = Points.of_run(run)
    found = geometry(run.robot, points, run.q, run.v)
    absent = _absent(run, points)
    size = len(points), points.size
    local = np.concatenate([_local(s.contact_forces, (*s.q.shape[:-1], *size)) for s in run.segments], axis=-3)
    local = _with_start(run, points, found, absent, local)
    gap = np.where(absent, np.nan, found.gap) if absent.any() else found.gap
    return ContactSamples(points, gap, *found[1:], local, _bounced(run, points, found.gap_rate, local))


def _bounced(run: Trajectory, points: Points, gap_rate: np.ndarray, local: np.ndarray) -> np.ndarray:
    """Whether points (..., n, points) come to the surface, push and leave it in one step, faster than their `resting`.

    Where samples are several steps apart, how they came is not known.
    """
    came = np.ones(gap_rate.shape, bool)
    is_step = np.diff(run.times)[:, None] <= ONE_STEP * run.step
    came[..., 1:, :] = (gap_rate[..., :-1, :] < 0.0) | ~is_step
    bounced: np.ndarray = (points.restitution > 0.0) & (local[..., 0] > 0.0) & came & (gap_rate > points.resting)
    return bounced


def _absent(run: Trajectory, points: Points) -> np.ndarray:
    """Whether points (..., n, points) are of bodies that are not there."""
    out = np.zeros((*run.batch, len(run), len(points)), bool)
    if is_uniform(run) or not len(points):
        return out
    for t in topologies(run, most=None, loaded=False):
        gone = with_carried(run.model, t.absent)
        if gone:
            out[t.where] = np.array([any(s.on(run.model)[0] in gone for s in c.sides) for c in run.model.contacts])[
                points.owner
            ]
    return out


def number_type(run: Trajectory) -> str:
    """ "float32" where a part of the run was computed in it, else "float64"."""
    coarse = any(settings.get("dtype") == "float32" for settings in (*run.earlier, run.settings))
    return "float32" if coarse else "float64"


def is_alike(run: Trajectory) -> bool:
    """Whether all segments have the joints and contacts of the run's model."""
    return has_same_joints(run) and all(model_of(run, s).contacts == run.model.contacts for s in run.segments)


def geometry(robot: Dynamics, points: Points, q: np.ndarray, v: np.ndarray) -> Geometry:
    """gap, point, axes, gap_rate, slip and spin at states q (..., n, nq), v (..., n, nv); shapes as in the table."""

    def rows(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        found = robot.contact_geometry(q, v)
        assert found.gap_rate is not None
        assert found.slip is not None
        assert found.spin is not None
        axes, scalars = found.axes.reshape(*found.gap.shape, 9), np.stack([found.gap, found.gap_rate], axis=-1)
        return np.concatenate([scalars, found.point, axes, found.slip, found.spin], axis=-1)

    found = over_samples("contacts", rows, q, v) if len(points) else np.zeros((*q.shape[:-1], 0, _WIDTH))
    point, axes, slip, spin = np.split(found[..., 2:], (3, 12, 15), axis=-1)
    return Geometry(found[..., 0], point, axes.reshape(*axes.shape[:-1], 3, 3), found[..., 1], slip, spin)


def robots(run: Trajectory, which: np.ndarray) -> Iterator[tuple[Dynamics, np.ndarray]]:
    """The kernels of the loops that are closed, and at which of some samples (..., n) they are."""
    if is_uniform(run):
        yield run.robot, which
        return
    for t in topologies(run, most=None, loaded=False):
        if (t.where & which).any():
            yield t.robot, t.where & which


def _local(forces: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """Recorded forces by point; zero where contacts are ignored."""
    return np.zeros(shape) if forces is None else np.asarray(forces, float).reshape(shape)


def _with_start(run: Trajectory, points: Points, found: Geometry, absent: np.ndarray, local: np.ndarray) -> np.ndarray:
    """Forces by point, with those of samples that no step leads to: nothing where nothing touches.

    Not known are those of compliant contacts, where runs have a friction of their own, and where a body touches another
    that is not there.
    """
    asked = np.isnan(local).any(axis=(-2, -1)) & np.isfinite(found.gap).all(axis=-1)
    near = found.gap <= TOUCHES
    apart = asked & ~(near & ~absent).any(axis=-1)
    if not asked.any():
        return local
    out = local.copy()
    out[apart] = 0.0
    rest = asked & ~apart & ~(near & absent).any(axis=-1)
    if rest.any() and run.surfaces is None and not points.stiffness.any():
        for robot, where in robots(run, rest):
            out[where] = _solved(run, robot, where, found.axes[where])
    return out


def _solved(run: Trajectory, robot: Dynamics, which: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Forces by point (k, points, size) of robot.contact_solution at some samples (..., n); NaN without an answer."""
    forces = {name: six[which] for name, six in (run.forces or {}).items()} or None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StateWarning)
        found = robot.contact_solution(run.q[which], run.v[which], run.tau[which], forces=forces)
    local = in_point(axes, found.force)
    return local if Points.of(run.model).size == 3 else np.concatenate([local, in_point(axes, found.torque)], axis=-1)


# ---- forces of contacts on bodies


def contact_wrenches(run: Trajectory) -> dict[str, np.ndarray]:
    """[torque; force] (..., n, 6) of all contacts on each body at its origin, in world axes."""
    if not any(s.contact_forces is not None for s in run.segments):
        return {}
    if is_alike(run):
        return _wrenches(run, run.contacts.samples)
    parts = [contact_wrenches(piece) for piece in run.pieces]
    names = dict.fromkeys(name for part in parts for name in part)
    none = [np.zeros((*run.batch, len(piece), 6)) for piece in run.pieces]
    return {
        name: np.concatenate([part.get(name, x) for part, x in zip(parts, none, strict=True)], axis=-2)
        for name in names
    }


def _wrenches(run: Trajectory, found: ContactSamples) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    for number, contact in enumerate(run.model.contacts):
        mine = np.flatnonzero(found.points.owner == number)
        force, torque, point = found.force[..., mine, :], found.torque[..., mine, :], found.point[..., mine, :]
        for side, sign in ((contact.a, 1.0), (contact.b, -1.0)):
            body, _ = side.on(run.model)
            if body == WORLD:
                continue
            lever = point - pose(run, body)[..., None, :3, 3]
            six = np.concatenate([torque + np.cross(lever, force), force], axis=-1).sum(axis=-2)
            out[body] = out.get(body, 0.0) + sign * six
    return out
