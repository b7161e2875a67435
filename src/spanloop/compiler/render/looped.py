"""A looped walk as LLVM functions: steps as internal functions, loops over links, data behind one global table.

    i32 kernel(ptr in0, ..., ptr out)
    i64 batch(ptr in0, i64 stride0, ..., ptr out, ptr status, ptr scratch, i64 begin, i64 end)

as for unrolled plans. The host fills the table `data` when the code is loaded: addresses of numbers, meta, the world's
record, the answer's entries, and of memory for the records of one state.
"""

from __future__ import annotations

from spanloop.compiler.lower.looped import Looped, Step
from spanloop.compiler.render.body import Body, declarations
from spanloop.compiler.render.faults import FAR_ANGLE, NOT_FINITE, OFF_GUARD
from spanloop.compiler.render.marking import marked
from spanloop.compiler.render.real import Real
from spanloop.compiler.render.sincos import LIMIT
from spanloop.compiler.trace import Expression
from spanloop.compiler.trace.operations import INPUT

TABLE = ("numbers", "meta", "world", "answer", "memory")


def looped_single(plan: Looped, real: str) -> str:
    """Source of `kernel`."""
    t = Real(real)
    code = _walk(plan, t, "one") + _scan(t) + _kernel(plan, t)
    return code + _tables() + declarations(t) + _attributes(256)


def looped_batch(plan: Looped, real: str, width: int) -> str:
    """Source of `batch`."""
    t = Real(real, width)
    code = _walk(plan, t, "many") + _batch(plan, t)
    return code + _tables() + declarations(t) + _attributes(width * t.size * 8)


def looped_scratch(plan: Looped, width: int) -> int:
    """Numbers of scratch that `batch` needs: inputs, outputs and records of a group of states."""
    return (sum(size for _, size in plan.inputs) + len(plan.answer) + plan.size + 1) * width


def _attributes(bits: int) -> str:
    return f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'


def _tables() -> str:
    return f"@data = global [{len(TABLE)} x ptr] zeroinitializer\n@busy = global i32 0\n"


def _entry(name: str, at: str) -> list[str]:
    """Read one address of the table."""
    k = TABLE.index(name)
    return [
        f"%{at}.p = getelementptr [{len(TABLE)} x ptr], ptr @data, i64 0, i64 {k}",
        f"%{at} = load ptr, ptr %{at}.p",
    ]


# ---- steps


def _step(plan: Looped, step: Step, t: Real) -> str:
    """One step on the records of one link."""
    pointers = {"number": "%numbers", "own": "%own", "other": "%other"}
    pointers |= {name: f"%input{k}" for k, name in enumerate(plan.names)}

    def fetch(body: Body, n: Expression) -> str:
        assert n.op == INPUT
        kind, j = step.inputs[int(n.value)]
        if kind == "number":
            p = body.line(f"np{n.index}", f"getelementptr {t.real}, ptr %numbers, i64 {j}")
            x = body.line(f"nx{n.index}", f"load {t.real}, ptr {p}, align {t.size}")
            return x if t.width == 1 else _splat(body, x, f"ns{n.index}")
        p = body.line(f"ip{n.index}", f"getelementptr {t.value}, ptr {pointers[kind]}, i64 {j}")
        return body.line(f"in{n.index}", f"load {t.value}, ptr {p}, align {t.size}")

    body = Body(t, fetch)
    body.add(step.plan.nodes)
    values = [body.value(x) for x in step.plan.outputs]
    for k, ((kind, slot), value) in enumerate(zip(step.outputs, values, strict=True)):
        if kind == "fault":
            old = body.line(f"fo{k}", f"load {t.value}, ptr %fault, align {t.size}")
            new = body.line(f"fn{k}", f"fadd {t.value} {old}, {value}")
            body.lines.append(f"store {t.value} {new}, ptr %fault, align {t.size}")
        else:
            p = body.line(f"op{k}", f"getelementptr {t.value}, ptr {pointers[kind]}, i64 {slot}")
            body.lines.append(f"store {t.value} {value}, ptr {p}, align {t.size}")
    return (
        f"define internal void @{step.plan.name}({_step_head(plan)}) #0 {{\n"
        + "\n".join(body.lines)
        + "\nret void\n}\n"
    )


