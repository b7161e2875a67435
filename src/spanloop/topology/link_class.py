"""Links without names and numbers: two that are alike in everything but values can share one piece of code."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.joints import JointKind
from spanloop.math.inertia import RigidInertia
from spanloop.math.spatial import Transform
from spanloop.topology.mechanism import Link
from spanloop.types import Scalar


@dataclass(frozen=True)
class Anonymous:
    """What the steps of a sweep may know of a link."""

    kind: JointKind
    placement: Transform
    inertia: RigidInertia
    armature: tuple[Scalar, ...]
    damping: tuple[Scalar, ...]
    stiffness: tuple[Scalar, ...]
    rest: tuple[float, ...]
    driven: bool

    transform = Link.transform
    free = Link.free
    given = Link.given
    passive_torque = Link.passive_torque
    spring_energy = Link.spring_energy
    _unsprung = Link._unsprung


def anonymous(link: Link) -> Anonymous:
    return Anonymous(
        link.kind,
        link.placement,
        link.inertia,
        link.armature,
        link.damping,
        link.stiffness,
        link.rest,
        link.driven,
    )
