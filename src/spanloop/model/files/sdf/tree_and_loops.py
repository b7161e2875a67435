"""Spanning tree and loops of an SDF, whose joints may point in any direction and form cycles.

Joints are followed from parent to child; where only a joint's child is reached, the joint is reversed. Ball joints are
cut first: they leave the fewest rows. A joint with damping or a spring stays in the tree, where these act. A group of
links without a joint to the world floats, or is fixed if its model is static.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spanloop.errors import UnsupportedError
from spanloop.joints import Fixed, Free, JointKind, Universal
from spanloop.math.vector3 import negate
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.sdf.joints import JointElement
from spanloop.model.files.sdf.scopes import Scope
from spanloop.model.files.sdf.values import flag
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Coupling, Frame, Joint, Loop, Placement
from spanloop.model.spanning_tree import Graph, origins, spanned

Placements = dict[str, Placement]


def assembled(
    bodies: Sequence[Body],
    elements: Sequence[JointElement],
    frames: Sequence[Frame],
    couplings: Sequence[Coupling],
    ground: Scope,
    base: str | None,
    notes: LoadNotes,
) -> Model:
    """The spanning tree with its loops; a body's frame is where its joint is."""
    still = _static(ground)
    loose = [t for t in elements if not {t.joint.parent, t.joint.child} <= {WORLD, *still}]

    taken = {t.joint.name for t in elements}
    where = {b.name: b.where for b in bodies}

    def stand(body: str, only: bool) -> Joint:
        name = "root" if only else f"{body}_root"
        while name in taken:
            name += "_joint"
        kind = Fixed() if body in still or base == "fixed" else Free()
        place = ground.pose(body, ground.element)
        return Joint(name, kind, WORLD, body, place, actuated=kind.nv == 0, where=where[body])

    joints = [*(_anchor(ground, b) for b in bodies if b.name in still), *(t.joint for t in loose)]
    at_child = {t.joint.name: t.at_child for t in loose if t.at_child != Placement()}
    cut = spare(joints, lambda j: 1 if j.kind.name == "spherical" and not _lossy(j) else None)
    tree, loops, turned = _spanned(bodies, joints, frames, at_child, stand, cut)
    if any(_lossy(j) for j in joints if j.name in {x.name for x in loops}):  # loops hold no springs: cut others
        cut = spare(joints, lambda j: 0 if _lossy(j) else 2 if j.kind.name == "spherical" else 1)
        tree, loops, turned = _spanned(bodies, joints, frames, at_child, stand, cut)
    for name in turned:
        notes.add("joints turned round, parent for child, so that the world is at the tree's root", repr(name))
    described = origins(tree, tree.at_child)
    for f in described:
        notes.add("links whose frame is at their joint; the file's own is the frame NAME::origin", repr(f.body))
    _note_loops(loops, {j.name: j for j in joints}, notes)
    _note_limits(tree.joints, notes)
    return Model(
        "sdf", tuple(tree.bodies), tuple(tree.joints), (*tree.frames, *described), loops, couplings=tuple(couplings)
    )


def _spanned(
    bodies: Sequence[Body],
    joints: Sequence[Joint],
    frames: Sequence[Frame],
    at_child: Placements,
    stand: Callable[[str, bool], Joint],
    cut: set[str],
) -> tuple[Graph, tuple[Loop, ...], list[str]]:
    """The tree (with the places of its joints in their children), the loops, and the joints reversed."""
    kept, places, turned = rooted(bodies, [j for j in joints if j.name not in cut], at_child, stand)
    whole = Graph(bodies, [*kept, *(j for j in joints if j.name in cut)], frames, places)
    tree, loops = spanned(whole, cut)
    named = {j.name for j in tree.joints}
    used = {name: place for name, place in places.items() if name in named and place != Placement()}
    return replace(tree, at_child=used), loops, [name for name in turned if name in named]


def _lossy(j: Joint) -> bool:
    return any((*j.damping, *j.friction, *j.stiffness))


def _static(scope: Scope, still: bool = False) -> set[str]:
    """Paths to the links of models that are static."""
    still = still or (bool(scope.path) and flag(scope.element, "static"))
    found = {scope.full(name) for name, e in scope.entries.items() if e.tag == "link"} if still else set()
    return found.union(*(_static(inner, still) for inner in scope.inside.values()))


def _anchor(ground: Scope, body: Body) -> Joint:
    place = ground.pose(body.name, ground.element)
    return Joint(f"{body.name}_static", Fixed(), WORLD, body.name, place, where=body.where)


