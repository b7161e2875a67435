"""URDF joints: kind, placement, limits, losses and mimics."""

from __future__ import annotations

from typing import Any

from spanloop.errors import FileError, ModelError, nearest
from spanloop.joints import Fixed, Free, JointKind, Planar, Prismatic, Revolute
from spanloop.model.load.markup import Element
from spanloop.model.load.urdf_link import Snapping
from spanloop.model.parts import Coupling, Joint

TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
WITH_AXIS = {"revolute": Revolute, "continuous": Revolute, "prismatic": Prismatic, "planar": Planar}


def read_joint(element: Element, snapping: Snapping, notes: list[str]) -> Joint:
    """The joint of a <joint>; what could not be taken over goes into the notes."""
    name = element.text("name")
    kind = _kind(element, name, snapping)
    settings: dict[str, Any] = {"actuated": kind.name != "free" and element.one("mimic") is None}
    if kind.nv == 1:
        settings |= _limits(element, name, notes) | _losses(element)
    elif kind.nv > 1 and (element.one("limit") or element.one("dynamics")):
        notes.append(
            f"joint {name!r} ({element.where}): limit and dynamics have one number for {kind.nv} freedoms of different units; left out"
        )
    return Joint(
        name,
        kind,
        element.needed("parent").text("link"),
        element.needed("child").text("link"),
        snapping.placement(element.one("origin")),
        where=element.where,
        **settings,
    )


def read_mimic(element: Element) -> Coupling | None:
    """The coupling of a joint's <mimic>."""
    mimic = element.one("mimic")
    if mimic is None:
        return None
    name = element.text("name")
    ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    return Coupling(f"{name}_mimic", name, mimic.text("joint"), ratio, offset, mimic.where)


def _kind(element: Element, name: str, snapping: Snapping) -> JointKind:
    kind = element.text("type")
    if kind in WITH_AXIS:
        try:
            return WITH_AXIS[kind](snapping.axis(element.one("axis")))
        except ModelError as error:
            raise FileError(f"{element.where}: joint {name!r}: {error}") from None
    if kind in ("fixed", "floating"):
        return Fixed() if kind == "fixed" else Free()
    raise FileError(f"{element.where}: joint {name!r} has the type {kind!r}; {nearest(kind, TYPES)}")


def _limits(element: Element, name: str, notes: list[str]) -> dict[str, float]:
    """Lower, upper, speed and effort where the file gives them; a missing one of lower and upper is 0, as in the standard."""
    limit = element.one("limit")
    if limit is None:
        return {}
    found = {"speed": "velocity", "effort": "effort"}
    if element.text("type") != "continuous":
        if "lower" in limit.attributes or "upper" in limit.attributes:
            found |= {"lower": "lower", "upper": "upper"}
        else:
            notes.append(f"joint {name!r} ({limit.where}): <limit> has no lower and upper; read as without limits")
    always = ("lower", "upper")
    return {
        ours: limit.number(theirs, 0.0, infinite=True)
        for ours, theirs in found.items()
        if ours in always or theirs in limit.attributes
    }


def _losses(element: Element) -> dict[str, float]:
    dynamics = element.one("dynamics")
    if dynamics is None:
        return {}
    return {key: dynamics.number(key, 0.0) for key in ("damping", "friction")}
