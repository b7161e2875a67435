"""Names and units of coordinates and DoF, for the columns of files."""

from __future__ import annotations

from spanloop.model import Model
from spanloop.model.parts import Joint

_POSE = ("w", "x", "y", "z", "px", "py", "pz")
_COORDINATES = {"free": _POSE, "general": _POSE, "spherical": _POSE[:4], "planar": ("angle", "x", "y")}
_FREEDOMS = {
    "free": ("wx", "wy", "wz", "vx", "vy", "vz"),
    "spherical": ("wx", "wy", "wz"),
    "planar": ("angle", "x", "y"),
}
_BOTH = {"cylindrical": ("angle", "slide"), "universal": ("first", "second")}
_TORQUES = {"rad": "N m", "m": "N", "": ""}


Name = tuple[str, str]  # of a joint, and of one of its coordinates or DoF where it has several


def coordinates(model: Model) -> list[Name]:
    """The names of the entries of q."""
    return [name for j in model.joints for name in _named(j, j.kind.nq, _COORDINATES)]


def dofs(model: Model) -> list[Name]:
    """The names of the entries of v."""
    return [name for j in model.joints for name in _named(j, j.kind.nv, _FREEDOMS)]


def joined(*words: str) -> str:
    """root.w, or elbow where there is nothing to add."""
    return ".".join(word for word in words if word)


def coordinate_units(model: Model) -> list[str]:
    """The unit of each entry of q."""
    return [unit for j in model.joints for unit in _units(j)]


def dof_units(model: Model) -> list[str]:
    """The unit of each entry of v."""
    return [f"{unit}/s" if unit else "" for j in model.joints for unit in j.kind.units]


def torque_units(model: Model) -> list[str]:
    """The unit of each entry of tau; a driven joint's entry is its acceleration."""
    out = []
    for j in model.joints:
        out += [f"{unit}/s²" if j.driven and unit else _TORQUES.get(unit, "") for unit in j.kind.units]
    return out


def contact_components(model: Model) -> list[str]:
    """The names of the entries of contact_forces: foot.normal, foot.t1, ..."""
    parts: tuple[str, ...] = ("normal", "t1", "t2")
    if any(c.has_torques for c in model.contacts):
        parts += ("torque_normal", "torque_t1", "torque_t2")
    return [joined(name, part) for c in model.contacts for name in c.point_names for part in parts]


def _named(joint: Joint, count: int, names: dict[str, tuple[str, ...]]) -> list[Name]:
    if joint.kind.bends:
        return [(joint.name, mode) for mode in joint.kind.mode_names]  # type: ignore[attr-defined]
    known = ("",) if count == 1 else (names | _BOTH).get(joint.kind.name, ())
    parts = known if len(known) == count else map(str, range(count))
    return [(joint.name, part) for part in parts]


def _units(joint: Joint) -> tuple[str, ...]:
    if joint.kind.nq == joint.kind.nv:
        return joint.kind.units
    return ("1", "1", "1", "1", "m", "m", "m")[: joint.kind.nq]
