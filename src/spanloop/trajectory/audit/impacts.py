"""Impacts of a run: kinetic energy and momentum before and after each moment of its table, and one-sided closures.

Energies and momenta are computed here from the states of the table, with the mass matrix; what the table says that an
event took is compared with them. Bodies that appear or vanish bring and take energy and momentum along; they are booked
on their own.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spanloop.loops.closure_errors import mechanism_of
from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.trajectory.events import STOP, impulse_rows
from spanloop.trajectory.quantities import error_of, is_closed, over_samples, row_forces
from spanloop.trajectory.segment_models import robot_of
from spanloop.trajectory.topologies import has_same_joints, model_of, topologies, without_mass

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Impacts:
    """Moments of a run or batch: rows (k,) of the table in which they begin, kinetic energies before and after (k,) [J]
    without bodies that come or go, that of the change of velocity (k,), what the table says they took (k,), the energy
    that bodies bring (k,), and the change of momentum (k,) where bodies that float are alone in it, as a share of what
    their energy can carry."""

    rows: np.ndarray
    before: np.ndarray
    after: np.ndarray
    jump: np.ndarray
    said: np.ndarray
    brought: np.ndarray
    momentum: np.ndarray


def impacts(run: Trajectory) -> Impacts | None:
    """The moments of a run or batch; None without any."""
    groups: dict[tuple[Model, tuple[str, ...]], list[tuple[int, _Moment]]] = {}
    moments = list(_moments(run))
    for k, m in enumerate(moments):
        groups.setdefault((m.model, m.left_out), []).append((k, m))
    if not moments:
        return None
    before, after, jump, whole = np.zeros((4, len(moments)))
    for (model, left_out), members in groups.items():
        numbers = [k for k, _ in members]
        states = [m.states(run) for _, m in members]
        before[numbers], after[numbers], jump[numbers] = _kinetic(without_mass(model, left_out), states)
        every = _kinetic(without_mass(model, ()), states)
        whole[numbers] = every[1] - every[0]
    said = np.array([run.events.energy_lost[list(m.rows)].sum() for m in moments])
    floating = _Floating(run)
    momentum = np.array([floating.change_in(m) for m in moments])
    rows = np.array([m.rows[0] for m in moments])
    return Impacts(rows, before, after, jump, said, whole - (after - before), momentum)


class _Moment(NamedTuple):
    """A moment of the table: its rows, the model that holds there, and bodies that come, go or are not there."""

    rows: range
    model: Model
    left_out: tuple[str, ...]

    def states(self, run: Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        e, nq, nv = run.events, self.model.nq, self.model.nv
        return e.q[self.rows[-1], :nq], e.v_before[self.rows[0], :nv], e.v_after[self.rows[-1], :nv]


def _moments(run: Trajectory) -> Iterator[_Moment]:
    """All moments at which something changes but the model."""
    e = run.events
    assert e.begin_present is not None
    present, number = np.array(e.begin_present), -1
    begins = [s.times[0] for s in run.segments]
    for rows in e.moments():
        number = int(e.run[rows[0]])
        was = present[number].copy()
        for k in rows:
            e.update_present(present[number], k)
        out = e.absent_names(was & present[number])
        kinds = {str(e.kind[k]) for k in rows}
        if kinds != {"end"}:
            later = bisect_right(begins, e.time[rows[0]])
            own = model_of(run, run.segments[later - 1]) if later else run.model
            yield _Moment(rows, own, tuple(b for b in out if b in own.body_number))


def _kinetic(model: Model, states: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """½ vᵀ M v (3, k) of the velocities before, after, and of their change."""
    q, before, after = (np.array(x) for x in zip(*states, strict=True))
    mass = over_samples("impacts", robot_of(model).mass_matrix, q)
    v = np.stack([before, after, after - before])
    found: np.ndarray = 0.5 * np.einsum("ski,kij,skj->sk", v, mass, v)
    return found


# ---- momentum of bodies that float


class _Floating:
    """Momentum of the bodies that float, in the moments of a run."""

    def __init__(self, run: Trajectory):
        self.run = run
        self.bodies = functools.cache(self._bodies)

    def change_in(self, moment: _Moment) -> float:
        """The change of their momentum, over what they can carry; NaN where others push them."""
        e, own = self.run.events, self.bodies(moment.model)
        pushing = {e.rows[r].owner for r in np.flatnonzero(e.impulse_in(moment.rows))}
        if e.contact_impulse is not None and np.nan_to_num(e.contact_impulse[list(moment.rows)]).any():
            return np.nan
        if not pushing or any(own.joined.get(name, own.held) & own.held for name in pushing):
            return np.nan
        free = without_mass(moment.model, tuple(dict.fromkeys((*moment.left_out, *own.roots))))
        if not free.mass:
            return np.nan
        q, before, after = moment.states(self.run)
        robot = robot_of(free)
        change = robot.momentum(q, after) - robot.momentum(q, before)
        energy = max(float(robot.energy(q, v)[0]) for v in (before, after))
        reach = max(mechanism_of(free).length, 1e-12)
        sizes = np.linalg.norm(change[:3]) / reach + np.linalg.norm(change[3:])
        return float(sizes / np.sqrt(2.0 * energy * free.mass)) if energy else 0.0

    def _bodies(self, model: Model) -> _Bodies:
        held = _held_bodies(model)
        roots = tuple(j.child for j in model.joints if j.parent == WORLD and j.child in held)
        return _Bodies(held, roots, _joined_bodies((self.run.model, model)))


class _Bodies(NamedTuple):
    """Bodies of a model that do not float, those of them on the world, and between which bodies closures act."""

    held: set[str]
    roots: tuple[str, ...]
    joined: dict[str, set[str]]


def _joined_bodies(models: Iterable[Model]) -> dict[str, set[str]]:
    """The bodies between which each loop, coupling and stop of these models acts."""
    out: dict[str, set[str]] = {}
    for model in models:
        frames = {f.name: f.body for f in model.frames}
        out |= {x.name: {frames.get(x.a, x.a), frames.get(x.b, x.b)} for x in model.loops}
        out |= {j.name + STOP: {j.child} for j in model.joints}
        out |= {c.name: {model.joint(name).child for name in c.joints} for c in model.couplings}
    return out


def _held_bodies(model: Model) -> set[str]:
    """The world, and bodies of trees that do not float."""
    held = {WORLD}
    for j in model.joints:
        loose = j.parent == WORLD and j.kind.name == "free" and not (j.driven or any(j.damping) or any(j.stiffness))
        if j.parent in held and not loose:
            held.add(j.child)
    return held


# ---- closures that push and never pull


@dataclass(frozen=True)
class OneSided:
    """The worst of a one-sided closure: smallest gap [m or rad], pull and largest force [N or N m] at samples; the
    largest impulse that pulls, and the impulse that is at stake [N s or N m s], of events."""

    name: str
    gap: float
    unit: str
    length: float
    pull: float
    force: float
    impulse_pull: float
    impulse: float


def one_sided(run: Trajectory) -> list[OneSided]:
    """The gaps and forces of the run's one-sided closures."""
    out = []
    for name, row, sign in run.events.one_sided:
        closed = is_closed(run, name)
        gap = sign * error_of(run, name)[..., row]
        known = _is_unique(run, name, row)
        force = sign * row_forces(run, name)[..., row][closed] if known else np.zeros(0)
        number = run.events.rows_named(name)[row]
        unit = run.events.rows[number].unit
        length = mechanism_of(run.model).row_lengths[number]
        open_gaps = gap[~closed & np.isfinite(gap)]
        alike = [k for k, r in enumerate(run.events.rows) if r.unit == unit]
        impulse_pull = _pull(sign * run.events.impulse[:, number]) if known else 0.0
        at_stake = _largest(run.events.impulse[:, alike]) + _largest(force) * float(np.nan_to_num(run.step))
        gap_unit = {"N s": "m", "N m s": "rad"}[unit]
        smallest = float(open_gaps.min(initial=0.0))
        out.append(OneSided(name, smallest, gap_unit, length, _pull(force), _largest(force), impulse_pull, at_stake))
    return out


