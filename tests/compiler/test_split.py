"""A plan in two: factors once, their use many times."""

from __future__ import annotations

import numpy as np

from spanloop.compiler import trace
from spanloop.compiler.lower import split, unrolled
from spanloop.math.scalar import sincos, where

ARITHMETIC = {
    trace.NEGATE: lambda a: -a,
    trace.ADD: lambda a, b: a + b,
    trace.SUBTRACT: lambda a, b: a - b,
    trace.MULTIPLY: lambda a, b: a * b,
    trace.SINE: np.sin,
    trace.COSINE: np.cos,
    trace.LESS: lambda a, b: a < b,
    trace.NOT: lambda a: not a,
    trace.SELECT: lambda c, a, b: a if c else b,
}


def compute(x):
    """Outputs of every sort: of both inputs, of one, a constant, a condition of the first part in the second."""
    (s, c), (a, b) = sincos(x["q"][0]), x["f"]
    large = x["q"][1] > 1.0
    return [s * a + c * b, where(large, a, -b), x["q"][1] * 2.0, 3.0, b - x["q"][1]], (), [x["q"][1] < 5.0]


def numbers(plan, *given):
    """The outputs of a plan on floats."""
    inputs, known = [x for part in given for x in part], {}
    for n in plan.nodes:
        operands = [known[x.index] for x in (n.a, n.b, n.c) if x is not None]
        if n.op == trace.INPUT:
            known[n.index] = inputs[int(n.value)]
        else:
            known[n.index] = n.value if n.op == trace.CONSTANT else ARITHMETIC[n.op](*operands)
    return [known[x.index] if isinstance(x, trace.Expression) else x for x in plan.outputs]


def test_the_parts_together_are_the_whole():
    whole = unrolled("whole", (("q", 2), ("f", 2)), (5,), compute)
    first, second = split(whole, ("f",))
    for q, f in (((0.3, 2.0), (1.0, 2.0)), ((0.3, 0.5), (1.5, -2.0))):
        assert numbers(second, numbers(first, q), f) == numbers(whole, q, f)


def test_the_second_part_has_no_sines_and_the_first_the_demands():
    first, second = split(unrolled("whole", (("q", 2), ("f", 2)), (5,), compute), ("f",))
    assert (first.operations.sincos, second.operations.sincos) == (1, 0)
    assert (len(first.demand_flags), len(second.demand_flags)) == (1, 0)
    assert [n for n, _ in second.inputs] == ["factors", "f"]


def test_early_outputs_belong_to_the_first_part():
    def both(x):
        return [x["q"][0] * 2.0, x["q"][0] * x["f"][0]], (), ()

    first, second = split(unrolled("both", (("q", 1), ("f", 1)), (2,), both), ("f",), early=1)
    assert numbers(first, [3.0]) == [6.0, 3.0]
    assert numbers(second, [3.0], [5.0]) == [15.0]
