"""Classes of links that differ in numbers only, and the interfaces between links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanloop.compiler.lower.rolled.ir import CannotLoop, Tree
from spanloop.compiler.lower.rolled.pytree import put_together, taken_apart
from spanloop.compiler.trace import Expression


@dataclass
class LinkClass:
    """Links that differ in numbers only."""

    shape: Any
    leaf: bool
    first: bool  # is it the first to send to its parent?
    counts: tuple[int, ...]
    members: list[int] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    varying: list[int] = field(default_factory=list)  # leaves that are data, one of those that are always equal
    place: dict[int, int] = field(default_factory=dict)  # of every leaf that is data: which of them it equals
    kept: list[dict[str, tuple[Any, list[Any]]]] = field(default_factory=list)  # of each pass: shape and bindings

    def link(self, numbers: Sequence[Any]) -> Any:
        """The link with these in place of the numbers that vary."""
        leaves: list[Any] = list(self.rows[0])
        for leaf, k in self.place.items():
            leaves[leaf] = numbers[k]
        return put_together(self.shape, leaves)


def link_classes(tree: Tree) -> list[LinkClass]:
    """The classes of a tree's links, in the order in which they are met."""
    found: dict[Any, LinkClass] = {}
    last_child: dict[int, int] = {}
    for i, p in enumerate(tree.parents):
        last_child[p] = i  # inward, the last of the children comes first
    for i, link in enumerate(tree.links):
        shape, leaves = taken_apart(link)
        counts = tuple(tree.counts[n][i] for n in tree.counts)
        key = (shape, i not in last_child, last_child[tree.parents[i]] == i, counts)
        if key not in found:
            found[key] = LinkClass(*key)
        found[key].members.append(i)
        found[key].rows.append(leaves)
    for c in found.values():
        table = np.array(c.rows, dtype=float).reshape(len(c.members), -1)
        known: dict[bytes, int] = {}
        for leaf in np.flatnonzero((table != table[:1]).any(axis=0)).tolist():
            k = known.setdefault(np.ascontiguousarray(table[:, leaf]).tobytes(), len(c.varying))
            if k == len(c.varying):
                c.varying.append(leaf)
            c.place[leaf] = k
    return list(found.values())


# ---- interfaces: what travels between links in one pass, in one layout for all classes


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
