"""A Plan as an LLVM function of one state:  i32 status = kernel(ptr in0, ptr in1, ..., ptr out)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spanloop.compiler.lower import Plan
from spanloop.compiler.lower.plan import live
from spanloop.compiler.render.instructions import LIMIT, Body, Real, declarations
from spanloop.compiler.render.segments import Segments, cut
from spanloop.compiler.trace import ADD, CONSTANT, COSINE, INPUT, SINE, SUBTRACT, Expression

# what can be wrong with a state, as bits of its status
NOT_FINITE = 1  # an input or an output is NaN or infinite
OFF_GUARD = 2  # a guard of the plan does not hold
FAR_ANGLE = 4  # an angle beyond the range of the fast sine and cosine
PACK = 4  # sines and cosines of this many joints share a vector, and so do zeros that are written
MANY = 256  # zeros of a plan up to which each is stored like any other output
ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="256" "min-legal-vector-width"="256" }\n'


def single(plan: Plan, real: str) -> str:
    """Source of `kernel`."""
    t = Real(real)
    where = input_places(plan)
    segments = cut(plan)
    head = ", ".join(f"ptr noalias readonly %a{k}" for k in range(len(plan.inputs)))
    main = Body(t, _fetch(t, where, segments), PACK)
    functions = ""
    outputs = list(enumerate(plan.outputs + plan.demand_flags))
    zeros = Zeros.of(plan)
    if zeros.runs:
        main.lines.append("call void @clear(ptr %out)")
        functions = zeros.function(t)
        outputs = [outputs[k] for part in zeros.others() for k in part] + outputs[len(plan.outputs) :]
    if len(segments.pieces) > 1:
        main.lines.append(f"%scratch = alloca [{max(segments.n_slots, 1)} x {real}], align 64")
        passed = ", ".join(f"ptr %a{k}" for k in range(len(plan.inputs)))
        answer = t.constant(0.0)
        for k in range(len(segments.pieces)):
            got = main.line(f"piece{k}", f"call {real} @piece{k}({passed}, ptr %out, ptr %scratch)")
            answer = main.line(f"answer{k}", f"fadd {real} {answer}, {got}")
            functions += piece_function(plan, segments, k, t, where)
        constants = [(k, x) for k, x in outputs if not isinstance(x, Expression)]
        answer = main.line("constant", f"fadd {real} {answer}, {store_outputs(main, constants, len(plan.outputs))}")
    else:
        main.add(segments.pieces[0])
        answer = store_outputs(main, outputs, len(plan.outputs))
    lines = main.lines + status_lines(plan, t, where, answer)
    return (
        f"define i32 @kernel({head}, ptr noalias %out) #0 {{\n"
        + "\n".join(lines)
        + "\n}\n"
        + functions
        + declarations(t, t.wide(2), t.wide(PACK))
        + ATTRIBUTES
    )


def input_places(plan: Plan) -> list[tuple[int, int]]:
    """For every input scalar the argument it is in, and where."""
    return [(k, j) for k, (_, size) in enumerate(plan.inputs) for j in range(size)]


def _fetch(t: Real, where, segments: Segments | None):
    def fetch(body: Body, n: Expression) -> str:
        if n.op == INPUT:
            k, j = where[int(n.value)]
            p = body.line(f"ip{n.index}", f"getelementptr {t.real}, ptr %a{k}, i64 {j}")
            return body.line(f"in{n.index}", f"load {t.real}, ptr {p}, align {t.size}")
        assert segments is not None  # values of other pieces exist only where there are pieces
        p = body.line(f"sp{n.index}", f"getelementptr {t.real}, ptr %scratch, i64 {segments.slot[n.index]}")
        return body.line(f"sv{n.index}", f"load {t.real}, ptr {p}, align {t.size}")

    return fetch


def store_outputs(body: Body, outputs: Sequence[tuple[int, Expression | float]], n_outputs: int) -> str:
    """Write these outputs (flags of demands excepted); the sum of 0·output, which is not zero if one is not finite.

    The sum is taken of the values, not of the memory: reading back as vectors what was written as numbers would stall.
    """
    t = body.t
    sums = [t.constant(0.0)] * PACK  # several chains of additions, so that none is long
    seen: set[int] = set()
    for k, x in outputs:
        value = body.value(x)
        if k < n_outputs:
            p = body.line(f"op{k}", f"getelementptr {t.real}, ptr %out, i64 {k}")
            body.lines.append(f"store {t.real} {value}, ptr {p}, align {t.size}")
        if not isinstance(x, Expression) and math.isfinite(x):
            continue
        key = x.index if isinstance(x, Expression) else -1 - k
        if key not in seen:
            seen.add(key)
            c = len(seen) % PACK
            sums[c] = _vanish(body, t, value, sums[c], f"o{k}")
    total = sums[0]
    for j, accumulated in enumerate(sums[1:]):
        total = body.line(f"ot{j}", f"fadd {t.real} {total}, {accumulated}")
    return total


def piece_function(plan: Plan, segments: Segments, k: int, t: Real, where) -> str:
    """Source of `piece{k}`, which returns the sum of 0·output of its outputs."""
    head = ", ".join(f"ptr noalias readonly %a{j}" for j in range(len(plan.inputs)))
    body = Body(t, _fetch(t, where, segments), PACK)
    piece = segments.pieces[k]
    body.add(piece)
    for n in piece:
        if n.index in segments.leaves and segments.home[n.index] == k:
            p = body.line(f"tp{n.index}", f"getelementptr {t.real}, ptr %scratch, i64 {segments.slot[n.index]}")
            body.lines.append(f"store {t.real} {body.values[n.index]}, ptr {p}, align {t.size}")
    values = enumerate(plan.outputs + plan.demand_flags)
    own = [(j, x) for j, x in values if isinstance(x, Expression) and segments.home.get(x.index, 0) == k]
    answer = store_outputs(body, own, len(plan.outputs))
    text = "\n".join(body.lines)
    head = f"define internal {t.real} @piece{k}({head}, ptr noalias %out, ptr noalias %scratch) #0"
    return f"{head} {{\n{text}\nret {t.real} {answer}\n}}\n"


def status_lines(plan: Plan, t: Real, where, answer: str) -> list[str]:
    """Instructions that end in `ret i32 status`; answer: the sum of 0·output."""
    body = Body(t, _fetch(t, where, None), tag="c")
    inputs, others = angles(plan)
    finite, largest = _Scan(body, "z"), _Scan(body, "w")
    start = 0
    for k, (_, size) in enumerate(plan.inputs):
        finite.add(f"%a{k}", size, _vanish)
        if any(start <= a < start + size for a in inputs):
            largest.add(f"%a{k}", size, _grow)
        start += size
    total = body.line("total", f"fadd {t.real} {finite.reduced(_sum)}, {answer}")
    bits = [(body.line("fine", f"fcmp oeq {t.real} {total}, {t.constant(0.0)}"), NOT_FINITE)]
    if inputs:
        near = body.line("near", f"fcmp olt {t.real} {largest.reduced(_larger)}, {t.constant(LIMIT[t.real])}")
        bits.append((near, FAR_ANGLE))
    bits += last_conditions(body, plan, others)
    status = "0"
    for j, (ok, bit) in enumerate(bits):
        one = body.line(f"bit{j}", f"select i1 {ok}, i32 0, i32 {bit}")
        status = body.line(f"sum{j}", f"or i32 {status}, {one}")
    return [*body.lines, f"ret i32 {status}"]


def angles(plan: Plan) -> tuple[set[int], list[Expression]]:
    """Inputs that are angles (but for a constant), and the other arguments of sines and cosines."""
    inputs: set[int] = set()
    others: dict[int, Expression] = {}
    for n in plan.nodes:
        if n.op not in (SINE, COSINE):
            continue
        x = n.a
        parts = (x.a, x.b) if x.op in (ADD, SUBTRACT) else (x,)
        if all(p.op in (INPUT, CONSTANT) for p in parts):
            inputs.update(int(p.value) for p in parts if p.op == INPUT)
        else:
            others[x.index] = x
    return inputs, list(others.values())


def last_conditions(body: Body, plan: Plan, others: list[Expression]) -> list[tuple[str, int]]:
    """Conditions on computed angles, then the guards, each with its bit."""
    t, out = body.t, []
    body.add(live(others))
    for j, x in enumerate(others):
        size = body.line(f"far{j}", f"call {t.value} @llvm.fabs.{t.suffix}({t.value} {body.value(x)})")
        inside = body.line(f"inside{j}", f"fcmp olt {t.value} {size}, {t.constant(LIMIT[t.real])}")
        out.append((inside, FAR_ANGLE))
    body.add(plan.checks)
    return out + [(body.value(g), OFF_GUARD) for g in plan.guards]


class _Scan:
    """An accumulator over whole arrays, PACK entries at a time."""

    def __init__(self, body: Body, tag: str):
        self.body, self.tag = body, tag
        self.accumulated = {w: Real(body.t.real, w).constant(0.0) for w in (PACK, 2, 1)}
        self.count = 0

    def add(self, pointer: str, size: int, step) -> None:
        """Scan an array: step(body, type, entries, accumulator, name) -> accumulator."""
        at = 0
        for width in (PACK, 2, 1):
            w = self.body.t.wide(width)
            while size - at >= width:
                name = f"{self.tag}{self.count}"
                p = self.body.line(f"p{name}", f"getelementptr {w.real}, ptr {pointer}, i64 {at}")
                x = self.body.line(f"l{name}", f"load {w.value}, ptr {p}, align {w.size}")
                self.accumulated[width] = step(self.body, w, x, self.accumulated[width], name)
                at, self.count = at + width, self.count + 1

    def reduced(self, join) -> str:
        """One number from the accumulators of all widths."""
        accumulated, width = self.accumulated[PACK], PACK
        while width > 1:
            half = width // 2
            parts = []
            for side in range(2):
                lanes = ", ".join(f"i32 {side * half + j}" for j in range(half))
                vector = f"<{width} x {self.body.t.real}>"
                name = f"{self.tag}h{width}_{side}"
                if half == 1:
                    parts.append(self.body.line(name, f"extractelement {vector} {accumulated}, i32 {side}"))
                else:
                    mask = f"<{half} x i32> <{lanes}>"
                    parts.append(self.body.line(name, f"shufflevector {vector} {accumulated}, {vector} poison, {mask}"))
            w = self.body.t.wide(half)
            accumulated = join(self.body, w, parts[0], parts[1], f"{self.tag}j{width}")
            accumulated = join(self.body, w, accumulated, self.accumulated[half], f"{self.tag}k{width}")
            width = half
        return accumulated


def _vanish(body: Body, w: Real, x: str, accumulated: str, name: str) -> str:
    """accumulated + 0·x: stays zero while all entries are finite."""
    v = w.value
    return body.line(f"f{name}", f"call {v} @llvm.fma.{w.suffix}({v} {x}, {v} {w.constant(0.0)}, {v} {accumulated})")


def _grow(body: Body, w: Real, x: str, accumulated: str, name: str) -> str:
    size = body.line(f"b{name}", f"call {w.value} @llvm.fabs.{w.suffix}({w.value} {x})")
    return _larger(body, w, size, accumulated, f"g{name}")


def _larger(body: Body, w: Real, x: str, y: str, name: str) -> str:
    more = body.line(f"c{name}", f"fcmp ogt {w.value} {x}, {y}")
    return body.line(f"m{name}", f"select {w.truth} {more}, {w.value} {x}, {w.value} {y}")


def _sum(body: Body, w: Real, x: str, y: str, name: str) -> str:
    return body.line(f"s{name}", f"fadd {w.value} {x}, {y}")


# ---- outputs that are always zero


@dataclass(frozen=True)
class Zeros:
    """Outputs that are always zero: where a plan has many, a loop clears them, because many stores are slow to compile.

    runs: (start, length) of consecutive zeros, which the function `clear` writes in the row of a state; all other
    outputs are stored one by one.
    """

    runs: tuple[tuple[int, int], ...]
    n_outputs: int

    @staticmethod
    def of(plan: Plan) -> Zeros:
        """Those of a plan; none where it has few zeros."""
        found = tuple((start, length) for start, length in _runs(plan) if length >= PACK)
        return Zeros(found if sum(length for _, length in found) > MANY else (), len(plan.outputs))

    def others(self) -> Iterator[range]:
        """Ranges of the outputs that `clear` does not write."""
        end = 0
        for start, length in (*self.runs, (self.n_outputs, 0)):
            if start > end:
                yield range(end, start)
            end = start + length

    def function(self, t: Real) -> str:
        """Source of `clear`, a function of the pointer to a row; nothing where there are no runs."""
        if not self.runs:
            return ""
        table = ", ".join(f"i64 {x}" for run in self.runs for x in run)
        vector = f"<{PACK} x {t.real}>"
        return f"""@zero_runs = internal constant [{2 * len(self.runs)} x i64] [{table}]
