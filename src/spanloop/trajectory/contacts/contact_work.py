"""Work and impulses of contacts from sample to sample.

A step records the mean force F of each point. Points that were closed before it push all the time, with a velocity u
that is linear in time: they do the work h F · (u⁻ + u⁺)/2, u⁻ and u⁺ at the samples before and after. A point that
closes in the step gives an impulse f = h F at one moment, and f · (u + u⁺)/2 with u = u⁺ − W f, the velocity without
it. u is that of the end of the step; at the moment of the impact it was another one, by less than u − u⁻ (the doubt).

Where samples are farther apart than steps, only the last step before each is known: intervals in which a point may have
closed are not known (the doubt is infinite).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.model.parts import WORLD
from spanloop.trajectory.contacts.contact_samples import ContactSamples, geometry, in_point
from spanloop.trajectory.quantities import over_samples
from spanloop.trajectory.topologies import is_uniform, topologies

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_WHOLE = 1.0 + 1e-6  # of a step: an interval that is no longer is one


@dataclass(frozen=True, eq=False)
class ContactWork:
    """What contacts do in the intervals between samples.

    work (..., n − 1, points) [J], doubt (..., n − 1, points) [J]; hits (..., n − 1, points): points that close in an
    interval, with an impulse; known (..., n − 1): an interval is a step, or no point can have closed in it.
    gain, gain_doubt (..., n − 1): energy that an impact adds, all points together, and how wrong it may be; 0 without.
    """

    work: np.ndarray
    doubt: np.ndarray
    hits: np.ndarray
    known: np.ndarray
    gain: np.ndarray
    gain_doubt: np.ndarray


def contact_work(run: Trajectory) -> ContactWork:
    """The work of all points of a run whose segments have the contacts of its model."""
    steps = _Steps(run)
    work, doubt = steps.while_closed()
    gain, gain_doubt = np.zeros((2, *steps.known.shape))
    rows = steps.hits.any(axis=-1)
    if rows.any():
        each, miss, change = steps.at_once(rows)
        hits = steps.hits[rows]
        work[rows], doubt[rows] = np.where(hits, each, work[rows]), np.where(hits, miss, doubt[rows])
        gain[rows], gain_doubt[rows] = each.sum(axis=-1), change
    doubt[~steps.known] = np.inf
    return ContactWork(work, doubt, steps.hits, steps.known, gain, gain_doubt)


class _Steps:
    """Intervals between samples as steps: forces of their ends, velocities at both."""

    def __init__(self, run: Trajectory):
        self.run, self.found = run, run.contacts.samples
        self.h = np.diff(run.times)[:, None]
        found = self.found
        self.before, self.after = velocities(run, found, slice(None, -1)), velocities(run, found, slice(1, None))
        self.force = found.local[..., 1:, :, :]
        self.hits = self._hits()
        self.known = (self.h[:, 0] <= _WHOLE * run.step) | self._stays_clear()

    def _hits(self) -> np.ndarray:
        p = self.found.points
        pushes = np.nan_to_num(self.force[..., 0]) > 0.0
        fast = self.found.gap_rate[..., :-1, :] < -p.resting
        hits: np.ndarray = pushes & fast & (p.stiffness == 0.0)
        return hits

    def _stays_clear(self) -> np.ndarray:
        """Whether no point can have closed in an interval: gaps are longer than twice the way at their speeds."""
        gap, speed = self.found.gap, np.abs(self.found.gap_rate)
        most = 2.0 * self.h * np.maximum(speed[..., :-1, :], speed[..., 1:, :])
        clear: np.ndarray = (np.minimum(gap[..., :-1, :], gap[..., 1:, :]) > most).all(axis=-1)
        return clear

    def while_closed(self) -> tuple[np.ndarray, np.ndarray]:
        """Work of points that push all the time, and what it misses where their forces change."""
        mean = 0.5 * (self.before + self.after)
        last = self.found.local[..., :-1, :, :]
        change = np.where(np.isnan(last), 0.0, 0.5 * (last - self.force))
        work = self.h * np.sum(self.force * mean, axis=-1)
        return work, self.h * np.abs(np.sum(change * mean, axis=-1))

    def at_once(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Work (k, points) of impulses in some intervals, its doubt, and how the sum (k,) changes along the step."""
        run, where = self.run, np.zeros((*self.run.batch, len(self.run)), bool)
        where[..., 1:] = rows
        impulse = (self.h[..., None] * self.force)[rows]
        after, before = self.after[rows], self.before[rows]
        Wf = self._response(where, run.q[where], impulse)
        each = np.sum(impulse * (after - 0.5 * Wf), axis=-1)
        miss = np.abs(np.sum(impulse * (after - Wf - before), axis=-1))
        start = np.roll(where, -1, axis=-1)  # the samples before them
        there = local_velocities(run.robot, self.found, run.q[start], run.v[where])
        then = np.sum(impulse * (there - 0.5 * self._response(where, run.q[start], impulse)), axis=(-2, -1))
        return each, miss, np.abs(each.sum(axis=-1) - then)

    def _response(self, where: np.ndarray, q: np.ndarray, impulse: np.ndarray) -> np.ndarray:
        """W f (k, points, size) at states q (k, nq) of the samples `where`, with the loops that are closed there."""
        out = np.zeros(impulse.shape)
        if is_uniform(self.run):
            return _responses(self.run.robot, q, impulse)
        for t in topologies(self.run, most=None):
            mine = t.where[where]
            if mine.any():
                out[mine] = _responses(t.robot, q[mine], impulse[mine])
        return out


