"""The MovingScene of a run: its scene, the poses of all samples, and what is there, closed or broken in each segment.

A run whose loops attach and release, whose joints lean on stops and whose bodies come and go looks different from
segment to segment. All pictures of runs take this from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spanloop.model import Model
from spanloop.model.parts import Loop, Placement
from spanloop.trajectory.events import STOP, EventTable
from spanloop.trajectory.segment_models import robot_of
from spanloop.trajectory.topologies import has_same_joints, model_of, with_carried
from spanloop.view import palette
from spanloop.view.beams.segments import bent_bodies, surface_coordinates
from spanloop.view.beams.surfaces import with_strain_colors
from spanloop.view.contact_shapes import SceneSurface
from spanloop.view.scene import Scene, SceneBody, SceneClosure, extent_points, outermost, poses, scene
from spanloop.view.surface_patches import patches
from spanloop.view.window import next_known

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory


@dataclass(frozen=True)
class SceneEvent:
    """An event of a run, for lists and marks: its time [s], kind and name, the size of its impulse in words, the energy
    lost [J], and where it happened: a placement on `bodies[body]`; body is None if it has no place."""

    time: float
    kind: str
    name: str
    impulse: str
    energy_lost: float
    body: int | None
    placement: Placement

    @property
    def words(self) -> str:
        """Kind and name."""
        return f"{self.kind} {self.name}"

    @property
    def color(self) -> str:
        """The colour of its kind."""
        return palette.EVENTS.get(self.kind, palette.GROUND)


@dataclass(frozen=True)
class SceneHold:
    """A stop or a switchable coupling: its name, its joint (number in `joints`), and which of both it is."""

    name: str
    joint: int
    is_stop: bool


@dataclass(frozen=True, eq=False)
class MovingScene:
    """A run over time. poses (n, n_bodies + 1, 4, 4): of the scene's bodies at each sample, held where one is absent.

    segments (n,): the segment of each sample. For each segment: present (s, n_bodies + 1), closed (s, n_closures),
    broken (s, n_closures): grasps that have broken and do not hold again, held (s, n_holds): stops that are touched and
    couplings that are closed.
    A loop that holds at a frame that it has captured is a closure of its own, of the same name. bending: for each
    surface that bends, by its number in `bodies`, the coordinates (n, modes) of its modes; 0 while it is absent.
    """

    scene: Scene
    poses: np.ndarray
    segments: np.ndarray
    present: np.ndarray
    closed: np.ndarray
    broken: np.ndarray
    holds: tuple[SceneHold, ...]
    held: np.ndarray
    events: tuple[SceneEvent, ...]
    bending: dict[int, np.ndarray]

    def corners(self) -> np.ndarray:
        """Corners (n, points, 3) of the boxes around all shapes [m], and the outermost of surfaces that bend; NaN while
        a body is absent."""
        at = np.where(self.present[self.segments][..., None, None], self.poses, np.nan)
        return np.concatenate(
            [
                extent_points(self.scene, at),
                *(outermost(self.scene.bodies[k], at[:, k], eta) for k, eta in self.bending.items()),
            ],
            axis=1,
        )

    @cached_property
    def changes(self) -> bool:
        """Whether the picture differs from segment to segment by more than poses."""
        kept = (self.present, self.closed, ~self.broken, ~self.held)
        return not all(x.all() for x in kept)


def moving_scene(run: Trajectory, folder: str | Path | None = None) -> MovingScene:
    """The scene of one run over time. folder: where mesh files are whose path the model does not have."""
    models = [model_of(run, s) for s in run.segments]
    segments = np.repeat(np.arange(len(models)), [len(s) for s in run.segments])
    if has_same_joints(run):
        seen = with_strain_colors(scene(run.model, run.q[0], folder), run, bent_bodies(run.model))
        at, bending = poses(run.robot, run.q), surface_coordinates(run.model, run.q)
        numbers = [run.model.body_number] * len(models)
        there = np.ones((len(models), len(seen.bodies)), bool)
    else:
        seen, numbers, there, places = _side_by_side(run, models, folder)
        at = _held(run, seen, places, segments)
        bending = _bending(run, seen, places, segments)
    for k, s in enumerate(run.segments):
        there[k, [numbers[k][name] for name in with_carried(models[k], s.absent)]] = False
    there = there[:, [k if b.segment_of is None else b.segment_of for k, b in enumerate(seen.bodies)]]
    seen, closed = _with_captured(seen, models, numbers)
    seen = replace(seen, patches=patches(seen.surfaces, at, seen.size))
    events = tuple(_events(run, seen, at, closed, numbers))
    switches, holds = holds_of(run, seen)
    held = np.array([[name in (s.closed or ()) for name in switches] for s in run.segments], bool)
    held = held.reshape(len(models), len(holds))
    broken = _broken(run, seen, closed)
    return MovingScene(seen, at, segments, there, closed, broken, holds, held, events, bending)


# ---- segments with different joints


def _side_by_side(
    run: Trajectory, models: list[Model], folder: str | Path | None
) -> tuple[Scene, list[dict[str, int]], np.ndarray, list[list[int]]]:
    """The scenes of all models as one; for each segment of the run numbers of bodies by name, which bodies it has, and
    the number of each body of its own scene."""
    distinct = list(dict.fromkeys(models))
    firsts = [run.segments[models.index(m)].q[0] for m in distinct]
    scenes = [scene(m, q, folder) for m, q in zip(distinct, firsts, strict=True)]
    offsets = np.cumsum([0, *(len(s.bodies) - 1 for s in scenes)]).tolist()

    def moved(number: int, by: int) -> int:
        return number + by if number else 0

    ground = scenes[0].bodies[0]
    shapes = tuple({repr(x): x for s in scenes for x in s.bodies[0].shapes}.values())
    bodies: list[SceneBody] = [replace(ground, shapes=shapes)]
    joints, closures, frames, contacts = [], [], [], []
    planes: dict[tuple, SceneSurface] = {}
    for s, by in zip(scenes, offsets, strict=False):
        bodies += [replace(b, segment_of=b.segment_of and b.segment_of + by) for b in s.bodies[1:]]
        joints += [replace(j, body=moved(j.body, by), parent=moved(j.parent, by)) for j in s.joints]
        closures += [replace(c, a=moved(c.a, by), b=moved(c.b, by)) for c in s.closures]
        frames += [replace(f, body=moved(f.body, by)) for f in s.frames]
        contacts += [replace(c, body=moved(c.body, by)) for c in s.contacts]
        for x in s.surfaces:
            body, touching = moved(x.body, by), tuple((moved(b, by), shape) for b, shape in x.touching)
            same = planes.get((body, x.placement, x.velocity))
            planes[body, x.placement, x.velocity] = replace(
                x, body=body, touching=(*(same.touching if same else ()), *touching)
            )
    notes = tuple(dict.fromkeys(n for s in scenes for n in s.notes))
    lost = tuple(dict.fromkeys(n for s in scenes for n in s.lost))
    size = max(s.size for s in scenes)
    whole = Scene(
        run.model.name, tuple(bodies), tuple(joints), tuple(closures), tuple(frames), size, notes, lost,
        tuple(contacts), tuple(planes.values()),
    )  # fmt: skip
    which = [distinct.index(m) for m in models]
    numbers = [{name: moved(k, offsets[i]) for name, k in distinct[i].body_number.items()} for i in which]
    there = np.zeros((len(models), len(bodies)), bool)
    for k, own in enumerate(numbers):
        there[k, list(own.values())] = True
    places = [[moved(k, offsets[i]) for k in range(len(scenes[i].bodies))] for i in which]
    return whole, numbers, there, places


def _held(run: Trajectory, seen: Scene, places: list[list[int]], segments: np.ndarray) -> np.ndarray:
    """Poses (n, n_bodies + 1, 4, 4); of a body that a segment lacks, the next that there is, or the last."""
    at = np.full((len(segments), len(seen.bodies), 4, 4), np.nan)
    for k, s in enumerate(run.segments):
        at[np.ix_(segments == k, places[k])] = poses(robot_of(model_of(run, s)), s.q)
    for b in range(at.shape[1]):
        known = np.flatnonzero(np.isfinite(at[:, b, 0, 0]))
        if 0 < len(known) < len(at):
            at[:, b] = at[next_known(known, len(at)), b]
    return at


def _bending(run: Trajectory, seen: Scene, places: list[list[int]], segments: np.ndarray) -> dict[int, np.ndarray]:
    """Coordinates (n, modes) of each surface; of one that a segment lacks, 0."""
    out = {k: np.zeros((len(segments), len(b.stiffness))) for k, b in enumerate(seen.bodies) if b.surface is not None}
    for k, s in enumerate(run.segments):
        for own, eta in surface_coordinates(model_of(run, s), s.q).items():
            out[places[k][own]][segments == k] = eta
    return out


# ---- loops


def _with_captured(seen: Scene, models: list[Model], numbers: list[dict[str, int]]) -> tuple[Scene, np.ndarray]:
    """The scene with a closure for every place at which a loop holds, and which are closed in each segment."""
    closures = list(seen.closures)
    marks = {c.name: c.mark for c in closures}
    known = {_place(c): k for k, c in enumerate(closures)}
    rows = []
    for model, number in zip(models, numbers, strict=True):
        row = []
        for loop in model.loops:
            one = _closure(loop, number, marks)
            if _place(one) not in known:
                known[_place(one)] = len(closures)
                closures.append(one)
            row.append(known[_place(one)])
        rows.append(row)
    closed = np.zeros((len(models), len(closures)), bool)
    for k, row in enumerate(rows):
        closed[k, row] = True
    return replace(seen, closures=tuple(closures)), closed


def _closure(loop: Loop, number: dict[str, int], marks: dict[str, float]) -> SceneClosure:
    axis = getattr(loop.kind, "axis", None)
    ends = number[loop.a], number[loop.b], loop.placement_a, loop.placement_b
    return SceneClosure(loop.name, loop.kind.name, *ends, axis, marks.get(loop.name, 0.0))


def _place(c: SceneClosure) -> tuple:
    return c.name, c.a, c.b, c.placement_a, c.placement_b


def _broken(run: Trajectory, seen: Scene, closed: np.ndarray) -> np.ndarray:
    """Which grasps (s, n_closures) have broken and do not hold again: at the place where they held last."""
    out = np.zeros_like(closed)
    names = [c.name for c in seen.closures]
    starts = np.array([s.times[0] for s in run.segments])
    for time, kind, name in _rows(run.events):
        if kind != "break" or name not in names:
            continue
        after = int(np.searchsorted(starts, time, "right"))
        first = after - 1 if starts[after - 1] == time else after
        here = _held_last(names, name, closed[:first])
        own = [k for k, n in enumerate(names) if n == name]
        again = np.flatnonzero(closed[first:, own].any(axis=1))
        out[first : first + int(again[0]) if len(again) else None, here] = True
    return out


def _held_last(names: list[str], name: str, closed: np.ndarray) -> int:
    """The closure of this name that was closed last; the first of them if none was."""
    own = [k for k, n in enumerate(names) if n == name]
    held = [k for row in closed[::-1] for k in own if row[k]]
    return held[0] if held else own[0]


# ---- stops and couplings


def _joint_of(run: Trajectory, name: str) -> str:
    """The joint that a stop or coupling of this name holds; "" for none."""
    if name.endswith(STOP):
        return name.removesuffix(STOP)
    return next((c.joint for c in run.model.couplings if c.name == name), "")


def holds_of(run: Trajectory, seen: Scene) -> tuple[list[str], tuple[SceneHold, ...]]:
    """Names of the switches that are stops or couplings, and what is drawn of them."""
    joints = {j.name: k for k, j in enumerate(seen.joints)}
    names = [name for name in run.events.switches if _joint_of(run, name) in joints]
    holds = (SceneHold(shown_name(x), joints[_joint_of(run, x)], x.endswith(STOP)) for x in names)
    return names, tuple(holds)


def shown_name(name: str) -> str:
    """The name of a loop, coupling, stop or body in words."""
    return f"{name.removesuffix(STOP)} stop" if name.endswith(STOP) else name


# ---- events


def _rows(events: EventTable) -> Iterator[tuple[float, str, str]]:
    for time, kind, name in zip(events.time, events.kind, events.name, strict=True):
        yield float(time), str(kind), str(name)


def _touched(run: Trajectory, name: str, at: np.ndarray, k: int) -> Placement:
    """Where a contact touches at sample k, on a body with poses (n, 4, 4)."""
    x, y, z = (at[k, :3, :3].T @ (run.contacts[name].point[k] - at[k, :3, 3])).tolist()
    return Placement(position=(x, y, z))


def _events(
    run: Trajectory, seen: Scene, at: np.ndarray, closed: np.ndarray, numbers: list[dict[str, int]]
) -> Iterator[SceneEvent]:
    starts = np.array([s.times[0] for s in run.segments])
    loops = [c.name for c in seen.closures]
    joints = {j.name: j.body for j in seen.joints}
    touching = {name: c.body for c in seen.contacts for name in (c.name, *c.points)}
    firsts = np.cumsum([0, *map(len, run.segments)])
    for k, (time, kind, name) in enumerate(_rows(run.events)):
        last = max(int(np.searchsorted(starts, time, "right")), 1)  # segments that have begun
        body, placement = None, Placement()
        if name in loops:
            here = seen.closures[_held_last(loops, name, closed[:last])]
            body, placement = here.b, here.placement_b
        elif _joint_of(run, name) in joints:
            body = joints[_joint_of(run, name)]
        elif name in touching:
            body = touching[name]
            placement = _touched(run, name, at[:, body], int(firsts[last - 1]))
        else:
            body = numbers[last - 1].get(name)
        yield SceneEvent(
            time,
            kind,
            shown_name(name),
            run.events.size_text(k),
            float(run.events.energy_lost[k]),
            body,
            placement,
        )