def _note_loops(loops: tuple[Loop, ...], joints: dict[str, Joint], notes: LoadNotes) -> None:
    for x in loops:
        j = joints[x.name]
        if _lossy(j):
            notes.add(f"{ACTS} damping, friction or spring of a joint that closes a loop", f"{x.name!r} ({x.where})")
        if j.lower or j.upper:
            notes.add("limits of a joint that closes a loop left out", f"{x.name!r} ({x.where})")


def _note_limits(joints: Sequence[Joint], notes: LoadNotes) -> None:
    """In an SDF every joint is at 0 in the pose of the file."""
    for j in joints:
        low, high = j.lower or (0.0,) * j.kind.nv, j.upper or (0.0,) * j.kind.nv
        if any(a > 0.0 or b < 0.0 for a, b in zip(low, high, strict=True)):
            notes.add("limits that exclude the position in the file", f"joint {j.name!r} ({j.where})")


# ---- direction of joints


def rooted(
    bodies: Sequence[Body], joints: Sequence[Joint], at_child: Placements, stand: Callable[[str, bool], Joint]
) -> tuple[list[Joint], Placements, list[str]]:
    """The joints directed away from the world, their poses in the children, and the names of those reversed.

    stand(body, only) returns the joint that puts a body on the world; only: no other body needs one.
    """
    directed, places, turned = {j.name: j for j in joints}, dict(at_child), list[str]()
    standing: list[str] = []
    touching: dict[str, list[str]] = {}
    for j in joints:
        for end in (j.parent, j.child):
            touching.setdefault(end, []).append(j.name)
    seen, children = {WORLD}, {j.child for j in joints}

    def grow(start: list[str]) -> None:
        """Reach everything from `start`; reverse joints only where there is no other way."""
        front, against = deque(start), deque[str]()
        while front or against:
            if front:
                at = front.popleft()
                for name in touching.get(at, []):
                    j = directed[name]
                    if j.parent == at and j.child not in seen:
                        seen.add(j.child)
                        front.append(j.child)
                    elif j.child == at and j.parent not in seen:
                        against.append(name)
                continue
            j = directed[against.popleft()]
            if j.parent not in seen:
                directed[j.name] = reversed_joint(j, places.get(j.name, Placement()))
                places[j.name] = j.placement
                turned.append(j.name)
                seen.add(j.parent)
                front.append(j.parent)

    grow([WORLD])
    for candidates in ([b for b in bodies if b.name not in children], bodies):
        for b in candidates:
            if b.name not in seen:
                standing.append(b.name)
                seen.add(b.name)
                grow([b.name])
    roots = [stand(name, len(standing) == 1) for name in standing]
    return [*roots, *(directed[j.name] for j in joints)], places, turned


def reversed_joint(j: Joint, at_child: Placement) -> Joint:
    """The same joint described from its child: with the opposite axis it has the same coordinate."""
    settings: dict[str, Any] = {}
    kind = reversed_kind(j.kind, j.name)
    if isinstance(kind, Universal):  # its angles change places
        for name in ("lower", "upper", "speed", "effort", "damping", "friction", "armature", "stiffness", "rest"):
            value = getattr(j, name)
            settings[name] = None if value is None else tuple(reversed(value))
    return replace(j, kind=kind, parent=j.child, child=j.parent, placement=at_child, **settings)


def reversed_kind(kind: JointKind, name: str) -> JointKind:
    """The kind whose transform is the inverse."""
    if isinstance(kind, Universal):
        return Universal(negate(kind.second_axis), negate(kind.axis))
    if hasattr(kind, "axis") and kind.name in ("revolute", "prismatic", "helical", "cylindrical"):
        return replace(kind, axis=negate(kind.axis))  # type: ignore[type-var]
    if kind.name in ("fixed", "spherical", "free"):
        return kind
    raise UnsupportedError(f"joint {name!r}: a {kind.name} joint cannot be turned round; swap its parent and child")


def spare(joints: Sequence[Joint], rank: Callable[[Joint], int | None]) -> set[str]:
    """Names of joints that can be cut, none of them alone or together being the only way to a body.

    Joints of lower rank are kept first; those of rank None are left to be cut by the shortest ways.
    """
    group: dict[str, str] = {}

    def find(x: str) -> str:
        while group.setdefault(x, x) != x:
            group[x] = group[group[x]]
            x = group[x]
        return x

    out = set()
    for j in sorted(joints, key=lambda j: rank(j) or 0):
        a, b = find(j.parent), find(j.child)
        if a != b:
            group[a] = b
        elif rank(j) is not None:
            out.add(j.name)
    return out
