"""Which inputs, states and parameters each output of a traced function depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanloop.compiler.trace import INPUT, Expression
from spanloop.exports.fmu.unit_functions import UnitFunction
from spanloop.exports.fmu.variables import RATE, TIME, Variable


def dependencies(function: UnitFunction, variables: Sequence[Variable]) -> list[list[int]]:
    """For each number that the function fills, the value references that it depends on."""
    reference: Mapping[tuple[str, int], int] = {
        (x.array, x.place): x.reference for x in variables if x.kind != RATE
    } | {("t", 0): next(x.reference for x in variables if x.kind == TIME)}
    arrays = [(name, k) for name, size in function.plan.inputs for k in range(size)]
    reached: dict[int, int] = {}  # for each value the inputs that it depends on, a bit each
    for n in function.plan.nodes:
        bits = 1 << int(n.value) if n.op == INPUT else 0
        for x in (n.a, n.b, n.c):
            bits |= reached.get(x.index, 0) if x is not None else 0
        reached[n.index] = bits
    out = []
    for value in function.plan.outputs:
        bits = reached.get(value.index, 0) if isinstance(value, Expression) else 0
        found = [reference[a] for k, a in enumerate(arrays) if bits >> k & 1 and a in reference]
        out.append(sorted(found))
    return out
