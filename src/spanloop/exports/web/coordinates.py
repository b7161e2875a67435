"""Names and units of coordinates and degrees of freedom, in order."""

from __future__ import annotations

from spanloop.model import Model

_QUATERNION = ("quaternion w", "quaternion x", "quaternion y", "quaternion z")
_POSITION = ("position x", "position y", "position z")


def coordinates(model: Model) -> list[dict[str, str]]:
    """Of each entry of q its name, its joint, its unit, and where a joint has a quaternion, what part it is."""
    out = []
    for j in model.joints:
        if j.kind.nq == j.kind.nv:
            named = zip(j.kind.dof_names(j.name), j.kind.units, strict=True)
            out += [{"name": n, "joint": j.name, "unit": unit} for n, unit in named]
            continue
        for k, part in enumerate((*_QUATERNION, *_POSITION)[: j.kind.nq]):
            unit = "m" if part in _POSITION else "1"
            out.append({"name": f"{j.name}[{k}]", "joint": j.name, "unit": unit, "part": part})
    return out


def degrees_of_freedom(model: Model) -> list[dict[str, str]]:
    """Of each entry of v its name, its joint, the unit of its rate, and that of its entry of tau.

    That entry is a torque or force; of a driven joint it is the acceleration.
    """
    out = []
    for j in model.joints:
        for name, unit in zip(j.kind.dof_names(j.name), j.kind.units, strict=True):
            effort = f"{unit}/s2" if j.driven else {"rad": "N m", "m": "N"}.get(unit, f"J/({unit})")
            out.append({"name": name, "joint": j.name, "unit": f"{unit}/s", "effort": effort})
    return out
