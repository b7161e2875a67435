"""The parts of a mechanism as frozen data. SI units and radians; numbers are floats in tuples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from spanloop.joints import JointKind
from spanloop.math.inertia import RigidInertia
from spanloop.math.rotation import Rotation, from_matrix
from spanloop.math.spatial import Transform
from spanloop.math.vector3 import IDENTITY3, add, negate, product, symmetric, times, transpose
from spanloop.types import Floats3, Floats33

WORLD = "world"
_IDENTITY: Floats33 = IDENTITY3


@dataclass(frozen=True)
class Placement:
    """Pose of a frame in another: rotation matrix (3, 3) and position (3,) [m]."""

    rotation: Floats33 = _IDENTITY
    position: Floats3 = (0.0, 0.0, 0.0)

    def __matmul__(self, other: Placement) -> Placement:
        """P_AB @ P_BC = P_AC."""
        position = add(self.position, times(self.rotation, other.position))
        if other.rotation == _IDENTITY:
            return Placement(self.rotation, position)
        if self.rotation == _IDENTITY:
            return Placement(other.rotation, position)
        return Placement(product(self.rotation, other.rotation), position)

    def inverse(self) -> Placement:
        """P_AB to P_BA."""
        r = transpose(self.rotation)
        return Placement(r, negate(times(r, self.position)))

    def transform(self) -> Transform:
        """The same pose for spatial algebra."""
        return Transform(self.turn(), self.position)

    def turn(self) -> Rotation:
        """The rotation for spatial algebra."""
        return Rotation() if self.rotation == _IDENTITY else from_matrix(self.rotation)


@dataclass(frozen=True)
class Inertia:
    """Mass [kg], centre of mass [m] and inertia about it [kg m²] (xx, xy, xz, yy, yz, zz), in the body's axes."""

    mass: float = 0.0
    center: Floats3 = (0.0, 0.0, 0.0)
    moments: tuple[float, float, float, float, float, float] = (0.0,) * 6

    def matrix(self) -> Floats33:
        """Inertia about the centre of mass (3, 3) [kg m²]."""
        return symmetric(*self.moments)

    def rigid(self) -> RigidInertia:
        """The same inertia about the body's origin, for spatial algebra."""
        return RigidInertia.at_center(self.mass, self.center, self.matrix())


@dataclass(frozen=True)
class Surface:
    """How a collision shape rubs and bounces, as its file describes it; None where the file says nothing.

    friction: Coulomb's µ; torsion, rolling: largest moment about the normal and across it per pressing force [m];
    restitution: 0 to 1
    rule: how two surfaces that touch give one value, "maximum" (MJCF), "minimum" (SDF and Gazebo), "product" (PyBullet)
    or "harmonic" mean (Drake)
    condim, priority: of MJCF. A pair has the larger condim (1: no friction, 3: it slides, 4: torsion too, 6: rolling
    too); a surface of higher priority decides alone.
    """

    friction: float | None = None
    torsion: float | None = None
    rolling: float | None = None
    restitution: float | None = None
    rule: str = "maximum"
    condim: int | None = None
    priority: int = 0

    def touching(self, other: Surface | None) -> dict[str, float]:
        """Return friction, torsion, rolling and restitution of a pair, as far as the surfaces have them.

        other: None for a shape without a surface, which leaves the choice to this one. Two surfaces of different rules
        have the smaller values.
        """
        if other is None or self.priority > other.priority:
            return self._values(self.condim)
        if other.priority > self.priority:
            return other._values(other.condim)
        a, b = self._values(None), other._values(None)
        condim = max((c for c in (self.condim, other.condim) if c is not None), default=None)
        rule = self.rule if self.rule == other.rule else "minimum"
        both = {name: _COMBINED[rule](name, a, b) for name in a if name in b}
        return Surface(**{**a, **b, **both})._values(condim)

    def _values(self, condim: int | None) -> dict[str, float]:
        """The values that are known, 0 where condim excludes friction, torsion or rolling."""
        known = {name: getattr(self, name) for name in ("friction", "torsion", "rolling", "restitution")}
        least = {"friction": 3, "torsion": 4, "rolling": 6}
        if condim is not None:
            known |= {name: 0.0 for name, needed in least.items() if condim < needed}
        return {name: value for name, value in known.items() if value is not None}


def _product(name: str, a: dict[str, float], b: dict[str, float]) -> float:
    """Bullet multiplies friction and restitution; moments grow with the other surface's friction."""
    if name in ("friction", "restitution"):
        return a[name] * b[name]
    return a[name] * b.get("friction", 1.0) + b[name] * a.get("friction", 1.0)


def _harmonic_mean(name: str, a: dict[str, float], b: dict[str, float]) -> float:
    total = a[name] + b[name]
    return 2.0 * a[name] * b[name] / total if total else 0.0


