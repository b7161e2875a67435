"""A Program: what an algorithm is, as plain data; and the walk over the tree, which alone visits links one by one.

A Program does not know how it will be run. The walk on floats *is* the `python` target; on traced scalars it unrolls a
Program into a graph.

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
_COORDINATES = ("q", "start")  # inputs with nq entries
_RATES = ("v", "a", "tau", "delta")  # inputs with nv entries


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


class Demand(tuple[Any, Any]):
    """A pair of which the first must be less, with a reason of its own where it is not."""

    refusal: Refusal

    @classmethod
    def of(cls, less: Any, more: Any, refusal: Refusal) -> Demand:
        """The demand less < more."""
        pair = cls((less, more))
        pair.refusal = refusal
        return pair


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
    tests_pivots: bool = False  # do its demands include the pivots of joints? Else kernels of closed methods add them
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


# ---- the walk


def walk(program: Program, mechanism, inputs: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The answer's scalars, in C order."""
    return walked(program, mechanism, inputs)[0]


def walked(program: Program, mechanism, inputs: Mapping[str, Sequence[Any]]) -> tuple[list[Any], list[Any]]:
    """The answer's scalars, in C order, and pairs of which the first must be less for it to mean anything.

    inputs: for each name in program.inputs its scalars: q (nq), v, a, tau (nv), forces (6 for each loaded body).
    """
    if program.rewrite:
        mechanism = program.rewrite(mechanism)
    forces = _forces_on_links(program, mechanism, inputs)
    blocks = _blocks_of_links(program, mechanism, inputs)
    here = [
        Values(forces=f, **{**_inputs_of(link, inputs), **b})
        for link, f, b in zip(mechanism.links, forces, blocks, strict=True)
    ]
    world = Values(**{name: tuple(inputs[name]) for name in program.sizes})
    carry_out(program.sweeps, mechanism, here, world)
    demands = program.demands(mechanism, here, world) if program.demands else ()
    return list(program.result(mechanism, here, world)), list(demands)


def carry_out(sweeps: Sequence[Sweep], mechanism, here: list[Values], world: Values) -> None:
    """The sweeps in order; what they keep is added to `here` and `world`."""
    for sweep in sweeps:
        if sweep.direction == OUTWARD:
            _outward(sweep, mechanism.links, here, world)
        elif sweep.direction == AT_ONCE:
            _at_once(sweep, mechanism, here, world)
        else:
            vars(world).update(vars(_inward(sweep, mechanism.links, here)))


def _at_once(sweep: Sweep, mechanism, here, world: Values) -> None:
    kept = sweep.step(mechanism, here, world)
    at_world, at_links = kept if isinstance(kept, tuple) else (kept, {})
    vars(world).update(vars(at_world))
    for i, values in at_links.items():
        vars(here[i]).update(vars(values))


def _inputs_of(link, inputs) -> dict[str, Any]:
    """The link's own entries of q, v, a, tau."""
    own = {name: tuple(inputs[name][link.q]) for name in _COORDINATES if name in inputs}
    own.update({name: tuple(inputs[name][link.v]) for name in _RATES if name in inputs})
    return own


def _forces_on_links(program, mechanism, inputs) -> list[tuple]:
    """For each link the external forces on the bodies that it carries, each with the body's place in the link."""
    out: list[tuple] = [()] * len(mechanism.links)
    for k, body in enumerate(program.loaded):
        anchor = mechanism.anchors[body]
        if anchor.link >= 0:
            out[anchor.link] += ((tuple(inputs["forces"][6 * k : 6 * k + 6]), anchor.position),)
    return out


def _blocks_of_links(program, mechanism, inputs) -> list[dict[str, tuple]]:
    """For each link its entries of the inputs that the program cuts into blocks, by name."""
    return [
        {name: tuple(inputs[name][k] for k in blocks[i]) for name, blocks in program.blocks.items()}
        for i in range(len(mechanism.links))
    ]


def _outward(sweep: Sweep, links, here, world: Values) -> None:
    kept: list[Values] = []
    start = sweep.start(world) if callable(sweep.start) else sweep.start
    for i, link in enumerate(links):
        parent = kept[link.parent] if link.parent >= 0 else start
        values = sweep.step(link, here[i], parent)
        kept.append(values)
        vars(here[i]).update(vars(values))


def _inward(sweep: Sweep, links, here) -> Values:
    arrived: dict[int, Values] = {}
    assert not callable(sweep.start)
    for i in reversed(range(len(links))):
        kept, sent = sweep.step(links[i], here[i], arrived.get(i, sweep.start))
        vars(here[i]).update(vars(kept))
        parent = links[i].parent
        arrived[parent] = arrived[parent] + sent if parent in arrived else sent
    return arrived.get(-1, sweep.start)
