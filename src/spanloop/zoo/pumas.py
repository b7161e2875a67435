"""Three PUMA arms that hold one disc."""

from __future__ import annotations

from dataclasses import replace
from math import cos, pi, radians, sin

import numpy as np

from spanloop.model.model import Model
from spanloop.model.parts import Body, Geometry, Inertia
from spanloop.model.shapes import cylinder
from spanloop.zoo.arms import puma
from spanloop.zoo.grasping import arms_with_object, arms_with_object_start

_MASS, _RADIUS, _HEIGHT = 6.0, 0.25, 0.1  # of the disc [kg, m]
# upper arm raised by 82°, forearm falling by 25°, tool rising by 35° toward the disc
_POSTURE = (0.0, -radians(82.0), radians(17.0), 0.0, pi + radians(60.0), 0.0)
PERIOD = 6.0  # of the course [s]


def three_pumas() -> Model:
    """Three PUMA arms [Saha, Table 3] around a disc of 6 kg that each of them grasps rigidly; mobility 6.

    The arms stand on columns at a height of about 0.67 m; the disc starts level at 1 m.
    """
    model = arms_with_object(3, arm=puma(), posture=_POSTURE)
    xx, yy, zz = cylinder(_MASS, _RADIUS, _HEIGHT)
    look = Geometry("cylinder", (_RADIUS, _HEIGHT))
    disc = Body("object", Inertia(_MASS, moments=(xx, 0.0, 0.0, yy, 0.0, zz)), (look,))
    bodies = tuple(disc if b.name == "object" else b for b in model.bodies)
    return replace(model, name="three_pumas", bodies=bodies)


def three_pumas_start() -> np.ndarray:
    """q (25,): the disc level at 1 m, then the six angles of each arm."""
    return arms_with_object_start(3, arm=puma(), posture=_POSTURE)


def three_pumas_course(t: float) -> dict[str, list[float]]:
    """Where the disc is to be at time t [s]: a figure of eight of 0.36 m by 0.24 m that rises and sinks by 0.2 m in
    6 s, while the disc turns and tilts by some 20° and 12°. For `lead`."""
    w = 2.0 * pi / PERIOD * t
    turn, tilt = 0.5 * 0.35 * sin(w), 0.5 * 0.2 * sin(2.0 * w)
    quaternion = [cos(turn) * cos(tilt), cos(turn) * sin(tilt), sin(turn) * sin(tilt), sin(turn) * cos(tilt)]
    return {"floating": [*quaternion, 0.18 * sin(w), 0.12 * sin(2.0 * w), 1.0 + 0.1 * (1.0 - cos(w))]}
