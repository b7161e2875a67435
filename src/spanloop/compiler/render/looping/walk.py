"""The walk: loops over links, one a pass, and the answer collected from their records."""

from __future__ import annotations

from spanloop.compiler.lower.looping import Looped
from spanloop.compiler.render.body import Body
from spanloop.compiler.render.looping.step import splat, step_function
from spanloop.compiler.render.looping.table import entry
from spanloop.compiler.render.real import Real


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
    """What the world says in this pass, into its record."""
    body = Body(t, lambda b, n: "", tag=f".w{number}")
    for k in range(width):
        p = body.line(f"wp{k}", f"getelementptr {t.real}, ptr %t.world, i64 {number * width + k}")
        x = body.line(f"wx{k}", f"load {t.real}, ptr {p}, align {t.size}")
        value = x if t.width == 1 else splat(body, x, f"ws{k}")
        to = body.line(f"wt{k}", f"getelementptr {t.value}, ptr %records, i64 {k}")
        body.lines.append(f"store {t.value} {value}, ptr {to}, align {t.size}")
    return body.lines
