"""Small plans between the calls of a derived schedule: copies, zeros, and the turns of a linear fixed point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.trace import Graph
from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import total

TOLERANCE = {"float64": 1e-13, "float32": 1e-6}  # of the solution of a linear fixed point, relative
DONE = 1e-30  # makes what is left negative where nothing is
PATIENCE = 3  # turns of it for each turn that the repetition itself may take


def copies(sizes: Sequence[int]) -> Plan:
    """(x of these sizes) -> x."""
    graph = Graph()
    parts = [graph.inputs(size) for size in sizes]
    return _plan("copies", parts, [x for part in parts for x in part])


def zeros(size: int) -> Plan:
    """The plan that fills an array with zeros."""
    return _plan("zeros", [], [0.0] * size)


def start(sizes: Sequence[int]) -> Plan:
    """(x of these sizes) -> x, 1: where a repetition begins, and that it is not done."""
    graph = Graph()
    parts = [graph.inputs(size) for size in sizes]
    return _plan("start", parts, [*(x for part in parts for x in part), 1.0])


def settled(sizes: Sequence[int], dtype: str, columns: int = 1) -> Plan:
    """(x, next x, left) -> x, left: the next x unless all is done; left is positive while a column of x changes.

    sizes: of one column of each array; an array holds its columns one after the other.
    """
    graph = Graph()
    old, new = ([graph.inputs(columns * size) for size in sizes] for _ in range(2))
    (left,) = graph.inputs(1)
    busy = ~(left < 0.0)  # so that what is not a number is not done
    ahead = list[Any]()
    for c in range(columns):
        pairs = [
            (x, y)
            for a, b, size in zip(old, new, sizes, strict=True)
            for x, y in zip(a[c * size :][:size], b[c * size :][:size], strict=True)
        ]
        change = total(absolute(y - x) for x, y in pairs) - TOLERANCE[dtype] * total(absolute(y) for _, y in pairs)
        ahead.append(where(change < 0.0, 0.0, change))
    flat = [(x, y) for a, b in zip(old, new, strict=True) for x, y in zip(a, b, strict=True)]
    outputs = [*(where(busy, y, x) for x, y in flat), where(busy, total(ahead) - DONE, -1.0)]
    return _plan("settled", [*old, *new, [left]], outputs)


def _plan(name: str, parts: Sequence[Sequence], outputs: Sequence) -> Plan:
    return Plan.of(name, {f"x{k}": part for k, part in enumerate(parts)}, (0,), outputs)
