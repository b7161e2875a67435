"""Work and impulses of contacts from sample to sample.

A step records the mean force F of each point. Points that were closed before it push all the time, with a velocity u
that is linear in time: they do the work h F · (u⁻ + u⁺)/2, u⁻ and u⁺ at the samples before and after. What this misses
is of the order of the change of F, and of how the points turn with their bodies in the step.

Where a point closes in the step, all points give impulses f = h F at one moment, and f · (u + u⁺)/2 with u = u⁺ − W f,
the velocity without them. u is that of the end of the step; at the moment of the impact it was another one, by less
than u − u⁻ (the doubt).

u is relative to the surface of b. A surface that moves on its body, as of a conveyor, also does the work of the force
on it times its velocity, which the mechanism receives.

Where samples are farther apart than steps, only the last step before each is known: intervals in which a point may have
closed are not known (the doubt is infinite).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.model import Model
from spanloop.model.contacts import Contact
from spanloop.model.parts import WORLD
from spanloop.trajectory.contacts.contact_samples import ONE_STEP, geometry, in_axes, in_point, robots
from spanloop.trajectory.quantities import accelerations_under, over_samples, pose

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_SHORT = 1e-4  # of a step: what contacts do in a shorter part of it, whose force is not known, does not matter


@dataclass(frozen=True, eq=False)
class ContactWork:
    """What contacts do in the intervals between samples.

    work (..., n − 1, points) [J], doubt (..., n − 1, points) [J]; hits (..., n − 1, points): points that give an
    impulse in an interval in which one closes; known (..., n − 1): an interval is a step, or none can close in it.
    pushed (..., n − 1): whether a contact pushes in an interval.
    gain, gain_doubt (..., n − 1): energy that an impact adds, all points together, and how wrong it may be; 0 without.
    """

    work: np.ndarray
    doubt: np.ndarray
    hits: np.ndarray
    known: np.ndarray
    pushed: np.ndarray
    gain: np.ndarray
    gain_doubt: np.ndarray


def contact_work(run: Trajectory) -> ContactWork:
    """The work of all points of a run whose segments have the contacts of its model."""
    steps = _Steps(run)
    work, doubt = steps.while_closed()
    driven = steps.of_surfaces()
    gain, gain_doubt = np.zeros((2, *steps.known.shape))
    rows = np.any(steps.hits, axis=-1)
    if rows.any():
        each, miss, change = steps.at_once(rows)
        hits = steps.hits[rows]
        work[rows], doubt[rows] = np.where(hits, each, work[rows]), np.where(hits, miss, doubt[rows])
        gain[rows], gain_doubt[rows] = each.sum(axis=-1), change
    doubt[~steps.known] = np.inf
    return ContactWork(work + driven, doubt, steps.hits, steps.known, steps.pushed, gain, gain_doubt)


class _Steps:
    """Intervals between samples as steps: forces of their ends, velocities at both."""

    def __init__(self, run: Trajectory):
        self.run, self.found = run, run.contacts.samples
        self.h = np.diff(run.times)[:, None]
        self.before, self.after = self.found.rates[..., :-1, :, :], self.found.rates[..., 1:, :, :]
        force = self.found.local[..., 1:, :, :]
        lost = np.isnan(force).any(axis=(-2, -1)) & self.found.known[..., 1:]
        self.force = np.where(lost[..., None, None], 0.0, force)
        self.pushed = np.any(np.nan_to_num(self.force[..., 0]) > 0.0, axis=-1)
        self.known = (self.h[:, 0] <= ONE_STEP * run.step) & ~(lost & (self.h[:, 0] > _SHORT * run.step))
        self.known |= self._stays_clear()
        self.hits = self._hits() & self.known[..., None]

    def _hits(self) -> np.ndarray:
        p = self.found.points
        pushes = np.nan_to_num(self.force[..., 0]) > 0.0
        fast = (self.found.gap_rate[..., :-1, :] < -p.resting) & ~self._stays_closed()
        hard = p.stiffness == 0.0
        closes = (np.any(pushes & fast & hard, axis=-1, keepdims=True) | self._jams()) & (self.h > 0.0)
        hits: np.ndarray = pushes & hard & closes
        return hits

    def _stays_closed(self) -> np.ndarray:
        """Whether points (..., n − 1, points) were closed at the start.

        A rate of their gaps is that of bodies that turn in a step, of its order, and no
        impact. What rebounds is apart.
        """
        pushed = np.nan_to_num(self.found.normal_force[..., :-1, :]) > 0.0
        closed: np.ndarray = pushed & ~self.found.bounced[..., :-1, :]
        return closed & (self.h <= ONE_STEP * self.run.step)

    def _jams(self) -> np.ndarray:
        """Whether a contact jams in an interval (..., n − 1, 1): it stops by an impulse."""
        parts = [np.zeros((*s.q.shape[:-1], 3)) if (x := s.contact_checks) is None else x for s in self.run.segments]
        jams: np.ndarray = np.diff(np.concatenate(parts, axis=-2)[..., 2:], axis=-2) > 0.0
        return jams

    def _stays_clear(self) -> np.ndarray:
        """Whether no point can have closed in an interval: gaps are longer than twice the way at their speeds."""
        gap = np.nan_to_num(self.found.gap, nan=np.inf)  # of bodies that are not there
        speed = np.abs(self.found.gap_rate)
        most = 2.0 * self.h * np.maximum(speed[..., :-1, :], speed[..., 1:, :])
        clear: np.ndarray = (np.minimum(gap[..., :-1, :], gap[..., 1:, :]) > most).all(axis=-1)
        return clear

    def while_closed(self) -> tuple[np.ndarray, np.ndarray]:
        """Work of points that push all the time, and what it misses where their forces change."""
        mean = 0.5 * (self.before + self.after)
        last = self.found.local[..., :-1, :, :]
        begins = np.isnan(last)
        begins[..., 1:, :, :] |= self.hits[..., :-1, :, None]  # an impulse before it says nothing about it
        change = np.where(begins, 0.0, 0.5 * (last - self.force))
        turned = 0.5 * self.force * (self._carried() - self.after)
        misses = np.abs(np.sum(change * mean, axis=-1)) + np.abs(np.sum(turned, axis=-1))
        return self.h * np.sum(self.force * mean, axis=-1), self.h * misses

    def of_surfaces(self) -> np.ndarray:
        """Work of the forces at the velocities of surfaces that move on their bodies."""
        run, moving = self.run, np.zeros(self.found.force.shape)
        for number, contact in enumerate(run.model.contacts):
            if any(contact.surface_velocity):
                mine = self.found.points.owner == number
                velocity = pose(run, contact.b.at)[..., :3, :3] @ np.array(contact.surface_velocity)
                moving[..., mine, :] = velocity[..., None, :]
        across = in_point(self.found.axes, moving)[..., 1:]  # along the normal it moves nothing
        mean = 0.5 * (across[..., :-1, :, :] + across[..., 1:, :, :])
        work: np.ndarray = self.h * np.sum(self.force[..., 1:3] * mean, axis=-1)
        return work

    def _carried(self) -> np.ndarray:
        """Velocities after each interval of points where they were before it: those that push."""
        run, points = self.run, self.found.points
        out = self.after.copy()
        if self.pushed.any():
            there = geometry(run.robot, points, run.q[..., :-1, :][self.pushed], run.v[..., 1:, :][self.pushed])
            out[self.pushed] = in_axes(points, there.axes, there.slip, there.spin)
        return out

    def at_once(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Work (k, points) of impulses in some intervals, its doubt, and how the sum (k,) changes along the step."""
        run, where = self.run, np.zeros((*self.run.batch, len(self.run)), bool)
        where[..., 1:] = rows
        impulse = (self.h[..., None] * self.force)[rows]
        after, before = self.after[rows], self.before[rows]
        Wf = self._response(where, run.q[where], impulse)
        each = np.sum(impulse * (after - 0.5 * Wf), axis=-1)
        miss = np.sum(np.abs(impulse * (after - Wf - before)), axis=-1)
        start = np.roll(where, -1, axis=-1)  # the samples before them
        points = self.found.points
        begun = geometry(run.robot, points, run.q[start], run.v[where])
        there = in_axes(points, begun.axes, begun.slip, begun.spin)
        then = np.sum(impulse * (there - 0.5 * self._response(where, run.q[start], impulse)), axis=(-2, -1))
        return each, miss, np.abs(each.sum(axis=-1) - then)

    def _response(self, where: np.ndarray, q: np.ndarray, impulse: np.ndarray) -> np.ndarray:
        """W f (k, points, size) at states q (k, nq) of the samples `where`, with the loops that are closed there."""
        out = np.zeros(impulse.shape)
        for robot, own in robots(self.run, where):
            mine = own[where]
            out[mine] = _responses(robot, q[mine], impulse[mine])
        return out


