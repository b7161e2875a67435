"""Arms that hold one object, each by a grasp whose normal points at the object's axis."""

from __future__ import annotations

import math

import numpy as np

import spanloop as sl


def held_by_arms(kind, m: int = 3) -> tuple[sl.Dynamics, np.ndarray]:
    """Arms that hold an object, at their start, with normals toward its axis."""
    model, q = sl.zoo.arms_with_object(m, grasp="spherical"), sl.zoo.arms_with_object_start(m)
    robot = sl.Dynamics(model, target="python")
    for k in range(1, m + 1):
        link, at = model.frame(f"arm{k}_tool").body, robot.pose(q, f"arm{k}_tool")[:3, 3]
        normal = np.eye(4)
        up, inward = np.array([0.0, 0.0, 1.0]), np.array([-at[0], -at[1], 0.0]) / math.hypot(at[0], at[1])
        normal[:3] = np.stack([np.cross(up, inward), up, inward, at], axis=1)
        for name, body in ((f"normal{k}", "object"), (f"tip{k}", link)):
            there = np.linalg.inv(robot.pose(q, body)) @ normal
            model = model.with_frame(name, body, there[:3, 3], there[:3, :3])
        model = model.remove(f"holding{k}").with_loop(f"tip{k}", f"normal{k}", kind, name=f"holding{k}")
    return sl.Dynamics(model, target="python"), q
