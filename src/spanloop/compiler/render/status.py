"""What can be wrong with a state, as bits of a kernel's status."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.lower import Plan
from spanloop.compiler.lower.plan import live
from spanloop.compiler.render.instructions import LIMIT, Body, Real
from spanloop.compiler.trace import ADD, CONSTANT, COSINE, INPUT, SINE, SUBTRACT, Expression

NOT_FINITE = 1  # an input or an output is NaN or infinite

OFF_GUARD = 2  # a guard of the plan does not hold

FAR_ANGLE = 4  # an angle beyond the range of the fast sine and cosine


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


# ---- Blocks of a loop over groups of states that mark those without an answer: from `mark` to `tail`.
#
# They read %i (the group's first state), %end, %out and %status; %count.sum is the number of states that were marked.


def marked(t: Real, masks: Sequence[tuple[str, int]], n_out: int) -> list[str]:
    """Lane by lane: write the faults of an ill state and NaN into its row."""
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
