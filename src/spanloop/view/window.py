"""The part of the world that a picture of a motion shows, and the height of the floor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.view.body_shapes import corners
from spanloop.view.contact_shapes import floor_height
from spanloop.view.scene import Scene

SURROUNDINGS = 0.3  # of a mechanism that travels on what it touches, in its sizes
FLOOR_SEEN = 2.0  # of the picture's extent: a floor that is touched, no farther below, is in the picture


@dataclass(frozen=True, eq=False)
class Window:
    """A box from low (3,) to high (3,) [m] that holds the whole motion; or, of a mechanism that travels far, what is
    around its middle, which the camera follows: `follow` holds that middle (n, 3). ground: the floor's height [m]."""

    low: np.ndarray
    high: np.ndarray
    follow: np.ndarray | None
    ground: float
    size: float

    @property
    def middle(self) -> np.ndarray:
        """The middle (3,) of the box [m]."""
        return 0.5 * (self.low + self.high)

    @property
    def half(self) -> np.ndarray:
        """Half its extents (3,) [m]; none is tiny."""
        return np.maximum(0.5 * (self.high - self.low), 0.05 * self.size)


def window(seen: Scene, points: np.ndarray) -> Window:
    """The window of a motion; points (n, k, 3) [m]: corners of all shapes, at each time."""
    points = _while_seen(points)
    middle = 0.5 * (np.nanmin(points, axis=1) + np.nanmax(points, axis=1))
    travels = seen.floats and np.linalg.norm(np.ptp(middle, axis=0)) > seen.size
    ground = _ground(seen, points)
    if travels:
        points = points - (middle - middle[0])[:, None]
    low, high = (f(points.reshape(-1, 3), axis=0) for f in (np.nanmin, np.nanmax))
    if travels and seen.surfaces:  # what it touches is seen around it
        around = SURROUNDINGS * seen.size * np.array((1.0, 1.0, 0.0))
        low, high = low - around, high + around
    if floor_height(seen.surfaces) is not None and low[2] - ground < FLOOR_SEEN * max(seen.size, *(high - low)):
        low[2] = min(low[2], ground)
    return Window(low, high, middle if travels else None, ground, seen.size)


def _while_seen(points: np.ndarray) -> np.ndarray:
    """The points (n, k, 3); while nothing is there, those of the next time at which something is, or of the last."""
    known = np.flatnonzero(np.isfinite(points).all(axis=2).any(axis=1))
    if not len(known):
        return np.zeros((len(points), 1, 3))
    return points[next_known(known, len(points))]


def next_known(known: np.ndarray, count: int) -> np.ndarray:
    """For each of `count` samples (count,) the first of the known ones (k,) that is not before it, or the last."""
    return known[np.searchsorted(known, np.arange(count)).clip(max=len(known) - 1)]


def _ground(seen: Scene, points: np.ndarray) -> float:
    """The floor that it touches; else where the mechanism stands at first; if it hangs, below all that it reaches, and
    below the slopes that it touches."""
    touched = floor_height(seen.surfaces)
    if touched is not None:
        return touched
    slopes = [corners(s)[:, 2] for p in seen.patches if p.body == 0 for s in p.shapes("")]
    return min(_standing(seen, points), *(float(z.min()) for z in slopes)) if slopes else _standing(seen, points)


def _standing(seen: Scene, points: np.ndarray) -> float:
    first, lowest = np.nanmin(points[0, :, 2]), np.nanmin(points[..., 2])
    if seen.floats:
        return float(first)
    return float(min(first, 0.0) if first > -0.1 * seen.size else lowest - 0.03 * seen.size)
