"""Unrolled lowering: run the computation once on traced scalars and keep the whole graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spanloop.compiler.lower.plan import Plan, live
from spanloop.compiler.trace import Condition, Expression, Graph

Computation = Callable[[Mapping[str, Sequence[Any]]], tuple[Sequence[Any], Sequence[Any], Sequence[Any]]]


def unrolled(name: str, inputs: Sequence[tuple[str, int]], shape: tuple[int, ...], compute: Computation) -> Plan:
    """The plan of compute(inputs by name) -> (outputs in C order, conditions on inputs, conditions on results)."""
    graph = Graph()
    traced = {n: graph.inputs(size) for n, size in inputs}
    outputs, before, after = compute(traced)
    outputs = tuple(x if isinstance(x, Expression) else float(x) for x in outputs)
    guards = tuple(c.node for c in before if isinstance(c, Condition))
    hidden = tuple(c.select(0.0, math.nan) if isinstance(c, Condition) else math.nan for c in after if c is not True)
    nodes = live([x for x in outputs + hidden if isinstance(x, Expression)])
    arguments = tuple(x for n, _ in inputs for x in traced[n])
    return Plan(name, tuple(inputs), tuple(nodes), outputs, shape, hidden, guards, tuple(live(guards)), arguments)


def poisoned(plan: Plan) -> Plan:
    """The plan whose first output is not finite where the plan refuses its answer, for those who look at no more."""
    if not plan.hidden or not plan.outputs:
        return plan
    first = plan.outputs[0]
    for x in plan.hidden:
        first = x + first
    outputs = (first, *plan.outputs[1:])
    nodes = live([x for x in outputs if isinstance(x, Expression)])
    return replace(plan, nodes=tuple(nodes), outputs=outputs, hidden=(), guards=(), checks=())
