"""Serial arms from Denavit-Hartenberg tables, standard form.

T_i = Rz(θ_i) Tz(b_i) Tx(a_i) Rx(α_i) takes frame i+1 to frame i; frame 1 is the world's, frame i+1 is fixed
to link i, and joint i turns about or slides along z of frame i: q_i is added to θ_i (revolute) or b_i
(prismatic). [Saha, section 2]

The frame of the model's body i is frame i moved by q_i alone, so that T_i = (motion by q_i) C_i with the
constant C_i = Rz(θ_i) Tz(b_i) Tx(a_i) Rx(α_i); C_i places joint i+1. The table's inertias, in frame i+1, are
turned by C_i.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from spanloop.errors import InputError, nearest
from spanloop.joints import Prismatic, Revolute
from spanloop.math.rotation import from_matrix
from spanloop.math.small import negate, symmetric
from spanloop.math.spatial import Transform
from spanloop.model import given
from spanloop.model.build import Builder
from spanloop.model.load.snap import snap_rotation
from spanloop.model.model import Model
from spanloop.model.parts import Placement

_KINDS = {"r": Revolute, "revolute": Revolute, "p": Prismatic, "prismatic": Prismatic}


@dataclass(frozen=True)
class DHRow:
    """One joint and its link.

    a, b [m], alpha, theta [rad]: the constants; the joint's coordinate is added to theta or b.
    joint: "r" (revolute) or "p" (prismatic); name: the joint's; options: further fields of Joint.
    mass [kg]; r (3,) [m]: from the mass centre to the origin of frame i+1; inertia [kg m²]: about the mass
    centre, 3 principal moments, 6 numbers xx xy xz yy yz zz, or 3x3. r and inertia are in frame i+1's axes.
    """

    a: float = 0.0
    b: float = 0.0
    alpha: float = 0.0
    theta: float = 0.0
    joint: str = "r"
    mass: float = 0.0
    r: Any = (0.0, 0.0, 0.0)
    inertia: Any = (0.0, 0.0, 0.0)
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def from_dh(table: Iterable[DHRow | Mapping[str, Any]], name: str = "arm", gravity=(0.0, 0.0, -9.81)) -> Model:
    """A serial arm from rows of a Denavit-Hartenberg table (standard form, see above).

    Bodies are link1, link2, ...; joints joint1, joint2, ... or the row's name; "tool" is the last frame.
    """
    builder = Builder(name, gravity)
    parent, here = "world", Placement()
    for number, given_row in enumerate(table, 1):
        row = _row(given_row, number)
        body = f"link{number}"
        rest, changed = _constant(row)
        if changed:
            builder.note(f"row {number}: rotation snapped to exact right angles")
        _add_body(builder, body, row, rest)
        joint = row.name or f"joint{number}"
        kind = _kind(row, number)
        builder.joint(joint, kind, parent, body, here.position, here.rotation, **row.options)
        parent, here = body, rest
    builder.frame("tool", parent, here.position, here.rotation)
    return builder.build()


def _row(row: DHRow | Mapping[str, Any], number: int) -> DHRow:
    if isinstance(row, DHRow):
        for key in ("a", "b", "alpha", "theta", "mass"):
            given.number(getattr(row, key), f"row {number}: {key}")
        return row
    if not isinstance(row, Mapping):
        raise InputError(f"row {number}: {row!r} is not a row; expected a DHRow or a dict with a, b, alpha, theta, ...")
    known = [f.name for f in fields(DHRow)]
    for key in row:
        if key not in known:
            raise InputError(f"row {number}: there is no entry {key!r}; {nearest(key, known)}")
    return _row(DHRow(**row), number)


def _kind(row: DHRow, number: int):
    if row.joint not in _KINDS:
        raise InputError(f"row {number}: joint is {row.joint!r}; expected 'r' (revolute) or 'p' (prismatic)")
    return _KINDS[row.joint]()


def _constant(row: DHRow) -> tuple[Placement, bool]:
    """C = Rz(θ) Tz(b) Tx(a) Rx(α), right angles exact; was more than rounding changed for that?"""
    (s, c), (sa, ca) = ((math.sin(x), math.cos(x)) for x in (row.theta, row.alpha))
    turn, changed = snap_rotation(((c, -s * ca, s * sa), (s, c * ca, -c * sa), (0.0, sa, ca)))
    x, y = turn[0][0], turn[1][0]
    return Placement(turn, (row.a * x, row.a * y, float(row.b))), changed


def _add_body(builder: Builder, body: str, row: DHRow, rest: Placement) -> None:
    """The link's inertia, given in frame i+1, in the body's frame."""
    owner = f"body {body!r}"
    turn = from_matrix(rest.rotation)
    center = Transform(turn, rest.position).point(negate(given.three(row.r, f"{owner}: r")))
    inertia = turn.turn_symmetric(symmetric(*given.moments(row.inertia, owner)))
    builder.body(body, row.mass, center, inertia)
