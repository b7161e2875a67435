"""Contacts: the shapes that touch. model.with_contact("foot", ("shank", sl.contacts.Sphere(0.02)), "ground").

Every shape takes position= (3,) [m] and rotation= in the body, frame or world that carries it, or placement= for both.
"""

from __future__ import annotations

from spanloop.contacts.settings import Settings
from spanloop.model.contacts.shapes import Box, Capsule, Cylinder, Hull, Plane, Point, Sphere

__all__ = ["Box", "Capsule", "Cylinder", "Hull", "Plane", "Point", "Settings", "Sphere"]


def __dir__() -> list[str]:
    return sorted(__all__)
