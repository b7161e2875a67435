"""`sl.targets`: what inverse kinematics brings somewhere.

>>> import spanloop as sl
>>> robot = sl.Dynamics(sl.zoo.puma())
>>> down = sl.targets.Direction("link6", (0.0, 0.0, -1.0), axis="z")
>>> there = sl.targets.Position("link6", (0.4, 0.2, 0.3))
>>> bool(robot.inverse_kinematics([there, down]).converged)
True

Values have batch axes first, which broadcast. A weight multiplies the square of what is left, with one radian counted
as the size of the robot [m] (the longest way from the world to a frame); it matters where targets cannot all be met.
`name` is the target's key in the result; by default that of its frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.typing import ArrayLike

__all__ = ["CenterOfMass", "Direction", "Orientation", "Pose", "Position"]


@dataclass(frozen=True, eq=False)
class Pose:
    """A frame or body at a pose (..., 4, 4) of the world; orientation_weight: of the rotation, by default the same."""

    frame: str
    pose: ArrayLike
    weight: float = 1.0
    orientation_weight: float | None = None
    name: str = ""


@dataclass(frozen=True, eq=False)
class Position:
    """The origin of a frame or body at a point (..., 3) of the world [m]."""

    frame: str
    position: ArrayLike
    weight: float = 1.0
    name: str = ""


@dataclass(frozen=True, eq=False)
class Orientation:
    """A frame or body turned as a rotation (..., 3, 3) of the world; its origin is anywhere."""

    frame: str
    rotation: ArrayLike
    weight: float = 1.0
    name: str = ""


@dataclass(frozen=True, eq=False)
class Direction:
    """An axis of a frame or body ("x", "-z", three numbers) along a direction (..., 3) of the world, of any length."""

    frame: str
    direction: ArrayLike
    axis: str | tuple[float, float, float] = "z"
    weight: float = 1.0
    name: str = ""


@dataclass(frozen=True, eq=False)
class CenterOfMass:
    """The centre of mass of everything that can move at a point (..., 3) of the world [m]."""

    position: ArrayLike
    weight: float = 1.0
    name: str = field(default="center_of_mass")


Target = Pose | Position | Orientation | Direction | CenterOfMass
