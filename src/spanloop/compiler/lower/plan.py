"""A Plan: inputs, operations in order, outputs, and the conditions under which the outputs mean something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from spanloop.compiler.trace import Expression
from spanloop.compiler.trace.operations import ADD, COSINE, DIVIDE, MULTIPLY, NEGATE, ROOT, SELECT, SINE, SUBTRACT

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

    @staticmethod
    def of(nodes: Sequence[Expression]) -> Operations:
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
    """An ordered tape. `nodes` holds what the outputs need, operands before their users; `checks` what the guards
    need."""

    name: str
    inputs: tuple[tuple[str, int], ...]  # names and sizes, in the order of the arguments
    nodes: tuple[Expression, ...]
    outputs: tuple[Output, ...]
    shape: tuple[int, ...]
    hidden: tuple[Output, ...] = ()  # computed like outputs but not written: not finite where the answer is refused
    guards: tuple[Expression, ...] = ()  # conditions on the inputs; where one fails the outputs are refused
    checks: tuple[Expression, ...] = ()
    arguments: tuple[Expression, ...] = ()  # the inputs' nodes, all of them, used or not

    @property
    def operations(self) -> Operations:
        """What the outputs take; guards are not counted."""
        return Operations.of(live([x for x in self.outputs if isinstance(x, Expression)]))

    @property
    def depth(self) -> int:
        """Operations on the longest way from an input to an output: what is left when all others run beside it."""
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
