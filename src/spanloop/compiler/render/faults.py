"""What can be wrong with a state, as bits of a kernel's status."""

from __future__ import annotations

from spanloop.compiler.lower import Plan
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
