"""Where to look from: all of the mechanism in view, and planar ones from in front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_DISTANCE = 1.05  # in reaches of the mechanism
_FLAT = 0.12  # a spread below this share of the largest is none


@dataclass(frozen=True)
class Camera:
    """Position and what is looked at, (3,) [m] in the world."""

    position: np.ndarray
    target: np.ndarray


def camera(points: np.ndarray, size: float, up: np.ndarray) -> Camera:
    """For points (n, 3) of a mechanism of this size, with this direction upward."""
    low, high = points.min(axis=0), points.max(axis=0)
    target = 0.5 * (low + high)
    direction = _usual(up)
    if len(points) >= 3:
        _, spread, axes = np.linalg.svd(points - target)
        normal = axes[2]
        if spread[2] < _FLAT * spread[0] and abs(normal @ up) < 0.3:  # upright and flat
            direction = normal * (1.0 if normal @ direction > 0.0 else -1.0) + 0.22 * up + 0.25 * np.cross(up, normal)
    return Camera(target + _DISTANCE * size * direction / np.linalg.norm(direction), target)


def _usual(up: np.ndarray) -> np.ndarray:
    """Obliquely from above."""
    side = np.array((1.0, 0.0, 0.0)) if abs(up[0]) < 0.9 else np.array((0.0, 1.0, 0.0))
    side -= (side @ up) * up
    side /= np.linalg.norm(side)
    return 0.75 * side - 0.8 * np.cross(up, side) + 0.55 * up


def upward(gravity) -> np.ndarray:
    """Against gravity (3,), along z without it."""
    g = np.asarray(gravity, float)
    return -g / np.linalg.norm(g) if np.any(g) else np.array((0.0, 0.0, 1.0))
