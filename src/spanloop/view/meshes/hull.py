"""Convex hulls of a few points as triangles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from spanloop.types import Floats3
from spanloop.view.meshes.mesh import Mesh


def hull_mesh(vertices: Sequence[Floats3]) -> Mesh:
    """The convex hull of points (n, 3) as triangles: those through three points with all others on one side."""
    points = np.array(vertices, float)
    reach = float(np.ptp(points, axis=0).max()) or 1.0
    faces = []
    for i, j, k in combinations(range(len(points)), 3):
        normal = np.cross(points[j] - points[i], points[k] - points[i])
        area = float(np.linalg.norm(normal))
        if area < 1e-12 * reach * reach:
            continue
        heights = (points - points[i]) @ normal / area
        if heights.max() < 1e-9 * reach:
            faces.append((i, j, k))
        elif heights.min() > -1e-9 * reach:
            faces.append((i, k, j))
    return Mesh.of(points, np.array(faces or [(0, 0, 0)]))
