"""Forces at frames: wrenches, drag, springs and dampers; and the sum of several forces.

A force is a function (t, q, v) -> {"body": six numbers}, [torque; force] at the body's origin in world axes, on floats
and on traced scalars alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.math.scalar import sqrt, where
from spanloop.math.vector3 import add, cross, dot, negate, scale, subtract, times
from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.model.user_input import number
from spanloop.simulation.traced_kernels import takes_inputs
from spanloop.types import Vector3

SHORT = 1e-12  # m: a line shorter than this has no direction

Acting = dict[Any, Sequence[Any]]
Force = Callable[..., Acting]  # (t, q, v) -> what acts where


class Point:
    """The origin of a frame on scalars: its position and velocity, and the load of a force there on its body."""

    def __init__(self, model: Model, frame: str):
        found = model.frame(frame)
        self.name, self.body = found.name, found.body
        self._pose = on_scalars(model, "pose", frame=self.name)
        self._jacobian = on_scalars(model, "jacobian", frame=self.name)
        self._origin = on_scalars(model, "pose", frame=self.body)

    def must_move(self, who: str) -> None:
        """Refuse a frame that is fixed in the world."""
        if self.body == WORLD:
            raise InputError(f"{who}: {self.name!r} is fixed in the world; name a frame that moves")

    def place(self, q: Any) -> Vector3:
        """Position (3) in the world [m]."""
        return position(self._pose(q))

    def velocity(self, q: Any, v: Any) -> Vector3:
        """Linear velocity (3) in world axes [m/s]."""
        rows = self._jacobian(q)
        return (dot(rows[3], v), dot(rows[4], v), dot(rows[5], v))

    def omega(self, q: Any, v: Any) -> Vector3:
        """Angular velocity (3) in world axes [rad/s]."""
        rows = self._jacobian(q)
        return (dot(rows[0], v), dot(rows[1], v), dot(rows[2], v))

    def load(self, q: Any, force: Vector3, torque: Vector3 = (0.0, 0.0, 0.0)) -> Acting:
        """A force (and torque) at the point, as [torque; force] at the body's origin; empty for the world."""
        if self.body == WORLD:
            return {}
        if self.name != self.body:
            lever = subtract(self.place(q), position(self._origin(q)))
            torque = add(torque, cross(lever, force))
        return {self.body: [*torque, *force]}


def wrench(
    model: Model | Dynamics, frame: str, six: ArrayLike | Callable[[Any], Sequence[Any]], axes: str = "world"
) -> Force:
    """A torque and a force at the origin of a frame.

    Args:
        model: the mechanism.
        frame: name of a frame or body.
        six: [torque; force], six numbers [N m, N], or a function (t) that returns them.
        axes: "world", or the name of the frame in whose axes they are.

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: there is no such frame, it is fixed in the world, or `six` is not six finite numbers.

    Example:
        >>> arm = sl.zoo.puma()
        >>> push = sl.forces.wrench(arm, "tool", lambda t: [0, 0, 0, 1.0 + t, 0, 0])
        >>> run = sl.simulate(arm, duration=0.1, forces=push)
    """
    model = model_of(model, "wrench")
    point = Point(model, frame)
    point.must_move("wrench")
    turn = None if axes == WORLD else on_scalars(model, "pose", frame=model.frame(axes).name)
    of: Callable[[Any], Sequence[Any]] = six if callable(six) else _constant(six, "wrench")
    _six(of(0.0), "wrench")

    def acting(t: Any, q: Any, v: Any) -> Acting:
        given: Any = tuple(of(t))
        torque, force = given[:3], given[3:]
        if turn is not None:
            r = _rotation(turn(q))
            torque, force = times(r, torque), times(r, force)
        return point.load(q, force, torque)

    return acting


def drag(
    model: Model | Dynamics, frame: str, linear: float = 0.0, quadratic: float = 0.0, angular: float = 0.0
) -> Force:
    """Resistance of a medium at a frame: the force −(linear + quadratic |u|) u and the torque −angular ω.

    Args:
        model: the mechanism.
        frame: name of a frame or body; u is the velocity of its origin, ω its angular velocity.
        linear: [N s/m].
        quadratic: [N s²/m²].
        angular: [N m s/rad].

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: there is no such frame, it is fixed in the world, or a coefficient is negative.

    Example:
        >>> arm = sl.zoo.puma()
        >>> run = sl.simulate(arm, duration=0.1, forces=sl.forces.drag(arm, "tool", quadratic=0.2))
    """
    point = Point(model_of(model, "drag"), frame)
    point.must_move("drag")
    first, second, turning = (
        not_negative(x, f"drag: {n}") for x, n in ((linear, "linear"), (quadratic, "quadratic"), (angular, "angular"))
    )

    def acting(t: Any, q: Any, v: Any) -> Acting:
        u, omega = point.velocity(q, v), point.omega(q, v)
        strength = first + (second * sqrt(dot(u, u)) if second else 0.0)
        return point.load(q, scale(-strength, u), scale(-turning, omega) if turning else (0.0, 0.0, 0.0))

    return acting


