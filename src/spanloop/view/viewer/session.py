"""The state behind the viewer: a mechanism that is posed, played from a run, or simulated live.

It needs no browser, so all of it can be tested without one. Only one thread may use it.
"""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopError
from spanloop.loops.closure_errors import rows_of, worst
from spanloop.model.parts import Loop
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.trajectory.segment_models import robot_of
from spanloop.trajectory.topologies import with_carried
from spanloop.view.beams.segments import surface_coordinates
from spanloop.view.contact_forces import ContactForces, contact_forces
from spanloop.view.moving_scene import shown_name
from spanloop.view.scene import poses
from spanloop.view.stand_ins import reach
from spanloop.view.viewer.drag import drag
from spanloop.view.viewer.live import Live

OPEN = 1e-6  # rad, or of the loop's length: a loop with a larger error is open

TRAIL = 600  # points of a live trail

FAR = 3.0  # sizes of the mechanism from where it was, beyond which the simulation pauses
GONE = "it has left the picture: nothing holds it"
NO_CONTACT = ", and the floor is drawn only. model.with_ground() gives it contacts"

FRAMES = 60.0  # samples a second that are drawn, at most


@dataclass
class Timeline:
    """Playback of one run at time `now` [s]; speed 1 is real time; `repeat` starts over at the end."""

    run: Trajectory
    now: float = 0.0
    speed: float = 1.0
    playing: bool = False
    repeat: bool = True

    def __post_init__(self):
        self.now = float(self.run.times[0])

    @property
    def first(self) -> float:
        return float(self.run.times[0])

    @property
    def last(self) -> float:
        return float(self.run.times[-1])

    @property
    def sample(self) -> int:
        """Index of the sample nearest to `now`; at an event, the one after it."""
        times = self.run.times
        k = int(np.clip(np.searchsorted(times, self.now, "right"), 1, max(len(times) - 1, 1)))
        return k - 1 if len(times) == 1 or self.now - times[k - 1] <= times[k] - self.now else k

    @property
    def segment(self) -> Segment:
        """The segment of the nearest sample."""
        ends = np.cumsum([len(s) for s in self.run.segments])
        return self.run.segments[int(np.searchsorted(ends, self.sample, "right"))]

    def advance(self, seconds: float) -> None:
        """Advance by `seconds` of real time."""
        self.now += seconds * self.speed
        if self.now > self.last:
            if self.repeat and self.last > self.first:
                self.now = self.first + (self.now - self.first) % (self.last - self.first)
            else:
                self.now, self.playing = self.last, False


def playback(run: Trajectory) -> Trajectory:
    """A single run thinned to about FRAMES samples a second; the last sample stays."""
    gaps = len(run) - 1
    most = max(1, int(gaps / max(FRAMES * run.duration, 1.0)))
    stride = max(k for k in range(1, most + 1) if gaps % k == 0) if gaps else 1
    return run[::stride] if stride > 1 else run


@dataclass(frozen=True)
class Handle:
    """An independent degree of freedom to move: index in v, name, unit, index in q (None if it has no coordinate)."""

    dof: int
    name: str
    unit: str
    at: int | None


