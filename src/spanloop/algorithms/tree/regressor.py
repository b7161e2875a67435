"""The regressor Y: torques of inertia and weight are Y(q, v, a) φ, linear in the inertial parameters φ of all bodies.

Ten parameters a body, about its origin in its axes: mass m, first moments h = m c, moments of inertia Ixx Ixy Ixz Iyy
Iyz Izz. The torque of a degree of freedom is the power that the inertia forces of all bodies take from its unit motion,
and that power is linear in φ [Atkeson, An & Hollerbach 1986]. This is inverse dynamics in reverse mode, one row at a
time and without its zeros: a row's cotangents are the motions below.

| symbol | shape | meaning | frame |
|---|---|---|---|
| field | Field | ω, acceleration (α, a) of the link; gravity is an acceleration of the world | link |
| moves | {k: Motion} | motion of the link for a unit rate of degree of freedom k of the joints that carry it | link |
"""

from __future__ import annotations

from spanloop.algorithms.tree.kinematics import accelerate
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Field, Motion, Transform
from spanloop.math.vector3 import ZERO3, add, cross, dot, negate, transpose
from spanloop.sweeps import Program, Values, at_once, outward

WIDTH = 10  # inertial parameters of a body


def regressor(mechanism) -> Program:
    """Y (nv, 10 n_bodies) for given q (nq,), v (nv,), a (nv,); bodies in the order of the model."""
    width = WIDTH * len(mechanism.bodies)

    def result(m, here, world):
        rows = [[0.0] * width for _ in range(m.nv)]
        for b, name in enumerate(m.bodies):
            anchor = m.anchors[name]
            if anchor.link < 0:
                continue
            at = anchor.transform()
            field = _seen_in(at, here[anchor.link].field)
            for k, motion in here[anchor.link].moves.items():
                rows[k][WIDTH * b : WIDTH * (b + 1)] = power_gradient(at.T @ motion, field)
        return [x for row in rows for x in row]

    ground = Field(ZERO3, origin=negate(mechanism.gravity))
    sweeps = (*placed(()), outward(accelerate, field=ground), at_once(unit_motions))
    return Program("regressor", ("q", "v", "a"), sweeps, result, (mechanism.nv, width))


def unit_motions(mechanism, here, world) -> tuple[Values, dict[int, Values]]:
    """The motions of the parent, carried to the link by Xᵀ, and the columns of the joint's own motion space."""
    moves: list[dict[int, Motion]] = []
    for link, own in zip(mechanism.links, here, strict=True):
        carried = moves[link.parent] if link.parent >= 0 else {}
        moves.append({k: own.X.T @ motion for k, motion in carried.items()})
        moves[-1].update({link.v.start + k: s for k, s in enumerate(own.S)})
    return Values(), {i: Values(moves=x) for i, x in enumerate(moves)}


def power_gradient(motion: Motion, field: Field) -> list:
    """∂/∂φ of motionᵀ f, where f is the force that gives a body this acceleration field.

    With motion [t; u] and W = [ω]ײ + [α]× it is u·(m a + W h) + t·(h × a + I α + ω × I ω).
    """
    t, u, w, d = motion.angular, motion.linear, field.gradient, field.differences
    (x, y, z), (ax, ay, az) = field.omega, field.alpha
    swirl = cross(t, field.omega)  # t·(ω × I ω) = (t × ω)·I ω
    first = add(cross(field.origin, t), tuple(dot(column, u) for column in transpose(w)))
    return [
        dot(u, field.origin),
        *first,
        t[0] * ax + swirl[0] * x,
        (t[1] * w[2][1] - t[0] * w[2][0]) - t[2] * d[2],
        (t[0] * w[1][0] - t[2] * w[1][2]) - t[1] * d[1],
        t[1] * ay + swirl[1] * y,
        (t[2] * w[0][2] - t[1] * w[0][1]) - t[0] * d[0],
        t[2] * az + swirl[2] * z,
    ]


def _seen_in(at: Transform, field: Field) -> Field:
    """The same accelerations for a frame of the body that is placed like this in the field's frame."""
    r = at.rotation.T
    return Field(r @ field.omega, r @ field.alpha, r @ field.at(at.translation))
