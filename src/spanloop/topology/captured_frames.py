"""Captured frames: a loop that captures holds the pose in which it finds its bodies at the moment of attaching.

Its frame b moves to where its frame a is then, in body b, after which the closure's error is 0. The frame b of a kind
that holds no angles (a ball, a soft finger, a rod) does not turn, so that a contact keeps its normal; that of a rod
moves along the rod to its length. A coupling that captures takes its offset from the coordinates of that moment. In a
kernel these numbers are inputs:

| name | numbers | meaning |
|---|---|---|
| captured | 12 for each loop | rotation (3, 3), row by row, and position (3) of the closure's frame b in its link |
| | 1 for each coupling | its offset |

Twelve numbers, not seven with a quaternion: they come from rotations of the tree and are constant until the next
capture, so nothing drifts that would need normalising, and a quaternion of a matrix needs a branch at half turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.math.spatial import Transform
from spanloop.math.vector3 import product, subtract, times, transpose
from spanloop.model import Model
from spanloop.model.parts import Placement
from spanloop.topology.closures import Closure, Gear
from spanloop.topology.mechanism import Link, Mechanism, mechanism
from spanloop.topology.tree_paths import point, relative_pose, rotation
from spanloop.types import Scalar

FRAME = 12  # numbers of a loop
OFFSET = 1  # of a coupling


def captured_width(m: Mechanism, names: Sequence[str]) -> int:
    """How many numbers hold the captured frames of these loops, and offsets of couplings."""
    return sum(FRAME if isinstance(x, Closure) else OFFSET for x in captured_parts(m, names))


def captured_parts(m: Mechanism, names: Sequence[str]) -> list[Closure | Gear]:
    """The closures and gears of these names."""
    both: list[Closure | Gear] = [*m.gears, *m.closures]
    parts = {x.name: x for x in sorted(both, key=lambda x: x.switchable)}  # one that is not may share a name
    return [parts[name] for name in names]


def check_captures(model: Model, names: Sequence[str], owner: str) -> None:
    """Refuse names that are no switchable loops or couplings of the model; owner: what was called."""
    parts = dict.fromkeys([*(c.name for c in model.couplings), *(x.name for x in model.loops)], False)
    parts |= dict.fromkeys(model.switches, True)
    for name in names:
        if name not in parts:
            raise InputError(f"{owner}: captures names {name!r}, which is no loop or coupling; {nearest(name, parts)}")
        if not parts[name]:
            raise InputError(f"{owner}: captures names {name!r}, which is always closed; make it with switchable=True")


def own_placement(m: Mechanism, name: str) -> list[Scalar]:
    """The numbers with which the loop or coupling is as the model has it."""
    (part,) = captured_parts(m, (name,))
    if isinstance(part, Gear):
        return [part.offset]
    return [*(x for row in part.b.rotation for x in row), *part.b.position]


def _modes(m: Mechanism, link: Link, q: Sequence[Any]) -> tuple[Any, ...]:
    """Modal coordinates of the link's parent, if that bends."""
    parent = m.links[link.parent] if link.parent >= 0 else None
    return tuple(q[parent.q]) if parent is not None and parent.kind.bends else ()


def captured_placement(m: Mechanism, q: Sequence[Any], name: str) -> list[Any]:
    """The numbers with which the loop or coupling is closed at q (nq,), on floats or traced scalars."""
    here = [_Placed(link.transform(tuple(q[link.q]), _modes(m, link, q)), tuple(q[link.q])) for link in m.links]
    (part,) = captured_parts(m, (name,))
    if isinstance(part, Gear):
        return [part.along([here[i].q[0] for i, _ in part.ends])]
    frame = part.a.transform() @ part.kind.captured_pose(relative_pose(m, here, part))
    turn = (rotation(m, here, part.a.link, part.b.link) @ frame.rotation).matrix()
    return [*(x for row in turn for x in row), *point(m, here, frame.translation, part.a.link, part.b.link)]


def captured_at(m: Mechanism, q: Sequence[float], names: Sequence[str]) -> Mechanism:
    """The mechanism with these loops and couplings captured at q (nq,)."""
    return m.with_captured([x for name in names for x in captured_placement(m, q, name)], names)


def with_captured_placements(model: Model, names: Sequence[str], values: Sequence[float]) -> Model:
    """The model whose loops and couplings of these names have the captured frames and offsets `values` of a run."""
    m = mechanism(model)
    held = m.with_captured([float(x) for x in values], names)
    closures = {c.name: c for c in held.closures if c.name in names}
    offsets = {g.name: g.offset for g in held.gears if g.name in names}
    loops = tuple(
        replace(x, placement_b=_in_body(m, x.b, closures[x.name])) if x.name in closures else x for x in model.loops
    )
    couplings = tuple(replace(x, offset=offsets[x.name]) if x.name in offsets else x for x in model.couplings)
    return replace(model, loops=loops, couplings=couplings)


def _in_body(m: Mechanism, frame: str, closure: Closure) -> Placement:
    """The frame b of a closure, in the user's axes, placed in a body or frame of its link."""
    turn = transpose(m.anchors[frame].rotation)
    child = product(_orthonormal(closure.b.rotation), transpose(closure.child_axes))
    return Placement(product(turn, child), times(turn, subtract(closure.b.position, m.anchors[frame].position)))


def _orthonormal(r: Any) -> Any:
    """The nearest rotation to one that a run in float32 has rounded, by two Newton steps for the polar factor."""
    m = np.array(r)
    if np.abs(m @ m.T - np.eye(3)).max() <= 1e-12:
        return r
    for _ in range(2):
        m = 1.5 * m - 0.5 * (m @ m.T @ m)
    return tuple(map(tuple, m.tolist()))


@dataclass(frozen=True)
class _Placed:
    """A link's pose in its parent, and its coordinates."""

    X: Transform
    q: tuple[Any, ...]
