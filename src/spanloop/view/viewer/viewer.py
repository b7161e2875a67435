"""The live viewer: a puppet, a stage and panels, kept together by one thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopError
from spanloop.trajectory import Trajectory
from spanloop.view import palette
from spanloop.view.viewer.camera import camera, outline, upward
from spanloop.view.viewer.panels import NO_TRAIL, Panels
from spanloop.view.viewer.scene_nodes import LONGEST, Stage, loads
from spanloop.view.viewer.server import LOOPBACK, look, started, stopped
from spanloop.view.viewer.session import Puppet
from spanloop.view.viewer.viser_shapes import scene_with_meshes

FRAME = 1.0 / 40.0  # s between pictures


class Viewer:
    """A mechanism in the browser. Close it, or use it in a `with`; until then a thread of its own draws.

    Wishes of those who look come in any thread and wait in a queue; only the viewer's thread touches the puppet.
    """

    def __init__(
        self,
        robot: Dynamics,
        q: np.ndarray,
        run: Trajectory | None = None,
        *,
        port: int = 0,
        folder: str | Path | None = None,
    ):
        self.puppet = Puppet(robot, q, run)
        self.server = started(port, f"spanloop: {robot.model.name}")
        self._wishes: queue.Queue = queue.Queue()
        self._closing = threading.Event()
        self._forces, self._length, self._trail = False, 1.0, ""
        self._largest = 0.0
        try:
            self._set_up(folder)
        except BaseException:
            stopped(self.server)
            raise
        self._thread = threading.Thread(target=self._work, name="spanloop viewer", daemon=True)
        self._thread.start()

    def _set_up(self, folder: str | Path | None) -> None:
        model = self.puppet.robot.model
        self.scene = scene_with_meshes(model, self.puppet.q, folder)
        up = upward(model.gravity)
        corners = outline(self.scene, self.puppet.poses())
        self.stage = Stage(self.server.scene, self.scene, up, float((corners @ up).min()))
        look(self.server, camera(corners, up), up)
        self.panels = Panels(self.server.gui, self.scene, self.puppet, self.wish)
        self.draw()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server.get_port()}"

    def wish(self, name: str, *values: Any) -> None:
        """Ask the viewer's thread for something: "start", "move", handle, value, ..."""
        self._wishes.put((name, values))

    def settled(self, timeout: float = 30.0) -> None:
        """Wait until every wish so far has been fulfilled."""
        done = threading.Event()
        self._wishes.put(("settle", (done,)))
        done.wait(timeout)

    def close(self) -> None:
        """Stop drawing and close the server."""
        if not self._closing.is_set():
            self._closing.set()
            self._thread.join(10.0)
            stopped(self.server)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # ---- the viewer's thread

    def _work(self) -> None:
        last = time.perf_counter()
        while not self._closing.wait(max(0.0, FRAME - (time.perf_counter() - last))):
            now = time.perf_counter()
            seconds, last = now - last, now
            moving, waiting = self._fulfil()
            if self._tried(self.puppet.tick, seconds) or moving:
                self._tried(self.draw)
            for done in waiting:
                done.set()

    def _tried(self, action: Callable, *values) -> bool:
        """Do it, or stand still and say why not; is there something new to see?"""
        try:
            return bool(action(*values))
        except SpanloopError as error:
            self.puppet.pause()
            self.puppet.word = str(error)
            return True

    def _fulfil(self) -> tuple[bool, list[threading.Event]]:
        """Do what was wished for since the last picture, of many positions of one slider only the last; was there
        anything, and who waits?"""
        latest: dict[Any, tuple[str, tuple]] = {}
        waiting = []
        while not self._wishes.empty():
            name, values = self._wishes.get()
            if name == "settle":
                waiting.append(values[0])
            else:
                key = (name, *values[:-1]) if values else object()  # every press of a button counts
                latest[key] = (name, values)
        for name, values in latest.values():
            self._tried(getattr(self, f"_wish_{name}"), *values)
        return bool(latest), waiting

    def _wish_move(self, handle, value: float) -> None:
        self.puppet.move(handle, value)

    def _wish_close_loops(self) -> None:
        self.puppet.close()

    def _wish_start(self) -> None:
        if self.puppet.mode == "live":
            self.puppet.pause()
            return
        self.puppet.start()
        if self.puppet.mode == "live":
            self._say("compiling the steps of this mechanism ...")
            self.puppet.live.advance(self.puppet.live.step)

    def _wish_reset(self) -> None:
        self.puppet.reset()

    def _wish_play(self) -> None:
        if self.puppet.mode == "playing":
            self.puppet.pause()
        else:
            self.puppet.play()

    def _wish_seek(self, value: float) -> None:
        self.puppet.pause()
        self.puppet.seek(value)

    def _wish_speed(self, value: float) -> None:
        if self.puppet.timeline is not None:
            self.puppet.timeline.speed = value

    def _wish_run(self, value: int) -> None:
        self.puppet.pause()
        self.puppet.choose(int(value))

    def _wish_gravity(self, value: bool) -> None:
        self.puppet.live.settings.gravity = 1.0 if value else 0.0

    def _wish_damping(self, value: float) -> None:
        self.puppet.live.settings.damping = value

    def _wish_push(self, value: str) -> None:
        known = [b.name for b in self.puppet.robot.model.bodies]
        self.puppet.live.settings.body = value if value in known else ""

    def _wish_force(self, value) -> None:
        self.puppet.live.settings.force = np.array(value, float)

    def _wish_show(self, layer: str, value: bool) -> None:
        self.stage.show(layer, value)

    def _wish_forces(self, value: bool) -> None:
        self._forces = value
        self.stage.fade(value)

    def _wish_arrows(self, value: float) -> None:
        self._length = value

    def _wish_trail(self, value: str) -> None:
        self._trail = "" if value == NO_TRAIL else value

    # ---- the picture

    def draw(self) -> None:
        """The puppet as it is now."""
        puppet = self.puppet
        poses = puppet.poses()
        with self.server.atomic():
            self.stage.place(poses, puppet.errors())
            self._draw_forces(poses)
            self.stage.trail(puppet.trail(self._trail) if self._trail else np.zeros((0, 3)))
        self.panels.tell(puppet, self._status())

    def _draw_forces(self, poses: np.ndarray) -> None:
        none = np.zeros((0, 3))
        parts = {"joints": (none, none, palette.FORCE), "closures": (none, none, palette.CLOSED)}
        if self._forces:
            try:
                found = loads(self.scene, poses, self.puppet.reactions())
            except SpanloopError as error:
                self.puppet.word = str(error)
            else:
                self._largest = max(found.largest, 0.98 * self._largest)
                scale = self._length * LONGEST * self.scene.size / max(self._largest, 1e-9)
                parts["joints"] = (found.joints[0], scale * found.joints[1], palette.FORCE)
                parts["closures"] = (found.closures[0], scale * found.closures[1], palette.CLOSED)
        for name, (starts, ways, color) in parts.items():
            self.stage.arrows(name, starts, ways, color)
        s = self.puppet.live.settings
        pushing = s.body and np.any(s.force)
        start = self.puppet.live.pushed_at()[None] if pushing else none
        way = 0.25 * self.scene.size * (s.force / np.linalg.norm(s.force))[None] if pushing else none
        self.stage.arrows("push", start - way, way, palette.OPEN)

    def _status(self) -> str:
        puppet = self.puppet
        kinetic, potential = puppet.energy()
        lines = [f"energy {kinetic + potential:.6g} J ({kinetic:.4g} kinetic)"]
        if puppet.mode == "live" or puppet.live.now.time:
            lines.append(f"simulated {puppet.live.now.time:.2f} s")
        errors = puppet.errors()
        if errors:
            open_ = sum(self.stage.open)
            state = "all loops closed" if not open_ else f"**{open_} of {len(errors)} loops open**"
            lines.append(f"{state}, largest error {max(errors):.1e}")
        if self._forces and self._largest:
            lines.append(f"largest force {self._largest:.3g} N")
        if puppet.word:
            lines.append(f"⚠ {puppet.word}")
        return "  \n".join(lines)

    def _say(self, text: str) -> None:
        self.panels.status.content = text
        self.server.flush()
