"""The five-bar of Saha's paper, a parallel manipulator of two legs in a vertical plane. [Saha, eq. 34-36]

How the text is read: it gives lengths and masses of the legs but neither the length a₀ of the base nor inertias. Here
the legs stand at the origin and at (a₀, 0), in the plane of x and y; actuated angles are counter-clockwise from +x;
gravity is along −y; the links are uniform thin rods.
"""

from __future__ import annotations

from math import cos, radians, sin

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model.build import Builder
from spanloop.model.model import Model
from spanloop.model.shapes import rod
from spanloop.zoo.meeting import crossing, direction, planar_closure

_LENGTHS = ((0.6, 1.1), (0.7, 1.2))  # m, of both links of leg 1, of leg 2 [Saha, eq. 34a]
_MASSES = ((3.0, 1.6), (2.0, 1.1))  # kg [Saha, eq. 34b]
_SIDES = {"below": -1, "above": 1}


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
    return b.close("tip1", "tip2", kind, name="meeting").build()


def five_bar_start(
    *,
    base: float = 1.2,
    closure: str | JointKind = "revolute",
    angles: tuple[float, float] = (radians(80.0), radians(70.0)),
    assembly: str = "below",
) -> np.ndarray:
    """q (4,): drive and elbow of leg 1, of leg 2, at the actuated angles [rad]; the free fall's if not given.

    assembly: is the point where the legs meet "below" or "above" the line of the elbows? [Saha, eq. 36]
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
