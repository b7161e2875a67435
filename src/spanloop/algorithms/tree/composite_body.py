"""Mass matrix by composite bodies, and forward dynamics from it. O(n · depth), and O(n · depth²) for the factors.

[Walker & Orin 1982, method 3; Featherstone 2008, table 6.2]

| symbol | shape | meaning | frame |
|---|---|---|---|
| I | RigidInertia | the link with everything it carries | link |
| F | Force by freedom | force that a unit acceleration of that freedom takes | link |
| M | (nv, nv) | mass matrix, armature on its diagonal | joints |
"""

from __future__ import annotations

from spanloop.algorithms.tree import newton_euler
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import power
from spanloop.sweeps import Program, Union, Values, inward


def mass_matrix(mechanism) -> Program:
    """M (nv, nv) at q (nq,)."""
    return Program(
        "mass_matrix",
        ("q",),
        (*placed(()), inward(compose, I=RigidInertia(), F=Union())),
        result=lambda m, here, world: [x for row in matrix(m.nv, here) for x in row],
        shape=(mechanism.nv, mechanism.nv),
        regroup=True,
    )


def forward_dynamics(mechanism, loaded=()) -> Program:
    """a (nv,): solves M a = tau − h by M = LᵀDL, leaves first, which keeps the tree's zeros."""
    h = newton_euler.bias(mechanism, loaded)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        (*(rest(s) for s in h.sweeps), inward(compose, I=RigidInertia(), F=Union())),
        result=lambda m, here, world: _solved(m, here),
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
    )


def rest(sweep):
    """The sweep of the bias torque, its answer kept as h beside the torque that is given."""
    if sweep.step is not newton_euler.feel:
        return sweep

    def bias_torque(link, here, arriving):
        kept, sent = newton_euler.feel(link, here, arriving)
        return Values(h=kept.tau), sent

    return inward(bias_torque, **vars(sweep.start))


def compose(link, here, arriving) -> tuple[Values, Values]:
    """Composite inertia, and the row of the mass matrix that it gives."""
    I = link.inertia + arriving.I
    first = link.v.start
    F = arriving.F + Union({first + k: I @ s for k, s in enumerate(here.S)})
    row = {(first + k, j): power(s, f) for k, s in enumerate(here.S) for j, f in F.items() if j >= first + k}
    for k, m in enumerate(link.armature):
        row[first + k, first + k] = row[first + k, first + k] + m
    sent = Union({j: here.X @ f for j, f in F.items()})
    return Values(row=row), Values(I=I.carried(here.X), F=sent)


def matrix(nv: int, here) -> list[list]:
    M = [[0.0] * nv for _ in range(nv)]
    for h in here:
        for (i, j), x in h.row.items():
            M[i][j] = M[j][i] = x
    return M


def _solved(mechanism, here) -> list:
    """a from M and tau − h; a driven freedom's acceleration is given and its row is left out."""
    M = matrix(mechanism.nv, here)
    driven = [link.driven for link in mechanism.links for _ in range(link.kind.nv)]
    given = [t for h in here for t in h.tau]
    b = [t - x for t, x in zip(given, (x for h in here for x in h.h), strict=True)]
    free = [i for i, d in enumerate(driven) if not d]
    for i in free:
        for j, d in enumerate(driven):
            if d:
                b[i] = b[i] - M[i][j] * given[j]
    a = solve_inward([[M[i][j] for j in free] for i in free], [b[i] for i in free])
    answer = list(given)
    for i, x in zip(free, a, strict=True):
        answer[i] = x
    return answer


def solve_inward(M, b) -> list:
    """x with M x = b for a symmetric M, by M = LᵀDL from the last row to the first: no fill on a tree."""
    n = len(b)
    M, b = [list(r) for r in M], list(b)
    over: list = [0.0] * n
    for k in reversed(range(n)):
        over[k] = reciprocal(M[k][k])
        for i in range(k):
            if isinstance(M[k][i], float) and M[k][i] == 0.0:
                continue
            gain = M[k][i] * over[k]
            for j in range(i + 1):
                M[i][j] = M[i][j] - gain * M[k][j]
            b[i] = b[i] - gain * b[k]
    x: list = []
    for k in range(n):
        t = b[k]
        for i in range(k):
            t = t - M[k][i] * x[i]
        x.append(t * over[k])
    return x
