"""Legs on one platform: inverse and forward dynamics in the actuated coordinates alone. [Saha, section 3]

Unactuated rates are eliminated leg by leg (`leg_elimination.py`), so that the twists of all links are t = N θ̇ in the
actuated rates θ̇, with N = N_l N_c N_d (`parallel_matrices.py` has the three). The Newton-Euler equations of all links
become I θ̈ + h = τ with I = Nᵀ M N: as many equations as actuators, and no closure force in them.

| here | Saha | shape | meaning | frame |
|---|---|---|---|---|
| T | – | nv × n | rates of all joints for unit actuated rates | joints |
| c | – | nv | their accelerations while the actuated rates do not change | joints |
| t | block row of N_l N_c N_d | n Motions | twists of the link for unit actuated rates | link |
| w | w*_i | Force | inertia wrench of the link with accelerations c, less forces from outside | link |

Departures: those of `leg_elimination.py` and `legs.py`; positions of all joints are given and must close the loops;
torques of unactuated joints, dampers, springs and armature count with the rates of their joints.
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.saha.leg_elimination import (
    eliminated,
    joint_response,
    leg_bias,
    unit_rates,
    velocity_terms,
)
from spanloop.algorithms.papers.saha.legs import Legs, legs_with
from spanloop.algorithms.tree.link_motion import link_acceleration, placed
from spanloop.errors import Reason, Refusal
from spanloop.math.spatial import Field, Motion, combined, power
from spanloop.math.symmetric import LDL, PIVOT_TOLERANCE, solve
from spanloop.math.vector3 import ZERO3, dot, negate, total
from spanloop.sweeps import Program, Values, at_once, outward

SINGULAR = Refusal(
    Reason.SINGULAR_CLOSURE,
    "the legs are in a singular configuration: the actuated joints do not determine the motion of the others here. "
    "See robot.diagnose(q); method 'elimination' answers wherever the loops themselves are regular",
)


def forward_dynamics(mechanism, loaded=(), redundancy: Redundancy | None = None) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed."""

    def result(m, here, world):
        I, right = _equations(m, here, world, [list(h.tau) for h in here])
        theta = solve(I, right)
        return [
            c + total(x * y for x, y in zip(row, theta, strict=True)) for c, row in zip(world.c, world.T, strict=True)
        ]

    def pivots(m, here, world):
        I, _ = _equations(m, here, world, [list(h.tau) for h in here])
        bounds = [PIVOT_TOLERANCE * row[k] for k, row in enumerate(I)]
        return list(zip(bounds, LDL(I).pivots, strict=True))

    inputs, size = ("q", "v", "tau"), mechanism.nv
    return _program("forward_dynamics", inputs, mechanism, loaded, redundancy, result, size, pivots)


def inverse_dynamics(mechanism, loaded=(), redundancy: Redundancy | None = None) -> Program:
    """Torques (n,) of the actuated DoF for q (nq,), v (nv,), a (nv,), of which only actuated entries are read."""
    legs = legs_with(mechanism, redundancy)

    def result(m, here, world):
        I, right = _equations(m, here, world, [[0.0] * len(h.S) for h in here])
        a = [x for h in here for x in h.a]
        theta = [a[f] for f in legs.actuated]
        return [dot(row, theta) - b for row, b in zip(I, right, strict=True)]

    n = len(legs.actuated)
    return _program("actuated_inverse_dynamics", ("q", "v", "a"), mechanism, loaded, redundancy, result, n)


def _program(name, inputs, mechanism, loaded, redundancy, result, size, pivots=lambda m, here, world: []) -> Program:
    legs = legs_with(mechanism, redundancy)
    still = Field(ZERO3, origin=negate(mechanism.gravity))  # the world, accelerated against gravity
    n = len(legs.actuated)
    watched = redundancy is None or redundancy.refuses_open

    def start(world) -> Values:
        return Values(T=world.T, c=world.c, t=[Motion()] * n, moved=still)

    return Program(
        name,
        inputs + (("forces",) if loaded else ()),
        (
            *placed(loaded),
            outward(velocity_terms, field=still, V=Motion()),
            at_once(lambda m, here, world: eliminate(m, here, legs, still)),
            outward(spread, begin=start),
        ),
        result,
        (size,),
        regroup=True,
        demands=lambda m, here, world: [
            *(closure_kinematics.openness(m, here, world) if watched else []),
            *world.pivots,
            *pivots(m, here, world),
        ],
        refusal=SINGULAR,
        loaded=loaded,
        tests_pivots=True,
    )


def eliminate(m, here, legs: Legs, still: Field) -> Values:
    """T and c: what every joint does when the actuated ones move."""
    parts, demands = eliminated(m, legs, here, lambda leg: leg_bias(m, legs, leg, here, still))
    T, pivots = unit_rates(m, legs, parts)
    c, _ = joint_response(m, legs, parts, here[legs.platform].field.motion)
    return Values(T=T, c=c, pivots=demands + pivots)


def spread(link, here, parent) -> Values:
    """The link's twists for unit actuated rates, and the wrench that it takes while these do not change."""
    own_T, own_c = parent.T[link.v], parent.c[link.v]
    t = [here.X.T @ x + combined(here.S, [row[j] for row in own_T]) for j, x in enumerate(parent.t)]
    moved = link_acceleration(link, here, parent.moved, here.v, combined(here.S, own_c))
    return Values(t=t, moved=moved, w=link.inertia.force(moved) - here.external, T=parent.T, c=parent.c)


def _equations(m, here, world, tau) -> tuple[list, list]:
    """I = Nᵀ M N (n, n), and the right side Nᵀ(torques − wrenches) (n,)."""
    n = len(world.T[0]) if world.T else 0
    I, right = [[0.0] * n for _ in range(n)], [0.0] * n
    for link, h, given in zip(m.links, here, tau, strict=True):
        moved = [link.inertia @ t for t in h.t]
        rates = world.T[link.v]
        torque = [
            g + p - r * c
            for g, p, r, c in zip(given, link.passive_torque(h.q, h.v), link.armature, world.c[link.v], strict=True)
        ]
        for j in range(n):
            right[j] = right[j] - power(h.t[j], h.w) + total(row[j] * x for row, x in zip(rates, torque, strict=True))
            for k in range(j + 1):
                rotors = total(row[j] * r * row[k] for row, r in zip(rates, link.armature, strict=True))
                I[j][k] = I[k][j] = I[j][k] + power(h.t[j], moved[k]) + rotors
    return I, right