def _step_head(plan: Looped) -> str:
    own = "".join(f", ptr %input{k}" for k in range(len(plan.names)))
    return f"ptr %numbers, ptr %own, ptr %other{own}, ptr %fault"


def _splat(body: Body, x: str, name: str) -> str:
    t = body.t
    one = body.line(f"{name}i", f"insertelement {t.value} poison, {t.real} {x}, i32 0")
    zeros = f"<{t.width} x i32> zeroinitializer"
    return body.line(f"{name}s", f"shufflevector {t.value} {one}, {t.value} poison, {zeros}")


# ---- the walk


def _walk(plan: Looped, t: Real, name: str) -> str:
    """void walk(ptr q, ptr v, ..., ptr out, ptr records, ptr fault): all passes, then the answer."""
    functions = "".join(_step(plan, s, t) for row in plan.steps for s in row)
    places = {n: k for k, (n, _) in enumerate(plan.inputs)}
    head = ", ".join(f"ptr %a{k}" for k in range(len(plan.inputs)))
    code = [f"define internal void @walk({head}, ptr %out, ptr %records, ptr %fault) #0 {{", "entry:"]
    for table in ("numbers", "meta", "world", "answer"):
        code += _entry(table, f"t.{table}")
    before = "entry"
    count, columns = len(plan.meta), plan.meta.shape[1]
    for k, inward in enumerate(plan.directions):
        first, last, step = (count - 1, -1, -1) if inward else (0, count, 1)
        tag = f"p{k}"
        code += [] if inward else _copy_world(k, plan.world.shape[1], t)
        code += [
            f"br label %{tag}",
            f"{tag}:",
            f"%{tag}.i = phi i64 [{first}, %{before}], [%{tag}.n, %{tag}.done]",
            f"%{tag}.at = mul i64 %{tag}.i, {columns}",
            f"%{tag}.m = getelementptr i64, ptr %t.meta, i64 %{tag}.at",
        ]
        for j in range(columns):
            code += [
                f"%{tag}.m{j}.p = getelementptr i64, ptr %{tag}.m, i64 {j}",
                f"%{tag}.m{j} = load i64, ptr %{tag}.m{j}.p",
            ]
        code += [
            f"%{tag}.numbers = getelementptr {t.real}, ptr %t.numbers, i64 %{tag}.m1",
            f"%{tag}.own = getelementptr {t.value}, ptr %records, i64 %{tag}.m2",
            f"%{tag}.other = getelementptr {t.value}, ptr %records, i64 %{tag}.m3",
        ]
        for j, input_name in enumerate(plan.names):
            code.append(f"%{tag}.in{j} = getelementptr {t.value}, ptr %a{places[input_name]}, i64 %{tag}.m{4 + j}")
        own = "".join(f", ptr %{tag}.in{j}" for j in range(len(plan.names)))
        given = f"ptr %{tag}.numbers, ptr %{tag}.own, ptr %{tag}.other{own}, ptr %fault"
        row = plan.steps[k]
        if len(row) == 1:
            code += [f"call void @{row[0].plan.name}({given})", f"br label %{tag}.done"]
        else:
            cases = " ".join(f"i64 {n}, label %{tag}.c{n}" for n in range(1, len(row)))
            code.append(f"switch i64 %{tag}.m0, label %{tag}.c0 [{cases}]")
            for n, s in enumerate(row):
                code += [f"{tag}.c{n}:", f"call void @{s.plan.name}({given})", f"br label %{tag}.done"]
        code += [
            f"{tag}.done:",
            f"%{tag}.n = add i64 %{tag}.i, {step}",
            f"%{tag}.more = icmp ne i64 %{tag}.n, {last}",
            f"br i1 %{tag}.more, label %{tag}, label %{tag}.end",
            f"{tag}.end:",
        ]
        before = f"{tag}.end"
    code += [
        "br label %answer",
        "answer:",
        f"%k = phi i64 [0, %{before}], [%k.n, %answer]",
        "%e.p = getelementptr i64, ptr %t.answer, i64 %k",
        "%e = load i64, ptr %e.p",
        f"%from = getelementptr {t.value}, ptr %records, i64 %e",
        f"%x = load {t.value}, ptr %from, align {t.size}",
        f"%to = getelementptr {t.value}, ptr %out, i64 %k",
        f"store {t.value} %x, ptr %to, align {t.size}",
        "%k.n = add i64 %k, 1",
        f"%k.more = icmp slt i64 %k.n, {len(plan.answer)}",
        "br i1 %k.more, label %answer, label %done",
        "done:",
        "ret void",
        "}",
    ]
    return functions + "\n".join(code) + "\n"


