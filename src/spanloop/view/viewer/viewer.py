"""The live viewer: `show` opens it; one thread connects session, scene nodes and panels."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopError
from spanloop.model import Model
from spanloop.model.poses import default_position
from spanloop.trajectory import Trajectory
from spanloop.trajectory.topologies import has_same_joints
from spanloop.view import palette
from spanloop.view.moving_scene import holds_of
from spanloop.view.noise import least_force
from spanloop.view.scene import poses, scene
from spanloop.view.surface_patches import patches
from spanloop.view.viewer.camera import camera, outline, upward
from spanloop.view.viewer.panels import NO_PUSH, NO_TRAIL, Panels
from spanloop.view.viewer.plain_text import one_line, plain
from spanloop.view.viewer.scene_nodes import LONGEST, SceneNodes, force_arrows
from spanloop.view.viewer.server import LOOPBACK, set_camera, start_server, stop_server
from spanloop.view.viewer.session import Session

FRAME = 1.0 / 40.0  # s between frames
SAMPLES = 20  # of a run, that its first picture shows


class Viewer:
    """A mechanism in the browser, drawn by a thread of its own until `close` or the end of a `with` block.

    Requests of the users arrive in any thread and wait in a queue; only the viewer's thread touches the session.
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
        self.session = Session(robot, q, run)
        self.server = start_server(port, f"spanloop: {one_line(robot.model.name)}")
        self._requests: queue.Queue = queue.Queue()
        self._closing = threading.Event()
        self._forces, self._contacts, self._length, self._trail = False, True, 1.0, ""
        self._largest = 0.0
        try:
            self._set_up(folder)
        except BaseException:
            stop_server(self.server)
            raise
        self._thread = threading.Thread(target=self._work, name="spanloop viewer", daemon=True)
        self._thread.start()

    def _set_up(self, folder: str | Path | None) -> None:
        model = self.session.robot.model
        at = self._motion()
        seen = scene(model, self.session.q, folder)
        self.scene = replace(seen, patches=patches(seen.surfaces, at, seen.size))
        up = upward(model.gravity)
        corners = np.concatenate([outline(self.scene, x) for x in at[:: max(1, len(at) // SAMPLES)]])
        holds = () if self.session.run is None else holds_of(self.session.run, self.scene)[1]
        self.nodes = SceneNodes(self.server.scene, self.scene, up, float((corners @ up).min()), holds)
        set_camera(self.server, camera(corners, up), up)
        self.panels = Panels(self.server.gui, self.scene, self.session, self.request)
        self.draw()

    def _motion(self) -> np.ndarray:
        """Poses (n, n_bodies + 1, 4, 4) of the run that is played, where they are known, or of the state now."""
        line = self.session.timeline
        if line is None:
            return self.session.poses()[None]
        found = poses(self.session.robot, line.run.q)
        known = np.isfinite(found).all(axis=(1, 2, 3))
        return found[known] if known.any() else self.session.poses()[None]

    @property
    def url(self) -> str:
        """The address of the viewer."""
        return f"http://{LOOPBACK}:{self.server.get_port()}"

    def request(self, name: str, *values: Any) -> None:
        """Queue a request for the viewer's thread: "start", or "move" with a handle and a value, ..."""
        self._requests.put((name, values))

    def settled(self, timeout: float = 30.0) -> None:
        """Wait until the viewer has processed every request so far."""
        done = threading.Event()
        self._requests.put(("settle", (done,)))
        done.wait(timeout)

    def close(self) -> None:
        """Stop drawing and close the server."""
        if not self._closing.is_set():
            self._closing.set()
            self._thread.join(10.0)
            stop_server(self.server)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _work(self) -> None:
        last = time.perf_counter()
        while not self._closing.wait(max(0.0, FRAME - (time.perf_counter() - last))):
            now = time.perf_counter()
            seconds, last = now - last, now
            moving, waiting = self._process_requests()
            if self._attempt(self.session.tick, seconds) or moving:
                self._attempt(self.draw)
            for done in waiting:
                done.set()

    def _attempt(self, action: Callable, *values) -> bool:
        """Call the action; on an error stop the motion and show the message. Return whether to draw."""
        try:
            return bool(action(*values))
        except SpanloopError as error:
            self.session.pause()
            self.session.message = str(error)
            return True

    def _process_requests(self) -> tuple[bool, list[threading.Event]]:
        """Carry out the requests since the last frame, of one slider only the last. Return whether there were any, and
        the events that wait for them."""
        latest: dict[Any, tuple[str, tuple]] = {}
        waiting = []
        while not self._requests.empty():
            name, values = self._requests.get()
            if name == "settle":
                waiting.append(values[0])
            else:
                key = (name, *values[:-1]) if values else object()  # every press of a button counts
                latest[key] = (name, values)
        for name, values in latest.values():
            self._attempt(getattr(self, f"_on_{name}"), *values)
        return bool(latest), waiting

    def _on_move(self, handle, value: float) -> None:
        self.session.move(handle, value)

    def _on_close_loops(self) -> None:
        self.session.close()

    def _on_start(self) -> None:
        if self.session.mode == "live":
            self.session.pause()
            return
        self.session.start()
        if self.session.mode == "live":
            self._show_status("compiling the steps of this mechanism ...")
            self.session.live.advance(self.session.live.step)

    def _on_reset(self) -> None:
        self.session.reset()

    def _on_play(self) -> None:
        if self.session.mode == "playing":
            self.session.pause()
        else:
            self.session.play()

    def _on_seek(self, value: float) -> None:
        self.session.pause()
        self.session.seek(value)

    def _on_event(self, value: str) -> None:
        times = {words: time for time, words in self.session.events()}
        if value in times:
            self._on_seek(times[value])

    def _on_speed(self, value: float) -> None:
        if self.session.timeline is not None:
            self.session.timeline.speed = value

    def _on_run(self, value: int) -> None:
        self.session.pause()
        self.session.choose(int(value))

    def _on_hold(self, value: bool) -> None:
        self.session.live.settings.hold = value

    def _on_gravity(self, value: bool) -> None:
        self.session.live.settings.gravity = 1.0 if value else 0.0

    def _on_damping(self, value: float) -> None:
        self.session.live.settings.damping = value

    def _on_push(self, value: str) -> None:
        known = [b.name for b in self.session.robot.model.bodies]
        self.session.live.settings.body = value if value in known and value != NO_PUSH else ""

    def _on_force(self, value) -> None:
        self.session.live.settings.force = np.array(value, float)

    def _on_show(self, layer: str, value: bool) -> None:
        self.nodes.show(layer, value)

    def _on_forces(self, value: bool) -> None:
        self._forces = value
        self.nodes.fade(value)

    def _on_contacts(self, value: bool) -> None:
        self._contacts = value

    def _on_arrows(self, value: float) -> None:
        self._length = value

    def _on_trail(self, value: str) -> None:
        self._trail = "" if value == NO_TRAIL else value

    def draw(self) -> None:
        """Draw the current state."""
        session = self.session
        poses, touching = session.poses(), session.contacts()
        with self.server.atomic():
            self.nodes.place(poses, session.errors(), session.loops(), session.absent(), session.bending())
            self.nodes.hold(session.holds(), session.broken())
            self._draw_forces(poses)
            self.nodes.contact_arrows(touching if self._contacts else None, self._length)
            self.nodes.trail(session.trail(self._trail) if self._trail else np.zeros((0, 3)))
        self.panels.update(session, self._status("" if touching is None else touching.words()))

    def _draw_forces(self, poses: np.ndarray) -> None:
        none = np.zeros((0, 3))
        parts = {"joints": (none, none, palette.FORCE), "closures": (none, none, palette.CLOSED)}
        if self._forces:
            try:
                found = force_arrows(self.scene, poses, self.session.reactions(), self.session.loops())
            except SpanloopError as error:
                self.session.message = str(error)
            else:
                self._largest = max(found.largest, 0.98 * self._largest)
                full = max(self._largest, least_force(self.session.robot.model))
                scale = self._length * LONGEST * self.scene.size / full
                parts["joints"] = (found.joints[0], scale * found.joints[1], palette.FORCE)
                parts["closures"] = (found.closures[0], scale * found.closures[1], palette.CLOSED)
        for name, (starts, vectors, color) in parts.items():
            self.nodes.arrows(name, starts, vectors, color)
        s = self.session.live.settings
        pushing = s.body and np.any(s.force)
        start = self.session.live.pushed_at()[None] if pushing else none
        vector = 0.25 * self.scene.size * (s.force / np.linalg.norm(s.force))[None] if pushing else none
        self.nodes.arrows("push", start - vector, vector, palette.OPEN)

    def _status(self, touching: str = "") -> str:
        session = self.session
        kinetic, potential = session.energy()
        lines = [f"energy {kinetic + potential:.6g} J ({kinetic:.4g} kinetic)"]
        if session.mode == "live" or session.live.now.time:
            lines.append(f"simulated {session.live.now.time:.2f} s")
        errors = session.errors()
        if errors:
            open_, released = sum(self.nodes.open), sum(self.nodes.released)
            closed = "all loops closed" if not released else f"{len(errors) - released} of {len(errors)} loops closed"
            state = closed if not open_ else f"**{open_} of {len(errors)} loops open**"
            lines.append(f"{state}, largest error {max(errors):.1e}")
        if touching:
            lines.append(touching)
        if self._forces and self._largest:
            lines.append(f"largest force {self._largest:.3g} N")
        if session.message:
            lines.append(f"⚠ {plain(session.message)}")
        return "  \n".join(lines)

    def _show_status(self, text: str) -> None:
        self.panels.status.content = text
        self.server.flush()


def show(
    what: Model | Dynamics | Trajectory,
    q: ArrayLike | None = None,
    *,
    port: int = 0,
    block: bool = True,
    open_browser: bool = False,
    folder: str | Path | None = None,
) -> Viewer:
    """Show a mechanism in the browser, at an address that only this machine can reach.

    what: a model or its dynamics, to pose and simulate; or a run, to play as well. q (nq,): the initial configuration
    (default: neutral inside the limits, assembled). port: 0 takes a free one. block: wait until Ctrl-C, then close;
    with block=False return the Viewer, and close it with .close(). folder: where mesh files are that the model has no
    path of.
    """
    robot, run = _robot_and_run(what)
    viewer = Viewer(robot, _initial_q(robot, run, q), run, port=port, folder=folder)
    if open_browser:
        import webbrowser

        webbrowser.open(viewer.url)
    if block:
        print(f"{robot.model.name}: {viewer.url} (Ctrl-C ends)", flush=True)
        with viewer, contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600.0)
    return viewer


def _robot_and_run(what: object) -> tuple[Dynamics, Trajectory | None]:
    if isinstance(what, Trajectory):
        if not has_same_joints(what):
            raise InputError(
                "show: the segments of this run have models with different joints. run.page(...) shows all of them, "
                "run.pieces[0].view() one"
            )
        return what.robot, what
    if isinstance(what, Dynamics):
        return what, None
    if isinstance(what, Model):
        return Dynamics(what), None
    raise InputError(f"show: a {type(what).__name__} cannot be shown; expected a Model, a Dynamics or a Trajectory")


def _initial_q(robot: Dynamics, run: Trajectory | None, q: ArrayLike | None) -> np.ndarray:
    """The given q, the run's first sample, or neutral inside the limits, assembled; with open loops, if that fails."""
    if q is not None:
        array = np.asarray(q, float)
        if array.shape != (robot.model.nq,):
            raise InputError(f"show: q has shape {array.shape}; expected ({robot.model.nq},)")
        return array
    if run is not None:
        return run.q[(0,) * (run.q.ndim - 1)]
    first = default_position(robot.model)
    try:
        return robot.assemble(first) if robot.model.loops or robot.model.couplings else first
    except SpanloopError:
        return first
