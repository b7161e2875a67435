"""A picture of a mechanism at one position, drawn in NumPy, with a transparent background."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.model import Model
from spanloop.view.beams.segments import surface_coordinates
from spanloop.view.scene import extent_points, poses, scene
from spanloop.view.video.rasterizer import Eye, Triangles, picture
from spanloop.view.video.solids import bent_surfaces, slides, solids
from spanloop.view.video.video import direction, distance, triangles
from spanloop.view.window import window

VIEW = (-0.95, 0.4)  # azimuth and elevation of the camera [rad], as of videos
FILLED = 0.86  # share of the picture's height or width


def still(
    model: Model, q: ArrayLike, size: tuple[int, int] = (480, 300), view: tuple[float, float] = VIEW
) -> np.ndarray:
    """A picture (height, width, 4) of a mechanism at q (nq,): red, green, blue and opacity, as bytes.

    It is drawn over black and over white; where both agree it is opaque.
    """
    q = np.asarray(q, float)
    seen, at = scene(model, q), poses(Dynamics(model), q[None])
    shown = window(seen, extent_points(seen, at))
    present = np.ones(len(seen.bodies), bool)
    solid = solids(seen).shown(present, _closed(len(seen.closures)))
    bent = bent_surfaces(seen, surface_coordinates(model, q), present)
    parts = triangles([solid.at(at[0]), slides(seen, at[0], present), bent and bent.at(at[0])])
    if parts is None:
        return np.zeros((size[1], size[0], 4), np.uint8)
    eye = _near(
        Eye(shown.middle + distance(shown, view, size[0] / size[1]) * direction(view), shown.middle, size), parts
    )
    black, white = (
        picture(eye, np.full((size[1], size[0], 3), shade, np.float32), shown.ground, parts) for shade in (0.0, 1.0)
    )
    opacity = np.clip(1.0 - (white - black).mean(axis=2, keepdims=True), 0.0, 1.0)
    color = np.where(opacity > 0.0, black / np.maximum(opacity, 1e-6), 0.0)
    return np.round(255.0 * np.clip(np.concatenate([color, opacity], axis=2), 0.0, 1.0)).astype(np.uint8)


def _near(eye: Eye, parts: Triangles) -> Eye:
    """The eye, moved such that the triangles are in the middle of the picture and nearly fill it."""
    for _ in range(3):
        flat, far = eye.project(parts.corners.reshape(-1, 3))
        low, high = flat.min(axis=0), flat.max(axis=0)
        off = 0.5 * (low + high - eye.shape) * np.array([1.0, -1.0]) / eye.focal * float(far.mean())
        target = eye.target + off @ eye.axes[:2]
        away = (eye.position - eye.target) * float(np.max((high - low) / eye.shape)) / FILLED
        eye = Eye(target + away, target, eye.shape)
    return eye


def _closed(count: int) -> np.ndarray:
    """Flags of the marks of closures: all closed, none broken."""
    return np.repeat([True, False], count)
