"""Check of a model's numbers when it is made: masses, sizes, placements, limits.

Numbers beyond LARGEST are refused, so that squares and products of what is taken stay finite. Limits may be infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from spanloop.errors import ModelError, nearest
from spanloop.joints import JointKind
from spanloop.model.contacts.contact import Contact
from spanloop.model.parts import RULES, Body, Coupling, Frame, Geometry, Joint, Loop, Placement, Surface

LARGEST = 1e100  # in SI units; no mechanism is near
SIZES = {
    "box": (3,), "cylinder": (2,), "capsule": (2,), "sphere": (1,), "ellipsoid": (3,), "mesh": (0, 3),
    "point": (0,), "plane": (0,), "hull": (0,),
}  # fmt: skip
USES = ("visual", "collision")


def check_body(b: Body) -> None:
    """Raise ModelError for numbers that no body can have."""
    i = b.inertia
    if len(i.center) != 3 or len(i.moments) != 6:
        raise ModelError(
            f"{label('body', b)}: centre has {len(i.center)} and inertia {len(i.moments)} numbers; "
            "expected 3 and 6 (xx, xy, xz, yy, yz, zz)"
        )
    check_numbers((i.mass, *i.center, *i.moments), f"{label('body', b)}: mass, centre or inertia")
    if i.mass < 0.0:
        raise ModelError(f"{label('body', b)}: mass is {i.mass:g} kg; must be >= 0. Was the sign lost in the export?")
    for g in b.geometry:
        check_geometry(g, label("body", b))


def check_geometry(g: Geometry, owner: str) -> None:
    """Raise ModelError for a shape that cannot be drawn. The scale of a mesh may be negative: it mirrors."""
    if g.shape not in SIZES:
        raise ModelError(f"{owner}: there is no shape {g.shape!r}; {nearest(str(g.shape), SIZES)}")
    if g.use not in USES:
        raise ModelError(f"{owner}: a {g.shape} is for {g.use!r}; {nearest(str(g.use), USES)}")
    if len(g.size) not in SIZES[g.shape]:
        expected = " or ".join(map(str, SIZES[g.shape]))
        raise ModelError(f"{owner}: a {g.shape} has {len(g.size)} sizes; expected {expected}")
    check_numbers(g.size, f"{owner}: the size of a {g.shape}")
    if bool(g.vertices) != (g.shape == "hull") or any(len(x) != 3 for x in g.vertices):
        expected = "points of three numbers" if g.shape == "hull" else "none, which only a hull has"
        raise ModelError(f"{owner}: the vertices of a {g.shape} are {g.vertices}; expected {expected}")
    check_numbers(_flat(g.vertices), f"{owner}: the vertices of a {g.shape}")
    if g.shape != "mesh" and any(x < 0.0 for x in g.size):
        raise ModelError(f"{owner}: the size of a {g.shape} is {g.size}; must be >= 0")
    check_placement(g.placement, f"{owner}: a {g.shape}")
    if g.color is not None and not (len(g.color) == 4 and all(0.0 <= x <= 1.0 for x in g.color)):
        raise ModelError(f"{owner}: the colour of a {g.shape} is {g.color}; expected red, green, blue, opacity, 0 to 1")
    if g.surface is not None:
        _check_surface(g.surface, f"{owner}: the surface of a {g.shape}")


def _check_surface(s: Surface, owner: str) -> None:
    if s.rule not in RULES:
        raise ModelError(f"{owner}: there is no rule {s.rule!r}; {nearest(str(s.rule), RULES)}")
    if s.condim not in (None, 1, 3, 4, 6):
        raise ModelError(f"{owner}: condim is {s.condim!r}; expected 1, 3, 4 or 6")
    for name in ("friction", "torsion", "rolling", "restitution"):
        value = getattr(s, name)
        if value is None:
            continue
        check_numbers((value,), f"{owner}: {name}")
        if value < 0.0 or (name == "restitution" and value > 1.0):
            raise ModelError(f"{owner}: {name} is {value:g}; expected {'0 to 1' if name == 'restitution' else '>= 0'}")


def check_joint(j: Joint) -> None:
    """Raise ModelError for numbers that no joint can have."""
    n, owner = j.kind.nv, label("joint", j)
    for name in ("damping", "friction", "armature", "stiffness", "lower", "upper", "speed", "effort"):
        value = getattr(j, name)
        if value is None:
            continue
        if len(value) != n:
            raise ModelError(f"{owner}: {name} has {len(value)} numbers; a {j.kind.name} joint takes {n}")
        if name in ("damping", "friction", "armature", "stiffness"):
            check_numbers(value, f"{owner}: {name}")
        elif any(map(math.isnan, value)):
            raise ModelError(f"{owner}: {name} is {value}; expected numbers, inf where there is no limit")
        if name not in ("lower", "upper") and any(x < 0.0 for x in value):
            raise ModelError(f"{owner}: {name} is {value}; must be >= 0")
    _check_limits(j, owner)
    if len(j.rest) != j.kind.nq:
        raise ModelError(f"{owner}: the spring's rest has {len(j.rest)} numbers; expected {j.kind.nq}")
    check_numbers(j.rest, f"{owner}: the spring's rest")
    for part in j.kind.unit_parts(j.rest):
        length = math.hypot(*part)
        if abs(length - 1.0) > 1e-6:
            raise ModelError(f"{owner}: the spring's rest is a quaternion of length {length:.9g}; expected 1")
    if not j.kind.takes_springs and any(j.stiffness):
        raise ModelError(f"{owner}: a {j.kind.name} joint has no coordinates for a spring; model the spring as a force")
    check_kind(j.kind, owner)
    check_placement(j.placement, owner)


def check_kind(kind: JointKind, owner: str) -> None:
    """Raise ModelError for a parameter of a joint kind (offset, pitch, length, ...) that is not finite."""
    heading = getattr(kind, "heading", (1.0, 0.0))
    if heading != (1.0, 0.0):
        raise ModelError(f"{owner}: heading is {heading!r}; kernels alone set it. Leave it out, turn the joint")
    for f in fields(kind):  # type: ignore[arg-type]
        check_numbers(_flat(getattr(kind, f.name)), f"{owner}: {f.name}")


def _flat(value: Any) -> Iterator[float]:
    """The numbers in nested tuples."""
    if isinstance(value, (tuple, list)):
        for x in value:
            yield from _flat(x)
    elif isinstance(value, (int, float)):
        yield value


def _check_limits(j: Joint, owner: str) -> None:
    """Raise ModelError for limits that leave no room."""
    if j.lower and j.upper and any(a > b for a, b in zip(j.lower, j.upper, strict=True)):
        raise ModelError(
            f"{owner}: lower limit {j.lower} is above upper limit {j.upper}; expected lower <= upper. "
            "Are the two swapped, or is one in degrees?"
        )
    if math.inf in (j.lower or ()) or -math.inf in (j.upper or ()):
        raise ModelError(
            f"{owner}: limits {j.lower} and {j.upper} leave no room; expected -inf below or inf above for no limit"
        )


def check_placement(placement: Placement, owner: str) -> None:
    """Raise ModelError for a pose with a matrix that is no rotation, or a position that is not finite."""
    check_rotation(placement.rotation, owner)
    check_numbers(placement.position, f"{owner}: position")


def check_rotation(r: Sequence[Sequence[float]], owner: str) -> None:
    """Raise ModelError for a matrix that is not orthonormal to 1e-9 and right-handed."""
    check_numbers([x for row in r for x in row], f"{owner}: rotation")
    worst = max(
        abs(sum(r[i][k] * r[j][k] for k in range(3)) - (1.0 if i == j else 0.0)) for i in range(3) for j in range(3)
    )
    determinant = sum(
        r[0][i] * (r[1][(i + 1) % 3] * r[2][(i + 2) % 3] - r[1][(i + 2) % 3] * r[2][(i + 1) % 3]) for i in range(3)
    )
    if worst > 1e-9 or determinant < 0.0:
        raise ModelError(
            f"{owner}: its rotation matrix is not a rotation "
            f"(R Rᵀ − 1 reaches {worst:.1e}, determinant {determinant:.3g}); "
            "expected orthonormal, right-handed rows"
        )


def check_numbers(values: Iterable[float], owner: str) -> None:
    """Raise ModelError for a number that is not finite or beyond LARGEST."""
    values = tuple(values)
    if not all(-LARGEST <= x <= LARGEST for x in values):
        shown = values[0] if len(values) == 1 else values
        expected = f"at most {LARGEST:g} in SI units" if all(map(math.isfinite, values)) else "finite"
        raise ModelError(f"{owner} is {shown}; every number must be {expected}")


def label(what: str, part: Body | Joint | Frame | Loop | Coupling | Contact) -> str:
    """A part by name and, if known, file and line: body 'forearm' (arm.urdf:41)."""
    return f"{what} {part.name!r}" + (f" ({part.where})" if part.where else "")
