"""Unrolled lowering: run the computation once on traced scalars and keep the whole graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
