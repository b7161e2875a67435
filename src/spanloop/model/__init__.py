"""Description of a mechanism as frozen data: parts, builder, checks, edits, files, orders of other libraries."""

from spanloop.model.contacts import Contact, ContactSide
from spanloop.model.model import Model
from spanloop.model.motors import motor
from spanloop.model.parts import (
    WORLD,
    Actuator,
    Body,
    Coupling,
    Frame,
    Geometry,
    Inertia,
    Joint,
    Loop,
    Placement,
    Sensor,
)

__all__ = [
    "WORLD",
    "Actuator",
    "Body",
    "Contact",
    "ContactSide",
    "Coupling",
    "Frame",
    "Geometry",
    "Inertia",
    "Joint",
    "Loop",
    "Model",
    "Placement",
    "Sensor",
    "motor",
]
