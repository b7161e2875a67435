"""Small plans between the calls of a derived schedule: copies, zeros, and the turns of a linear fixed point."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.trace import Graph
from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import total

TOLERANCE = {"float64": 1e-13, "float32": 1e-6}  # of the solution of a linear fixed point, relative
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


def settled(sizes: Sequence[int], dtype: str) -> Plan:
    """(x, next x, left) -> x, left: the next x unless all is done; left is positive while x changes."""
    graph = Graph()
    old, new = ([graph.inputs(size) for size in sizes] for _ in range(2))
    (left,) = graph.inputs(1)
    busy = ~(left < 0.0)  # so that what is not a number is not done
    pairs = [(a, b) for own, other in zip(old, new, strict=True) for a, b in zip(own, other, strict=True)]
    change, size = total(absolute(b - a) for a, b in pairs), total(absolute(b) for _, b in pairs)
    ahead = where(busy, change - TOLERANCE[dtype] * size, -1.0)
    return _plan("settled", [*old, *new, [left]], [*(where(busy, b, a) for a, b in pairs), ahead])


def _plan(name: str, parts: Sequence[Sequence], outputs: Sequence) -> Plan:
    return Plan.of(name, {f"x{k}": part for k, part in enumerate(parts)}, (0,), outputs)
