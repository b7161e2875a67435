"""Motion in a plane: rotation about its normal and translation within it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanloop.joints.kind import EX, EY, EZ, AxisJoint, Sides, axial, level, tilt
from spanloop.math.pose import series
from spanloop.math.rotation import Rotation, along_axes, toward
from spanloop.math.scalar import arctan2, sincos
from spanloop.math.spatial import Force, Motion, Transform
from spanloop.math.vector3 import dot, times


@dataclass(frozen=True)
class Planar(AxisJoint):
    """q: angle [rad] about the normal, two displacements [m] in the parent's axes.

    v: the angle's rate and two velocities in the child's axes. The axis is the normal; with the z axis as normal
    the plane's axes are x and y, otherwise they are where the rotation Rz Rx that takes z to the normal takes x and
    y.
    """

    heading: tuple[float, float] = (1.0, 0.0)  # direction of the plane's first axis in its sides, for kernels

    name = "planar"
    units = ("rad", "m", "m")
    nq = 3

    def z_transform(self, q) -> Transform:
        return Transform(Rotation.about(2, q[0]), (q[1], q[2], 0.0))

    def z_motion_space(self, q):
        c, s = self.heading
        return (Motion(EZ), Motion(linear=(c, s, 0.0)), Motion(linear=(0.0 - s, c, 0.0)))

    def z_constraint_space(self, q):
        return (Force(EX), Force(EY), Force(linear=EZ))

    def closure_sides(self):
        """Rows along the user's axes; the DoF stay along the plane's own."""
        r = along_axes(self.axis)
        x, y, _ = r.T @ (toward(self.axis) @ EX)
        return Sides(r, replace(self, axis=EZ, heading=(x, y)), r)

    def rates(self, q, v):
        s, c = sincos(q[0])
        return (v[0], c * v[1] - s * v[2], s * v[1] + c * v[2])

    def plus(self, q, delta):
        w, x, y = delta
        b, c = series(w * w)
        along, across = 1.0 - c * (w * w), b * w  # sin w / w, (1 − cos w) / w
        step = self.rates(q, (w, along * x - across * y, across * x + along * y))
        return (q[0] + w, q[1] + step[1], q[2] + step[2])

    def turned(self, q, v, to):
        """The velocities along the plane keep their directions in the parent."""
        s, c = sincos(to[0] - q[0])
        return (v[0], c * v[1] + s * v[2], c * v[2] - s * v[1])

    def bracket(self, v, delta):
        """Of twists in the plane: a turn rotates the other's displacement."""
        w, x, y = v
        turn, along, across = delta
        return (0.0, turn * y - w * across, w * along - turn * x)

    def minus(self, q, start):
        """By the shorter way around: full turns between the two angles are left out."""
        turn, flat = sincos(q[0] - start[0])
        w, x, y = arctan2(turn, flat), q[1] - start[1], q[2] - start[2]
        s, c = sincos(start[0])
        x, y = c * x + s * y, c * y - s * x
        b, k = series(w * w)
        along, across = 1.0 - k * (w * w), b * w
        inverse = 1.0 / (along * along + across * across)
        return (w, inverse * (along * x + across * y), inverse * (along * y - across * x))

    def spring(self, q, rest, stiffness):
        """One stiffness in the angle, two along the parent's axes of the plane."""
        stretch = tuple(x - r for x, r in zip(q, rest, strict=True))
        pull = tuple(k * x for k, x in zip(stiffness, stretch, strict=True))
        s, c = sincos(q[0])
        torque = (-pull[0], -(c * pull[1] + s * pull[2]), s * pull[1] - c * pull[2])
        return torque, 0.5 * dot(pull, stretch)

    def misfit(self, x):
        return level(tilt(x))

    def mirrored_q(self, s, q):
        """Displacements are along the plane's axes, which differ from the mirror image of the old ones."""
        return self.mirrored_v(s, q)

    def mirrored_v(self, s, v):
        image = times(s, toward(self.axis) @ (v[1], v[2], 0.0))
        x, y, _ = toward(self.mirrored(s).axis).T @ image
        return (v[0], x, y)

    def hidden(self, inertia):
        return axial(inertia)
