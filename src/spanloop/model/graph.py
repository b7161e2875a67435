"""From a graph of bodies and joints to a spanning tree and the joints that close its loops.

The tree grows outward from the world, nearest bodies first, so that loops stay short. Where a body can be reached
by several joints equally soon, an actuated one is kept in the tree and the others are cut; joints the user names
are cut before all others. A joint is followed from its parent to its child only: the child's frame is the joint's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spanloop.errors import InputError, ModelError, nearest
from spanloop.model.parts import WORLD, Body, Joint, Loop, Placement


def spanned(
    bodies: Sequence[Body], joints: Sequence[Joint], cut: Collection[str] = ()
) -> tuple[tuple[Joint, ...], tuple[Loop, ...]]:
    """Joints of the spanning tree, and the others as loops."""
    names = [j.name for j in joints]
    for name in cut:
        if name not in names:
            raise InputError(f"cut names {name!r}, which is not a joint; {nearest(name, names)}")
    kept = _reached(joints, cut)
    _all_reached(bodies, joints, kept, cut)
    tree = tuple(j for j in joints if j.name in kept)
    return tree, tuple(_loop(j) for j in joints if j.name not in kept)


def _reached(joints: Sequence[Joint], cut: Collection[str]) -> set[str]:
    """Names of the joints by which each body is reached first."""
    kept: set[str] = set()
    seen = {WORLD}
    while True:
        ready = [j for j in joints if j.parent in seen and j.child not in seen and j.name not in cut]
        if not ready:
            return kept
        layer: dict[str, Joint] = {}
        for j in sorted(ready, key=lambda j: not (j.actuated and j.kind.nv > 0)):
            layer.setdefault(j.child, j)
        kept.update(j.name for j in layer.values())
        seen.update(layer)


def _all_reached(bodies, joints, kept: set[str], cut: Collection[str]) -> None:
    reached = {WORLD, *(j.child for j in joints if j.name in kept)}
    for b in bodies:
        if b.name in reached:
            continue
        into = [j for j in joints if j.child == b.name]
        outof = [j for j in joints if j.parent == b.name and j.child in reached]
        if into and all(j.name in cut for j in into):
            raise ModelError(f"body {b.name!r}: every joint that leads to it is cut ({into[0].name!r}, ...); leave one")
        if outof:
            j = outof[0]
            raise ModelError(
                f"body {b.name!r}: reached only against the direction of joint {j.name!r}; "
                f"swap its parent {j.parent!r} and child {j.child!r}"
            )
        raise ModelError(f"body {b.name!r}: no way leads to it from the world; attach it with a joint")


def _loop(j: Joint) -> Loop:
    """The cut joint as a closure: its frame in the parent, the child's own frame."""
    return Loop(j.name, j.kind, j.parent, j.child, j.placement, Placement(), j.driven, where=j.where)
