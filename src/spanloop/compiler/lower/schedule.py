"""A Schedule: plans called one after the other, step after step, on arrays that stay where they are.

A rollout is made of it. All arrays belong to one run and have names; a plan reads some and fills others. The state is
carried from step to step: a step reads `name` and fills `following(name)`, which replaces the state only if the step
succeeds. A run whose step fails stays where that step began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spanloop.compiler.lower.plan import Plan

TIME, STEP = "t", "h"  # arrays of one number that the loop itself fills: time at the start of the step, its length


def following(name: str) -> str:
    """The array that holds the next value of an array of the state."""
    return f"{name}.next"


@dataclass(frozen=True)
class Call:
    """A plan applied to arrays; its outputs fill the arrays it writes, one after the other."""

    plan: Plan
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class Repeat:
    """Calls in a loop as long as the only number of array `left` is positive, `most` times at most.

    If it is positive after that, the step failed. The calls must leave a finished run as it is.
    """

    calls: tuple[Call, ...]
    left: str
    most: int


@dataclass(frozen=True)
class Schedule:
    """One step with its inputs and outputs.

    begin: calls at the start of a step, before it is recorded; advance: calls that fill following(x) for every x of the
    state. halt: an array; if an entry is negative after a step, the step failed.
    """

    name: str
    sizes: Mapping[str, int]
    state: tuple[str, ...]
    constants: tuple[str, ...]  # given once a run
    controls: tuple[str, ...]  # given for every step
    record: tuple[str, ...]
    begin: tuple[Call, ...]
    advance: tuple[Call | Repeat, ...]
    halt: str | None = None

    def width(self, names: tuple[str, ...]) -> int:
        """How many numbers these arrays hold together."""
        return sum(self.sizes[n] for n in names)

    def calls(self) -> Iterator[Call]:
        """All calls in order, those of loops once."""
        for x in (*self.begin, *self.advance):
            yield from x.calls if isinstance(x, Repeat) else (x,)

    def plans(self) -> list[Plan]:
        """Every plan once, in the order of first use."""
        out: list[Plan] = []
        for c in self.calls():
            if not any(p is c.plan for p in out):
                out.append(c.plan)
        return out

    @property
    def operations(self) -> int:
        """How many operations a step takes at most (Operations.total)."""
        parts = [(x.most, x.calls) if isinstance(x, Repeat) else (1, (x,)) for x in (*self.begin, *self.advance)]
        return sum(most * sum(c.plan.operations.total for c in calls) for most, calls in parts)

    def __str__(self) -> str:
        lines = [f"{self.name}: state {', '.join(f'{n}[{self.sizes[n]}]' for n in self.state)}"]
        for title, part in (("begin", self.begin), ("advance", self.advance)):
            for x in part:
                for c in x.calls if isinstance(x, Repeat) else (x,):
                    again = f"  (repeat while {x.left} > 0)" if isinstance(x, Repeat) else ""
                    lines.append(f"  {title:8s}{', '.join(c.writes)} = {c.plan.name}({', '.join(c.reads)}){again}")
        return "\n".join(lines)
