"""Mass matrix and forward dynamics by inverse dynamics with unit vectors: the papers' baseline. O(n³) on chains.

[Walker & Orin 1982, method 1], against which [Yamane & Nakamura, fig. 6-7] and [Saha, Table 2] compare. Column j of M
is the torque that a unit acceleration of DoF j takes, without velocities, gravity and other forces; the bias torque
is that of no acceleration; M a = tau − h is solved by M = LᵀDL.

| symbol | shape | meaning | frame |
|---|---|---|---|
| fields | Field by DoF j | acceleration of the link under a unit acceleration of DoF j | link |
| f | Force by DoF j | force that the joint then passes to the link | link |
| M | (nv, nv) | mass matrix, armature on its diagonal | joints |
| h | (nv,) | bias torque | joints |

Inverse dynamics is that of `tree/newton_euler`, as in the paper. A unit acceleration moves only what its joint carries;
the torques of the joints inward of it are kept, the others follow by symmetry.
"""

from __future__ import annotations

from spanloop.algorithms.tree import newton_euler
from spanloop.algorithms.tree.composite_body import keeping_bias, matrix, solve
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Field, Force, power
from spanloop.math.vector3 import ZERO3
from spanloop.sweeps import Program, Sum, Values, at_once, inward, outward
from spanloop.sweeps.tested_pivots import IN_MATRIX, PivotTest


def mass_matrix(mechanism) -> Program:
    """M (nv, nv) at q (nq,)."""
    return Program(
        "mass_matrix",
        ("q",),
        (*placed(()), *columns()),
        result=lambda m, here, world: [x for row in matrix(m, here) for x in row],
        shape=(mechanism.nv, mechanism.nv),
        regroup=True,
    )


def forward_dynamics(mechanism, loaded=()) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,); a driven joint's entry of tau is its acceleration."""
    bias = newton_euler.bias(mechanism, loaded)
    tested = PivotTest(mechanism, IN_MATRIX)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        (
            *(keeping_bias(s) for s in bias.sweeps),
            *columns(),
            *tested.sweeps,
            at_once(solve),
        ),
        result=lambda m, here, world: world.accelerations,
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=tested.demands,
    )


def columns():
    """Inverse dynamics with one unit vector after the other: column j of M."""
    return outward(excite, fields={}), inward(answer, f=Sum())


def excite(link, here, parent) -> Values:
    """The link's accelerations, and the forces that they take, for each unit vector that moves it."""
    first, n = link.v.start, link.kind.nv
    fields, forces = {}, {}
    for j in (*parent.fields, *range(first, first + n)):
        unit = tuple(1.0 if j == first + k else 0.0 for k in range(n))
        rest = {"X": here.X, "S": here.S, "q": here.q, "inertia": here.inertia}
        still = Values(**rest, v=(0.0,) * n, a=unit, external=Force())
        moved = newton_euler.move(link, still, Values(field=parent.fields.get(j, Field(ZERO3))))
        fields[j], forces[j] = moved.field, moved.f
    return Values(fields=fields, forces=Sum(forces))


def answer(link, here, arriving) -> tuple[Values, Values]:
    """The torques that hold each unit acceleration: the joint's row of M."""
    first = link.v.start
    f = here.forces + arriving.f
    row = {(first + k, j): power(s, x) for k, s in enumerate(here.S) for j, x in f.items() if j >= first + k}
    for k, armature in enumerate(link.armature):
        row[first + k, first + k] = row[first + k, first + k] + armature
    return Values(row=row), Values(f=Sum({j: here.X @ x for j, x in f.items()}))
