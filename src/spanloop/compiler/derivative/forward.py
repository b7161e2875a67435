"""Forward differentiation: how traced numbers change while inputs do, many directions at once, each where it matters.

Conditions do not change: at a switch the derivative is that of the side that is taken. Where a root is 0 its derivative
is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.compiler.derivative.partials import is_zero, partials, plus, times
from spanloop.compiler.lower.plan import live
from spanloop.compiler.trace import CONDITIONS, SELECT, Condition, Expression

Column = dict[int, Any]  # derivatives of one number by direction, without those that are 0


def tangents(outputs: Sequence[Any], seeds: Mapping[int, Mapping[int, Any]]) -> list[Column]:
    """The derivatives of every output, by direction; directions along which it does not change are left out.

    seeds: of nodes that change, by their index in the graph: {direction: rate}.
    """
    d: dict[int, Column] = {k: dict(rates) for k, rates in seeds.items()}
    for n in live([x for x in outputs if isinstance(x, Expression)]):
        if n.index not in d and n.op not in CONDITIONS:
            found = _rates(n, d)
            if found:
                d[n.index] = found
    return [d.get(x.index, {}) if isinstance(x, Expression) else {} for x in outputs]


def directional(outputs: Sequence[Any], moving: Sequence[Any], rates: Sequence[Any]) -> list[Any]:
    """d outputs/dt while the inputs `moving` change at `rates`, numbers of the same graph; others stay."""
    seeds = {
        x.index: {0: r} for x, r in zip(moving, rates, strict=True) if isinstance(x, Expression) and not is_zero(r)
    }
    return [column.get(0, 0.0) for column in tangents(outputs, seeds)]


def _rates(n: Expression, d: Mapping[int, Column]) -> Column:
    """The derivatives of one operation's result."""
    if n.op == SELECT:
        yes, no, taken = d.get(n.b.index, {}), d.get(n.c.index, {}), Condition(n.a)
        return {k: taken.select(yes.get(k, 0.0), no.get(k, 0.0)) for k in {**yes, **no}}
    out: Column = {}
    if any(x is not None and x.index in d for x in (n.a, n.b)):
        for x, p in partials(n):
            for k, rate in d.get(x.index, {}).items():
                out[k] = plus(out.get(k, 0.0), times(p, rate))
    return {k: rate for k, rate in out.items() if not is_zero(rate)}
