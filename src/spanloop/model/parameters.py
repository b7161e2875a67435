"""The numbers of a model that a kernel can take as input: masses, centres, inertias, lengths, losses, gravity.

Rotations and axes stay baked in. Order: gravity, then for each joint (depth first) the child body's ten inertial
numbers, the joint's position, and per DoF its armature, damping and stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, nearest
from spanloop.model.model import Model
from spanloop.model.parts import Body, Inertia, Joint, Placement

_AXES = ("x", "y", "z")
_MOMENTS = ("xx", "xy", "xz", "yy", "yz", "zz")
NEGLIGIBLE = 1e-15  # kg, kg m², ...: rounding of a zero
_LOSSES = ("armature", "damping", "stiffness")  # per DoF; no stiffness where a joint takes no springs


@dataclass(frozen=True)
class Parameters:
    """Names and values, in the order in which a kernel reads them."""

    names: tuple[str, ...]
    values: np.ndarray

    @staticmethod
    def of(model: Model) -> Parameters:
        """The parameters of a model."""
        pairs = list(_listed(model))
        return Parameters(tuple(n for n, _ in pairs), np.array([x for _, x in pairs], dtype=float))

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Return the number of a parameter by its name: 'forearm.mass', 'elbow.position.x', 'gravity.z'."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(f"there is no parameter {name!r}; {nearest(name, self.names)}") from None

    def changed(self, values: Mapping[str, float]) -> Parameters:
        """Return the parameters with some values replaced, {name: value}."""
        new = self.values.copy()
        for name, x in values.items():
            new[self.index(name)] = x
        return Parameters(self.names, new)


def applied(model: Model, values: ArrayLike) -> Model:
    """Return the model with these parameter values, in the order of model.parameters()."""
    count = len(Parameters.of(model))
    if np.shape(values) != (count,):
        raise InputError(f"parameters has shape {np.shape(values)}; model {model.name!r} takes ({count},)")
    gravity, parts = unpacked(model, [float(x) for x in np.asarray(values)])
    bodies, joints = [], []
    for body, joint, p in zip(model.bodies, model.joints, parts, strict=True):
        bodies.append(replace(body, inertia=Inertia(p["mass"], p["center"], p["moments"])))
        losses = {name: p[name] for name in _losses(joint)}
        joints.append(replace(joint, placement=Placement(joint.placement.rotation, p["position"]), **losses))
    return replace(model, bodies=tuple(bodies), joints=tuple(joints), gravity=gravity)


def unpacked(model: Model, values: Sequence[Any]) -> tuple[tuple[Any, ...], list[dict[str, Any]]]:
    """Gravity, and for each joint a table of its parameters, from the packed order; values may be traced."""
    rest = iter(values)

    def take(n: int) -> tuple[Any, ...]:
        return tuple(next(rest) for _ in range(n))

    gravity = take(3)
    parts = []
    for joint in model.joints:
        n = joint.kind.nv
        part = {"mass": next(rest), "center": take(3), "moments": take(6), "position": take(3)}
        part.update({name: take(n) if name in _losses(joint) else (0.0,) * n for name in _LOSSES})
        parts.append(part)
    return gravity, parts


def not_negative(model: Model, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Names and values of the parameters that no mechanism has below zero; values may be traced.

    Of inertias these are the moments about the body's axes; `impossible` checks all directions.
    """
    _, parts = unpacked(model, values)
    for body, joint, part in zip(model.bodies, model.joints, parts, strict=True):
        yield f"{body.name}.mass", part["mass"]
        for k in (0, 3, 5) if _least_moment(body.inertia.moments) >= 0.0 else ():  # of a welded part it may be negative
            yield f"{body.name}.inertia.{_MOMENTS[k]}", part["moments"][k]
        yield from ((f"{joint.name}.{loss}", x) for loss in _losses(joint) for x in part[loss])


def impossible(model: Model, rows: np.ndarray) -> tuple[int, str] | None:
    """The first of rows (n, width) that no mechanism can have, and why; None if there is none."""
    columns = list(rows.T)
    for name, x in not_negative(model, columns):
        for k in np.flatnonzero(x < -NEGLIGIBLE):
            return int(k), f"{name!r} is {x[k]:g}; must be >= 0"
    for body, part in zip(model.bodies, unpacked(model, columns)[1], strict=True):
        least = _least_moment(part["moments"])
        for k in np.flatnonzero(least < min(0.0, float(_least_moment(body.inertia.moments)))):
            return int(k), f"the inertia of {body.name!r} has a principal moment of {least[k]:.3g} kg m²; must be >= 0"
    return None


def _least_moment(moments: Sequence[Any]) -> np.ndarray:
    """The smallest principal moment (...) of xx xy xz yy yz zz, each (...); 0 if it is one of rounding."""
    xx, xy, xz, yy, yz, zz = moments
    matrices = np.moveaxis(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float), (0, 1), (-2, -1))
    least = np.linalg.eigvalsh(matrices)[..., 0]
    rounding = 1e-9 * np.abs(matrices).max(axis=(-2, -1)) + NEGLIGIBLE
    return np.where(np.abs(least) <= rounding, 0.0, least)


def _listed(model: Model) -> Iterator[tuple[str, float]]:
    yield from zip((f"gravity.{a}" for a in _AXES), model.gravity, strict=True)
    for body, joint in zip(model.bodies, model.joints, strict=True):
        yield from _of_body(body)
        yield from _of_joint(joint)


def _losses(joint: Joint) -> tuple[str, ...]:
    return _LOSSES if joint.kind.takes_springs else _LOSSES[:2]


def _of_body(body: Body) -> Iterator[tuple[str, float]]:
    yield f"{body.name}.mass", body.inertia.mass
    yield from zip((f"{body.name}.center.{a}" for a in _AXES), body.inertia.center, strict=True)
    yield from zip((f"{body.name}.inertia.{m}" for m in _MOMENTS), body.inertia.moments, strict=True)


def _of_joint(joint: Joint) -> Iterator[tuple[str, float]]:
    yield from zip((f"{joint.name}.position.{a}" for a in _AXES), joint.placement.position, strict=True)
    for loss in _losses(joint):
        values = getattr(joint, loss)
        for k, x in enumerate(values):
            yield f"{joint.name}.{loss}" + (f".{k}" if len(values) > 1 else ""), x
