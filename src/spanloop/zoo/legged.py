"""Legged machines: a leg whose ankle two rods drive, a hexapod on its feet, a quadruped."""

from __future__ import annotations

from math import acos, asin, atan2, cos, hypot, pi, sin

import numpy as np

from spanloop.errors import InputError
from spanloop.math import quaternion
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.model.solid_inertia import box, cylinder
from spanloop.types import Floats3
from spanloop.zoo.plane_geometry import angle_with

_PASSIVE: dict[str, bool] = {"actuated": False}

# linkage leg [m]: shank, crank, rod; height of the cranks below the knee; half the distance of the two cranks
_SHANK, _CRANK, _ROD, _DROP, _HALF = 0.4, 0.05, 0.3, 0.1, 0.04

# hexapod [m]: hips from the middle, links of a leg, footholds from the middle
_BODY, _COXA, _FEMUR, _TIBIA, _STANCE = 0.15, 0.06, 0.12, 0.18, 0.34

_LIMB = 0.22  # m, thigh and shank of the quadruped


def linkage_leg() -> Model:
    """A shank that hangs from its knee, with a foot on a universal joint that two rods pull from cranks above.

    x forward, y left, z up; the crank's motors sit on the shank, left and right. With the cranks at 0 the foot is
    level, cranks point backward and rods down. A rod has a universal joint at its crank, with both axes across it, and
    a ball joint at the heel, which closes a loop. Mobility 3: the knee, and pitch and roll of the ankle.
    """
    b = Builder("linkage_leg")
    b.body("shank", 2.5, (0.0, 0.0, -0.45 * _SHANK), cylinder(2.5, 0.04, _SHANK))
    b.body("foot", 0.8, (0.04, 0.0, -0.04), box(0.8, 0.22, 0.1, 0.05))
    b.revolute("knee", "world", "shank", "y")
    b.universal("ankle", "shank", "foot", "y", "x", (0.0, 0.0, -_SHANK), **_PASSIVE)
    for side, y in (("left", _HALF), ("right", -_HALF)):
        b.body(f"{side}_crank", 0.1, (-0.5 * _CRANK, 0.0, 0.0), box(0.1, _CRANK, 0.01, 0.015))
        b.body(f"{side}_rod", 0.08, (0.0, 0.0, -0.5 * _ROD), cylinder(0.08, 0.004, _ROD))
        b.revolute(f"{side}_motor", "shank", f"{side}_crank", "y", (0.0, y, -_DROP), armature=0.01)
        b.universal(f"{side}_cardan", f"{side}_crank", f"{side}_rod", "y", "x", (-_CRANK, 0.0, 0.0), **_PASSIVE)
        b.frame(f"{side}_rod_tip", f"{side}_rod", (0.0, 0.0, -_ROD))
        b.frame(f"{side}_heel", "foot", (-_CRANK, y, 0.0))
        b.loop(f"{side}_rod_tip", f"{side}_heel", "spherical", name=f"{side}_ball")
    return b.frame("sole", "foot", (0.04, 0.0, -0.065)).build()


def linkage_leg_start(*, knee: float = 0.3, pitch: float = 0.15, roll: float = -0.1) -> np.ndarray:
    """Return q (9,): knee, ankle, then motor and rod of the left and of the right side, at these angles [rad]."""
    q = [knee, pitch, roll]
    for y in (_HALF, -_HALF):
        # the heel Ry(pitch) Rx(roll) (−crank, y, 0) on the ankle, seen from the motor
        x = -_CRANK * cos(pitch) + y * sin(pitch) * sin(roll)
        z = _CRANK * sin(pitch) + y * cos(pitch) * sin(roll) - _SHANK + _DROP
        across = y * cos(roll) - y
        # crank (−cos θ, sin θ) in x and z: |heel − crank|² = rod²
        square = 0.5 * (x * x + across * across + z * z + _CRANK * _CRANK - _ROD * _ROD)
        motor = angle_with(-_CRANK * x, _CRANK * z, square, 1, "linkage_leg")
        x, z = x + _CRANK * cos(motor), z - _CRANK * sin(motor)
        q += [motor, atan2(-x, -z) - motor, asin(across / _ROD)]
    return np.array(q)


def hexapod(*, switchable: bool = False) -> Model:
    """A free body on six legs of three hinges, whose feet stand on the ground in ball joints. Mobility 6.

    x forward, y left, z up; legs at 30°, 90°, ... around the body, numbered counter-clockwise; at neutral they point
    outward, level and stretched. switchable: active_loops= selects the feet that stand.
    """
    b = Builder("hexapod")
    b.body("body", 3.0, (0.0, 0.0, 0.01), cylinder(3.0, _BODY, 0.06))
    b.free("floating", "world", "body")
    for i in range(1, 7):
        a = _leg_angle(i)
        b.body(f"coxa{i}", 0.15, (0.5 * _COXA, 0.0, 0.0), box(0.15, _COXA, 0.03, 0.04))
        b.body(f"femur{i}", 0.2, (0.5 * _FEMUR, 0.0, 0.0), box(0.2, _FEMUR, 0.025, 0.04))
        b.body(f"tibia{i}", 0.12, (0.45 * _TIBIA, 0.0, 0.0), cylinder(0.12, 0.01, _TIBIA, "x"))
        b.revolute(f"yaw{i}", "body", f"coxa{i}", "z", (_BODY * cos(a), _BODY * sin(a), 0.0), (0.0, 0.0, a))
        b.revolute(f"hip{i}", f"coxa{i}", f"femur{i}", "y", (_COXA, 0.0, 0.0))
        b.revolute(f"knee{i}", f"femur{i}", f"tibia{i}", "y", (_FEMUR, 0.0, 0.0))
        b.frame(f"foot{i}", f"tibia{i}", (_TIBIA, 0.0, 0.0))
        b.frame(f"foothold{i}", "world", (_STANCE * cos(a), _STANCE * sin(a), 0.0))
        b.loop(f"foothold{i}", f"foot{i}", "spherical", name=f"standing{i}", switchable=switchable)
    return b.build()


