"""The numbers of a model that a kernel can take as input: masses, centres, inertias, lengths, losses, gravity.

Rotations and axes stay baked in. Order: gravity, then for each joint (depth first) the child body's ten inertial
numbers, the joint's position, and per DoF its armature, damping and stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model.model import Model
from spanloop.model.parts import Body, Inertia, Joint, Placement

_AXES = ("x", "y", "z")
_MOMENTS = ("xx", "xy", "xz", "yy", "yz", "zz")
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


def applied(model: Model, values: Sequence[float]) -> Model:
    """Return the model with these parameter values, in the order of model.parameters()."""
    values = [float(x) for x in values]
    if len(values) != len(Parameters.of(model)):
        raise InputError(f"{len(values)} parameters given; model {model.name!r} has {len(Parameters.of(model))}")
    gravity, parts = unpacked(model, values)
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
