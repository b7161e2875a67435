"""The control panels: text, buttons and sliders. They send requests, which the viewer's thread carries out."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from spanloop.loops.assembly.assembly import Limits
from spanloop.view.beams.segments import section_turns
from spanloop.view.scene import Scene
from spanloop.view.viewer.plain_text import one_line, plain
from spanloop.view.viewer.scene_nodes import LAYERS, SHOWN
from spanloop.view.viewer.session import Handle, Session

Request = Callable[..., None]  # called with the name of a request and its values
NO_TRAIL, NO_PUSH, NO_EVENT = "(none)", "(nothing)", "(go to)"
MOST_EVENTS = 200  # of a run, in the list to choose from
BEND = 0.5  # rad: how far a slider of a mode turns the sections of its flexible body


class Panels:
    """The controls. They call `request(name, *values)` when the user acts; `update` shows the current state."""

    def __init__(self, gui: Any, scene: Scene, session: Session, request: Request):
        self.gui, self.request, self.session = gui, request, session
        self.head = gui.add_markdown(_summary(session))
        self.status = gui.add_markdown("")
        self.timeline: Any = None
        if session.timeline is not None:
            self._timeline_folder(session)
        self.sliders = self._pose_folder(session, scene)
        self._live_folder(session)
        self._show_folder(scene)

    def update(self, session: Session, status: str) -> None:
        """Set sliders and status line to the current state."""
        if self.status.content != status:
            self.status.content = status
        for handle, slider in self.sliders:
            _set(slider, session.value(handle))
        if self.timeline is not None and session.timeline is not None:
            if tuple(self.events.options) != tuple(self._event_options()):
                self.events.options = self._event_options()
                self.events.visible = len(self._event_options()) > 1
            _set(self.timeline, session.timeline.now)
            label = "Pause" if session.mode == "playing" else "Play"
            if self.play.label != label:
                self.play.label = label
        label = "Pause" if session.mode == "live" else "Start"
        if self.start.label != label:
            self.start.label = label

    def _timeline_folder(self, session: Session) -> None:
        assert session.run is not None
        assert session.timeline is not None
        line = session.timeline
        with self.gui.add_folder("Run"):
            if session.run.batch:
                count = len(session.run.outcomes)
                self.number = self.gui.add_slider(f"run (of {count})", 0, count - 1, 1, 0)
                self._on(self.number, "run")
            step = _slider_step(line.last - line.first)
            last = max(_rounded(line.last, step), line.first + step)
            self.timeline = self.gui.add_slider("time [s]", line.first, last, step, line.first, marks=())
            self._on(self.timeline, "seek")
            self.events = self.gui.add_dropdown("event", self._event_options(), visible=len(self._event_options()) > 1)
            self._on(self.events, "event")
            self.play = self._button("Play", "play")
            self.speed = self.gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0, marks=())
            self._on(self.speed, "speed")

    def _event_options(self) -> list[str]:
        """The words of the run's first events; the times in them make each one distinct."""
        words = [one_line(words) for _, words in self.session.events()[:MOST_EVENTS]]
        return list(dict.fromkeys([NO_EVENT, *words]))

    def _pose_folder(self, session: Session, scene: Scene) -> list[tuple[Handle, Any]]:
        sliders = []
        with self.gui.add_folder("Pose", expand_by_default=len(session.handles) <= 12):
            if not session.handles:
                self.gui.add_markdown("The mechanism has no degree of freedom to move.")
            for handle in session.handles:
                low, high = span(session, handle, scene.size)
                label = f"{one_line(handle.name)} [{handle.unit}]"
                slider = self.gui.add_slider(
                    label,
                    low,
                    high,
                    _slider_step(high - low),
                    low,
                    marks=(),
                    hint=f"from {low:g} to {high:g} {handle.unit}",
                )
                _set(slider, session.value(handle))
                self._on(slider, "move", handle)
                sliders.append((handle, slider))
            if scene.closures:
                self._button("Close the loops", "close_loops", "gray")
        return sliders

    def _live_folder(self, session: Session) -> None:
        model = session.robot.model
        bending = {j.child for j in model.joints if j.kind.bends}  # their nodes can be pushed
        bodies = [b.name for b in model.bodies if b.name not in bending]
        with self.gui.add_folder("Simulation", expand_by_default=session.timeline is None):
            self.start = self._button("Start", "start")
            self._button("Reset", "reset", "gray")
            if session.live.held:
                which = ", ".join(map(one_line, session.live.held[:8])) + (
                    ", ..." if len(session.live.held) > 8 else ""
                )
                self._on(self.gui.add_checkbox("hold the actuated joints", True, hint=which), "hold")
            self._on(self.gui.add_checkbox("gravity", True), "gravity")
            unit = "N m s/rad or N s/m, at every joint"
            self._on(self.gui.add_slider("damping", 0.0, 2.0, 0.01, 0.0, marks=(), hint=unit), "damping")
            point = "a force on its centre of mass"
            self._on(self.gui.add_dropdown("push", list(dict.fromkeys([NO_PUSH, *bodies])), hint=point), "push")
            self._on(self.gui.add_vector3("force [N]", (0.0, 0.0, 0.0), step=1.0), "force")

    def _show_folder(self, scene: Scene) -> None:
        with self.gui.add_folder("Show", expand_by_default=False):
            for layer in LAYERS:
                if _has(scene, layer):
                    self._on(self.gui.add_checkbox(layer, layer in SHOWN), "show", layer)
            self._on(self.gui.add_checkbox("forces", False, hint="forces in joints and loops"), "forces")
            if scene.contacts:
                self._on(self.gui.add_checkbox("contact forces", True, hint="at the points that touch"), "contacts")
            self._on(self.gui.add_slider("arrow length", 0.1, 4.0, 0.1, 1.0, marks=()), "arrows")
            names = [NO_TRAIL, *(b.name for b in scene.bodies[1:])]
            self._on(self.gui.add_dropdown("trail of", list(dict.fromkeys(names))), "trail")
        for note in scene.notes:
            self.gui.add_markdown(plain(note))

    def _button(self, label: str, request: str, color: str | None = None) -> Any:
        button = self.gui.add_button(label, color=color)
        button.on_click(lambda _: self.request(request))
        return button

    def _on(self, handle: Any, request: str, *before) -> None:
        """Send a request when the user changes this control, not when `update` does."""

        def changed(event) -> None:
            if event.client is not None:
                self.request(request, *before, event.target.value)

        handle.on_update(changed)


