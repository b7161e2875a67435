"""The topologies of a run: its samples grouped by the model that holds for them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import UnsupportedError
from spanloop.model import Model
from spanloop.model.parts import WORLD, Inertia
from spanloop.trajectory.events import NO_EVENTS
from spanloop.trajectory.segment import Segment
from spanloop.trajectory.segment_models import robot_of, with_closed

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_MOST = 24  # models of one batch, each with kernels of its own


@dataclass(frozen=True, eq=False)
class Topology:
    """Samples of a run that share a model: where (..., n) they are, and their q, v, tau (k, size) and forces (k, 6)."""

    robot: Dynamics
    where: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    forces: dict[str, np.ndarray]
    absent: tuple[str, ...]

    @property
    def model(self) -> Model:
        """The model that holds for these samples."""
        return self.robot.model


def is_uniform(run: Trajectory) -> bool:
    """Whether the run's own model holds for all samples."""
    if any(s.model not in (None, run.model) or s.absent for s in run.segments):
        return False
    return not run.batch or run.events is NO_EVENTS or not (run.events.switches or run.events.bodies)


def has_same_joints(run: Trajectory) -> bool:
    """Whether the models of all segments have the same joints: then q, v and tau of segments can be joined."""
    joints = [[(j.name, j.kind.name, j.kind.nq) for j in m.joints] for m in {model_of(run, s) for s in run.segments}]
    return all(own == joints[0] for own in joints)


def model_of(run: Trajectory, segment: Segment) -> Model:
    """The model of a segment."""
    return run.model if segment.model is None else segment.model


def topologies(
    run: Trajectory, loops: bool = True, most: int | None = _MOST, loaded: bool | None = None
) -> list[Topology]:
    """The samples by model. loops: False where it does not matter which loops are closed.

    most: models of a batch. loaded: whether they have the forces that act; by default where loops matter.
    """
    groups: dict[tuple[Model, tuple[str, ...]], list[tuple[int, np.ndarray]]] = {}
    for number, s in enumerate(run.segments):
        for model, absent, where in _groups(run, s, loops):
            groups.setdefault((model, absent), []).append((number, where))
    if run.batch and most is not None and len(groups) > most:
        raise UnsupportedError(
            f"the runs of this batch have {len(groups)} different models, as loops close at frames that they capture; "
            "reactions are those of one run: run[0].reactions()"
        )
    starts = np.cumsum([0, *map(len, run.segments)])
    loaded = loops if loaded is None else loaded
    return [_topology(run, model, absent, members, starts, loaded) for (model, absent), members in groups.items()]


def _groups(run: Trajectory, s: Segment, loops: bool) -> Iterator[tuple[Model, tuple[str, ...], np.ndarray]]:
    """Models of a segment, bodies that are absent, and which samples (..., n) have them."""
    own, every = model_of(run, s), np.ones((*run.batch, len(s)), bool)
    events = run.events
    if not run.batch or events is NO_EVENTS or s.closed is not None:
        yield own if loops else without_mass(own, s.absent), s.absent, every
        return
    v = s.v.reshape(-1, *s.v.shape[-2:])
    q = s.q.reshape(-1, *s.q.shape[-2:])
    on = events.closed_at(s.times, v) if loops else np.zeros((*v.shape[:2], 0), bool)
    captured = events.captured_at(s.times, v) if loops else np.zeros((*v.shape[:2], 0))
    present = events.present_at(s.times, v)
    keys = np.concatenate([on, present, captured, np.zeros((*v.shape[:2], 1))], axis=-1)  # never without a column
    keys = keys.reshape(-1, keys.shape[-1])
    found, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    for k, row in enumerate(found):
        flags, here = row[: on.shape[-1]], row[on.shape[-1] : on.shape[-1] + present.shape[-1]]
        absent = events.absent_names(here)
        frames = row[on.shape[-1] + present.shape[-1] : -1]
        state = q.reshape(-1, q.shape[-1])[first[k]]
        if loops:
            model = with_closed(own, events, events.closed_names(flags), frames, state)
        else:
            model = without_mass(own, absent)
        yield model, absent, (number.reshape(-1) == k).reshape(every.shape)


