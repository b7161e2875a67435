"""A Plan: inputs, operations in order, outputs, and the conditions under which the outputs are valid.

`unrolled` traces a computation on scalars and keeps every operation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from spanloop.compiler.trace import (
    ADD,
    CONSTANT,
    COSINE,
    DIVIDE,
    MULTIPLY,
    NEGATE,
    ROOT,
    SELECT,
    SINE,
    SUBTRACT,
    Condition,
    Expression,
    Graph,
    StateKeptError,
)

Output = Expression | float


@dataclass(frozen=True)
class Operations:
    """How many operations a plan takes, before multiplications and additions are fused."""

    multiplications: int = 0
    additions: int = 0  # with subtractions
    divisions: int = 0
    negations: int = 0
    sincos: int = 0  # pairs
    square_roots: int = 0
    selections: int = 0

    @property
    def total(self) -> int:
        """All of them, a sine/cosine pair as twenty."""
        return sum(astuple(self)) + 19 * self.sincos

    @staticmethod
    def of(nodes: Sequence[Expression]) -> Operations:
        """Count the operations among these nodes."""
        n = Counter(x.op for x in nodes)
        angles = {x.a.index for x in nodes if x.op in (SINE, COSINE)}
        return Operations(n[MULTIPLY], n[ADD] + n[SUBTRACT], n[DIVIDE], n[NEGATE], len(angles), n[ROOT], n[SELECT])

    def __str__(self) -> str:
        return (
            f"{self.multiplications} multiplications, {self.additions} additions, {self.divisions} divisions, "
            f"{self.negations} negations, {self.sincos} sine/cosine pairs, {self.square_roots} square roots"
        )


@dataclass(frozen=True)
class Plan:
    """Operations in order. `nodes` holds what the outputs need, operands before their users; `checks` what the guards
    need."""

    name: str
    inputs: tuple[tuple[str, int], ...]  # names and sizes, in the order of the arguments
    nodes: tuple[Expression, ...]
    outputs: tuple[Output, ...]
    shape: tuple[int, ...]
    demand_flags: tuple[Output, ...] = ()  # 0, NaN where a demand fails; computed with the outputs, not written
    guards: tuple[Expression, ...] = ()  # conditions on the inputs; where one fails the outputs are refused
    checks: tuple[Expression, ...] = ()
    arguments: tuple[Expression, ...] = ()  # the inputs' nodes, all of them, used or not

    @staticmethod
    def of(
        name: str,
        inputs: Mapping[str, Sequence[Expression]],
        shape: tuple[int, ...],
        outputs: Sequence[Any],
        guards: Sequence[Any] = (),
        demands: Sequence[Any] = (),
    ) -> Plan:
        """The plan of traced outputs (in C order).

        guards: conditions on the inputs; demands: conditions on what was computed. Where one fails, the state has no
        answer. Conditions that hold for every state (True) are left out.
        """
        written = tuple(x if isinstance(x, Expression) else float(x) for x in outputs)
        own = next((x.graph for given in inputs.values() for x in given), None)
        if any(isinstance(x, Expression) and x.graph is not own for x in written):
            raise StateKeptError("it returns a value that an earlier call has kept")
        flags = tuple(_flag(c) for c in demands if c is not True)
        nodes = live([x for x in written + flags if isinstance(x, Expression)])
        conditions = tuple(c.node for c in guards if isinstance(c, Condition))
        return Plan(
            name,
            tuple((n, len(x)) for n, x in inputs.items()),
            tuple(nodes),
            written,
            shape,
            flags,
            conditions,
            tuple(live(conditions)),
            tuple(x for own in inputs.values() for x in own),
        )

    @property
    def operations(self) -> Operations:
        """What the outputs take; guards and demands are not counted."""
        return Operations.of(live([x for x in self.outputs if isinstance(x, Expression)]))

    @property
    def depth(self) -> int:
        """Operations on the longest path from an input to an output: the critical path."""
        long: dict[int, int] = {}
        for n in live([x for x in self.outputs if isinstance(x, Expression)]):
            before = max((long[x.index] for x in (n.a, n.b, n.c) if x is not None), default=-1)
            long[n.index] = before + 1
        return max((long[x.index] for x in self.outputs if isinstance(x, Expression)), default=0)

    def __str__(self) -> str:
        head = ", ".join(f"{n}[{k}]" for n, k in self.inputs)
        shown = [x.index if isinstance(x, Expression) else x for x in self.outputs]
        body = "\n".join(f"  {n!r}" for n in self.nodes)
        return f"{self.name}({head}) -> {self.shape}\n{body}\n  return " + ", ".join(
            f"%{x}" if isinstance(x, int) else repr(x) for x in shown
        )


def live(roots: Sequence[Expression]) -> list[Expression]:
    """Everything the roots depend on, in order of evaluation."""
    if not roots:
        return []
    nodes = roots[0].graph.nodes
    wanted = bytearray(len(nodes))
    for r in roots:
        wanted[r.index] = 1
    out = []
    for n in reversed(nodes):
        if wanted[n.index]:
            out.append(n)
            for x in (n.a, n.b, n.c):
                if x is not None:
                    wanted[x.index] = 1
    out.reverse()
    return out


def copied(outputs: Sequence[Output], graph: Graph, known: Mapping[int, Expression]) -> list[Output]:
    """The outputs in another graph; known: {index of a node: what stands for it there}, for inputs at least."""
    found = dict(known)
    for n in live([x for x in outputs if isinstance(x, Expression)]):
        operands = [x.index for x in (n.a, n.b, n.c) if x is not None]
        if n.index in found:
            continue
        if n.op == CONSTANT:
            found[n.index] = graph.constant(n.value)
        elif operands and all(k in found for k in operands):  # what is left is behind nodes that are known
            found[n.index] = graph.node(n.op, *(found[k] for k in operands))
    return [found[x.index] if isinstance(x, Expression) else x for x in outputs]


def traced_inputs(inputs: Sequence[tuple[str, int]]) -> dict[str, list[Expression]]:
    """Scalars of a new graph for inputs of these names and sizes."""
    graph = Graph()
    return {n: graph.inputs(size) for n, size in inputs}


Computation = Callable[[Mapping[str, Sequence[Any]]], tuple[Sequence[Any], Sequence[Any], Sequence[Any]]]


def unrolled(name: str, inputs: Sequence[tuple[str, int]], shape: tuple[int, ...], compute: Computation) -> Plan:
    """The plan of compute(inputs by name) -> (outputs in C order, guards, demands)."""
    traced = traced_inputs(inputs)
    return Plan.of(name, traced, shape, *compute(traced))


def with_demands_in_output(plan: Plan) -> Plan:
    """The plan whose first output is NaN where a demand fails, for callers that read outputs only."""
    if not plan.demand_flags or not plan.outputs:
        return plan
    first = plan.outputs[0]
    for x in plan.demand_flags:
        first = x + first
    outputs = (first, *plan.outputs[1:])
    nodes = live([x for x in outputs if isinstance(x, Expression)])
    return replace(plan, nodes=tuple(nodes), outputs=outputs, demand_flags=(), guards=(), checks=())


def _flag(condition: Any) -> Output:
    return condition.select(0.0, math.nan) if isinstance(condition, Condition) else math.nan
