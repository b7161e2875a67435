"""The derivative of one operation by its operands. The graph folds what it can: 0 and 1 cost nothing."""

from __future__ import annotations

from typing import Any

from spanloop.compiler.trace import (
    ADD,
    CONSTANT,
    COSINE,
    DIVIDE,
    MULTIPLY,
    NEGATE,
    ROOT,
    SINE,
    SUBTRACT,
    Expression,
)

Partial = tuple[Expression, Any]  # an operand, and the derivative by it


def partials(n: Expression) -> tuple[Partial, ...]:
    """Operands of an operation on numbers, each with the derivative by it; none of inputs, constants, conditions."""
    if n.op == ADD:
        return (n.a, 1.0), (n.b, 1.0)
    if n.op == SUBTRACT:
        return (n.a, 1.0), (n.b, -1.0)
    if n.op == MULTIPLY:
        return (n.a, n.b), (n.b, n.a)
    if n.op == NEGATE:
        return ((n.a, -1.0),)
    if n.op == DIVIDE:
        is_reciprocal = n.a.op == CONSTANT and n.a.value == 1.0
        over = n if is_reciprocal else 1.0 / n.b
        return (n.a, over), (n.b, -(n * over))
    if n.op in (SINE, COSINE):
        sine, cosine = n.a.sincos()
        return ((n.a, cosine if n.op == SINE else -sine),)
    return ((n.a, 0.5 / n),) if n.op == ROOT else ()


def is_zero(x: Any) -> bool:
    """Whether x is the plain number 0."""
    return type(x) is float and x == 0.0


def plus(x: Any, y: Any) -> Any:
    """x + y, where 0 costs nothing."""
    return y if is_zero(x) else x if is_zero(y) else x + y


def times(p: Any, y: Any) -> Any:
    """p y, where 0, 1 and −1 cost nothing."""
    if type(p) is float and abs(p) == 1.0:
        return y if p > 0.0 else -y
    return 0.0 if is_zero(p) or is_zero(y) else p * y