def _topology(run: Trajectory, model: Model, absent: tuple[str, ...], members, starts, loaded: bool) -> Topology:
    where = np.zeros((*run.batch, len(run)), bool)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("q", "v", "tau")}
    bodies = {b.name for b in model.bodies}
    forces: dict[str, list[np.ndarray]] = {name: [] for name in run.acting if name in bodies} if loaded else {}
    for number, mine in members:
        span = slice(starts[number], starts[number + 1])
        where[..., span] = mine
        for name, rows in parts.items():
            rows.append(getattr(run.segments[number], name)[mine])
        for name, rows in forces.items():
            rows.append(run.acting[name][..., span, :][mine])
    q, v, tau = (np.concatenate(parts[name]) for name in ("q", "v", "tau"))
    loads = {name: np.concatenate(rows) for name, rows in forces.items()}
    return Topology(robot_of(model), where, q, v, tau, loads, absent)


def steady_runs(run: Trajectory, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, Trajectory]]:
    """Runs of a batch in which nothing changes, as batches (k,) of one model each; numbers: in C order."""
    e, whole = run.events, run.segments[0]
    assert e.begin_present is not None
    states = np.concatenate([e.begin_on, e.begin_present, e.begin_captured, np.zeros((e.runs, 1))], axis=1)[numbers]
    _, first, group = np.unique(states, axis=0, return_index=True, return_inverse=True)
    for g, k in enumerate(numbers[first]):
        mine = numbers[group.reshape(-1) == g]
        s = whole.mapped(lambda x, mine=mine: x.reshape(-1, *x.shape[-2:])[mine])
        closed, absent = e.closed_names(e.begin_on[k]), e.absent_names(e.begin_present[k])
        model = with_closed(run.model, e, closed, e.begin_captured[k], s.q[0, 0])
        forces = {name: six.reshape(-1, *six.shape[-2:])[mine] for name, six in (run.forces or {}).items()}
        own = run.parameters
        part = run.changed(
            model=model,
            segments=(replace(s, closed=closed, absent=absent),),
            outcomes=tuple(run.outcomes[i] for i in mine),
            forces=forces or None,
            ends=None,
            residual=None,
            parameters=None if own is None else own.reshape(-1, own.shape[-1])[mine],
            events=NO_EVENTS,
        )
        yield mine, part


def by_model(run: Trajectory) -> list[Trajectory]:
    """One run as several, each with all segments of one model."""
    groups: dict[tuple[Model, tuple[str, ...]], list[int]] = {}
    for number, s in enumerate(run.segments):
        groups.setdefault((model_of(run, s), s.absent), []).append(number)
    starts = np.cumsum([0, *map(len, run.segments)])
    out = []
    for (model, _), numbers in groups.items():
        rows = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in numbers])
        forces = {name: six[..., rows, :] for name, six in run.forces.items()} if run.forces else None
        segments = tuple(replace(run.segments[k], model=None) for k in numbers)
        out.append(run.changed(model=model, segments=segments, forces=forces, events=NO_EVENTS))
    return out


def joined(run: Trajectory, found: list[tuple[Topology, np.ndarray]], fill: float = np.nan) -> np.ndarray:
    """Values (k, *shape) of each topology at all samples, (..., n, *shape)."""
    shape = found[0][1].shape[1:]
    out = np.full((*run.batch, len(run), *shape), fill)
    for topology, values in found:
        out[topology.where] = values
    return out


@functools.lru_cache(maxsize=256)
def without_mass(model: Model, absent: tuple[str, ...]) -> Model:
    """The tree of a model, in which some bodies, with all that they carry, have no mass.

    Energy, momentum and centre of mass do not depend on loops.
    """
    if model.loops or model.couplings:
        model = replace(model, loops=(), couplings=())
    if not absent:
        return model
    gone = with_carried(model, absent)
    bodies = tuple(replace(b, inertia=Inertia()) if b.name in gone else b for b in model.bodies)
    joints = tuple(replace(j, armature=(), stiffness=()) if j.child in gone else j for j in model.joints)
    return replace(model, bodies=bodies, joints=joints)


def carries_mass(model: Model) -> bool:
    """Whether anything that can move has mass."""
    still = {WORLD}
    for j in model.joints:  # parents come first
        if j.parent in still and not j.kind.nv:
            still.add(j.child)
    return any(b.inertia.mass for b in model.bodies if b.name not in still)


def still_dofs(model: Model, absent: tuple[str, ...]) -> list[int]:
    """The degrees of freedom of bodies that are not there, with all that they carry."""
    gone = with_carried(model, absent)
    return [k for j in model.joints if j.child in gone for k in range(model.nv)[model.v_slice(j.name)]]


def with_carried(model: Model, absent: tuple[str, ...]) -> set[str]:
    """Bodies of a model that are absent, with all that they carry."""
    gone = {name for name in absent if name in model.body_number}
    for j in model.joints:  # parents come first
        if j.parent in gone:
            gone.add(j.child)
    return gone
