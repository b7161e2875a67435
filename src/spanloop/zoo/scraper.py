"""Saha's carpet scraper: Hoeken's four-bar, whose coupler draws a nearly straight line, which a pantograph enlarges.

[Saha, section 4.4, Table 5]. How the text is read: the machine is plane, gravity along −y, the crank turns
counter-clockwise about the origin. I-2 is the coupler, twice 0.115 m long, jointed to I-1 at its middle, where its mass
centre is (the text has "#II-2" there); the other bars have it at half their length. Inertias are about the link's
origin. III-2⁰ is 0.834 m long over all: 0.239 · 0.335/0.096, the pantograph condition, which its inertia confirms.
The text does not say on which side the pantograph's arm stands: both are there.
"""

from __future__ import annotations

from math import cos, sin

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model.build import Builder
from spanloop.model.model import Model
from spanloop.zoo.meeting import Point, crossing, direction, planar_closure

_CRANK, _ROCKER, _HALF = 0.038, 0.115, 0.115  # m: II-1, I-1, half of I-2
_SUPPORT: Point = (-0.089, 0.0)  # of I-1
_POST: Point = (0.038, 0.410)  # of III-1⁰
_ARM, _BRANCH, _SIDE = 0.335, 0.096, 0.239  # m: III-1⁰, where III-1¹ sits on it, the sides of the pantograph
_BEAM = _SIDE * _ARM / _BRANCH  # m, III-2⁰ over all
_BODIES = {  # length [m], mass [kg], moment of inertia about the link's origin [kg m²]
    "rocker": (_ROCKER, 3.0, 0.0133),
    "coupler": (0.0, 5.0, 2.212e-2),  # its origin is its middle
    "crank": (_CRANK, 1.5, 7.258e-4),
    "arm": (_ARM, 4.2, 0.157),
    "beam": (_BEAM, 10.5, 2.449),
    "link": (_SIDE, 3.0, 0.057),
    "rod": (_SIDE, 3.0, 0.057),
}
_PASSIVE = {"actuated": False}
_SIDES = {"left": 1, "right": -1}


def carpet_scraper(*, closure: str | JointKind = "revolute") -> Model:
    """Seven bars, cut at three hinges as in the text; the crank is actuated. Mobility 1.

    Its subsystems are I (rocker, coupler), II (crank) and III (arm, beam, link, rod). The frame "scraper" is at the
    end of the beam, where the tool works.
    """
    b = Builder("carpet_scraper", gravity=(0.0, -9.81, 0.0))
    for name, (length, mass, about_origin) in _BODIES.items():
        moment = about_origin - mass * (0.5 * length) ** 2
        b.body(name, mass, (0.5 * length, 0.0, 0.0), (0.0, moment, moment))
    b.revolute("rocker_hinge", "world", "rocker", "z", (*_SUPPORT, 0.0), **_PASSIVE)
    b.revolute("coupler_hinge", "rocker", "coupler", "z", (_ROCKER, 0.0, 0.0), **_PASSIVE)
    b.revolute("crank_hinge", "world", "crank", "z")
    b.revolute("arm_hinge", "world", "arm", "z", (*_POST, 0.0), **_PASSIVE)
    b.revolute("beam_hinge", "arm", "beam", "z", (_ARM, 0.0, 0.0), **_PASSIVE)
    b.revolute("link_hinge", "beam", "link", "z", (_SIDE, 0.0, 0.0), **_PASSIVE)
    b.revolute("rod_hinge", "arm", "rod", "z", (_BRANCH, 0.0, 0.0), **_PASSIVE)
    b.frame("crank_tip", "crank", (_CRANK, 0.0, 0.0))
    b.frame("coupler_foot", "coupler", (-_HALF, 0.0, 0.0)).frame("coupler_tip", "coupler", (_HALF, 0.0, 0.0))
    b.frame("rod_tip", "rod", (_SIDE, 0.0, 0.0)).frame("link_tip", "link", (_SIDE, 0.0, 0.0))
    b.frame("scraper", "beam", (_BEAM, 0.0, 0.0))
    kind = planar_closure(closure, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), "carpet_scraper")
    b.close("crank_tip", "coupler_foot", kind, name="crank_pin")
    b.close("rod_tip", "coupler_tip", kind, name="rod_pin")
    b.close("link_tip", "coupler_tip", kind, name="link_pin")
    return b.build()


def carpet_scraper_start(
    *, closure: str | JointKind = "revolute", angle: float = 0.0, assembly: str = "left"
) -> np.ndarray:
    """q (7,): rocker, coupler, crank, arm, beam, link, rod at a crank angle [rad].

    assembly: does the branch of the pantograph's arm stand "left" or "right" of the way from its post to the coupler?
    """
    if assembly not in _SIDES:
        raise InputError(f"carpet_scraper: there is no assembly {assembly!r}; {nearest(assembly, _SIDES)}")
    pin: Point = (_CRANK * cos(angle), _CRANK * sin(angle))
    middle = crossing(pin, _HALF, _SUPPORT, _ROCKER, -1, "carpet_scraper")
    tip: Point = (2.0 * middle[0] - pin[0], 2.0 * middle[1] - pin[1])
    branch = crossing(_POST, _BRANCH, tip, _SIDE, _SIDES[assembly], "carpet_scraper")
    rocker, coupler = direction(_SUPPORT, middle), direction(pin, middle)
    arm, rod = direction(_POST, branch), direction(branch, tip)
    # the pantograph is a parallelogram: the beam goes with the rod, the link against the arm
    return np.array((rocker, coupler - rocker, angle, arm, rod - arm, arm + np.pi - rod, rod - arm))
