"""Serial arms from Denavit-Hartenberg tables, standard or modified form.

Joint i turns about or slides along its z axis: q_i is added to θ_i (revolute) or b_i (prismatic). The *link's
frame* is the one in which a row's mass centre and inertia are given.

| form     | one row's matrix                      | takes         | axis of joint i | the link's frame |
|----------|---------------------------------------|---------------|-----------------|------------------|
| standard | Rz(θ_i) Tz(b_i) Tx(a_i) Rx(α_i)       | frame i+1 to i | z of frame i    | frame i+1        |
| modified | Rx(α_i) Tx(a_i) Rz(θ_i) Tz(b_i)       | frame i to i−1 | z of frame i    | frame i          |

Standard: frame 1 is the base's. [Saha, section 2] Modified: frame 0 is the base's; row i holds what Craig calls
a_{i−1}, α_{i−1}, d_i, θ_i. [Craig, section 3.4]

The frame of the model's body i turns with q_i alone: in the standard form it is frame i moved by q_i, and the
link's frame is placed in it by the row's matrix at q_i = 0; in the modified form it is frame i itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from numpy.typing import ArrayLike

from spanloop.errors import InputError, nearest
from spanloop.joints import Prismatic, Revolute
from spanloop.math.vector3 import subtract
from spanloop.model import user_input
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.inertia_check import check_inertias
from spanloop.model.model import Model
from spanloop.model.parts import Body, Frame, Inertia, Joint, Placement

_KINDS = {"r": Revolute, "revolute": Revolute, "p": Prismatic, "prismatic": Prismatic}
CONVENTIONS = ("standard", "modified")
ABOUT = ("center", "origin")


@dataclass(frozen=True)
class DHRow:
    """One joint and its link.

    a, b [m], alpha, theta [rad]: the constants; the joint's coordinate is added to theta or b
    joint: "r" (revolute) or "p" (prismatic)
    name, body: of the joint and of the link; options: further fields of Joint
    mass [kg]
    r: (3,) from the mass centre to the origin of the link's frame [m], as Saha gives it, or
    center: (3,) from that origin to the mass centre [m], as Craig and Lilly & Orin give it
    inertia: 3 principal moments, 6 numbers xx xy xz yy yz zz, or (3, 3) [kg m²]
    where: file and line

    Mass centre and inertia are in the axes of the link's frame.
    """

    a: float = 0.0
    b: float = 0.0
    alpha: float = 0.0
    theta: float = 0.0
    joint: str = "r"
    mass: float = 0.0
    r: Any = None
    inertia: Any = (0.0, 0.0, 0.0)
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    center: Any = None
    body: str = ""
    where: str = ""


def from_dh(
    table: Iterable[DHRow | Mapping[str, Any]] | str | os.PathLike[str],
    name: str | None = None,
    gravity: ArrayLike | None = None,
    *,
    convention: str | None = None,
    about: str | None = None,
    base: Placement | None = None,
) -> Model:
    """Return the serial arm of a Denavit-Hartenberg table.

    table: rows (DHRow, or mappings with its fields), or the path of a .csv file (docs/dh.md)
    name: of the model; "arm" by default
    gravity: (3,) [m/s²] in the world; (0, 0, −9.81) by default
    convention: "standard" (default) or "modified"
    about: inertias are about the mass "center" (default) or the "origin" of the link's frame
    base: pose of the table's first frame in the world

    A file may contain these settings itself; arguments for convention and about must then agree with it.
    Bodies are link1, link2, ..., joints are joint1, joint2, ... unless the rows name them; the frame "tool" is the last
    frame of the table. Raises InputError (FileError for a file) for a table that cannot be read, ModelError for an
    inertia that no body can have.

    >>> arm = sl.from_dh([{"a": 0.5, "mass": 2.0, "center": (-0.2, 0, 0), "inertia": (0.002, 0.04, 0.04)}])
    >>> arm.frame("tool").placement.position
    (0.5, 0.0, 0.0)
    """
    settings: dict[str, Any] = {}
    if isinstance(table, (str, os.PathLike)):
        from spanloop.model.files.dh.reader import read_table

        table, settings = read_table(table)
    settings = _settled(
        settings, {"convention": convention, "about": about, "base": base, "name": name, "gravity": gravity}
    )
    rows = [_row(row, number) for number, row in enumerate(table, 1)]
    if not rows:
        raise InputError("the Denavit-Hartenberg table has no rows; expected one for each joint")
    return _model(rows, **settings)


def _settled(settings: dict[str, Any], given_here: dict[str, Any]) -> dict[str, Any]:
    """Settings of the file and of the caller; they must not contradict each other on how to read the table."""
    for key, known in (("convention", CONVENTIONS), ("about", ABOUT)):
        word = given_here[key]
        if word is not None and word not in known:
            raise InputError(f"{key} is {word!r}; {nearest(word, known)}")
        if word is not None and settings.get(key, word) != word:
            raise InputError(f"{key} is {word!r}, but the file says {settings[key]!r}; leave one of them out")
    defaults = {
        "convention": "standard",
        "about": "center",
        "base": Placement(),
        "name": "arm",
        "gravity": (0, 0, -9.81),
    }
    return defaults | settings | {key: x for key, x in given_here.items() if x is not None}


def _model(rows: list[DHRow], convention: str, about: str, base: Placement, name: str, gravity: ArrayLike) -> Model:
    bodies, joints, notes = [], [], []
    parent, here = "world", base
    for number, row in enumerate(rows, 1):
        owner = row.where or f"row {number}"
        constant, changed = _standard(row) if convention == "standard" else _modified(row)
        if changed:
            notes.append(f"{owner}: rotation snapped to exact right angles")
        at, link = (here, constant) if convention == "standard" else (here @ constant, Placement())
        body = row.body or f"link{number}"
        bodies.append(Body(body, _inertia(row, link, about, owner), where=row.where))
        joints.append(_joint(row, number, owner, parent, body, at))
        parent, here = body, link
    tool = Frame("tool", parent, here)
    field_of_gravity = user_input.three(gravity, f"model {name!r}: gravity")
    model = Model(name, tuple(bodies), tuple(joints), (tool,), gravity=field_of_gravity, notes=tuple(notes))
    check_inertias(model, strict=True)
    return model


def _row(row: DHRow | Mapping[str, Any], number: int) -> DHRow:
    if isinstance(row, DHRow):
        owner = row.where or f"row {number}"
        for key in ("a", "b", "alpha", "theta", "mass"):
            user_input.number(getattr(row, key), f"{owner}: {key}")
        if row.joint not in _KINDS:
            raise InputError(f"{owner}: joint is {row.joint!r}; expected 'r' (revolute) or 'p' (prismatic)")
        if row.r is not None and row.center is not None:
            raise InputError(f"{owner}: r and center are both given; they are opposite vectors, give one of them")
        return row
    if not isinstance(row, Mapping):
        raise InputError(f"row {number}: {row!r} is not a row; expected a DHRow or a dict with a, b, alpha, theta, ...")
    known = [f.name for f in fields(DHRow)]
    for key in row:
        if key not in known:
            raise InputError(f"row {number}: there is no entry {key!r}; {nearest(key, known)}")
    return _row(DHRow(**row), number)


def _joint(row: DHRow, number: int, owner: str, parent: str, child: str, at: Placement) -> Joint:
    kind = _KINDS[row.joint]()
    settings = user_input.joint_settings(row.options, kind, owner)
    return Joint(row.name or f"joint{number}", kind, parent, child, at, where=row.where, **settings)


def _standard(row: DHRow) -> tuple[Placement, bool]:
    """Rz(θ) Tz(b) Tx(a) Rx(α), right angles exact; was more than rounding changed for that?"""
    (s, c), (sa, ca) = ((math.sin(x), math.cos(x)) for x in (row.theta, row.alpha))
    turn, changed = snap_rotation(((c, -s * ca, s * sa), (s, c * ca, -c * sa), (0.0, sa, ca)))
    x, y = turn[0][0], turn[1][0]
    return Placement(turn, (row.a * x, row.a * y, float(row.b))), changed


def _modified(row: DHRow) -> tuple[Placement, bool]:
    """Rx(α) Tx(a) Rz(θ) Tz(b), likewise."""
    (s, c), (sa, ca) = ((math.sin(x), math.cos(x)) for x in (row.theta, row.alpha))
    turn, changed = snap_rotation(((c, -s, 0.0), (ca * s, ca * c, -sa), (sa * s, sa * c, ca)))
    y, z = turn[1][2], turn[2][2]
    return Placement(turn, (float(row.a), row.b * y, row.b * z)), changed


def _inertia(row: DHRow, link: Placement, about: str, owner: str) -> Inertia:
    """The row's inertia, given in the link's frame, in the body's frame."""
    if row.r is not None:
        center = subtract((0.0, 0.0, 0.0), user_input.three(row.r, f"{owner}: r"))
    else:
        center = user_input.three((0.0, 0.0, 0.0) if row.center is None else row.center, f"{owner}: center")
    mass, (xx, xy, xz, yy, yz, zz) = float(row.mass), user_input.moments(row.inertia, owner)
    if about == "origin":  # less m (c·c 1 − c cᵀ)
        x, y, z = center
        xx, yy, zz = xx - mass * (y * y + z * z), yy - mass * (x * x + z * z), zz - mass * (x * x + y * y)
        xy, xz, yz = xy + mass * x * y, xz + mass * x * z, yz + mass * y * z
    inertia = Inertia(mass, center, (xx, xy, xz, yy, yz, zz))
    return inertia if link == Placement() else _seen(inertia, link)


def _seen(inertia: Inertia, link: Placement) -> Inertia:
    """The inertia in a frame in which the frame that it is given in has the placement `link`."""
    m = link.turn().turn_symmetric(inertia.matrix())
    center = (link @ Placement(position=inertia.center)).position
    return Inertia(inertia.mass, center, (m[0][0], m[0][1], m[0][2], m[1][1], m[1][2], m[2][2]))
