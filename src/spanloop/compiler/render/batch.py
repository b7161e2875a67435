"""A Plan as an LLVM function of many states, one vector lane each:

    i64 bad = batch(ptr in0, i64 stride0, ..., ptr out, ptr status, ptr scratch, i64 begin, i64 end)

Arrays are plain C order, one row a state; a stride (in numbers) of 0 gives every state the same row. States
begin..end − 1 are computed; a refused one gets NaN in its row and the bits of its faults in status. `scratch` holds
inputs, outputs and values that cross pieces where the plan is cut into pieces: see `scratch_size`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from spanloop.compiler.lower import Plan
from spanloop.compiler.render.instructions import LIMIT, Body, Real, declarations
from spanloop.compiler.render.segments import Segments, cut
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE, Zeros, angles, input_places, last_conditions
from spanloop.compiler.trace import INPUT, Expression


def batch(plan: Plan, real: str, width: int) -> str:
    """Source of `batch` with `width` states to a vector."""
    t = Real(real, width)
    segments = cut(plan)
    main = Body(t, _from_rows(plan, t))
    functions = ""
    if len(segments.pieces) > 1:
        scratch = Scratch(plan, segments, width)
        for n in plan.arguments:
            scratch.store(main, scratch.input(int(n.value)), main.value(n), f"x{n.index}")
        for k in range(len(segments.pieces)):
            main.lines.append(f"call void @piece{k}(ptr %scratch)")
            functions += _piece(plan, segments, k, t, scratch)
        outputs = [
            scratch.load(main, scratch.output(k), f"y{k}") if isinstance(x, Expression) else t.constant(x)
            for k, x in enumerate(plan.outputs + plan.demand_flags)
        ]
    else:
        main.add(segments.pieces[0])
        outputs = [main.value(x) for x in plan.outputs + plan.demand_flags]
    zeros, row = Zeros.of(plan), [f"%row.out.{lane}" for lane in range(width)]
    if zeros.runs:
        main.lines += [f"call void @clear(ptr {x})" for x in row]
        functions += zeros.function(t)
    for part in zeros.others():
        for first in part[::width]:
            store_block(main, row, first, outputs[first : min(first + width, part.stop)], f".out{first}")
    masks = _faults(main, plan, outputs)
    declared = declarations(t) + block_declarations(main)
    return _loop(plan, t, main.lines, masks) + functions + declared + _attributes(t)


def scratch_size(plan: Plan, width: int) -> int:
    """Numbers of scratch that `batch` needs."""
    segments = cut(plan)
    return Scratch(plan, segments, width).size if len(segments.pieces) > 1 else width


class Scratch:
    """Where things stand in the scratch memory of a plan in pieces, in vectors: inputs, outputs, values between
    pieces."""

    def __init__(self, plan: Plan, segments: Segments, width: int):
        self.n_inputs, self.n_outputs = sum(size for _, size in plan.inputs), len(plan.outputs + plan.demand_flags)
        self.slots, self.width = segments.slot, width
        self.size = (self.n_inputs + self.n_outputs + segments.n_slots) * width

    def input(self, k: int) -> int:
        """The place of input scalar k."""
        return k

    def output(self, k: int) -> int:
        """The place of output k."""
        return self.n_inputs + k

    def between(self, n: Expression) -> int:
        """The place of a value that crosses pieces."""
        return self.n_inputs + self.n_outputs + self.slots[n.index]

    def store(self, body: Body, place: int, value: str, tag: str) -> None:
        """Write a value to a place."""
        t = body.t
        p = body.line(f"sp.{tag}", f"getelementptr {t.real}, ptr %scratch, i64 {place * self.width}")
        body.lines.append(f"store {t.value} {value}, ptr {p}, align {t.size}")

    def load(self, body: Body, place: int, tag: str) -> str:
        """Read the value at a place."""
        t = body.t
        p = body.line(f"sq.{tag}", f"getelementptr {t.real}, ptr %scratch, i64 {place * self.width}")
        return body.line(f"sv.{tag}", f"load {t.value}, ptr {p}, align {t.size}")


def _from_rows(plan: Plan, t: Real):
    """Inputs of a group of states: the block of columns that holds one is loaded when first needed."""
    where, loaded = input_places(plan), {}

    def fetch(body: Body, n: Expression) -> str:
        k, j = where[int(n.value)]
        first = j - j % t.width
        if (k, first) not in loaded:
            row = [f"%row{k}.{lane}" for lane in range(t.width)]
            count = min(t.width, plan.inputs[k][1] - first)
            loaded[k, first] = load_block(body, row, first, count, f".in{k}_{first}")
        return loaded[k, first][j - first]

    return fetch


def _piece(plan: Plan, segments: Segments, k: int, t: Real, scratch: Scratch) -> str:
    def fetch(body: Body, n: Expression) -> str:
        place = scratch.input(int(n.value)) if n.op == INPUT else scratch.between(n)
        return scratch.load(body, place, f"v{n.index}")

    body = Body(t, fetch)
    body.add(segments.pieces[k])
    for n in segments.pieces[k]:
        if n.index in segments.leaves and segments.home[n.index] == k:
            scratch.store(body, scratch.between(n), body.values[n.index], f"v{n.index}")
    for j, x in enumerate(plan.outputs + plan.demand_flags):
        if isinstance(x, Expression) and segments.home.get(x.index, 0) == k:
            scratch.store(body, scratch.output(j), body.value(x), f"y{j}")
    text = "\n".join(body.lines)
    return f"define internal void @piece{k}(ptr noalias %scratch) #0 {{\n{text}\nret void\n}}\n"


def _vanish(body: Body, x: str, total: str, name: str) -> str:
    """total + 0·x: stays zero while all are finite."""
    t = body.t
    zero = t.constant(0.0)
    return body.line(name, f"call {t.value} @llvm.fma.{t.suffix}({t.value} {x}, {t.value} {zero}, {t.value} {total})")


def _faults(body: Body, plan: Plan, outputs: list[str]) -> list[tuple[str, int]]:
    """Masks of the lanes that are valid in each respect, with the status bit of the others."""
    t = body.t
    inputs, others = angles(plan)
    total, largest = t.constant(0.0), t.constant(0.0)
    for k, x in enumerate(plan.outputs + plan.demand_flags):
        if isinstance(x, Expression) or not math.isfinite(x):
            total = _vanish(body, outputs[k], total, f"oz{k}")
    for n in plan.arguments:
        total = _vanish(body, body.value(n), total, f"iz{n.index}")
        if int(n.value) in inputs:
            size = body.line(f"ab{n.index}", f"call {t.value} @llvm.fabs.{t.suffix}({t.value} {body.value(n)})")
            more = body.line(f"mo{n.index}", f"fcmp ogt {t.value} {size}, {largest}")
            largest = body.line(f"la{n.index}", f"select {t.truth} {more}, {t.value} {size}, {t.value} {largest}")
    masks = [(body.line("fine", f"fcmp oeq {t.value} {total}, {t.constant(0.0)}"), NOT_FINITE)]
    if inputs:
        near = body.line("near", f"fcmp olt {t.value} {largest}, {t.constant(LIMIT[t.real])}")
        masks.append((near, FAR_ANGLE))
    return masks + last_conditions(body, plan, others)


def _loop(plan: Plan, t: Real, lines: list[str], masks) -> str:
    """The loop over groups of states around the body, and the rare block that marks refused ones."""
    w, n_out = t.width, len(plan.outputs)
    head = ", ".join(f"ptr noalias readonly %a{k}, i64 %s{k}" for k in range(len(plan.inputs)))
    head += ", ptr noalias %out, ptr noalias %status, ptr noalias %scratch, i64 %begin, i64 %end"
    code = [
        f"define i64 @batch({head}) #0 {{",
        "entry:",
        "%final = sub i64 %end, 1",
        "%any = icmp slt i64 %begin, %end",
        "br i1 %any, label %loop, label %done",
        "loop:",
        "%i = phi i64 [%begin, %entry], [%next, %tail]",
        "%bad = phi i64 [0, %entry], [%bad.sum, %tail]",
    ]
    for lane in range(w):  # the last state fills up the last group
        code += [
            f"%lane.{lane} = add i64 %i, {lane}",
            f"%inside.{lane} = icmp sle i64 %lane.{lane}, %final",
            f"%state.{lane} = select i1 %inside.{lane}, i64 %lane.{lane}, i64 %final",
            f"%at.out.{lane} = mul i64 %state.{lane}, {n_out}",
            f"%row.out.{lane} = getelementptr {t.real}, ptr %out, i64 %at.out.{lane}",
        ]
        for k in range(len(plan.inputs)):
            code.append(f"%at{k}.{lane} = mul i64 %state.{lane}, %s{k}")
            code.append(f"%row{k}.{lane} = getelementptr {t.real}, ptr %a{k}, i64 %at{k}.{lane}")
    code += lines
    well = masks[0][0]
    for j, (m, _) in enumerate(masks[1:]):
        code.append(f"%well{j} = and {t.truth} {well}, {m}")
        well = f"%well{j}"
    code += [
        f"%well.bits = bitcast {t.truth} {well} to i{w}",
        f"%all = icmp eq i{w} %well.bits, -1",
        "br i1 %all, label %tail, label %mark",
        *marked(t, masks, n_out),
        "tail:",
        "%more = phi i64 [0, %loop], [%count.sum, %marked]",
        "%bad.sum = add i64 %bad, %more",
        f"%next = add i64 %i, {w}",
        "%go = icmp slt i64 %next, %end",
        "br i1 %go, label %loop, label %done",
        "done:",
        "%total = phi i64 [0, %entry], [%bad.sum, %tail]",
        "ret i64 %total",
        "}",
    ]
    return "\n".join(code) + "\n"


def _attributes(t: Real) -> str:
    bits = t.width * t.size * 8
    return f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'


def marked(t: Real, masks: Sequence[tuple[str, int]], n_out: int) -> list[str]:
    """Blocks from `mark` to `tail` that write status bits and NaN rows for the refused states of a group, lane by lane.

    They read %i (the group's first state), %end, %out and %status; %count.sum is the number of states refused.
    """
    w = t.width
    code, bits = ["mark:"], "zeroinitializer"
    for j, (m, bit) in enumerate(masks):
        code.append(f"%bit{j} = select {t.truth} {m}, <{w} x i8> zeroinitializer, <{w} x i8> splat (i8 {bit})")
        code.append(f"%bits{j} = or <{w} x i8> {bits}, %bit{j}")
        bits = f"%bits{j}"
    return [
        *code,
        "br label %lane",
        "lane:",
        "%l = phi i64 [0, %mark], [%l.next, %lane.done]",
        "%count = phi i64 [0, %mark], [%count.sum, %lane.done]",
        "%l.state = add i64 %i, %l",
        f"%l.bits = extractelement <{w} x i8> {bits}, i64 %l",
        "%l.ill = icmp ne i8 %l.bits, 0",
        "%l.inside = icmp slt i64 %l.state, %end",
        "%l.counts = and i1 %l.ill, %l.inside",
        "br i1 %l.counts, label %ill, label %lane.done",
        "ill:",
        "%l.status = getelementptr i8, ptr %status, i64 %l.state",
        "store i8 %l.bits, ptr %l.status",
        f"%l.at = mul i64 %l.state, {n_out}",
        "br label %cell",
        "cell:",
        "%c = phi i64 [0, %ill], [%c.next, %cell]",
        "%c.at = add i64 %l.at, %c",
        f"%c.p = getelementptr {t.real}, ptr %out, i64 %c.at",
        f"store {t.real} {Real(t.real).constant(float('nan'))}, ptr %c.p, align {t.size}",
        "%c.next = add i64 %c, 1",
        f"%c.more = icmp slt i64 %c.next, {n_out}",
        "br i1 %c.more, label %cell, label %lane.done",
        "lane.done:",
        "%one = phi i64 [0, %lane], [1, %cell]",
        "%count.sum = add i64 %count, %one",
        "%l.next = add i64 %l, 1",
        f"%l.more = icmp slt i64 %l.next, {w}",
        "br i1 %l.more, label %lane, label %marked",
        "marked:",
        "br label %tail",
    ]


# States in C order to vector lanes and back: one row holds one state; a vector holds one number of `width` states. A
# block of width rows and width columns is loaded as rows and transposed by log₂(width) stages of two-vector shuffles,
# which costs a tenth of gathering each number.


def load_block(body: Body, rows: Sequence[str], first: int, count: int, tag: str) -> list[str]:
    """Columns first .. first + count − 1 (count ≤ width) of the rows at these pointers, one vector each."""
    t, w = body.t, body.t.width
    loaded = []
    for lane, row in enumerate(rows):
        p = body.line(f"lp{tag}_{lane}", f"getelementptr {t.real}, ptr {row}, i64 {first}")
        if count == w:
            loaded.append(body.line(f"ld{tag}_{lane}", f"load {t.value}, ptr {p}, align {t.size}"))
        else:
            masked = (
                f"@llvm.masked.load.{t.suffix}.p0(ptr {p}, i32 {t.size}, {_mask(w, count)}, {t.value} zeroinitializer)"
            )
            loaded.append(body.line(f"ld{tag}_{lane}", f"call {t.value} {masked}"))
    return _transposed(body, loaded, f"t{tag}")[:count]


def store_block(body: Body, rows: Sequence[str], first: int, columns: Sequence[str], tag: str) -> None:
    """Write columns (at most width of them) into the rows at these pointers, from column `first` on."""
    t, w = body.t, body.t.width
    count = len(columns)
    padded = list(columns) + [columns[-1]] * (w - count)
    for lane, value in enumerate(_transposed(body, padded, f"u{tag}")):
        p = body.line(f"wp{tag}_{lane}", f"getelementptr {t.real}, ptr {rows[lane]}, i64 {first}")
        if count == w:
            body.lines.append(f"store {t.value} {value}, ptr {p}, align {t.size}")
        else:
            masked = f"@llvm.masked.store.{t.suffix}.p0({t.value} {value}, ptr {p}, i32 {t.size}, {_mask(w, count)})"
            body.lines.append(f"call void {masked}")


def block_declarations(body: Body) -> str:
    """The intrinsics that load_block and store_block call."""
    t, mask = body.t, f"<{body.t.width} x i1>"
    return (
        f"declare {t.value} @llvm.masked.load.{t.suffix}.p0(ptr, i32, {mask}, {t.value})\n"
        f"declare void @llvm.masked.store.{t.suffix}.p0({t.value}, ptr, i32, {mask})\n"
    )


def _mask(width: int, count: int) -> str:
    return f"<{width} x i1> <" + ", ".join(f"i1 {'true' if j < count else 'false'}" for j in range(width)) + ">"


def _transposed(body: Body, vectors: list[str], tag: str) -> list[str]:
    """Entry j of vector i becomes entry i of vector j."""
    t, w = body.t, body.t.width
    stride = 1
    while stride < w:
        after = list(vectors)
        low = [k if not k & stride else w + k - stride for k in range(w)]
        high = [k + stride if not k & stride else w + k for k in range(w)]
        for i in range(w):
            if i & stride:
                continue
            a, b = vectors[i], vectors[i + stride]
            for j, lanes in ((i, low), (i + stride, high)):
                indices = ", ".join(f"i32 {k}" for k in lanes)
                after[j] = body.line(
                    f"{tag}_{stride}_{j}", f"shufflevector {t.value} {a}, {t.value} {b}, <{w} x i32> <{indices}>"
                )
        vectors = after
        stride *= 2
    return vectors
