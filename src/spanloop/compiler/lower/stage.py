"""A Stage: calls of functions on scalars, on named arrays and blocks of them, as they are collected for a Schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spanloop.compiler.lower.plan import Plan, unrolled, with_demands_in_output
from spanloop.compiler.lower.schedule import Block, Call, Place

Page = Callable[..., tuple[Sequence[Any], ...]]


@dataclass
class Stage:
    """Arrays with their sizes, and the plan of each function that is called on them.

    Functions of one name are one function: it is traced once and called wherever it is needed.
    """

    sizes: dict[str, int]
    prefix: str = ""  # of the names of plans
    _plans: dict[str, Plan] = field(default_factory=dict)

    def array(self, name: str, size: int) -> str:
        """Declare an array; its name."""
        assert self.sizes.get(name, size) == size, (name, size, self.sizes[name])
        self.sizes[name] = size
        return name

    def size(self, place: Place) -> int:
        """Numbers of an array or of a block."""
        return place.size if isinstance(place, Block) else self.sizes[place]

    def call(self, name: str, reads: Sequence[Place], writes: Sequence[Place], page: Page) -> Call:
        """The call of page(*numbers of each that is read), which returns the numbers of each that is written."""
        sizes, filled = [self.size(x) for x in reads], [self.size(x) for x in writes]
        if name not in self._plans:

            def flat(x):
                parts = page(*x.values())
                assert [len(p) for p in parts] == filled, (name, [len(p) for p in parts], filled)
                return [y for part in parts for y in part], (), ()

            inputs = tuple((f"x{k}", size) for k, size in enumerate(sizes))
            self._plans[name] = with_demands_in_output(unrolled(f"{self.prefix}{name}", inputs, (0,), flat))
        plan = self._plans[name]
        assert ([size for _, size in plan.inputs], len(plan.outputs)) == (sizes, sum(filled)), name
        return Call(plan, tuple(reads), tuple(writes))

    def take(self, plan: Plan, reads: Sequence[Place], writes: Sequence[Place]) -> Call:
        """The call of a plan."""
        assert [size for _, size in plan.inputs] == [self.size(x) for x in reads], plan.name
        return Call(plan, tuple(reads), tuple(writes))
