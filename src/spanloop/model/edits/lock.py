"""Lock: joints, and those coupled to them, become fixed at a position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spanloop.errors import InputError, ModelError, nearest
from spanloop.joints import Fixed
from spanloop.model import user_input
from spanloop.model.contacts.contact_check import with_moving_contacts
from spanloop.model.flexible_bodies.rigid import held_bodies, held_nodes
from spanloop.model.parts import Coupling, Joint, Placement

if TYPE_CHECKING:
    from spanloop.model.model import Model

# two positions that differ by less satisfy a coupling [rad or m]
_SAME = 1e-9

Positions = dict[str, tuple[float, ...]]


def lock(model: Model, *names: str | Iterable[str], at: Mapping[str, float | Sequence[float]] | None = None) -> Model:
    """Return the model with these joints, and those that `at` names, replaced by fixed ones.

    names: joints to lock at their neutral position
    at: joints to lock at other coordinates, {name: one number or nq numbers} [rad or m]

    A joint that is coupled to a locked one is locked too, where the coupling puts it, and the coupling is removed, with
    a note. Losses, limits and actuators of locked joints are dropped; so are contacts between parts that no longer move
    against each other, with a note. Modes of a flexible body ("boom.modes") are locked in the shape that their
    coordinates give: the body is rigid, and its nodes are fixed bodies. Raises ModelError where `at` contradicts a
    coupling.

    >>> sl.zoo.puma().lock("joint6", at={"joint5": 0.5}).nv
    4
    """
    at = {} if at is None else at
    if not isinstance(at, Mapping):
        raise InputError(f"lock: at is {at!r}; expected coordinates by joint, as {{'elbow': 0.3}}")
    joints, neutral = {j.name: j for j in model.joints}, user_input.names(names, "lock")
    for name in (*neutral, *at):
        if name not in joints:
            raise InputError(f"model {model.name!r} has no joint {name!r}; {nearest(name, joints)}")
        if joints[name].kind.rides:
            modes = model.joints[model.body_number[joints[name].parent] - 1].name
            raise InputError(f"lock: {name!r} is a node of a flexible body and moves with its modes; lock {modes!r}")
    positions = {name: user_input.coordinates(q, joints[name].kind, f"joint {name!r}") for name, q in at.items()}
    notes = _follow(model, positions)
    _must_agree(model, positions)
    for name in neutral:
        positions.setdefault(name, joints[name].kind.neutral())
    notes += _follow(model, positions)
    notes += [_departure(c) for c in model.couplings if _off(c, positions)]
    fixed = {j.name: _fixed(j, positions[j.name]) for j in model.joints if j.name in positions}
    fixed |= held_nodes(model, positions)
    locked = replace(
        model,
        bodies=held_bodies(model, positions),
        joints=tuple(fixed.get(j.name, j) for j in model.joints),
        couplings=tuple(c for c in model.couplings if not set(c.joints) & set(positions)),
        actuators=tuple(a for a in model.actuators if a.joint not in positions),
        notes=(*model.notes, *notes),
        contacts=(),
    )
    return with_moving_contacts(locked, model.contacts)


def _fixed(j: Joint, q: tuple[float, ...]) -> Joint:
    """The joint at q: its child's frame becomes the place of a fixed joint."""
    placement = j.placement
    if q != j.kind.neutral():
        x = j.kind.transform(q)
        placement = placement @ Placement(x.rotation.matrix(), x.translation)
    return Joint(j.name, Fixed(), j.parent, j.child, placement, where=j.where)


def _follow(model: Model, positions: Positions) -> list[str]:
    """Add the positions that couplings determine to `positions`, and return notes about them."""
    notes: list[str] = []
    found = True
    while found:
        found = False
        for c in model.couplings:
            follower = _follower(c, positions)
            if follower:
                positions[follower[0]] = (follower[1],)
                notes.append(f"joint {follower[0]!r}: locked at {follower[1]:g} by coupling {c.name!r}")
                found = True
    return notes


def _follower(c: Coupling, positions: Positions) -> tuple[str, float] | None:
    """The joint that a coupling fixes when its other one is locked, and its position."""
    if c.switchable or c.source is None:
        return None
    if c.source in positions and c.joint not in positions:
        return c.joint, c.position(positions[c.source][0])
    if c.joint in positions and c.source not in positions and c.ratio != 0.0:
        return c.source, (positions[c.joint][0] - c.offset) / c.ratio
    return None


def _off(c: Coupling, positions: Positions) -> bool:
    """Whether its joints are locked at positions that the coupling excludes; one that is switched may be off."""
    if c.switchable or not set(c.joints) <= set(positions):
        return False
    source = 0.0 if c.source is None else positions[c.source][0]
    return abs(positions[c.joint][0] - c.position(source)) > _SAME


def _must_agree(model: Model, positions: Positions) -> None:
    for c in model.couplings:
        if _off(c, positions):
            follower = positions[c.joint][0]
            if c.source is None:
                raise ModelError(
                    f"coupling {c.name!r}: {c.joint!r} is locked at {follower:g}; expected {c.offset:g}, where the "
                    "coupling holds it"
                )
            source = positions[c.source][0]
            raise ModelError(
                f"coupling {c.name!r}: {c.joint!r} is locked at {follower:g} and {c.source!r} at {source:g}; "
                f"expected {c.joint!r} = {c.ratio:g} {c.source!r} + {c.offset:g}. Give one of them"
            )


def _departure(c: Coupling) -> str:
    words = " are locked at positions" if c.source is not None else " is locked at a position"
    return f"coupling {c.name!r}: removed; {' and '.join(map(repr, c.joints))}{words} it does not allow"
