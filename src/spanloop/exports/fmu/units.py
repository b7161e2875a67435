"""Units of variables, with their exponents of base units."""

from __future__ import annotations

from spanloop.model import Model
from spanloop.model.parts import Joint

BASE_UNITS: dict[str, dict[str, int]] = {
    "1": {},
    "rad": {"rad": 1},
    "m": {"m": 1},
    "s": {"s": 1},
    "kg": {"kg": 1},
    "rad/s": {"rad": 1, "s": -1},
    "m/s": {"m": 1, "s": -1},
    "1/s": {"s": -1},
    "rad/s2": {"rad": 1, "s": -2},
    "m/s2": {"m": 1, "s": -2},
    "1/s2": {"s": -2},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "kg.m2": {"kg": 1, "m": 2},
    "N.m.s/rad": {"kg": 1, "m": 2, "s": -1, "rad": -1},
    "N.s/m": {"kg": 1, "s": -1},
    "N.m/rad": {"kg": 1, "m": 2, "s": -2, "rad": -1},
    "N/m": {"kg": 1, "s": -2},
}
_LOSSES = {
    "armature": {"rad": "kg.m2", "m": "kg"},
    "damping": {"rad": "N.m.s/rad", "m": "N.s/m"},
    "stiffness": {"rad": "N.m/rad", "m": "N/m"},
}


def per_second(unit: str) -> str:
    """The unit of a rate."""
    known = {"rad": "rad/s", "m": "m/s", "1": "1/s", "rad/s": "rad/s2", "m/s": "m/s2", "1/s": "1/s2"}
    return known.get(unit, "")


def parameter_units(model: Model) -> dict[str, str]:
    """The unit of each parameter of a model, by name."""
    found = {f"gravity.{a}": "m/s2" for a in "xyz"}
    for body, joint in zip(model.bodies, model.joints, strict=True):
        found[f"{body.name}.mass"] = "kg"
        found |= {f"{body.name}.center.{a}": "m" for a in "xyz"}
        found |= {f"{body.name}.inertia.{m}": "kg.m2" for m in ("xx", "xy", "xz", "yy", "yz", "zz")}
        found |= {f"{joint.name}.position.{a}": "m" for a in "xyz"}
        found |= _losses(joint)
    return found


def _losses(joint: Joint) -> dict[str, str]:
    several = joint.kind.nv > 1
    return {
        f"{joint.name}.{loss}" + (f".{k}" if several else ""): units.get(unit, "")
        for loss, units in _LOSSES.items()
        for k, unit in enumerate(joint.kind.units)
    }
