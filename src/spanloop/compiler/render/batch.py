"""A Plan as an LLVM function of many states, one vector lane each:

    i64 bad = batch(ptr in0, i64 stride0, ..., ptr out, ptr status, ptr scratch, i64 begin, i64 end)

Arrays are plain C order, one row a state; a stride (in numbers) of 0 gives every state the same row. States begin..end − 1
are computed; a bad one gets NaN in its row and the bits of its faults in status. Outputs that are the constant 0 are not
written. `scratch` holds inputs and values that cross pieces: see `scratch_size`.
"""

from __future__ import annotations

from spanloop.compiler.lower import Plan
from spanloop.compiler.lower.plan import live
from spanloop.compiler.render.body import Body, declarations
from spanloop.compiler.render.faults import FAR_ANGLE, NOT_FINITE, OFF_GUARD, angles
from spanloop.compiler.render.real import Real
from spanloop.compiler.render.segments import Segments, cut
from spanloop.compiler.render.single import input_places
from spanloop.compiler.render.sincos import LIMIT
from spanloop.compiler.trace import Expression
from spanloop.compiler.trace.operations import INPUT

ALL = "splat (i1 true)"


def batch(plan: Plan, real: str, width: int) -> str:
    """Source of `batch` with `width` states to a vector."""
    t = Real(real, width)
    segments = cut(plan)
    many = len(segments.pieces) > 1
    where = input_places(plan)
    main = Body(t, _gathered(t, where))
    functions = ""
    if many:
        _spill_inputs(main, plan)
        answer = t.constant(0.0)
        for k in range(len(segments.pieces)):
            rows = f"<{width} x ptr> %rows"
            got = main.line(f"piece{k}", f"call {t.value} @piece{k}(ptr %scratch, {rows})")
            answer = main.line(f"sum{k}", f"fadd {t.value} {answer}, {got}")
            functions += _piece(plan, segments, k, t)
        for k, x in enumerate(plan.outputs):
            if not isinstance(x, Expression):
                answer = _scattered(main, k, x, answer)
    else:
        main.add(segments.pieces[0])
        answer = t.constant(0.0)
        for k, x in enumerate(plan.outputs):
            answer = _scattered(main, k, x, answer)
    masks = _faults(main, plan, answer)
    return _loop(plan, t, main.lines, masks) + functions + _declared(t) + _attributes(t)


def scratch_size(plan: Plan, width: int) -> int:
    """Numbers of scratch that `batch` needs."""
    segments = cut(plan)
    n_inputs = sum(size for _, size in plan.inputs)
    return (n_inputs + segments.n_slots) * width if len(segments.pieces) > 1 else width


def _gathered(t: Real, where):
    """Inputs of a group of states, gathered from their rows."""

    def fetch(body: Body, n: Expression) -> str:
        k, j = where[int(n.value)]
        p = body.line(f"gp{n.index}", f"getelementptr {t.real}, <{t.width} x ptr> %row{k}, i64 {j}")
        mask = f"<{t.width} x i1> {ALL}, {t.value} zeroinitializer"
        call = f"@llvm.masked.gather.{t.suffix}.v{t.width}p0(<{t.width} x ptr> {p}, i32 {t.size}, {mask})"
        return body.line(f"in{n.index}", f"call {t.value} {call}")

    return fetch


def _scattered(body: Body, k: int, x: Expression | float, answer: str) -> str:
    """Write output k of all states; the running Σ 0·output."""
    t = body.t
    if not isinstance(x, Expression) and x == 0.0:
        return answer
    value = body.value(x)
    p = body.line(f"op{k}", f"getelementptr {t.real}, <{t.width} x ptr> %rows, i64 {k}")
    mask = f"<{t.width} x i1> {ALL}"
    body.lines.append(
        f"call void @llvm.masked.scatter.{t.suffix}.v{t.width}p0"
        f"({t.value} {value}, <{t.width} x ptr> {p}, i32 {t.size}, {mask})"
    )
    return _vanish(body, value, answer, f"oz{k}") if isinstance(x, Expression) else answer


def _vanish(body: Body, x: str, held: str, name: str) -> str:
    t = body.t
    zero = t.constant(0.0)
    return body.line(
        name, f"call {t.value} @llvm.fma.{t.suffix}({t.value} {x}, {t.value} {zero}, {t.value} {held})"
    )


