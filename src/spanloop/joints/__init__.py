"""Kinds of joint. A new joint is one new file and one line here."""

from spanloop.joints.cylindrical import Cylindrical
from spanloop.joints.distance import Distance
from spanloop.joints.fixed import Fixed
from spanloop.joints.free import Free
from spanloop.joints.general import General
from spanloop.joints.guided_point import PointOnLine, PointOnPlane
from spanloop.joints.helical import Helical
from spanloop.joints.kind import JointKind, Sides
from spanloop.joints.planar import Planar
from spanloop.joints.prismatic import Prismatic
from spanloop.joints.revolute import Revolute
from spanloop.joints.soft_finger import SoftFinger
from spanloop.joints.spherical import Spherical
from spanloop.joints.universal import Universal

KINDS: dict[str, type[JointKind]] = {
    k.name: k
    for k in (
        Revolute,
        Prismatic,
        Helical,
        Cylindrical,
        Universal,
        Spherical,
        Planar,
        Free,
        Fixed,
        General,
    )
}

# every kind that can close a loop
CLOSURE_KINDS: dict[str, type[JointKind]] = {
    **KINDS,
    **{k.name: k for k in (Distance, PointOnLine, PointOnPlane, SoftFinger)},
}

__all__ = [
    "CLOSURE_KINDS",
    "KINDS",
    "Cylindrical",
    "Distance",
    "Fixed",
    "Free",
    "General",
    "Helical",
    "JointKind",
    "Planar",
    "PointOnLine",
    "PointOnPlane",
    "Prismatic",
    "Revolute",
    "Sides",
    "SoftFinger",
    "Spherical",
    "Universal",
]
