"""SDF's gearboxes and mimics: couplings between the coordinates of two joints."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.errors import FileError, UnsupportedError, nearest
from spanloop.math.small import dot, times
from spanloop.model.load.findings import Findings
from spanloop.model.load.markup import Element
from spanloop.model.load.sdf_frames import Scope, joint_key
from spanloop.model.load.sdf_joint import Told, axis_in_joint
from spanloop.model.load.sdf_values import content, number
from spanloop.model.parts import WORLD, Coupling

PARALLEL = 1e-6  # of two unit vectors' product


def read_gearbox(
    element: Element, ground: Scope, scope: Scope, version: tuple[int, int], told: Sequence[Told], findings: Findings
) -> Coupling:
    """θ₂ = −ratio · θ₁, θ₁ the angle from the reference body to the parent about <axis>, θ₂ to the child about
    <axis2>; each must be the coordinate of a hinge."""
    name = element.text("name")
    reference = element.needed("gearbox_reference_body")
    body = scope.body(content(reference), reference)
    ratio = number(element, "gearbox_ratio", 1.0)
    key = name if scope.entries[name].tag == "joint" else joint_key(name)
    turn = ground.pose(scope.full(key), element).rotation
    sides = []
    for role, tag in (("parent", "axis"), ("child", "axis2")):
        end = element.needed(role)
        link = scope.body(content(end), end)
        axis = times(turn, axis_in_joint(element.needed(tag), scope, key, version, findings))
        sides.append(_hinge(element, body, link, axis, ground, told))
    (source, first), (joint, second) = sides
    return Coupling(scope.full(name), joint, source, -ratio * first * second, where=element.where)


def _hinge(element: Element, body: str, link: str, axis, ground: Scope, told: Sequence[Told]) -> tuple[str, float]:
    """The hinge between two links and its sense against an axis of the world."""
    for t in told:
        j = t.joint
        if j.kind.name == "revolute" and {j.parent, j.child} == {body, link}:
            place = (ground.pose(j.parent, element) if j.parent != WORLD else ground.pose("", element)).rotation
            along = dot(times(place, times(j.placement.rotation, j.kind.axis)), axis)  # type: ignore[attr-defined]
            if abs(abs(along) - 1.0) < PARALLEL:
                return j.name, (1.0 if along > 0.0 else -1.0) * (1.0 if j.parent == body else -1.0)
    raise UnsupportedError(
        f"{element.where}: gearbox {element.text('name')!r} needs a hinge about its axis between {body!r} and "
        f"{link!r}; there is none"
    )


def read_mimic(t: Told, told: Sequence[Told], findings: Findings) -> Coupling | None:
    """follower = multiplier · (leader − reference) + offset, of <axis><mimic> (SDF 1.11)."""
    axis = t.element.one("axis")
    mimic = axis.one("mimic") if axis is not None else None
    if mimic is None:
        return None
    leader = t.scope.full(mimic.text("joint"))
    names = [x.joint.name for x in told]
    if leader not in names:
        raise FileError(
            f"{mimic.where}: <mimic> names the joint {leader!r}, which is not there; {nearest(leader, names)}"
        )
    if mimic.attributes.get("axis", "axis") != "axis":
        raise UnsupportedError(f"{mimic.where}: <mimic> of a second axis is not read; couplings join single freedoms")
    ratio = number(mimic, "multiplier", 1.0)
    offset = number(mimic, "offset", 0.0) - ratio * number(mimic, "reference", 0.0)
    return Coupling(f"{t.joint.name}_mimic", t.joint.name, leader, ratio, offset, mimic.where)
