"""Rezero: another state becomes the one at which all coordinates are neutral."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.parts import Coupling, Joint, Placement

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spanloop.model.model import Model


def rezero(model: Model, q: ArrayLike) -> Model:
    """Return the model whose neutral state is the state q (nq,) of this one.

    Angles and displacements count from there, q' = q − q₀; limits, springs and couplings shift with them. Velocities
    stay the same. Raises UnsupportedError for a joint with several DoF whose springs or limits cannot shift, and for a
    deformed flexible body.

    >>> model = sl.zoo.four_bar().rezero(sl.zoo.four_bar_start())  # its loop is closed at neutral coordinates
    >>> model.neutral()
    array([0., 0., 0.])
    """
    try:
        q = np.asarray(q, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"rezero: q is {q!r}; expected the coordinates ({model.nq},) of a state") from None
    if q.shape != (model.nq,) or not np.isfinite(q).all():
        raise InputError(f"rezero: q has shape {q.shape}; expected ({model.nq},), all finite")
    start = {j.name: tuple(q[model.q_slice(j.name)].tolist()) for j in model.joints}
    return replace(
        model,
        joints=tuple(_joint(j, start[j.name]) for j in model.joints),
        couplings=tuple(_coupling(c, start) for c in model.couplings),
    )


def _joint(j: Joint, q: tuple[float, ...]) -> Joint:
    if q == j.kind.neutral():
        return j
    if j.kind.bends:
        raise UnsupportedError(
            f"rezero: joint {j.name!r} holds the modes of a flexible body, which are counted from its undeformed "
            "shape; give 0 for them"
        )
    x = j.kind.transform(q)
    rotation, _ = snap_rotation(x.rotation.matrix())
    changed: dict[str, Any] = {"placement": j.placement @ Placement(rotation, x.translation)}
    if getattr(j.kind, "offset", 0.0):
        changed["kind"] = replace(j.kind, offset=0.0)  # type: ignore[type-var]
    if j.kind.nq == j.kind.nv and j.kind.name not in ("planar", "universal"):
        changed["rest"] = tuple(r - s for r, s in zip(j.rest, q, strict=True))
        for name in ("lower", "upper"):
            if getattr(j, name) is not None:
                changed[name] = tuple(r - s for r, s in zip(getattr(j, name), q, strict=True))
    else:
        _can_move(j, q)
        if j.kind.name == "universal":
            changed["rest"] = (j.rest[0] - q[0], j.rest[1])
    return replace(j, **changed)


def _can_move(j: Joint, q: tuple[float, ...]) -> None:
    if j.kind.name == "universal" and q[1] != 0.0:
        raise UnsupportedError(
            f"rezero: joint {j.name!r} is universal and is at {q[1]:g} rad about its second axis; "
            "only its first angle can be counted from another position"
        )
    if any(j.stiffness) or j.lower is not None or j.upper is not None:
        raise UnsupportedError(
            f"rezero: joint {j.name!r} is {j.kind.name} and has springs or limits, which do not move with its "
            "coordinates; remove these first"
        )


def _coupling(c: Coupling, start: dict[str, tuple[float, ...]]) -> Coupling:
    (of,), (source,) = start[c.joint], (0.0,) if c.source is None else start[c.source]
    return replace(c, offset=c.position(source) - of)
