"""The flyball governor: two balls that lift a sleeve as the spindle turns faster."""

from __future__ import annotations

from math import cos, pi

import numpy as np

from spanloop.joints import Revolute
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.model.shapes import ball as full_ball
from spanloop.model.shapes import cylinder, rod

_EDGE = 0.04  # m, of the hinges from the axis, on the spindle and on the sleeve
_BAR, _RADIUS = 0.2, 0.04  # kg, of an arm and of a rod; m, of a ball
_PASSIVE = {"actuated": False}


def flyball_governor(
    *, arm: float = 0.3, ball: float = 1.0, sleeve: float = 2.0, stiffness: float = 0.0, damping: float = 0.0
) -> Model:
    """An actuated spindle along z, two arms [m] on it with balls [kg], and rods of their length down to a sleeve [kg].

    Mobility 2: the spindle's angle and the sleeve's height. stiffness [N/m] and damping [N s/m] are the sleeve's,
    whose spring rests with the arms down. At neutral, arms and rods hang straight down.
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
            b.body(f"{side}_{part}", _BAR, (0.0, 0.0, -0.5 * arm), rod(_BAR, arm, "z"))
        b.body(f"{side}_ball", ball, inertia=full_ball(ball, _RADIUS))
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
    """q (6,): spindle, sleeve, then arm and rod of each side, with the arms raised by an angle [rad]."""
    return np.array((turn, 2.0 * arm * (1.0 - cos(angle)), angle, -2.0 * angle, angle, -2.0 * angle))