def spring(model: Model | Dynamics, a: str, b: str, stiffness: float, rest: float = 0.0, damping: float = 0.0) -> Force:
    """A spring and damper between the origins of two frames: the tension is k (length − rest) + c · rate.

    Args:
        model: the mechanism.
        a, b: names of frames, bodies or "world", on different bodies.
        stiffness: k [N/m].
        rest: length without tension [m].
        damping: c [N s/m].

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: there is no such frame, both are on one body, or a number is negative.

    Example:
        >>> arm = sl.zoo.puma()
        >>> rope = sl.forces.spring(arm, "tool", "world", stiffness=50.0, rest=0.5, damping=1.0)
        >>> run = sl.simulate(arm, duration=0.1, forces=rope)
    """
    model = model_of(model, "spring")
    k, c = not_negative(stiffness, "spring: stiffness"), not_negative(damping, "spring: damping")
    length = not_negative(rest, "spring: rest")
    first, second = Point(model, a), Point(model, b)
    if first.body == second.body:
        raise InputError(f"spring: {a!r} and {b!r} are both on {first.body!r}; nothing moves between them")

    def tension(q: Any, v: Any, line: Vector3) -> Any:
        """Tension over length [N/m]."""
        square = dot(line, line)
        flat = square < SHORT * SHORT
        inverse_square = where(flat, 0.0, 1.0) / where(flat, 1.0, square)
        pull: Any = k - (k * length) * sqrt(inverse_square) if length else k
        if not c:
            return pull
        rate = dot(line, subtract(second.velocity(q, v), first.velocity(q, v)))
        return pull + (c * rate) * inverse_square

    def acting(t: Any, q: Any, v: Any) -> Acting:
        line = subtract(second.place(q), first.place(q))
        pull = scale(tension(q, v, line), line)
        return first.load(q, pull) | second.load(q, negate(pull))

    return acting


def damper(model: Model | Dynamics, a: str, b: str, damping: float) -> Force:
    """A damper between the origins of two frames: the tension is c times the rate of their distance.

    Args:
        model: the mechanism.
        a, b: names of frames, bodies or "world", on different bodies.
        damping: c [N s/m].

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: there is no such frame, both are on one body, or damping is negative.

    Example:
        >>> arm = sl.zoo.puma()
        >>> run = sl.simulate(arm, duration=0.1, forces=sl.forces.damper(arm, "tool", "world", damping=2.0))
    """
    return spring(model_of(model, "damper"), a, b, 0.0, 0.0, damping)


def together(*forces: Force) -> Force:
    """Several forces as one: what they return adds up.

    Args:
        forces: functions (t, q, v) -> {"body": six numbers}, as those of sl.forces, or (t, q, v, u), u the inputs.

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: one of them cannot be called, or takes other arguments.

    Example:
        >>> arm = sl.zoo.puma()
        >>> drag, friction = sl.forces.drag(arm, "tool", 0.3), sl.forces.friction(arm, {"joint2": 0.1})
        >>> run = sl.simulate(arm, duration=0.1, forces=sl.forces.together(drag, friction))
    """
    for f in forces:
        if not callable(f):
            raise InputError(f"together: {f!r} is not a force; expected functions (t, q, v) -> {{'body': six numbers}}")
    reading = [takes_inputs(f) for f in forces]

    def acting(t: Any, q: Any, v: Any, *u: Any) -> Acting:
        out: dict[Any, list[Any]] = {}
        for f, reads in zip(forces, reading, strict=True):
            for place, values in f(t, q, v, *(u if reads else ())).items():
                old = out.get(place)
                out[place] = list(values) if old is None else [x + y for x, y in zip(old, values, strict=True)]
        return dict(out)

    return with_inputs(acting) if any(reading) else without_inputs(acting)


def with_inputs(acting: Force) -> Force:
    """A function (t, q, v, *u) as one of (t, q, v, u)."""
    return lambda t, q, v, u: acting(t, q, v, u)


def without_inputs(acting: Force) -> Force:
    """A function (t, q, v, *u) as one of (t, q, v)."""
    return lambda t, q, v: acting(t, q, v)


def position(pose: Any) -> Vector3:
    """The position (3) in a pose (4, 4)."""
    return (pose[0][3], pose[1][3], pose[2][3])


def not_negative(value: Any, what: str) -> float:
    """A number that is at least 0."""
    x = number(value, what)
    if x < 0.0:
        raise InputError(f"{what} is {x:g}; must be >= 0")
    return x


def _rotation(pose: Any) -> Any:
    return tuple(tuple(row[:3]) for row in pose[:3])


def _constant(six: Any, who: str) -> Callable[[Any], tuple[float, ...]]:
    values = _six(six, who)
    return lambda t: values


def _six(values: Any, who: str) -> tuple[float, ...]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.shape != (6,) or not np.isfinite(array).all():
        raise InputError(f"{who}: {values!r} is given; expected six finite numbers, [torque; force]")
    return tuple(float(x) for x in array)
