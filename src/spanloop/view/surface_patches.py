"""The parts of contact planes that a picture shows: checkered rectangles under what touches them, arrows on belts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.model.parts import Placement
from spanloop.view import palette
from spanloop.view.body_shapes import Shape, corners
from spanloop.view.contact_shapes import SceneSurface, floor_height
from spanloop.view.meshes.mesh import Mesh

AROUND = 0.25  # room around what touches, in sizes of the mechanism
LONGEST = 60.0  # side of a rectangle at most, in sizes of the mechanism
CHECKS = 12  # along the longer side, about
RAISED = 2e-3  # height of a belt's arrows above it, in their length
ARROW = np.array([(-0.5, -0.09), (0.1, -0.09), (0.1, -0.24), (0.5, 0.0), (0.1, 0.24), (0.1, 0.09), (-0.5, 0.09)])
ARROW_FACES = np.array([(0, 1, 5), (0, 5, 6), (2, 3, 4)])


@dataclass(frozen=True)
class ScenePatch:
    """A rectangle of a plane on `bodies[body]`, from low (2,) to high (2,) [m] in the axes x, y of its placement, of
    which z is the normal; both are multiples of the checks' size `gap` [m].

    is_floor: pictures draw it as their floor, without an edge. velocity (2,) [m/s]: of its surface, in the same axes.
    size [m]: of the mechanism.
    """

    body: int
    placement: Placement
    low: tuple[float, float]
    high: tuple[float, float]
    gap: float
    is_floor: bool
    velocity: tuple[float, float]
    size: float

    def shapes(self, name: str) -> tuple[Shape, ...]:
        """Its checks, unless it is the floor, and the arrows of a belt. name: distinct from those of other patches."""
        found = [] if self.is_floor else [("checks", self._checks())]
        if np.hypot(*self.velocity) > 0.0:
            found.append(("arrows", self._arrows()))
        whole = (1.0, 1.0, 1.0)
        return tuple(Shape("mesh", whole, self.placement, f"{what} of {name}", mesh=mesh) for what, mesh in found)

    def lines(self) -> list[np.ndarray]:
        """Lines between the checks, (2, 3) each, in the body's frame [m]."""
        x, y = (np.arange(n + 1) * self.gap + low for n, low in zip(self._counts, self.low, strict=True))
        flat = [np.array([(x[0], b, 0.0), (x[-1], b, 0.0)]) for b in y]
        flat += [np.array([(a, y[0], 0.0), (a, y[-1], 0.0)]) for a in x]
        turn, place = np.array(self.placement.rotation), np.array(self.placement.position)
        return [line @ turn.T + place for line in flat]

    def faces(self, point: np.ndarray, pose: np.ndarray) -> bool:
        """Whether a point (3,) [m] of the world is on the open side of the plane, at its body's pose (4, 4)."""
        place, normal = np.array(self.placement.position), np.array(self.placement.rotation)[:, 2]
        return bool((pose[:3, :3] @ normal) @ (point - pose[:3, 3] - pose[:3, :3] @ place) > 0.0)

    @property
    def _counts(self) -> tuple[int, int]:
        """How many checks there are along x and y."""
        nx, ny = (max(1, round((b - a) / self.gap)) for a, b in zip(self.low, self.high, strict=True))
        return nx, ny

    def _checks(self) -> Mesh:
        nx, ny = self._counts
        i, j = np.meshgrid(np.arange(nx + 1), np.arange(ny + 1), indexing="ij")
        points = np.stack([self.low[0] + self.gap * i, self.low[1] + self.gap * j, 0.0 * i], axis=-1).reshape(-1, 3)
        a, b = (x.ravel() for x in np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij"))
        first = a * (ny + 1) + b
        quads = np.stack([first, first + ny + 1, first + ny + 2, first + 1], axis=1)
        is_dark = (a + b + round(self.low[0] / self.gap) + round(self.low[1] / self.gap)) % 2 == 1
        dark, light = (int(x[1:], 16) for x in palette.CHECKS)
        faces = quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
        return Mesh.of(points, faces, np.repeat(np.where(is_dark, dark, light), 2))

    def _arrows(self) -> Mesh:
        """Flat arrows along the velocity through the middle, of half the mechanism's size."""
        along = np.array(self.velocity) / np.hypot(*self.velocity)
        low, high = np.array(self.low), np.array(self.high)
        length = min(0.5 * self.size, 0.6 * float((high - low).min()))
        room = float(np.abs(along) @ (high - low))
        count = int(np.clip(room / (3.0 * length), 1, 9))
        turn = np.array([along, (-along[1], along[0])])
        steps = (np.arange(count) - 0.5 * (count - 1)) * room / count
        flat = [length * ARROW @ turn + 0.5 * (low + high) + s * along for s in steps]
        points = np.column_stack([np.concatenate(flat), np.full(count * len(ARROW), RAISED * length)])
        faces = np.concatenate([ARROW_FACES + k * len(ARROW) for k in range(count)])
        return Mesh.of(points, faces, np.full(len(faces), int(palette.BELT[1:], 16)))


def patches(found: tuple[SceneSurface, ...], at: np.ndarray, size: float) -> tuple[ScenePatch, ...]:
    """A patch for each plane that covers the motion of what touches it. at (n, n_bodies + 1, 4, 4): poses; size [m]: of
    the mechanism."""
    floor = floor_height(found)
    out = []
    for surface in found:
        is_floor = surface.is_level and surface.placement.position[2] == floor
        placement = _level_axes(surface) if surface.body == 0 else surface.placement
        low, high = _extent(surface, placement, at, size)
        gap = round_step(max(float((high - low).max()) / CHECKS, size / CHECKS))
        low, high = gap * np.floor(low / gap), gap * np.ceil(high / gap)
        rise = placement.rotation[2][1]
        if floor is not None and surface.body == 0 and rise > 1e-6:
            foot = (floor - placement.position[2]) / rise  # the plane ends at the floor
            low[1] = min(max(low[1], foot), high[1] - gap)
        turn = np.array(placement.rotation)
        vx, vy, _ = (turn.T @ np.array(surface.velocity)).tolist()
        first, last = ((float(x), float(y)) for x, y in (low, high))
        out.append(ScenePatch(surface.body, placement, first, last, gap, is_floor, (vx, vy), size))
    return tuple(out)


def _level_axes(surface: SceneSurface) -> Placement:
    """The placement with its x level and y uphill; as it is, where the plane is level."""
    normal = np.array(surface.placement.rotation)[:, 2]
    level = np.cross((0.0, 0.0, 1.0), normal)
    if np.linalg.norm(level) < 1e-6:
        return surface.placement
    x = level / np.linalg.norm(level)
    turn = np.stack([x, np.cross(normal, x), normal], axis=1)
    rows = tuple(tuple(float(v) for v in row) for row in turn)
    return Placement(rows, surface.placement.position)  # type: ignore[arg-type]


def _extent(surface: SceneSurface, placement: Placement, at: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """The rectangle, low and high (2,) [m] in the plane's axes, around all that touches it while it moves."""
    turn, place = np.array(placement.rotation), np.array(placement.position)
    flat = []
    for body, shape in surface.touching:
        world = np.einsum("nij,cj->nci", at[:, body, :3, :3], corners(shape)) + at[:, body, None, :3, 3]
        own = np.einsum("nji,ncj->nci", at[:, surface.body, :3, :3], world - at[:, surface.body, None, :3, 3])
        flat.append(((own - place) @ turn)[..., :2].reshape(-1, 2))
    points = np.concatenate(flat)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        points = np.zeros((1, 2))
    start = points[0]
    low = np.maximum(points.min(axis=0), start - 0.5 * LONGEST * size) - AROUND * size
    high = np.minimum(points.max(axis=0), start + 0.5 * LONGEST * size) + AROUND * size
    return low, high


def round_step(x: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... and their fractions."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(next(k * power for k in (1.0, 2.0, 5.0, 10.0) if k * power >= x * (1.0 - 1e-9)))
