"""Numbers for tests: transforms and spatial vectors as arrays, and derivatives by differences."""

from __future__ import annotations

import numpy as np


def matrix(transform) -> np.ndarray:
    """The 4x4 matrix of a Transform or a Placement."""
    x = np.eye(4)
    rotation = transform.rotation
    x[:3, :3] = rotation.matrix() if hasattr(rotation, "matrix") else rotation
    x[:3, 3] = transform.translation if hasattr(transform, "translation") else transform.position
    return x


def columns(vectors) -> np.ndarray:
    """Motions or forces as the columns of a 6xn matrix."""
    return np.array([tuple(s) for s in vectors], dtype=float).reshape(-1, 6).T


def derivative(function, h: float = 2e-3) -> np.ndarray:
    """d/dt at t = 0 by central differences of sixth order.

    Truncation, h⁶/140 · |7th derivative|, is below 1e-13 for rates of order 3; so is rounding, 1e-16 / h.
    """
    parts = zip((1, 2, 3), (45.0, -9.0, 1.0), strict=True)
    return sum(w * (np.asarray(function(k * h)) - np.asarray(function(-k * h))) for k, w in parts) / (60.0 * h)


def twist(pose) -> np.ndarray:
    """Angular and linear velocity of a moving 4x4 pose at t = 0, in its own axes: X⁻¹ dX/dt."""
    x = np.asarray(pose(0.0))
    rate = derivative(pose)
    w = x[:3, :3].T @ rate[:3, :3]
    return np.array((w[2, 1], w[0, 2], w[1, 0], *(x[:3, :3].T @ rate[:3, 3])))


def body_pose(model, q, name: str) -> np.ndarray:
    """Pose (4, 4) of a frame or body in the world, joint by joint."""
    frame = model.frame(name)
    x = matrix(frame.placement)
    body = frame.body
    while body != "world":
        joint = model.joints[model.body_number[body] - 1]
        step = matrix(joint.placement) @ matrix(joint.kind.transform(list(q[model.q_slice(joint.name)])))
        x = step @ x
        body = joint.parent
    return x
