"""The linkage walker: eight of Jansen's legs that one crankshaft moves.

A leg lies in a plane along x and z. Seen from the shaft, x' points away from it (forward for the front legs, backward
for the rear ones):

    A  pin of the crank           J  A to C     upper rod
    B  support on the trunk       K  A to D     lower rod
    C, E  corners of the thigh    F  E to G     rear rod
    D  knee, at the end of the hanger from B
    G, foot  corners of the shank, which hangs from D

The lengths are Jansen's "holy numbers" [Jansen2007], in units of `unit` metres.
"""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from spanloop.errors import InputError
from spanloop.joints import Distance, PointOnLine
from spanloop.math.rotation import toward
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.model.parts import Geometry, Placement
from spanloop.model.solid_inertia import box, cylinder
from spanloop.types import Floats3
from spanloop.zoo.plane_geometry import Point, crossing, direction

# B from the shaft, along x' and down; the crank; the sides of the thigh (BC, BE, CE), of the shank (DG, D foot, G foot)
_SUPPORT, _CRANK, _THIGH, _SHANK = (38.0, -7.8), 15.0, (41.5, 40.1, 55.8), (36.7, 49.0, 65.7)
_HANGER, _UPPER, _LOWER, _REAR = 39.3, 50.0, 61.9, 39.4  # BD, AC, AD, EG

# y [m] and phase [rad] of the four cranks: a front leg and a rear one stand at a time, on opposite sides
_TRACKS = ((0.2, 0.0), (0.1, 0.5 * pi), (-0.1, 1.5 * pi), (-0.2, pi))
_TRUNK, _ARM, _BAR = 3.0, 0.1, 0.4  # kg of the trunk and of a crank, kg/m of bars
_AXIS = (0.0, -1.0, 0.0)  # turns x toward z
_PASSIVE: dict[str, bool] = {"actuated": False}
_NAME = "linkage_walker"


def linkage_walker(*, unit: float = 0.005, massless_rods: bool = False) -> Model:
    """A trunk on eight of Theo Jansen's legs, in four planes, which one crankshaft moves. Mobility 7 in the air.

    x forward, y left, z up; legs 1, 3, 5, 7 are in front, 2, 4, 6, 8 behind, from left to right. The shaft has four
    cranks a quarter of a turn apart, held together by couplings; the motor is at `crank1`, which turns as a wheel does:
    forward is positive. A leg has a thigh, a hanger, a shank and three rods, in three loops, which pins close with two
    rows each (sl.joints.PointOnLine): no row is redundant. Frames "leg1_foot" to "leg8_foot" are its feet.

    unit: length of Jansen's unit [m]; massless_rods: rods have no mass, and a distance closes each loop with one row.
    """
    if not unit > 0.0:
        raise InputError(f"{_NAME}: unit is {unit:g} m; must be > 0")
    b = Builder(_NAME)
    b.body("trunk", _TRUNK, (0.0, 0.0, 0.0), box(_TRUNK, 80.0 * unit, 0.4, 0.04), _frame_shapes(unit))
    b.free("root", "world", "trunk")
    for i, (y, _) in enumerate(_TRACKS, start=1):
        shape = _shape(np.zeros(3), np.array(_crank_pin(i, unit)))
        b.body(f"arm{i}", _ARM, inertia=cylinder(_ARM, _CRANK * unit, 0.02, "y"), geometry=[shape])
        b.revolute(f"crank{i}", "trunk", f"arm{i}", "y", (0.0, y, 0.0), actuated=i == 1)
        for leg, heading in ((2 * i - 1, 0.0), (2 * i, pi)):
            _add_leg(b, f"leg{leg}", i, heading, unit, massless_rods)
    for i in (2, 3, 4):
        b.coupling(f"shaft{i}", f"crank{i}", "crank1")
    return b.build()


def linkage_walker_start(
    *, unit: float = 0.005, massless_rods: bool = False, angle: float = 0.0, clearance: float = 0.0
) -> np.ndarray:
    """Return q (59,), or (35,) with massless rods: level, at an angle [rad] of the shaft.

    clearance: height of the lowest foot above z = 0 [m].
    """
    q, feet = list[float](), list[float]()
    for _, phase in _TRACKS:
        q.append(angle)
        for heading in (1.0, -1.0):  # seen from the rear legs, the shaft turns the other way
            turn = phase - angle if heading > 0.0 else pi - phase + angle
            (hip, swing, knee), (upper, lower, rear), foot = _leg_angles(turn)
            q += (hip, swing, knee) if massless_rods else (hip, upper, rear, swing, knee, lower)
            feet.append(foot[1])
    return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, clearance - unit * min(feet), *q])


