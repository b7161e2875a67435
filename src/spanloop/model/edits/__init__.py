"""Edits of a model: each takes a model and returns a new one. They are the methods of Model with the same names.

Verbs act on the parts that are there (lock, fuse, attach, rename, ...), with_X adds or sets a part, remove takes parts
of any kind away.
"""

from spanloop.model.edits.actuate import actuate, drive, unactuate
from spanloop.model.edits.attach import attach, weld
from spanloop.model.edits.fuse import fuse
from spanloop.model.edits.inertial_parameters import inertial_parameters, with_inertial_parameters
from spanloop.model.edits.lock import lock
from spanloop.model.edits.mirror import mirror
from spanloop.model.edits.remove import remove
from spanloop.model.edits.rename import rename
from spanloop.model.edits.rezero import rezero
from spanloop.model.edits.scale import scale
from spanloop.model.edits.with_contact import with_contact, with_ground
from spanloop.model.edits.with_joint import with_joint
from spanloop.model.edits.with_part import (
    with_actuator,
    with_coupling,
    with_frame,
    with_gravity,
    with_inertia,
    with_loop,
    with_sensor,
    without_losses,
)
from spanloop.model.flexible_bodies.rigid import rigid
from spanloop.model.flexible_bodies.with_flexible import with_flexible
from spanloop.model.flexible_bodies.with_material import with_material

__all__ = [
    "actuate",
    "attach",
    "drive",
    "fuse",
    "inertial_parameters",
    "lock",
    "mirror",
    "remove",
    "rename",
    "rezero",
    "rigid",
    "scale",
    "unactuate",
    "weld",
    "with_actuator",
    "with_contact",
    "with_coupling",
    "with_flexible",
    "with_frame",
    "with_gravity",
    "with_ground",
    "with_inertia",
    "with_inertial_parameters",
    "with_joint",
    "with_loop",
    "with_material",
    "with_sensor",
    "without_losses",
]
