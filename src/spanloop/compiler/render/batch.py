"""A Plan as an LLVM function of many states, one vector lane each:

    i64 bad = batch(ptr in0, i64 stride0, ..., ptr out, ptr status, ptr scratch, i64 begin, i64 end)

Arrays are plain C order, one row a state; a stride (in numbers) of 0 gives every state the same row. States
begin..end − 1 are computed; a bad one gets NaN in its row and the bits of its faults in status. `scratch` holds
inputs, outputs and values that cross pieces where the plan is cut into pieces: see `scratch_size`.
"""

from __future__ import annotations

import math

from spanloop.compiler.lower import Plan
from spanloop.compiler.render import transpose
from spanloop.compiler.render.instructions import LIMIT, Body, Real, declarations
from spanloop.compiler.render.segments import Segments, cut
from spanloop.compiler.render.single import input_places
from spanloop.compiler.render.status import FAR_ANGLE, NOT_FINITE, angles, last_conditions, marked
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
    for first in range(0, len(plan.outputs), width):
        row = [f"%row.out.{lane}" for lane in range(width)]
        block = outputs[first : min(first + width, len(plan.outputs))]
        transpose.store_block(main, row, first, block, f".out{first}")
    masks = _faults(main, plan, outputs)
    declared = declarations(t) + transpose.declarations(main)
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
        return k

    def output(self, k: int) -> int:
        return self.n_inputs + k

    def between(self, n: Expression) -> int:
        return self.n_inputs + self.n_outputs + self.slots[n.index]

    def store(self, body: Body, place: int, value: str, tag: str) -> None:
        t = body.t
        p = body.line(f"sp.{tag}", f"getelementptr {t.real}, ptr %scratch, i64 {place * self.width}")
        body.lines.append(f"store {t.value} {value}, ptr {p}, align {t.size}")

    def load(self, body: Body, place: int, tag: str) -> str:
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
            loaded[k, first] = transpose.load_block(body, row, first, count, f".in{k}_{first}")
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


def _vanish(body: Body, x: str, held: str, name: str) -> str:
    """held + 0·x: stays zero while all are finite."""
    t = body.t
    zero = t.constant(0.0)
    return body.line(name, f"call {t.value} @llvm.fma.{t.suffix}({t.value} {x}, {t.value} {zero}, {t.value} {held})")


def _faults(body: Body, plan: Plan, outputs: list[str]) -> list[tuple[str, int]]:
    """Masks of the lanes that are well in each respect, with the bit that says otherwise."""
    t = body.t
    inputs, others = angles(plan)
    held, largest = t.constant(0.0), t.constant(0.0)
    for k, x in enumerate(plan.outputs + plan.demand_flags):
        if isinstance(x, Expression) or not math.isfinite(x):
            held = _vanish(body, outputs[k], held, f"oz{k}")
    for n in plan.arguments:
        held = _vanish(body, body.value(n), held, f"iz{n.index}")
        if int(n.value) in inputs:
            size = body.line(f"ab{n.index}", f"call {t.value} @llvm.fabs.{t.suffix}({t.value} {body.value(n)})")
            more = body.line(f"mo{n.index}", f"fcmp ogt {t.value} {size}, {largest}")
            largest = body.line(f"la{n.index}", f"select {t.truth} {more}, {t.value} {size}, {t.value} {largest}")
    masks = [(body.line("fine", f"fcmp oeq {t.value} {held}, {t.constant(0.0)}"), NOT_FINITE)]
    if inputs:
        near = body.line("near", f"fcmp olt {t.value} {largest}, {t.constant(LIMIT[t.real])}")
        masks.append((near, FAR_ANGLE))
    return masks + last_conditions(body, plan, others)


def _loop(plan: Plan, t: Real, lines: list[str], masks) -> str:
    """The loop over groups of states around the body, and the rare block that marks bad ones."""
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
