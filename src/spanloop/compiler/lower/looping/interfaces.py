"""Interfaces: what travels between links in one pass, in one layout for all classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spanloop.compiler.lower.leaves import taken_apart
from spanloop.compiler.lower.looping.forms import CannotLoop
from spanloop.compiler.trace import Expression


@dataclass
class Interface:
    """What is known of the scalars that travel between links in one pass: groups of equal ones, some constant."""

    shape: Any
    start: list[float]
    group: list[int] = field(default_factory=list)  # of each leaf
    constant: dict[int, float] = field(default_factory=dict)  # value of a group

    def __post_init__(self):
        values: dict[str, int] = {}
        self.group = [values.setdefault(repr(x), len(values)) for x in self.start]
        self.constant = {g: self.start[self.group.index(g)] for g in values.values()}

    def refine(self, leaves: Sequence[Any]) -> bool:
        """Take back what these leaves refute; True if anything was."""
        before = (list(self.group), dict(self.constant))
        seen: dict[tuple, int] = {}
        fresh, constants = [], {}
        for g, x in zip(self.group, leaves, strict=True):
            key = (g, x.index if isinstance(x, Expression) else repr(float(x)))
            n = seen.setdefault(key, len(seen))
            fresh.append(n)
            if g in self.constant and not isinstance(x, Expression) and float(x) == self.constant[g]:
                constants[n] = self.constant[g]
        self.group, self.constant = fresh, constants
        return before != (self.group, self.constant)


def interface_of(start: Any) -> Interface:
    """The interface that assumes the most: everything stays as it starts."""
    shape, leaves = taken_apart(start)
    if any(isinstance(x, Expression) for x in leaves):
        raise CannotLoop("a sweep starts from numbers that are computed")
    return Interface(shape, [float(x) for x in leaves])
