"""A Plan of one state with its status: what a kernel refuses, as outputs that portable code reads.

Bits of a status, as those of the machine code (render/single.py): NOT_FINITE, OFF_GUARD, FAR_ANGLE.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spanloop.compiler.lower.plan import Plan, live
from spanloop.compiler.portable.sines import LIMIT
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE, OFF_GUARD
from spanloop.compiler.trace import COSINE, SINE, Condition, Expression

FLAGS = 3  # numbers after the outputs: not 0 where a demand, a guard or an angle is refused

TEXTS = {
    NOT_FINITE: "an input is not finite, or the state has no answer (a singular or open position)",
    OFF_GUARD: "a condition on the inputs does not hold (a quaternion off unit length, a negative parameter)",
    FAR_ANGLE: "an angle is beyond the range of the sine",
}


def with_flags(plan: Plan, real: str) -> Plan:
    """The plan with FLAGS more outputs, 0 where nothing is refused: demands (NaN), guards (1), angles (1)."""
    demands: Any = 0.0
    for x in plan.demand_flags:
        demands = x + demands
    guards = [Condition(g).select(0.0, 1.0) for g in plan.guards]
    limit, far = LIMIT[real], []
    for x in {n.a.index: n.a for n in (*plan.nodes, *plan.checks) if n.op in (SINE, COSINE)}.values():
        far.append(((limit < x) | (x < -limit)).select(1.0, 0.0))  # NaN is not far, and makes NaN of what uses it
    outputs = (*plan.outputs, demands, sum(guards, 0.0), sum(far, 0.0))
    nodes = live([x for x in outputs if isinstance(x, Expression)])
    return replace(plan, nodes=tuple(nodes), outputs=outputs, demand_flags=(), guards=(), checks=())
