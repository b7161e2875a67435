"""Linkages: four-bars alone and in series, the slider-crank, Bricard's ring, the flyball governor.

Four-bars and slider-crank lie in the plane of x and z, the hinges along −y: an angle turns x toward z. A hinge that
closes a plane loop has five rows, of which two are independent; `closure` may also be "cylindrical", "universal",
"spherical" or a kind of joint. The starts take the arguments of their mechanism, and further ones that choose the
position.
"""

from __future__ import annotations

from dataclasses import replace
from math import acos, asin, cos, pi, sin
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind, Revolute
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.model.parts import Loop, Placement
from spanloop.model.solid_inertia import ball as full_ball
from spanloop.model.solid_inertia import box, cylinder
from spanloop.model.solid_inertia import rod as thin_rod
from spanloop.zoo.plane_geometry import Point, crossing, direction, planar_closure

_AXIS = (0.0, -1.0, 0.0)
_SECOND = (1.0, 0.0, 0.0)
_RADIUS = 0.05  # m, of the round bars
_EDGE = 0.04  # m, of the governor's hinges from the axis, on the spindle and on the sleeve
_BAR, _BALL = 0.2, 0.04  # kg, of an arm and of a rod of the governor; m, radius of a ball
_PASSIVE: dict[str, bool] = {"actuated": False}
_SIDES = {"open": 1, "crossed": -1}


def four_bar(
    *,
    ground: float = 2.0,
    crank: float = 1.0,
    coupler: float = 2.2,
    rocker: float = 1.8,
    closure: str | JointKind = "revolute",
) -> Model:
    """Three bars of 1 kg and the ground in a loop that coupler and rocker close; the crank is actuated.

    Mobility 1. ground, crank, coupler, rocker: lengths [m]; the rocker's support is on the x axis. closure: the joint
    that closes the loop.
    """
    b = Builder("four_bar")
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        _add_bar(b, name, length)
    _add_hinge(b, "crank_hinge", "world", "crank", 0.0, actuated=True)
    _add_hinge(b, "coupler_hinge", "crank", "coupler", crank)
    _add_hinge(b, "rocker_hinge", "world", "rocker", ground)
    _add_tip(b, "coupler", coupler)
    _add_tip(b, "rocker", rocker)
    return b.loop("coupler_tip", "rocker_tip", _closure(closure, "four_bar"), name="closing").build()


def four_bar_start(
    *,
    ground: float = 2.0,
    crank: float = 1.0,
    coupler: float = 2.2,
    rocker: float = 1.8,
    closure: str | JointKind = "revolute",
    angle: float = pi / 3,
    assembly: str = "open",
) -> np.ndarray:
    """Return q (3,): crank, coupler, rocker at a crank angle [rad]; "open", or "crossed" with the rocker mirrored."""
    if assembly not in _SIDES:
        raise InputError(f"four_bar: there is no assembly {assembly!r}; {nearest(assembly, _SIDES)}")
    return np.array(_four_bar_angles(ground, crank, coupler, rocker, angle, _SIDES[assembly], "four_bar"))


def n_four_bar(
    k: int,
    *,
    ground: float = 0.25,
    crank: float = 0.3,
    coupler: float = 0.25,
    rocker: float = 0.32,
    closure: str | JointKind = "revolute",
) -> Model:
    """k four-bars in series: the coupler of one is the ground of the next. Mobility k; 3 k bars of 1 kg."""
    _at_least_one_loop(k)
    b = Builder(f"n_four_bar{k}")
    kind = _closure(closure, "n_four_bar")
    tips = Placement(position=(coupler, 0.0, 0.0)), Placement(position=(rocker, 0.0, 0.0))
    base = "world"
    for i in range(1, k + 1):
        bars = (f"rocker{i}", f"crank{i}", f"coupler{i}")
        for bar, length in zip(bars, (rocker, crank, coupler), strict=True):
            _add_bar(b, bar, length)
        _add_hinge(b, f"rocker_hinge{i}", base, f"rocker{i}", ground)
        _add_hinge(b, f"crank_hinge{i}", base, f"crank{i}", 0.0, actuated=True)
        _add_hinge(b, f"coupler_hinge{i}", f"crank{i}", f"coupler{i}", crank)
        base = f"coupler{i}"
    loops = tuple(Loop(f"closing{i}", kind, f"coupler{i}", f"rocker{i}", *tips) for i in range(1, k + 1))
    return replace(b.build(), loops=loops)


