"""Operations of a tape as LLVM instructions, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanloop.compiler.render.llvm_types import Real
from spanloop.compiler.render.sincos import sincos
from spanloop.compiler.trace import Expression
from spanloop.compiler.trace.operations import (
    ADD,
    BOTH,
    CONDITIONS,
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
)

_PLAIN = {ADD: "fadd contract", SUBTRACT: "fsub contract", MULTIPLY: "fmul contract", DIVIDE: "fdiv"}


class Body:
    """Instructions of one function: values by node, written as they are first needed."""

    def __init__(self, t: Real, fetch: Callable[[Body, Expression], str], pack: int = 1, tag: str = ""):
        """fetch(body, node): the name of an input or of a value computed elsewhere.

        pack: how many sincos share a vector; tag: sets this body's names apart from those of another in one function.
        """
        self.t, self.fetch, self.pack, self.tag = t, fetch, pack, tag
        self.lines: list[str] = []
        self.values: dict[int, str] = {}
        self._angles: dict[int, tuple[str, str]] = {}

    def add(self, nodes: Sequence[Expression]) -> None:
        """Write the nodes; operands that are not among them are fetched."""
        if self.pack > 1:
            self._pack_angles(nodes)
        for n in nodes:
            if n.index not in self.values and n.op not in (INPUT, CONSTANT):
                self.values[n.index] = self._written(n)

    def value(self, x: Expression | float) -> str:
        """The name of a value, or its literal."""
        if not isinstance(x, Expression):
            return self.t.constant(x)
        found = self.values.get(x.index)
        if found is None:
            found = self.t.constant(x.value) if x.op == CONSTANT else self.fetch(self, x)
            self.values[x.index] = found
        return found

    def line(self, name: str, text: str) -> str:
        self.lines.append(f"%{name}{self.tag} = {text}")
        return f"%{name}{self.tag}"

    def _written(self, n: Expression) -> str:
        t, op, name = self.t, n.op, f"v{n.index}"
        if op in _PLAIN:
            return self.line(name, f"{_PLAIN[op]} {t.value} {self.value(n.a)}, {self.value(n.b)}")
        if op in (SINE, COSINE):
            return self._angle(n.a)[0 if op == SINE else 1]
        if op == NEGATE:
            return self.line(name, f"fneg {t.value} {self.value(n.a)}")
        if op == ROOT:
            return self.line(name, f"call {t.value} @llvm.sqrt.{t.suffix}({t.value} {self.value(n.a)})")
        if op == LESS:
            return self.line(name, f"fcmp olt {t.value} {self.value(n.a)}, {self.value(n.b)}")
        if op == SELECT:
            c, a, b = (self.value(x) for x in (n.a, n.b, n.c))
            return self.line(name, f"select {t.truth} {c}, {t.value} {a}, {t.value} {b}")
        if op in (BOTH, EITHER):
            word = "and" if op == BOTH else "or"
            return self.line(name, f"{word} {t.truth} {self.value(n.a)}, {self.value(n.b)}")
        if op == NOT:
            ones = "true" if t.width == 1 else "splat (i1 true)"
            return self.line(name, f"xor {t.truth} {self.value(n.a)}, {ones}")
        raise AssertionError(f"no instruction for {n!r}")

    def _angle(self, x: Expression) -> tuple[str, str]:
        if x.index not in self._angles:
            self._angles[x.index] = sincos(self.lines, self.t, self.value(x), f".q{x.index}{self.tag}")
        return self._angles[x.index]

    def _pack_angles(self, nodes) -> None:
        """Sines and cosines of angles known at the start (inputs, inputs plus constants), several to a vector."""
        angles: dict[int, Expression] = {}
        for n in nodes:
            if n.op in (SINE, COSINE) and _early(n.a):
                angles[n.a.index] = n.a
        known = list(angles.values())
        for k in range(0, len(known), self.pack):
            group = known[k : k + self.pack]
            if len(group) > 1:
                self._pack_group(group, f".pack{k}")

    def _pack_group(self, group: list[Expression], tag: str) -> None:
        wide = self.t.wide(self.pack)
        vector = "zeroinitializer"
        for j, x in enumerate(group):
            if x.op not in (INPUT, CONSTANT) and x.index not in self.values:
                self.add_early(x)
            vector = self.line(
                f"in{tag}_{j}", f"insertelement {wide.value} {vector}, {self.t.real} {self.value(x)}, i32 {j}"
            )
        results = sincos(self.lines, wide, vector, tag)
        for j, x in enumerate(group):
            self._angles[x.index] = tuple(  # type: ignore[assignment]
                self.line(f"out{tag}_{j}{letter}", f"extractelement {wide.value} {r}, i32 {j}")
                for letter, r in zip("sc", results, strict=True)
            )

    def add_early(self, x: Expression) -> None:
        self.values[x.index] = self._written(x)


def _early(x: Expression) -> bool:
    if x.op in (ADD, SUBTRACT):
        return x.a.op in (INPUT, CONSTANT) and x.b.op in (INPUT, CONSTANT)
    return x.op == INPUT


def declarations(*types: Real) -> str:
    """The intrinsics that bodies of these types call."""
    out = set()
    for t in types:
        v = t.value
        out.add(f"declare {v} @llvm.fma.{t.suffix}({v}, {v}, {v})")
        out.add(f"declare {v} @llvm.sqrt.{t.suffix}({v})")
        out.add(f"declare {v} @llvm.fabs.{t.suffix}({v})")
    return "\n".join(sorted(out)) + "\n"


__all__ = ["CONDITIONS", "Body", "declarations"]
