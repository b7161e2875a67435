"""Remove: bodies with their subtrees, joints, loops, couplings, frames, actuators, sensors and contacts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from spanloop.errors import InputError, nearest
from spanloop.joints import Free
from spanloop.model import user_input
from spanloop.model.contacts.contact import moved_contact
from spanloop.model.flexible_bodies.pieces import flexible_bodies
from spanloop.model.parts import WORLD, Joint, Placement
from spanloop.model.poses import neutral_poses

if TYPE_CHECKING:
    from spanloop.model.model import Model

PARTS = ("body", "joint", "loop", "coupling", "frame", "actuator", "sensor", "contact")


def remove(model: Model, *names: str | Iterable[str], kind: str | None = None) -> Model:
    """Return the model without these bodies, joints, loops, couplings, frames, actuators, sensors or contacts.

    names: of the parts, one by one or in a list (which may be empty)
    kind: "body", "joint", "loop", "coupling", "frame", "actuator", "sensor" or "contact", for a name that several
        parts have

    Removing a body removes its subtree and the loops, couplings, actuators, sensors, contacts and frames on it, and
    with a flexible body its root and nodes.
    Removing a joint lets its body float: a free joint of the same name on the world replaces it. Contacts on a frame
    that is removed stay, on its body. Notes list the loops, couplings and contacts removed with another part.
    Raises InputError for a name that the model does not have.

    >>> sl.zoo.puma().remove("link5").nv, sl.zoo.four_bar().remove("closing").loops
    (4, ())
    """
    if kind is not None and kind not in PARTS:
        raise InputError(f"remove: kind is {kind!r}; {nearest(kind, PARTS)}")
    if not names:
        raise InputError("remove: no part is named; expected names, as remove('link5')")
    for name in user_input.names(names, "remove"):
        model = _REMOVERS[_kind_of(model, name, kind)](model, name)
    return model


def _kind_of(model: Model, name: str, kind: str | None) -> str:
    """The kind of part that a name belongs to."""
    owners = [k for k, known in _names(model).items() if name in known]
    if not owners and name in flexible_bodies(model.bodies, model.joints):  # of several pieces
        owners = ["body"]
    found = [k for k in owners if kind in (None, k)]
    if name == WORLD:
        raise InputError("remove: 'world' is the ground; it stays")
    if owners and not found:
        raise InputError(f"remove: {name!r} is {_a(owners)} of model {model.name!r}, no {kind}; try kind={owners[0]!r}")
    if not found:
        known = [n for k, group in _names(model).items() if kind in (None, k) for n in group]
        raise InputError(f"model {model.name!r} has no {kind or 'part'} {name!r}; {nearest(name, known)}")
    if len(found) > 1:
        effects = "; ".join(f"kind={k!r} {_EFFECTS.get(k, f'removes the {k} alone')}" for k in found)
        raise InputError(f"remove: {name!r} is {_a(found)}; choose one: {effects}")
    return found[0]


def _a(kinds: list[str]) -> str:
    return " and ".join(f"an {k}" if k[0] == "a" else f"a {k}" for k in kinds)


def _names(model: Model) -> dict[str, list[str]]:
    groups = (
        model.bodies,
        model.joints,
        model.loops,
        model.couplings,
        model.frames,
        model.actuators,
        model.sensors,
        model.contacts,
    )
    return {k: [p.name for p in parts] for k, parts in zip(PARTS, groups, strict=True)}  # type: ignore[attr-defined]


def _body(model: Model, name: str) -> Model:
    removed = {_root(model, name)}
    for j in model.joints:  # parents come first
        if j.parent in removed:
            removed.add(j.child)
    joints = {j.name for j in model.joints if j.child in removed}
    frames = {f.name for f in model.frames if f.body in removed}
    loops = [x for x in model.loops if x.a in removed or x.b in removed]
    contacts = [c for c in model.contacts if {c.a.at, c.b.at} & (removed | frames)]
    gone = [*(f"loop {x.name!r}" for x in loops), *(f"contact {c.name!r}" for c in contacts)]
    out = replace(
        model,
        bodies=tuple(b for b in model.bodies if b.name not in removed),
        joints=tuple(j for j in model.joints if j.name not in joints),
        frames=tuple(f for f in model.frames if f.name not in frames),
        loops=tuple(x for x in model.loops if x not in loops),
        actuators=tuple(a for a in model.actuators if a.joint not in joints),
        sensors=tuple(s for s in model.sensors if s.at not in removed | joints | frames),
        couplings=(),
        contacts=tuple(c for c in model.contacts if c not in contacts),
        notes=(*model.notes, *(f"{part}: removed with body {name!r}" for part in gone)),
    )
    return _uncoupled(model, out, joints)


def _root(model: Model, name: str) -> str:
    """The root of a flexible body, which is removed with it unless it is part of another body; other names as is."""
    found = flexible_bodies(model.bodies, model.joints).get(name)
    if found is None:
        return name
    return found.root if found.root == f"{name}.root" else found.pieces[0].body.name


def _joint(model: Model, name: str) -> Model:
    """The joint's body floats; at neutral coordinates it is where it was."""
    old = model.joint(name)
    if old.kind.bends or old.kind.rides:
        part = "the modes" if old.kind.bends else "a node"
        raise InputError(
            f"remove: joint {name!r} holds {part} of a flexible body, without which its parts are no mechanism; "
            "remove the body, or hold its shape with model.rigid(...)"
        )
    at = neutral_poses(model)[old.parent] @ old.placement
    new = Joint(name, Free(), WORLD, old.child, Placement(at.rotation, at.position), actuated=False, where=old.where)
    out = replace(
        model,
        joints=tuple(new if j.name == name else j for j in model.joints),
        actuators=tuple(a for a in model.actuators if a.joint != name),
        couplings=(),
    )
    return _uncoupled(model, out, {name})


