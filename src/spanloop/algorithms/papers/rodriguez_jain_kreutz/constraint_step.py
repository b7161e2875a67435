"""Step D by itself: the forces of closures from what the two systems report of their points, and nothing else.

[Rodriguez, Jain & Kreutz, section 3]:  [A_P Λ_P A_P* + A_S Λ_S A_S*] f̃ = A_P α̃ᶠ_P + A_S α̃ᶠ_S − U       (3.11)

The mechanism that is walked has one free link for each point of closure, those of the primary system first: what a
closure constrains depends on where its two points are and how they move, never on the joints behind them.

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| primary, secondary | – | (24 k + 36 k²,) | what a system reports of its points: system_response.py | world |
| X, V, free | –, Ṽ, α̃ᶠ | by point | pose; velocity; free acceleration (classical) | world, point, world |
| omega | Λ | six Motions by two points | Λ_P and Λ_S; there is none between the systems | world |
| rows | A, U | by row | wrenches on two points, known acceleration γ = A α̃ᶠ − U along the row | world |
| push | −A* f̃ | (6 k,) | forces at all points, as system_response.forced_response takes them | world |

The cheap form has six equations, whatever the number of arms: where the secondary system is one free body, its
inertia at its first point is Λ_S(1, 1)⁻¹, and A_P Λ_P A_P* has a block for each arm. Signs: a row's force acts as K f
on both its points, with K_b = −K_a along one line; in the paper's 2.16 that is A_P = K_aᵀ, A_S = K_bᵀ, f̃ = −f.
"""

from __future__ import annotations

from collections.abc import Iterable

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import basis_of, rows
from spanloop.algorithms.closed.pivot_tolerance import masked_factors, pivot_demands, row_bounds
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.lilly_orin.general_joints import Constraint
from spanloop.algorithms.papers.lilly_orin.reference_member import ChainRows, balanced, convergence
from spanloop.algorithms.papers.rodriguez_jain_kreutz.closure_admittance import row_admittance, row_forces
from spanloop.math.inertia import ArticulatedInertia, RigidInertia
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Field, Force, Motion, Transform, power
from spanloop.math.symmetric import inverse
from spanloop.math.vector3 import ZERO3, subtract, total
from spanloop.sweeps import Program, Values, at_once

POINT = 24  # numbers that a system reports of a point, besides Λ: pose, velocity, acceleration


def point_numbers(k: int) -> int:
    """How many numbers a system reports of k points."""
    return POINT * k + 36 * k * k


def constraint_step(
    mechanism, counts: tuple[int, int], coupled: Iterable[tuple[int, int]], cheap: bool, redundancy: Redundancy
) -> Program:
    """Forces (6 k,) at all k points of closure, world axes, for what both systems report of theirs.

    mechanism: of points and closures alone. counts: points of the primary and of the secondary system. coupled: pairs
    of points of the primary that feel each other; the others have no Λ. cheap: step D takes its cheap form.
    """
    names = ("primary", "secondary")
    sizes = {
        name: point_numbers(k) for name, k in zip(names, counts, strict=True) if k
    } | closure_kinematics.extra_inputs(mechanism)
    near = frozenset(coupled)

    def arrive(m, here, world) -> tuple[Values, dict[int, Values]]:
        """Points with their poses and motions; Λ."""
        omega: dict = {}
        points: dict[int, Values] = {}
        for name, k, first in zip(names, counts, (0, counts[0]), strict=True):
            numbers = getattr(world, name, ())
            for i in range(k):
                points[first + i] = _point(numbers[POINT * i : POINT * (i + 1)])
            for i in range(k):
                for j in range(k):
                    if name == "secondary" or (i, j) in near:
                        omega[first + i, first + j] = _columns(numbers[POINT * k :], i, j, k)
        return Values(omega=omega), points

    def closure_rows(m, here, world) -> Values:
        """Rows of all closures: number, ends, γ."""
        given = closure_kinematics.given_accelerations(m, world)
        return Values(rows={c.number: _row_ends(m, here, c, redundancy.dropped, given) for c in m.closures})

    def demands(m, here, world) -> list:
        openness = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
        return openness + (world.pivot_bounds if redundancy.refuses_singular else [])

    return Program(
        "constraint_step",
        tuple(sizes),
        (at_once(arrive), at_once(closure_rows), at_once(_cheap(counts[0]) if cheap else whole)),
        result=lambda m, here, world: [x for i in range(len(here)) for x in world.pushes.get(i, Force())],
        shape=(6 * sum(counts),),
        demands=demands,
        sizes=sizes,
        double=cheap,
    )


