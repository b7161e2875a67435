"""Writer of MJCF shapes and contacts.

A contact is a <pair> of geoms. In a model with contacts nothing else collides, as here; they are soft in MuJoCo.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence

from spanloop.model.contacts.contact import Contact, ContactSide
from spanloop.model.contacts.contact_check import links_of
from spanloop.model.files.loss_report import LossReport
from spanloop.model.files.surface_writer import write_geom_surface
from spanloop.model.files.xml_writer import child, is_turned, numbers, quaternion
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Geometry, Placement

SIZES: dict[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "box": lambda s: [x / 2.0 for x in s],
    "cylinder": lambda s: [s[0], s[1] / 2.0],
    "capsule": lambda s: [s[0], s[1] / 2.0],
    "sphere": lambda s: s,
    "ellipsoid": lambda s: s,
    "plane": lambda s: (0.0, 0.0, 1.0),
    "point": lambda s: (POINT,),
}
POINT = 1e-6  # m, the radius of the ball that stands for a point
HIDDEN = "3"  # a group of geoms that MuJoCo's viewer does not show by default


def write_geom(body: ET.Element, g: Geometry, b: Body, report: LossReport) -> ET.Element:
    """A shape other than a mesh as a geom."""
    shape = "sphere" if g.shape == "point" else g.shape
    geom = placed(child(body, "geom", type=shape, size=numbers(*SIZES[g.shape](g.size)), mass="0"), g.placement)
    if g.use == "visual":
        _no_collisions(geom, "2")
    else:
        write_geom_surface(geom, g.surface, b, report)
    if g.color is not None:
        geom.set("rgba", numbers(*g.color))
    return geom


def placed(element: ET.Element, p: Placement) -> ET.Element:
    """The element with its pose."""
    element.set("pos", numbers(*p.position))
    if is_turned(p.rotation):
        element.set("quat", numbers(*quaternion(p.rotation)))
    return element


def write_contacts(
    root: ET.Element,
    inside: Mapping[str, ET.Element],
    model: Model,
    contacts: Sequence[Contact],
    report: LossReport,
) -> None:
    """Write contacts as pairs of geoms with names; inside: the element of each body."""
    if not contacts:
        return
    for geom in (g for element in inside.values() for g in element.findall("geom")):
        if geom.get("contype") is None:
            _no_collisions(geom, HIDDEN)
    links, pairs = links_of(model, model.joints), ET.Element("contact")
    for c in contacts:
        if _is_written(c, links, report):
            ends = {f"geom{k}": _named_geom(inside, model, s, c, k, report) for k, s in enumerate(c.sides, 1)}
            _pair(pairs, c, ends, report)
    root.append(pairs)


def _is_written(c: Contact, links: Mapping[str, str], report: LossReport) -> bool:
    for s in c.sides:
        if s.geometry.shape not in SIZES:
            report.lose(f"contacts of a {s.geometry.shape}", repr(c.name))
            return False
        if s.geometry.shape == "plane" and links[s.at] != WORLD:
            report.lose("contacts of planes that move", repr(c.name))
            return False
    return True


def _pair(pairs: ET.Element, c: Contact, ends: Mapping[str, str], report: LossReport) -> None:
    condim = 6 if c.rolling else 4 if c.torsion else 3 if c.friction else 1
    friction = numbers(c.friction, c.friction, c.torsion, c.rolling, c.rolling)
    child(pairs, "pair", name=c.name, **ends, condim=str(condim), friction=friction)
    report.remark("contacts, which are soft in MuJoCo", repr(c.name))
    for name in ("restitution", "stiffness"):
        if getattr(c, name):
            report.lose(f"{name} of contacts", repr(c.name))
    if any(c.surface_velocity):
        report.lose("surface velocities of contacts", repr(c.name))


def _named_geom(
    inside: Mapping[str, ET.Element], model: Model, s: ContactSide, c: Contact, k: int, report: LossReport
) -> str:
    """The name of the geom of a side: the body's own if it has this shape there, else a new one."""
    body, placement = s.on(model)
    owner, probe = Body(body), ET.Element("body")
    made = write_geom(probe, Geometry(s.geometry.shape, s.geometry.size, "", placement, "collision"), owner, report)
    if s.geometry.shape == "point":
        report.remark(f"points of contacts, written as balls of {POINT:g} m", repr(c.name))
    for geom in inside[body].findall("geom"):
        if geom.get("group") == HIDDEN and all(
            geom.get(key) == made.get(key) for key in ("type", "size", "pos", "quat")
        ):
            geom.set("name", geom.get("name") or f"{c.name}::{k}")
            return str(geom.get("name"))
    _no_collisions(made, HIDDEN)
    made.set("name", f"{c.name}::{k}")
    inside[body].append(made)
    return f"{c.name}::{k}"


def _no_collisions(geom: ET.Element, group: str) -> None:
    geom.set("contype", "0")
    geom.set("conaffinity", "0")
    geom.set("group", group)