define internal void @clear(ptr noalias %out) #0 {{
entry:
br label %run
run:
%r = phi i64 [0, %entry], [%r.next, %last]
%r.p = getelementptr i64, ptr @zero_runs, i64 %r
%start = load i64, ptr %r.p
%n.p = getelementptr i64, ptr %r.p, i64 1
%length = load i64, ptr %n.p
%row = getelementptr {t.real}, ptr %out, i64 %start
%end = sub i64 %length, {PACK}
br label %next
next:
%k = phi i64 [0, %run], [%k.next, %next]
%p = getelementptr {t.real}, ptr %row, i64 %k
store {vector} zeroinitializer, ptr %p, align {t.size}
%k.next = add i64 %k, {PACK}
%more = icmp slt i64 %k.next, %end
br i1 %more, label %next, label %last
last:
%e = getelementptr {t.real}, ptr %row, i64 %end
store {vector} zeroinitializer, ptr %e, align {t.size}
%r.next = add i64 %r, 2
%r.more = icmp slt i64 %r.next, {2 * len(self.runs)}
br i1 %r.more, label %run, label %done
done:
ret void
}}
"""


def _runs(plan: Plan) -> Iterator[tuple[int, int]]:
    start = 0
    for k, x in enumerate((*plan.outputs, math.nan)):
        if not _is_zero(x):
            if k > start:
                yield start, k - start
            start = k + 1


def _is_zero(x: Expression | float) -> bool:
    return not isinstance(x, Expression) and x == 0.0 and math.copysign(1.0, x) > 0.0