def n_four_bar_start(
    k: int,
    *,
    ground: float = 0.25,
    crank: float = 0.3,
    coupler: float = 0.25,
    rocker: float = 0.32,
    closure: str | JointKind = "revolute",
    angle: float = 1.6,
) -> np.ndarray:
    """Return q (3 k,): rocker, crank, coupler of each loop; the crank angles [rad] sway by 0.25 around `angle`."""
    _at_least_one_loop(k)
    q = []
    for i in range(k):
        here = angle + 0.25 * sin(i)
        first, second, third = _four_bar_angles(ground, crank, coupler, rocker, here, 1, "n_four_bar")
        q += [third, first, second]
    return np.array(q)


def slider_crank(
    *, crank: float = 0.1, rod: float = 0.3, offset: float = 0.0, closure: str | JointKind = "revolute"
) -> Model:
    """A crank, a connecting rod and a piston that slides along x, `offset` above the crank's hinge. Mobility 1."""
    b = Builder("slider_crank")
    b.body("crank", 1.5, (0.3 * crank, 0.0, 0.0), box(1.5, crank, 0.04, 0.05))
    b.body("rod", 0.6, (0.4 * rod, 0.0, 0.0), cylinder(0.6, 0.01, rod, "x"))
    b.body("piston", 0.5, inertia=cylinder(0.5, 0.04, 0.06, "x"))
    _add_hinge(b, "crank_hinge", "world", "crank", 0.0, actuated=True)
    _add_hinge(b, "crank_pin", "crank", "rod", crank)
    b.prismatic("slide", "world", "piston", "x", (0.0, 0.0, offset), **_PASSIVE)
    _add_tip(b, "rod", rod)
    return b.loop("rod_tip", "piston", _closure(closure, "slider_crank"), name="piston_pin").build()


def slider_crank_start(
    *,
    crank: float = 0.1,
    rod: float = 0.3,
    offset: float = 0.0,
    closure: str | JointKind = "revolute",
    angle: float = 0.7,
) -> np.ndarray:
    """Return q (3,): crank angle [rad], rod angle [rad] against the crank, piston position [m]."""
    rise = offset - crank * sin(angle)
    if not abs(rise) < rod:
        raise InputError(f"slider_crank: a rod of {rod:g} m cannot reach the slide, {abs(rise):g} m away")
    tilt = asin(rise / rod)
    return np.array((angle, tilt - angle, crank * cos(angle) + rod * cos(tilt)))


def _add_bar(b: Builder, name: str, length: float) -> None:
    b.body(name, 1.0, (0.5 * length, 0.0, 0.0), cylinder(1.0, _RADIUS, length, "x"))


def _add_hinge(b: Builder, name: str, parent: str, child: str, x: float, *, actuated: bool = False) -> None:
    """A hinge at a distance x along the parent's bar."""
    b.revolute(name, parent, child, _AXIS, (x, 0.0, 0.0), actuated=actuated)


def _add_tip(b: Builder, body: str, length: float) -> None:
    b.frame(f"{body}_tip", body, (length, 0.0, 0.0))


def _closure(closure: str | JointKind, owner: str) -> JointKind:
    return planar_closure(closure, _AXIS, _SECOND, owner)


def _four_bar_angles(
    ground: float, crank: float, coupler: float, rocker: float, angle: float, side: int, owner: str
) -> tuple[float, float, float]:
    """Angles of crank, coupler against crank, rocker; with side = 1 the rocker's tip is left of elbow to support."""
    elbow: Point = (crank * cos(angle), crank * sin(angle))
    support: Point = (ground, 0.0)
    tip = crossing(elbow, coupler, support, rocker, side, owner)
    return angle, direction(elbow, tip) - angle, direction(support, tip)


def _at_least_one_loop(k: int) -> None:
    if k < 1:
        raise InputError(f"zoo: n_four_bar: {k} loops are asked for; expected at least 1")


