"""The initial camera: the whole mechanism in view, planar mechanisms from the front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spanloop.view.scene import Scene, extent_points

_DISTANCE = 2.1  # in radii of the mechanism
_FLAT = 0.2  # a cloud of points is flat if its smallest extent is below this share of the largest


@dataclass(frozen=True)
class Camera:
    """Position and target (3,) [m] in the world."""

    position: np.ndarray
    target: np.ndarray


def camera(points: np.ndarray, up: np.ndarray) -> Camera:
    """A camera that sees all points (n, 3) [m]; up (3,) is a unit vector."""
    target = 0.5 * (points.min(axis=0) + points.max(axis=0))
    radius = np.linalg.norm(points - target, axis=1).max(initial=1e-3)
    direction = _oblique(up)
    if len(points) >= 3:
        _, spread, axes = np.linalg.svd(points - points.mean(axis=0))
        normal = axes[2]
        flat, steep = spread[2] < _FLAT * spread[0], abs(normal @ up)
        if flat and steep < 0.3:  # a vertical plane: from the front
            direction = normal * (1.0 if normal @ direction > 0.0 else -1.0) + 0.22 * up + 0.25 * np.cross(up, normal)
        elif flat and steep > 0.9:  # a horizontal plane: from above
            direction = direction + 1.2 * up
    return Camera(target + _DISTANCE * radius * direction / np.linalg.norm(direction), target)


def outline(scene: Scene, poses: np.ndarray) -> np.ndarray:
    """Corners (n, 3) [m] of the boxes around all shapes at poses (n_bodies + 1, 4, 4), and the bodies' origins."""
    return np.concatenate([poses[1:, :3, 3], extent_points(scene, poses[None])[0]])


def _oblique(up: np.ndarray) -> np.ndarray:
    """A direction obliquely from above."""
    side = np.array((1.0, 0.0, 0.0)) if abs(up[0]) < 0.9 else np.array((0.0, 1.0, 0.0))
    side -= (side @ up) * up
    side /= np.linalg.norm(side)
    return 0.75 * side - 0.8 * np.cross(up, side) + 0.55 * up


def upward(gravity: ArrayLike) -> np.ndarray:
    """The unit vector against gravity (3,); z without gravity."""
    g = np.asarray(gravity, float)
    return -g / np.linalg.norm(g) if np.any(g) else np.array((0.0, 0.0, 1.0))
