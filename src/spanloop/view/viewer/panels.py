"""Words, buttons and sliders beside the picture. They say what is wished for; the viewer's thread does it."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from spanloop.loops.assembly import Limits
from spanloop.view.scene import Scene
from spanloop.view.viewer.scene_nodes import LAYERS, SHOWN
from spanloop.view.viewer.session import Handle, Puppet

Wish = Callable[..., None]  # a wish by name, with its values
NO_TRAIL = "(none)"


class Panels:
    """The controls. `wish(name, *values)` is called for what a person does; `tell` shows the present state."""

    def __init__(self, gui: Any, scene: Scene, puppet: Puppet, wish: Wish):
        self.gui, self.wish, self.puppet = gui, wish, puppet
        self.head = gui.add_markdown(_told(puppet))
        self.status = gui.add_markdown("")
        self.timeline: Any = None
        if puppet.timeline is not None:
            self._timeline_folder(puppet)
        self.sliders = self._pose_folder(puppet, scene)
        self._live_folder(puppet)
        self._show_folder(scene)

    # ---- showing the state

    def tell(self, puppet: Puppet, status: str) -> None:
        """Sliders where the mechanism is, and a status line; what a person is just moving is left alone."""
        if self.status.content != status:
            self.status.content = status
        for handle, slider in self.sliders:
            _set(slider, puppet.value(handle))
        if self.timeline is not None and puppet.timeline is not None:
            _set(self.timeline, puppet.timeline.now)
            label = "Pause" if puppet.mode == "playing" else "Play"
            if self.play.label != label:
                self.play.label = label
        label = "Pause" if puppet.mode == "live" else "Start"
        if self.start.label != label:
            self.start.label = label

    # ---- folders

    def _timeline_folder(self, puppet: Puppet) -> None:
        assert puppet.run is not None
        assert puppet.timeline is not None
        line = puppet.timeline
        with self.gui.add_folder("Run"):
            if puppet.run.batch:
                count = len(puppet.run.outcomes)
                self.number = self.gui.add_slider(f"run (of {count})", 0, count - 1, 1, 0)
                self._on(self.number, "run")
            step = _tidy(line.last - line.first)
            last = max(_rounded(line.last, step), line.first + step)
            self.timeline = self.gui.add_slider("time [s]", line.first, last, step, line.first)
            self._on(self.timeline, "seek")
            self.play = self._button("Play", "play")
            self.speed = self.gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0)
            self._on(self.speed, "speed")

    def _pose_folder(self, puppet: Puppet, scene: Scene) -> list[tuple[Handle, Any]]:
        sliders = []
        with self.gui.add_folder("Pose", expand_by_default=len(puppet.handles) <= 12):
            if not puppet.handles:
                self.gui.add_markdown("There is no freedom to move.")
            for handle in puppet.handles:
                low, high = span(puppet, handle, scene.size)
                slider = self.gui.add_slider(f"{handle.name} [{handle.unit}]", low, high, _tidy(high - low), low)
                _set(slider, puppet.value(handle))
                self._on(slider, "move", handle)
                sliders.append((handle, slider))
            if scene.closures:
                self._button("Close the loops", "close_loops", "gray")
        return sliders

    def _live_folder(self, puppet: Puppet) -> None:
        bodies = [b.name for b in puppet.robot.model.bodies]
        with self.gui.add_folder("Simulation", expand_by_default=puppet.timeline is None):
            self.start = self._button("Start", "start")
            self._button("Reset", "reset", "gray")
            self._on(self.gui.add_checkbox("gravity", True), "gravity")
            unit = "N m s/rad or N s/m, at every joint"
            self._on(self.gui.add_slider("damping", 0.0, 2.0, 0.01, 0.0, hint=unit), "damping")
            point = "a force on its centre of mass"
            self._on(self.gui.add_dropdown("push", ["(nothing)", *bodies], hint=point), "push")
            self._on(self.gui.add_vector3("force [N]", (0.0, 0.0, 0.0), step=1.0), "force")

    def _show_folder(self, scene: Scene) -> None:
        with self.gui.add_folder("Show", expand_by_default=False):
            for layer in LAYERS:
                if layer != "closures" or scene.closures:
                    self._on(self.gui.add_checkbox(layer, layer in SHOWN), "show", layer)
            self._on(self.gui.add_checkbox("forces", False, hint="that joints and loops carry"), "forces")
            self._on(self.gui.add_slider("length of arrows", 0.1, 4.0, 0.1, 1.0), "arrows")
            names = [NO_TRAIL, *(b.name for b in scene.bodies[1:])]
            self._on(self.gui.add_dropdown("trail of", names), "trail")
        for note in scene.notes:
            self.gui.add_markdown(note)

    def _button(self, label: str, wish: str, color: str | None = None) -> Any:
        button = self.gui.add_button(label, color=color)
        button.on_click(lambda _: self.wish(wish))
        return button

    def _on(self, handle: Any, wish: str, *before) -> None:
        """A wish whenever a person changes this; not when we do."""

        def changed(event) -> None:
            if event.client is not None:
                self.wish(wish, *before, event.target.value)

        handle.on_update(changed)


def span(puppet: Puppet, handle: Handle, size: float) -> tuple[float, float]:
    """From where to where a slider goes: the joint's limits, or a turn or half the mechanism's size either way."""
    here, wide = puppet.value(handle), pi if handle.unit == "rad" else 0.5 * size
    low, high = here - wide, here + wide
    limits = Limits(puppet.robot.model)
    if handle.name in limits.names:
        k = limits.names.index(handle.name)
        low = limits.lower[k] if np.isfinite(limits.lower[k]) else low
        high = limits.upper[k] if np.isfinite(limits.upper[k]) else high
    step = _tidy(high - low)
    return _rounded(step * np.ceil(low / step), step), _rounded(max(step * np.floor(high / step), low + step), step)


def _told(puppet: Puppet) -> str:
    model = puppet.robot.model
    loops = f", {len(model.loops)} loop{'s' * (len(model.loops) != 1)}" if model.loops else ""
    return f"{len(model.joints)} joints with {model.nv} freedoms{loops}; {len(puppet.handles)} to move freely"


def _rounded(x: float, step: float) -> float:
    """To a multiple of a power of ten, without digits behind it."""
    return round(float(x), max(0, round(-np.log10(step))))


def _tidy(width: float) -> float:
    """A power of ten that is a thousandth of this width, or less."""
    return float(10.0 ** np.floor(np.log10(max(width, 1e-9) / 1000.0)))


def _set(slider: Any, value: float) -> None:
    """The slider where it shows this value, rounded to what it can show."""
    shown = _rounded(np.clip(value, slider.min, slider.max), slider.step)
    if abs(float(slider.value) - shown) > 1e-9:
        slider.value = shown