def stops(run: Trajectory) -> list[OneSided]:
    """The impulses of stops at the limits of joints; that joints stay within them is judged elsewhere."""
    out: list[OneSided] = []
    events = run.events
    if not has_same_joints(run):
        return out
    for j in run.model.joints:
        name = j.name + STOP
        if name not in events.switches or j.lower == j.upper:
            continue
        (number,) = events.rows_named(name)
        q, unit = events.q[:, run.model.q_slice(j.name).start], events.rows[number].unit
        low, high = (bound if x is None else x[0] for x, bound in ((j.lower, -np.inf), (j.upper, np.inf)))
        pushes = np.where(q - low < high - q, 1.0, -1.0) * events.impulse[:, number]
        gap_unit = {"N s": "m", "N m s": "rad"}[unit]
        out.append(OneSided(name, 0.0, gap_unit, 1.0, 0.0, 0.0, _pull(pushes), _largest(pushes)))
    return out


def _largest(values: np.ndarray) -> float:
    return float(np.nanmax(np.abs(values), initial=0.0))


def _pull(values: np.ndarray) -> float:
    """The largest of those that pull, 0 if all push."""
    return max(0.0, -float(np.nanmin(values, initial=0.0)))


def _is_unique(run: Trajectory, name: str, row: int) -> bool:
    """Whether the force of a closure's row is the only possible one, in the first state of each topology."""
    for t in topologies(run):
        mine = [k for k, r in enumerate(impulse_rows(t.model)) if r.owner == name]
        known = np.flatnonzero(np.isfinite(t.q).all(axis=1))
        if mine and len(known):
            k = known[0]
            if not t.robot.solve(t.q[k], t.v[k], t.tau[k]).unique_rows[mine[row]]:
                return False
    return True
