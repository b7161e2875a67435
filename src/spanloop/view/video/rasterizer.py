"""A small renderer in NumPy: triangles with a depth buffer, light, shadows on a floor with lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.view.surface_patches import round_step
from spanloop.view.video.solids import ragged

LENS = 0.7  # rad, up and down
SUN = np.array((0.45, -0.4, 0.95)) / np.linalg.norm((0.45, -0.4, 0.95))
PAPER, INK = np.array((0.965, 0.961, 0.945), np.float32), np.array((0.25, 0.28, 0.32), np.float32)
CHECKS = 0.3  # of a floor that is touched: how much darker every second check is
THROUGH = 0.35  # share of the colour of what is seen through others
SAMPLES = 2  # of each pixel, along each side


@dataclass(frozen=True)
class Eye:
    """A camera at a position (3,) [m] that looks at a target, for pictures of (width, height) pixels; z is up."""

    position: np.ndarray
    target: np.ndarray
    shape: tuple[int, int]

    @property
    def axes(self) -> np.ndarray:
        """Right, up and toward the viewer, in rows (3, 3)."""
        z = self.position - self.target
        z = z / np.linalg.norm(z)
        x = np.cross((0.0, 0.0, 1.0), z)
        x /= np.linalg.norm(x)
        return np.array([x, np.cross(z, x), z])

    @property
    def focal(self) -> float:
        """Pixels of a length at distance one."""
        return 0.5 * self.shape[1] / float(np.tan(0.5 * LENS))

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pixels (..., 2) and distances (...) [m] of points (..., 3); the pixels of those behind are not finite."""
        seen = (points - self.position) @ self.axes.T
        far = -seen[..., 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(far > 1e-6, self.focal / far, np.nan)
        x = 0.5 * self.shape[0] + scale * seen[..., 0]
        y = 0.5 * self.shape[1] - scale * seen[..., 1]
        return np.stack([x, y], axis=-1), far

    def rays(self) -> np.ndarray:
        """Directions (height, width, 3) through the middles of the pixels."""
        w, h = self.shape
        x, y = np.meshgrid(np.arange(w) + 0.5 - 0.5 * w, 0.5 * h - np.arange(h) - 0.5)
        return np.stack([x, y, np.full_like(x, -self.focal)], axis=-1) @ self.axes


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles in the world: corners (m, 3, 3) [m], normals at them (m, 3, 3), and colours (m, 3), 0 to 1."""

    corners: np.ndarray
    normals: np.ndarray
    colors: np.ndarray


def picture(
    eye: Eye, background: np.ndarray, floor: float, solid: Triangles | None, through: Triangles | None = None
) -> np.ndarray:
    """A picture (height, width, 3), 0 to 1, of triangles.

    background (height, width, 3): see `ground`; floor: the height of the ground [m], on which shadows fall. through:
    triangles that are seen faintly through all others.
    """
    fine = Eye(eye.position, eye.target, (SAMPLES * eye.shape[0], SAMPLES * eye.shape[1]))
    image = background.repeat(SAMPLES, axis=0).repeat(SAMPLES, axis=1)
    if solid is not None:
        if eye.position[2] > floor:
            dark = _shadow(fine, solid.corners, floor).astype(np.float32)[..., None]
            image += 0.16 * dark * (INK - image)
        _paint(fine, image, solid)
    if through is not None:
        _paint(fine, image, through, THROUGH)
    parts = [image[i::SAMPLES, j::SAMPLES] for i in range(SAMPLES) for j in range(SAMPLES)]
    return np.asarray(np.clip(sum(parts[1:], parts[0]) / len(parts), 0.0, 1.0))


def _paint(eye: Eye, image: np.ndarray, solid: Triangles, share: float = 1.0) -> None:
    """Draw triangles into an image, the nearest in front; share: of their colour in the picture's."""
    flat, far = eye.project(solid.corners)
    good = np.flatnonzero(np.isfinite(flat).all(axis=(1, 2)))
    flat, near = flat[good], 1.0 / far[good]
    triangle, pixel, x, y = _pixels(_rows(flat, eye.shape), eye.shape[0])
    if not len(pixel):
        return
    plane = _planes(flat, near[..., None])[..., 0]  # 1 / distance is linear on the screen
    first = _nearest(pixel, (plane[triangle] * np.stack([x, y, np.ones_like(x)], axis=1)).sum(axis=1), image)
    triangle, pixel, x, y = triangle[first], pixel[first], x[first], y[first]
    lit = _lit(eye, solid.corners[good], solid.normals[good], solid.colors[good])
    at = np.stack([x, y, np.ones_like(x)], axis=1).astype(np.float32)
    tints = np.einsum("pk,pkc->pc", at, _planes(flat, lit).astype(np.float32)[triangle])
    under = image.reshape(-1, 3)
    under[pixel] = tints if share == 1.0 else under[pixel] + share * (tints - under[pixel])


def _rows(flat: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Triangle, row, first pixel and pixel after the last, of each row of pixels in each triangle (m, 3, 2)."""
    width, height = shape
    low = np.clip(np.ceil(flat[..., 1].min(axis=1) - 0.5), 0, height).astype(np.int64)
    high = np.clip(np.ceil(flat[..., 1].max(axis=1) - 0.5), 0, height).astype(np.int64)
    t, step = ragged(np.maximum(high - low, 0))
    row = low[t] + step
    y = row + 0.5
    left, right = np.full(len(t), np.inf), np.full(len(t), -np.inf)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        a, b = flat[t, i], flat[t, j]
        rise = b[:, 1] - a[:, 1]
        share = (y - a[:, 1]) / np.where(rise == 0.0, 1.0, rise)
        x = a[:, 0] + share * (b[:, 0] - a[:, 0])
        crosses = (rise != 0.0) & (share >= 0.0) & (share <= 1.0)
        left = np.where(crosses & (x < left), x, left)
        right = np.where(crosses & (x > right), x, right)
    with np.errstate(invalid="ignore"):
        start = np.nan_to_num(np.clip(np.ceil(left - 0.5), 0, width)).astype(np.int64)
        end = np.nan_to_num(np.clip(np.ceil(right - 0.5), 0, width)).astype(np.int64)
    some = end > start
    return t[some], row[some], start[some], end[some]


def _pixels(rows: tuple[np.ndarray, ...], width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Triangle, pixel, and its middle x, y, wherever a triangle covers a pixel."""
    t, row, start, end = rows
    r, step = ragged(end - start)
    x = start[r] + step
    return t[r], row[r] * width + x, x + 0.5, row[r] + 0.5


def _planes(flat: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Coefficients (m, 3, c) of x, y and 1 that give values (m, 3, c) at the corners (m, 3, 2) of triangles."""
    (ax, ay), (bx, by), (cx, cy) = (flat[:, k].T for k in range(3))
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    inverse = (1.0 / np.where(np.abs(area) > 1e-9, area, np.inf))[:, None]
    u, v = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
    along_x = (u * (cy - ay)[:, None] - v * (by - ay)[:, None]) * inverse
    along_y = (v * (bx - ax)[:, None] - u * (cx - ax)[:, None]) * inverse
    return np.stack([along_x, along_y, values[:, 0] - along_x * ax[:, None] - along_y * ay[:, None]], axis=1)


def _nearest(pixel: np.ndarray, near: np.ndarray, image: np.ndarray) -> np.ndarray:
    """The entry with the largest `near` of each pixel."""
    best = np.zeros(image.shape[0] * image.shape[1])
    np.maximum.at(best, pixel, near)
    first = np.flatnonzero(near == best[pixel])
    chosen = np.full(len(best), -1)
    chosen[pixel[first]] = first
    return chosen[chosen >= 0]


def _lit(eye: Eye, corners: np.ndarray, normals: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """Colours (m, 3, 3) at the corners of triangles, lit from above and from the viewer's side."""
    view = eye.position - corners
    view /= np.maximum(np.linalg.norm(view, axis=-1, keepdims=True), 1e-300)
    toward = np.einsum("mki,mki->mk", normals, view)
    face = normals * np.where(toward < 0.0, -1.0, 1.0)[..., None]
    sun = face @ SUN
    mirrored = 2.0 * sun[..., None] * face - SUN
    gloss = 0.18 * np.maximum(np.einsum("mki,mki->mk", mirrored, view), 0.0) ** 40
    light = 0.58 * (0.83 + 0.17 * face[..., 2]) + 0.5 * np.maximum(sun, 0.0) + 0.16 * np.abs(toward)
    return np.asarray(np.maximum(colors[:, None] * light[..., None] + gloss[..., None], 0.0) ** 0.94)


def ground(eye: Eye, floor: float, size: float, checkered: bool = False) -> np.ndarray:
    """The background (height, width, 3): a floor with lines that fade toward the horizon; checkered if touched."""
    rays = eye.rays()
    length = np.linalg.norm(rays, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        along = (floor - eye.position[2]) / rays[..., 2]
        place = eye.position[:2] + along[..., None] * rays[..., :2]
        wide = along * length**2 / (eye.focal * np.maximum(np.abs(rays[..., 2]), 0.05 * length))  # metres a pixel
        gap = round_step(size / 12.0)
        line = np.maximum(0.35 * _lines(place, gap, wide), 0.8 * _lines(place, 5.0 * gap, wide))
        fade = 1.0 - np.clip((np.linalg.norm(place - eye.target[:2], axis=-1) / (4.0 * size) - 0.25) / 0.75, 0.0, 1.0)
        dark = CHECKS * (np.floor(place / (5.0 * gap)).sum(axis=-1) % 2.0) if checkered else 0.0
    share = np.nan_to_num(np.where(along > 0.0, (0.10 + dark + 0.9 * line) * 0.32 * fade, 0.0))[..., None]
    return np.asarray(PAPER + share * (INK - PAPER), np.float32)


def _lines(place: np.ndarray, gap: float, wide: np.ndarray) -> np.ndarray:
    """How much of each pixel lines at multiples of gap cover, 0 to 1."""
    off = np.abs((place / gap + 0.5) % 1.0 - 0.5) * gap
    return np.asarray((1.0 - np.minimum(off / np.maximum(wide, 1e-12)[..., None], 1.0)).max(axis=-1))


def _shadow(eye: Eye, corners: np.ndarray, floor: float) -> np.ndarray:
    """Whether each pixel (height, width) is in the shadow of a triangle above the floor."""
    high = corners[corners[..., 2].min(axis=1) > floor - 1e-9]
    flat, _ = eye.project(high - ((high[..., 2:] - floor) / SUN[2]) * SUN)
    _, row, start, end = _rows(flat[np.isfinite(flat).all(axis=(1, 2))], eye.shape)
    width, height = eye.shape
    edges = np.bincount(row * (width + 1) + start, minlength=height * (width + 1))
    edges = edges - np.bincount(row * (width + 1) + end, minlength=height * (width + 1))
    return np.asarray(np.cumsum(edges.reshape(height, width + 1), axis=1)[:, :width] > 0)
