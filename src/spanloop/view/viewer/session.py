"""What is seen, without a picture of it: a mechanism that is posed, played from a run, or simulated live.

One thread works with it. All of it can be tested without a browser.
"""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopError
from spanloop.loops.closure_errors import rows_of, worst
from spanloop.trajectory import Trajectory
from spanloop.view.scene import poses
from spanloop.view.viewer.drag import moved
from spanloop.view.viewer.live import Live

OPEN = 1e-6  # m or rad: a loop with a larger error is open

TRAIL = 600  # points of a live trail


@dataclass(frozen=True)
class Handle:
    """An independent freedom that can be moved: place in v, name, unit, place in q (None if it has no coordinate)."""

    freedom: int
    name: str
    unit: str
    at: int | None


class Puppet:
    """A mechanism at q, v. `mode` says who moves it: "posing", "playing" or "live"; `word` what is to be said."""

    def __init__(self, robot: Dynamics, q: np.ndarray, run: Trajectory | None = None):
        self.robot, self.run = robot, run
        self.live = Live(robot, q)
        self.home = self.q.copy()
        self.mode, self.word = "posing", ""
        self.timeline: Timeline | None = None
        self.steps: deque[np.ndarray] = deque(maxlen=TRAIL)  # q along the way, where no run is played
        self.sought = False  # is it where the timeline is?
        self.offsets: dict[int, float] = {}
        self.handles = self._found_handles()
        if run is not None:
            self.choose(0)

    @property
    def q(self) -> np.ndarray:
        return self.live.now.q

    @property
    def v(self) -> np.ndarray:
        return self.live.now.v

    # ---- posing

    def value(self, handle: Handle) -> float:
        """Where a freedom stands: its coordinate, or how far it was moved."""
        return float(self.q[handle.at]) if handle.at is not None else self.offsets.get(handle.freedom, 0.0)

    def move(self, handle: Handle, value: float) -> None:
        """Bring a freedom to this value, or as near as the loops allow; `word` then says why not all the way."""
        self.pause()
        try:
            found = moved(self.robot, self.q, self._independent, handle.freedom, value - self.value(handle))
        except SpanloopError as error:
            self.word = str(error)
            return
        self._put(found.q, None, found.why)
        if handle.at is None:
            self.offsets[handle.freedom] = self.offsets.get(handle.freedom, 0.0) + found.way

    def close(self) -> None:
        """Close the loops from here."""
        self.pause()
        try:
            self._put(self.robot.assemble(self.q), None)
        except SpanloopError as error:
            self.word = str(error)

    # ---- live

    def start(self) -> None:
        """Simulate from here, if the loops are closed."""
        self._put(self.q, self.v)
        if max(self.errors(), default=0.0) > OPEN:
            miss = worst(self.robot.model, self.robot.closure_error(self.q))
            self.word = f"{miss.what} is open by {miss.by()}: close the loops first"
        else:
            self.mode = "live"

    def reset(self) -> None:
        """Back to where it began, at rest."""
        self.pause()
        self._put(self.home, None)
        self.live.now.time = 0.0
        self.offsets.clear()
        self.steps.clear()

    def pause(self) -> None:
        """Stand still."""
        self.mode = "posing"

    def _put(self, q, v, word: str = "") -> None:
        self.live.put(q, v, self.live.now.time)
        self.word, self.sought = word, False

    # ---- a run

    def choose(self, number: int) -> None:
        """Take run `number` of a batch, in C order, or the only one."""
        assert self.run is not None
        one = self.run[tuple(map(int, np.unravel_index(number, self.run.batch)))] if self.run.batch else self.run
        self.timeline = Timeline(played(one))
        self.seek(self.timeline.first)

    def seek(self, time: float) -> None:
        """Go to a time of the run [s]."""
        assert self.timeline is not None
        self.timeline.now = time
        k = self.timeline.sample
        self._put(self.timeline.run.q[k], self.timeline.run.v[k])
        self.sought = True

    def play(self) -> None:
        """Play the run from where it is."""
        assert self.timeline is not None
        self.mode, self.timeline.playing = "playing", True

    # ---- time passes

    def tick(self, seconds: float) -> bool:
        """Go on by so many seconds of the clock; has anything moved?"""
        if self.mode == "playing" and self.timeline is not None:
            self.timeline.advance(seconds)
            self.seek(self.timeline.now)
            if not self.timeline.playing:
                self.pause()
            return True
        if self.mode == "live":
            self.live.advance(seconds)
            self.steps.append(self.q.copy())
            if self.live.ended:
                self.word = self.live.ended
                self.pause()
            return True
        return False

    # ---- what there is to see

    def poses(self) -> np.ndarray:
        """Poses (n_bodies + 1, 4, 4) of the world and all bodies."""
        return poses(self.robot, self.q)

    def trail(self, body: str) -> np.ndarray:
        """Where the origin of a body has been (n, 3) [m]: along the run so far, or along what was simulated live."""
        if self.sought and self.timeline is not None:
            way = self.timeline.run.q[: self.timeline.sample + 1]
        else:
            way = np.array(self.steps).reshape(-1, self.robot.model.nq)
        return poses(self.robot, way)[:, self.robot.model.body_number[body], :3, 3] if len(way) else np.zeros((0, 3))

    def errors(self) -> list[float]:
        """The largest error of each loop [m or rad]."""
        model = self.robot.model
        if not model.loops:
            return []
        e = np.abs(self.robot.closure_error(self.q))
        rows = rows_of(model)
        return [
            max((float(e[r]) for r, row in enumerate(rows) if row.owner == k and row.positional), default=0.0)
            for k in range(len(model.loops))
        ]

    def reactions(self):
        """[torque; force] (6,) of joints and loops by name, as they are here and now."""
        if self.timeline is not None and self.sought:
            k, found = self.timeline.sample, self.timeline.run.reactions()
            return {name: found[name][k] for name in found}
        forces = self.live.forces()
        return self.robot.reactions(self.q, self.v, self.live.torques(), forces=forces or None)

    def energy(self) -> tuple[float, float]:
        """Kinetic and potential energy [J]."""
        kinetic, potential = self.robot.energy(self.q, self.v)
        return float(kinetic), float(potential)

    # ---- handles

    @functools.cached_property
    def _independent(self):
        return self.robot.independent_coordinates(self.q)

    def _found_handles(self) -> tuple[Handle, ...]:
        """The independent freedoms; none, and a word, where there is no closed state to find them at."""
        model = self.robot.model
        try:
            chosen = self._independent
        except SpanloopError as error:
            self.word = str(error)
            return ()
        owners = [(j, k) for j in model.joints for k in range(j.kind.nv)]
        out = []
        for freedom, name in zip(chosen.dofs, chosen.names, strict=True):
            joint, k = owners[freedom]
            at = model.q_slice(joint.name).start if joint.kind.nq == joint.kind.nv == 1 else None
            out.append(Handle(freedom, name, joint.kind.units[k] or "1", at))
        return tuple(out)


