"""Attach and weld: one model on another, two parts of a model held together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spanloop.errors import InputError
from spanloop.joints import Fixed, JointKind
from spanloop.model import user_input
from spanloop.model.contacts.contact import Contact, moved_contact
from spanloop.model.contacts.contact_check import with_moving_contacts
from spanloop.model.edits.rename import all_names, renamed
from spanloop.model.flexible_bodies.attachment import on_root
from spanloop.model.parts import WORLD, Body, Frame, Joint, Loop, Placement

if TYPE_CHECKING:
    from spanloop.model.model import Model


def weld(model: Model, a: str, b: str, *, name: str | None = None) -> Model:
    """Return the model with two frames or bodies held together. To fix one joint use `lock`.

    a, b: names of frames or bodies; name: of the fixed joint or loop

    If the body of b (or else that of a) floats on the world by a free joint, a fixed joint to the other body replaces
    the free joint, and no loop is needed. Otherwise a fixed loop holds the two together. Contacts between parts that
    then move as one are removed, with a note.
    Raises InputError where both are on one body.

    >>> [x.name for x in sl.zoo.puma().weld("tool", "world", name="grip").loops]
    ['grip']
    """
    start, end = on_root(model, model.frame(a)), on_root(model, model.frame(b))
    if start.body == end.body:
        raise InputError(f"weld: {a!r} and {b!r} are both on body {start.body!r}; they move as one already")
    for carrier, guest in ((start, end), (end, start)):
        joint = _floating(model, guest.body)
        if joint is not None and not _carries(model, guest.body, carrier.body):
            place = carrier.placement @ guest.placement.inverse()
            fixed = Joint(name or joint.name, Fixed(), carrier.body, guest.body, place, where=joint.where)
            welded = replace(
                model,
                joints=tuple(fixed if j is joint else j for j in model.joints),
                actuators=tuple(x for x in model.actuators if x.joint != joint.name),
                sensors=tuple(replace(s, at=fixed.name) if s.at == joint.name else s for s in model.sensors),
                contacts=(),
            )
            return with_moving_contacts(welded, model.contacts)
    return with_moving_contacts(replace(model, contacts=()).with_loop(a, b, "fixed", name=name), model.contacts)


def _floating(model: Model, body: str) -> Joint | None:
    """The free joint by which a body floats on the world, if it does."""
    if body == WORLD:
        return None
    joint = model.joints[model.body_number[body] - 1]
    return joint if joint.kind.name == "free" and joint.parent == WORLD else None


def _carries(model: Model, body: str, other: str) -> bool:
    """Whether a body carries another one, or is it."""
    while other not in (body, WORLD):
        other = model.joints[model.body_number[other] - 1].parent
    return other == body


def attach(
    model: Model,
    other: Model,
    at: str = WORLD,
    joint: str | JointKind | None = None,
    *,
    prefix: str = "",
    name: str | None = None,
    frame: str | None = None,
) -> Model:
    """Return the model with another one attached to one of its frames or bodies.

    other: the model to attach
    at: frame or body of this model that carries it
    joint: the kind of joint between the two, by name or as an object; by default the other model is fixed to `at`, but
        one that floats by a free joint stays free if `at` is on the world
    prefix: put before every name of the other model, as "gripper_"
    name: of the new joint; prefix and the other model's name by default
    frame: frame of the other model that is placed at `at`; its world by default

    If the other model floats by one free joint, `joint` replaces this joint; a note says so if `joint` is not given.
    Otherwise a fixed joint places the parts of the other world on `at`; a joint that moves carries them by a body
    without mass, "base". Raises InputError where both models have a part of the same name.

    >>> arm, rod = sl.zoo.puma(), sl.zoo.pendulum(1)
    >>> arm.attach(rod, "tool", prefix="rod_").joints[-1].name
    'rod_hinge1'
    """
    if not isinstance(other, type(model)):
        raise InputError(f"attach: {other!r} is no model; expected one, as sl.load(file) or sl.zoo.puma() returns it")
    user_input.name(prefix, "attach: prefix")
    place = on_root(model, model.frame(at))
    kind = user_input.joint_kind("fixed" if joint is None else joint, "attach")
    name = name or f"{prefix}{other.name}"
    roots = [j for j in other.joints if j.parent == WORLD]
    floats = len(roots) == 1 and roots[0].kind.name == "free" and (joint is not None or place.body != WORLD)
    _names_differ(model, [prefix + n for n in all_names(other)] + [name] * (floats or kind.nv > 0))
    guest = renamed(other, lambda n: prefix + n) if prefix else other
    offset = _offset(
        guest, frame if frame in (None, WORLD) else prefix + user_input.name(frame, "attach: frame"), floats
    )
    if floats:
        root = next(j for j in guest.joints if j.parent == WORLD)
        moved = _on_root(guest, root, kind, place, name, offset)
    elif kind.nv == 0:
        moved = hung_on(guest, place.body, place.placement @ offset)
    else:
        base = prefix + "base"
        if base in model.body_number or base in guest.body_number:
            raise InputError(f"attach: there is a body {base!r} already; give a prefix")
        moved = hung_on(guest, base, offset)
        carrier = Joint(name, kind, place.body, base, place.placement)
        moved = replace(moved, bodies=(Body(base), *moved.bodies), joints=(carrier, *moved.joints))
    notes = [f"{prefix}: {n}" if prefix else n for n in other.notes]
    if other.gravity != model.gravity:
        notes.append(f"attached {other.name!r} has a gravity of its own, left out")
    if floats and joint is None:
        free = prefix + roots[0].name
        notes.append(f"attached {other.name!r} is fixed to {at!r}; its free joint {free!r} is left out")
    return replace(
        model,
        bodies=model.bodies + moved.bodies,
        joints=model.joints + moved.joints,
        frames=model.frames + moved.frames,
        loops=model.loops + moved.loops,
        couplings=model.couplings + guest.couplings,
        actuators=model.actuators + tuple(a for a in guest.actuators if a.joint in {j.name for j in moved.joints}),
        sensors=model.sensors + guest.sensors,
        contacts=model.contacts + moved.contacts,
        notes=(*model.notes, *notes),
    )


@dataclass(frozen=True)
class Parts:
    """Parts of a model that hang on a body of another."""

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...]
    loops: tuple[Loop, ...]
    contacts: tuple[Contact, ...]


def _offset(guest: Model, frame: str | None, floats: bool) -> Placement:
    """The other world's pose in the frame that is put in place; floats: that of the body that floats."""
    if frame is None or frame == WORLD:
        return Placement()
    found = guest.frame(frame)
    free = {j.child: j for j in guest.joints if j.parent == WORLD and j.kind.name == "free"}
    if found.body not in (WORLD, *free):
        raise InputError(f"attach: frame {frame!r} is on body {found.body!r}, which moves; expected one on the world")
    if found.body == WORLD or floats:
        return found.placement.inverse()
    return (free[found.body].placement @ found.placement).inverse()


