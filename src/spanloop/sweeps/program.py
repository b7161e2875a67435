"""A Program: what an algorithm is, as plain data. It does not know how it will be run.

A sweep visits every link, parents first (outward) or children first (inward), with a pure step:

    outward   step(link, here, parent) -> Values kept at the link
    inward    step(link, here, arriving) -> (Values kept at the link, Values sent to the parent)
    at once   step(mechanism, here, world) -> Values kept at the world, or a pair of these and {link: Values kept there}

The last is for closures, which join links that are no neighbours: `here` is the list of all links' values.
Steps are pure: they return what is to be kept and never write into `here` or `world`.

`here` holds the link's inputs (q, v, a, tau: its own entries) and everything earlier sweeps kept; `parent` what
this sweep kept at the parent; `arriving` the sum of what the children sent. `start` is what the world (outward) or
a link without children (inward) passes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NoReturn

from spanloop.errors import Refusal

OUTWARD, INWARD, AT_ONCE = "outward", "inward", "at once"


class Values(SimpleNamespace):
    """Named quantities of one link, or of the world; steps read them, the walk alone adds to them."""

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name}: a step returns what is to be kept; it does not write into Values")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name}: a step does not take anything out of Values")

    def __add__(self, other: Values) -> Values:
        return Values(**{k: x + getattr(other, k) for k, x in vars(self).items()})


class Union(dict):
    """Quantities by key whose sum is their union: what travels inward from many joints at once."""

    def __add__(self, other: Union) -> Union:
        return Union({**self, **other})


class Sum(dict):
    """Quantities by key whose sum is taken key by key."""

    def __add__(self, other: Sum) -> Sum:
        return Sum({**self, **{k: self[k] + x if k in self else x for k, x in other.items()}})


@dataclass(frozen=True)
class Sweep:
    """One pass over the links."""

    direction: str
    step: Callable[..., Any]
    start: Values | Callable[[Values], Values]  # or made from what is kept at the world


@dataclass(frozen=True)
class Program:
    """Sweeps in order, and how their results make the answer.

    inputs: which of q, v, a, tau (split over the joints), forces (six for each body in `loaded`) and others are read.
    result(mechanism, here, world): the answer's scalars in C order, from what the sweeps kept at links and world.
    """

    name: str
    inputs: tuple[str, ...]
    sweeps: tuple[Sweep, ...]
    result: Callable[[Any, Sequence[Values], Values], Sequence[Any]]
    shape: tuple[int, ...]
    regroup: bool = False  # may inertia be moved to parents?
    whole: bool = False  # must bodies on fixed joints stay links of their own?
    demands: Callable[[Any, Sequence[Values], Values], Sequence[Any]] | None = None  # pairs, the first to be less
    double: bool = False  # does it need double precision? Then kernels in float32 are refused
    refusal: Refusal | None = None  # where a demand is not met; None: closures lose rank
    loaded: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)  # of inputs that belong to no joint
    rewrite: Callable[[Any], Any] | None = None  # makes the mechanism to walk of the one that is given
    blocks: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)  # of those, entries for each link

    def __str__(self) -> str:
        lines = [f"{self.name}({', '.join(self.inputs)}) -> {self.shape}"]
        for s in self.sweeps:
            first = (s.step.__doc__ or "").strip().splitlines()[:1]
            lines.append(f"  {s.direction:8s} {s.step.__name__:18s} {' '.join(first)}")
        return "\n".join(lines)


def outward(step: Callable[..., Values], begin: Callable[[Values], Values] | None = None, **start: Any) -> Sweep:
    """A step from the world to the leaves; `start`: what the world hands to its children, or begin(world) makes it."""
    return Sweep(OUTWARD, step, begin or Values(**start))


def at_once(step: Callable[..., Values | tuple[Values, Mapping[int, Values]]]) -> Sweep:
    """A step that sees all links, and may keep values at each of them."""
    return Sweep(AT_ONCE, step, Values())


def inward(step: Callable[..., tuple[Values, Values]], **start: Any) -> Sweep:
    """A step from the leaves to the world; `start`: what arrives at a link without children."""
    return Sweep(INWARD, step, Values(**start))