def bricard(*, length: float = 0.4) -> Model:
    """Six equal bars in a ring, each with its two hinges square to it and to each other. Mobility 1.

    By the count of its joints a ring of six hinges cannot move; this one, Bricard's trihedral linkage with equal sides,
    has one DoF in every position: link lengths a, twists ±π/2 in turn, no offsets. The first five hinges make the tree,
    the last one closes it with all its five rows, of which four are independent. One bar is the ground.
    """
    b = Builder("bricard")
    parent, place = "world", dict[str, Any]()
    for i in range(1, 6):
        b.body(f"bar{i}", 0.5, (0.5 * length, 0.0, 0.0), cylinder(0.5, 0.02, length, "x"))
        b.revolute(f"hinge{i}", parent, f"bar{i}", "z", actuated=i == 1, **place)
        parent = f"bar{i}"
        place = {"position": (length, 0.0, 0.0), "rotation": (_twist(i), 0.0, 0.0)}
    b.frame("last_end", "bar5", **place)
    b.frame("ground_end", "world", (-length, 0.0, 0.0), (-_twist(6), 0.0, 0.0))
    return b.loop("last_end", "ground_end", Revolute(), name="hinge6").build()


def bricard_start(*, length: float = 0.4, angle: float = 1.9) -> np.ndarray:
    """Return q (5,): hinges 1, 3, 5 are at `angle` θ [rad], 2, 4 and 6 at φ with cos θ + cos φ + cos θ cos φ = 0."""
    c = cos(angle)
    if not -0.5 <= c <= 1.0:
        raise InputError(f"bricard: angle is {angle:g} rad; the ring closes up to {2.0 * pi / 3.0:g} rad")
    other = acos(-c / (1.0 + c))
    return np.array((angle, other, angle, other, angle))


def _twist(i: int) -> float:
    return 0.5 * pi if i % 2 else -0.5 * pi


def flyball_governor(
    *, arm: float = 0.3, ball: float = 1.0, sleeve: float = 2.0, stiffness: float = 0.0, damping: float = 0.0
) -> Model:
    """The flyball governor: two balls that lift a sleeve as the spindle turns faster. Mobility 2.

    arm: length of the two arms and of the rods below them [m]; ball, sleeve: masses [kg]; stiffness [N/m], damping
    [N s/m]: of the sleeve, whose spring rests with the arms down. The spindle is along z and actuated; its angle and
    the sleeve's height determine the state. At neutral, arms and rods hang straight down.
    """
    b = Builder("flyball_governor")
    b.body("spindle", 3.0, (0.0, 0.0, -arm), cylinder(3.0, 0.02, 2.0 * arm))
    b.body("sleeve", sleeve, inertia=cylinder(sleeve, _EDGE, 0.05))
    b.revolute("spindle_hinge", "world", "spindle", "z")
    low, losses = (0.0, 0.0, -2.0 * arm), {"stiffness": stiffness, "damping": damping}
    b.prismatic("sleeve_slide", "spindle", "sleeve", "z", low, **losses, **_PASSIVE)
    for side, x, turn in (("right", _EDGE, (0.0, 0.0, 0.0)), ("left", -_EDGE, (0.0, 0.0, pi))):
        tip = (0.0, 0.0, -arm)
        for part in ("arm", "rod"):
            b.body(f"{side}_{part}", _BAR, (0.0, 0.0, -0.5 * arm), thin_rod(_BAR, arm, "z"))
        b.body(f"{side}_ball", ball, inertia=full_ball(ball, _BALL))
        b.revolute(f"{side}_arm_hinge", "spindle", f"{side}_arm", "-y", (x, 0.0, 0.0), turn, **_PASSIVE)
        b.fixed(f"{side}_ball_weld", f"{side}_arm", f"{side}_ball", tip)
        b.revolute(f"{side}_rod_hinge", f"{side}_arm", f"{side}_rod", "-y", tip, **_PASSIVE)
        b.frame(f"{side}_rod_tip", f"{side}_rod", tip).frame(f"{side}_ear", "sleeve", (x, 0.0, 0.0), turn)
        b.loop(f"{side}_rod_tip", f"{side}_ear", Revolute((0.0, -1.0, 0.0)), name=f"{side}_pin")
    return b.build()


def flyball_governor_start(
    *,
    arm: float = 0.3,
    ball: float = 1.0,
    sleeve: float = 2.0,
    stiffness: float = 0.0,
    damping: float = 0.0,
    angle: float = 0.7,
    turn: float = 0.0,
) -> np.ndarray:
    """Return q (6,): spindle, sleeve, then arm and rod of each side, with the arms raised by an angle [rad]."""
    return np.array((turn, 2.0 * arm * (1.0 - cos(angle)), angle, -2.0 * angle, angle, -2.0 * angle))
