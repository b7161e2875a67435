"""A PairSystem as LLVM functions: the front's own, then loops over pairs of items with vector lanes over columns.

    i1 finish(ptr numbers, ptr work, ptr out)

multiplies, factors and solves for one state; it returns whether all numbers are finite. Batches compute the front with
a lane a state, then finish one state after the other, while its matrices are in the fastest memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from spanloop.compiler.lower.pair_system import PairSystem, Terms
from spanloop.compiler.lower.rolled import Looped
from spanloop.compiler.render.batch import batch, scratch_size
from spanloop.compiler.render.instructions import Real
from spanloop.compiler.render.rolled import looped_batch, looped_scratch, looped_single
from spanloop.compiler.render.single import NOT_FINITE, single

LANES = 8  # columns to a vector
GROUP = 8  # vectors of a row that are solved for together, at most
KINDS = 12  # patterns of zeros that have code of their own, at most
STACK = 32768  # numbers of work that fit the stack

_Others = tuple[str, str, tuple[int, ...]]  # tables of items by row: starts, items; vectors of their rows to use


def pair_single(plan: PairSystem, real: str) -> str:
    """Source of `kernel`."""
    t, front = Real(real), plan.front
    own = looped_single(front, real) if isinstance(front, Looped) else single(front, real)
    finish = Finish(plan, real)
    given = ", ".join(f"ptr %a{k}" for k in range(len(plan.inputs)))
    count = finish.size + plan.width + 2 * LANES
    far = count > STACK
    code = [f"define i32 @kernel({given}, ptr %out) #0 {{", "entry:"]
    if far:
        code.append(f"%memory = call ptr @malloc(i64 {count * t.size})")
    else:
        code.append(f"%memory = alloca [{count} x {real}], align 64")
    code += [
        *_aligned("%memory", "%work", t),
        f"%numbers = getelementptr {real}, ptr %work, i64 {finish.size}",
        f"%status = call i32 @front({given}, ptr %numbers)",
        "%well = icmp eq i32 %status, 0",
        "br i1 %well, label %go, label %done",
        "go:",
        "%fine = call i1 @finish(ptr %numbers, ptr %work, ptr %out)",
        f"%found = select i1 %fine, i32 0, i32 {NOT_FINITE}",
        "br label %done",
        "done:",
        "%all = phi i32 [%status, %entry], [%found, %go]",
        *(["call void @free(ptr %memory)"] if far else []),
        "ret i32 %all",
        "}",
    ]
    text = own.replace("@kernel(", "@front(") + finish.source() + "\n".join(code) + "\n"
    return text + _declared(text, t, far)


def pair_batch(plan: PairSystem, real: str, width: int) -> str:
    """Source of `batch`."""
    t, front = Real(real), plan.front
    own = looped_batch(front, real, width) if isinstance(front, Looped) else batch(front, real, width)
    heads = ", ".join(f"ptr %a{k}, i64 %s{k}" for k in range(len(plan.inputs)))
    n_out = plan.n * 3 * plan.n
    finish, at = Finish(plan, real), _front_scratch(plan, width)
    rows = width * plan.width + LANES
    aligned = "\n".join(_aligned("%free", "%work", t))
    text = f"""define i64 @batch({heads}, ptr %out, ptr %status, ptr %scratch, i64 %begin, i64 %end) #0 {{
