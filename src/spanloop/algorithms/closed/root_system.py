"""The root system: rows that reach the world, and the accelerations of free bodies that they touch.

    [ L      Kᵀ    ] [f]   [ −l    ]
    [ K  −(P + ρ)  ] [a] = [ z − τ ]        (17) of docs/theory/elimination.md

| symbol | shape | meaning | frame |
|---|---|---|---|
| f, l, L | by row | forces, known accelerations, admittances of the rows that reach the world (row_propagation) | – |
| a | Motion by body | acceleration of a free body beyond ζ: six unknowns | link |
| P, z, K | by body | articulated inertia, bias force, wrenches of the rows (16) | link |
| ρ, τ | six by body | armature (link.armature) and torque (here.torque) of its joint (16) | link |
| L0 | by row | scale of the row's pivot (19) | – |
| added | by row | δ, what clamping adds to a pivot (20) | – |

Blocks are eliminated in an order of little fill: with m arms on an object each arm's closure comes by itself and the
object last, which is the 6×6 of [Lilly & Orin 45-46], (18). Rows eliminated before a free body have their pivots
clamped (20), and one refinement takes back what that adds (21); closures whose rows depend on each other without the
body wait until it is eliminated. Where the rows of two arms lose rank together the refinement does not converge: the
residual that it leaves, the added pivots times its step (22), must vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spanloop.algorithms.closed.pivot_tolerance import PivotTolerance
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.sparse_ldl import SparseLDL, System, block_order
from spanloop.math.spatial import Force, Motion
from spanloop.math.vector3 import total
from spanloop.sweeps import Values

LARGEST_STEP = 1e-5  # of the refinement, where states beyond it are refined again (refinement.py)
LARGEST_RESIDUAL = 1e-10  # that the refinement may leave, relative to the accelerations along rows and of free bodies


class FreeBody(NamedTuple):
    """A floating link with all that it carries: articulated inertia, bias force, wrenches of the pending rows (16)."""

    P: ArticulatedInertia
    z: Force
    K: Mapping[int, Force]


class FreeBodies(dict):
    """Free bodies by link, whose accelerations stay unknowns of the root system."""

    def __add__(self, other: FreeBodies) -> FreeBodies:
        return FreeBodies({**self, **other})


def root_system(mechanism, redundancy: Redundancy, ancestors: Mapping[int, int]) -> Callable:
    """The step that solves the root system; ancestors: the link at which each row is eliminated, −1 for the world."""
    tolerance = PivotTolerance(mechanism)
    block_of = {r: ("closure", c.number) for c in mechanism.closures for r in c.rows}

    def solve_root(_, here, world) -> tuple[Values, Mapping[int, Values]]:
        """Forces of the rows that reach the world and accelerations of the free bodies that they touch (17)."""
        pending = world.rows
        system = System()
        blocks: dict[tuple, list] = {}
        open_rows = [r for r in pending.l if ancestors[r] < 0]
        for r in open_rows:
            blocks.setdefault(block_of.get(r, ("gear", r)), []).append(r)
            system.right[r] = -pending.l[r]
            for t in open_rows:
                if t <= r:
                    system.add(r, t, pending.admittance(r, t))
        for i, body in world.free_bodies.items():
            blocks["body", i] = _add_body(system, mechanism.links[i], here[i], body)
        if not blocks:
            return Values(f={}, pivot_bounds=[]), {}
        x, bounds = _solve(system, blocks, redundancy, tolerance, pending.L0, world.mask)
        free = {i: Values(free_acceleration=Motion.of([x[i, k] for k in range(6)])) for i in world.free_bodies}
        return Values(f={r: x[r] for r in open_rows}, pivot_bounds=bounds), free

    return solve_root


def _add_body(system: System, link, here, body: FreeBody) -> list:
    """Adds the rows K f − (P + ρ) a = z − τ of a free body (16) to the system; the names of its unknowns, in order."""
    rows = body.P.rows()
    for k in range(6):
        for j in range(k + 1):
            system.add((link.number, k), (link.number, j), -(rows[k][j] + (link.armature[k] if j == k else 0.0)))
        system.right[link.number, k] = tuple(body.z)[k] - here.torque[k]
        for r, K in body.K.items():
            system.add((link.number, k), r, tuple(K)[k])
    return [(link.number, k) for k in (3, 4, 5, 0, 1, 2)]


def _solve(system: System, blocks: dict, redundancy: Redundancy, tolerance: PivotTolerance, L0, mask) -> tuple:
    """The unknowns by name, and pairs of which the first must be less."""
    order, names = block_order(blocks, system, lambda b: b[0] == "closure" and b[1] in redundancy.weak)
    clamped = _rows_before_bodies(names, blocks)
    bounds: list = []
    added: dict = {}  # δ of the clamped pivots
    scale = dict(L0)  # of the rows' pivots, with the admittances of the bodies that are eliminated before them

    def changes(x, y, value) -> None:
        if isinstance(x, tuple) and not isinstance(y, tuple):
            scale[y] = scale[y] + value if y in scale else value

    def inverse_pivot(x, pivot):
        if isinstance(x, tuple):  # a direction of a free body
            return reciprocal(pivot)
        if x in clamped:
            out, added[x] = tolerance.clamped(x, pivot, L0, mask)
            return out
        bounds.append(tolerance.bound(x, pivot, scale, mask))
        return tolerance.inverse(x, pivot, scale, mask)

    factors = SparseLDL(system, order, inverse_pivot, changes)
    x = factors.solve(system.right)
    if clamped:
        product = system.times(x)
        step = factors.solve({n: b - product.get(n, 0.0) for n, b in system.right.items()})  # (21)
        x = {n: y + step[n] for n, y in x.items()}
        if tolerance.refines:  # a step of 1e-5 leaves an error of about 1e-10
            bounds.append(_largest_step(x, step, tolerance))
        residual = total((d * step[n]) * (d * step[n]) for n, d in added.items())  # (22)
        size = total(y * y for y in [*(system.right[n] for n in added), *(x[n] for n in x if isinstance(n, tuple))])
        bounds.append((residual, LARGEST_RESIDUAL**2 * size + 1e-24))
    return x, bounds


def _largest_step(x: Mapping, step: Mapping, tolerance: PivotTolerance) -> tuple:
    """The squared step of the free bodies' accelerations, metres as shares of the length, and what it may be."""

    def squared(values: Mapping) -> Any:
        lengths = {n: 1.0 if n[1] < 3 else 1.0 / tolerance.length for n in values if isinstance(n, tuple)}
        return total((lengths[n] * values[n]) * (lengths[n] * values[n]) for n in lengths)

    return squared(step), LARGEST_STEP**2 * (squared(x) + tolerance.gravity)


def _rows_before_bodies(names: list, blocks: dict) -> set:
    """Rows that are eliminated while a free body is still to come."""
    last = max((k for k, name in enumerate(names) if name[0] == "body"), default=0)
    return {r for name in names[:last] if name[0] != "body" for r in blocks[name]}
