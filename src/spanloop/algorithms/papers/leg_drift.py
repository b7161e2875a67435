"""What the platform does by itself, seen through each leg: accelerations while no joint's rate changes. [Saha, 25]

| here | meaning | frame |
|---|---|---|
| field | angular velocity, and the acceleration of a link while no rate changes; gravity is one of the world | link |
| beta | the platform's acceleration, if the leg alone moved it and no rate of the leg changed | platform |
"""

from __future__ import annotations

from spanloop.algorithms.papers.leg_elimination import joined
from spanloop.algorithms.papers.legs import Leg, Legs
from spanloop.algorithms.quantities import kinematics
from spanloop.math.small import ZERO3, cross, negate
from spanloop.math.spatial import Field, Motion, Transform, combined, coriolis
from spanloop.sweeps import Values


def fly(link, here, parent) -> Values:
    """Velocity of the link, and its acceleration while no joint's rate changes; gravity is one of the world."""
    return Values(field=kinematics.drift(link, here, parent).field, V=here.X.T @ parent.V + combined(here.S, here.v))


def drift(m, legs: Legs, leg: Leg, here, still: Field) -> Motion:
    """beta of a leg, through its closure if it has one."""
    if leg.closure is None:
        return here[legs.platform].field.motion
    c, joint = m.closures[leg.closure], joined(m, legs, leg, here)
    x, a, b, child = joint.x, c.a.transform(), c.b.transform(), joint.sign > 0.0
    field = here[leg.links[-1]].field if leg.links else still
    omega = here[legs.platform].field.omega
    into_a, into_b = (a.rotation @ x.rotation).T, b.rotation.T
    spin = into_a @ (field.omega if child else omega)  # of frame A, in B's axes
    relative = _velocity(here, c.b, b) - x.T @ _velocity(here, c.a, a)
    if child:
        at, r = a.point(x.translation), b.translation
        moved = Motion(into_a @ field.alpha, into_a @ field.at(at))
    else:
        r = a.point(x.translation)
        moved = Motion(into_b @ field.alpha, into_b @ field.at(b.translation))
    beta = joint.in_b.T @ (moved + coriolis(spin, relative) * joint.sign)
    return beta + Motion(ZERO3, negate(cross(omega, cross(omega, r))))


def _velocity(here, anchor, x: Transform) -> Motion:
    return Motion() if anchor.link < 0 else x.T @ here[anchor.link].V