def _copy_world(number: int, width: int, t: Real) -> list[str]:
    """What the world says in this pass, into its record."""
    body = Body(t, lambda b, n: "", tag=f".w{number}")
    for k in range(width):
        p = body.line(f"wp{k}", f"getelementptr {t.real}, ptr %t.world, i64 {number * width + k}")
        x = body.line(f"wx{k}", f"load {t.real}, ptr {p}, align {t.size}")
        value = x if t.width == 1 else _splat(body, x, f"ws{k}")
        to = body.line(f"wt{k}", f"getelementptr {t.value}, ptr %records, i64 {k}")
        body.lines.append(f"store {t.value} {value}, ptr {to}, align {t.size}")
    return body.lines


# ---- one state


def _scan(t: Real) -> str:
    """{0·sum, largest |x|} of n numbers."""
    v, fabs = t.value, f"@llvm.fabs.{t.suffix}"
    return f"""define internal {{ {v}, {v} }} @scan(ptr %x, i64 %n) #0 {{
entry:
%any = icmp sgt i64 %n, 0
br i1 %any, label %loop, label %done
loop:
%i = phi i64 [0, %entry], [%i.n, %loop]
%s = phi {v} [{t.constant(0.0)}, %entry], [%s.n, %loop]
%m = phi {v} [{t.constant(0.0)}, %entry], [%m.n, %loop]
%p = getelementptr {t.real}, ptr %x, i64 %i
%e = load {v}, ptr %p, align {t.size}
%s.n = call {v} @llvm.fma.{t.suffix}({v} %e, {v} {t.constant(0.0)}, {v} %s)
%a = call {v} {fabs}({v} %e)
%more = fcmp ogt {v} %a, %m
%m.n = select i1 %more, {v} %a, {v} %m
%i.n = add i64 %i, 1
%go = icmp slt i64 %i.n, %n
br i1 %go, label %loop, label %done
done:
%s.o = phi {v} [{t.constant(0.0)}, %entry], [%s.n, %loop]
%m.o = phi {v} [{t.constant(0.0)}, %entry], [%m.n, %loop]
%r = insertvalue {{ {v}, {v} }} poison, {v} %s.o, 0
%r2 = insertvalue {{ {v}, {v} }} %r, {v} %m.o, 1
ret {{ {v}, {v} }} %r2
}}
"""


