"""The root system: rows that reached the world, and the accelerations of free bodies that they touch.

    [ L   Kᵀ ] [f]   [ −l      ]
    [ K  −P  ] [a] = [ z − tau ]

Blocks are eliminated in an order of little fill: with m arms on an object each arm's closure comes by itself and the
object last, which is the 6×6 of [Lilly & Orin 45-46]. Rows eliminated before a free body have their pivots clamped,
and one refinement takes back what that adds; closures that cannot stand alone wait until the body is gone. Where
the rows of two arms are lost together the refinement does not come to its end: what it leaves of the equations, the
added pivots times its step, must be nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.algorithms.closed.pivot_tolerance import Guard
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.math.scalar import reciprocal
from spanloop.math.sparse_ldl import SparseLDL, System, block_order
from spanloop.math.spatial import Motion
from spanloop.math.vector3 import total
from spanloop.sweeps import Values

LEFT = 1e-10  # of the accelerations asked for, what the refinement may leave


def rooted(mechanism, redundancy: Redundancy, meets: dict[int, int]):
    """The step that solves the root system; meets: where each row is eliminated."""
    guard = Guard(mechanism)
    block_of = {r: ("closure", c.number) for c in mechanism.closures for r in c.rows}

    def solve_root(_, here, world) -> Values:
        """Forces of the rows that reached the world and accelerations of the free bodies they touch."""
        pending = world.rows
        system = System()
        blocks: dict[tuple, list] = {}
        open_rows = [r for r in pending.l if meets[r] < 0]
        for r in open_rows:
            blocks.setdefault(block_of.get(r, ("gear", r)), []).append(r)
            system.right[r] = -pending.l[r]
            for s in open_rows:
                if s <= r:
                    system.add(r, s, pending.admittance(r, s))
        for i, body in world.kept.items():
            blocks["body", i] = _bordered(system, mechanism.links[i], here[i], body)
        thin: list = []
        if not blocks:
            return Values(f={}, thin=thin)
        x = _solved(system, blocks, redundancy, _Masked(guard, pending.L0, world.mask), thin)
        for i in world.kept:
            here[i].root = Motion.of([x[i, k] for k in range(6)])
        return Values(f={r: x[r] for r in open_rows}, thin=thin)

    return solve_root


def _bordered(system: System, link, here, body) -> list:
    """Rows −P a + K f = z − tau of a free body."""
    P, z, wrenches = body
    rows = P.rows()
    for k in range(6):
        for j in range(k + 1):
            system.add((link.number, k), (link.number, j), -(rows[k][j] + (link.armature[k] if j == k else 0.0)))
        system.right[link.number, k] = tuple(z)[k] - here.torque[k]
        for r, K in wrenches.items():
            system.add((link.number, k), r, tuple(K)[k])
    return [(link.number, k) for k in (3, 4, 5, 0, 1, 2)]


@dataclass(frozen=True)
class _Masked:
    """A guard with the numbers of one state."""

    guard: Guard
    L0: dict
    mask: dict

    def __call__(self, method: str, r: int, pivot):
        return getattr(self.guard, method)(r, pivot, self.L0, self.mask)


def _solved(system: System, blocks: dict, redundancy: Redundancy, guard: _Masked, thin: list) -> dict:
    order, names = block_order(blocks, system, lambda b: b[0] == "closure" and b[1] in redundancy.weak)
    waiting = {b for b in names if b[0] == "body"}
    early: set = set()  # rows eliminated while a free body is still to come
    for b in names:
        waiting.discard(b)
        if waiting and b[0] != "body":
            early.update(blocks[b])

    added: dict = {}  # to the pivots of early rows

    def over(x, pivot):
        if isinstance(x, tuple):
            return reciprocal(pivot)
        if x in early:
            out, added[x] = guard("held", x, pivot)
            return out
        thin.append(guard("bound", x, pivot))
        return guard("zero", x, pivot)

    factors = SparseLDL(system, order, over)
    x = factors.solve(system.right)
    if early:  # one refinement takes back what was added
        missed = system.times(x)
        step = factors.solve({n: b - missed.get(n, 0.0) for n, b in system.right.items()})
        x = {n: t + step[n] for n, t in x.items()}
        left = total((e * step[n]) * (e * step[n]) for n, e in added.items())
        asked = total(y * y for y in [*(system.right[n] for n in added), *(x[n] for n in x if isinstance(n, tuple))])
        thin.append((left, LEFT**2 * asked + 1e-24))
    return x
