"""What can be wrong with a state, as bits of a kernel's status."""

from __future__ import annotations

from spanloop.compiler.lower import Plan
from spanloop.compiler.lower.plan import live
from spanloop.compiler.render.body import Body
from spanloop.compiler.render.sincos import LIMIT
from spanloop.compiler.trace import Expression
from spanloop.compiler.trace.operations import ADD, CONSTANT, COSINE, INPUT, SINE, SUBTRACT

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
