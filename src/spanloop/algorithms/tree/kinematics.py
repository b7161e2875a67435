"""Where a frame is, how it moves with the joints, and how it accelerates when they do not.

| symbol | shape | meaning | frame |
|---|---|---|---|
| T | Transform | pose of a link | world |
| E | (3, 3) | axes in which a Jacobian is wanted, as seen from the world | world |
| field | Field | angular velocity and acceleration of a link; of velocities alone in jacobian_bias | link |
"""

from __future__ import annotations

from spanloop.algorithms.tree.link_motion import link_acceleration, placed
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Field, Motion, Transform
from spanloop.math.vector3 import ZERO3, add, cross, subtract
from spanloop.sweeps import Program, Sweep, Values, outward

WORLD = "world"


def pose(mechanism, frame: str) -> Program:
    """Pose (4, 4) of a frame in the world."""

    def result(m, here, world):
        return _matrix(frame_pose(m, here, frame))

    return Program("pose", ("q",), (*placed(()), poses()), result, (4, 4))


def all_poses(mechanism) -> Program:
    """Poses (n, 4, 4) of the world, every body and every frame, in the order of `mechanism.anchors`."""

    def result(m, here, world):
        return [x for name in m.anchors for x in _matrix(frame_pose(m, here, name))]

    return Program("poses", ("q",), (*placed(()), poses()), result, (len(mechanism.anchors), 4, 4))


def jacobian(mechanism, frame: str, expressed_in: str = WORLD) -> Program:
    """J (6, nv): velocity [angular; linear] of the frame's origin is J v, in the axes of `expressed_in`."""

    def result(m, here, world):
        at, axes = frame_pose(m, here, frame), frame_pose(m, here, expressed_in).rotation.T
        columns = [(0.0,) * 6] * m.nv
        link = m.anchors[frame].link
        while link >= 0:
            for k, s in enumerate(here[link].S):
                columns[m.links[link].v.start + k] = tuple(seen_at(s, here[link].T, at.translation).turned(axes))
            link = m.links[link].parent
        return [c[r] for r in range(6) for c in columns]

    return Program("jacobian", ("q",), (*placed(()), poses()), result, (6, mechanism.nv))


def jacobian_bias(mechanism, frame: str, expressed_in: str = WORLD) -> Program:
    """Classical acceleration (6,) [angular; linear] of the frame's origin when a = 0."""

    def result(m, here, world):
        anchor, axes = m.anchors[frame], frame_pose(m, here, expressed_in).rotation.T
        if anchor.link < 0:
            return [0.0] * 6
        field, R = here[anchor.link].field, here[anchor.link].T.rotation
        return list(Motion(field.alpha, field.at(anchor.position)).turned(R).turned(axes))

    sweeps = (*placed(()), poses(), outward(velocity_product, field=Field(ZERO3)))
    return Program("jacobian_bias", ("q", "v"), sweeps, result, (6,))


def stand(link, here, parent) -> Values:
    """Pose in the world: T = T₋ X."""
    T = parent.T @ here.X
    return Values(T=Transform(Rotation.full(T.rotation.matrix()), T.translation))


def poses() -> Sweep:
    """The sweep that finds every link's pose."""
    return outward(stand, T=Transform())


def velocity_product(link, here, parent) -> Values:
    """Angular velocity and acceleration of the link while no joint accelerates."""
    return Values(field=link_acceleration(link, here, parent.field, here.v))


def frame_pose(m, here, frame: str) -> Transform:
    """Pose of a frame or body in the world; after the sweep `poses`."""
    anchor = m.anchors[frame]
    own = anchor.transform()
    return here[anchor.link].T @ own if anchor.link >= 0 else own


def _matrix(T: Transform) -> list:
    R, p = T.rotation.matrix(), T.translation
    return [*R[0], p[0], *R[1], p[1], *R[2], p[2], 0.0, 0.0, 0.0, 1.0]


def seen_at(s: Motion, T: Transform, point) -> Motion:
    """A motion at a link's origin in its axes, as the motion of a point of the world in world axes."""
    s = s.turned(T.rotation)
    return Motion(s.angular, add(s.linear, cross(s.angular, subtract(point, T.translation))))
