"""Models as parts of others: where their frames are, and how they get another base and other names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Loop, Placement
from spanloop.model.snap import rotation_of_angles, snap_rotation
from spanloop.types import Floats33


def pose_of(model: Model, q: np.ndarray, name: str) -> Placement:
    """Pose of a frame or body in the world, joint by joint, its rotation orthonormal to rounding."""
    frame = model.frame(name)
    pose, body = frame.placement, frame.body
    while body != WORLD:
        joint = model.joints[model.body_number[body] - 1]
        x = joint.kind.transform([float(c) for c in q[model.q_slice(joint.name)]])
        pose = joint.placement @ Placement(x.rotation.matrix(), x.translation) @ pose
        body = joint.parent
    rotation, _ = snap_rotation(pose.rotation)
    return Placement(rotation, pose.position)


def led_by(model: Model, prefix: str, base: Placement) -> Model:
    """The model on another base, every name but the world's led by the prefix; notes and actuators are dropped."""

    def named(name: str) -> str:
        return name if name == WORLD else prefix + name

    def placed(body: str, placement: Placement) -> Placement:
        return base @ placement if body == WORLD else placement

    def loop(x: Loop) -> Loop:
        a, b = placed(x.a, x.placement_a), placed(x.b, x.placement_b)
        return replace(x, name=named(x.name), a=named(x.a), b=named(x.b), placement_a=a, placement_b=b)

    return Model(
        named(model.name),
        tuple(replace(x, name=named(x.name)) for x in model.bodies),
        tuple(
            replace(
                j,
                name=named(j.name),
                parent=named(j.parent),
                child=named(j.child),
                placement=placed(j.parent, j.placement),
            )
            for j in model.joints
        ),
        tuple(
            replace(f, name=named(f.name), body=named(f.body), placement=placed(f.body, f.placement))
            for f in model.frames
        ),
        tuple(map(loop, model.loops)),
        tuple(replace(c, name=named(c.name), joint=named(c.joint), source=named(c.source)) for c in model.couplings),
    )


def turned_about_z(angle: float) -> Floats33:
    """The rotation by an angle [rad] about z, with exact right angles."""
    return snap_rotation(rotation_of_angles(0.0, 0.0, angle))[0]