def _uncoupled(model: Model, out: Model, joints: Collection[str]) -> Model:
    """Keep the couplings without these joints, and note the others."""
    kept = tuple(c for c in model.couplings if not set(c.joints) & set(joints))
    notes = [
        f"coupling {c.name!r}: removed with joint {c.joint if c.joint in joints else c.source!r}"
        for c in model.couplings
        if c not in kept
    ]
    return replace(out, couplings=kept, notes=(*out.notes, *notes))


def without_switches(model: Model, names: Collection[str]) -> Model:
    """Return the model without these switchable loops and couplings."""
    return replace(
        model,
        loops=tuple(x for x in model.loops if not (x.switchable and x.name in names)),
        couplings=tuple(c for c in model.couplings if not (c.switchable and c.name in names)),
    )


def _frame(model: Model, name: str) -> Model:
    frame = model.frame(name)
    return replace(
        model,
        frames=tuple(f for f in model.frames if f.name != name),
        sensors=tuple(s for s in model.sensors if s.at != name),
        contacts=tuple(moved_contact(c, {name: (frame.body, frame.placement)}) for c in model.contacts),
    )


_EFFECTS = {"body": "removes the body with its subtree", "joint": "lets its body float"}
_REMOVERS: dict[str, Callable[[Model, str], Model]] = {
    "body": _body,
    "joint": _joint,
    "loop": lambda model, name: replace(model, loops=tuple(x for x in model.loops if x.name != name)),
    "coupling": lambda model, name: replace(model, couplings=tuple(c for c in model.couplings if c.name != name)),
    "frame": _frame,
    "actuator": lambda model, name: replace(model, actuators=tuple(a for a in model.actuators if a.name != name)),
    "sensor": lambda model, name: replace(model, sensors=tuple(s for s in model.sensors if s.name != name)),
    "contact": lambda model, name: replace(model, contacts=tuple(c for c in model.contacts if c.name != name)),
}