def _spill_inputs(body: Body, plan: Plan) -> None:
    """All inputs into the scratch, where the pieces read them."""
    t = body.t
    for n in _inputs(plan):
        p = body.line(f"xp{n.index}", f"getelementptr {t.real}, ptr %scratch, i64 {int(n.value) * t.width}")
        body.lines.append(f"store {t.value} {body.value(n)}, ptr {p}, align {t.size}")


def _inputs(plan: Plan) -> list[Expression]:
    """The input nodes of the plan's graph, all of them, used or not."""
    graph = next((n.graph for n in (*plan.nodes, *plan.checks)), None)
    return [n for n in graph.nodes[: graph.n_inputs] if n.op == INPUT] if graph else []


def _piece(plan: Plan, segments: Segments, k: int, t: Real) -> str:
    n_inputs = sum(size for _, size in plan.inputs)

    def place(n: Expression) -> int:
        return (int(n.value) if n.op == INPUT else n_inputs + segments.slot[n.index]) * t.width

    def fetch(body: Body, n: Expression) -> str:
        p = body.line(f"sp{n.index}", f"getelementptr {t.real}, ptr %scratch, i64 {place(n)}")
        return body.line(f"sv{n.index}", f"load {t.value}, ptr {p}, align {t.size}")

    body = Body(t, fetch)
    body.add(segments.pieces[k])
    for n in segments.pieces[k]:
        if n.index in segments.leaves and segments.home[n.index] == k:
            p = body.line(f"tp{n.index}", f"getelementptr {t.real}, ptr %scratch, i64 {place(n)}")
            body.lines.append(f"store {t.value} {body.values[n.index]}, ptr {p}, align {t.size}")
    answer = t.constant(0.0)
    for j, x in enumerate(plan.outputs):
        if isinstance(x, Expression) and segments.home.get(x.index, 0) == k:
            answer = _scattered(body, j, x, answer)
    text = "\n".join(body.lines)
    head = f"define internal {t.value} @piece{k}(ptr noalias %scratch, <{t.width} x ptr> %rows) #0"
    return f"{head} {{\n{text}\nret {t.value} {answer}\n}}\n"


def _faults(body: Body, plan: Plan, answer: str) -> list[tuple[str, int]]:
    """Masks of the lanes that are well in each respect, with the bit that says otherwise."""
    t = body.t
    inputs, others = angles(plan)
    held, largest = answer, t.constant(0.0)
    for n in _inputs(plan):
        held = _vanish(body, body.value(n), held, f"iz{n.index}")
        if int(n.value) in inputs:
            size = body.line(f"ab{n.index}", f"call {t.value} @llvm.fabs.{t.suffix}({t.value} {body.value(n)})")
            more = body.line(f"mo{n.index}", f"fcmp ogt {t.value} {size}, {largest}")
            largest = body.line(f"la{n.index}", f"select {t.truth} {more}, {t.value} {size}, {t.value} {largest}")
    masks = [(body.line("fine", f"fcmp oeq {t.value} {held}, {t.constant(0.0)}"), NOT_FINITE)]
    limit = t.constant(LIMIT[t.real])
    if inputs:
        masks.append((body.line("near", f"fcmp olt {t.value} {largest}, {limit}"), FAR_ANGLE))
    body.add(live(others))
    for j, x in enumerate(others):
        size = body.line(f"far{j}", f"call {t.value} @llvm.fabs.{t.suffix}({t.value} {body.value(x)})")
        masks.append((body.line(f"inside{j}", f"fcmp olt {t.value} {size}, {limit}"), FAR_ANGLE))
    body.add(plan.checks)
    return masks + [(body.value(g), OFF_GUARD) for g in plan.guards]


