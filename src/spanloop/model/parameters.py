"""The numbers of a model that a kernel can take as input: masses, centres, inertias, lengths, losses, gravity.

Rotations, axes and the frames of loops stay baked in. Order: gravity, then for each joint (depth first) the child
body's ten inertial numbers, the joint's position, and per DoF its armature, damping and stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, ModelError, nearest
from spanloop.model.inertia_check import NEGATIVE, POINT, TRIANGLE, why_impossible
from spanloop.model.model import Model
from spanloop.model.parts import Body, Inertia, Joint, Placement
from spanloop.model.user_input import number

_AXES = ("x", "y", "z")
_MOMENTS = ("xx", "xy", "xz", "yy", "yz", "zz")
NEGLIGIBLE = 1e-15  # kg, kg m², ...: rounding of a zero
_PROPORTION = 1e-5  # how exactly a flexible body's numbers are in proportion; float32 has 6e-8
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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values: kernels and sl.simulate take the parameters themselves."""
        return np.array(self.values, dtype=dtype)

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
            new[self.index(name)] = number(x, f"parameter {name!r}")
        return Parameters(self.names, new)


@dataclass(frozen=True)
class Varied:
    """Some parameters of a model as inputs, the others as numbers; places: in model.parameters()."""

    places: tuple[int, ...]
    own: tuple[float, ...]  # all parameters of the model

    @staticmethod
    def of(model: Model, names: Sequence[str], who: str) -> Varied:
        """The parameters of these names; raises InputError for one that is unknown or cannot vary alone."""
        known = Parameters.of(model)
        places = [known.index(name) for name in names]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{who}: parameter {name!r} is named twice; name it once")
            for joint in model.joints:
                own = name.removeprefix(f"{joint.child}.").split(".")[0] if name.startswith(f"{joint.child}.") else ""
                if joint.kind.bends and own in ("mass", "center", "inertia"):
                    raise InputError(f"{who}: parameter {name!r} cannot vary alone: {out_of_proportion(joint.child)}")
        return Varied(tuple(places), tuple(known.values.tolist()))

    @property
    def only_gravity(self) -> bool:
        """Whether gravity alone varies."""
        return all(k < len(_AXES) for k in self.places)

    @property
    def start(self) -> np.ndarray:
        """The model's own values of those that vary."""
        return np.array([self.own[k] for k in self.places])

    def expanded(self, values: Sequence[Any]) -> list[Any]:
        """All parameters, with these values of those that vary; values may be traced."""
        out: list[Any] = list(self.own)
        for k, x in zip(self.places, values, strict=True):
            out[k] = x
        return out


def applied(model: Model, values: ArrayLike) -> Model:
    """Return the model with these parameter values, in the order of model.parameters()."""
    count = len(Parameters.of(model))
    if np.shape(values) != (count,):
        raise InputError(f"parameters has shape {np.shape(values)}; model {model.name!r} takes ({count},)")
    try:
        rows = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"model {model.name!r}: parameters holds something that is no number") from None
    gravity, parts = unpacked(model, rows.tolist())
    bodies, joints = [], []
    for body, joint, p in zip(model.bodies, model.joints, parts, strict=True):
        bodies.append(replace(body, inertia=Inertia(p["mass"], p["center"], p["moments"])))
        losses = {name: p[name] for name in _losses(joint)}
        joints.append(replace(joint, placement=Placement(joint.placement.rotation, p["position"]), **losses))
    made = replace(model, bodies=tuple(bodies), joints=tuple(joints), gravity=gravity)
    found = impossible(model, rows[None])
    if found:
        raise ModelError(f"model {model.name!r}: parameters: {found[1]}")
    return made


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


def proportions(model: Model, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Flexible bodies by name, with numbers that are negative where mass, centre and moments are out of proportion.

    Modes belong to a body's mass distribution: another density changes all of them together. values may be traced.
    """
    if not any(j.kind.bends for j in model.joints):
        return
    for body, joint, part in zip(model.bodies, model.joints, unpacked(model, values)[1], strict=True):
        i = body.inertia
        if not joint.kind.bends or not i.mass:
            continue
        most = _PROPORTION * max(i.moments) / i.mass
        for x, known in zip(part["moments"], i.moments, strict=True):
            away = x - (known / i.mass) * part["mass"]
            yield from ((body.name, most * part["mass"] - away), (body.name, most * part["mass"] + away))
        room = _PROPORTION * (max(map(abs, i.center)) or 1.0)
        for x, known in zip(part["center"], i.center, strict=True):
            yield from ((body.name, room - (x - known)), (body.name, room + (x - known)))


def out_of_proportion(body: str) -> str:
    """A sentence on a flexible body whose mass and inertia do not belong together."""
    return (
        f"mass, centre and inertia of the flexible body {body!r} change in proportion only; multiply its mass and all "
        "its moments of inertia by one factor, as "
        f"model.with_material({body!r}, density=...).parameters() does for beams"
    )


def impossible(model: Model, rows: np.ndarray) -> tuple[int, str] | None:
    """The first of rows (n, width) that no mechanism can have, and why; None if there is none.

    A body that the model itself has with an impossible inertia (a file's, or one part of a welded whole) may keep it.
    """
    columns = list(rows.T)
    for name, x in not_negative(model, columns):
        for k in np.flatnonzero(x < -NEGLIGIBLE):
            return int(k), f"{name!r} is {x[k]:g}; must be >= 0"
    for name, x in proportions(model, columns):
        for k in np.flatnonzero(x < -NEGLIGIBLE):
            return int(k), out_of_proportion(name)
    for body, part in zip(model.bodies, unpacked(model, columns)[1], strict=True):
        most = np.maximum(1.000001 * _excess(body.inertia.mass, body.inertia.moments), (NEGATIVE, TRIANGLE))
        for k in np.flatnonzero((_excess(part["mass"], part["moments"]) > most).any(axis=-1)):
            moments = np.linalg.eigvalsh(_matrices([x[k] for x in part["moments"]]))
            return int(k), why_impossible(moments, f"body {body.name!r}")
    return None


def _excess(mass: Any, moments: Sequence[Any]) -> np.ndarray:
    """−a and c − a − b (..., 2) of principal moments a ≤ b ≤ c, relative to the largest; positive: no body has them."""
    a, b, c = np.moveaxis(np.linalg.eigvalsh(_matrices(moments)), -1, 0)
    largest = np.maximum(np.maximum(np.abs(a), np.abs(c)), NEGLIGIBLE)
    slack = POINT * np.asarray(mass, float)
    found: np.ndarray = np.stack([-a - slack, c - a - b - slack], axis=-1) / largest[..., None]
    return found


def _least_moment(moments: Sequence[Any]) -> np.ndarray:
    """The smallest principal moment (...) of xx xy xz yy yz zz, each (...); 0 if it is one of rounding."""
    matrices = _matrices(moments)
    least = np.linalg.eigvalsh(matrices)[..., 0]
    rounding = 1e-9 * np.abs(matrices).max(axis=(-2, -1)) + NEGLIGIBLE
    return np.where(np.abs(least) <= rounding, 0.0, least)


def _matrices(moments: Sequence[Any]) -> np.ndarray:
    """Inertia matrices (..., 3, 3) of xx xy xz yy yz zz, each (...)."""
    xx, xy, xz, yy, yz, zz = moments
    return np.moveaxis(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float), (0, 1), (-2, -1))


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
