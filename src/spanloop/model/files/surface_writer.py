"""Surfaces of collision shapes as MJCF, SDF, and the elements that Gazebo and PyBullet add to URDF.

Each of them combines two surfaces by a rule of its own; a surface of another rule is written with a remark.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

from spanloop.model.files.loss_report import LossReport
from spanloop.model.files.surfaces import PATCH, PYBULLET
from spanloop.model.files.xml_writer import child, numbers
from spanloop.model.parts import Body, Surface

MUJOCO = (("friction", 1.0), ("torsion", 0.005), ("rolling", 1e-4))  # the defaults of MuJoCo
_OTHER_RULE = "surfaces that combine by the rule of this format, no longer by their own"


def write_geom_surface(geom: ET.Element, s: Surface | None, b: Body, report: LossReport) -> None:
    """Write friction, condim and priority of a geom."""
    if s is None:
        return
    _remark(s, "maximum", ("restitution",), b, report)
    geom.set("friction", numbers(*(default if getattr(s, n) is None else getattr(s, n) for n, default in MUJOCO)))
    values = s.touching(None)
    condims = {"friction": 3, "torsion": 4, "rolling": 6}
    condim = s.condim or max((least for n, least in condims.items() if values.get(n, n == "friction")), default=1)
    geom.set("condim", str(condim))
    if s.priority:
        geom.set("priority", str(s.priority))


def write_surface(collision: ET.Element, s: Surface | None, b: Body, report: LossReport) -> None:
    """Write the <surface> of an SDF collision."""
    if s is None:
        return
    _remark(s, "minimum", ("rolling",), b, report)
    values, surface = s.touching(None), child(collision, "surface")
    friction = child(surface, "friction")
    if "friction" in values:
        ode = child(friction, "ode")
        child(ode, "mu", numbers(values["friction"]))
        child(ode, "mu2", numbers(values["friction"]))
    if values.get("torsion"):
        torsional = child(friction, "torsional")
        child(torsional, "coefficient", "1")
        child(torsional, "patch_radius", numbers(values["torsion"] / PATCH))
    if values.get("restitution"):
        bounce = child(surface, "bounce")
        child(bounce, "restitution_coefficient", numbers(values["restitution"]))
        child(bounce, "threshold", "0")


def write_link_surface(robot: ET.Element, link: ET.Element, b: Body, report: LossReport) -> None:
    """Write the surface of a URDF link: <contact> (PyBullet) where surfaces multiply, else <gazebo>."""
    found = {g.surface for g in b.geometry if g.use == "collision" and g.surface is not None}
    if len(found) > 1:
        report.remark("surfaces that differ between shapes of a link, not written", f"body {b.name!r}")
    if len(found) != 1:
        return
    (s,) = found
    values = s.touching(None)
    if s.rule == "product":
        contact = child(link, "contact")
        for name, tag in PYBULLET.items():
            if name in values:
                child(contact, tag, value=numbers(values[name]))
        return
    _remark(s, "minimum", ("torsion", "rolling", "restitution"), b, report)
    if "friction" in values:
        gazebo = child(robot, "gazebo", reference=b.name)
        child(gazebo, "mu1", numbers(values["friction"]))
        child(gazebo, "mu2", numbers(values["friction"]))


def _remark(s: Surface, rule: str, missing: tuple[str, ...], b: Body, report: LossReport) -> None:
    values = s.touching(None)
    if s.rule != rule or (s.priority and rule != "maximum"):
        report.remark(_OTHER_RULE, f"body {b.name!r}")
    for name in missing:
        if not math.isclose(values.get(name, 0.0), 0.0):
            report.remark(f"surfaces without {name}, which the format does not have", f"body {b.name!r}")
