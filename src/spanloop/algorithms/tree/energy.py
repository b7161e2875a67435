"""Energy (kinetic, potential), momentum about the centre of mass, the centre of mass and its Jacobian.

| symbol | shape | meaning | frame |
|---|---|---|---|
| V | Motion | velocity of the link at its origin | link |
| L | Force | momentum of the link, moved inward | link, then world |
| I | RigidInertia | the link with everything it carries | link, then world |
"""

from __future__ import annotations

from spanloop.algorithms.tree.kinematics import poses
from spanloop.algorithms.tree.link_motion import placed
from spanloop.errors import UnsupportedError
from spanloop.math.inertia import RigidInertia
from spanloop.math.spatial import Force, Motion, combined, power
from spanloop.math.vector3 import cross, dot, is_zero, negate, scale, subtract
from spanloop.sweeps import Program, Values, inward, outward


def energy(mechanism) -> Program:
    """(kinetic, potential) [J]: armature in the kinetic, gravity (zero at the world's origin) and springs in the
    potential."""

    def result(m, here, world):
        springs = sum((link.spring_energy(h.q) for link, h in zip(m.links, here, strict=True)), 0.0)
        return [sum((h.kinetic for h in here), 0.0), dot(negate(m.gravity), world.I.first) + springs]

    sweeps = (*placed(()), outward(fly, V=Motion()), inward(gather, I=RigidInertia(), L=Force()))
    return Program("energy", ("q", "v"), sweeps, result, (2,))


def momentum(mechanism) -> Program:
    """[angular; linear] momentum (6,) about the centre of mass, in world axes; what is fixed to the world has none."""

    def result(m, here, world):
        centre = centre_of(world.I)
        return [*subtract(world.L.angular, cross(centre, world.L.linear)), *world.L.linear]

    sweeps = (*placed(()), outward(fly, V=Motion()), inward(gather, I=RigidInertia(), L=Force()))
    return Program("momentum", ("q", "v"), sweeps, result, (6,))


def center_of_mass(mechanism) -> Program:
    """Centre of mass (3,) of everything that can move, in the world."""

    def result(m, here, world):
        return list(centre_of(world.I))

    sweeps = (*placed(()), inward(weigh, I=RigidInertia()))
    return Program("center_of_mass", ("q",), sweeps, result, (3,))


def center_of_mass_jacobian(mechanism) -> Program:
    """J (3, nv): the velocity of the centre of mass is J v, in world axes."""

    def result(m, here, world):
        columns = center_of_mass_columns(m, here, world)
        return [c[r] for r in range(3) for c in columns]

    sweeps = (*placed(()), poses(), inward(collect, I=RigidInertia()))
    return Program("center_of_mass_jacobian", ("q",), sweeps, result, (3, mechanism.nv))


def center_of_mass_columns(m, here, world) -> list:
    """Velocities (nv × 3) of the centre of mass in world axes for unit rates: linear momentum over the whole mass.

    After the sweeps `poses` and `collect`.
    """
    centre_of(world.I)  # refuses a mechanism without mass
    per_mass = 1.0 / world.I.mass
    return [scale(per_mass, h.T.rotation @ (h.I @ s).linear) for h in here for s in h.S]


def centre_of(I: RigidInertia):
    """The centre of mass (3,) of a composite inertia; refuses one without mass."""
    if is_zero(I.mass):
        raise UnsupportedError("nothing that can move has mass: there is no centre of mass")
    return scale(1.0 / I.mass, I.first)


def fly(link, here, parent) -> Values:
    """V = φ* V₋ + S v, and the link's kinetic energy."""
    V = here.X.T @ parent.V + combined(here.S, here.v)
    L = here.inertia @ V
    rotors = sum((m * (x * x) for m, x in zip(link.armature, here.v, strict=True)), 0.0)
    return Values(V=V, own=L, kinetic=0.5 * (power(V, L) + rotors))


def weigh(link, here, arriving) -> tuple[Values, Values]:
    """Composite inertia."""
    I = here.inertia + arriving.I
    return Values(), Values(I=I.carried(here.X))


def collect(link, here, arriving) -> tuple[Values, Values]:
    """Composite inertia, kept at the link too."""
    I = here.inertia + arriving.I
    return Values(I=I), Values(I=I.carried(here.X))


def gather(link, here, arriving) -> tuple[Values, Values]:
    """Composite inertia and momentum."""
    kept, sent = weigh(link, here, arriving)
    return kept, Values(I=sent.I, L=here.X @ (here.own + arriving.L))
