"""The second half of a PairSystem as LLVM source:  i1 finish(ptr numbers, ptr work, ptr out)

multiplies pairs of vectors, factors and solves for one state; it returns whether all numbers are finite. Lanes of
vectors are columns. Loops over items are written out where that is short, because short loops end in mispredicted
branches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanloop.compiler.lower.pair_system import PairSystem, Terms
from spanloop.compiler.render.vector_code import LANES, Index, Table, VectorCode

GROUP = 8  # vectors of a row that are solved for together, at most
KINDS = 12  # patterns of zeros that have code of their own, at most
FLAT = 5000  # operations on vectors up to which loops over items are written out

_Others = tuple[Table, Table, tuple[int, ...]]  # tables of items by row: starts, items; vectors of their rows to use


class Finish:
    """The function `finish` of one system. Its work: matrices by rows, then D⁻¹, then the vectors of all items."""

    def __init__(self, plan: PairSystem, real: str):
        self.plan, self.real, n = plan, real, plan.n
        groups = max(1, -(-n // (LANES * GROUP)))
        self.group = max(1, -(-n // (LANES * groups)))  # vectors of a row that are solved for together
        self.blocks = groups * self.group  # vectors of a row
        self.stride = LANES * self.blocks  # of rows
        self.part = n * self.stride  # of matrices: by the three inputs; M, if it is solved for
        self.mass = (3 if plan.is_solved else 2) * self.part
        self.inverse = self.mass + self.part
        self.rows = self.inverse + self.stride * plan.is_solved
        used = {y for m in plan.matrices for terms in (m.below, m.above) for _, y in terms}
        self.components = max(used, default=-1) + 1
        self.size = self.rows + self.components * self.stride

    def source(self) -> str:
        """Source of the function and its tables."""
        self.code = c = VectorCode(self.real)
        self._clear()
        self._spread()
        self._multiply()
        self._add()
        if self.plan.is_solved:
            self._fix()
            self._factor()
            self._solve()
        c.lines.append(f"ret i1 {self._hand_over()}")
        return c.source("define internal i1 @finish(ptr noalias %numbers, ptr noalias %work, ptr noalias %out)")

    def _clear(self) -> None:
        c = self.code
        c.each(0, self.inverse // LANES, lambda k: c.store("zeroinitializer", "%work", c.times(k, LANES)))
        if self.plan.is_solved:
            for b in range(self.blocks):
                c.store(c.wide.constant(1.0), "%work", self.inverse + LANES * b)

    def _spread(self) -> None:
        """Rows of components, each from a place of its own on, so that no vector crosses a line of the cache."""
        c, n = self.code, self.plan.n

        def row(k: Index) -> None:
            first, to = c.times(k, n), c.sum(c.times(k, self.stride), self.rows)
            for b in range(-(-n // LANES)):
                c.store(c.load("%numbers", c.sum(first, LANES * b), c.t.size), "%work", c.sum(to, LANES * b))

        c.each(0, self.components, row)

    def _multiply(self) -> None:
        """The products, row by row: vectors of item i in all lanes, those of items j in one lane each."""
        for kind in ("below", "above"):
            terms: list[Terms] = [getattr(m, kind) for m in self.plan.matrices]
            if self.plan.is_solved and kind == "above":
                terms[2] = ()  # M is symmetric: its lower half will do
            rows: tuple[tuple[int, ...], ...] = getattr(self.plan, kind)
            count = sum(len({j // LANES for j in row}) for row in rows)
            with self.code.flat(count * sum(map(len, terms)) <= FLAT):
                self._multiply_rows(rows, terms, kind == "above")

    def _multiply_rows(self, rows: Sequence[Sequence[int]], terms: Sequence[Terms], is_added: bool) -> None:
        c = self.code
        used = [sorted({j // LANES for j in row}) for row in rows]
        starts = c.table("starts", _starts(used))
        columns = c.table("columns", [LANES * b for row in used for b in row])
        masks = c.table(
            "masks",
            [int(b * LANES + k in row) for row, bs in zip(rows, used, strict=True) for b in bs for k in range(LANES)],
            "i8",
        )
        left, right = sorted({x for m in terms for x, _ in m}), sorted({y for m in terms for _, y in m})

        def row(i: Index) -> None:
            known = {x: c.everywhere(c.scalar("%numbers", c.sum(i, x * self.plan.n))) for x in left}
            own = c.times(i, self.stride)
            if not is_added:
                c.prefetch("%out", c.times(i, 3 * self.plan.n), 3 * self.plan.n)

            def block(e: Index) -> None:
                j, mask = c.entry(columns, e), c.mask(masks, e)
                there = {y: c.load("%work", c.sum(j, self.rows + y * self.stride)) for y in right}
                for k, m in enumerate(terms):
                    if m:
                        at = c.sum(c.sum(own, j), self._first(k))
                        old = c.load("%work", at) if is_added else "zeroinitializer"
                        total = c.products([(known[x], there[y]) for x, y in m])
                        c.store(c.select(mask, total, old), "%work", at)

            c.each(c.entry(starts, i), c.entry(starts, c.sum(i, 1)), block)

        c.each(0, self.plan.n, row)

    def _first(self, matrix: int) -> int:
        """Where a matrix begins."""
        return self.mass if matrix == 2 else matrix * self.part

    def _offset(self, matrix: int, i: int, j: int) -> int:
        if matrix == 2 and self.plan.is_solved:
            i, j = max(i, j), min(i, j)  # its lower half
        return self._first(matrix) + i * self.stride + j

    def _unit_offset(self, i: int, j: int) -> int:
        """Of the right side by the third input."""
        return 2 * self.part + i * self.stride + j

    def _add(self) -> None:
        """Numbers that stand at single entries."""
        c = self.code
        plain: dict[int, float] = {}
        for a in self.plan.additions:
            if a.at is None:
                at = self._offset(a.matrix, a.i, a.j)
                plain[at] = plain.get(at, 0.0) + a.value
        if self.plan.is_solved:
            plain |= {self._unit_offset(i, i): 1.0 for i in range(self.plan.n)}
        if plain:
            places, values = c.table("places", list(plain)), c.constants("values", list(plain.values()))
            c.each(0, len(plain), lambda k: self._increase(c.entry(places, k), c.scalar(values, k)))
        found = [(self._offset(a.matrix, a.i, a.j), a.at) for a in self.plan.additions if a.at is not None]
        if found:
            places, sources = c.table("places", [p for p, _ in found]), c.table("sources", [s for _, s in found])
            c.each(
                0, len(found), lambda k: self._increase(c.entry(places, k), c.scalar("%numbers", c.entry(sources, k)))
            )

    def _increase(self, at: Index, x: str) -> None:
        c = self.code
        c.set(c.line(f"fadd {c.t.real} {c.scalar('%work', at)}, {x}"), "%work", at)

    def _fix(self) -> None:
        """Fixed items: their rows are cleared, their columns of M go to the right side."""
        c, plan = self.code, self.plan
        for i in sorted(plan.fixed):
            for b in range(self.blocks):
                for part in (0, 1):
                    c.store("zeroinitializer", "%work", part * self.part + i * self.stride + LANES * b)
            for j in range(plan.n):
                if j not in plan.fixed and (i in plan.below[j] or j in plan.below[i]):
                    x = c.line(f"fneg {c.t.real} {c.scalar('%work', self._offset(2, i, j))}")
                    self._increase(self._unit_offset(j, i), x)

    def _factor(self) -> None:
        """M = LᵀDL, leaves first, which keeps the zeros of the forest; L in M's place, D⁻¹ beside it."""
        c, plan, real = self.code, self.plan, self.code.t.real
        starts, carriers = c.table("starts", _starts(plan.carriers)), c.table("carriers", _joined(plan.carriers))
        self.up: _Others = (starts, carriers, tuple(range(self.group)))
        free = [i for i in reversed(range(plan.n)) if i not in plan.fixed]
        order = c.table("order", free)

        def eliminate(step: Index) -> None:
            k = c.entry(order, step)
            row = c.sum(c.times(k, self.stride), self.mass)
            inverse = c.line(f"fdiv {real} {c.t.constant(1.0)}, {c.scalar('%work', c.sum(row, k))}")
            c.set(inverse, "%work", c.sum(k, self.inverse))
            ends = c.entry(starts, k), c.entry(starts, c.sum(k, 1))

            def reduce(e: Index) -> None:
                i = c.entry(carriers, e)
                factor = c.everywhere(c.line(f"fmul {real} {c.scalar('%work', c.sum(row, i))}, {inverse}"))
                to = c.sum(c.times(i, self.stride), self.mass)

                def block(b: Index) -> None:
                    at = c.times(b, LANES)
                    own, other = c.sum(to, at), c.sum(row, at)
                    c.store(c.less(c.load("%work", own), factor, c.load("%work", other)), "%work", own)

                c.each(0, c.sum(c.over(i, LANES), 1), block)

            def divide(e: Index) -> None:
                at = c.sum(row, c.entry(carriers, e))
                c.set(c.line(f"fmul {real} {c.scalar('%work', at)}, {inverse}"), "%work", at)

            c.each(*ends, reduce)
            c.each(*ends, divide)

        with c.flat(self._pairs * self.blocks <= FLAT):
            c.each(0, len(free), eliminate)

    @property
    def _pairs(self) -> int:
        return sum(map(len, self.plan.carriers))

    def _solve(self) -> None:
        """Lᵀ y = right side from the last item to the first, then D⁻¹, then L x = y from the first to the last.

        Some columns of all rows at a time, which stay in the fastest memory.
        """
        c, n = self.code, self.plan.n
        down, is_short = self._carried_by_blocks(), 2 * self._pairs * self.group <= FLAT
        if not is_short:
            self._mirror()

        def factor(k: Index, i: Index) -> Index:
            """Of item k, carried by i; where there are many, the mirrored ones, which lie side by side."""
            return c.sum(c.times(k, self.stride), i) if is_short else c.sum(c.times(i, self.stride), k)

        def columns(part: Index, g: Index) -> None:
            first = c.sum(c.times(part, self.part), c.times(g, LANES * self.group))

            def inward(step: Index) -> None:
                i = c.less_index(n - 1, step)
                self._less_rows(first, i, down, lambda k: factor(k, i), None)

            def outward(k: Index) -> None:
                scale = c.everywhere(c.scalar("%work", c.sum(k, self.inverse)))
                row = c.times(k, self.stride)
                self._less_rows(first, k, [self.up], lambda i: c.sum(row, i), scale)

            with c.flat(is_short):
                c.each(0, n, inward)
                c.each(0, n, outward)

        c.each(0, 3, lambda part: c.each(0, self.blocks // self.group, lambda g: columns(part, g)))

    def _mirror(self) -> None:
        """L above the diagonal too."""
        c = self.code
        starts, carriers, _ = self.up

        def row(k: Index) -> None:
            def one(e: Index) -> None:
                i = c.entry(carriers, e)
                x = c.scalar("%work", c.sum(c.sum(c.times(k, self.stride), i), self.mass))
                c.set(x, "%work", c.sum(c.sum(c.times(i, self.stride), k), self.mass))

            c.each(c.entry(starts, k), c.entry(starts, c.sum(k, 1)), one)

        c.each(0, self.plan.n, row)

    def _carried_by_blocks(self) -> list[_Others]:
        """The items that each item carries, by the vectors of their rows that are not 0 before the solution."""
        c, plan, everything = self.code, self.plan, tuple(range(self.group))
        used = [
            tuple(sorted({j // LANES for j in (*below, *above)}))
            for below, above in zip(plan.below, plan.above, strict=True)
        ]
        kinds = sorted(set(used))
        if self.blocks > self.group or len(kinds) > KINDS:
            kinds, used = [everything], [everything] * plan.n
        out = []
        for kind in kinds:
            rows = [[k for k in row if used[k] == kind] for row in plan.carried]
            if any(rows):
                out.append((c.table("starts", _starts(rows)), c.table("carried", _joined(rows)), kind))
        return out

    def _less_rows(
        self, first: Index, i: Index, others: Sequence[_Others], factor_at: Callable[[Index], Index], scale: str | None
    ) -> None:
        """Row i, scaled, less the rows of others times their factors; those are in M."""
        c = self.code
        own = c.sum(first, c.times(i, self.stride))
        found = [c.load("%work", c.sum(own, LANES * m)) for m in range(self.group)]
        if scale is not None:
            found = [c.product(x, scale) for x in found]
        for starts, items, blocks in others:

            def less(e: Index, values: Sequence[str], items=items, blocks=blocks) -> list[str]:
                k = c.entry(items, e)
                factor = c.everywhere(c.scalar("%work", c.sum(factor_at(k), self.mass)))
                at = c.sum(first, c.times(k, self.stride))
                return [
                    c.less(x, factor, c.load("%work", c.sum(at, LANES * m)))
                    for x, m in zip(values, blocks, strict=True)
                ]

            ends = c.entry(starts, i), c.entry(starts, c.sum(i, 1))
            for m, x in zip(blocks, c.accumulated(*ends, [found[m] for m in blocks], less), strict=True):
                found[m] = x
        for m, x in enumerate(found):
            c.store(x, "%work", c.sum(own, LANES * m))

    def _hand_over(self) -> str:
        """Rows into `out`; whether all numbers are finite."""
        c, n, v = self.code, self.plan.n, self.code.wide.value

        def row(i: Index, before: Sequence[str]) -> list[str]:
            own, to = c.times(i, self.stride), c.times(i, 3 * n)
            return [
                self._handed_row(c.sum(own, part * self.part), c.sum(to, part * n), part, x)
                for part, x in enumerate(before)
            ]

        sums = c.accumulated(0, n, [c.wide.constant(0.0)] * 3, row)
        total = c.line(f"fadd {v} {c.line(f'fadd {v} {sums[0]}, {sums[1]}')}, {sums[2]}")
        fine = c.line(f"fcmp oeq {v} {total}, {c.wide.constant(0.0)}")
        bits = c.line(f"bitcast <{LANES} x i1> {fine} to i{LANES}")
        return c.line(f"icmp eq i{LANES} {bits}, -1")

    def _handed_row(self, own: Index, to: Index, part: int, before: str) -> str:
        """One row of a matrix into `out`; 0 as long as all numbers are finite."""
        c, v = self.code, self.code.wide.value
        whole, left = divmod(self.plan.n, LANES)

        def block(b: Index, before: Sequence[str]) -> list[str]:
            x = c.load("%work", c.sum(own, c.times(b, LANES)))
            if self.plan.is_solved and part < 2:
                x = c.line(f"fneg {v} {x}")
            at = c.sum(to, c.times(b, LANES))
            if isinstance(b, int) and b == whole:
                c.store_some(x, left, "%out", at)
            else:
                c.store(x, "%out", at, c.t.size)
            return [c.line(f"fadd {v} {before[0]}, {c.line(f'fmul {v} {x}, {c.wide.constant(0.0)}')}")]

        with c.flat(whole <= GROUP):
            after = c.accumulated(0, whole, [before], block) if whole else [before]
        return block(whole, after)[0] if left else after[0]


def _starts(rows: Sequence[Sequence[int]]) -> list[int]:
    out = [0]
    for row in rows:
        out.append(out[-1] + len(row))
    return out


def _joined(rows: Sequence[Sequence[int]]) -> list[int]:
    return [x for row in rows for x in row]
