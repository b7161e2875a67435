"""A screw: rotation about an axis with a translation along it in proportion."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from spanloop.errors import ModelError
from spanloop.joints.kind import EX, EY, EZ, AxisJoint, axial, level, tilt
from spanloop.math.rotation import Rotation
from spanloop.math.scalar import arctan2
from spanloop.math.spatial import Force, Motion, Transform


@dataclass(frozen=True)
class Helical(AxisJoint):
    """q: the angle [rad]; the displacement is pitch · q, the pitch in metres per radian."""

    pitch: float = 0.0
    offset: float = 0.0

    name = "helical"
    units = ("rad",)
    nq = 1

    def __post_init__(self):
        super().__post_init__()
        if not math.isfinite(self.pitch):
            raise ModelError(f"helical joint: pitch is {self.pitch}; expected a finite number [m/rad]")

    def z_transform(self, q) -> Transform:
        return Transform(Rotation.about(2, q[0] + self.offset), (0.0, 0.0, self.pitch * q[0]))

    def z_motion_space(self, q):
        return (Motion(EZ, (0.0, 0.0, self.pitch)),)

    def z_constraint_space(self, q):
        screw = Force((0.0, 0.0, -self.pitch), EZ)
        return (Force(EX), Force(EY), Force(linear=EX), Force(linear=EY), screw)

    def led_by(self, angle):
        return replace(self, offset=self.offset + angle)

    def misfit(self, x):
        """Displacement along the axis counts beside the nearest turn's share of the pitch."""
        r, miss = x.rotation.matrix(), level(tilt(x))
        angle = arctan2(r[1][0], r[0][0]) - self.offset
        along = miss.linear
        return Motion(miss.angular, (along[0], along[1], along[2] - self.pitch * angle))

    def mirrored(self, s):
        """The screw becomes one of the other hand."""
        return replace(self, axis=super().mirrored(s).axis, pitch=0.0 - self.pitch)

    def scaled(self, length):
        return replace(self, pitch=length * self.pitch)

    def hidden(self, inertia):
        return axial(inertia)

    def describe(self):
        return {**super().describe(), "pitch": self.pitch}
