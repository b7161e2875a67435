"""The derivative of traced numbers along a direction, as traced numbers: forward differentiation on the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.compiler.lower.plan import live
from spanloop.compiler.trace import (
    ADD,
    CONDITIONS,
    CONSTANT,
    COSINE,
    DIVIDE,
    INPUT,
    MULTIPLY,
    NEGATE,
    ROOT,
    SELECT,
    SINE,
    SUBTRACT,
    Condition,
    Expression,
)


def directional(outputs: Sequence[Any], moving: Sequence[Any], rates: Sequence[Any]) -> list[Any]:
    """d outputs/dt while the inputs `moving` change at `rates`, numbers of the same graph; others stay.

    Conditions do not change: at a switch the derivative is that of the side that is taken. Where a root is 0 its
    derivative is not finite.
    """
    d: dict[int, Any] = {x.index: r for x, r in zip(moving, rates, strict=True) if isinstance(x, Expression)}
    for n in live([x for x in outputs if isinstance(x, Expression)]):
        if n.index not in d:
            d[n.index] = _rate(n, d)
    return [d[x.index] if isinstance(x, Expression) else 0.0 for x in outputs]


def _rate(n: Expression, d: dict[int, Any]) -> Any:
    if n.op in (INPUT, CONSTANT) or n.op in CONDITIONS:
        return 0.0
    if n.op == SELECT:
        yes, no = d[n.b.index], d[n.c.index]
        return Condition(n.a).select(yes, no)
    a = d[n.a.index]
    if n.op in (NEGATE, SINE, COSINE, ROOT):
        return _of_one(n, a)
    b = d[n.b.index]
    if n.op == ADD:
        return a + b
    if n.op == SUBTRACT:
        return a - b
    if n.op == MULTIPLY:
        return a * n.b + n.a * b
    assert n.op == DIVIDE, n
    return (a - n * b) / n.b


def _of_one(n: Expression, a: Any) -> Any:
    if isinstance(a, float) and a == 0.0:
        return 0.0
    sine, cosine = n.a.sincos() if n.op in (SINE, COSINE) else (0.0, 0.0)
    return {NEGATE: lambda: -a, SINE: lambda: a * cosine, COSINE: lambda: -(a * sine), ROOT: lambda: a / (2.0 * n)}[
        n.op
    ]()