def _on_root(guest: Model, root: Joint, kind: JointKind, place: Frame, name: str, offset: Placement) -> Parts:
    """The guest's floating body on the joint; what is fixed to the guest's world is lost with it."""
    lost = [x.name for x in guest.loops if WORLD in (x.a, x.b)] + [f.name for f in guest.frames if f.body == WORLD]
    lost += [c.name for c in guest.contacts if WORLD in (c.a.at, c.b.at)]
    if lost:
        raise InputError(
            f"attach: {guest.name!r} floats, but {lost[0]!r} is on its world, which would be lost; remove it first"
        )
    if offset != Placement() and kind.nv:
        raise InputError("attach: frame= and a joint that moves; give the joint's place by a frame of this model, at=")
    joint = Joint(name, kind, place.body, root.child, place.placement @ offset, where=root.where)
    joints = (joint, *(j for j in guest.joints if j is not root))
    return Parts(guest.bodies, joints, guest.frames, guest.loops, guest.contacts)


def hung_on(guest: Model, host: str, at: Placement) -> Parts:
    """The guest's parts with those that are on its world on a body of the host, placed there."""

    def moved(body: str, placement: Placement) -> tuple[str, Placement]:
        return (host, at @ placement) if body == WORLD else (body, placement)

    def joint(j: Joint) -> Joint:
        parent, placement = moved(j.parent, j.placement)
        return replace(j, parent=parent, placement=placement)

    def frame(f: Frame) -> Frame:
        body, placement = moved(f.body, f.placement)
        return replace(f, body=body, placement=placement)

    def loop(x: Loop) -> Loop:
        (a, in_a), (b, in_b) = moved(x.a, x.placement_a), moved(x.b, x.placement_b)
        return replace(x, a=a, b=b, placement_a=in_a, placement_b=in_b)

    return Parts(
        guest.bodies,
        tuple(map(joint, guest.joints)),
        tuple(map(frame, guest.frames)),
        tuple(map(loop, guest.loops)),
        tuple(moved_contact(c, {WORLD: (host, at)}) for c in guest.contacts),
    )


def _names_differ(model: Model, names: Sequence[str]) -> None:
    taken = set(all_names(model))
    for name in names:
        if name in taken:
            raise InputError(f"attach: both models have a part {name!r}; give a prefix, as prefix='gripper_'")
