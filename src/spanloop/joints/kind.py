"""What every kind of joint knows of itself.

A joint places a child frame C in a parent frame P. Its motion space φ (6×nv) gives the velocity of C relative to P,
[angular; linear] at C's origin in C's axes; its constraint space φᶜ (6×(6−nv)) spans the forces that do no work on it:
φᶜᵀ φ = 0, rank [φ φᶜ] = 6. [Lilly & Orin, section 2]

For fast kernels a joint shows its *sides*: rotations A, B and a joint of the same kind that moves about or along z,
so that transform(q) = A · z.transform(q) · Bᵀ. Kernels run on the frames between A and B. As a closure it shows sides
of its own, whose x and y lie along axes of the user's frames where they can: its rows are named after them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from spanloop.errors import ModelError, UnsupportedError
from spanloop.math.inertia import RigidInertia
from spanloop.math.rotation import Rotation, along_axes, toward
from spanloop.math.spatial import Force, Motion, Transform, power
from spanloop.math.vector3 import add, cross, subtract, times, total
from spanloop.types import Floats3, Matrix3, Scalar, Vector3

EX: Vector3 = (1.0, 0.0, 0.0)
EY: Vector3 = (0.0, 1.0, 0.0)
EZ: Vector3 = (0.0, 0.0, 1.0)
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


class Sides(NamedTuple):
    """transform(q) = before · kind.transform(q) · afterᵀ."""

    before: Rotation
    kind: JointKind
    after: Rotation


class JointKind(ABC):
    """A kind of joint. Its methods work on any scalar; sequences have nq or nv entries."""

    name: ClassVar[str]
    units: ClassVar[tuple[str, ...]]  # of the entries of v, without the /s
    nq: ClassVar[int]
    takes_springs: ClassVar[bool] = True
    carries: ClassVar[bool] = True  # can it carry a body, as a joint of the tree?
    symmetric_space: ClassVar[bool] = True  # is φᶜ the same space seen from the parent's axes?
    constant_space: ClassVar[bool] = True  # is φᶜ constant in the child's axes?
    bends: ClassVar[bool] = False  # are its coordinates those of the modes of a flexible body?
    rides: ClassVar[bool] = False  # is it placed by the modes of its parent?

    @property
    def nv(self) -> int:
        """Number of degrees of freedom (DoF)."""
        return len(self.units)

    def dof_names(self, joint: str) -> tuple[str, ...]:
        """A name for each DoF of a joint of this name: the joint's, with a number where there are several."""
        return (joint,) if self.nv == 1 else tuple(f"{joint}[{k}]" for k in range(self.nv))

    @abstractmethod
    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Pose of the child frame in the parent frame."""

    def seat(self, q: Sequence[Scalar], modes: Sequence[Scalar]) -> Transform:
        """Pose of the child frame in a parent that modal coordinates bend; only nodes depend on them."""
        return self.transform(q)

    @abstractmethod
    def motion_space(self, q: Sequence[Scalar]) -> tuple[Motion, ...]:
        """φ, column by column, at the child's origin in the child's axes."""

    @abstractmethod
    def constraint_space(self, q: Sequence[Scalar]) -> tuple[Force, ...]:
        """φᶜ, column by column, at the child's origin in the child's axes."""

    def motion_space_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """dφ/dt v, the components of φ in the child's axes differentiated; zero where φ is constant."""
        return Motion()

    def motion_space_rates(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Motion, ...]:
        """dφ/dt, column by column; its product with v is motion_space_rate."""
        return (Motion(),) * self.nv

    # ---- as a closure: the joint between two frames that other joints already place

    def closure_sides(self) -> Sides:
        """The closure seen between frames in which its axis is z, and x and y are axes of the user's frames."""
        return self.sides()

    def switched(self) -> JointKind:
        """The kind of a closure that can be open: its rows are finite at every pose."""
        return self

    def row_names(self) -> dict[int, str]:
        """By number, names of the rows of the closure whose wrenches are not constant in the child's axes."""
        return {}

    def closure_space(self, x: Transform) -> tuple[Force, ...]:
        """φᶜ for the child frame at pose x in the parent frame, one column a row of the closure."""
        return self.constraint_space(self.neutral())

    def closure_space_rate(self, x: Transform, relative: Motion) -> tuple[Scalar, ...]:
        """dφᶜᵀ/dt · relative velocity, for each row; zero where φᶜ is constant in the child's axes."""
        return (0.0,) * len(self.closure_space(x))

    def closing_pose(self) -> Transform:
        """A pose that fits the closure."""
        return self.transform(self.neutral())

    def captured_pose(self, x: Transform) -> Transform:
        """The pose that fits, to which a closure found at pose x takes its child frame where it captures: the frames
        coincide. Where nothing holds the angles between them, the child frame moves and does not turn."""
        pose = self.closing_pose()
        rows = zip(self.closure_space(pose), self.closure_error(pose), strict=True)
        turned = any(w.angular != (0.0, 0.0, 0.0) and error is not None for w, error in rows)
        return pose if turned else Transform(x.rotation, pose.translation)

    def closure_motion(self, x: Transform) -> tuple[Motion, ...]:
        """φ for the child frame at pose x in the parent frame."""
        return self.motion_space(self.neutral())

    def closure_motion_rate(self, x: Transform, relative: Motion) -> tuple[Scalar, ...]:
        """dφᵀ/dt · relative velocity, for each DoF; zero where φ is constant in the child's axes."""
        return (0.0,) * len(self.closure_motion(x))

    def closure_error(self, x: Transform) -> tuple[Scalar | None, ...]:
        """By how much pose x misses the joint, along each row; None for a row that constrains velocities only."""
        miss = self.misfit(x)
        return tuple(power(miss, w) for w in self.closure_space(x))

    def misfit(self, x: Transform) -> Motion:
        """The small motion, in the child's axes, by which pose x misses the joint in its constrained directions."""
        r = x.rotation.matrix()
        turn = (0.5 * (r[2][1] - r[1][2]), 0.5 * (r[0][2] - r[2][0]), 0.5 * (r[1][0] - r[0][1]))
        return Motion(turn, x.rotation.T @ x.translation)

    def sizes(self) -> tuple[float, ...]:
        """How large coordinates usually are: π for a single angle, else 1; for states at random."""
        return (math.pi if self.units == ("rad",) and self.nq == 1 else 1.0,) * self.nq

    def neutral(self) -> tuple[float, ...]:
        """The coordinates at which child and parent frame coincide."""
        return (0.0,) * self.nq

    def rates(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """dq/dt."""
        return tuple(v)

    def plus(self, q: Sequence[Scalar], delta: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The coordinates reached from q by the constant velocity delta in one unit of time."""
        return tuple(x + d for x, d in zip(q, delta, strict=True))

    def turned(self, q: Sequence[Scalar], v: Sequence[Scalar], to: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """v at the coordinates `to` for the velocity that is v at q, where both are near and it is in turning axes."""
        return tuple(v)

    def bracket(self, v: Sequence[Scalar], delta: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """[v, delta] (nv): a displacement delta from a motion with rates v, in joint rates, changes at −[v, delta]
        while the rates stay equal; zero where coordinates simply add."""
        return (0.0,) * self.nv

    def minus(self, q: Sequence[Scalar], start: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """delta with plus(start, delta) = q."""
        return tuple(x - s for x, s in zip(q, start, strict=True))

    def spring(
        self, q: Sequence[Scalar], rest: Sequence[Scalar], stiffness: Sequence[Scalar]
    ) -> tuple[tuple[Scalar, ...], Scalar]:
        """Torque (nv) and energy of springs that rest at the coordinates `rest`; the one is the other's gradient."""
        stretch = [x - s for x, s in zip(q, rest, strict=True)]
        pull = [k * x for k, x in zip(stiffness, stretch, strict=True)]
        return tuple(-p for p in pull), total(0.5 * p * x for p, x in zip(pull, stretch, strict=True))

    def unit_parts(self, q: Sequence[Scalar]) -> tuple[tuple[Scalar, ...], ...]:
        """The groups of coordinates that must have length 1 (quaternions)."""
        return ()

    def sides(self) -> Sides:
        """The joint seen between frames in which its axis is z."""
        return Sides(Rotation(), self, Rotation())

    def led_by(self, angle: float) -> JointKind | None:
        """The same kind after a rotation about z by a constant angle, if it can take that into its own first
        rotation."""
        return None

    def hidden(self, inertia: RigidInertia) -> RigidInertia:
        """The part of the child's inertia that its parent feels in the same way: it may be moved there."""
        return RigidInertia()

    # ---- as seen in a mirror s (3, 3), a reflection; and with all lengths multiplied

    def mirrored(self, s: Matrix3) -> JointKind:
        """The kind whose transform at mirrored_q(q) is the mirror image s X s of transform(q)."""
        return self

    def mirrored_q(self, s: Matrix3, q: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The coordinates of the mirror image; single coordinates, and angles about axes, are the same."""
        return tuple(q)

    def mirrored_v(self, s: Matrix3, v: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The rates of the mirror image."""
        return tuple(v)

    def scaled(self, length: float) -> JointKind:
        """The kind with its lengths multiplied."""
        return self

    def lengths(self) -> tuple[int, ...]:
        """Which coordinates (nq) are lengths: 1, others 0."""
        return tuple(int(unit == "m") for unit in self.units)

    def describe(self) -> dict[str, Any]:
        """What distinguishes this joint from others of its kind, as plain data for files."""
        return {}


class ClosureKind(JointKind):
    """A kind that only closes loops: it places nothing, and has no coordinates."""

    units = ()
    nq = 0
    takes_springs = False
    symmetric_space = False
    carries = False

    def closing_pose(self) -> Transform:
        return Transform()

    def transform(self, q) -> Transform:
        raise UnsupportedError(
            f"a {self.name} joint only closes loops; it cannot carry a body. Use model.with_loop(...)"
        )

    def motion_space(self, q) -> tuple[Motion, ...]:
        self.transform(q)  # says why there is none
        return ()

    def constraint_space(self, q) -> tuple[Force, ...]:
        return self.closure_space(self.closing_pose())


def checked_axis(axis, owner: str) -> Floats3:
    """A unit vector from a name ("x", "-z") or three numbers; exact where it is exact."""
    if isinstance(axis, str):
        sign = -1.0 if axis.startswith("-") else 1.0
        if axis.lstrip("+-").lower() not in AXES:
            raise ModelError(f"{owner}: axis is {axis!r}; expected 'x', 'y', 'z', '-x', ... or three numbers")
        return tuple(sign * a + 0.0 for a in AXES[axis.lstrip("+-").lower()])  # type: ignore[return-value]
    try:
        a = tuple(float(x) for x in axis)
    except (TypeError, ValueError):
        raise ModelError(f"{owner}: axis is {axis!r}; expected three numbers") from None
    if len(a) != 3 or not all(math.isfinite(x) for x in a):
        raise ModelError(f"{owner}: axis is {axis!r}; expected three finite numbers")
    length = math.hypot(*a)
    if length < 1e-12:
        raise ModelError(
            f"{owner}: axis is {a}, which has no direction; expected a non-zero vector, for example (0, 0, 1)"
        )
    if abs(length - 1.0) < 1e-15:
        return a
    return tuple(x / length for x in a)  # type: ignore[return-value]


@dataclass(frozen=True)
class AxisJoint(JointKind):
    """A kind with one axis: written for z, turned for the others."""

    axis: Floats3 = (0.0, 0.0, 1.0)

    def __post_init__(self):
        object.__setattr__(self, "axis", checked_axis(self.axis, f"{self.name} joint"))

    def sides(self) -> Sides:
        r = toward(self.axis)
        return Sides(r, self._about_z(), r)

    def closure_sides(self) -> Sides:
        r = along_axes(self.axis)
        return Sides(r, self._about_z(), r)

    def _about_z(self) -> AxisJoint:
        return replace(self, axis=(0.0, 0.0, 1.0))

    @abstractmethod
    def z_transform(self, q) -> Transform: ...

    @abstractmethod
    def z_motion_space(self, q) -> tuple[Motion, ...]: ...

    @abstractmethod
    def z_constraint_space(self, q) -> tuple[Force, ...]: ...

    def transform(self, q) -> Transform:
        r = toward(self.axis)
        x = self.z_transform(q)
        return Transform(r @ x.rotation @ r.T, r @ x.translation)

    def motion_space(self, q) -> tuple[Motion, ...]:
        r = toward(self.axis)
        return tuple(s.turned(r) for s in self.z_motion_space(q))

    def constraint_space(self, q) -> tuple[Force, ...]:
        r = toward(self.axis)
        return tuple(f.turned(r) for f in self.z_constraint_space(q))

    def mirrored(self, s) -> AxisJoint:
        """A turn about u is in the mirror the same turn about −s u."""
        return replace(self, axis=subtract((0.0, 0.0, 0.0), times(s, self.axis)))

    def describe(self) -> dict[str, Any]:
        return {"axis": list(self.axis)}


def tilt(x: Transform) -> Motion:
    """The misfit of a joint that turns freely about z: how the two z axes miss each other, and the displacement."""
    r = x.rotation.matrix()
    return Motion((r[2][1], -r[2][0], 0.0), x.rotation.T @ x.translation)


def level(miss: Motion) -> Motion:
    """The misfit of a joint that slides: without the displacement that a small turn alone makes of the sliding."""
    return Motion(miss.angular, add(miss.linear, cross(miss.angular, miss.linear)))


def axial(inertia: RigidInertia) -> RigidInertia:
    """The second moment along z alone: unchanged by any motion about and along z."""
    zz = inertia.second[2][2]
    return RigidInertia(0.0, (0.0, 0.0, 0.0), ((0.0,) * 3, (0.0,) * 3, (0.0, 0.0, zz)))