def _has(scene: Scene, layer: str) -> bool:
    """Whether a scene has anything in a layer."""
    return {"closures": bool(scene.closures), "contact shapes": any(b.contacts for b in scene.bodies)}.get(layer, True)


def span(session: Session, handle: Handle, size: float) -> tuple[float, float]:
    """Range of a slider: the joint's limits, or ±π rad or ± half the mechanism's size around its value; of modes what
    turns a section by BEND."""
    turn = section_turns(session.robot.model)[handle.dof]
    here, wide = session.value(handle), BEND / turn if turn else pi if handle.unit == "rad" else 0.5 * size
    low, high = here - wide, here + wide
    limits = Limits(session.robot.model)
    if handle.name in limits.names:
        k = limits.names.index(handle.name)
        low = limits.lower[k] if np.isfinite(limits.lower[k]) else low
        high = limits.upper[k] if np.isfinite(limits.upper[k]) else high
    step = _slider_step(high - low)
    return _rounded(step * np.ceil(low / step), step), _rounded(max(step * np.floor(high / step), low + step), step)


def _summary(session: Session) -> str:
    model = session.robot.model
    loops = f", {len(model.loops)} loop{'s' * (len(model.loops) != 1)}" if model.loops else ""
    return f"{len(model.joints)} joints with {model.nv} DoF{loops}; {len(session.handles)} independent"


def _rounded(x: float, step: float) -> float:
    """x rounded to the decimals of step, a power of ten."""
    return round(float(x), max(0, round(-np.log10(step))))


def _slider_step(width: float) -> float:
    """The step of a slider: a power of ten, at most a thousandth of its width."""
    return float(10.0 ** np.floor(np.log10(max(width, 1e-9) / 1000.0)))


def _set(slider: Any, value: float) -> None:
    """Set a slider to this value, clipped and rounded to its steps."""
    shown = _rounded(np.clip(value, slider.min, slider.max), slider.step)
    if abs(float(slider.value) - shown) > 1e-9:
        slider.value = shown
