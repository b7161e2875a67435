"""Looped lowering: every step of a walk over a tree is traced once for each class of links, and loops visit the links.

Links are of one class if all that distinguishes them are numbers. Numbers that differ become data; equal ones are baked
in. What a step keeps at a link is written into the link's record; what it takes from its parent, or gets from its
children, has one layout for all classes: the interface. Which entries of an interface are constants or equal to
each other is found by assuming the most and taking back what a trace refutes, until nothing changes.

Nothing here knows what the links are: steps are functions, links are values that can be taken apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from spanloop.compiler.lower.leaves import NotPlain, put_together, taken_apart
from spanloop.compiler.lower.plan import Operations, Plan, live
from spanloop.compiler.trace import Expression, Graph
from spanloop.compiler.trace.operations import INPUT

_ROUNDS = 20


class CannotLoop(Exception):
    """This walk cannot be looped; the sentence says why."""


@dataclass(frozen=True)
class Pass:
    """One sweep: its step, whether it goes inward, and what the world (outward) or no child (inward) would say."""

    step: Callable
    inward: bool
    start: Any  # a namespace


@dataclass(frozen=True)
class Tree:
    """What is walked over."""

    links: Sequence[Any]  # without numbers of their own: equal links are equal
    parents: Sequence[int]  # −1: the world
    places: Mapping[str, Sequence[int]]  # of each input: where a link's own entries begin
    counts: Mapping[str, Sequence[int]]  # and how many there are
    sizes: Mapping[str, int]  # of each input, all links together
    conditions: Callable  # conditions(link, {input: scalars}) -> conditions under which the answer means something


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


# ---- classes


@dataclass
class _Class:
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


def _classes(tree: Tree) -> list[_Class]:
    found: dict[Any, _Class] = {}
    last_child: dict[int, int] = {}
    for i, p in enumerate(tree.parents):
        last_child[p] = i  # inward, the last of the children comes first
    for i, link in enumerate(tree.links):
        shape, leaves = taken_apart(link)
        counts = tuple(tree.counts[n][i] for n in tree.counts)
        key = (shape, i not in last_child, last_child[tree.parents[i]] == i, counts)
        if key not in found:
            found[key] = _Class(*key)
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


# ---- interfaces


@dataclass
class _Interface:
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


def _interface(start: Any) -> _Interface:
    shape, leaves = taken_apart(start)
    if any(isinstance(x, Expression) for x in leaves):
        raise CannotLoop("a sweep starts from numbers that are computed")
    return _Interface(shape, [float(x) for x in leaves])


# ---- tracing


class _Recorder:
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

    def interface(self, of: _Interface, place: str) -> Any:
        """The value that travels, as it is found at this place."""
        leaves = [of.constant[g] if g in of.constant else self.take((place, g))[0] for g in of.group]
        return put_together(of.shape, leaves)

    def bound(self, binding: tuple) -> Any:
        return binding[1] if binding[0] == "constant" else self.take(binding)[0]


@dataclass
class _Traced:
    """A step of one class as it was traced."""

    graph: Graph
    sources: list[tuple]
    kept: dict[str, tuple[Any, list[Any]]]  # name -> shape, leaves
    handed: list[Any]  # leaves of the interface: outward those at this link, inward those that its parent has then
    faults: list[Any]

    @property
    def inputs(self) -> list[Expression]:
        return [x for x in self.graph.nodes if x.op == INPUT]

    def fault_values(self) -> list[Any]:
        """0 where a condition holds, 1 where it does not."""
        return [c.select(0.0, 1.0) if hasattr(c, "select") else 1.0 for c in self.faults]


def looped(
    name: str,
    inputs: Sequence[tuple[str, int]],
    shape: tuple[int, ...],
    tree: Tree,
    passes: Sequence[Pass],
    result: Callable,
    namespace: Callable[..., Any],
) -> Looped:
    """The looped form of a walk. namespace(**values): what steps read; result(links' namespaces) -> tokens."""
    classes = _classes(tree)
    traced: list[list[_Traced]] = []
    try:
        interfaces = [_interface(p.start) for p in passes]
        for k, p in enumerate(passes):
            traced.append(_settled(k, p, classes, interfaces[k], tree, namespace))
            for c, t in zip(classes, traced[-1], strict=True):
                c.kept.append(_bound(k, t))
    except (NotPlain, AttributeError) as error:  # a step that asks a link for more than its numbers
        raise CannotLoop(str(error)) from error
    wanted = _wanted_by(result, tree, classes, namespace)
    if not wanted:
        raise CannotLoop("there is nothing to compute")
    return _laid_out(name, inputs, shape, tree, passes, classes, interfaces, traced, wanted)


def _settled(k, p: Pass, classes, interface: _Interface, tree: Tree, namespace) -> list[_Traced]:
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


def _trace(k: int, p: Pass, c: _Class, interface: _Interface, tree: Tree, namespace) -> _Traced:
    r = _Recorder()
    link = c.link(r.take(*(("number", j) for j in range(len(c.varying)))))
    counts = zip(tree.counts, c.counts, strict=True)
    own = {n: tuple(r.take(*((n, j) for j in range(count)))) for n, count in counts}
    here = namespace(forces=(), **own)
    for kept in c.kept:
        for attribute, (shape, bindings) in kept.items():
            setattr(here, attribute, put_together(shape, [r.bound(b) for b in bindings]))
    faults = [x for x in tree.conditions(link, own) if x is not True] if k == 0 else []
    if not p.inward:
        kept = p.step(link, here, r.interface(interface, "other"))
        passed = namespace(**{n: getattr(kept, n) for n in vars(p.start)})
        return _Traced(r.graph, r.sources, _parts(kept), _leaves(passed, interface), faults)
    kept, sent = p.step(link, here, p.start if c.leaf else r.interface(interface, "arrived"))
    if not c.first:
        sent = r.interface(interface, "other") + sent
    return _Traced(r.graph, r.sources, _parts(kept), _leaves(sent, interface), faults)


def _leaves(value: Any, interface: _Interface) -> list[Any]:
    shape, leaves = taken_apart(value)
    if shape != interface.shape:
        raise CannotLoop("links hand on values of different shapes")
    return leaves


def _parts(kept: Any) -> dict[str, tuple[Any, list[Any]]]:
    return {n: taken_apart(x) for n, x in vars(kept).items()}


def _bound(k: int, t: _Traced) -> dict[str, tuple[Any, list[Any]]]:
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


# ---- the answer


class _Token(tuple):
    """Stands for a scalar that a link kept: (link, binding)."""

    __slots__ = ()


def _wanted_by(result: Callable, tree: Tree, classes: list[_Class], namespace) -> list[_Token]:
    """The entries that make the answer, in order."""
    of = {i: c for c in classes for i in c.members}

    class Lazy:
        """A link's namespace, whose values are made when asked for."""

        def __init__(self, i: int):
            object.__setattr__(self, "_i", i)

        def __getattr__(self, attribute: str):
            i = object.__getattribute__(self, "_i")
            for kept in reversed(of[i].kept):
                if attribute in kept:
                    shape, bindings = kept[attribute]
                    return put_together(shape, [_Token((i, b)) for b in bindings])
            raise CannotLoop(f"the answer reads {attribute!r}, which no sweep keeps")

    try:
        tokens = list(result([Lazy(i) for i in range(len(tree.links))]))
    except (TypeError, AttributeError) as error:
        raise CannotLoop(f"the answer is more than a selection of what links keep ({error})") from None
    if not all(isinstance(x, _Token) for x in tokens):
        raise CannotLoop("the answer is more than a selection of what links keep")
    return tokens


# ---- layout


@dataclass
class _Needs:
    """What must be written: nodes of each pass and class, groups of each pass's interface."""

    nodes: list[list[set[int]]]
    groups: list[set[int]]
    extra: list[dict[tuple, None]]  # of each class: inputs and constants that are part of the answer


def _laid_out(name, inputs, shape, tree, passes, classes, interfaces, traced, wanted) -> Looped:
    of = {i: n for n, c in enumerate(classes) for i in c.members}
    needs = _Needs([[set() for _ in classes] for _ in passes], [set() for _ in passes], [{} for _ in classes])
    for i, binding in wanted:
        if binding[0] == "kept":
            needs.nodes[binding[1]][of[i]].add(binding[2])
        else:
            needs.extra[of[i]][binding] = None
    for k in reversed(range(len(passes))):
        _follow(k, interfaces[k], traced[k], needs)
    slots, width = _interface_slots(needs)
    private = [_private_slots(n, needs, width) for n in range(len(classes))]
    steps = []
    for k, p in enumerate(passes):
        last = k == len(passes) - 1
        steps.append(
            [
                _step(k, n, p, t, interfaces[k], needs, slots[k], private[n], needs.extra[n] if last else {})
                for n, t in enumerate(traced[k])
            ]
        )
    record, total = _records(tree, of, private, width)
    world = np.zeros((len(passes), width))
    for k, places in enumerate(slots):
        for g, slot in places.items():
            world[k, slot] = interfaces[k].start[interfaces[k].group.index(g)]
    answer = np.array([record[i] + private[of[i]][b] for i, b in wanted], np.int64)
    meta, numbers = _links(tree, classes, of, record)
    directions = tuple(p.inward for p in passes)
    return Looped(
        name, tuple(inputs), shape, directions, steps, numbers, meta, tuple(tree.counts), world, answer, total
    )


def _follow(k: int, interface: _Interface, traced: Sequence[_Traced], needs: _Needs) -> None:
    """Which entries of earlier passes, and of this pass's interface, the needed ones depend on."""
    before = -1
    while before != len(needs.groups[k]):
        before = len(needs.groups[k])
        for n, t in enumerate(traced):
            roots = [t.graph.nodes[i] for i in needs.nodes[k][n]] + t.fault_values()
            roots += [x for g, x in zip(interface.group, t.handed, strict=True) if g in needs.groups[k]]
            for node in live([x for x in roots if isinstance(x, Expression)]):
                if node.op != INPUT:
                    continue
                source = t.sources[int(node.value)]
                if source[0] == "kept":
                    needs.nodes[source[1]][n].add(source[2])
                elif source[0] in ("other", "arrived"):
                    needs.groups[k].add(source[1])


def _interface_slots(needs: _Needs) -> tuple[list[dict[int, int]], int]:
    """Places of the interfaces at the beginning of every record, which each pass uses anew; how many there are."""
    slots = [{g: j for j, g in enumerate(sorted(groups))} for groups in needs.groups]
    return slots, max(map(len, slots), default=0)


def _private_slots(n: int, needs: _Needs, first: int) -> dict[tuple, int]:
    """Entries of a class's own, after the interfaces."""
    names: list[tuple] = [("kept", k, i) for k, nodes in enumerate(needs.nodes) for i in sorted(nodes[n])]
    return {name: first + j for j, name in enumerate([*names, *needs.extra[n]])}


def _records(tree: Tree, of: Mapping[int, int], private: Sequence[Mapping], width: int) -> tuple[np.ndarray, int]:
    """Where the record of each link begins, after that of the world; the entries of all."""
    sizes = [width + len(p) for p in private]
    ends = np.cumsum([width] + [sizes[of[i]] for i in range(len(tree.links))])
    return ends[:-1], int(ends[-1])


def _links(tree: Tree, classes: Sequence[_Class], of: Mapping[int, int], record: np.ndarray):
    """meta and numbers of all links."""
    own: list[list[float]] = [[] for _ in tree.links]
    for c in classes:
        for i, row in zip(c.members, c.rows, strict=True):
            own[i] = [row[k] for k in c.varying]
    first = np.cumsum([0] + [len(x) for x in own])[:-1]
    parents = np.array(tree.parents)
    above = np.where(parents >= 0, record[parents], 0)
    columns = [[of[i] for i in range(len(own))], first, record, above, *(tree.places[n] for n in tree.counts)]
    meta = np.array(columns, np.int64).T
    return np.ascontiguousarray(meta), np.array([x for row in own for x in row] or [0.0])


def _step(k, n, p: Pass, t: _Traced, interface: _Interface, needs: _Needs, slots, private, extra) -> Step:
    found: list[tuple[tuple[str, int], Any]] = []
    for index in sorted(needs.nodes[k][n]):
        found.append((("own", private["kept", k, index]), t.graph.nodes[index]))
    written: dict[int, Any] = {}
    for g, x in zip(interface.group, t.handed, strict=True):
        if g in slots:
            written.setdefault(g, x)
    found += [(("other" if p.inward else "own", slots[g]), x) for g, x in written.items()]
    for binding in extra:
        value = binding[1] if binding[0] == "constant" else t.inputs[t.sources.index(binding)]
        found.append((("own", private[binding]), value))
    found += [(("fault", 0), x) for x in t.fault_values()]
    outputs = tuple(x if isinstance(x, Expression) else float(x) for _, x in found)
    nodes = tuple(live([x for x in outputs if isinstance(x, Expression)]))
    plan = Plan(f"pass{k}.class{n}", (("all", len(t.sources)),), nodes, outputs, (len(outputs),))
    places = {"kept": lambda s: ("own", private.get(s, -1)), "arrived": lambda s: ("own", slots.get(s[1], -1))}
    places["other"] = lambda s: ("other", slots.get(s[1], -1))
    sources = [places[s[0]](s) if s[0] in places else s for s in t.sources]
    return Step(plan, sources, [place for place, _ in found])
