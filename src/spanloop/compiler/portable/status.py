"""A Plan of one state with its status: what a kernel refuses, as outputs that portable code reads.

Bits of a status, as those of the machine code (render/single.py): NOT_FINITE, OFF_GUARD, FAR_ANGLE.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spanloop.compiler.lower.plan import Output, Plan, live
from spanloop.compiler.portable.sines import LIMIT
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE, OFF_GUARD
from spanloop.compiler.trace import CONSTANT, COSINE, SELECT, SINE, Condition, Expression

TOGETHER = 8  # conditions of one flag; a long plan is in pieces, and conditions stay in one
FLAGS = 3  # numbers after the outputs: not 0 where a demand, a guard or an angle is refused

TEXTS = {
    NOT_FINITE: "an input is not finite, or the state has no answer (a singular or open position)",
    OFF_GUARD: "a condition on the inputs does not hold (a quaternion off unit length, a negative parameter)",
    FAR_ANGLE: "an angle is beyond the range of the sine",
}


def with_flags(plan: Plan, real: str) -> Plan:
    """The plan with FLAGS more outputs, 0 where nothing is refused: demands (NaN), guards (1), angles (1)."""
    conditions = [c for c in map(_condition, plan.demand_flags) if c is not None]
    demands = sum((x for x in plan.demand_flags if _condition(x) is None), _flag(conditions, math.nan))
    guards = _flag([Condition(g) for g in plan.guards], 1.0)
    limit, near = LIMIT[real], []
    for x in {n.a.index: n.a for n in (*plan.nodes, *plan.checks) if n.op in (SINE, COSINE)}.values():
        near.append(~((limit < x) | (x < -limit)))  # NaN is not far, and makes NaN of what uses it
    outputs = (*plan.outputs, demands, guards, _flag(near, 1.0))
    nodes = live([x for x in outputs if isinstance(x, Expression)])
    return replace(plan, nodes=tuple(nodes), outputs=outputs, demand_flags=(), guards=(), checks=())


def _condition(flag: Output) -> Condition | None:
    """The condition of a flag that is 0 where it holds and NaN elsewhere; None if it is no such flag."""
    if not isinstance(flag, Expression) or flag.op != SELECT:
        return None
    if flag.b.op == CONSTANT and flag.b.value == 0.0:
        return Condition(flag.a)
    return ~Condition(flag.a) if flag.c.op == CONSTANT and flag.c.value == 0.0 else None


def _flag(conditions: Sequence[Condition], refused: float) -> Any:
    """0 where all conditions hold. TOGETHER share one selection, which costs more than to combine truth values."""
    total: Any = 0.0
    for k in range(0, len(conditions), TOGETHER):
        total = functools.reduce(operator.and_, conditions[k : k + TOGETHER]).select(0.0, refused) + total
    return total
