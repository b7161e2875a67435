"""Where a frame is, how it moves with the joints, its velocity and its acceleration.

| symbol | shape | meaning | frame |
|---|---|---|---|
| T | Transform | pose of a link | world |
| E | (3, 3) | axes in which a Jacobian is wanted, as seen from the world | world |
| V | Motion | velocity of a link at its origin | link |
| field | Field | angular velocity and acceleration of a link; of velocities alone in jacobian_bias | link |
"""

from __future__ import annotations

from spanloop.algorithms.tree.link_motion import link_acceleration, placed
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Field, Motion, Transform, combined
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
            first, moved = dof_columns(m, here, link)
            for k, s in enumerate(moved):
                columns[first + k] = tuple(seen_at(s, here[link].T, at.translation).turned(axes))
            link = m.links[link].parent
        return [c[r] for r in range(6) for c in columns]

    return Program("jacobian", ("q",), (*placed(()), poses()), result, (6, mechanism.nv))


def jacobian_bias(mechanism, frame: str, expressed_in: str = WORLD) -> Program:
    """Classical acceleration (6,) [angular; linear] of the frame's origin when a = 0."""

    def result(m, here, world):
        return list(_of_frame(m, here, frame, expressed_in, _classical))

    sweeps = (*placed(()), poses(), outward(velocity_product, field=Field(ZERO3)))
    return Program("jacobian_bias", ("q", "v"), sweeps, result, (6,))


def frame_velocity(mechanism, frame: str, expressed_in: str = WORLD) -> Program:
    """Velocity (6,) [angular; linear] of the frame's origin, in the axes of `expressed_in`: J v."""

    def result(m, here, world):
        return list(_of_frame(m, here, frame, expressed_in, lambda anchor, link: _velocity_at(link.V, anchor.position)))

    sweeps = (*placed(()), poses(), outward(fly, V=Motion()))
    return Program("frame_velocity", ("q", "v"), sweeps, result, (6,))


def frame_acceleration(mechanism, frame: str, expressed_in: str = WORLD) -> Program:
    """Classical acceleration (6,) [angular; linear] of the frame's origin: J a + J̇ v."""

    def result(m, here, world):
        return list(_of_frame(m, here, frame, expressed_in, _classical))

    sweeps = (*placed(()), poses(), outward(accelerate, field=Field(ZERO3)))
    return Program("frame_acceleration", ("q", "v", "a"), sweeps, result, (6,))


def frame_spatial_acceleration(mechanism, frame: str, expressed_in: str = WORLD) -> Program:
    """Spatial acceleration (6,) [angular; linear] at the frame's origin: the classical one less ω × velocity."""

    def spatial(anchor, link):
        classical, velocity = _classical(anchor, link), _velocity_at(link.V, anchor.position)
        return Motion(classical.angular, subtract(classical.linear, cross(velocity.angular, velocity.linear)))

    def result(m, here, world):
        return list(_of_frame(m, here, frame, expressed_in, spatial))

    sweeps = (*placed(()), poses(), outward(fly, V=Motion()), outward(accelerate, field=Field(ZERO3)))
    return Program("frame_spatial_acceleration", ("q", "v", "a"), sweeps, result, (6,))


def fly(link, here, parent) -> Values:
    """V = φ* V₋ + S v."""
    return Values(V=here.X.T @ parent.V + combined(here.S, here.v))


def accelerate(link, here, parent) -> Values:
    """Angular velocity and acceleration of the link at given rates and accelerations of the joints."""
    return Values(field=link_acceleration(link, here, parent.field, here.v, combined(here.S, here.a)))


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


def _of_frame(m, here, frame: str, expressed_in: str, motion) -> Motion:
    """motion(anchor, link's values), in link axes, in the axes of `expressed_in`; none for a frame of the world."""
    anchor, axes = m.anchors[frame], frame_pose(m, here, expressed_in).rotation.T
    if anchor.link < 0:
        return Motion()
    return motion(anchor, here[anchor.link]).turned(here[anchor.link].T.rotation).turned(axes)


def _classical(anchor, link) -> Motion:
    return Motion(link.field.alpha, link.field.at(anchor.position))


def _velocity_at(V: Motion, point) -> Motion:
    return Motion(V.angular, add(V.linear, cross(V.angular, point)))


def _matrix(T: Transform) -> list:
    R, p = T.rotation.matrix(), T.translation
    return [*R[0], p[0], *R[1], p[1], *R[2], p[2], 0.0, 0.0, 0.0, 1.0]


def dof_columns(m, here, link: int) -> tuple[int, tuple[Motion, ...]]:
    """The first of the DoF that move a link in its parent, and its motion for unit rates of them, at its own origin.

    They are those of its joint; of a node those of the modes of its body, whose own frame they do not move.
    """
    if m.links[link].kind.rides:
        return m.links[m.links[link].parent].v.start, here[link].X.columns
    return m.links[link].v.start, () if m.links[link].kind.bends else here[link].S


def seen_at(s: Motion, T: Transform, point) -> Motion:
    """A motion at a link's origin in its axes, as the motion of a point of the world in world axes."""
    s = s.turned(T.rotation)
    return Motion(s.angular, add(s.linear, cross(s.angular, subtract(point, T.translation))))
