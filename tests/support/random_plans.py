"""Random plans: every operation of the tape, on numbers that include the awkward ones."""

from __future__ import annotations

import math

import numpy as np

from spanloop.compiler.lower import Plan
from spanloop.compiler.trace import (
    ADD,
    BOTH,
    COSINE,
    DIVIDE,
    EITHER,
    LESS,
    MULTIPLY,
    NEGATE,
    NOT,
    ROOT,
    SELECT,
    SINE,
    SUBTRACT,
    Condition,
    Expression,
    Graph,
)  # fmt: skip

AWKWARD = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, 1.7e308, -2.2e-308, 0.1, 1e6)
NUMBERS = (NEGATE, ADD, SUBTRACT, MULTIPLY, DIVIDE, ROOT, SELECT)
TRUTHS = (LESS, BOTH, EITHER, NOT)


def random_plan(seed: int, length: int, n_outputs: int, sines: bool = False, large: bool = True) -> Plan:
    """A plan of about `length` operations on inputs a[4], none[0], b[3]; outputs: values, inputs and constants.

    large: with constants that float cannot hold.
    """
    rng, graph = np.random.default_rng(seed), Graph()
    inputs = {"a": graph.inputs(4), "none": graph.inputs(0), "b": graph.inputs(3)}
    values = [x for part in inputs.values() for x in part] + [
        graph.constant(x) for x in (*AWKWARD[2:], 0.0) if large or abs(x) != 1.7e308
    ]
    truths = [graph.node(LESS, values[0], values[1])]
    choices = [*NUMBERS, *TRUTHS, *((SINE, COSINE) if sines else ())]
    for _ in range(length):
        op = int(rng.choice(choices))
        a, b = (values[_late(rng, len(values))] for _ in range(2))
        c, d = (truths[_late(rng, len(truths))] for _ in range(2))
        if op in (NEGATE, ROOT, SINE, COSINE):
            values.append(graph.node(op, a))
        elif op == SELECT:
            values.append(graph.node(op, c, a, b))
        elif op == LESS:
            truths.append(graph.node(op, a, b))
        elif op == NOT:
            truths.append(graph.node(op, c))
        elif op in (BOTH, EITHER):
            truths.append(graph.node(op, c, d))
        else:
            values.append(graph.node(op, a, b))
    chosen: list[Expression | float] = [values[_late(rng, len(values))] for _ in range(n_outputs)]
    chosen[:3] = [Condition(truths[-1]).select(values[-1], -0.0), values[0], -0.0][: len(chosen)]
    return Plan.of("random", inputs, (n_outputs,), chosen)


def awkward_inputs(seed: int) -> list[np.ndarray]:
    """Numbers for the inputs of a random plan."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(7) < 0.3, rng.choice(AWKWARD, 7), rng.normal(size=7) * 10.0 ** rng.integers(-3, 4, 7))
    return [x[:4], x[:0], x[4:]]


def _late(rng: np.random.Generator, count: int) -> int:
    """A number below `count`, recent ones more often, so that plans grow deep."""
    return count - 1 - min(int(rng.exponential(12.0)), count - 1)
