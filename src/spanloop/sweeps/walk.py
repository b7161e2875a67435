"""The walk over the tree: the only place that visits links one after the other.

On floats it *is* the `python` target; on traced scalars it unrolls a Program into a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.sweeps.program import AT_ONCE, OUTWARD, Program, Sweep, Values

_COORDINATES = ("q", "start")  # inputs with nq entries
_RATES = ("v", "a", "tau", "delta")  # inputs with nv entries


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
