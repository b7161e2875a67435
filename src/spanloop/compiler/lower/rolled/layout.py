"""Layout: where every scalar stands in the records of links, and steps that read and write there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.compiler.lower.plan import Plan, live
from spanloop.compiler.lower.rolled.classes import Interface, LinkClass
from spanloop.compiler.lower.rolled.ir import Looped, Pass, Step, Tree
from spanloop.compiler.lower.rolled.tracing import Traced
from spanloop.compiler.trace import INPUT, Expression


@dataclass
class _Needs:
    """What must be written: nodes of each pass and class, groups of each pass's interface."""

    nodes: list[list[set[int]]]
    groups: list[set[int]]
    extra: list[dict[tuple, None]]  # of each class: inputs and constants that are part of the answer


def laid_out(name, inputs, shape, tree, passes, classes, interfaces, traced, wanted) -> Looped:
    """All that was traced, as far as the answer needs it, with a place for everything."""
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


def _follow(k: int, interface: Interface, traced: Sequence[Traced], needs: _Needs) -> None:
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


def _links(tree: Tree, classes: Sequence[LinkClass], of: Mapping[int, int], record: np.ndarray):
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


def _step(k, n, p: Pass, t: Traced, interface: Interface, needs: _Needs, slots, private, extra) -> Step:
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
