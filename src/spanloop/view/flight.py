"""The picture of a free flight: the mechanism along its way, and beneath it the error of its energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.model import Model
from spanloop.simulation.free_flight import Flight
from spanloop.view.axes import Plot, power_of_ten
from spanloop.view.figure import Camera, Figure, places
from spanloop.view.svg import document, element, halo, moving, points, text

PAPER, INK, GREY, FAINT = "#fcfbf8", "#22303c", "#66747f", "#e3e1da"
TOP, UNDERSIDE, EDGE, BONE, CURVE = "#e2763a", "#f6d9bf", "#a34a17", "#2f5673", "#2f5673"

WIDTH, LEFT, RIGHT = 1000.0, 92.0, 62.0
LARGEST_SCALE = 190.0  # pixels a metre
SPACING = 0.25  # seconds between snapshots, more on long flights
FRAMES_PER_SECOND = 30
ELEVATION = 0.3  # of the camera [rad]


def flight_picture(model: Model, flight: Flight, center: np.ndarray, title: str, subtitle: str, remark: str) -> str:
    """The text of an SVG file.

    center (n, 3): the centre of mass at the flight's times [m]; remark: a line beside the plot's name.
    """
    samples, every = _chosen(flight)
    scene = Scene.of(model, flight, center, samples, top=96.0)
    snapshots = range(0, len(samples), every)
    plot, unit, scaled = _energy_plot(flight, scene.bottom + 62.0)
    children = [
        text(title, LEFT, 42, 22, font_weight=600, fill=INK),
        text(subtitle, LEFT, 66, 14, fill=GREY),
        scene.way(),
        *(scene.guide(i, plot.top + plot.height) for i in snapshots if scene.aligned),
        *scene.snapshots(snapshots),
        scene.moving(),
        *plot.frame("time [s]", f"error of energy [{unit} J]", GREY, FAINT, PAPER),
        text(remark, WIDTH - RIGHT, plot.top - 12, 13, text_anchor="end", fill=GREY, **halo(PAPER)),
        plot.line(flight.times, scaled, CURVE),
        _dot(plot, flight.times[samples], scaled[samples], scene.duration),
    ]
    return document(WIDTH, plot.top + plot.height + 62.0, title, PAPER, children)


@dataclass(frozen=True)
class Scene:
    """All points of the figure at the chosen samples, in pixels."""

    figure: Figure
    at: dict[str, np.ndarray]  # (n, 2)
    center: np.ndarray  # (n, 2)
    bottom: float
    duration: float
    aligned: bool  # does the centre of mass stand above its time in the plot?

    @staticmethod
    def of(model: Model, flight: Flight, center: np.ndarray, samples: np.ndarray, top: float) -> Scene:
        across = center[-1] - center[0]
        camera = Camera(float(np.arctan2(across[1], across[0])), ELEVATION)  # beside the flight
        seen = {name: camera.seen(p) for name, p in places(model, flight.q[samples]).items()}
        seen.pop("world")
        way = camera.seen(center[samples])
        width = WIDTH - LEFT - RIGHT
        travel = way[-1, 0] - way[0, 0]
        scale = min(LARGEST_SCALE, width / travel) if travel > 0.0 else LARGEST_SCALE
        highest = max(p[:, 1].max() for p in seen.values())
        lowest = min(p[:, 1].min() for p in seen.values())
        start = LEFT + 0.5 * (width - scale * travel)

        def pixels(p: np.ndarray) -> np.ndarray:
            return np.stack([start + scale * (p[:, 0] - way[0, 0]), top + scale * (highest - p[:, 1])], axis=-1)

        return Scene(
            Figure.of(model),
            {name: pixels(p) for name, p in seen.items()},
            pixels(way),
            top + scale * (highest - lowest),
            float(flight.times[-1]),
            scale < LARGEST_SCALE,
        )

    def way(self) -> str:
        """The path of the centre of mass."""
        corners = points(self.center)
        return element("polyline", points=corners, fill="none", stroke=GREY, stroke_dasharray="2 5", opacity=0.8)

    def guide(self, i: int, bottom: float) -> str:
        """A line from the centre of mass down to its time in the plot."""
        x, y = self.center[i]
        return element("line", x1=x, x2=x, y1=y, y2=bottom, stroke=FAINT)

    def snapshots(self, samples: Sequence[int]) -> list[str]:
        """The figure at these samples, the older the fainter."""
        shades = np.linspace(0.28, 0.62, len(samples))
        return [element("g", *self._parts(i), opacity=round(s, 2)) for i, s in zip(samples, shades, strict=True)]

    def moving(self) -> str:
        """The figure as it flies; where nothing can move it is seen at the end."""
        return element("g", *self._parts(-1, moves=True))

    def _parts(self, i: int, moves: bool = False) -> list[str]:
        plates = [self._plate(names, i, moves) for names in self.figure.plates]
        return plates + [self._bone(names, i, moves) for names in self.figure.bones]

    def _plate(self, names: Sequence[str], i: int, moves: bool) -> str:
        corners = np.stack([self.at[name] for name in names], axis=1)  # (n, corners, 2)
        fills = [TOP if up else UNDERSIDE for up in _clockwise(corners)]
        style = {"stroke": EDGE, "stroke_width": 4.5, "stroke_linejoin": "round"}
        motion = [self._motion(corners), moving("fill", fills, self.duration, smooth=False)] if moves else []
        return element("polygon", *motion, points=points(corners[i]), fill=fills[i], **style)

    def _bone(self, names: Sequence[str], i: int, moves: bool) -> str:
        ends = np.stack([self.at[name] for name in names], axis=1)
        style = {"stroke": BONE, "stroke_width": 3.5, "stroke_linecap": "round"}
        motion = [self._motion(ends)] if moves else []
        return element("polyline", *motion, points=points(ends[i]), **style)

    def _motion(self, corners: np.ndarray) -> str:
        return moving("points", [points(c) for c in corners], self.duration)


def _clockwise(corners: np.ndarray) -> np.ndarray:
    """Which polygons (n, corners, 2) run clockwise on the screen."""
    x, y = corners[..., 0], corners[..., 1]
    return (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1) > 0.0


def _chosen(flight: Flight) -> tuple[np.ndarray, int]:
    """Which samples are drawn, and every how many of them a snapshot stays."""
    duration = flight.times[-1]
    intervals = int(np.clip(round(duration / SPACING), 1, 8))
    every = max(4, round(FRAMES_PER_SECOND * min(duration, 5.0) / intervals))
    return np.linspace(0, len(flight.times) - 1, intervals * every + 1).round().astype(int), every


def _energy_plot(flight: Flight, top: float) -> tuple[Plot, str, np.ndarray]:
    """The plot, its unit as text, and the error in that unit."""
    power, unit = power_of_ten(flight.energy_error)
    scaled = flight.energy_error / power
    low, high = min(scaled.min(), 0.0), max(scaled.max(), 0.0)
    room = 0.08 * (high - low) or 1.0
    time = (0.0, float(flight.times[-1]))
    return Plot(LEFT, top, WIDTH - LEFT - RIGHT, 150.0, time, (low - room, high + room)), unit, scaled


def _dot(plot: Plot, times: np.ndarray, errors: np.ndarray, duration: float) -> str:
    x, y = plot.moving_dot(times, errors)
    moved = (moving("cx", x, duration), moving("cy", y, duration))
    return element("circle", *moved, cx=plot.x(times[-1]), cy=plot.y(errors[-1]), r=4.5, fill=TOP)
