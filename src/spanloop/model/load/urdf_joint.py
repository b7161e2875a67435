"""URDF joints: kind, placement, limits, losses and mimics."""

from __future__ import annotations

import math
from typing import Any

from spanloop.errors import FileError, nearest
from spanloop.joints import Fixed, Free, JointKind, Planar, Prismatic, Revolute
from spanloop.model.load.findings import Findings
from spanloop.model.load.markup import Element
from spanloop.model.load.urdf_link import read_placement
from spanloop.model.parts import Coupling, Joint
from spanloop.types import Floats3

TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
WITH_AXIS = {"revolute": Revolute, "continuous": Revolute, "prismatic": Prismatic, "planar": Planar}
LIMITS = (("speed", "velocity"), ("effort", "effort"))  # our name, the file's


def read_joint(element: Element, findings: Findings) -> Joint:
    """The joint of a <joint>; what could not be taken over goes into the notes."""
    name = element.text("name")
    kind = _kind(element, name, findings)
    passive = kind.name == "free" or element.one("mimic") is not None
    passive = passive or element.attributes.get("independent") == "false"  # URDF+: its motion follows from the others'
    settings: dict[str, Any] = {"actuated": not passive}
    if kind.nv == 1:
        settings |= _limits(element, findings) | _losses(element)
    elif kind.nv > 1 and (element.one("limit") or element.one("dynamics")):
        findings.add("<limit> and <dynamics> left out, one number for several freedoms", _label(element))
    return Joint(
        name,
        kind,
        element.needed("parent").text("link"),
        element.needed("child").text("link"),
        read_placement(element.one("origin"), findings),
        where=element.where,
        **settings,
    )


def read_mimic(element: Element, findings: Findings) -> Coupling | None:
    """The coupling of a joint's <mimic>; a fixed joint has none."""
    mimic = element.one("mimic")
    if mimic is None:
        return None
    if element.text("type") == "fixed":
        findings.add("<mimic> of a fixed joint left out", _label(element))
        return None
    name = element.text("name")
    ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    return Coupling(f"{name}_mimic", name, mimic.text("joint"), ratio, offset, mimic.where)


def _kind(element: Element, name: str, findings: Findings) -> JointKind:
    kind = element.text("type")
    if kind in WITH_AXIS:
        return WITH_AXIS[kind](read_axis(element, "axis", findings))
    if kind in ("fixed", "floating"):
        return Fixed() if kind == "fixed" else Free()
    raise FileError(f"{element.where}: joint {name!r} has the type {kind!r}; {nearest(kind, TYPES)}")


def read_axis(element: Element, tag: str, findings: Findings) -> Floats3:
    """The direction in an <axis xyz>; x if there is none, as URDF has it, but a second axis must be there."""
    axis = element.needed(tag) if tag == "second_axis" else element.one(tag)
    if axis is None:
        return (1.0, 0.0, 0.0)
    xyz = axis.numbers("xyz", 3)
    if math.hypot(*xyz) < 1e-12:
        raise FileError(
            f"{axis.where}: <{tag}> xyz is {axis.text('xyz')!r}, which has no direction; expected for example '0 0 1'"
        )
    return findings.axis(xyz)


def _limits(element: Element, findings: Findings) -> dict[str, float]:
    """Lower, upper, speed, effort as given; a missing one of lower and upper is 0, as the standard says."""
    limit = element.one("limit")
    if limit is None:
        return {}
    found = [(ours, theirs) for ours, theirs in LIMITS if theirs in limit.attributes]
    if element.text("type") != "continuous":
        if "lower" in limit.attributes or "upper" in limit.attributes:
            found += [("lower", "lower"), ("upper", "upper")]
        else:
            findings.add("<limit> without lower and upper, read as without limits", _label(element))
    elif "lower" in limit.attributes or "upper" in limit.attributes:
        findings.add("lower and upper of a continuous joint left out", _label(element))
    return {ours: limit.number(theirs, 0.0, infinite=True) for ours, theirs in found}


def _losses(element: Element) -> dict[str, float]:
    dynamics = element.one("dynamics")
    if dynamics is None:
        return {}
    return {key: dynamics.number(key, 0.0) for key in ("damping", "friction")}


def _label(element: Element) -> str:
    return f"joint {element.text('name')!r} ({element.where})"
