"""The closures of a mechanism as operators: A, and the inverse of what maps rows to rows.  [Rodriguez, Jain & Kreutz]

    A Ṽ = 0                                                                           (2.16)
    (A Λ A*)⁻¹                                                                        (3.11, 3.13)

Each closure has two points: its frame on body a, then its frame on body b; Ṽ and forces at them are in those frames'
own axes. A row w of the closure, a wrench at b, gives A the block wᵀ at b and −(φ w)ᵀ at a, the same wrench reversed
and seen at a: A Ṽ is the velocity of b on a along the rows. Rows that depend on the others at every configuration are
left out, so that A J has full rank but in singular configurations. Loops in the primary system, in the secondary and
between them are rows like all others: [A_P A_S] with the columns in the order of the closures. All that can be
switched are closed; a driven loop's DoF are rows, too, and U = 0 means that their given accelerations are zero.
"""

from __future__ import annotations

from typing import NamedTuple

from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.symmetric import LDL, pivot_bounds
from spanloop.math.vector3 import is_zero, total
from spanloop.sweeps.program import Values, at_once, carry_out
from spanloop.sweeps.terms import FRAMES, ONE, ROWS, Term, is_starred, starred
from spanloop.topology.tree_paths import relative_pose


class Wrench(NamedTuple):
    """A row of A."""

    group: tuple[int, str]  # its closure and kind, moments or forces: such rows share a scale
    on_a: Force
    on_b: Force


class Along(Term):
    """A: the relative velocities of closures along their rows; A* takes forces along rows to points."""

    level = 0

    def __init__(self, text: str = "A"):
        self.text = text
        self.rows, self.columns = (FRAMES, ROWS) if is_starred(text) else (ROWS, FRAMES)

    def star(self) -> Along:
        return Along(starred(self.text))

    def sweeps(self, source, target):
        def measure(m, here, world) -> Values:
            """A Ṽ."""
            at = _places(m)
            out = []
            for row in _wrenches(m, here, world):
                number = row.group[0]
                ends = [(2 * number, row.on_a), (2 * number + 1, row.on_b)]
                out.append(total(power(_point(here, at[n], source), K) for n, K in ends if n in at))
            return Values(**{target: tuple(out)})

        def press(m, here, world) -> tuple[Values, dict[int, Values]]:
            """A* f."""
            pushes = [Force() for _ in range(2 * len(m.closures))]
            for row, f in zip(_wrenches(m, here, world), getattr(world, source), strict=True):
                for n, K in enumerate((row.on_a, row.on_b), 2 * row.group[0]):
                    pushes[n] = pushes[n] + K * f
            blocks = [[0.0] * (6 * len(h.frames)) for h in here]
            for n, (link, k) in _places(m).items():
                blocks[link][6 * k : 6 * k + 6] = tuple(pushes[n])
            return Values(), {link: Values(**{target: tuple(block)}) for link, block in enumerate(blocks)}

        return (at_once(press if is_starred(self.text) else measure),)


class RowIdentity(Term):
    """1 on vectors of rows."""

    text, rows, columns, level = ONE, ROWS, ROWS, 0

    def star(self) -> RowIdentity:
        return self

    def sweeps(self, source, target):
        def keep(m, here, world) -> Values:
            """The same."""
            return Values(**{target: getattr(world, source)})

        return (at_once(keep),)


class RowInverse(Term):
    """The inverse of a symmetric map of rows to rows: its matrix, column by column, and one L D Lᵀ. O(n) a row, and
    their number cubed."""

    rows = columns = ROWS

    def __init__(self, of: Term):
        self.of, self.level, self.text = of, of.level, f"({of.text}).inverse()"

    def star(self) -> RowInverse:
        return self

    def sweeps(self, source, target):
        unit, column = f"{target} unit", f"{target} column"

        def solve(m, here, world) -> Values:
            """L⁻ᵀ D⁻¹ L⁻¹."""
            rows = _wrenches(m, here, world)
            matrix = []
            for k in range(len(rows)):
                links = [Values(**vars(h)) for h in here]
                one = Values(**{**vars(world), unit: tuple(1.0 if i == k else 0.0 for i in range(len(rows)))})
                carry_out(self.of.sweeps(unit, column), m, links, one)
                matrix.append(getattr(one, column))
            factors = LDL(matrix, lambda k, pivot: 0.0 if is_zero(pivot) else reciprocal(pivot))
            bounds = pivot_bounds([row[k] for k, row in enumerate(matrix)], [row.group for row in rows])
            pivots = [*pivot_demands(m, here, world), *zip(bounds, factors.pivots, strict=True)]
            return Values(**{target: tuple(factors.solve(getattr(world, source))), "pivots": pivots})

        return (at_once(solve),)


def pivot_demands(m, here, world) -> list:
    """Pairs of which the first must be less for the inverses to exist: the bound of each pivot, and the pivot."""
    return getattr(world, "pivots", [])


def _wrenches(m, here, world) -> list[Wrench]:
    """Rows of A at this state."""
    kept = world.kept()
    out = []
    for c in m.closures:
        x = relative_pose(m, here, c)
        for k, (number, w) in enumerate(zip(c.rows, c.kind.closure_space(x), strict=True)):
            if number in kept:
                out.append(Wrench((c.number, c.row_kind(k)), -(x @ w), w))
    return out


def _places(m) -> dict[int, tuple[int, int]]:
    """Where each point of closure that moves is kept: its link, and its number among those that the link carries."""
    count: dict[int, int] = {}
    out = {}
    for n, anchor in enumerate(x for c in m.closures for x in (c.a, c.b)):
        if anchor.link >= 0:
            out[n] = (anchor.link, count.setdefault(anchor.link, 0))
            count[anchor.link] += 1
    return out


def _point(here, place: tuple[int, int], source: str) -> Motion:
    link, k = place
    return Motion.of(getattr(here[link], source)[6 * k : 6 * k + 6])
