"""A plan's operations once more, on a graph of their own, to which derivatives can be added.

A plan's graph may belong to several plans: inputs that are added to it would be numbered on from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.lower.plan import Output, Plan, live
from spanloop.compiler.trace import CONSTANT, Expression, Graph


def copied(plan: Plan) -> tuple[list[list[Expression]], list[Output]]:
    """The arrays of inputs and the outputs of a copy; inputs are numbered as the plan's, and others may follow them."""
    return _copy(plan, range(len(plan.inputs)), plan.outputs)


def trimmed(plan: Plan, outputs: Sequence[int]) -> tuple[Plan, list[int]]:
    """The plan of some of the outputs, by their places, and the places of the arrays that it still reads."""
    kept = [plan.outputs[k] for k in outputs]
    needed = {x.index for x in live([x for x in kept if isinstance(x, Expression)])}
    parts = _parts(plan)
    used = [k for k, part in enumerate(parts) if any(x.index in needed for x in part)]
    inputs, answers = _copy(plan, used, kept)
    given = {f"x{k}": part for k, part in enumerate(inputs)}
    return Plan.of(plan.name, given, (0,), answers), used


def _copy(plan: Plan, used: Sequence[int], outputs: Sequence[Output]) -> tuple[list[list[Expression]], list[Output]]:
    graph, parts = Graph(), _parts(plan)
    inputs = [graph.inputs(len(parts[k])) for k in used]
    new = {x.index: y for k, own in zip(used, inputs, strict=True) for x, y in zip(parts[k], own, strict=True)}
    for n in live([x for x in outputs if isinstance(x, Expression)]):
        if n.index in new:
            continue
        if n.op == CONSTANT:
            new[n.index] = graph.constant(n.value)
        else:
            new[n.index] = graph.node(n.op, *(new[x.index] for x in (n.a, n.b, n.c) if x is not None))
    return inputs, [new[x.index] if isinstance(x, Expression) else x for x in outputs]


def _parts(plan: Plan) -> list[tuple[Expression, ...]]:
    """The inputs of a plan, array by array."""
    out, at = [], 0
    for _, size in plan.inputs:
        out.append(plan.arguments[at : at + size])
        at += size
    return out
