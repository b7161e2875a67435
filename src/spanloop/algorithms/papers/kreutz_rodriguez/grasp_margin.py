"""Friction cones of grasps: how much pressing force a contact has to spare before it slips, on any scalar.

The paper's contacts do not slip, "which is the assumption that all contact forces are in an appropriate friction cone.
During a simulation this assumption must be continually verified" [Kreutz & Rodriguez, appendix A].

| symbol | unit | meaning |
|---|---|---|
| n | – | unit normal in the axes of the loop's child frame, pointing into body b: z unless given |
| f_n | N | force on body b along n: positive where body a presses on body b, negative where it would pull |
| f_t | N | rest of the force on body b: across the normal |
| m_n | N m | moment on body b about n |
| µ | – | friction |
| γ | m | torsion: largest moment about the normal per pressing force; (2/3) µ r for a flat round patch of radius r |

    margin = f_n − sqrt(|f_t|²/µ² + m_n²/γ²)   [N]

The margin is the pressing force to spare; −margin is the pressing force that is missing. It is positive inside the cone
and 0 where the contact slips or lifts off.

| grasp | closure | what its cone bounds |
|---|---|---|
| rigid (section 2) | fixed | force and moment about the normal |
| edge with friction (case 1) | revolute, axis across the normal | force and moment about the normal |
| point contact with friction (case 2) | spherical | force; it carries no moment |
| soft finger (case 3) | soft_finger | force and moment about the normal |

Moments across the normal, which a rigid grasp and an edge carry, depend on the size of the contact patch and are not
bounded here. The paper names friction cones and gives no formula: the ellipsoid of force and moment is ours, the common
one for soft fingers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.joints import JointKind
from spanloop.math.scalar import sqrt
from spanloop.math.vector3 import cross, dot
from spanloop.types import Scalar, Vector3

GRASPS = ("fixed", "revolute", "spherical", "soft_finger")  # closures that hold a point of one body on the other
_ACROSS = 1e-6  # cosine of a hinge's axis with the normal that counts as none


@dataclass(frozen=True)
class FrictionCone:
    """The cone of one contact; torsion is infinite where no moment about the normal is bounded."""

    friction: Any
    torsion: Any = math.inf
    normal: Vector3 = (0.0, 0.0, 1.0)

    def margin(self, wrench: Sequence[Scalar]) -> Scalar:
        """Pressing force to spare [N] under [torque; force] (6) on body b, at the child frame in its axes."""
        return self.pressing(wrench) - self.needed(wrench)

    def pressing(self, wrench: Sequence[Scalar]) -> Scalar:
        """Force on body b along the normal [N]."""
        return dot(self.normal, tuple(wrench[3:6]))

    def needed(self, wrench: Sequence[Scalar]) -> Scalar:
        """The pressing force that friction needs [N]."""
        across = cross(self.normal, tuple(wrench[3:6]))  # as long as f_t
        spent = dot(across, across) / (self.friction * self.friction)
        if self.bounds_moment:
            spin = dot(self.normal, tuple(wrench[:3])) / self.torsion
            spent = spent + spin * spin
        return sqrt(spent)

    @property
    def bounds_moment(self) -> bool:
        """Whether the moment about the normal is bounded."""
        return not (isinstance(self.torsion, Real) and math.isinf(self.torsion))


def grasp_margin(
    kind: JointKind | str,
    wrench: Sequence[Scalar],
    friction: Scalar,
    torsion: Scalar | None = None,
    normal: Sequence[float] = (0.0, 0.0, 1.0),
) -> Scalar:
    """Return the pressing force [N] that a grasp has to spare before it slips; negative: what is missing.

    kind: of the closure. wrench (6): [torque; force] that it exerts on body b, at its child frame in that frame's axes.
    friction, torsion [m], normal (3): as of `friction_cone`.
    """
    return friction_cone(kind, friction, torsion, normal).margin(wrench)


def friction_cone(
    kind: JointKind | str,
    friction: Any,
    torsion: Any = None,
    normal: Sequence[float] = (0.0, 0.0, 1.0),
    subject: str = "grasp_margin",
) -> FrictionCone:
    """The cone of a closure, checked; subject: the beginning of the errors.

    friction: µ > 0. torsion: γ > 0 [m], which only a point contact does without; math.inf for no bound. normal (3): in
    the axes of the child frame, into body b. Numbers that are traced are taken as they are.
    """
    name = kind if isinstance(kind, str) else kind.name
    if name not in GRASPS:
        raise UnsupportedError(
            f"{subject}: the loop is a {name} joint, which lets the contact slip; grasps are loops of kind "
            f"{', '.join(GRASPS[:-1])} or {GRASPS[-1]}"
        )
    if not _is_positive(friction) or (isinstance(friction, Real) and math.isinf(friction)):
        raise InputError(f"{subject}: friction is {friction!r}; expected a finite number > 0")
    if torsion is None and name != "spherical":
        raise InputError(
            f"{subject}: a {name} loop carries a moment about the normal; give its bound torsion= [m], the moment per "
            "pressing force: (2/3) friction × radius for a flat round patch; math.inf for no bound"
        )
    if torsion is not None and not _is_positive(torsion):
        raise InputError(f"{subject}: torsion is {torsion!r} m; expected a number > 0")
    unit = _unit(normal, subject)
    axis = getattr(kind, "axis", None) if name == "revolute" else None
    if axis is not None and abs(dot(axis, unit)) > _ACROSS:
        raise InputError(
            f"{subject}: the axis of the hinge is {_printed(axis)} and the normal is {_printed(unit)} in the axes of "
            "the child frame; an edge lies across the normal. Give normal=, or the hinge another axis"
        )
    return FrictionCone(friction, math.inf if name == "spherical" else torsion, unit)


def _is_positive(x: Any) -> bool:
    """Whether a number is positive, or all numbers of an array; traced ones are taken to be."""
    if isinstance(x, Real | np.ndarray):
        return bool(np.all(np.asarray(x) > 0.0))
    return x is not None and not isinstance(x, str | Mapping | Sequence)


def _unit(normal: Sequence[float], subject: str) -> Vector3:
    try:
        x, y, z = (float(e) for e in normal)
        size = math.hypot(x, y, z)
    except (TypeError, ValueError):
        size = math.nan
    if not 0.0 < size < math.inf:
        raise InputError(f"{subject}: normal is {normal!r}; expected three numbers, a direction in the child frame")
    return (x / size, y / size, z / size)


def _printed(x: Sequence[float]) -> str:
    return "(" + ", ".join(f"{e:g}" for e in x) + ")"