def _kernel(plan: Looped, t: Real) -> str:
    n = len(plan.inputs)
    head = ", ".join(f"ptr %a{k}" for k in range(n))
    bytes_ = plan.size * t.size
    v = t.value
    code = [
        f"define i32 @kernel({head}, ptr %out) #0 {{",
        "entry:",
        f"%fault = alloca {v}, align 64",
        f"store {v} {t.constant(0.0)}, ptr %fault, align {t.size}",
        *_entry("memory", "memory"),
        "%won = cmpxchg ptr @busy, i32 0, i32 1 acq_rel monotonic",  # another thread may be at work in it
        "%mine = extractvalue { i32, i1 } %won, 1",
        "br i1 %mine, label %go, label %fetch",
        "fetch:",
        f"%fresh = call ptr @malloc(i64 {bytes_})",
        "br label %go",
        "go:",
        "%records = phi ptr [%memory, %entry], [%fresh, %fetch]",
        f"call void @walk({head}, ptr %out, ptr %records, ptr %fault)",
        "br i1 %mine, label %give, label %free",
        "give:",
        "store atomic i32 0, ptr @busy release, align 4",
        "br label %judge",
        "free:",
        "call void @free(ptr %records)",
        "br label %judge",
        "judge:",
        f"%bad = load {v}, ptr %fault, align {t.size}",
        f"%unit = fcmp oeq {v} %bad, {t.constant(0.0)}",
    ]
    total, near = t.constant(0.0), "true"
    for k, (name, size) in enumerate((*plan.inputs, ("out", len(plan.answer)))):
        pointer = f"%a{k}" if k < n else "%out"
        code += [
            f"%r{k} = call {{ {v}, {v} }} @scan(ptr {pointer}, i64 {size})",
            f"%s{k} = extractvalue {{ {v}, {v} }} %r{k}, 0",
            f"%total{k} = fadd {v} {total}, %s{k}",
        ]
        total = f"%total{k}"
        if name in ("q", "start"):
            code += [
                f"%m{k} = extractvalue {{ {v}, {v} }} %r{k}, 1",
                f"%near{k} = fcmp olt {v} %m{k}, {t.constant(LIMIT[t.real])}",
                f"%nears{k} = and i1 {near}, %near{k}",
            ]
            near = f"%nears{k}"
    code.append(f"%fine = fcmp oeq {v} {total}, {t.constant(0.0)}")
    status = "0"
    for j, (ok, bit) in enumerate((("%fine", NOT_FINITE), (near, FAR_ANGLE), ("%unit", OFF_GUARD))):
        code += [f"%bit{j} = select i1 {ok}, i32 0, i32 {bit}", f"%st{j} = or i32 {status}, %bit{j}"]
        status = f"%st{j}"
    code += [f"ret i32 {status}", "}", "declare ptr @malloc(i64)", "declare void @free(ptr)"]
    return "\n".join(code) + "\n"


# ---- many states