class Session:
    """A mechanism at q, v. `mode` is "posing", "playing" or "live"; `message` is a line for the user, or ""."""

    def __init__(self, robot: Dynamics, q: np.ndarray, run: Trajectory | None = None):
        self.robot, self.run = robot, run
        self.live = Live(robot, q)
        self.home = self.q.copy()
        self.mode, self.message = "posing", ""
        self.timeline: Timeline | None = None
        self.steps: deque[np.ndarray] = deque(maxlen=TRAIL)  # q along the live simulation
        self.follows_run = False  # the state is the one at the timeline's time
        self._touching: ContactForces | None = None  # of the run, at the samples that are played
        self.offsets: dict[int, float] = {}
        self._began = np.zeros((0, 3))
        self.handles = self._find_handles()
        if run is not None:
            self.choose(0)

    @property
    def q(self) -> np.ndarray:
        return self.live.now.q

    @property
    def v(self) -> np.ndarray:
        return self.live.now.v

    def value(self, handle: Handle) -> float:
        """The coordinate of a degree of freedom; without a coordinate, how far it was moved."""
        return float(self.q[handle.at]) if handle.at is not None else self.offsets.get(handle.dof, 0.0)

    def move(self, handle: Handle, value: float) -> None:
        """Move a degree of freedom to this value, or as far as the loops allow; then `message` gives the reason."""
        self.pause()
        try:
            found = drag(self.robot, self.q, self._independent, handle.dof, value - self.value(handle))
        except SpanloopError as error:
            self.message = str(error)
            return
        self._put(found.q, None, found.message)
        if handle.at is None:
            self.offsets[handle.dof] = self.offsets.get(handle.dof, 0.0) + found.distance

    def close(self) -> None:
        """Assemble the loops from the current configuration."""
        self.pause()
        try:
            self._put(self.robot.assemble(self.q), None)
        except SpanloopError as error:
            self.message = str(error)

    def start(self) -> None:
        """Start the live simulation, if the loops are closed."""
        self._put(self.q, self.v)
        self._began = self.poses()[:, :3, 3]
        if max(self.errors(), default=0.0) > OPEN:
            miss = worst(self.robot.model, self.robot.closure_error(self.q))
            self.message = f"{miss.what} is open by {miss.by()}: close the loops first"
        else:
            self.mode = "live"

    def reset(self) -> None:
        """Return to the initial configuration, at rest."""
        self.pause()
        self._put(self.home, None)
        self.live.now.time = 0.0
        self.offsets.clear()
        self.steps.clear()

    def pause(self) -> None:
        """Stop the motion."""
        self.mode = "posing"

    def _put(self, q, v, message: str = "") -> None:
        self.live.restart(q, v, self.live.now.time)
        self.message, self.follows_run = message, False

    def choose(self, number: int) -> None:
        """Select run `number` of a batch (C order), or the only run."""
        assert self.run is not None
        one = self.run[tuple(map(int, np.unravel_index(number, self.run.batch)))] if self.run.batch else self.run
        self.timeline = Timeline(playback(one))
        found = contact_forces(one)
        self._touching = None if found is None else found.at(one.times, self.timeline.run.times)
        self.seek(self.timeline.first)

    def events(self) -> list[tuple[float, str]]:
        """Time [s] and words of each event of the run that is played."""
        if self.timeline is None:
            return []
        found = self.timeline.run.events
        rows = zip(found.time, found.kind, found.name, strict=True)
        return [(float(time), f"{time:.4f} s: {kind} {name}") for time, kind, name in rows]

    def seek(self, time: float) -> None:
        """Go to a time [s] of the run."""
        assert self.timeline is not None
        self.timeline.now = time
        k = self.timeline.sample
        self._put(self.timeline.run.q[k], self.timeline.run.v[k])
        self.follows_run = True

    def play(self) -> None:
        """Play the run from its current time."""
        assert self.timeline is not None
        self.mode, self.timeline.playing = "playing", True

    def tick(self, seconds: float) -> bool:
        """Advance by `seconds` of real time; return whether anything moved."""
        if self.mode == "playing" and self.timeline is not None:
            self.timeline.advance(seconds)
            self.seek(self.timeline.now)
            if not self.timeline.playing:
                self.pause()
            return True
        if self.mode == "live":
            self.live.advance(seconds)
            self.steps.append(self.q.copy())
            if self.live.ended or self._has_left():
                self.message = self.live.ended or GONE + ("" if self.robot.model.contacts else NO_CONTACT)
                self.pause()
            return True
        return False

    def _has_left(self) -> bool:
        """Whether every body is far from where it was when the simulation started."""
        away = np.linalg.norm(self.poses()[1:, :3, 3] - self._began[1:], axis=1)
        return bool(away.min(initial=np.inf) > FAR * reach(self.robot.model, poses(self.robot, self.home)))

    def poses(self) -> np.ndarray:
        """Poses (n_bodies + 1, 4, 4) of the world and all bodies."""
        return poses(self.robot, self.q)

    def bending(self) -> dict[int, np.ndarray]:
        """Coordinates (modes,) of each surface that bends, by its number among the bodies of the scene."""
        return surface_coordinates(self.robot.model, self.q)

    def trail(self, body: str) -> np.ndarray:
        """Path (n, 3) [m] of a body's origin: along the run so far, or along the live simulation."""
        if self.follows_run and self.timeline is not None:
            path = self.timeline.run.q[: self.timeline.sample + 1]
        else:
            path = np.array(self.steps).reshape(len(self.steps), self.robot.model.nq)
        return poses(self.robot, path)[:, self.robot.model.body_number[body], :3, 3] if len(path) else np.zeros((0, 3))

    @property
    def _segment(self) -> Segment | None:
        """The segment of the run at the timeline's time; None where the state is not that of the run."""
        return self.timeline.segment if self.timeline is not None and self.follows_run else None

    def loops(self) -> list[Loop | None]:
        """The loops of the model as they hold now; None for one that is open at this time of the run."""
        segment, model = self._segment, self.robot.model
        if segment is None or segment.model is None:
            return list(model.loops)
        own = {x.name: x for x in segment.model.loops}
        return [own.get(x.name) for x in model.loops]

    def absent(self) -> set[int]:
        """Numbers of the bodies that are not there at this time of the run."""
        segment, model = self._segment, self.robot.model
        return {model.body_number[name] for name in with_carried(model, segment.absent)} if segment else set()

    def holds(self) -> set[str]:
        """Names of the stops that are touched and the couplings that are closed at this time of the run."""
        segment = self._segment
        return {shown_name(name) for name in segment.closed or ()} if segment else set()

    def broken(self) -> set[str]:
        """Names of the grasps whose last event, up to this time of the run, is that they broke."""
        if self._segment is None or self.timeline is None:
            return set()
        found = self.timeline.run.events
        passed = found.time <= self.timeline.now + 1e-12
        last = {str(name): str(kind) for name, kind in zip(found.name[passed], found.kind[passed], strict=True)}
        return {name for name, kind in last.items() if kind == "break"}

    def contacts(self) -> ContactForces | None:
        """Forces of the contacts at this time of the run, or of the last live step; None without."""
        if self.timeline is not None and self.follows_run:
            return None if self._touching is None else self._touching.sample(self.timeline.sample)
        now = self.live.now
        if now.contact_forces is None:
            return None
        time, q, v, tau = (np.asarray(x)[None] for x in (now.time, now.q, now.v, self.live.torques()))
        segment = Segment(time, q, v, tau, contact_forces=now.contact_forces[None])
        return contact_forces(self._moment.changed(segments=(segment,)))

    @functools.cached_property
    def _moment(self) -> Trajectory:
        """A run of one sample, to be changed, with the kernels of the mechanism."""
        model = self.robot.model
        rest = np.zeros((1, model.nv))
        nothing = Segment(np.zeros(1), model.neutral()[None], rest, rest)
        return Trajectory(model, (nothing,), (Outcome("finished", "", 0.0),), {"step": self.live.step})

    def errors(self) -> list[float]:
        """The largest error of each loop [m or rad]; 0 for one that is open at this time of the run."""
        model = self.robot.model
        if not model.loops:
            return []
        segment = self._segment
        robot = self.robot if segment is None or segment.model in (None, model) else robot_of(segment.model)
        if not robot.model.loops:
            return [0.0] * len(model.loops)
        e = np.abs(robot.closure_error(self.q))
        largest = dict.fromkeys((x.name for x in model.loops), 0.0)
        for error, row in zip(e, rows_of(robot.model), strict=True):
            if row.positional and row.owner < len(robot.model.loops):
                name = robot.model.loops[row.owner].name
                largest[name] = max(largest[name], float(error))
        return list(largest.values())

    def reactions(self):
        """[torque; force] (6,) of joints and loops by name, at the current state."""
        if self.timeline is not None and self.follows_run:
            k, found = self.timeline.sample, self.timeline.run.reactions()
            return {name: found[name][k] for name in found}
        forces = self.live.forces()
        return self.live.acting.reactions(self.q, self.v, self.live.torques(), forces=forces or None)

    def energy(self) -> tuple[float, float]:
        """Kinetic and potential energy [J]."""
        if self.timeline is not None and self.follows_run:
            kinetic, potential = self.timeline.run.energy[self.timeline.sample]
            return float(kinetic), float(potential)
        kinetic, potential = self.robot.energy(self.q, self.v)
        return float(kinetic), float(potential)

    @functools.cached_property
    def _independent(self):
        return self.robot.independent_coordinates(self.q)

    def _find_handles(self) -> tuple[Handle, ...]:
        """The independent degrees of freedom; none, and a message, if there is no closed state to find them at."""
        model = self.robot.model
        try:
            chosen = self._independent
        except SpanloopError as error:
            self.message = str(error)
            return ()
        owners = [(j, k) for j in model.joints for k in range(j.kind.nv)]
        out = []
        for dof, name in zip(chosen.dofs, chosen.names, strict=True):
            joint, k = owners[dof]
            has_own = joint.kind.nq == joint.kind.nv == 1 or joint.kind.bends
            at = range(model.nq)[model.q_slice(joint.name)][k] if has_own else None
            out.append(Handle(dof, name, joint.kind.units[k] or "1", at))
        return tuple(out)
