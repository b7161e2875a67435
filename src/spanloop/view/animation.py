"""A run as one animated SVG: bodies as strokes and outlines, loops as dots, and a plot below."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, SpanloopError
from spanloop.model.files.file_io import write_file
from spanloop.view import palette
from spanloop.view.beams.patches import patches
from spanloop.view.body_shapes import Shape
from spanloop.view.contact_forces import COLORS, ContactForces, contact_forces
from spanloop.view.moving_scene import MovingScene, moving_scene
from spanloop.view.noise import noise_levels
from spanloop.view.scene import Scene, SceneBody, matrix
from spanloop.view.svg import Plot, document, element, halo, moving, number, points, text

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory


@dataclass(frozen=True)
class Projection:
    """An orthographic projection: azimuth [rad], where 0 looks along +y with x to the right, and elevation [rad]."""

    azimuth: float = 0.0
    elevation: float = 0.0

    @property
    def axes(self) -> np.ndarray:
        """Right and up in the picture (2, 3), in the world."""
        s, c = np.sin(self.azimuth), np.cos(self.azimuth)
        up, ahead = np.sin(self.elevation), np.cos(self.elevation)
        return np.array([(c, s, 0.0), (-s * up, c * up, ahead)])

    def project(self, points: np.ndarray) -> np.ndarray:
        """Project points (..., 3) [m] to (..., 2): right and up [m]."""
        return np.asarray(points @ self.axes.T)

    def nearness(self, points: np.ndarray) -> np.ndarray:
        """Distance [m] of points (..., 3) towards the viewer."""
        s, c = np.sin(self.azimuth), np.cos(self.azimuth)
        up, ahead = np.sin(self.elevation), np.cos(self.elevation)
        return points @ np.array([s * ahead, -c * ahead, up])


PAPER, INK, GREY, FAINT = "#fcfbf8", "#22303c", "#66747f", "#e3e1da"

WIDTH, LEFT, RIGHT, TOP, HEIGHT, BELOW = 1000.0, 70.0, 30.0, 84.0, 430.0, 130.0

FRAMES = 72  # at most, which keeps the file small

ENDS = {"stroke_linejoin": "round", "stroke_linecap": "round"}

VIEW = Projection(0.62, 0.38)

ROUND = np.stack([np.cos(x := np.linspace(0.0, 2.0 * np.pi, 28, endpoint=False)), np.sin(x), 0.0 * x], axis=-1)


def write(run: Trajectory, path: str | Path, *, title: str = "", folder: str | Path | None = None) -> Path:
    """Write an animated SVG of a run and return its path, which must end in .svg."""
    where = Path(path)
    if where.suffix.lower() != ".svg":
        raise InputError(f"{path}: an animation ends in .svg")
    write_file(where, animation(run, title=title, folder=folder).encode())
    return where


def animation(run: Trajectory, *, title: str = "", folder: str | Path | None = None, forces: bool = True) -> str:
    """An animated SVG of a run. title: headline (default: the model's name). folder: where mesh files are.

    forces: plot forces at the loops below, which need a kernel for each set of closed loops; else energies.
    """
    if run.batch:
        raise InputError(f"this is a batch of {len(run.outcomes)} runs; an animation shows one of them: run[0]")
    few = _few(run)
    moved = moving_scene(few, folder)
    seen = moved.scene
    touching = contact_forces(run)
    strokes = sorted(_strokes(moved), key=lambda s: s.nearness)
    if touching is not None:
        strokes += _force_strokes(touching.at(run.times, few.times), seen.size)
    floor = _floor(seen)
    sheet = Sheet.around([*floor, *(s.points for s in strokes)], few.duration)
    name, values = _below(few, forces)
    plot = _plot(few, values)
    children = [
        text(title or run.model.name, LEFT - 30, 40, 22, font_weight=600, fill=INK),
        text(_subtitle(run), LEFT - 30, 64, 14, fill=GREY),
        element("g", *(sheet.line(x) for x in floor), *(sheet.drawn(s) for s in strokes), **ENDS),
        *plot.frame("time [s]", name, GREY, FAINT, PAPER),
        *_event_lines(plot, run),
        *_curves(plot, few, values, sheet.duration),
    ]
    return document(WIDTH, TOP + HEIGHT + BELOW + 110.0, title or run.model.name, PAPER, children)


def _few(run: Trajectory) -> Trajectory:
    """The run with FRAMES samples or a few more, evenly in time where it is cut at events.

    Samples that are dense are taken as they are: the few at events do not shift them visibly.
    """
    if len(run.segments) > 1 and run.duration > 0.0 and len(run) < 20 * FRAMES:
        return run.at(np.linspace(run.times[0], run.times[-1], FRAMES))
    return run[:: max(1, len(run) // FRAMES)]


@dataclass(frozen=True)
class Stroke:
    """A line, an outline or a dot: points (n, corners, 3) [m], width [m], mean distance towards the viewer [m], and at
    which samples (n,) it is shown."""

    points: np.ndarray
    width: float
    color: str
    closed: bool
    nearness: float
    shown: np.ndarray


@dataclass(frozen=True)
class Sheet:
    """The map from metres to pixels."""

    scale: float
    middle: np.ndarray
    duration: float

    @staticmethod
    def around(clouds: list[np.ndarray], duration: float) -> Sheet:
        flat = VIEW.project(np.concatenate([c.reshape(-1, 3) for c in clouds]))
        flat = flat[np.isfinite(flat).all(axis=1)]
        if not len(flat):
            raise InputError("the run has no position that can be drawn; none is finite")
        low, high = flat.min(axis=0), flat.max(axis=0)
        span = np.maximum(high - low, 1e-9)
        scale = min((WIDTH - LEFT - RIGHT) / span[0], (HEIGHT - 20.0) / span[1])
        return Sheet(float(scale), 0.5 * (low + high), duration)

    def pixels(self, p: np.ndarray) -> np.ndarray:
        """Points (..., 3) [m] as (..., 2)."""
        flat = self.scale * (VIEW.project(p) - self.middle)
        return np.stack([WIDTH / 2 + flat[..., 0], TOP + HEIGHT / 2 - flat[..., 1]], axis=-1)

    def line(self, corners: np.ndarray) -> str:
        return element("polyline", points=points(self.pixels(corners)), fill="none", stroke=FAINT)

    def drawn(self, s: Stroke) -> str:
        """The stroke over a darker and wider one, which forms its edge."""
        flat = self.pixels(s.points)
        is_still = np.abs(flat - flat[0]).max() < 0.05
        motion = [] if is_still else [moving("points", [points(f) for f in flat], self.duration)]
        if not s.shown.all():
            motion.append(moving("opacity", ["1" if x else "0" for x in s.shown], self.duration, smooth=False))
        width = max(2.0, self.scale * s.width)
        name, corners = ("polygon" if s.closed else "polyline"), points(flat[0])
        layers = ((palette.darker(s.color), width + 2.0), (s.color, width - 1.0))
        return "".join(
            element(name, *motion, points=corners, fill=color if s.closed else "none", stroke=color, stroke_width=w)
            for color, w in layers
        )


def _floor(seen: Scene) -> list[np.ndarray]:
    """Grid lines on the ground, (2, 3) each: of the planes of the world that are touched, or around the middle."""
    touched = [line for p in seen.patches if p.body == 0 for line in p.lines()]
    if touched:
        return touched
    reach = 0.36 * seen.size
    places = np.linspace(-reach, reach, 9)
    ends = np.array([(-reach, 0.0, 0.0), (reach, 0.0, 0.0)])
    along = [ends + (0.0, y, 0.0) for y in places]
    return along + [line[:, [1, 0, 2]] for line in along]


def _strokes(moved: MovingScene) -> list[Stroke]:
    seen, at = moved.scene, moved.poses
    present, closed = moved.present[moved.segments], moved.closed[moved.segments]
    out = [
        s
        for k, body in enumerate(seen.bodies)
        for shape in (() if body.segment_of is not None else body.shapes)
        for s in _of_shape(shape, at[:, k], shape.color or body.color, present[:, k])
    ]
    for k, eta in moved.bending.items():
        out += _of_surface(seen.bodies[k], at[:, k], eta, present[:, k])
    for k in dict.fromkeys(b.segment_of for b in seen.bodies if b.segment_of is not None and b.surface is None):
        row = [i for i, b in enumerate(seen.bodies) if b.segment_of == k]
        out.append(_of_segments([seen.bodies[i] for i in row], at[:, row], present[:, k]))
    for p in seen.patches:
        for line in p.lines() if p.body else ():
            world = np.einsum("nij,cj->nci", at[:, p.body, :3, :3], line) + at[:, p.body, None, :3, 3]
            out.append(Stroke(world, 0.0, palette.GROUND, False, float("-inf"), present[:, p.body]))
    for k, c in enumerate(seen.closures):
        place = (at[:, c.b] @ matrix(c.placement_b))[:, None, :3, 3]
        ends = np.repeat(place, 2, axis=1)
        nearest = float(np.nanmean(VIEW.nearness(place))) + seen.size
        out.append(Stroke(ends, 0.045 * seen.size, palette.CLOSED, False, nearest, closed[:, k]))
    return out


def _force_strokes(touching: ContactForces, size: float) -> list[Stroke]:
    """Arrows of the forces of contacts, over everything else: one for each point and what it does there."""
    ways = touching.arrows(size)
    lengths = np.linalg.norm(ways, axis=-1, keepdims=True)
    right, up = VIEW.axes
    along = np.stack([ways @ right, ways @ up], axis=-1)
    side = along[..., 1:] * right - along[..., :1] * up  # across the arrow, in the picture
    side /= np.maximum(np.linalg.norm(side, axis=-1, keepdims=True), 1e-300)
    head = np.minimum(0.25 * lengths, 0.03 * size)
    back = touching.points + ways * (1.0 - head / np.maximum(lengths, 1e-300))
    tip = touching.points + ways
    corners = np.stack([touching.points, tip, back + 0.5 * head * side, tip, back - 0.5 * head * side, tip], axis=2)
    out = []
    for k in range(len(touching.names)):
        for state, color in COLORS.items():
            shown = (touching.states[:, k] == state) & (lengths[:, k, 0] > 0.0)
            if shown.any():
                out.append(Stroke(corners[:, k], 0.006 * size, color, False, np.inf, shown))
    return out


def _of_shape(shape: Shape, at: np.ndarray, color: str, shown: np.ndarray) -> list[Stroke]:
    """A long shape as a line of its thickness, a flat one as its outline."""
    own = matrix(shape.placement)
    if shape.mesh is not None:
        low, high = shape.mesh.box
        own[:3, 3] += own[:3, :3] @ (0.5 * (low + high))
        shape = replace(shape, kind="box", size=tuple((high - low).tolist()), mesh=None)
    if shape.kind in ("capsule", "cylinder"):
        radius, length = shape.size
        if length > 1.2 * radius:
            corners, width, closed = np.array([(0, 0, -0.5 * length), (0, 0, 0.5 * length)]), 2.0 * radius, False
        else:
            corners, width, closed = (radius - 0.5 * length) * ROUND, length, True
    elif shape.kind == "box":
        order = np.argsort(shape.size)[::-1]
        a, b = (0.5 * shape.size[k] * np.eye(3)[k] for k in order[:2])
        corners, width, closed = np.array([a + b, a - b, -a - b, b - a]), 0.6 * shape.size[order[2]], True
    else:
        corners, width, closed = np.zeros((2, 3)), 2.0 * max(shape.size), False
    local = corners @ own[:3, :3].T + own[:3, 3]
    world = np.einsum("nij,cj->nci", at[:, :3, :3], local) + at[:, None, :3, 3]
    return [Stroke(world, width, color, closed, float(np.nanmean(VIEW.nearness(world))), shown)]


def _of_surface(body: SceneBody, at: np.ndarray, eta: np.ndarray, shown: np.ndarray) -> list[Stroke]:
    """A surface that bends by eta (n, modes), at poses (n, 4, 4): the outlines of its patches."""
    assert body.surface is not None
    found = patches(body.surface)
    world = at[:, None] @ found.poses(eta)
    shapes = [replace(body.shapes[0], mesh=mesh) for mesh in found.meshes]
    return [s for k, shape in enumerate(shapes) for s in _of_shape(shape, world[:, k], body.color, shown)]


def _of_segments(row: list[SceneBody], at: np.ndarray, shown: np.ndarray) -> Stroke:
    """A flexible body as one outline: both edges of its segments, at poses (n, k, 4, 4), as they are seen."""
    sizes = np.array([_box(b.shapes[0]) for b in row])
    ahead = 0.5 * sizes[:, :1] * at[..., :3, 0]
    starts, ends = at[..., :3, 3] - ahead, at[..., :3, 3] + ahead
    middle = np.concatenate([starts[:, :1], 0.5 * (ends[:, :-1] + starts[:, 1:]), ends[:, -1:]], axis=1)
    right, up = VIEW.axes
    side = (at[..., :3, 0] @ up)[..., None] * right - (at[..., :3, 0] @ right)[..., None] * up  # across, in the picture
    side /= np.maximum(np.linalg.norm(side, axis=-1, keepdims=True), 1e-300)
    wide = [np.abs((side * at[..., :3, j]).sum(axis=-1)) * sizes[:, j] for j in (1, 2)]
    is_round = row[0].shapes[0].kind != "box"
    half = 0.5 * side * (np.hypot(*wide) if is_round else wide[0] + wide[1])[..., None]
    half = np.concatenate([half[:, :1], 0.5 * (half[:, :-1] + half[:, 1:]), half[:, -1:]], axis=1)
    edges = np.concatenate([middle + half, (middle - half)[:, ::-1]], axis=1)
    color = row[0].shapes[0].color or row[0].color
    return Stroke(edges, 0.0, color, True, float(np.nanmean(VIEW.nearness(middle))), shown)


def _box(shape: Shape) -> tuple[float, float, float]:
    """Length along x and widths along y and z [m] of a segment."""
    if shape.kind == "box":
        return shape.size  # type: ignore[return-value]
    return shape.size[1], 2.0 * shape.size[0], 2.0 * shape.size[0]


def _below(run: Trajectory, forces: bool) -> tuple[str, dict[str, np.ndarray]]:
    """Label and values of the plot: forces at the loops, or energies."""
    if run.model.loops and forces:
        try:
            found = run.reactions()
            return "force at the loops [N]", {
                x.name: np.linalg.norm(found[x.name][:, 3:], axis=-1) for x in run.model.loops[: len(palette.LIMBS)]
            }
        except SpanloopError:
            pass
    kinetic, potential = run.energy.T
    return "energy [J]", {"kinetic": kinetic, "potential": potential - potential[0]}


def _plot(run: Trajectory, values: dict[str, np.ndarray]) -> Plot:
    everything = np.concatenate(list(values.values()))
    shown = everything[np.isfinite(everything)]
    low, high = float(shown.min(initial=0.0)), float(shown.max(initial=0.0))
    rounding = noise_levels(run.model)["N"]
    room = 0.06 * (high - low) if high - low > rounding else 1.0
    times = (float(run.times[0]), float(run.times[-1]) if run.duration > 0.0 else float(run.times[0]) + 1.0)
    return Plot(LEFT, TOP + HEIGHT + 40.0, WIDTH - LEFT - RIGHT, BELOW, times, (low, high + room))


def _curves(plot: Plot, run: Trajectory, values: dict[str, np.ndarray], duration: float) -> list[str]:
    out, right = [], LEFT + plot.width
    for k, (name, values_of) in enumerate(values.items()):
        y = np.nan_to_num(values_of, nan=plot.y_range[0], posinf=plot.y_range[1], neginf=plot.y_range[0])
        color = palette.LIMBS[(k + 1) % len(palette.LIMBS)]
        x, up = plot.moving_dot(run.times, y)
        motion = (moving("cx", x, duration), moving("cy", up, duration))
        label = {"text_anchor": "end", "fill": color, **halo(PAPER)}
        out += [
            *(plot.line(run.times[s], y[s], color) for s in _spans(run)),
            element("circle", *motion, cx=number(plot.x(run.times[0])), cy=up[0], r=4.5, fill=color),
            text(name, right - 110.0 * (len(values) - 1 - k), plot.top - 12, 13, **label),
        ]
    return out


def _spans(run: Trajectory) -> list[slice]:
    """The samples of each segment; a line ends with its segment."""
    edges = np.cumsum([0, *map(len, run.segments)]).tolist()
    return [slice(a, b) for a, b in pairwise(edges)]


def _event_lines(plot: Plot, run: Trajectory) -> list[str]:
    """A thin line at each event, with its name under the pointer."""
    bottom, out = plot.top + plot.height, []
    for time, kind, name in zip(run.events.time, run.events.kind, run.events.name, strict=True):
        words, x = element("title", escape(f"{time:.4g} s: {kind} {name}")), plot.x(float(time))
        color = palette.EVENTS.get(str(kind), GREY)
        out.append(element("line", words, x1=x, x2=x, y1=plot.top, y2=bottom, stroke=color, stroke_opacity=0.6))
    return out


def _subtitle(run: Trajectory) -> str:
    m = run.model
    events = f", {len(run.events)} events" if len(run.events) else ""
    loops = f", {len(m.loops)} loops closed to {np.nanmax(run.closure_residual):.0e} m" if m.loops else ""
    bodies = "1 body" if m.n_bodies == 1 else f"{m.n_bodies} bodies"
    contacts = f", {len(m.contacts)} contact{'s' * (len(m.contacts) != 1)}" if m.contacts else ""
    size = f"{bodies}, {m.nv} degrees of freedom{loops}{contacts}{events}"
    return f"{size}; {run.duration:g} s, simulated by compiled kernels"
