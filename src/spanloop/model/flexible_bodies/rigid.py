"""A flexible body held in one shape: its modes become a fixed joint, its nodes fixed bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from spanloop.errors import InputError, nearest
from spanloop.joints import Fixed
from spanloop.math.flexible import DeformableInertia
from spanloop.model import user_input
from spanloop.model.flexible_bodies.pieces import flexible_bodies
from spanloop.model.parts import Body, Joint, Placement

if TYPE_CHECKING:
    from spanloop.model.model import Model


def rigid(model: Model, *names: str | Iterable[str]) -> Model:
    """Return the model with flexible bodies rigid, undeformed; their roots and nodes are fixed bodies.

    names: of the flexible bodies; all of them by default

    >>> beam = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), modes=1)
    >>> arm = sl.Builder("arm").body("boom", flexible=beam).revolute("hinge", "world", "boom").build()
    >>> arm.nv, arm.rigid("boom").nv
    (8, 1)
    """
    known = flexible_bodies(model.bodies, model.joints)
    chosen = user_input.names(names, "rigid") or tuple(known)
    for name in chosen:
        if name not in known:
            there = nearest(name, known) if known else "it has none at all"
            raise InputError(f"rigid: model {model.name!r} has no flexible body {name!r}; {there}")
    joints = [piece.joint.name for name in chosen for piece in known[name].pieces]
    return model.lock(joints) if joints else model


def held_nodes(model: Model, positions: Mapping[str, tuple[float, ...]]) -> dict[str, Joint]:
    """Fixed joints instead of the nodes on modes that are held, by name; positions: coordinates by joint."""
    held = {j.child: positions[j.name] for j in model.joints if j.kind.bends and j.name in positions}
    return {j.name: _held(j, held[j.parent]) for j in model.joints if j.kind.rides and j.parent in held}


def _held(j: Joint, eta: tuple[float, ...]) -> Joint:
    placement = j.placement
    if any(eta):
        x = j.kind.seat((), eta)
        placement = placement @ Placement(x.rotation.matrix(), x.translation)
    return Joint(j.name, Fixed(), j.parent, j.child, placement, where=j.where)


def held_bodies(model: Model, positions: Mapping[str, tuple[float, ...]]) -> tuple[Body, ...]:
    """The bodies, those on modes that are held with the inertia of their deformed shape."""
    from spanloop.model.edits.fuse import centered

    modes = {j.child: j for j in model.joints if j.kind.bends and any(positions.get(j.name, ()))}
    out = []
    for b in model.bodies:
        if b.name in modes:
            kind = modes[b.name].kind
            body = DeformableInertia(b.inertia.rigid(), kind.particles, b.inertia.mass / kind.mass)  # type: ignore[attr-defined]
            b = replace(b, inertia=centered(body.at(positions[modes[b.name].name]).rigid))
        out.append(b)
    return tuple(out)
