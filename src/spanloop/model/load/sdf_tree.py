"""From the links and joints of an SDF to a spanning tree with loops.

Ball joints are cut first: they leave the fewest rows. A joint with damping or a spring stays in the tree, where these
act. What no joint ties to the world floats, or is fixed if its model is static.
"""

from __future__ import annotations

from dataclasses import replace

from spanloop.joints import Fixed, Free
from spanloop.model.graph import Graph, spanned
from spanloop.model.load.findings import ACTS, Findings
from spanloop.model.load.rooting import rooted, spare
from spanloop.model.load.sdf_frames import Scope
from spanloop.model.load.sdf_values import flag
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Frame, Joint, Loop, Placement


def assembled(bodies, told, frames, couplings, ground: Scope, base: str | None, findings: Findings) -> Model:
    """The spanning tree with its loops; a body's frame is where its joint is."""
    still = _static(ground)
    loose = [t for t in told if not (t.joint.parent in still and t.joint.child in still)]

    taken = {t.joint.name for t in told}
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
        findings.add("joints turned round, parent for child, so that the world is at the tree's root", repr(name))
    origins = [
        Frame(f"{j.child}::origin", j.child, tree.at_child[j.name].inverse(), j.where)
        for j in tree.joints
        if j.name in tree.at_child
    ]
    for f in origins:
        findings.add("links whose frame is at their joint; the file's own is the frame NAME::origin", repr(f.body))
    _note_loops(loops, {j.name: j for j in joints}, findings)
    _note_limits(tree.joints, findings)
    return Model(
        "sdf", tuple(tree.bodies), tuple(tree.joints), (*tree.frames, *origins), loops, couplings=tuple(couplings)
    )


def _spanned(bodies, joints, frames, at_child, stand, cut) -> tuple[Graph, tuple[Loop, ...], list[str]]:
    """The tree (with the places of its joints in their children), the loops, and the joints turned round."""
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


def _note_loops(loops: tuple[Loop, ...], joints: dict[str, Joint], findings: Findings) -> None:
    for x in loops:
        j = joints[x.name]
        if _lossy(j):
            findings.add(f"{ACTS} damping, friction or spring of a joint that closes a loop", f"{x.name!r} ({x.where})")
        if j.lower or j.upper:
            findings.add("limits of a joint that closes a loop left out", f"{x.name!r} ({x.where})")


def _note_limits(joints, findings: Findings) -> None:
    """In an SDF every joint stands at 0 where the links are told to be."""
    for j in joints:
        low, high = j.lower or (0.0,) * j.kind.nv, j.upper or (0.0,) * j.kind.nv
        if any(a > 0.0 or b < 0.0 for a, b in zip(low, high, strict=True)):
            findings.add("limits that exclude the position told", f"joint {j.name!r} ({j.where})")
