"""Loops that may be missing: frames that meet at neutral coordinates and part elsewhere, or are called like two ends.

Files that can only hold trees often keep both ends of an opened loop as frames or links.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from spanloop.model.examine.messages import Finding
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Placement
from spanloop.model.poses import poses

SAME = 1e-6  # m
MOST = 12  # pairs that are reported
EXAMINED = 10_000  # pairs of frames at one place
END = re.compile(r"(loop|closure|closing|cut|constraint|anchor)", re.IGNORECASE)
SIDE = re.compile(r"[_\- ]?(a|b|1|2|parent|child|predecessor|successor|start|end)$", re.IGNORECASE)


def possible_loops(model: Model) -> Iterator[Finding]:
    """Yield pairs of frames that a loop could join, with the line to write."""
    bare = {f.name for f in model.frames} | {b.name for b in model.bodies if not b.geometry and not b.inertia.mass}
    fused = model.fuse()
    frames = {f.name: f.body for f in fused.frames} | {b.name: b.name for b in fused.bodies}
    taken = {frozenset((x.a, x.b)) for x in fused.loops}
    at = _places(fused, fused.neutral())
    named = list(_named(fused, frames, taken, at))
    yield from named
    reported = {frozenset(f.parts) for f in named}
    yield from [f for f in _meeting(fused, frames, bare, taken, at) if frozenset(f.parts) not in reported][:MOST]


def _places(model: Model, q: np.ndarray) -> dict[str, Placement]:
    bodies = poses(model, q)
    return bodies | {f.name: bodies[f.body] @ f.placement for f in model.frames}


def _meeting(
    model: Model, frames: dict[str, str], bare: set[str], taken: set[frozenset[str]], at: dict[str, Placement]
) -> Iterator[Finding]:
    """Bare frames on bodies that no joint joins directly, at one place, unless they are so at other states too."""
    near: dict[tuple[int, ...], list[str]] = {}
    for f in (f.name for f in model.frames if f.name in bare):
        near.setdefault(tuple(round(x / (10.0 * SAME)) for x in at[f].position), []).append(f)
    parent = {j.child: j.parent for j in model.joints}
    every = ((a, b) for group in near.values() for k, a in enumerate(group) for b in group[k + 1 :])
    pairs = [
        (a, b)
        for a, b in islice(every, EXAMINED)
        if frames[a] != frames[b]
        and frames[a] != parent.get(frames[b])
        and frames[b] != parent.get(frames[a])
        and frozenset((frames[a], frames[b])) not in taken
    ]
    if not pairs:
        return
    elsewhere = [_places(model, model.random_state(seed)[0]) for seed in (1, 2)]
    for a, b in pairs:
        if all(math.dist(x[a].position, x[b].position) > 1e3 * SAME for x in elsewhere):
            yield Finding("meet", (repr(a), repr(b)), {"close": _line(model, frames, a, b, at)})


def _named(
    model: Model, frames: dict[str, str], taken: set[frozenset[str]], at: dict[str, Placement]
) -> Iterator[Finding]:
    stems: dict[str, list[str]] = {}
    for name in frames:
        if END.search(name) and SIDE.search(name):
            stems.setdefault(SIDE.sub("", name), []).append(name)
    for names in stems.values():
        bodies = {frames[n] for n in names}
        if any(bodies & pair for pair in taken):
            continue
        if len(names) == 2 and len(bodies) == 2:
            a, b = names
            apart = math.dist(at[a].position, at[b].position)
            values = {"apart": f"{apart:.3g}", "close": _line(model, frames, a, b, at)}
            yield Finding("named", (repr(a), repr(b)), values)
        elif len(names) == 1:
            yield Finding("one_end", (repr(names[0]),), {"first": names[0]})


def _line(model: Model, frames: dict[str, str], a: str, b: str, at: dict[str, Placement]) -> str:
    """What to write: a hinge if all joints between the two turn about parallel axes, else a ball."""
    axis = _common_axis(model, frames[a], frames[b], at)
    if axis is None:
        kind, toml = "'spherical'", 'kind = "spherical"'
    else:
        turned = np.array(at[a].rotation).T @ axis
        shown = ", ".join(f"{x:.6g}" for x in np.where(np.abs(turned) < 1e-9, 0.0, turned) + 0.0)
        kind, toml = f"sl.joints.Revolute(({shown}))", f'kind = "revolute", axis = [{shown}]'
    return f"model.with_loop({a!r}, {b!r}, {kind}); in a .toml file: [[loop]] with a and b the two bodies, {toml}"


def _common_axis(model: Model, a: str, b: str, at: dict[str, Placement]) -> np.ndarray | None:
    """The direction in the world that all joints between two bodies turn about, if there is one."""
    joints = {j.child: j for j in model.joints}
    ways = []
    for body in (a, b):
        way = []
        while body != WORLD:
            way.append(joints[body])
            body = joints[body].parent
        ways.append(way)
    shared = {j.name for j in ways[0]} & {j.name for j in ways[1]}
    between = [j for way in ways for j in way if j.name not in shared]
    if not between or any(j.kind.name != "revolute" for j in between):
        return None
    axes = [np.array(at[j.child].rotation) @ np.array(j.kind.axis) for j in between]  # type: ignore[attr-defined]
    return axes[0] if all(abs(abs(x @ axes[0]) - 1.0) < 1e-9 for x in axes) else None
