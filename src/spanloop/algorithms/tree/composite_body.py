"""Mass matrix by composite bodies, and forward dynamics from it. O(n · depth), and O(n · depth²) for the factors.

[Walker & Orin 1982, method 3; Featherstone 2008, table 6.2]

| symbol | shape | meaning | frame |
|---|---|---|---|
| I | RigidInertia | the link with everything it carries | link |
| F | Force by DoF | force that a unit acceleration of that DoF takes | link |
| M | (nv, nv) | mass matrix, armature on its diagonal | joints |
"""

from __future__ import annotations

from spanloop.algorithms.tree import newton_euler
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import RigidInertia
from spanloop.math.sparse_ldl import SparseLDL, System
from spanloop.math.spatial import power
from spanloop.math.symmetric import mirrored
from spanloop.math.vector3 import dot
from spanloop.sweeps import Program, Union, Values, at_once, inward
from spanloop.sweeps.tested_pivots import IN_MATRIX, PivotTest


def mass_matrix(mechanism) -> Program:
    """M (nv, nv) at q (nq,)."""
    return Program(
        "mass_matrix",
        ("q",),
        (*placed(()), inward(compose, I=RigidInertia(), F=Union())),
        result=lambda m, here, world: [x for row in matrix(m, here) for x in row],
        shape=(mechanism.nv, mechanism.nv),
        regroup=True,
    )


def forward_dynamics(mechanism, loaded=()) -> Program:
    """a (nv,): solves M a = tau − h by M = LᵀDL, leaves first, which keeps the tree's zeros."""
    h = newton_euler.bias(mechanism, loaded)
    tested = PivotTest(mechanism, IN_MATRIX)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        (
            *(keeping_bias(s) for s in h.sweeps),
            inward(compose, I=RigidInertia(), F=Union()),
            *tested.sweeps,
            at_once(solve),
        ),
        result=lambda m, here, world: world.accelerations,
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=tested.demands,
    )


def keeping_bias(sweep):
    """A sweep of `newton_euler.bias`; the last one keeps its torque as h, since tau is an input here."""
    if sweep.step is not newton_euler.feel:
        return sweep

    def bias_torque(link, here, arriving):
        kept, sent = newton_euler.feel(link, here, arriving)
        return Values(h=kept.tau), sent

    return inward(bias_torque, **vars(sweep.start))


def compose(link, here, arriving) -> tuple[Values, Values]:
    """Composite inertia, and the row of the mass matrix that it gives."""
    I = here.inertia + arriving.I
    first = link.v.start
    F = arriving.F + Union({first + k: I @ s for k, s in enumerate(here.S)})
    row = {(first + k, j): power(s, f) for k, s in enumerate(here.S) for j, f in F.items() if j >= first + k}
    for k, m in enumerate(link.armature):
        row[first + k, first + k] = row[first + k, first + k] + m
    sent = Union({j: here.X @ f for j, f in F.items()})
    return Values(row=row), Values(I=I.carried(here.X), F=sent)


def matrix(mechanism, here) -> list[list]:
    """M (nv, nv) from the rows that the joints keep."""
    return mirrored(mechanism.nv, [h.row for h in here])


def free_equations(mechanism, here, M) -> tuple[list[int], list[list], list, list]:
    """M a = tau − h for the joints that are not driven.

    Returns the numbers of their degrees of freedom; those rows and columns of M; their right side; and accelerations
    (nv,), known for driven joints and 0 for the others.
    """
    driven = [link.driven for link in mechanism.links for _ in range(link.kind.nv)]
    tau, h = ([x for one in here for x in getattr(one, name)] for name in ("tau", "h"))
    known = [t if d else 0.0 for t, d in zip(tau, driven, strict=True)]
    free = [i for i, d in enumerate(driven) if not d]
    right = [tau[i] - h[i] - dot(M[i], known) for i in free]
    return free, [[M[i][j] for j in free] for i in free], right, known


def tree_factors(M) -> SparseLDL:
    """M = LᵀDL from the last row to the first: on a tree no zero is filled."""
    return SparseLDL(System.of(M), range(len(M) - 1, -1, -1))


def solve(mechanism, here, world) -> tuple[Values, dict[int, Values]]:
    """Accelerations (nv,) of all joints from M a = tau − h, and the pivots of M at each link."""
    free, M, right, a = free_equations(mechanism, here, matrix(mechanism, here))
    factors = tree_factors(M)
    found = factors.solve(dict(enumerate(right)))
    for k, i in enumerate(free):
        a[i] = found[k]
    pivots = {i: factors.pivots[k] for k, i in enumerate(free)}
    kept = {
        link.number: Values(pivots=[pivots[i] for i in range(link.v.start, link.v.stop) if i in pivots])
        for link in mechanism.links
    }
    return Values(accelerations=a), kept