def _batch(plan: Looped, t: Real) -> str:
    """Groups of states: rows into lanes, the walk, lanes into rows."""
    w, v, n_out = t.width, t.value, len(plan.answer)
    heads = ", ".join(f"ptr %a{k}, i64 %s{k}" for k in range(len(plan.inputs)))
    code = [
        f"define i64 @batch({heads}, ptr %out, ptr %status, ptr %scratch, i64 %begin, i64 %end) #0 {{",
        "entry:",
        "%final = sub i64 %end, 1",
        f"%fault = getelementptr {v}, ptr %scratch, i64 0",
    ]
    at = 1
    for k, (_, size) in enumerate(plan.inputs):
        code.append(f"%l{k} = getelementptr {v}, ptr %scratch, i64 {at}")
        at += size
    code += [
        f"%lo = getelementptr {v}, ptr %scratch, i64 {at}",
        f"%records = getelementptr {v}, ptr %scratch, i64 {at + n_out}",
        "%any = icmp slt i64 %begin, %end",
        "br i1 %any, label %group, label %done",
        "group:",
        "%i = phi i64 [%begin, %entry], [%i.n, %tail]",
        "%before = phi i64 [0, %entry], [%count.o, %tail]",
        f"store {v} zeroinitializer, ptr %fault, align {t.size}",
    ]
    before, total, largest = "group", t.constant(0.0), t.constant(0.0)
    for lane in range(w):
        code += [
            f"%j{lane} = add i64 %i, {lane}",
            f"%j{lane}.in = icmp sle i64 %j{lane}, %final",
            f"%run{lane} = select i1 %j{lane}.in, i64 %j{lane}, i64 %final",
        ]
    for k, (name, size) in enumerate(plan.inputs):
        tag = f"c{k}"
        for lane in range(w):
            code += [
                f"%{tag}.o{lane} = mul i64 %run{lane}, %s{k}",
                f"%{tag}.r{lane} = getelementptr {t.real}, ptr %a{k}, i64 %{tag}.o{lane}",
            ]
        if not size:
            continue
        code += [
            f"br label %{tag}",
            f"{tag}:",
            f"%{tag}.i = phi i64 [0, %{before}], [%{tag}.n, %{tag}]",
            f"%{tag}.t = phi {v} [{total}, %{before}], [%{tag}.tn, %{tag}]",
            f"%{tag}.g = phi {v} [{largest}, %{before}], [%{tag}.gn, %{tag}]",
        ]
        held = "poison"
        for lane in range(w):
            code += [
                f"%{tag}.p{lane} = getelementptr {t.real}, ptr %{tag}.r{lane}, i64 %{tag}.i",
                f"%{tag}.x{lane} = load {t.real}, ptr %{tag}.p{lane}, align {t.size}",
                f"%{tag}.v{lane} = insertelement {v} {held}, {t.real} %{tag}.x{lane}, i32 {lane}",
            ]
            held = f"%{tag}.v{lane}"
        code += [
            f"%{tag}.to = getelementptr {v}, ptr %l{k}, i64 %{tag}.i",
            f"store {v} {held}, ptr %{tag}.to, align {t.size}",
            f"%{tag}.tn = call {v} @llvm.fma.{t.suffix}({v} {held}, {v} {t.constant(0.0)}, {v} %{tag}.t)",
        ]
        if name in ("q", "start"):
            code += [
                f"%{tag}.ab = call {v} @llvm.fabs.{t.suffix}({v} {held})",
                f"%{tag}.mo = fcmp ogt {v} %{tag}.ab, %{tag}.g",
                f"%{tag}.gn = select {t.truth} %{tag}.mo, {v} %{tag}.ab, {v} %{tag}.g",
            ]
        else:
            code.append(f"%{tag}.gn = select i1 true, {v} %{tag}.g, {v} %{tag}.g")
        code += [
            f"%{tag}.n = add i64 %{tag}.i, 1",
            f"%{tag}.more = icmp slt i64 %{tag}.n, {size}",
            f"br i1 %{tag}.more, label %{tag}, label %{tag}.end",
            f"{tag}.end:",
        ]
        before, total, largest = f"{tag}.end", f"%{tag}.tn", f"%{tag}.gn"
    lanes = ", ".join(f"ptr %l{k}" for k in range(len(plan.inputs)))
    code += [
        f"call void @walk({lanes}, ptr %lo, ptr %records, ptr %fault)",
        "br label %back",
        "back:",
        f"%b.i = phi i64 [0, %{before}], [%b.n, %back]",
        f"%b.t = phi {v} [{total}, %{before}], [%b.tn, %back]",
        f"%b.p = getelementptr {v}, ptr %lo, i64 %b.i",
        f"%b.x = load {v}, ptr %b.p, align {t.size}",
        f"%b.tn = call {v} @llvm.fma.{t.suffix}({v} %b.x, {v} {t.constant(0.0)}, {v} %b.t)",
    ]
    for lane in range(w):
        code += [
            f"%b.o{lane} = mul i64 %run{lane}, {n_out}",
            f"%b.k{lane} = add i64 %b.o{lane}, %b.i",
            f"%b.q{lane} = getelementptr {t.real}, ptr %out, i64 %b.k{lane}",
            f"%b.e{lane} = extractelement {v} %b.x, i32 {lane}",
            f"store {t.real} %b.e{lane}, ptr %b.q{lane}, align {t.size}",
        ]
    code += [
        "%b.n = add i64 %b.i, 1",
        f"%b.more = icmp slt i64 %b.n, {n_out}",
        "br i1 %b.more, label %back, label %judge",
        "judge:",
        f"%bad = load {v}, ptr %fault, align {t.size}",
        f"%fine = fcmp oeq {v} %b.tn, {t.constant(0.0)}",
        f"%near = fcmp olt {v} {largest}, {t.constant(LIMIT[t.real])}",
        f"%unit = fcmp oeq {v} %bad, {t.constant(0.0)}",
    ]
    masks = (("%fine", NOT_FINITE), ("%near", FAR_ANGLE), ("%unit", OFF_GUARD))
    code += [
        f"%both = and {t.truth} %fine, %near",
        f"%well = and {t.truth} %both, %unit",
        f"%well.bits = bitcast {t.truth} %well to i{w}",
        f"%all = icmp eq i{w} %well.bits, -1",
        "br i1 %all, label %tail, label %mark",
        *marked(t, masks, n_out),
        "tail:",
        "%more = phi i64 [0, %judge], [%count.sum, %marked]",
        "%count.o = add i64 %before, %more",
        f"%i.n = add i64 %i, {w}",
        "%go = icmp slt i64 %i.n, %end",
        "br i1 %go, label %group, label %done",
        "done:",
        "%result = phi i64 [0, %entry], [%count.o, %tail]",
        "ret i64 %result",
        "}",
    ]
    return "\n".join(code) + "\n"
