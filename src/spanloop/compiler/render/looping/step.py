"""One step of a looped walk as an internal function."""

from __future__ import annotations

from spanloop.compiler.lower.looping import Looped, Step
from spanloop.compiler.render.body import Body
from spanloop.compiler.render.real import Real
from spanloop.compiler.trace import Expression
from spanloop.compiler.trace.operations import INPUT


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