def _responses(robot: Dynamics, q: np.ndarray, impulse: np.ndarray) -> np.ndarray:
    flat = impulse.reshape(len(impulse), -1)

    def changed(q: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.einsum("kij,kj->ki", robot.delassus(q), f)

    return over_samples("work of contacts", changed, q, flat).reshape(impulse.shape)


# ---- impulses on the whole mechanism


@dataclass(frozen=True, eq=False)
class Impulses:
    """[about the centre of mass; linear] impulses (..., n − 1, 6) of contacts with the world on all bodies together, in
    world axes [N m s, N s], and how wrong they may be; exchanged (..., 2): what all points exchange in the run."""

    parts: np.ndarray
    doubt: np.ndarray
    exchanged: np.ndarray


def impulses(run: Trajectory) -> Impulses:
    """What contacts with the world do to the momentum of a run."""
    found = run.contacts.samples
    model = run.model
    outside = np.array([_acts_outside(model, contact) for contact in model.contacts])[found.points.owner][:, None]
    h = np.diff(run.times)[:, None]
    force, torque = (np.sum(outside * x, axis=-2) for x in (found.force, found.torque))
    lever = found.point - run.center_of_mass[..., None, :]
    moment = np.sum(outside * np.cross(lever, found.force), axis=-2)
    after, change = moment[..., 1:, :], np.diff(np.nan_to_num(moment), axis=-2)
    before = np.sum(outside * np.cross(lever[..., :-1, :, :], found.force[..., 1:, :, :]), axis=-2)
    total = h * np.concatenate([after + torque[..., 1:, :], force[..., 1:, :]], axis=-1)
    known, hits = run.contacts.work.known, np.any(run.contacts.work.hits, axis=-1)
    hits[..., 1:] |= hits[..., :-1]  # an impulse is no change of a force
    change = np.where(hits[..., None], 0.0, 0.5 * np.abs(change))
    doubt = np.concatenate([h * (np.abs(after - before) + change), np.zeros_like(after)], axis=-1)
    doubt += displacement_changes(run)[..., 1:]
    sizes = np.linalg.norm(found.force[..., 1:, :, :], axis=-1)
    levers = sizes * np.linalg.norm(lever[..., 1:, :, :], axis=-1)
    exchanged = np.stack([np.nansum(h * x, axis=(-2, -1)) for x in (levers, sizes)], axis=-1)
    return Impulses(total, np.where(known[..., None], doubt, np.inf), exchanged)


def displacement_changes(run: Trajectory) -> np.ndarray:
    """Kinetic energy and momentum (..., n − 1, 7) that a step changes as it moves joints by half of what it adds to
    their rates, and by half of what contacts add: that much is uncertain where they push."""
    out = np.zeros((*run.batch, len(run) - 1, 7))
    pushed = run.contacts.work.pushed
    if not pushed.any() or any(x.driven for x in run.model.loops):
        return out
    h, after = np.diff(run.times)[:, None], np.zeros((*run.batch, len(run)), bool)
    after[..., 1:] = pushed
    added = np.zeros(run.v.shape)
    for robot, where in robots(run, after):
        forces = {name: six[where] for name, six in (run.forces or {}).items()}
        free = accelerations_under(robot, run.q[where], run.v[where], run.tau[where], forces)
        added[where] = np.nan_to_num(run.a[where] - free)
    for ways in (np.diff(run.v, axis=-2), h * added[..., 1:, :]):
        out[pushed] += _changes(run, run.q[after], run.v[after], (-0.5 * h * ways)[pushed])
    return out


def _changes(run: Trajectory, q: np.ndarray, v: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Sizes (k, 7) of what moving from q changes in kinetic energy and momentum; rates v of free bodies stay the
    same in the world."""
    there = over_samples("work of contacts", run.robot.integrate, q, moved)
    turned = v.copy()
    for j in run.model.joints:
        at, dof = run.model.q_slice(j.name), run.model.v_slice(j.name)
        if not j.kind.nv:
            continue
        turned[:, dof] = np.column_stack(j.kind.turned(tuple(q[:, at].T), tuple(v[:, dof].T), tuple(there[:, at].T)))
    energy, momentum = (
        over_samples("work of contacts", f, q, v) - over_samples("work of contacts", f, there, turned)
        for f in (run.robot.energy, run.robot.momentum)
    )
    return np.abs(np.concatenate([energy[:, :1], momentum], axis=-1))


def _acts_outside(model: Model, contact: Contact) -> float:
    """1 where the world pushes on a body, −1 where a body pushes on the world and is side b, 0 between bodies."""
    return float(contact.a.on(model)[0] != WORLD) - float(contact.b.on(model)[0] != WORLD)