entry:
%numbers = getelementptr {real}, ptr %scratch, i64 {at}
%free = getelementptr {real}, ptr %scratch, i64 {at + rows}
{aligned}
%any = icmp slt i64 %begin, %end
br i1 %any, label %group, label %exit
group:
%i = phi i64 [%begin, %entry], [%i.n, %after]
%bad = phi i64 [0, %entry], [%b, %after]
%full = add i64 %i, {width}
%short = icmp slt i64 %full, %end
%last = select i1 %short, i64 %full, i64 %end
%back = mul i64 %i, {-plan.width}
%base = getelementptr {real}, ptr %numbers, i64 %back
%ill = call i64 @front({heads}, ptr %base, ptr %status, ptr %scratch, i64 %i, i64 %last)
%bad.front = add i64 %bad, %ill
br label %state
state:
%j = phi i64 [%i, %group], [%j.n, %next]
%b = phi i64 [%bad.front, %group], [%b.n, %next]
%inside = icmp slt i64 %j, %last
br i1 %inside, label %look, label %after
look:
%to = mul i64 %j, {n_out}
%row = getelementptr {real}, ptr %out, i64 %to
%st.p = getelementptr i8, ptr %status, i64 %j
%st = load i8, ptr %st.p
%well = icmp eq i8 %st, 0
br i1 %well, label %go, label %void
go:
%k = sub i64 %j, %i
%from.at = mul i64 %k, {plan.width}
%from = getelementptr {real}, ptr %numbers, i64 %from.at
%fine = call i1 @finish(ptr %from, ptr %work, ptr %row)
br i1 %fine, label %next, label %mark
mark:
store i8 {NOT_FINITE}, ptr %st.p
br label %void
void:
%more = phi i64 [0, %look], [1, %mark]
br label %cell
cell:
%c = phi i64 [0, %void], [%c.n, %cell]
%c.p = getelementptr {real}, ptr %row, i64 %c
store {real} {t.constant(float("nan"))}, ptr %c.p, align {t.size}
%c.n = add i64 %c, 1
%c.more = icmp slt i64 %c.n, {n_out}
br i1 %c.more, label %cell, label %next
next:
%one = phi i64 [0, %go], [%more, %cell]
%b.n = add i64 %b, %one
%j.n = add i64 %j, 1
br label %state
after:
%i.n = add i64 %i, {width}
%on = icmp slt i64 %i.n, %end
br i1 %on, label %group, label %exit
exit:
%total = phi i64 [0, %entry], [%b, %after]
ret i64 %total
}}
"""
    text = own.replace("@batch(", "@front(") + finish.source() + text
    return text + _declared(text, t, False)


def pair_scratch(plan: PairSystem, real: str, width: int) -> int:
    """Numbers of scratch that `batch` needs."""
    return _front_scratch(plan, width) + width * plan.width + 2 * LANES + Finish(plan, real).size


def _front_scratch(plan: PairSystem, width: int) -> int:
    front = plan.front
    size = looped_scratch(front, width) if isinstance(front, Looped) else scratch_size(front, width)
    return -(-size // LANES) * LANES


def _aligned(pointer: str, name: str, t: Real) -> list[str]:
    """The next place whose vectors lie in one line of the cache."""
    return [
        f"{name}.at = ptrtoint ptr {pointer} to i64",
        f"{name}.up = add i64 {name}.at, {LANES * t.size - 1}",
        f"{name}.whole = and i64 {name}.up, {-LANES * t.size}",
        f"{name} = inttoptr i64 {name}.whole to ptr",
    ]


def _declared(text: str, t: Real, far: bool) -> str:
    wide = t.wide(LANES)
    name = f"@llvm.masked.store.{wide.suffix}.p0"
    lines = {f"declare void {name}(": f"({wide.value}, ptr, i32, <{LANES} x i1>)"} if name + "(" in text else {}
    if far:
        lines |= {"declare ptr @malloc(": "(i64)", "declare void @free(": "(ptr)"}
    return "".join(f"{head[:-1]}{tail}\n" for head, tail in lines.items() if head not in text)


class Finish:
    """The function `finish` of one system."""

    def __init__(self, plan: PairSystem, real: str):
        self.plan, self.t, self.wide = plan, Real(real), Real(real, LANES)
        n = plan.n
        groups = -(-n // (LANES * GROUP))
        self.group = -(-n // (LANES * groups))  # vectors of a row that are solved for together
        self.blocks = groups * self.group  # vectors of a row
        self.stride = LANES * self.blocks  # of rows
        self.part = n * self.stride  # of matrices: by position, by rate, the third; M, if it is solved for
        self.mass = (3 if plan.is_solved else 2) * self.part
        self.inverse = self.mass + self.part
        self.rows = self.inverse + self.stride * plan.is_solved  # where vectors begin, one row a component
        used = {y for m in plan.matrices for terms in (m.below, m.above) for _, y in terms}
        self.size = self.rows + (max(used, default=-1) + 1) * self.stride
        self.lines: list[str] = []
        self.tables: list[str] = []
        self.label, self.count = "entry", 0

    def source(self) -> str:
        """Source of the function and its tables."""
        self._clear()
        self._spread()
        self._multiply()
        self._add()
        if self.plan.is_solved:
            self._prepare()
            self._factor()
            self._solve()
        answer = self._hand_over()
        head = "define internal i1 @finish(ptr noalias %numbers, ptr noalias %work, ptr noalias %out) #9 {\nentry:\n"
        bits = LANES * self.t.size * 8
        wide = f'attributes #9 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
        return wide + "".join(self.tables) + head + "\n".join(self.lines) + f"\nret i1 {answer}\n}}\n"

    # ---- parts of the function

    def _clear(self) -> None:
        with self.loop(0, self.inverse // LANES) as k:
            self.store("zeroinitializer", self.place("%work", self.times(k, LANES)))

    def _spread(self) -> None:
        """Rows of components, each from a place of its own on, so that no vector crosses a line of the cache."""
        n, count = self.plan.n, (self.size - self.rows) // self.stride
        with self.loop(0, count) as row:
            first, to = self.times(row, n), self.plus(self.times(row, self.stride), self.rows)
            with self.loop(0, self.blocks) as b:
                at = self.times(b, LANES)
                p = self.place("%numbers", self.sum(first, at))
                x = self.line(f"load {self.wide.value}, ptr {p}, align {self.t.size}")
                self.store(x, self.place("%work", self.sum(to, at)))

    def _multiply(self) -> None:
        """The products, row by row: vectors of item i in all lanes, those of items j in one lane each."""
        plan = self.plan
        for kind, rows in (("below", plan.below), ("above", plan.above)):
            terms: list[Terms] = [getattr(m, kind) for m in plan.matrices]
            if plan.is_solved and kind == "above":
                terms[2] = ()  # M is symmetric: its lower half will do
            used = [sorted({j // LANES for j in row}) for row in rows]
            starts = self.table("starts", _starts(used))
            columns = self.table("columns", [LANES * b for row in used for b in row])
            masks = self.table(
                "masks", [int(b * LANES + k in set(row)) for row, bs in zip(rows, used, strict=True) for b in bs
                          for k in range(LANES)], "i8",
            )  # fmt: skip
            with self.loop(0, plan.n) as i:
                known = {x: self.everywhere(self.number(x, i)) for x in sorted({x for m in terms for x, _ in m})}
                row = self.times(i, self.stride)
                with self.loop(self.entry(starts, i), self.entry(starts, self.plus(i, 1))) as e:
                    j = self.entry(columns, e)
                    mask = self._mask(masks, e)
                    there = {y: self.row(y, j) for y in sorted({y for m in terms for _, y in m})}
                    for k, m in enumerate(terms):
                        if m:
                            total = self.sum_of([(known[x], there[y]) for x, y in m])
                            place = self.place("%work", self.plus(self.sum(row, j), self._first(k)))
                            old = self.load(place) if kind == "above" else "zeroinitializer"
                            self.store(self.select(mask, total, old), place)

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
        plain: dict[int, float] = {}
        for a in self.plan.additions:
            if a.at is None:
                at = self._offset(a.matrix, a.i, a.j)
                plain[at] = plain.get(at, 0.0) + a.value
        if self.plan.is_solved:
            plain |= {self._unit_offset(i, i): 1.0 for i in range(self.plan.n)}  # the unit matrix
        if plain:
            places, values = self.table("places", list(plain)), self.constants("values", list(plain.values()))
            with self.loop(0, len(plain)) as k:
                self._increase(self.entry(places, k), self.scalar(values, k))
        found = [(self._offset(a.matrix, a.i, a.j), a.at) for a in self.plan.additions if a.at is not None]
        if found:
            places, sources = self.table("places", [p for p, _ in found]), self.table("sources", [s for _, s in found])
            with self.loop(0, len(found)) as k:
                self._increase(self.entry(places, k), self.scalar("%numbers", self.entry(sources, k)))

    def _increase(self, at: str, x: str) -> None:
        place = self.place("%work", at)
        old = self.line(f"load {self.t.real}, ptr {place}, align {self.t.size}")
        new = self.line(f"fadd {self.t.real} {old}, {x}")
        self.lines.append(f"store {self.t.real} {new}, ptr {place}, align {self.t.size}")

    def _prepare(self) -> None:
        """Fixed items: their rows are cleared, their columns of M go to the right side."""
        plan, n = self.plan, self.plan.n
        one = self.wide.constant(1.0)
        with self.loop(0, self.blocks) as k:
            self.store(one, self.place("%work", self.plus(self.times(k, LANES), self.inverse)))
        if not plan.fixed:
            return
        rows = self.table("fixed", [i * self.stride for i in sorted(plan.fixed)])
        with self.loop(0, len(plan.fixed)) as k, self.loop(0, self.blocks) as b:
            at = self.sum(self.entry(rows, k), self.times(b, LANES))
            self.store("zeroinitializer", self.place("%work", at))
            self.store("zeroinitializer", self.place("%work", self.plus(at, self.part)))
        pairs = [
            (self._offset(2, i, j), self._unit_offset(i, j))
            for j in sorted(plan.fixed)
            for i in range(n)
            if i not in plan.fixed and (i in plan.below[j] or j in plan.below[i])
        ]
        if pairs:
            sources, places = self.table("sources", [a for a, _ in pairs]), self.table("places", [b for _, b in pairs])
            with self.loop(0, len(pairs)) as k:
                x = self.line(f"fneg {self.t.real} {self.scalar('%work', self.entry(sources, k))}")
                self._increase(self.entry(places, k), x)

    def _factor(self) -> None:
        """M = LᵀDL, leaves first, which keeps the zeros of the forest; L in M's place, D⁻¹ beside it."""
        plan, n, real = self.plan, self.plan.n, self.t.real
        starts, carriers = self.table("starts", _starts(plan.carriers)), self.table("carriers", _joined(plan.carriers))
        self.up = (starts, carriers)
        free = [i for i in reversed(range(n)) if i not in plan.fixed]
        order = self.table("order", free)
        with self.loop(0, len(free)) as step:
            k = self.entry(order, step)
            row = self.plus(self.times(k, self.stride), self.mass)
            pivot = self.scalar("%work", self.sum(row, k))
            inverse = self.line(f"fdiv {real} {self.t.constant(1.0)}, {pivot}")
            p = self.place("%work", self.plus(k, self.inverse))
            self.lines.append(f"store {real} {inverse}, ptr {p}, align {self.t.size}")
            first, end = self.entry(starts, k), self.entry(starts, self.plus(k, 1))
            with self.loop(first, end) as e:
                i = self.entry(carriers, e)
                x = self.line(f"fmul {real} {self.scalar('%work', self.sum(row, i))}, {inverse}")
                factor = self.everywhere(x)
                to = self.plus(self.times(i, self.stride), self.mass)
                with self.loop(0, self.plus(self.line(f"sdiv i64 {i}, {LANES}"), 1)) as b:
                    at = self.times(b, LANES)
                    place = self.place("%work", self.sum(to, at))
                    from_ = self.load(self.place("%work", self.sum(row, at)))
                    self.store(self.less(self.load(place), factor, from_), place)
            with self.loop(first, end) as e:
                place = self.place("%work", self.sum(row, self.entry(carriers, e)))
                old = self.line(f"load {real}, ptr {place}, align {self.t.size}")
                self.lines.append(
                    f"store {real} {self.line(f'fmul {real} {old}, {inverse}')}, ptr {place}, align {self.t.size}"
                )

    def _solve(self) -> None:
        """Lᵀ y = right side from the last item to the first, then D⁻¹, then L x = y from the first to the last.

        Some columns of all rows at a time, which stay in the fastest memory.
        """
        n, up = self.plan.n, (*self.up, tuple(range(self.group)))
        down = self._carried_by_blocks()
        with self.loop(0, 3) as part, self.loop(0, self.blocks // self.group) as g:
            first = self.sum(self.times(part, self.part), self.times(g, LANES * self.group))
            with self.loop(0, n) as step:
                i = self.line(f"sub i64 {n - 1}, {step}")
                self._less_rows(first, i, down, lambda k, i=i: self.sum(self.times(k, self.stride), i), None)
            with self.loop(0, n) as k:
                scale = self.everywhere(self.scalar("%work", self.plus(k, self.inverse)))
                row = self.times(k, self.stride)
                self._less_rows(first, k, [up], lambda i, row=row: self.sum(row, i), scale)

    def _carried_by_blocks(self) -> list[_Others]:
        """The items that each item carries, by the vectors of their rows that are not 0 before the solution."""
        plan, everything = self.plan, tuple(range(self.group))
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
                out.append((self.table("starts", _starts(rows)), self.table("carried", _joined(rows)), kind))
        return out

    def _less_rows(
        self, first: str, i: str, others: Sequence[_Others], factor_at: Callable[[str], str], scale: str | None
    ) -> None:
        """Row i, scaled, less the rows of others times their factors; those are in M."""
        own = self.sum(first, self.times(i, self.stride))
        found = [self.load(self.place("%work", self.plus(own, LANES * m))) for m in range(self.group)]
        if scale is not None:
            found = [self.product(x, scale) for x in found]
        for starts, items, blocks in others:

            def less(e: str, values: Sequence[str], items=items, blocks=blocks) -> list[str]:
                k = self.entry(items, e)
                factor = self.everywhere(self.scalar("%work", self.plus(factor_at(k), self.mass)))
                at = self.sum(first, self.times(k, self.stride))
                rows = [self.load(self.place("%work", self.plus(at, LANES * m))) for m in blocks]
                return [self.less(x, factor, y) for x, y in zip(values, rows, strict=True)]

            ends = self.entry(starts, i), self.entry(starts, self.plus(i, 1))
            for m, x in zip(blocks, self.accumulated(*ends, [found[m] for m in blocks], less), strict=True):
                found[m] = x
        for m, x in enumerate(found):
            self.store(x, self.place("%work", self.plus(own, LANES * m)))

    def _hand_over(self) -> str:
        """Rows into `out`; whether all numbers are finite."""
        n, v = self.plan.n, self.wide.value

        def row(i: str, before: Sequence[str]) -> list[str]:
            own, to = self.times(i, self.stride), self.times(i, 3 * n)
            return [
                self._handed_row(self.plus(own, part * self.part), self.plus(to, part * n), part, x)
                for part, x in enumerate(before)
            ]

        sums = self.accumulated(0, n, [self.wide.constant(0.0)] * 3, row)
        total = self.line(f"fadd {v} {self.line(f'fadd {v} {sums[0]}, {sums[1]}')}, {sums[2]}")
        fine = self.line(f"fcmp oeq {v} {total}, {self.wide.constant(0.0)}")
        bits = self.line(f"bitcast <{LANES} x i1> {fine} to i{LANES}")
        return self.line(f"icmp eq i{LANES} {bits}, -1")

    def _handed_row(self, own: str, to: str, part: int, before: str) -> str:
        """One row of a matrix into `out`; 0 as long as all numbers are finite."""
        full, left = divmod(self.plan.n, LANES)

        def whole(b: str, before: Sequence[str]) -> list[str]:
            at = self.times(b, LANES)
            x = self._signed(self.load(self.place("%work", self.sum(own, at))), part)
            self.store(x, self.place("%out", self.sum(to, at)), self.t.size)
            return [self._vanishing(before[0], x)]

        after = self.accumulated(0, full, [before], whole)[0] if full else before
        if not left:
            return after
        x = self._signed(self.load(self.place("%work", self.plus(own, LANES * full))), part)
        p = self.place("%out", self.plus(to, LANES * full))
        mask = ", ".join(f"i1 {'true' if k < left else 'false'}" for k in range(LANES))
        self.lines.append(
            f"call void @llvm.masked.store.{self.wide.suffix}.p0({self.wide.value} {x}, ptr {p}, i32 {self.t.size}, "
            f"<{LANES} x i1> <{mask}>)"
        )
        return self._vanishing(after, x)

    def _signed(self, x: str, part: int) -> str:
        return self.line(f"fneg {self.wide.value} {x}") if self.plan.is_solved and part < 2 else x

    def _vanishing(self, before: str, x: str) -> str:
        v = self.wide.value
        return self.line(f"fadd {v} {before}, {self.line(f'fmul {v} {x}, {self.wide.constant(0.0)}')}")

    # ---- instructions

    def line(self, text: str) -> str:
        """A value of its own name."""
        self.count += 1
        self.lines.append(f"%x{self.count} = {text}")
        return f"%x{self.count}"

    def times(self, x: str, k: int) -> str:
        return self.line(f"mul i64 {x}, {k}")

    def plus(self, x: str, k: int) -> str:
        return x if k == 0 else self.line(f"add i64 {x}, {k}")

    def sum(self, x: str, y: str) -> str:
        return self.line(f"add i64 {x}, {y}")

    def place(self, array: str, at: str) -> str:
        return self.line(f"getelementptr {self.t.real}, ptr {array}, i64 {at}")

    def load(self, place: str) -> str:
        return self.line(f"load {self.wide.value}, ptr {place}, align {LANES * self.t.size}")

    def store(self, x: str, place: str, align: int | None = None) -> None:
        align = LANES * self.t.size if align is None else align
        self.lines.append(f"store {self.wide.value} {x}, ptr {place}, align {align}")

    def scalar(self, array: str, at: str) -> str:
        return self.line(f"load {self.t.real}, ptr {self.place(array, at)}, align {self.t.size}")

    def number(self, row: int, item: str) -> str:
        """A component of one item."""
        return self.scalar("%numbers", self.plus(item, row * self.plan.n))

    def row(self, row: int, first: str) -> str:
        """A component of LANES items; what is beyond the last one is not used."""
        return self.load(self.place("%work", self.plus(first, self.rows + row * self.stride)))

    def everywhere(self, x: str) -> str:
        v = self.wide.value
        one = self.line(f"insertelement {v} poison, {self.t.real} {x}, i32 0")
        return self.line(f"shufflevector {v} {one}, {v} poison, <{LANES} x i32> zeroinitializer")

    def product(self, x: str, y: str) -> str:
        return self.line(f"fmul contract {self.wide.value} {x}, {y}")

    def sum_of(self, pairs: Sequence[tuple[str, str]]) -> str:
        total = self.product(*pairs[0])
        for x, y in pairs[1:]:
            total = self.line(f"fadd contract {self.wide.value} {total}, {self.product(x, y)}")
        return total

    def less(self, x: str, y: str, z: str) -> str:
        """x − y z."""
        return self.line(f"fsub contract {self.wide.value} {x}, {self.product(y, z)}")

    def select(self, mask: str, x: str, y: str) -> str:
        return self.line(f"select <{LANES} x i1> {mask}, {self.wide.value} {x}, {self.wide.value} {y}")

    def table(self, name: str, values: Sequence[int], kind: str = "i64") -> str:
        """Whole numbers as a constant."""
        known = f"@{name}.{len(self.tables)}"
        text = ", ".join(f"{kind} {x}" for x in values) or f"{kind} 0"
        self.tables.append(f"{known} = internal constant [{max(len(values), 1)} x {kind}] [{text}], align 64\n")
        return known

    def constants(self, name: str, values: Sequence[float]) -> str:
        known = f"@{name}.{len(self.tables)}"
        text = ", ".join(f"{self.t.real} {self.t.constant(x)}" for x in values)
        self.tables.append(f"{known} = internal constant [{len(values)} x {self.t.real}] [{text}], align 64\n")
        return known

    def entry(self, table: str, at: str) -> str:
        return self.line(f"load i64, ptr {self.line(f'getelementptr i64, ptr {table}, i64 {at}')}")

    def _mask(self, masks: str, at: str) -> str:
        p = self.line(f"getelementptr i8, ptr {masks}, i64 {self.times(at, LANES)}")
        bytes_ = self.line(f"load <{LANES} x i8>, ptr {p}, align 1")
        return self.line(f"icmp ne <{LANES} x i8> {bytes_}, zeroinitializer")

    @contextmanager
    def loop(self, first: int | str, end: int | str) -> Iterator[str]:
        """The lines written inside are repeated for a counter from first to end − 1."""
        counter, close = self._open(first, end, [])
        yield counter
        close([])

    def accumulated(self, first: int | str, end: int | str, values: Sequence[str], step) -> list[str]:
        """values after values = step(counter, values) for a counter from first to end − 1."""
        counter, close = self._open(first, end, values)
        tag = counter.removeprefix("%i.")
        now = [f"%a{k}.{tag}" for k in range(len(values))]
        close(step(counter, now))
        return now

    def _open(self, first: int | str, end: int | str, values: Sequence[str]):
        self.count += 1
        tag, v = str(self.count), self.wide.value
        counter, phis = f"%i.{tag}", len(self.lines) + 2
        self.lines += [f"br label %loop.{tag}", f"loop.{tag}:"]
        before = self.label
        self.lines += ["" for _ in range(1 + len(values))]
        self.lines += [
            f"%go.{tag} = icmp slt i64 {counter}, {end}",
            f"br i1 %go.{tag}, label %body.{tag}, label %done.{tag}",
            f"body.{tag}:",
        ]
        self.label = f"body.{tag}"

        def close(after: Sequence[str]) -> None:
            self.lines[phis] = f"{counter} = phi i64 [{first}, %{before}], [%n.{tag}, %{self.label}]"
            for k, (x, y) in enumerate(zip(values, after, strict=True)):
                self.lines[phis + 1 + k] = f"%a{k}.{tag} = phi {v} [{x}, %{before}], [{y}, %{self.label}]"
            self.lines += [f"%n.{tag} = add i64 {counter}, 1", f"br label %loop.{tag}", f"done.{tag}:"]
            self.label = f"done.{tag}"

        return counter, close


def _starts(rows: Sequence[Sequence[int]]) -> list[int]:
    out = [0]
    for row in rows:
        out.append(out[-1] + len(row))
    return out


def _joined(rows: Sequence[Sequence[int]]) -> list[int]:
    return [x for row in rows for x in row]
