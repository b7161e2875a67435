"""An interpreter of the tape, on floats: what a Plan says, without any of the machinery that renders it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spanloop.compiler.lower import Plan
from spanloop.compiler.trace import NAMES, Expression

_MEANINGS = {
    "negate": lambda x: -x,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "sine": math.sin,
    "cosine": math.cos,
    "root": math.sqrt,
    "less": lambda x, y: x < y,
    "both": lambda x, y: x and y,
    "either": lambda x, y: x or y,
    "not": lambda x: not x,
    "select": lambda c, x, y: x if c else y,
}


def interpreted(plan: Plan, *inputs: Sequence[float]) -> np.ndarray:
    """The plan's outputs at these inputs."""
    values = values_of((*plan.nodes, *plan.checks), np.concatenate([np.ravel(x) for x in inputs]).tolist())
    out = [values[x.index] if isinstance(x, Expression) else x for x in plan.outputs]
    return np.array(out, dtype=float).reshape(plan.shape)


def values_of(nodes: Sequence[Expression], inputs: Sequence[float]) -> dict[int, float]:
    values: dict[int, float] = {}
    for n in nodes:
        name = NAMES[n.op]
        if name == "input":
            values[n.index] = inputs[int(n.value)]
        elif name == "constant":
            values[n.index] = n.value
        else:
            operands = [values[x.index] for x in (n.a, n.b, n.c) if x is not None]
            values[n.index] = _MEANINGS[name](*operands)
    return values
