"""Triangles of simple shapes: boxes, cylinders, capsules, spheres, ellipsoids and arrows."""

from __future__ import annotations

import numpy as np

from spanloop.view.meshes.mesh import NO_COLOR, Mesh

AROUND = 24  # corners of a circle
CAP = 6  # rings of half a sphere


def primitive(kind: str, size: tuple[float, ...]) -> Mesh:
    """The triangles of a shape of this kind, centred at the origin, as Shape describes its size."""
    if kind == "box":
        return _box(np.array(size))
    if kind == "cylinder":
        radius, length = size
        return _turned(np.array([(0.0, -0.5), (1.0, -0.5), (1.0, 0.5), (0.0, 0.5)]) * (radius, length))
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * CAP + 1)
    ball = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if kind == "capsule":
        radius, length = size
        lower, upper = radius * ball[: CAP + 1], radius * ball[CAP:]
        return _turned(np.concatenate([lower - (0.0, 0.5 * length), upper + (0.0, 0.5 * length)]))
    round_ball = _turned(ball)
    halves = np.array(size if kind == "ellipsoid" else size * 3)
    return Mesh(round_ball.vertices * halves, round_ball.faces, round_ball.colors)


def arrow(radius: float, length: float) -> Mesh:
    """An arrow from the origin along z; radius [m]: of its head."""
    shaft, head = 0.42 * radius, 0.74 * length
    return _turned(np.array([(0.0, 0.0), (shaft, 0.0), (shaft, head), (radius, head), (0.0, length)]))


def _box(size: np.ndarray) -> Mesh:
    corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * size
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([t for a, b, c, d in sides for t in ((a, b, c), (a, c, d))])
    return Mesh(corners, faces, np.full(len(faces), NO_COLOR))


def _turned(profile: np.ndarray) -> Mesh:
    """A profile (n, 2) of radii and heights, turned about z."""
    a = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    circle = np.stack([np.cos(a), np.sin(a)], axis=1)
    rings = [np.column_stack([r * circle, np.full(AROUND, z)]) for r, z in profile]
    k = np.arange(AROUND)
    after = (k + 1) % AROUND
    faces = []
    for i in range(len(profile) - 1):
        low, high = i * AROUND, (i + 1) * AROUND
        if profile[i][0] > 1e-12:
            faces.append(np.stack([low + k, low + after, high + after], axis=1))
        if profile[i + 1][0] > 1e-12:
            faces.append(np.stack([low + k, high + after, high + k], axis=1))
    joined = np.concatenate(faces)
    return Mesh(np.concatenate(rings), joined, np.full(len(joined), NO_COLOR))
