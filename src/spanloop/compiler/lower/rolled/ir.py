"""Input and result of looped lowering: a tree with passes over it, and the looped plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spanloop.compiler.lower.plan import Operations, Plan


class CannotLoop(Exception):
    """This walk cannot be looped; the message explains why."""


@dataclass(frozen=True)
class Pass:
    """One sweep: its step, its direction, and the values of the world (outward) or of a missing child (inward)."""

    step: Callable
    inward: bool
    start: Any  # a namespace


@dataclass(frozen=True)
class Tree:
    """The tree that the passes visit."""

    links: Sequence[Any]  # without numbers of their own: equal links are equal
    parents: Sequence[int]  # −1: the world
    places: Mapping[str, Sequence[int]]  # of each input: where a link's own entries begin
    counts: Mapping[str, Sequence[int]]  # and how many there are
    sizes: Mapping[str, int]  # of each input, all links together
    conditions: Callable  # conditions(link, {input: scalars}) -> conditions under which the answer is valid


@dataclass
class Step:
    """A step for one class of links: a plan and where its inputs and outputs are."""

    plan: Plan
    inputs: list[tuple[str, Any]]  # of each input of the plan: ("number", k) ("own", slot) ("other", slot) (name, j)
    outputs: list[tuple[str, int]]  # of each output: ("own", slot), ("other", slot) or ("fault", 0)


@dataclass
class Looped:
    """Steps by pass and class, the data of all links, and where the answer stands.

    A record begins with the interface of the pass that is under way; the world's record comes first. meta (links, 4 +
    inputs): class, first number, first entry of the record and of the parent's, and where its own part of each input
    begins.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    directions: tuple[bool, ...]  # of the passes: inward?
    steps: list[list[Step]]
    numbers: np.ndarray
    meta: np.ndarray
    names: tuple[str, ...]  # of the inputs, as meta's last columns know them
    world: np.ndarray  # (passes, width): the world's record at the beginning of each pass
    answer: np.ndarray  # of each output: its entry
    size: int  # entries of all records

    @property
    def operations(self) -> Operations:
        """Of all links together."""
        members = np.bincount(self.meta[:, 0], minlength=len(self.steps[0]))
        total = Counter[str]()
        for row in self.steps:
            for n, step in enumerate(row):
                for key, x in asdict(step.plan.operations).items():
                    total[key] += int(members[n]) * x
        return Operations(**total)
