"""How links move: the sweeps that most programs begin with.

`placed` finds where each link is in its parent, and the external forces on it. `link_acceleration` is the recursion of
velocities and accelerations that all algorithms share. `bias_acceleration` carries ζ outward before anything is solved,
ζ = φᵀ a [Kreutz & Rodriguez, eq. 5.14a]: the acceleration of a link while no free joint accelerates, from gravity (an
acceleration of the world), velocity terms and the accelerations of driven joints. What is left to find is linear: the
acceleration λ of a link beyond ζ obeys λ = φᵀ λ₋ + Hᵀ θ̈ at every joint, and an articulated inertia never meets a bias:
a product of a 6×6 with a vector less for each link.

| symbol | shape | meaning | frame |
|---|---|---|---|
| X | Transform | pose of the link in its parent | parent |
| S | nv columns | motion space of its joint (φ, Hᵀ, p in the papers) | link |
| inertia | RigidInertia | inertia of the link; of a flexible body at its modal coordinates | link |
| modes | nv | modal coordinates of a link that bends, for the nodes on it | – |
| R | Rotation | orientation of the link | world |
| external | Force | external force at the link's origin | link |
| field, zeta | Field | ω of the link and ζ | link |
| z, f | Force | force that ζ takes, less external ones: M ζ + b | link |
"""

from __future__ import annotations

from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Field, Force, Motion, combined, coriolis
from spanloop.math.vector3 import ZERO3, add, cross, negate
from spanloop.sweeps import Sweep, Values, outward


def place(link, here, parent) -> Values:
    """X, S and the inertia at the present coordinates; those of modes are for the nodes on them."""
    return Values(
        X=link.transform(here.q, parent.modes),
        S=link.kind.motion_space(here.q),
        inertia=link.inertia.at(here.q),
        modes=here.q if link.kind.bends else (),
        external=Force(),
    )


def load(link, here, parent) -> Values:
    """External forces, given at body origins in world axes, gathered at the link's origin in its own axes."""
    R = Rotation.full((parent.R @ here.X.rotation).matrix())
    external = Force()
    for six, origin in here.forces:
        f = Force.of(six).turned(R.T)
        external = external + Force(add(f.angular, cross(origin, f.linear)), f.linear)
    return Values(R=R, external=external)


def placed(loaded: tuple[str, ...]) -> tuple[Sweep, ...]:
    """The opening sweeps of a program with forces on these bodies."""
    first = outward(place, modes=())
    return (first, outward(load, R=Rotation())) if loaded else (first,)


def link_acceleration(link, here, parent: Field, v, joint_acceleration: Motion | None = None) -> Field:
    """Angular velocity and acceleration of a link from those of its parent.

    ω = Rᵀω₋ + S v;  [α; a] = Rᵀ[α₋; a₋ + (α₋× + ω₋×ω₋×) p] + (Coriolis) + Ṡ v + S v̇

    here: X and S of the link, and q; v: rates of its joint; joint_acceleration: S v̇, none if it is not given.
    """
    R, p = here.X.rotation.T, here.X.translation
    relative = combined(here.S, v) + here.X.velocity(parent)
    carrier = R @ parent.omega
    motion = (
        Motion(R @ parent.alpha, R @ parent.at(p))
        + coriolis(carrier, relative)
        + link.kind.motion_space_rate(here.q, v)
        + here.X.acceleration(parent)
        + (joint_acceleration or Motion())
    )
    return Field(add(carrier, relative.angular), motion.angular, motion.linear, relative.modal, motion.modal)


def driven_acceleration(link, here) -> Motion:
    """S v̇ of a driven joint, whose entries of tau are accelerations; zero for all others."""
    return combined(link.given(here.S), link.given(here.tau))


def bias_acceleration(link, here, parent) -> Values:
    """ζ = φᵀ ζ₋ + a, and the force M ζ + b.                                         (5.14a)"""
    field = link_acceleration(link, here, parent.field, here.v, driven_acceleration(link, here))
    return Values(field=field, z=here.inertia.force(field) - here.external)


def bias_sweep(mechanism) -> Sweep:
    """The sweep that keeps ζ (zeta), ω alone (field: what it adds to the accelerations of points) and M ζ + b (f)."""
    return outward(carried_bias, zeta=Field(ZERO3, origin=negate(mechanism.gravity)))


def carried_bias(link, here, parent) -> Values:
    """ζ = φᵀ ζ₋ + a, and the force M ζ + b.                                         (5.14a)"""
    found = bias_acceleration(link, here, Values(field=parent.zeta))
    return Values(zeta=found.field, field=Field(found.field.omega, rates=found.field.rates), f=found.z)
