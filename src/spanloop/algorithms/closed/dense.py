"""Forward dynamics of closed loops by dense matrices: the baseline. O(n³).

M a + h = tau + Jᵀ f, J a + γ = 0; so f = −(J M⁻¹ Jᵀ)⁻¹ (γ + J M⁻¹ (tau − h)).
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.pivot_tolerance import pivot_tolerance, row_groups
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree import newton_euler
from spanloop.algorithms.tree.composite_body import compose, free_equations, keeping_bias, matrix, tree_factors
from spanloop.errors import UnsupportedError
from spanloop.math.inertia import RigidInertia
from spanloop.math.symmetric import LDL, guarded_inverse, pivot_bounds
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
        """Accelerations, and the pivots that must not be zero."""
        rows = [r for r in range(m.n_rows) if r not in dropped]
        flat = J.result(m, here, world)
        jacobian = [flat[r * m.nv : (r + 1) * m.nv] for r in rows]
        gamma = list(bias.result(m, here, world))
        for r, x in closure_kinematics.given_accelerations(m, world).items():
            gamma[r] = gamma[r] - x
        groups = [row_groups(m).get(r, r) for r in rows]
        a, pivots = _accelerations(m, here, jacobian, [gamma[r] for r in rows], groups)
        return Values(answer=a, pivots=pivots)

    def demands(m, here, world):
        return closure_kinematics.openness(m, here, world) + (world.pivots if strict else [])

    sweeps = (
        *(keeping_bias(s) for s in h.sweeps),
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


def _accelerations(m, here, jacobian, gamma, groups: list) -> tuple[list, list]:
    """a (nv,), and pairs of which the first must be less: the bound of each pivot, and the pivot."""
    free, M, right, a = free_equations(m, here, matrix(m, here))
    factors = tree_factors(M)

    def unconstrained(b) -> list:
        found = factors.solve(dict(enumerate(b)))
        return [found[k] for k in range(len(free))]

    alone = unconstrained(right)  # M⁻¹(tau − h)
    J = [[row[i] for i in free] for row in jacobian]
    columns = [unconstrained(row) for row in J]  # M⁻¹Jᵀ
    admittance = [[dot(row, column) for column in columns] for row in J]
    needed = [-(g + dot(row, alone) + dot(whole, a)) for g, row, whole in zip(gamma, J, jacobian, strict=True)]
    f, pivots = _forces(admittance, needed, groups, pivot_tolerance(m))
    for k, i in enumerate(free):
        a[i] = alone[k] + total(columns[r][k] * f[r] for r in range(len(f)))
    return a, pivots


def _forces(A, b, groups: list, tolerance: float) -> tuple[list, list]:
    """f with A f = b, and each pivot after its bound, relative to its closure's own admittance: below, it is zero."""
    bounds = pivot_bounds([row[k] for k, row in enumerate(A)], groups, tolerance)
    factors = LDL(A, lambda k, pivot: guarded_inverse(pivot, bounds[k]))
    return factors.solve(b), list(zip(bounds, factors.pivots, strict=True))
