"""Reverse differentiation: how a weighted sum of traced numbers changes with each of many inputs.

Its cost does not depend on how many inputs are wanted. Conditions do not change: at a switch the derivative is that of
the side that is taken; what the other side computes has the weight 0, and contributes 0 even where its own derivative
is not finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.compiler.derivative.partials import is_zero, partials, plus, times
from spanloop.compiler.lower.plan import live
from spanloop.compiler.trace import CONDITIONS, COSINE, DIVIDE, MULTIPLY, ROOT, SELECT, SINE, Condition, Expression


def pullback(outputs: Sequence[Any], weights: Sequence[Any], wanted: Sequence[Expression]) -> list[Any]:
    """Σ weight · ∂output/∂x for each x that is wanted; `wanted` may be inputs or any other nodes of the graph.

    The derivative by a wanted node takes it as given: nothing passes through it to what it is made of.
    """
    nodes = live([x for x in outputs if isinstance(x, Expression)])
    ends = {x.index for x in wanted}
    moved = _moved(nodes, ends)
    guarded = _guarded(nodes, outputs)
    bar: dict[int, Any] = {}  # weight of each node
    for x, w in zip(outputs, weights, strict=True):
        if isinstance(x, Expression):
            bar[x.index] = plus(bar.get(x.index, 0.0), w)
    for n in reversed(nodes):
        y = bar.get(n.index, 0.0)
        if is_zero(y) or n.index in ends or n.index not in moved:
            continue
        for x, z in _shares(n, y, n.index in guarded):
            if x.index in moved:
                bar[x.index] = plus(bar.get(x.index, 0.0), z)
    return [bar.get(x.index, 0.0) for x in wanted]


def _moved(nodes: Sequence[Expression], ends: set[int]) -> set[int]:
    """Numbers that change with what is wanted."""
    out = set(ends)
    for n in nodes:
        if n.op not in CONDITIONS and any(x is not None and x.index in out for x in (n.a, n.b, n.c)):
            out.add(n.index)
    return out


def _guarded(nodes: Sequence[Expression], outputs: Sequence[Any]) -> set[int]:
    """Operations that only sides of selections need, and whose derivative may not be finite where they are not taken.

    What is needed without a selection is finite wherever the outputs are.
    """
    free = {x.index for x in outputs if isinstance(x, Expression)}
    for n in reversed(nodes):
        if n.index in free and n.op != SELECT and n.op not in CONDITIONS:
            free |= {x.index for x in (n.a, n.b, n.c) if x is not None}
    wild: set[int] = set()  # their values may not be finite
    found: set[int] = set()
    for n in nodes:
        if n.index in free or n.op in CONDITIONS:
            continue
        of_wild = any(x is not None and x.index in wild for x in (n.a, n.b, n.c))
        if n.op in (DIVIDE, ROOT) or of_wild:
            wild.add(n.index)
        if n.op in (DIVIDE, ROOT) or (of_wild and n.op in (MULTIPLY, SINE, COSINE)):
            found.add(n.index)
    return found


def _shares(n: Expression, y: Any, is_guarded: bool) -> list[tuple[Expression, Any]]:
    """The weight y of an operation's result, handed to its operands."""
    if n.op == SELECT:
        taken = Condition(n.a)
        return [(n.b, taken.select(y, 0.0)), (n.c, taken.select(0.0, y))]
    shares = [(x, times(p, y)) for x, p in partials(n)]
    if not is_guarded or not isinstance(y, Expression):
        return shares
    counts = (y < 0.0) | (y > 0.0)
    return [(x, z if is_zero(z) else counts.select(z, 0.0)) for x, z in shares]
