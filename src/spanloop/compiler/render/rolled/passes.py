"""Passes over the links as loops, and the answer collected from the records of the links."""

from __future__ import annotations

from spanloop.compiler.lower.rolled import Looped, Step
from spanloop.compiler.render.instructions import Body, Real, declarations
from spanloop.compiler.trace import INPUT, Expression


def walk(plan: Looped, t: Real) -> str:
    """void walk(ptr q, ptr v, ..., ptr out, ptr records, ptr fault): all passes, then the answer."""
    functions = "".join(step_function(plan, s, t) for row in plan.steps for s in row)
    head = ", ".join(f"ptr %a{k}" for k in range(len(plan.inputs)))
    code = [f"define internal void @walk({head}, ptr %out, ptr %records, ptr %fault) #0 {{", "entry:"]
    for table in ("numbers", "meta", "world", "answer"):
        code += entry(table, f"t.{table}")
    before = "entry"
    for k, inward in enumerate(plan.directions):
        code += [] if inward else _copy_world(k, plan.world.shape[1], t)
        code += _pass(plan, k, t, before)
        before = f"p{k}.end"
    code += _answer(len(plan.answer), t, before)
    return functions + "\n".join(code) + "\n"


def _pass(plan: Looped, k: int, t: Real, before: str) -> list[str]:
    """The loop over all links, inward or outward, that calls each link's step."""
    count, columns = plan.meta.shape
    first, last, step = (count - 1, -1, -1) if plan.directions[k] else (0, count, 1)
    tag = f"p{k}"
    code = [
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
    return [
        *code,
        *_calls(plan, k, t),
        f"{tag}.done:",
        f"%{tag}.n = add i64 %{tag}.i, {step}",
        f"%{tag}.more = icmp ne i64 %{tag}.n, {last}",
        f"br i1 %{tag}.more, label %{tag}, label %{tag}.end",
        f"{tag}.end:",
    ]


def _calls(plan: Looped, k: int, t: Real) -> list[str]:
    """The step of the link's class, called on the link's data."""
    tag, row = f"p{k}", plan.steps[k]
    places = {n: j for j, (n, _) in enumerate(plan.inputs)}
    code = [
        f"%{tag}.numbers = getelementptr {t.real}, ptr %t.numbers, i64 %{tag}.m1",
        f"%{tag}.own = getelementptr {t.value}, ptr %records, i64 %{tag}.m2",
        f"%{tag}.other = getelementptr {t.value}, ptr %records, i64 %{tag}.m3",
    ]
    for j, name in enumerate(plan.names):
        code.append(f"%{tag}.in{j} = getelementptr {t.value}, ptr %a{places[name]}, i64 %{tag}.m{4 + j}")
    own = "".join(f", ptr %{tag}.in{j}" for j in range(len(plan.names)))
    given = f"ptr %{tag}.numbers, ptr %{tag}.own, ptr %{tag}.other{own}, ptr %fault"
    if len(row) == 1:
        return [*code, f"call void @{row[0].plan.name}({given})", f"br label %{tag}.done"]
    cases = " ".join(f"i64 {n}, label %{tag}.c{n}" for n in range(1, len(row)))
    code.append(f"switch i64 %{tag}.m0, label %{tag}.c0 [{cases}]")
    for n, s in enumerate(row):
        code += [f"{tag}.c{n}:", f"call void @{s.plan.name}({given})", f"br label %{tag}.done"]
    return code


def _answer(count: int, t: Real, before: str) -> list[str]:
    """The entries that make the answer, collected from the records."""
    return [
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
        f"%k.more = icmp slt i64 %k.n, {count}",
        "br i1 %k.more, label %answer, label %done",
        "done:",
        "ret void",
        "}",
    ]


def _copy_world(number: int, width: int, t: Real) -> list[str]:
    """Copy the values of the world in this pass into its record."""
    body = Body(t, lambda b, n: "", tag=f".w{number}")
    for k in range(width):
        p = body.line(f"wp{k}", f"getelementptr {t.real}, ptr %t.world, i64 {number * width + k}")
        x = body.line(f"wx{k}", f"load {t.real}, ptr {p}, align {t.size}")
        value = x if t.width == 1 else splat(body, x, f"ws{k}")
        to = body.line(f"wt{k}", f"getelementptr {t.value}, ptr %records, i64 {k}")
        body.lines.append(f"store {t.value} {value}, ptr {to}, align {t.size}")
    return body.lines


# ---- one step as an internal function


def step_function(plan: Looped, step: Step, t: Real) -> str:
    """One step on the records of one link."""
    pointers = {"number": "%numbers", "own": "%own", "other": "%other"}
    pointers |= {name: f"%input{k}" for k, name in enumerate(plan.names)}

    def fetch(body: Body, n: Expression) -> str:
        assert n.op == INPUT
        kind, j = step.inputs[int(n.value)]
        if kind == "number":
            p = body.line(f"np{n.index}", f"getelementptr {t.real}, ptr %numbers, i64 {j}")
            x = body.line(f"nx{n.index}", f"load {t.real}, ptr {p}, align {t.size}")
            return x if t.width == 1 else splat(body, x, f"ns{n.index}")
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


def splat(body: Body, x: str, name: str) -> str:
    """A number in every lane."""
    t = body.t
    one = body.line(f"{name}i", f"insertelement {t.value} poison, {t.real} {x}, i32 0")
    zeros = f"<{t.width} x i32> zeroinitializer"
    return body.line(f"{name}s", f"shufflevector {t.value} {one}, {t.value} poison, {zeros}")


# ---- the table of addresses through which looped code finds its data


TABLE = ("numbers", "meta", "world", "answer", "memory")


def ending(t: Real, bits: int) -> str:
    """The table, what is declared, and vectors of so many bits."""
    tables = f"@data = global [{len(TABLE)} x ptr] zeroinitializer\n@busy = global i32 0\n"
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
    return tables + declarations(t) + attributes


def entry(name: str, at: str) -> list[str]:
    """Read one address of the table."""
    k = TABLE.index(name)
    return [
        f"%{at}.p = getelementptr [{len(TABLE)} x ptr], ptr @data, i64 0, i64 {k}",
        f"%{at} = load ptr, ptr %{at}.p",
    ]
