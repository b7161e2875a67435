"""A plan evaluated on numbers, one operation after the other: the reference for machine code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spanloop.compiler.lower.plan import Plan, live
from spanloop.compiler.trace import (
    ADD,
    BOTH,
    CONSTANT,
    COSINE,
    DIVIDE,
    EITHER,
    INPUT,
    LESS,
    MULTIPLY,
    NEGATE,
    NOT,
    ROOT,
    SELECT,
    SINE,
    SUBTRACT,
    Expression,
)

FUNCTIONS: dict[int, Callable[..., Any]] = {
    NEGATE: operator.neg,
    ADD: operator.add,
    SUBTRACT: operator.sub,
    MULTIPLY: operator.mul,
    DIVIDE: operator.truediv,
    SINE: math.sin,
    COSINE: math.cos,
    ROOT: math.sqrt,
    LESS: operator.lt,
    BOTH: operator.and_,
    EITHER: operator.or_,
    NOT: operator.not_,
    SELECT: lambda c, yes, no: yes if c else no,
}

ARRAY_FUNCTIONS: dict[int, Callable[..., Any]] = {
    **FUNCTIONS,
    SINE: np.sin,
    COSINE: np.cos,
    ROOT: np.sqrt,
    NOT: np.logical_not,
    SELECT: np.where,
}


def evaluated(
    plan: Plan, numbers: Sequence[Any], functions: dict[int, Callable[..., Any]] = FUNCTIONS
) -> tuple[list[Any], list[Any]]:
    """The outputs and the demand flags of a plan; numbers: all inputs, one after the other.

    functions: what each operation does; by default on Python's floats, where a division by 0 raises.
    """
    known: dict[int, Any] = {}
    roots = [*plan.outputs, *plan.demand_flags]
    for n in live([x for x in roots if isinstance(x, Expression)]):
        if n.op == INPUT:
            known[n.index] = numbers[int(n.value)]
        elif n.op == CONSTANT:
            known[n.index] = n.value
        else:
            known[n.index] = functions[n.op](*(known[x.index] for x in (n.a, n.b, n.c) if x is not None))
    values = [known[x.index] if isinstance(x, Expression) else x for x in roots]
    return values[: len(plan.outputs)], values[len(plan.outputs) :]
