"""Mirror: a model reflected in a plane through the world's origin.

With n the plane's normal and s = 1 − 2 n nᵀ, every frame keeps the names of its axes and its components are mirrored:
positions p become s p, rotations R become s R s, inertias I become s I s. A rotation about u becomes the same rotation
about −s u, a displacement along u one along s u. Joints with one DoF at equal coordinates are therefore in mirrored
postures; for the other kinds `mirrored_state` converts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, ModelError
from spanloop.joints.kind import JointKind, checked_axis
from spanloop.math.vector3 import product, times
from spanloop.model.contacts.contact import Contact
from spanloop.model.edits.rename import renamed, swapping
from spanloop.model.edits.scale import mapped
from spanloop.model.exact_rotations import snap_axis, snap_rotation
from spanloop.model.parts import Body, Geometry, Inertia, Joint, Placement
from spanloop.types import Floats33

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spanloop.model.model import Model

_ACROSS_X: Floats33 = ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def mirror(model: Model, normal: str | Sequence[float] = "y", *, swap: Sequence[str] = ()) -> Model:
    """Return the model mirrored in a plane through the world's origin.

    normal: of the plane, an axis' name or (3,) in the world
    swap: two words that change places in all names, as ("left", "right")

    Joints with one DoF at equal coordinates are in mirrored postures. Raises ModelError for a joint whose limits or
    losses belong to axes that the mirror mixes.

    >>> leg = sl.Builder("leg").body("left_thigh", mass=2.0, center=(0, 0, -0.2), inertia=(0.03, 0.03, 0.002))
    >>> leg = leg.revolute("left_hip", "world", "left_thigh", "x", (0, 0.1, 0)).build()
    >>> leg.mirror("y", swap=("left", "right")).joint("right_hip").placement.position
    (0.0, -0.1, 0.0)
    """
    s = reflection(normal)
    out = mapped(
        model,
        body=lambda b: _body(b, s),
        joint=lambda j: _joint(j, s),
        kind=lambda k: k.mirrored(s),
        placement=lambda p: _placement(p, s),
        contact=lambda c: _contact(c, s),
    )
    out = replace(out, gravity=_plain(times(s, model.gravity)))
    if not swap:
        return out
    if (
        not isinstance(swap, Sequence)
        or len(swap) != 2
        or not all(isinstance(w, str) and w for w in swap)
        or swap[0] == swap[1]
    ):
        raise InputError(f"mirror: swap is {swap!r}; expected two words, as ('left', 'right')")
    return renamed(out, swapping(*swap))


def mirrored_state(
    model: Model, q: ArrayLike, v: ArrayLike, normal: str | Sequence[float] = "y"
) -> tuple[np.ndarray, np.ndarray]:
    """Return q (nq,) and v (nv,) of model.mirror(normal) in the mirrored state.

    Accelerations and torques are mirrored as v is.
    """
    s = reflection(normal)
    here, rates = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    mirrored_q = [j.kind.mirrored_q(s, here[model.q_slice(j.name)].tolist()) for j in model.joints]
    mirrored_v = [j.kind.mirrored_v(s, rates[model.v_slice(j.name)].tolist()) for j in model.joints]
    return np.array([x for part in mirrored_q for x in part]), np.array([x for part in mirrored_v for x in part])


def reflection(normal: str | Sequence[float]) -> Floats33:
    """1 − 2 n nᵀ."""
    n, _ = snap_axis(checked_axis(normal, "mirror: the plane's normal"))
    return tuple(tuple((i == j) - 2.0 * n[i] * n[j] for j in range(3)) for i in range(3))  # type: ignore[return-value]


def _placement(p: Placement, s: Floats33, inside: Floats33 | None = None) -> Placement:
    """s P s; with `inside` the reflection on the right is another one."""
    rotation, _ = snap_rotation(product(product(s, p.rotation), inside or s))
    return Placement(rotation, _plain(times(s, p.position)))


def _plain(v: Sequence[float]) -> Any:
    """Without -0.0."""
    return tuple(x + 0.0 for x in v)


def _body(b: Body, s: Floats33) -> Body:
    m = product(product(s, b.inertia.matrix()), s)
    moments = _plain((m[0][0], m[0][1], m[0][2], m[1][1], m[1][2], m[2][2]))
    inertia = Inertia(b.inertia.mass, _plain(times(s, b.inertia.center)), moments)
    return replace(b, inertia=inertia, geometry=tuple(_geometry(g, s) for g in b.geometry))


def _geometry(g: Geometry, s: Floats33) -> Geometry:
    """A shape is its own image across its coordinate planes; a plane only across those along its normal.

    A mesh is turned over by its scale, a hull by its vertices.
    """
    along_axes = all(s[i][j] == 0.0 for i in range(3) for j in range(3) if i != j)
    inside = s if along_axes and not (g.shape == "plane" and s[2][2] < 0.0) else _ACROSS_X
    size = g.size
    if g.shape == "mesh":
        size = tuple(inside[i][i] * x for i, x in enumerate(g.size or (1.0, 1.0, 1.0)))
    vertices = tuple(_plain(times(inside, p)) for p in g.vertices)
    return replace(g, size=size, placement=_placement(g.placement, s, inside), vertices=vertices)


def _contact(c: Contact, s: Floats33) -> Contact:
    sides = [replace(side, geometry=_geometry(side.geometry, s)) for side in c.sides]
    return replace(c, a=sides[0], b=sides[1], surface_velocity=_plain(times(s, c.surface_velocity)))


def _joint(j: Joint, s: Floats33) -> Joint:
    change = _change(j.kind, s)
    numbers: dict[str, Any] = {
        name: _turned(j, name, change)
        for name in ("damping", "friction", "armature", "stiffness", "speed", "effort")
        if getattr(j, name) is not None
    }
    return replace(
        j,
        kind=j.kind.mirrored(s),
        placement=_placement(j.placement, s),
        rest=j.kind.mirrored_q(s, j.rest),
        **numbers,
        **_limits(j, change),
    )


def _change(kind: JointKind, s: Floats33) -> np.ndarray:
    """The matrix (nv, nv) that takes rates to those of the mirror image."""
    units = np.eye(kind.nv)
    return np.array([kind.mirrored_v(s, row) for row in units.tolist()]).reshape(kind.nv, kind.nv).T


def _turned(j: Joint, name: str, change: np.ndarray) -> tuple[float, ...]:
    """Numbers that belong to the DoF; where the mirror mixes these they must be equal."""
    values: tuple[float, ...] = getattr(j, name)
    if not np.array_equal(np.abs(change), np.eye(len(values))) and any(x != values[0] for x in values):
        size = np.where(np.isfinite(values), values, 0.0)
        mixed = change @ np.diag(size) @ change.T
        off = np.abs(mixed - np.diag(np.diag(mixed))).max()
        if off > 1e-12 * np.abs(size).max() or not np.isfinite(values).all():
            raise ModelError(
                f"joint {j.name!r}: its {name} {values} differs between axes that this mirror mixes; "
                "mirror across a plane along the joint's axes"
            )
        return tuple(np.diag(mixed).tolist())
    return values


def _limits(j: Joint, change: np.ndarray) -> dict[str, Any]:
    if j.lower is None and j.upper is None:
        return {}
    n = j.kind.nv
    if not np.array_equal(np.abs(change), np.eye(n)):
        raise ModelError(
            f"joint {j.name!r}: its limits belong to axes that this mirror mixes; mirror across a plane along these"
        )
    lower, upper = j.lower or (-math.inf,) * n, j.upper or (math.inf,) * n
    flipped = [change[k, k] < 0.0 for k in range(n)]
    low = tuple(0.0 - u if f else x for f, x, u in zip(flipped, lower, upper, strict=True))
    high = tuple(0.0 - x if f else u for f, x, u in zip(flipped, lower, upper, strict=True))
    given: dict[str, Any] = {"lower": low if j.lower is not None or any(flipped) else None}
    given["upper"] = high if j.upper is not None or any(flipped) else None
    return given
