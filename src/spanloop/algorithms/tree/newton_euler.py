"""Inverse dynamics: tau = M(q) a + h(q, v), by one sweep outward and one inward. O(n).

[Luh, Walker & Paul 1980], with classical accelerations in link axes, so that no linear velocity appears.

| symbol | shape | meaning | frame |
|---|---|---|---|
| field | Field | angular velocity ω, acceleration (α, a) of the link; gravity is an acceleration of the world | link |
| f | Force | force that the joint passes to the link | link |
| tau | (nv,) | torque of the joint, its armature, damper and spring included | joint |
"""

from __future__ import annotations

from spanloop.algorithms.tree.kinematics import poses
from spanloop.algorithms.tree.link_motion import link_acceleration, placed
from spanloop.math.spatial import Field, Force, combined, power
from spanloop.math.vector3 import ZERO3, negate
from spanloop.sweeps import Program, Values, inward, outward


def inverse_dynamics(mechanism, loaded=()) -> Program:
    """tau (nv,) for given q (nq,), v (nv,), a (nv,)."""
    return _program("inverse_dynamics", ("q", "v", "a"), mechanism, loaded, feel)


def bias(mechanism, loaded=()) -> Program:
    """h (nv,): the torque that keeps a = 0 at q, v; gravity, dampers and springs included."""
    return _program("bias", ("q", "v"), mechanism, loaded, feel)


def gravity_torques(mechanism, loaded=()) -> Program:
    """g (nv,): the torque that holds the mechanism at rest against gravity alone."""
    return _program("gravity_torques", ("q",), mechanism, loaded, project)


def _program(name, inputs, mechanism, loaded, finish) -> Program:
    ground = Field(ZERO3, origin=negate(mechanism.gravity))
    return Program(
        name,
        inputs + (("forces",) if loaded else ()),
        (*placed(loaded), outward(move, field=ground), inward(finish, f=Force())),
        result=lambda m, here, world: [t for h in here for t in h.tau],
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
    )


def move(link, here, parent) -> Values:
    """Velocity and acceleration of the link, and the force that they take."""
    v = getattr(here, "v", (0.0,) * link.kind.nv)
    a = getattr(here, "a", (0.0,) * link.kind.nv)
    field = link_acceleration(link, here, parent.field, v, combined(here.S, a))
    return Values(field=field, f=here.inertia.force(field) - here.external)


def project(link, here, arriving) -> tuple[Values, Values]:
    """The joint's share of the force: tau = Sᵀ f."""
    f = here.f + arriving.f
    return Values(tau=tuple(power(s, f) for s in here.S)), Values(f=here.X @ f)


def feel(link, here, arriving) -> tuple[Values, Values]:
    """tau = Sᵀ f + armature a − damper and spring."""
    kept, sent = project(link, here, arriving)
    a = getattr(here, "a", (0.0,) * link.kind.nv)
    passive = link.passive_torque(here.q, here.v)
    tau = tuple(t + m * x - p for t, m, x, p in zip(kept.tau, link.armature, a, passive, strict=True))
    return Values(tau=tau), sent


# ---- reactions


def reactions(mechanism, loaded=()) -> Program:
    """[torque; force] (n_joints, 6) on each joint's child, at its body's origin in world axes; for given q, v, a.

    Bodies are those of the user: none is fused, no inertia is moved to a parent, and all six components are kept.
    Closure forces enter as external forces.
    """
    ground = Field(ZERO3, origin=negate(mechanism.gravity))

    def result(m, here, world):
        return [x for h in here for x in h.f.six.turned(h.T.rotation)]

    return Program(
        "reactions",
        ("q", "v", "a") + (("forces",) if loaded else ()),
        (*placed(loaded), poses(), outward(move, field=ground), inward(collect, f=Force())),
        result,
        (len(mechanism.links), 6),
        loaded=loaded,
        whole=True,
    )


def collect(link, here, arriving) -> tuple[Values, Values]:
    """The force through the joint: what the link takes and what it passes on."""
    f = here.f + arriving.f
    return Values(f=f), Values(f=here.X @ f)
