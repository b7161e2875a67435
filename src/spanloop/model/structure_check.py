"""Check of a model's structure when it is made: names, tree, ends. Errors have where, what, found, expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from spanloop.errors import ModelError, nearest
from spanloop.model.contacts.contact_check import check_contacts
from spanloop.model.flexible_bodies.flexible_check import check_flexible
from spanloop.model.motors import check_actuator
from spanloop.model.parts import WORLD, Body, Coupling, Joint, Loop
from spanloop.model.sensor_settings import check_values
from spanloop.model.value_check import check_body, check_joint, check_kind, check_numbers, check_placement, label

if TYPE_CHECKING:
    from spanloop.model.model import Model


def checked_tree(model: Model) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
    """Bodies and joints depth first, children in the order given; raises ModelError unless they form a tree."""
    _unique(model)
    bodies = {b.name: b for b in model.bodies}
    _ends_exist(model, bodies)
    joints = _depth_first(model, bodies)
    for b in model.bodies:
        check_body(b)
    for j in joints:
        if not j.kind.carries:
            raise ModelError(f"{label('joint', j)}: a {j.kind.name} joint only closes loops; use model.with_loop(...)")
        check_joint(j)
    _check_frames_and_loops(model)
    _check_couplings(model)
    check_flexible(model, joints)
    if model.contacts:
        check_contacts(model, joints)
    if len(model.gravity) != 3:
        raise ModelError(f"model {model.name!r}: gravity is {model.gravity}; expected three numbers")
    check_numbers(model.gravity, f"model {model.name!r}: gravity")
    return tuple(bodies[j.child] for j in joints), joints


def _unique(model: Model) -> None:
    _check_name(model.name, "model")
    for what, names in (
        ("body", [b.name for b in model.bodies] + [WORLD]),
        ("joint", [j.name for j in model.joints] + [x.name for x in model.loops]),
        ("frame", [f.name for f in model.frames]),
        ("coupling", [c.name for c in model.couplings]),
        ("switchable loop or coupling", list(model.switches)),
        ("actuator", [a.name for a in model.actuators]),
        ("sensor", [x.name for x in model.sensors]),
        ("contact", [c.name for c in model.contacts]),
    ):
        for name in names:
            _check_name(name, f"model {model.name!r}: {_a(what)}")
        for name, n in Counter(names).items():
            if name == "":
                raise ModelError(f"model {model.name!r}: {_a(what)} has an empty name; every {what} needs one")
            if n > 1:
                if name == WORLD and what == "body":
                    raise ModelError(
                        f"model {model.name!r}: a body is called 'world', which is the ground's own name; rename it"
                    )
                raise ModelError(f"model {model.name!r}: {n} {_plural(what)} are called {name!r}; names must be unique")


def _check_name(name: str, owner: str) -> None:
    """Raise ModelError for a name that no file and no screen can show."""
    if not isinstance(name, str):
        raise ModelError(f"{owner} is called {name!r}; expected a text")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{owner} is called {name!r}, which is not text (half a character); rename it") from None


def _a(what: str) -> str:
    return f"an {what}" if what[0] == "a" else f"a {what}"


def _plural(what: str) -> str:
    return "bodies" if what == "body" else "s or ".join(what.split(" or ")) + "s"


def _ends_exist(model: Model, bodies: dict[str, Body]) -> None:
    known = dict.fromkeys((WORLD, *bodies))
    check_ends((*model.joints, *model.loops), bodies)
    for f in model.frames:
        if f.body not in bodies and f.body != WORLD:
            raise ModelError(f"{label('frame', f)}: its body {f.body!r} is not a body; {nearest(f.body, known)}")
    moving = {j.name: j for j in model.joints}
    for a in model.actuators:
        if a.joint not in moving:
            raise ModelError(f"actuator {a.name!r}: {a.joint!r} is not a joint; {nearest(a.joint, moving)}")
        check_actuator(a, moving[a.joint])
    places = dict.fromkeys([*moving, *known, *(f.name for f in model.frames)])
    for x in model.sensors:
        if x.at not in places:
            raise ModelError(f"sensor {x.name!r}: {x.at!r} is not a joint, body or frame; {nearest(x.at, places)}")
        check_values(x)


def check_ends(parts: Iterable[Joint | Loop], bodies: Iterable[str]) -> None:
    """Raise ModelError, with the nearest name, for a joint or loop whose ends are not bodies."""
    known = dict.fromkeys((WORLD, *bodies))
    for part in parts:
        if isinstance(part, Joint):
            ends = {"parent": part.parent, "child": part.child}
        else:
            ends = {"body a": part.a, "body b": part.b}
        for role, name in ends.items():
            if name not in known:
                raise ModelError(f"{label('joint', part)}: its {role} {name!r} is not a body; {nearest(name, known)}")


def _depth_first(model: Model, bodies: dict[str, Body]) -> tuple[Joint, ...]:
    children: dict[str, list[Joint]] = {}
    above: dict[str, Joint] = {}
    for j in model.joints:
        if j.child == WORLD:
            raise ModelError(f"{label('joint', j)}: its child is the world; swap parent and child")
        if j.child in above:
            raise ModelError(
                f"{label('joint', j)}: body {j.child!r} has two parents, "
                f"{above[j.child].parent!r} (joint {above[j.child].name!r}) and {j.parent!r}; a tree gives it one. "
                "Close the loop with model.with_loop(...) instead of the second joint"
            )
        above[j.child] = j
        children.setdefault(j.parent, []).append(j)
    ordered: list[Joint] = []
    stack = list(reversed(children.get(WORLD, [])))
    while stack:
        j = stack.pop()
        ordered.append(j)
        stack.extend(reversed(children.get(j.child, [])))
    if len(ordered) < len(bodies):
        reached = {j.child for j in ordered}
        lost = next(b for b in model.bodies if b.name not in reached)
        reason = "its joints form a cycle" if lost.name in above else "no joint has it as child"
        raise ModelError(
            f"{label('body', lost)}: not connected to the world ({reason}); "
            "attach it with a joint whose parent is the world or a connected body"
        )
    return tuple(ordered)


def _check_frames_and_loops(model: Model) -> None:
    bodies = {WORLD, *(b.name for b in model.bodies)}
    for f in model.frames:
        if f.name in bodies:
            raise ModelError(
                f"{label('frame', f)}: a body has the same name, and every body is a frame already; rename it"
            )
        check_placement(f.placement, label("frame", f))
    for x in model.loops:
        if x.a == x.b:
            raise ModelError(f"{label('loop', x)}: both ends are on body {x.a!r}; a loop joins two bodies")
        check_kind(x.kind, label("loop", x))
        check_placement(x.placement_a, f"{label('loop', x)}, end a")
        check_placement(x.placement_b, f"{label('loop', x)}, end b")


def _check_couplings(model: Model) -> None:
    joints = {j.name: j for j in model.joints}
    source: dict[str, str] = {}
    held: set[str] = set()
    for c in model.couplings:
        for name in c.joints:
            if name not in joints:
                raise ModelError(f"{label('coupling', c)}: {name!r} is not a joint; {nearest(name, joints)}")
            if joints[name].kind.nv != 1:
                n = joints[name].kind.nv
                raise ModelError(f"{label('coupling', c)}: joint {name!r} has {n} DoF; couplings join joints with one")
        if c.joint == c.source:
            raise ModelError(f"{label('coupling', c)}: joint {c.joint!r} follows itself")
        check_numbers((c.ratio, c.offset), f"{label('coupling', c)}: ratio or offset")
        if c.source is None:
            _check_held(c, joints[c.joint])
        if c.switchable:
            continue
        if c.joint in (held if c.source is None else source):
            does = "is held" if c.source is None else f"follows {source[c.joint]!r}"
            can = "be held once" if c.source is None else "follow one"
            raise ModelError(f"{label('coupling', c)}: joint {c.joint!r} {does} already; it can {can}")
        if c.source is None:
            held.add(c.joint)
        else:
            source[c.joint] = c.source
    free: set[str] = set()  # joints that are known to follow no cycle
    for start in source:
        way, at = {start}, source[start]
        while at in source and at not in way and at not in free:
            way.add(at)
            at = source[at]
        if at in way:
            raise ModelError(f"model {model.name!r}: joint {at!r} follows itself through couplings; break the cycle")
        free |= way


def _check_held(c: Coupling, joint: Joint) -> None:
    """A coupling without a source holds a joint that forces move."""
    if c.ratio != 1.0:
        raise ModelError(
            f"{label('coupling', c)}: the ratio is {c.ratio:g} and there is no source; a joint that is held has no "
            "ratio. Name the source, or leave the ratio out"
        )
    if joint.driven:
        raise ModelError(
            f"{label('coupling', c)}: joint {c.joint!r} is driven: its motion is given, and nothing can hold it. "
            "Leave one of the two out"
        )