def hexapod_start(
    *,
    switchable: bool = False,
    position: Floats3 = (0.01, -0.015, 0.12),
    turn: Floats3 = (0.03, -0.05, 0.08),
) -> np.ndarray:
    """Return q (25,) with the body at a position [m], turned by a rotation vector [rad], knees up."""
    e = quaternion.exponential((float(turn[0]), float(turn[1]), float(turn[2])))
    rotation = np.array(quaternion.matrix(e), dtype=float)
    q = [*e, *position]
    for i in range(1, 7):
        a = _leg_angle(i)
        foothold = np.array((_STANCE * cos(a), _STANCE * sin(a), 0.0))
        x, y, z = rotation.T @ (foothold - position) - np.array((_BODY * cos(a), _BODY * sin(a), 0.0))
        q += _leg_angles(cos(a) * x + sin(a) * y, cos(a) * y - sin(a) * x, z, i)
    return np.array(q)


def _leg_angles(x: float, y: float, z: float, leg: int) -> list[float]:
    """Yaw, hip and knee with which a leg reaches a point, seen from its first hinge; angles about y turn x downward."""
    out = hypot(x, y) - _COXA
    reach = hypot(out, z)
    if not abs(_FEMUR - _TIBIA) < reach < _FEMUR + _TIBIA:
        raise InputError(f"hexapod: leg {leg} cannot reach its foothold, {reach:g} m away; try a position nearer to it")
    knee = pi - acos((_FEMUR**2 + _TIBIA**2 - reach**2) / (2.0 * _FEMUR * _TIBIA))
    inside = acos((_FEMUR**2 + reach**2 - _TIBIA**2) / (2.0 * _FEMUR * reach))
    return [atan2(y, x), atan2(-z, out) - inside, knee]


def _leg_angle(i: int) -> float:
    return pi / 6.0 + (i - 1) * pi / 3.0


def quadruped() -> Model:
    """A trunk of 12 kg on four legs with three hinges each: hip sideways (x), hip forward (y), knee (y).

    x forward, y left, z up; at neutral the legs are straight. Frame "<leg>_foot" is the foot's centre. The
    numbers are our own, of the size of a small walking robot.
    """
    b = Builder("quadruped")
    b.body("trunk", 12.0, (0.01, 0.0, 0.005), box(12.0, 0.45, 0.2, 0.12))
    b.free("root", "world", "trunk")
    for leg, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("hl", -0.2, 0.1), ("hr", -0.2, -0.1)):
        _add_leg(b, leg, x, y)
    return b.build()


def quadruped_start(*, height: float = 0.35, foot: float = 0.02) -> np.ndarray:
    """Return q (19,): the trunk at a height [m], each foot's centre under its hip, `foot` above z = 0 [m]."""
    reach = (height - foot) / (2.0 * _LIMB)
    if not 0.0 < reach < 1.0:
        raise InputError(f"quadruped: height is {height:g} m; expected {foot:g} to {foot + 2.0 * _LIMB:g} m")
    bend = acos(reach)
    return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, height, *(0.0, bend, -2.0 * bend) * 4])


def _add_leg(b: Builder, leg: str, x: float, y: float) -> None:
    out = 0.08 if y > 0.0 else -0.08
    b.body(f"{leg}_hip", 0.7, (0.0, 0.25 * out, 0.0), cylinder(0.7, 0.045, 0.08, "y"))
    b.body(f"{leg}_thigh", 1.1, (0.0, 0.0, -0.09), box(1.1, 0.05, 0.04, 0.24))
    b.body(f"{leg}_shank", 0.25, (0.0, 0.0, -0.1), cylinder(0.25, 0.012, 0.22))
    losses = {"damping": 0.02, "armature": 0.004}
    b.revolute(f"{leg}_roll", "trunk", f"{leg}_hip", "x", (x, y, 0.0), lower=-0.8, upper=0.8, **losses)
    b.revolute(f"{leg}_pitch", f"{leg}_hip", f"{leg}_thigh", "y", (0.0, out, 0.0), lower=-2.0, upper=2.0, **losses)
    b.revolute(f"{leg}_knee", f"{leg}_thigh", f"{leg}_shank", "y", (0.0, 0.0, -_LIMB), lower=-2.6, upper=0.1, **losses)
    b.frame(f"{leg}_foot", f"{leg}_shank", (0.0, 0.0, -_LIMB))