_COMBINED = {
    "maximum": lambda name, a, b: max(a[name], b[name]),
    "minimum": lambda name, a, b: min(a[name], b[name]),
    "product": _product,
    "harmonic": _harmonic_mean,
}
RULES = tuple(_COMBINED)


@dataclass(frozen=True)
class Geometry:
    """A visual or collision shape: box (x, y, z), cylinder (radius, length), sphere (radius) [m], or mesh (file).

    Others: capsule (radius, length without the caps), ellipsoid (three half axes); for contacts point (), plane (),
    the half-space below z = 0 of its placement, and hull (), the convex hull of `vertices` (n, 3) [m].
    size: of a mesh its scale (x, y, z), () for 1; file: of a mesh, as the model's file names it; placement: in the
    body. color: red, green, blue, opacity, each 0 to 1, None if the file has none; path: where the mesh was found,
    "" if nowhere; missing: then why, if it was searched for.
    """

    shape: str
    size: tuple[float, ...] = ()
    file: str = ""
    placement: Placement = Placement()
    use: str = "visual"  # or "collision"
    color: tuple[float, float, float, float] | None = None
    vertices: tuple[Floats3, ...] = ()
    path: str = field(default="", compare=False, repr=False)
    missing: str = field(default="", compare=False, repr=False)
    surface: Surface | None = None  # of a collision shape whose file describes it


@dataclass(frozen=True)
class Body:
    """A rigid body and its frame."""

    name: str
    inertia: Inertia = Inertia()
    geometry: tuple[Geometry, ...] = ()
    where: str = field(default="", compare=False, repr=False)  # file:line


@dataclass(frozen=True)
class Joint:
    """A joint of the spanning tree.

    The joint's frame has the given placement in the parent body; the child body's frame is the joint's child frame.
    Per DoF (nv entries, or one number for all): damping [N m s/rad], friction [N m], armature [kg m²], stiffness
    [N m/rad] of a spring that rests at `rest` (nq entries). Limits have one entry per DoF, or are None.
    actuated: a motor can apply a torque; `has_motor` is the default of builders and files.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    placement: Placement = Placement()
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None
    speed: tuple[float, ...] | None = None
    effort: tuple[float, ...] | None = None
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    armature: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    rest: tuple[float, ...] = ()
    driven: bool = False
    actuated: bool = True
    where: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        n = self.kind.nv
        for name in ("damping", "friction", "armature", "stiffness"):
            object.__setattr__(self, name, per_dof(getattr(self, name), n))
        for name in ("lower", "upper", "speed", "effort"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, per_dof(value, n))
        rest = (self.rest,) if isinstance(self.rest, Real) else self.rest
        object.__setattr__(self, "rest", tuple(map(float, rest)) or self.kind.neutral())


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a body: a tool, a sensor, an anchor."""

    name: str
    body: str
    placement: Placement = Placement()
    where: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Loop:
    """A joint that closes a cycle: the kind's parent frame is fixed in body `a`, its child frame in body `b`."""

    name: str
    kind: JointKind
    a: str
    b: str
    placement_a: Placement = Placement()
    placement_b: Placement = Placement()
    driven: bool = False
    switchable: bool = False
    where: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Coupling:
    """A closure of rates: coordinate of `joint` = ratio · coordinate of `source` + offset (mimic joints, gears).

    Without a source the joint is held at the offset (a brake, a latch).
    """

    name: str
    joint: str
    source: str | None = None
    ratio: float = 1.0
    offset: float = 0.0
    switchable: bool = False
    where: str = field(default="", compare=False, repr=False)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that it concerns: one or two."""
        return (self.joint,) if self.source is None else (self.joint, self.source)

    def position(self, source: float = 0.0) -> float:
        """The coordinate of `joint` where that of the source is given."""
        return self.offset if self.source is None else self.ratio * source + self.offset


@dataclass(frozen=True)
class Actuator:
    """Something that drives a joint; spanloop.model.motors lists the settings of motors."""

    name: str
    joint: str
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Sensor:
    """Something that measures at a joint, body or frame; spanloop.model.sensor_settings lists kinds and settings."""

    name: str
    kind: str
    at: str
    settings: tuple[tuple[str, Any], ...] = ()


def has_motor(kind_name: str) -> bool:
    """Whether a joint of this kind is actuated by default: all but free bodies and flexible ones have a motor."""
    return kind_name not in ("free", "modal", "node")


def per_dof(value: float | Iterable[float], n: int) -> tuple[float, ...]:
    """n floats from n numbers, one number, or nothing (zeros)."""
    if isinstance(value, Real):
        return (float(value),) * n
    values = tuple(float(x) for x in value)  # type: ignore[union-attr]
    return values if values else (0.0,) * n
