"""Bodies that come and go: what they carry, their degrees of freedom, and the state in which they appear."""

from __future__ import annotations

import numpy as np

from spanloop.math import quaternion, rotation_vector
from spanloop.model import Model
from spanloop.model.parts import Joint
from spanloop.simulation.events.kinds import Appear


def carried_by(model: Model, body: str) -> set[str]:
    """A body and all bodies that it carries, by name."""
    out = {body}
    for j in model.joints:  # parents first
        if j.parent in out:
            out.add(j.child)
    return out


def dofs_of(model: Model, body: str) -> list[int]:
    """Degrees of freedom of the joint of a body and of all joints that it carries."""
    carried = carried_by(model, body)
    slices = [model.v_slice(j.name) for j in model.joints if j.child in carried]
    return [i for s in slices for i in range(s.start, s.stop)]


def body_of(model: Model, name: str) -> str:
    """The body that a frame of this name is fixed to, or that has this name."""
    return next((f.body for f in model.frames if f.name == name), name)


def appearance(joint: Joint, event: Appear) -> tuple[list[float], list[float]]:
    """q (7) and v (6) of a free joint with which its body appears; q is empty if the event gives no pose."""
    if event.pose is None:
        return [], [0.0] * 6
    own = np.eye(4)
    own[:3, :3], own[:3, 3] = joint.placement.rotation, joint.placement.position
    pose = np.asarray(event.pose, dtype=float)
    velocity = np.zeros(6) if event.velocity is None else np.asarray(event.velocity, dtype=float)
    inside = np.linalg.inv(own) @ pose
    q = [*quaternion.exponential(rotation_vector.of_matrix(inside[:3, :3].tolist())), *inside[:3, 3]]
    turn = pose[:3, :3].T
    return [float(x) for x in q], [float(x) for x in (*(turn @ velocity[:3]), *(turn @ velocity[3:]))]
