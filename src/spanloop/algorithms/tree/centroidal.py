"""Momentum about the centre of mass as a function of the joints' rates: its matrix, and its rate at constant rates.

    h = A v,    dh/dt = A a + Ȧ v        [Orin, Goswami & Lee 2013]

| symbol | shape | meaning | frame |
|---|---|---|---|
| I | RigidInertia | the link with everything it carries | link, then world |
| T | Transform | pose of a link | world |
| field | Field | angular velocity and acceleration of a link while no joint accelerates | link |
| f | Force | force that this takes, moved inward | link, then world |

The armature of joints has no part in it: rotors are taken to turn without a momentum of their own.
"""

from __future__ import annotations

from spanloop.algorithms.tree.energy import centre_of, collect, weigh
from spanloop.algorithms.tree.kinematics import poses, velocity_product
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import RigidInertia
from spanloop.math.spatial import Field, Force
from spanloop.math.vector3 import ZERO3, add, cross, subtract
from spanloop.sweeps import Program, Values, inward, outward


def centroidal_momentum_matrix(mechanism) -> Program:
    """A (6, nv): momentum [angular; linear] about the centre of mass is A v, in world axes."""

    def result(m, here, world):
        centre = centre_of(world.I)
        columns = [_about(centre, h.T, (h.I @ s).turned(h.T.rotation)) for h in here for s in h.S]
        return [c[r] for r in range(6) for c in columns]

    sweeps = (*placed(()), poses(), inward(collect, I=RigidInertia()))
    return Program("centroidal_momentum_matrix", ("q",), sweeps, result, (6, mechanism.nv))


def centroidal_momentum_bias(mechanism) -> Program:
    """Ȧ v (6,): rate of the momentum [angular; linear] about the centre of mass when a = 0, in world axes."""

    def result(m, here, world):
        centre = centre_of(world.I)
        return [*subtract(world.f.angular, cross(centre, world.f.linear)), *world.f.linear]

    sweeps = (
        *placed(()),
        outward(velocity_product, field=Field(ZERO3)),
        inward(gather, I=RigidInertia(), f=Force()),
    )
    return Program("centroidal_momentum_bias", ("q", "v"), sweeps, result, (6,))


def gather(link, here, arriving) -> tuple[Values, Values]:
    """Composite inertia, and the force that the link and all it carries take."""
    kept, sent = weigh(link, here, arriving)
    return kept, Values(I=sent.I, f=here.X @ (here.inertia.force(here.field) + arriving.f))


def _about(centre, T, momentum: Force) -> tuple:
    """Six numbers of a momentum at the origin of T, in world axes, about the centre."""
    lever = subtract(T.translation, centre)
    return (*add(momentum.angular, cross(lever, momentum.linear)), *momentum.linear)
