"""Platforms on several legs: the Stewart platform and the Delta robot."""

from __future__ import annotations

from math import asin, atan2, cos, pi, radians, sin

import numpy as np

from spanloop.math import quaternion
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.model.solid_inertia import box, cylinder
from spanloop.types import Floats3
from spanloop.zoo.plane_geometry import angle_with

_PASSIVE: dict[str, bool] = {"actuated": False}

# Stewart platform: radius [m] and angles [rad] of the joints on the ground and on the platform
_GROUND, _PLATFORM = 1.0, 0.6
_GROUND_ANGLES = tuple(map(radians, (-10, 10, 110, 130, 230, 250)))
_PLATFORM_ANGLES = tuple(map(radians, (-50, 50, 70, 170, 190, 290)))

# Delta robot [m]: radius of the motors' and of the platform's joints, arm, rod, distance of the two rods of an arm
_MOTORS, _WRIST, _ARM, _ROD, _PAIR = 0.2, 0.06, 0.3, 0.65, 0.1


def stewart() -> Model:
    """A platform of 10 kg on six legs: universal joint on the ground, actuated slide, ball joint at the platform.

    Mobility 6. Each ball joint closes a loop; at neutral, legs and slides are along z. x, y, z of the platform's
    frame are those of the world when it is level.
    """
    b = Builder("stewart")
    b.body("platform", 10.0, inertia=cylinder(10.0, _PLATFORM, 0.06))
    b.free("floating", "world", "platform")
    for i, (foot, joint) in enumerate(_stewart_points(), 1):
        b.body(f"cylinder{i}", 1.0, (0.0, 0.0, 0.3), cylinder(1.0, 0.04, 0.6))
        b.body(f"piston{i}", 0.7, (0.0, 0.0, -0.3), cylinder(0.7, 0.02, 0.6))
        b.universal(f"cardan{i}", "world", f"cylinder{i}", "x", "y", foot, **_PASSIVE)
        b.prismatic(f"slide{i}", f"cylinder{i}", f"piston{i}", "z")
        b.frame(f"corner{i}", "platform", joint)
        b.loop(f"piston{i}", f"corner{i}", "spherical", name=f"ball{i}")
    return b.build()


def stewart_start(*, position: Floats3 = (0.03, -0.02, 1.2), turn: Floats3 = (0.1, -0.07, 0.0)) -> np.ndarray:
    """Return q (25,) with the platform at a position [m], turned by a rotation vector [rad]."""
    e = quaternion.exponential((float(turn[0]), float(turn[1]), float(turn[2])))
    rotation = np.array(quaternion.matrix(e), dtype=float)
    q = [*e, *position]
    for foot, joint in _stewart_points():
        leg = np.array(position) + rotation @ joint - foot
        length = float(np.linalg.norm(leg))
        x, y, z = leg
        q += [atan2(-y, z), asin(x / length), length]
    return np.array(q)


def _stewart_points() -> list[tuple[np.ndarray, np.ndarray]]:
    """The joints of each leg: on the ground, and in the platform's frame."""
    return [
        (_GROUND * np.array((cos(a), sin(a), 0.0)), _PLATFORM * np.array((cos(c), sin(c), 0.0)))
        for a, c in zip(_GROUND_ANGLES, _PLATFORM_ANGLES, strict=True)
    ]


def delta() -> Model:
    """Three actuated arms, each with two parallel rods to a platform that moves without turning. Mobility 3.

    The motors look down (z up); at neutral the arms are level and point outward. A rod has a universal joint at the
    arm, whose axes are both across it, and a ball joint at the platform, which closes a loop: it cannot spin idly.
    The six ball joints' 18 rows are independent.
    """
    b = Builder("delta")
    b.body("platform", 0.4, inertia=cylinder(0.4, _WRIST, 0.02))
    b.free("floating", "world", "platform")
    for i in (1, 2, 3):
        turn = (0.0, 0.0, _arm_angle(i))
        b.body(f"arm{i}", 0.5, (0.5 * _ARM, 0.0, 0.0), box(0.5, _ARM, 0.04, 0.03))
        b.revolute(f"motor{i}", "world", f"arm{i}", "y", _outward(_MOTORS, i), turn, armature=0.002)
        for side, y in (("left", 0.5 * _PAIR), ("right", -0.5 * _PAIR)):
            rod = f"{side}_rod{i}"
            b.body(rod, 0.08, (0.0, 0.0, -0.5 * _ROD), cylinder(0.08, 0.005, _ROD))
            b.universal(f"{side}_cardan{i}", f"arm{i}", rod, "y", "x", (_ARM, y, 0.0), **_PASSIVE)
            b.frame(f"{rod}_tip", rod, (0.0, 0.0, -_ROD))
            b.frame(f"{side}_corner{i}", "platform", _outward(_WRIST, i, y))
            b.loop(f"{rod}_tip", f"{side}_corner{i}", "spherical", name=f"{side}_ball{i}")
    return b.build()


def delta_start(*, position: Floats3 = (0.05, -0.03, -0.6)) -> np.ndarray:
    """Return q (22,) with the platform at a position [m]; the arms' elbows are outside."""
    q = [*quaternion.IDENTITY, *position]
    for i in (1, 2, 3):
        c, s = cos(_arm_angle(i)), sin(_arm_angle(i))
        x, y, z = (c * position[0] + s * position[1], c * position[1] - s * position[0], position[2])
        x += _WRIST - _MOTORS
        arm, first, second = _delta_arm(x, y, z)
        q += [arm, first, second, first, second]
    return np.array(q)


def _delta_arm(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Angles of an arm and of its rods that reach a point, seen from the motor with the arm's plane as x z.

    |(x, y, z) − arm (cos θ, 0, −sin θ)| = rod, which is 2 arm (x cos θ − z sin θ) = x² + y² + z² + arm² − rod².
    """
    square = x * x + y * y + z * z + _ARM * _ARM - _ROD * _ROD
    arm = angle_with(2.0 * _ARM * x, -2.0 * _ARM * z, square, -1, "delta")
    x, z = x - _ARM * cos(arm), z + _ARM * sin(arm)
    return arm, atan2(-x, -z) - arm, asin(y / _ROD)


def _arm_angle(i: int) -> float:
    return 2.0 * pi * (i - 1) / 3.0


def _outward(radius: float, i: int, across: float = 0.0) -> Floats3:
    """The point at a radius in the direction of arm i, moved across that direction."""
    c, s = cos(_arm_angle(i)), sin(_arm_angle(i))
    return (radius * c - across * s, radius * s + across * c, 0.0)