def _add_leg(b: Builder, leg: str, i: int, heading: float, unit: float, massless_rods: bool) -> None:
    """Thigh and hanger at the support, shank at the knee; then what ties them to the crank and to each other."""
    toward, turned = cos(heading), (0.0, 0.0, heading)
    support = (_SUPPORT[0] * unit * toward, _TRACKS[i - 1][0], _SUPPORT[1] * unit)
    top, back = _add_triangle(b, f"{leg}_thigh", _THIGH, unit)
    tail, foot = _add_triangle(b, f"{leg}_shank", _SHANK, unit)
    _add_bar(b, f"{leg}_hanger", _HANGER * unit)
    knee = (_HANGER * unit, 0.0, 0.0)
    b.revolute(f"{leg}_hip", "trunk", f"{leg}_thigh", _AXIS, support, turned, **_PASSIVE)
    b.revolute(f"{leg}_swing", "trunk", f"{leg}_hanger", _AXIS, support, turned, **_PASSIVE)
    b.revolute(f"{leg}_knee", f"{leg}_hanger", f"{leg}_shank", _AXIS, knee, **_PASSIVE)
    b.frame(f"{leg}_foot", f"{leg}_shank", foot).frame(f"{leg}_tail", f"{leg}_shank", tail)
    pin = _crank_pin(i, unit)
    b.frame(f"{leg}_pin", f"arm{i}", pin, turned)
    rods = (
        ("upper", "thigh", top, "pin", _UPPER),
        ("lower", "hanger", knee, "pin", _LOWER),
        ("rear", "thigh", back, "tail", _REAR),
    )
    for rod, carrier, place, end, length in rods:
        names, loop = (f"{leg}_{rod}", f"{leg}_{carrier}", f"{leg}_{end}"), f"{leg}_{rod}_pin"
        if massless_rods:
            b.frame(f"{leg}_{rod}_eye", names[1], place)
            b.loop(f"{leg}_{rod}_eye", names[2], Distance(length * unit), name=loop)
        else:
            _add_bar(b, names[0], length * unit)
            b.revolute(f"{leg}_{rod}_hinge", names[1], names[0], _AXIS, place, **_PASSIVE)
            b.frame(f"{leg}_{rod}_tip", names[0], (length * unit, 0.0, 0.0))
            b.loop(f"{leg}_{rod}_tip", names[2], PointOnLine(_AXIS), name=loop)


def _leg_angles(turn: float) -> tuple[Floats3, Floats3, Point]:
    """Angles of hip, swing and knee, of the upper, lower and rear rod, and the foot [units], at an angle of the pin."""
    pin, support = (_CRANK * cos(turn), _CRANK * sin(turn)), _SUPPORT
    top = crossing(pin, _UPPER, support, _THIGH[0], 1, _NAME)
    knee = crossing(pin, _LOWER, support, _HANGER, -1, _NAME)
    back = crossing(support, _THIGH[1], top, _THIGH[2], -1, _NAME)
    tail = crossing(back, _REAR, knee, _SHANK[0], 1, _NAME)
    foot = crossing(knee, _SHANK[1], tail, _SHANK[2], -1, _NAME)
    hip, swing = direction(support, top), direction(support, knee)
    rods = direction(top, pin) - hip, direction(knee, pin) - swing, direction(back, tail) - hip
    return (hip, swing, direction(knee, tail) - swing), rods, foot


def _crank_pin(i: int, unit: float) -> Floats3:
    phase = _TRACKS[i - 1][1]
    return (_CRANK * unit * cos(phase), 0.0, _CRANK * unit * sin(phase))


def _add_bar(b: Builder, name: str, length: float) -> None:
    mass, ends = _BAR * length, np.array(((0.0, 0.0, 0.0), (length, 0.0, 0.0)))
    b.body(name, mass, (0.5 * length, 0.0, 0.0), cylinder(mass, 0.005, length, "x"), [_shape(*ends)])


def _add_triangle(b: Builder, name: str, sides: Floats3, unit: float) -> tuple[Floats3, Floats3]:
    """A body of three bars; the places of its second and third corner, of which the second is on its x axis.

    sides: from the first corner to the second and to the third, and between these [units].
    """
    base, other, across = (x * unit for x in sides)
    x, z = crossing((0.0, 0.0), other, (base, 0.0), across, -1, _NAME)
    corners = np.array(((0.0, 0.0, 0.0), (base, 0.0, 0.0), (x, 0.0, z)))
    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))  # and their first and second moments about the origin
    for k in range(3):
        p, q = corners[k - 1], corners[k]
        m = _BAR * float(np.linalg.norm(q - p))
        mass, first = mass + m, first + 0.5 * m * (p + q)
        second += m / 6.0 * (np.outer(p, p) + np.outer(q, q) + np.outer(p + q, p + q))
    second -= np.outer(first, first) / mass
    shapes = [_shape(corners[k - 1], corners[k]) for k in range(3)]
    b.body(name, mass, first / mass, np.trace(second) * np.eye(3) - second, shapes)
    return (base, 0.0, 0.0), (x, 0.0, z)


def _frame_shapes(unit: float) -> list[Geometry]:
    """Bars of the trunk: the shaft, those along the supports of the legs, and one that joins them."""
    x, z = _SUPPORT[0] * unit, _SUPPORT[1] * unit
    across = [((a, -0.22, c), (a, 0.22, c)) for a, c in ((0.0, 0.0), (x, z), (-x, z))]
    return [_shape(np.array(a), np.array(b)) for a, b in (*across, ((-x, 0.0, z), (x, 0.0, z)))]


def _shape(start: np.ndarray, end: np.ndarray) -> Geometry:
    """A round bar between two points."""
    length = float(np.linalg.norm(end - start))
    x, y, z = ((end - start) / length).tolist()
    i, j, k = (0.5 * (start + end)).tolist()
    return Geometry("cylinder", (0.006, length), placement=Placement(toward((x, y, z)).matrix(), (i, j, k)))
