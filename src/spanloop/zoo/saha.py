"""The closed mechanisms of Saha's paper: the five-bar and the carpet scraper. Both are plane, gravity is along −y.

Five-bar [Saha, eq. 34-36]: the text gives lengths and masses of the legs but neither the length a₀ of the base nor
inertias. Here the legs stand at the origin and at (a₀, 0), in the plane of x and y; actuated angles are
counter-clockwise from +x; the links are uniform thin rods.

Carpet scraper [Saha, section 4.4, Table 5]: the coupler of Hoeken's four-bar draws a nearly straight line, and a
pantograph enlarges it. The crank turns counter-clockwise about O. I-2 is the coupler, twice 0.115 m long, jointed to
I-1 at its middle, where its mass centre is (the text has "#II-2" there); the other bars have it at half their length.
Inertias are about the link's origin. III-2⁰ is 0.834 m long over all: 0.239 · 0.335/0.096, the pantograph condition,
which its inertia confirms. The text does not say on which side the pantograph's arm stands: both are there.
"""

from __future__ import annotations

from math import cos, radians, sin

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.model.solid_inertia import rod
from spanloop.zoo.plane_geometry import Point, crossing, direction, planar_closure

_LENGTHS = ((0.6, 1.1), (0.7, 1.2))  # m, of both links of leg 1, of leg 2 [Saha, eq. 34a]
_MASSES = ((3.0, 1.6), (2.0, 1.1))  # kg [Saha, eq. 34b]
_SIDES = {"below": -1, "above": 1}

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
_PASSIVE: dict[str, bool] = {"actuated": False}
_SCRAPER_SIDES = {"left": 1, "right": -1}


def five_bar(*, base: float = 1.2, closure: str | JointKind = "revolute") -> Model:
    """Two legs of two links that meet; the first joint of each is actuated. Mobility 2. base: a₀ [m]."""
    b = Builder("five_bar", gravity=(0.0, -9.81, 0.0))
    for leg, foot in ((1, 0.0), (2, base)):
        near, far = _LENGTHS[leg - 1]
        for part, length, mass in zip(("near", "far"), (near, far), _MASSES[leg - 1], strict=True):
            b.body(f"{part}{leg}", mass, (0.5 * length, 0.0, 0.0), rod(mass, length))
        b.revolute(f"drive{leg}", "world", f"near{leg}", "z", (foot, 0.0, 0.0))
        b.revolute(f"elbow{leg}", f"near{leg}", f"far{leg}", "z", (near, 0.0, 0.0), actuated=False)
        b.frame(f"tip{leg}", f"far{leg}", (far, 0.0, 0.0))
    kind = planar_closure(closure, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), "five_bar")
    return b.loop("tip1", "tip2", kind, name="meeting").build()


def five_bar_start(
    *,
    base: float = 1.2,
    closure: str | JointKind = "revolute",
    angles: tuple[float, float] = (radians(80.0), radians(70.0)),
    assembly: str = "below",
) -> np.ndarray:
    """Return q (4,): drive and elbow of leg 1, of leg 2, at the actuated angles [rad].

    angles: those of the text's free fall by default

    assembly: the legs meet "below" or "above" the line of the elbows [Saha, eq. 36]
    """
    if assembly not in _SIDES:
        raise InputError(f"five_bar: there is no assembly {assembly!r}; {nearest(assembly, _SIDES)}")
    feet = (0.0, base)
    first, second = (
        (foot + near * cos(angle), near * sin(angle))
        for foot, (near, _), angle in zip(feet, _LENGTHS, angles, strict=True)
    )
    tip = crossing(first, _LENGTHS[0][1], second, _LENGTHS[1][1], _SIDES[assembly], "five_bar")
    elbows = [direction(elbow, tip) - angle for elbow, angle in zip((first, second), angles, strict=True)]
    return np.array((angles[0], elbows[0], angles[1], elbows[1]))


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
    b.loop("crank_tip", "coupler_foot", kind, name="crank_pin")
    b.loop("rod_tip", "coupler_tip", kind, name="rod_pin")
    b.loop("link_tip", "coupler_tip", kind, name="link_pin")
    return b.build()


def carpet_scraper_start(
    *, closure: str | JointKind = "revolute", angle: float = 0.0, assembly: str = "left"
) -> np.ndarray:
    """Return q (7,): rocker, coupler, crank, arm, beam, link, rod at a crank angle [rad].

    assembly: the branch of the pantograph's arm is "left" or "right" of the line from its post to the coupler
    """
    if assembly not in _SCRAPER_SIDES:
        raise InputError(f"carpet_scraper: there is no assembly {assembly!r}; {nearest(assembly, _SCRAPER_SIDES)}")
    pin: Point = (_CRANK * cos(angle), _CRANK * sin(angle))
    middle = crossing(pin, _HALF, _SUPPORT, _ROCKER, -1, "carpet_scraper")
    tip: Point = (2.0 * middle[0] - pin[0], 2.0 * middle[1] - pin[1])
    branch = crossing(_POST, _BRANCH, tip, _SIDE, _SCRAPER_SIDES[assembly], "carpet_scraper")
    rocker, coupler = direction(_SUPPORT, middle), direction(pin, middle)
    arm, rod = direction(_POST, branch), direction(branch, tip)
    # the pantograph is a parallelogram: the beam is parallel to the rod, the link to the arm
    return np.array((rocker, coupler - rocker, angle, arm, rod - arm, arm + np.pi - rod, rod - arm))
