"""Check of flexible bodies when a model is made: nodes stand on modes, and nothing else stands on a body that bends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import ModelError
from spanloop.flexible.modes import Node
from spanloop.model.flexible_bodies.pieces import FlexibleParts, Piece, flexible_bodies, recipe_inertia
from spanloop.model.parts import Inertia, Joint
from spanloop.model.value_check import label

if TYPE_CHECKING:
    from spanloop.model.model import Model

_SAME = 1e-9  # relative: inertias that differ by less are in proportion


def check_flexible(model: Model, joints: Iterable[Joint]) -> None:
    """Raise ModelError for a node without modes, and for parts on a flexible body itself; joints: parents first."""
    joints = tuple(joints)
    above = {j.child: j for j in joints}
    for j in joints:
        if isinstance(j.kind, Node):
            _check_node(j, above.get(j.parent))
    for x in model.loops:
        if x.kind.bends or x.kind.rides:
            raise ModelError(f"{label('loop', x)}: a {x.kind.name} joint carries parts of a flexible body, and no loop")
    found = flexible_bodies(model.bodies, joints)
    owners = {piece.body.name: body for body in found.values() for piece in body.pieces}
    if not owners:
        return
    for j in joints:
        if j.parent in owners and not j.kind.rides:
            raise ModelError(f"{label('joint', j)}: {_no_place(j.parent, owners)}")
    _check_attached(model, owners)
    for body in found.values():
        for piece in body.pieces:
            refuse_other_proportions(piece, piece.body.inertia)


def _check_node(joint: Joint, carrier: Joint | None) -> None:
    owner, kind = label("joint", joint), joint.kind
    if carrier is None or not carrier.kind.bends:
        raise ModelError(
            f"{owner}: a node rides on the modes of a flexible body; its parent {joint.parent!r} has none. "
            "Nodes are made by Builder.body(..., flexible=beam)"
        )
    n = len(kind.shape.translations)  # type: ignore[attr-defined]
    if n != carrier.kind.nv:
        raise ModelError(f"{owner}: the node moves with {n} modes, its body {joint.parent!r} has {carrier.kind.nv}")


def _check_attached(model: Model, owners: dict[str, FlexibleParts]) -> None:
    """Frames, loops, contacts and collision shapes on a body that bends."""
    for f in model.frames:
        if f.body in owners and any(f.placement.position):
            raise ModelError(f"{label('frame', f)}: {_no_place(f.body, owners)}")
    for x in model.loops:
        for end in (x.a, x.b):
            if end in owners:
                raise ModelError(f"{label('loop', x)}: {_no_place(end, owners)}")
    frames = {f.name: f.body for f in model.frames}
    for c in model.contacts:
        for side in c.sides:
            body = frames.get(side.at, side.at)
            if body in owners:
                raise ModelError(f"{label('contact', c)}: {_no_place(body, owners)}")
    for b in model.bodies:
        if b.name in owners and any(g.use == "collision" for g in b.geometry):
            raise ModelError(f"{label('body', b)}: it has a collision shape; {_no_place(b.name, owners)}")


def _no_place(body: str, owners: dict[str, FlexibleParts]) -> str:
    return (
        f"body {body!r} is flexible, and nothing can be attached to it but at its root and nodes; use one of "
        f"{owners[body].places()}, or add a node with sl.flexible.beam(..., nodes={{name: position}})"
    )


def refuse_other_proportions(piece: Piece, inertia: Inertia) -> None:
    """Raise ModelError where mass, centre and moments of a piece are not those of its beam at some density."""
    found = recipe_inertia(piece)
    why = None if found is None else other_proportions(piece.body.name, found, inertia)
    if why:
        raise ModelError(f"{label('body', piece.body)}: {why}")


def other_proportions(name: str, known: Inertia, inertia: Inertia) -> str | None:
    """Why no beam with other density only has this inertia instead of the known one; None if one has."""
    if not inertia.mass and not any(inertia.moments):
        return None  # a body that is absent
    factor = inertia.mass / known.mass
    size = max(map(abs, known.center)) or 1.0
    moved = max(abs(a - b) for a, b in zip(inertia.center, known.center, strict=True))
    moments = np.abs(np.array(inertia.moments) - factor * np.array(known.moments)).max()
    if moved <= _SAME * size and moments <= _SAME * factor * max(known.moments):
        return None
    return (
        "it is flexible, and its mass, centre and inertia belong to its modes; they can change in proportion only. "
        "Multiply its mass and all its moments of inertia by one factor, as "
        f"model.with_material({name!r}, density=...) does for beams, or take another body"
    )
