"""The rate of change of the momentum of a body, from poses and Jacobians."""

from __future__ import annotations

import numpy as np


def about_origin(six, at):
    return np.concatenate([six[:3] + np.cross(at, six[3:]), six[3:]])


def rate_of_momentum(model, robot, body, q, v, a):
    """d/dt of the body's momentum about the world's origin, less gravity's."""
    pose, i = robot.pose(q, body.name), body.inertia
    R, c = pose[:3, :3], pose[:3, 3] + pose[:3, :3] @ np.array(i.center)
    J, bias = robot.jacobian(q, body.name), robot.jacobian_bias(q, v, body.name)
    w, (alpha, at_origin) = (J @ v)[:3], np.split(J @ a + bias, 2)
    r = c - pose[:3, 3]
    acceleration = at_origin + np.cross(alpha, r) + np.cross(w, np.cross(w, r))
    inertia = R @ np.array(i.matrix()) @ R.T
    force = i.mass * (acceleration - np.array(model.gravity))
    return np.concatenate([inertia @ alpha + np.cross(w, inertia @ w) + np.cross(c, force), force])
