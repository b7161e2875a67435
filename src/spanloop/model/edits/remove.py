"""Removing: bodies with all that they carry, joints, loops and what hangs on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from spanloop.errors import InputError, nearest
from spanloop.joints import Free
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Joint, Placement
from spanloop.model.poses import neutral_poses

SORTS = ("body", "joint", "loop", "frame", "coupling")


def remove(model: Model, names: Sequence[str], sort: str | None = None) -> Model:
    """The model without these parts.

    A body goes with all that it carries, and with the loops, couplings, actuators, sensors and frames there. A body
    whose joint goes floats: a free joint on the world, of the same name, takes its place. sort: "body", "joint",
    "loop", "frame" or "coupling", for a name that several parts have.
    """
    if sort is not None and sort not in SORTS:
        raise InputError(f"remove: sort is {sort!r}; {nearest(sort, SORTS)}")
    for name in names:
        model = _REMOVERS[_sort_of(model, name, sort)](model, name)
    return model


def _sort_of(model: Model, name: str, sort: str | None) -> str:
    """What a name means."""
    found = [s for s, known in _names(model).items() if name in known and sort in (None, s)]
    if name == WORLD:
        raise InputError("remove: 'world' is the ground; it stays")
    if not found:
        known = [n for s, group in _names(model).items() if sort in (None, s) for n in group]
        raise InputError(f"model {model.name!r} has no {sort or 'part'} {name!r}; {nearest(name, known)}")
    if len(found) > 1:
        raise InputError(f"remove: {name!r} is a {' and a '.join(found)}; say which with sort={found[0]!r}")
    return found[0]


def _names(model: Model) -> dict[str, list[str]]:
    groups = (model.bodies, model.joints, model.loops, model.frames, model.couplings)
    return {s: [p.name for p in parts] for s, parts in zip(SORTS, groups, strict=True)}  # type: ignore[attr-defined]


def _body(model: Model, name: str) -> Model:
    gone = {name}
    for j in model.joints:  # parents come first
        if j.parent in gone:
            gone.add(j.child)
    joints = {j.name for j in model.joints if j.child in gone}
    frames = {f.name for f in model.frames if f.body in gone}
    loops = [x for x in model.loops if x.a in gone or x.b in gone]
    out = replace(
        model,
        bodies=tuple(b for b in model.bodies if b.name not in gone),
        joints=tuple(j for j in model.joints if j.name not in joints),
        frames=tuple(f for f in model.frames if f.name not in frames),
        loops=tuple(x for x in model.loops if x not in loops),
        actuators=tuple(a for a in model.actuators if a.joint not in joints),
        sensors=tuple(s for s in model.sensors if s.at not in gone | joints | frames),
        couplings=(),
        notes=(*model.notes, *(f"loop {x.name!r}: removed with body {name!r}" for x in loops)),
    )
    return _uncoupled(model, out, joints)


def _joint(model: Model, name: str) -> Model:
    """The body that the joint carried floats, and is at its old place where all coordinates are neutral."""
    old = model.joint(name)
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
    """With the couplings that are not of these joints, and notes about the others."""
    kept = tuple(c for c in model.couplings if c.joint not in joints and c.source not in joints)
    notes = [
        f"coupling {c.name!r}: removed with joint {c.joint if c.joint in joints else c.source!r}"
        for c in model.couplings
        if c not in kept
    ]
    return replace(out, couplings=kept, notes=(*out.notes, *notes))


def _frame(model: Model, name: str) -> Model:
    return replace(
        model,
        frames=tuple(f for f in model.frames if f.name != name),
        sensors=tuple(s for s in model.sensors if s.at != name),
    )


_REMOVERS = {
    "body": _body,
    "joint": _joint,
    "loop": lambda model, name: replace(model, loops=tuple(x for x in model.loops if x.name != name)),
    "frame": _frame,
    "coupling": lambda model, name: replace(model, couplings=tuple(c for c in model.couplings if c.name != name)),
}
