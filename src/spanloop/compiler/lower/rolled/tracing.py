"""Tracing a pass: its step once for each class, until all agree on what travels between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spanloop.compiler.lower.rolled.classes import Interface, LinkClass
from spanloop.compiler.lower.rolled.ir import CannotLoop, Pass, Tree
from spanloop.compiler.lower.rolled.pytree import put_together, taken_apart
from spanloop.compiler.trace import INPUT, Expression, Graph

_ROUNDS = 20


class Recorder:
    """Inputs of a step in the making, each with the place it comes from."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.sources: list[tuple] = []
        self.known: dict[tuple, Expression] = {}

    def take(self, *sources: tuple) -> list[Expression]:
        """Inputs from these places; one that is known is the same."""
        for s in sources:
            if s not in self.known:
                (self.known[s],) = self.graph.inputs(1)
                self.sources.append(s)
        return [self.known[s] for s in sources]

    def interface(self, of: Interface, place: str) -> Any:
        """The value that travels, as it is found at this place."""
        leaves = [of.constant[g] if g in of.constant else self.take((place, g))[0] for g in of.group]
        return put_together(of.shape, leaves)

    def bound(self, binding: tuple) -> Any:
        """The value behind a binding: a constant, or an input."""
        return binding[1] if binding[0] == "constant" else self.take(binding)[0]


@dataclass
class Traced:
    """A step of one class as it was traced."""

    graph: Graph
    sources: list[tuple]
    kept: dict[str, tuple[Any, list[Any]]]  # name -> shape, leaves
    handed: list[Any]  # leaves of the interface: outward those at this link, inward those that its parent has then
    faults: list[Any]

    @property
    def inputs(self) -> list[Expression]:
        """The inputs of the traced step."""
        return [x for x in self.graph.nodes if x.op == INPUT]

    def fault_values(self) -> list[Any]:
        """0 where a condition holds, 1 where it does not."""
        return [c.select(0.0, 1.0) if hasattr(c, "select") else 1.0 for c in self.faults]


def settled(k, p: Pass, classes, interface: Interface, tree: Tree, namespace) -> list[Traced]:
    """Every class traced, with an interface that all of them respect."""
    for _ in range(_ROUNDS):
        out, changed = [], False
        for c in classes:
            t = _trace(k, p, c, interface, tree, namespace)
            out.append(t)
            changed = interface.refine(t.handed) or changed
        if not changed:
            return out
    raise CannotLoop("what travels between links does not settle")


def _trace(k: int, p: Pass, c: LinkClass, interface: Interface, tree: Tree, namespace) -> Traced:
    r = Recorder()
    link = c.link(r.take(*(("number", j) for j in range(len(c.varying)))))
    counts = zip(tree.counts, c.counts, strict=True)
    own = {n: tuple(r.take(*((n, j) for j in range(count)))) for n, count in counts}
    here = namespace(forces=(), **own)
    for kept in c.kept:
        for attribute, (shape, bindings) in kept.items():
            vars(here)[attribute] = put_together(shape, [r.bound(b) for b in bindings])
    faults = [x for x in tree.conditions(link, own) if x is not True] if k == 0 else []
    if not p.inward:
        kept = p.step(link, here, r.interface(interface, "other"))
        passed = namespace(**{n: getattr(kept, n) for n in vars(p.start)})
        return Traced(r.graph, r.sources, _parts(kept), _leaves(passed, interface), faults)
    kept, sent = p.step(link, here, p.start if c.leaf else r.interface(interface, "arrived"))
    if not c.first:
        sent = r.interface(interface, "other") + sent
    return Traced(r.graph, r.sources, _parts(kept), _leaves(sent, interface), faults)


def _leaves(value: Any, interface: Interface) -> list[Any]:
    shape, leaves = taken_apart(value)
    if shape != interface.shape:
        raise CannotLoop("links hand on values of different shapes")
    return leaves


def _parts(kept: Any) -> dict[str, tuple[Any, list[Any]]]:
    return {n: taken_apart(x) for n, x in vars(kept).items()}


def bindings_of(k: int, t: Traced) -> dict[str, tuple[Any, list[Any]]]:
    """What later steps know of the scalars that a step kept: a constant, a number or input of the link, or an entry."""
    out = {}
    for attribute, (shape, leaves) in t.kept.items():
        bindings: list[Any] = []
        for x in leaves:
            source = t.sources[int(x.value)] if isinstance(x, Expression) and x.op == INPUT else None
            if not isinstance(x, Expression):
                bindings.append(("constant", float(x)))
            elif source is not None and source[0] not in ("other", "arrived"):
                bindings.append(source)
            else:
                bindings.append(("kept", k, x.index))
        out[attribute] = (shape, bindings)
    return out
