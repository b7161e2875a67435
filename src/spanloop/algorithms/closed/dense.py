"""Forward dynamics of closed loops by dense matrices: the baseline. O(n³).

M a + h = tau + Jᵀ f, J a + γ = 0; so f = −(J M⁻¹ Jᵀ)⁻¹ (γ + J M⁻¹ (tau − h)).
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.pivot_tolerance import TINY, guarded, row_groups
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree import newton_euler
from spanloop.algorithms.tree.composite_body import compose, matrix, rest, solve_inward
from spanloop.errors import UnsupportedError
from spanloop.math.inertia import RigidInertia
from spanloop.math.vector3 import dot, total
from spanloop.sweeps import Program, Union, Values, at_once, inward


def forward_dynamics(mechanism, loaded=(), redundancy: Redundancy | None = None) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration."""
    h, J, bias = (
        newton_euler.bias(mechanism, loaded),
        closure_kinematics.closure_jacobian(mechanism),
        closure_kinematics.closure_bias(mechanism),
    )
    redundancy = redundancy or Redundancy()
    dropped, strict, sizes = redundancy.dropped, redundancy.refuses_singular, closure_kinematics.extra_inputs(mechanism)
    if "active" in sizes:
        raise UnsupportedError("method 'dense' has no switchable closures; use 'elimination'")

    def solve(m, here, world) -> Values:
        """Accelerations, and the pivots that must not be nothing."""
        rows = [r for r in range(m.n_rows) if r not in dropped]
        flat = J.result(m, here, world)
        jacobian = [flat[r * m.nv : (r + 1) * m.nv] for r in rows]
        gamma = list(bias.result(m, here, world))
        for r, x in closure_kinematics.given(m, world).items():
            gamma[r] = gamma[r] - x
        thin: list = []
        sorts = [row_groups(m).get(r, r) for r in rows]
        return Values(answer=_solved(m, here, jacobian, [gamma[r] for r in rows], sorts, thin), thin=thin)

    def demands(m, here, world):
        return closure_kinematics.openness(m, here, world) + (world.thin if strict else [])

    sweeps = (
        *(rest(s) for s in h.sweeps),
        *bias.sweeps[1:],
        inward(compose, I=RigidInertia(), F=Union()),
        at_once(solve),
    )
    return Program(
        "forward_dynamics",
        h.inputs[:2] + ("tau",) + h.inputs[2:] + tuple(sizes),
        sweeps,
        lambda m, here, world: world.answer,
        (mechanism.nv,),
        loaded=loaded,
        demands=demands,
        sizes=sizes,
    )


def _solved(m, here, jacobian, gamma, sorts: list, thin: list) -> list:
    M = matrix(m.nv, here)
    driven = [link.driven for link in m.links for _ in range(link.kind.nv)]
    free = [i for i, d in enumerate(driven) if not d]
    given = [t if d else 0.0 for d, t in zip(driven, (t for h in here for t in h.tau), strict=True)]
    right = [t - x for h in here for t, x in zip(h.tau, h.h, strict=True)]
    right = [right[i] - dot(M[i], given) for i in free]
    inner = [[M[i][j] for j in free] for i in free]
    alone = solve_inward(inner, right)
    J = [[row[i] for i in free] for row in jacobian]
    columns = [solve_inward(inner, row) for row in J]
    admittance = [[dot(row, column) for column in columns] for row in J]
    needed = [-(g + dot(row, alone) + dot(whole, given)) for g, row, whole in zip(gamma, J, jacobian, strict=True)]
    f = _forces(admittance, needed, sorts, thin)
    answer = list(given)
    for k, i in enumerate(free):
        answer[i] = alone[k] + total(columns[r][k] * f[r] for r in range(len(f)))
    return answer


def _forces(A, b, sorts: list, thin: list) -> list:
    """x with A x = b by LDLᵀ; a pivot that is nothing beside its closure's own admittance counts as zero."""
    n = len(b)
    A, b = [list(r) for r in A], list(b)
    own = [total(A[j][j] for j in range(n) if sorts[j] == sorts[k]) for k in range(n)]
    over = [0.0] * n
    for k in range(n):
        over[k] = guarded(A[k][k], own[k])
        thin.append((TINY * own[k], A[k][k]))
        for i in range(k + 1, n):
            gain = A[i][k] * over[k]
            for j in range(k + 1, i + 1):
                A[i][j] = A[j][i] = A[i][j] - gain * A[k][j]
            b[i] = b[i] - gain * b[k]
    x: list = [0.0] * n
    for k in reversed(range(n)):
        x[k] = over[k] * total([b[k], *(-(A[k][j] * x[j]) for j in range(k + 1, n))])
    return x