def closure_errors(mechanism, program: Program) -> Program:
    """How far the closures are from closed, for the inputs of step D."""
    n = sum(len(c.rows) for c in mechanism.closures)
    return Program(
        "closure_error",
        program.inputs,
        program.sweeps[:1],
        closure_kinematics.closure_error(mechanism).result,
        (n,),
        sizes=program.sizes,
    )


# ---- what arrives


def _point(numbers) -> Values:
    """A point's pose, velocity in its own axes, free acceleration in the world's."""
    R = Rotation.full(tuple(tuple(numbers[4 * r : 4 * r + 3]) for r in range(3)))  # type: ignore[arg-type]
    V = Motion.of(numbers[12:18]).turned(R.T)
    free = Motion.of(numbers[18:24])
    return Values(X=Transform(R, tuple(numbers[3:12:4])), V=V, field=Field(V.angular), free=free)


def _columns(numbers, i: int, j: int, k: int) -> list[Motion]:
    """Λ between two of k points: a motion of point i for each unit force at point j."""
    return [Motion.of([numbers[(6 * i + r) * 6 * k + 6 * j + c] for r in range(6)]) for c in range(6)]


def _row_ends(m, here, closure, dropped, given) -> list:
    """Rows of a closure: number, [(point, wrench in world axes)], γ."""
    out = []
    for row in rows(m, here, closure, basis_of(m, closure, dropped), Field(ZERO3)):
        if row.number not in dropped:
            ends = [(closure.a.link, row.on_a), (closure.b.link, row.on_b)]
            ends = [(i, K.turned(here[i].X.rotation)) for i, K in ends if i >= 0]
            gamma = [row.bias, -given.get(row.number, 0.0), *(power(here[i].free, K) for i, K in ends)]
            out.append((row.number, ends, total(gamma)))
    return out


# ---- the solution


def whole(m, here, world) -> Values:
    """(3.11): A Λ A* as a whole."""
    numbered = [row for found in world.rows.values() for row in found]
    masks = closure_kinematics.masks(m, world)
    on = [masks.get(number, 1.0) for number, _, _ in numbered]
    L = row_admittance(world.omega, [ends for _, ends, _ in numbered])
    bounds = row_bounds(m, [number for number, _, _ in numbered], L)
    factors = masked_factors(L, bounds, on)
    f = factors.solve([-gamma for _, _, gamma in numbered])
    pushes = row_forces([ends for _, ends, _ in numbered], f)
    return Values(pushes=pushes, pivot_bounds=pivot_demands(bounds, factors, on))


def _cheap(body: int):
    """body: the first point of the secondary system, which is one free body."""

    def balance(m, here, world) -> Values:
        """N_S = 6 equations of the secondary body; A_P Λ_P A_P* by arms."""
        masks, origin = closure_kinematics.masks(m, world), here[body].X.translation
        chains, ends = [], []
        for c in (c for c in m.closures if world.rows[c.number]):
            constraints = []
            for n, (number, sides, gamma) in enumerate(world.rows[c.number]):
                (tip, K), (body_point, A) = sorted(sides, key=lambda side: side[0])
                seen = Transform(translation=subtract(here[body_point].X.translation, origin)) @ A
                kind, mask = c.row_kind(c.rows.index(number)), masks.get(number, 1.0)
                constraints.append(Constraint((c.number, n), kind, K, seen, gamma, mask=mask))
                ends.append(sides)
            L = row_admittance({(tip, tip): world.omega[tip, tip]}, [[(tip, r.K)] for r in constraints])
            chains.append(ChainRows(constraints, L, [-r.gamma for r in constraints], len(constraints)))
        inertia, bulk = _weighed([tuple(column) for column in world.omega[body, body]])
        found, system = balanced(chains, inertia, Force(), bulk)
        pushes = row_forces(ends, [x for xs in found.h for x in xs])
        return Values(pushes=pushes, pivot_bounds=convergence(system, found))

    return balance


def _weighed(admittance) -> tuple[ArticulatedInertia, RigidInertia]:
    """A free body's inertia at a point, Λ⁻¹, and the same body's about its mass centre."""
    rows = inverse(admittance)
    turning = inverse([column[:3] for column in admittance[:3]])
    return ArticulatedInertia.of_rows(rows), RigidInertia.at_center(rows[5][5], ZERO3, turning)  # type: ignore[arg-type]