# ---- Where one is in a run that is played.


FRAMES = 60.0  # a second, at most: samples in between are not drawn


@dataclass
class Timeline:
    """One run, at time `now` [s]; `speed` 1 is real time. At the end it begins again if `again`."""

    run: Trajectory
    now: float = 0.0
    speed: float = 1.0
    playing: bool = False
    again: bool = True

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
        """The number of the sample that is nearest to now."""
        times = self.run.times
        k = int(np.clip(np.searchsorted(times, self.now), 1, max(len(times) - 1, 1)))
        return k - 1 if len(times) == 1 or self.now - times[k - 1] <= times[k] - self.now else k

    def advance(self, seconds: float) -> None:
        """Play on by so many seconds of the clock."""
        self.now += seconds * self.speed
        if self.now > self.last:
            if self.again and self.last > self.first:
                self.now = self.first + (self.now - self.first) % (self.last - self.first)
            else:
                self.now, self.playing = self.last, False


def played(run: Trajectory) -> Trajectory:
    """A single run with about as many samples a second as can be seen, the last one among them."""
    gaps = len(run) - 1
    most = max(1, int(gaps / max(FRAMES * run.duration, 1.0)))
    stride = max(k for k in range(1, most + 1) if gaps % k == 0) if gaps else 1
    return run[::stride] if stride > 1 else run