def _loop(plan: Plan, t: Real, lines: list[str], masks) -> str:
    """The loop over groups of states around the body, and the rare block that marks bad ones."""
    w, n_out = t.width, len(plan.outputs)
    lanes, mask = f"<{w} x i64>", f"<{w} x i1>"
    iota = ", ".join(f"i64 {j}" for j in range(w))
    head = ", ".join(f"ptr noalias readonly %a{k}, i64 %s{k}" for k in range(len(plan.inputs)))
    head += ", ptr noalias %out, ptr noalias %status, ptr noalias %scratch, i64 %begin, i64 %end"

    def splat(name: str, value: str) -> list[str]:
        return [
            f"%{name}_ = insertelement {lanes} poison, i64 {value}, i32 0",
            f"%{name} = shufflevector {lanes} %{name}_, {lanes} poison, <{w} x i32> zeroinitializer",
        ]

    code = [f"define i64 @batch({head}) #0 {{", "entry:", "%final = sub i64 %end, 1", *splat("final.v", "%final")]
    for k in range(len(plan.inputs)):
        code += splat(f"stride{k}", f"%s{k}")
    code += [
        "%any = icmp slt i64 %begin, %end",
        "br i1 %any, label %loop, label %done",
        "loop:",
        "%i = phi i64 [%begin, %entry], [%next, %tail]",
        "%bad = phi i64 [0, %entry], [%bad.sum, %tail]",
        *splat("i.v", "%i"),
        f"%lane = add {lanes} %i.v, <{iota}>",
        f"%within = icmp sle {lanes} %lane, %final.v",
        f"%state = select {mask} %within, {lanes} %lane, {lanes} %final.v",  # the last state fills the last group
    ]
    for k in range(len(plan.inputs)):
        code.append(f"%at{k} = mul {lanes} %state, %stride{k}")
        code.append(f"%row{k} = getelementptr {t.real}, ptr %a{k}, {lanes} %at{k}")
    code += [
        f"%at.out = mul {lanes} %state, splat (i64 {n_out})",
        f"%rows = getelementptr {t.real}, ptr %out, {lanes} %at.out",
        *lines,
    ]
    well = masks[0][0]
    for j, (m, _) in enumerate(masks[1:]):
        code.append(f"%well{j} = and {mask} {well}, {m}")
        well = f"%well{j}"
    code += [
        f"%ill_ = xor {mask} {well}, {ALL}",
        f"%ill = and {mask} %ill_, %within",
        f"%ill.bits = bitcast {mask} %ill to i{w}",
        f"%some = icmp ne i{w} %ill.bits, 0",
        "br i1 %some, label %mark, label %tail",
        "mark:",
    ]
    code += _marked(t, masks, n_out)
    code += [
        "tail:",
        "%more = phi i64 [0, %loop], [%count, %marked]",
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


def _marked(t: Real, masks, n_out: int) -> list[str]:
    """Write the faults of the ill lanes and NaN into their rows."""
    w = t.width
    code, bits = [], "zeroinitializer"
    for j, (m, bit) in enumerate(masks):
        code.append(f"%bit{j} = select <{w} x i1> {m}, <{w} x i8> zeroinitializer, <{w} x i8> splat (i8 {bit})")
        code.append(f"%bits{j} = or <{w} x i8> {bits}, %bit{j}")
        bits = f"%bits{j}"
    pointers = f"<{w} x ptr>"
    nan = t.constant(float("nan"))
    return [
        *code,
        f"%status.at = getelementptr i8, ptr %status, <{w} x i64> %state",
        f"call void @llvm.masked.scatter.v{w}i8.v{w}p0(<{w} x i8> {bits}, {pointers} %status.at, i32 1, <{w} x i1> %ill)",
        f"%count.bits = call i{w} @llvm.ctpop.i{w}(i{w} %ill.bits)",
        f"%count = zext i{w} %count.bits to i64",
        "br label %row",
        "row:",
        "%column = phi i64 [0, %mark], [%column.next, %row]",
        f"%cell = getelementptr {t.real}, {pointers} %rows, i64 %column",
        f"call void @llvm.masked.scatter.{t.suffix}.v{w}p0({t.value} {nan}, {pointers} %cell, i32 {t.size}, <{w} x i1> %ill)",
        "%column.next = add i64 %column, 1",
        f"%unfinished = icmp slt i64 %column.next, {n_out}",
        "br i1 %unfinished, label %row, label %marked",
        "marked:",
        "br label %tail",
    ]


def _declared(t: Real) -> str:
    w, p = t.width, f"<{t.width} x ptr>"
    return declarations(t) + (
        f"declare {t.value} @llvm.masked.gather.{t.suffix}.v{w}p0({p}, i32, <{w} x i1>, {t.value})\n"
        f"declare void @llvm.masked.scatter.{t.suffix}.v{w}p0({t.value}, {p}, i32, <{w} x i1>)\n"
        f"declare void @llvm.masked.scatter.v{w}i8.v{w}p0(<{w} x i8>, {p}, i32, <{w} x i1>)\n"
        f"declare i{w} @llvm.ctpop.i{w}(i{w})\n"
    )


def _attributes(t: Real) -> str:
    bits = t.width * t.size * 8
    return f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
