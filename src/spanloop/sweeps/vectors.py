"""Expressions of vectors yet to come: operators applied to named inputs, added. They become Programs."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.errors import InputError, nearest
from spanloop.sweeps.closure_operators import pivot_demands
from spanloop.sweeps.operator_blocks import preparation
from spanloop.sweeps.program import Program, Sweep
from spanloop.sweeps.spaces import Algebra
from spanloop.sweeps.terms import ROWS, SPACES, Term, adding
from spanloop.sweeps.tested_pivots import PivotTest

_ANSWER = "answer"


@dataclass(frozen=True)
class Vector:
    """Σ number · term · vector, or an input by its name; `op @ x`, +, −, numbers times it."""

    algebra: Algebra
    space: str
    name: str = ""
    parts: tuple[tuple[float, Term | None, Vector], ...] = ()

    __array_ufunc__ = None

    @staticmethod
    def given(algebra: Algebra, name: str, space: str) -> Vector:
        """An input of this name, a vector of a space."""
        if space not in SPACES:
            raise InputError(f"vector {name!r}: {space!r} is no space; {nearest(space, SPACES)}")
        if not name.isidentifier() or name in ("q", "parameters"):
            raise InputError(f"vector {name!r}: expected a name like 'tau', other than 'q' and 'parameters'")
        return Vector(algebra, space, name)

    def __repr__(self) -> str:
        if self.name:
            return self.name
        words = []
        for c, term, x in self.parts:
            inner = repr(x) if x.name else f"({x!r})"
            words.append(f"{c:+.17g} * " + (f"({term.text}) @ {inner}" if term else inner))
        return " ".join(words)

    def mapped(self, term: Term) -> Vector:
        """term @ self."""
        return Vector(self.algebra, term.rows, parts=((1.0, term, self),))

    def __add__(self, other: Vector) -> Vector:
        return self._plus(other, 1.0)

    def __sub__(self, other: Vector) -> Vector:
        return self._plus(other, -1.0)

    def __neg__(self) -> Vector:
        return self * -1.0

    def __mul__(self, number: float) -> Vector:
        return Vector(self.algebra, self.space, parts=tuple((number * c, t, x) for c, t, x in self._as_parts()))

    __rmul__ = __mul__

    def _plus(self, other: Vector, sign: float) -> Vector:
        if not isinstance(other, Vector):
            return NotImplemented
        if other.space != self.space:
            raise InputError(f"({self!r}) and ({other!r}): a vector of {self.space} and one of {other.space}")
        theirs = tuple((sign * c, t, x) for c, t, x in other._as_parts())
        return Vector(self.algebra, self.space, parts=self._as_parts() + theirs)

    def _as_parts(self):
        return self.parts or ((1.0, None, self),)

    # ---- as a program

    @property
    def level(self) -> int:
        """The highest level of its terms."""
        return max((max(x.level, t.level if t else 0) for _, t, x in self.parts), default=0)

    def inputs(self) -> dict[str, str]:
        """Names of the inputs with their spaces, in the order in which they are met."""
        if self.name:
            return {self.name: self.space}
        found: dict[str, str] = {}
        for _, _, x in self.parts:
            for name, space in x.inputs().items():
                if found.setdefault(name, space) != space:
                    raise InputError(f"{name!r} is a vector of {found[name]} and one of {space}; expected one space")
        return found

    def sweeps(self, target: str) -> tuple[Sweep, ...]:
        """The sweeps that keep the vector's blocks as `target`; inputs are there under their names."""
        out: tuple[Sweep, ...] = ()
        kept = []
        for k, (_, term, x) in enumerate(self.parts):
            source = x.name or f"{target}|{k}"
            if not x.name:
                out += x.sweeps(source)
            kept.append(f"{target}/{k}" if term else source)
            if term:
                out += term.sweeps(source, kept[-1])
        return (*out, adding(self.space, [c for c, _, _ in self.parts], kept, target))

    def program(self, mechanism) -> Program:
        """The expression as sweeps over a mechanism: inputs q and its own, answer its entries in order."""
        algebra, given = self.algebra, self.inputs()
        whole = self if self.parts else Vector(algebra, self.space, parts=((1.0, None, self),))

        tested = PivotTest(mechanism) if whole.level else None

        def demands(m, here, world) -> list:
            return [*pivot_demands(m, here, world), *(tested.pairs(m, here, world) if tested else ())]

        def result(m, here, world):
            return algebra.found(m, self.space, here, world, _ANSWER)

        return Program(
            "operators",
            ("q", *given),
            preparation(mechanism, algebra.points(mechanism), whole.level, algebra.kept) + whole.sweeps(_ANSWER),
            result,
            (algebra.size(self.space),),
            sizes={name: algebra.size(space) for name, space in given.items()},
            blocks={name: algebra.blocks(mechanism, space) for name, space in given.items() if space != ROWS},
            demands=demands if algebra.closed or (tested and tested.noise) else None,
        )