def _responses(robot: Dynamics, q: np.ndarray, impulse: np.ndarray) -> np.ndarray:
    flat = impulse.reshape(len(impulse), -1)

    def changed(q: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.einsum("kij,kj->ki", robot.delassus(q), f)

    return over_samples("work of contacts", changed, q, flat).reshape(impulse.shape)


def velocities(run: Trajectory, found: ContactSamples, which: slice) -> np.ndarray:
    """Velocities (..., k, points, size) of a on b along the axes of the points, at some samples."""
    linear = in_point(found.axes, found.velocity)
    if found.points.size == 3:
        return linear[..., which, :, :]
    spin = in_point(found.axes, _spins(run.robot, found, run.q, run.v))
    return np.concatenate([linear, spin], axis=-1)[..., which, :, :]


def local_velocities(robot: Dynamics, found: ContactSamples, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same at states q (k, nq), v (k, nv)."""
    _, _, axes, rate, slip = geometry(robot, found.points, q, v)
    linear = np.concatenate([rate[..., None], in_point(axes, slip)[..., 1:]], axis=-1)
    if found.points.size == 3:
        return linear
    return np.concatenate([linear, in_point(axes, _spins(robot, found, q, v))], axis=-1)


def _spins(robot: Dynamics, found: ContactSamples, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Angular velocities (..., points, 3) of a relative to b, in world axes [rad/s]."""
    out = np.zeros((*q.shape[:-1], len(found.points), 3))
    for number, contact in enumerate(robot.model.contacts):
        mine = found.points.owner == number
        for side, sign in ((contact.a, 1.0), (contact.b, -1.0)):
            body, _ = side.on(robot.model)
            if body != WORLD:
                turning = over_samples("work of contacts", lambda q, v, b=body: _turning(robot, b, q, v), q, v)
                out[..., mine, :] += sign * turning[..., None, :]
    return out


def _turning(robot: Dynamics, body: str, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    turning: np.ndarray = np.einsum("...rk,...k->...r", robot.jacobian(q, body)[..., :3, :], v)
    return turning


# ---- impulses on the whole mechanism


def impulses(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """[about the centre of mass; linear] impulse (..., n − 1, 6) of contacts with the world on all bodies together, in
    world axes [N m s, N s], and how wrong it may be."""
    found = run.contacts.samples
    model = run.model
    outside = np.array([_acts_outside(model, contact) for contact in model.contacts])[found.points.owner][:, None]
    h = np.diff(run.times)[:, None]
    force, torque = (np.sum(outside * x, axis=-2) for x in (found.force, found.torque))
    lever = found.point - run.center_of_mass[..., None, :]
    after = np.sum(outside * np.cross(lever, found.force), axis=-2)[..., 1:, :]
    before = np.sum(outside * np.cross(lever[..., :-1, :, :], found.force[..., 1:, :, :]), axis=-2)
    total = h * np.concatenate([after + torque[..., 1:, :], force[..., 1:, :]], axis=-1)
    doubt = np.concatenate([h * np.abs(after - before), np.zeros_like(after)], axis=-1)
    known = run.contacts.work.known
    return total, np.where(known[..., None], doubt, np.inf)


def _acts_outside(model, contact) -> float:
    """1 where the world pushes on a body, −1 where a body pushes on the world and is side b, 0 between bodies."""
    return float(contact.a.on(model)[0] != WORLD) - float(contact.b.on(model)[0] != WORLD)
