"""What varies, by name: where a draw goes in the arguments of sl.simulate, its unit, and draws that cannot be.

| name | what |
|---|---|
| `forearm.mass`, `elbow.position.x`, `gravity.z` | a parameter of model.parameters() |
| `q.JOINT`, `v.JOINT`, `v.JOINT[k]` | of the initial state; of rotations no single numbers |
| `tau.JOINT`, `tau.JOINT[k]` | a constant torque or force |
| `input.NAME` | one of `inputs`, as a gain of the controller |
| `friction.CONTACT`, `restitution.CONTACT` | of a contact |
| any other name | a variable that `assign` turns into some of these |
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.model.parameters import NEGLIGIBLE, impossible, not_negative
from spanloop.studies.draws.assign_call import Assign, Columns, called, numbers
from spanloop.studies.draws.assign_check import refuse_unrepeatable
from spanloop.trajectory.files.labels import coordinate_units, dof_units, torque_units

SURFACES = ("friction", "restitution")
_STATES = ("q", "v", "tau")
_STATE = re.compile(r"(q|v|tau)\.(.+?)(?:\[(\d+)\])?")
_FIXED = ("friction", "rest", "lower", "upper", "speed", "effort")  # settings of joints that are no parameters
_LOSSES = {  # units by that of the coordinate
    "armature": {"rad": "kg m²", "m": "kg"},
    "damping": {"rad": "N m s/rad", "m": "N s/m"},
    "stiffness": {"rad": "N m/rad", "m": "N/m"},
}
_BLOCK = 65536  # draws that are checked at once


@dataclass(frozen=True)
class Target:
    """Where a number goes: a column of "parameters", "q", "v", "tau" or "input", or a contact's surface.

    joint: of "q", "v" and "tau".
    """

    name: str
    kind: str
    place: int
    unit: str
    joint: str = ""


def targets(model: Model, inputs: Sequence[str]) -> dict[str, Target]:
    """All that can vary in runs of a model, by name; inputs: names of its inputs."""
    losses = dict(_units_of_losses(model))
    out = {
        name: Target(name, "parameters", k, losses.get(name) or _parameter_unit(name))
        for k, name in enumerate(model.parameters().names)
    }
    for target in _of_joints(model):
        out[target.name] = target
    out |= {f"input.{name}": Target(f"input.{name}", "input", k, "") for k, name in enumerate(inputs)}
    for kind in SURFACES:
        out |= {f"{kind}.{c.name}": Target(f"{kind}.{c.name}", kind, k, "1") for k, c in enumerate(model.contacts)}
    return out


def _of_joints(model: Model) -> Iterator[Target]:
    units = {"q": coordinate_units(model), "v": dof_units(model), "tau": torque_units(model)}
    for joint in model.joints:
        for letter in ("q", "v", "tau"):
            own = (
                range(model.nq)[model.q_slice(joint.name)]
                if letter == "q"
                else range(model.nv)[model.v_slice(joint.name)]
            )
            for k, place in enumerate(own):
                if letter == "q" and joint.kind.nq != joint.kind.nv and units["q"][place] != "m":
                    continue  # a number of a rotation, which does not vary alone
                name = f"{letter}.{joint.name}" + (f"[{k}]" if len(own) > 1 else "")
                yield Target(name, letter, place, units[letter][place], joint.name)


@dataclass(frozen=True, eq=False)
class Variables:
    """The names of what varies, and how rows of draws become numbers of targets.

    assign: {variable: (n,)} -> {target: (n,)} for names that are no targets themselves. relative: the model's own value
    that a column multiplies, 1 where it is a number of its own.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    known: Mapping[str, Target]
    assign: Assign | None
    factors: np.ndarray

    def values(self, rows: np.ndarray) -> np.ndarray:
        """The numbers (n, k) of rows of draws, those that are relative times what they are relative to."""
        return rows * self.factors

    def assigned(self, rows: np.ndarray) -> dict[Target, np.ndarray]:
        """Numbers (n,) by target, of values (n, k)."""
        columns = dict(zip(self.names, rows.T, strict=True))
        out = {self.known[name]: column for name, column in columns.items() if name in self.known}
        if self.assign is None:
            return out
        found = called(self.assign, Columns({name: column.copy() for name, column in columns.items()}))
        for name, value in found.items():
            if name not in self.known:
                raise InputError(f"study: assign: {_unknown(str(name), self.known)}")
            if name in columns:
                raise InputError(
                    f"study: assign returns {name!r}, which varies by itself, too: results would have draws of it that "
                    "no run has. Leave it out of what varies, or let it vary by a name of your own"
                )
            out[self.known[name]] = numbers(name, value, len(rows))
        return out


def _unknown(name: str, known: Mapping[str, Target]) -> str:
    """A sentence for a name that is no quantity of the model."""
    joint, _, what = name.rpartition(".")
    if what in _FIXED and any(t.joint == joint for t in known.values()):
        return (
            f"{name!r} does not vary: kernels are compiled for the {what} of joints. {joint}.damping does, and forces "
            "or a controller may read an input."
        )
    clause = nearest(name, known)
    return f"nothing varies by the name {name!r}; {clause}{'' if clause.endswith(('?', '...')) else '.'}"


def variables_of(
    names: Sequence[str],
    known: Mapping[str, Target],
    assign: Any,
    units: Mapping[str, str],
    relative: Collection[str],
    nominal: Mapping[str, float],
) -> Variables:
    """The variables of a study, checked. nominal: values of the model by target, of those that relative ones need."""
    if assign is not None and not callable(assign):
        raise InputError(f"study: assign is a {type(assign).__name__}; expected a function of {{'name': numbers}}")
    for name in names:
        if name not in known and assign is None:
            raise InputError(f"study: {_unknown(name, known)} Names of your own need assign=")
        if name not in known and ("/" in name or name in ("", ".", "..", "zarr.json") or name.startswith("__")):
            raise InputError(f"study: {name!r} is no name of a variable; expected a folder's name, without '/'")
        if name in relative and name not in known:
            raise InputError(f"study: {name!r} is relative, and the model has no value of this name; give the numbers")
        if name in relative and math.isnan(nominal.get(name, math.nan)):
            what = known[name].kind
            said = "inputs" if what == "input" else what
            raise InputError(
                f"study: {name!r} is relative, and {said} gives no number of it for the whole run; give it, as "
                f"{said}={{{known[name].joint or name.partition('.')[2]!r}: number}}, or give the numbers themselves"
            )
    factors = np.array([nominal[name] if name in relative else 1.0 for name in names])
    for name, factor in zip(names, factors, strict=True):
        if name in relative and factor == 0.0:
            whose = f"the value of {known[name].kind}=" if known[name].kind in _STATES else "the model's own value"
            raise InputError(f"study: {name!r} is relative to {whose}, which is 0; give the numbers")
    own = tuple(units.get(name) or (known[name].unit if name in known else "") for name in names)
    return Variables(tuple(names), own, dict(known), assign, factors)


def refuse_impossible(model: Model, variables: Variables, design: Any, base: np.ndarray | None) -> None:
    """Raise InputError if draws are not finite, or give a body what no body can have, with the share of such draws.

    Raises it, too, where assign does not give each run its own numbers.

    base: the parameters (k,) of the study, None for the model's own.
    """
    own = model.parameters().values if base is None else base
    bad, first = 0, None
    for begin in range(0, design.runs, _BLOCK):
        rows = variables.values(design.rows(begin, min(design.runs, begin + _BLOCK)))
        assigned = variables.assigned(rows)
        refuse_unrepeatable(variables, rows, assigned, begin)
        mask, why = _not_finite(variables.names, rows, assigned)
        sound = np.flatnonzero(~mask)
        varied = {t: x[sound] for t, x in assigned.items() if t.kind == "parameters"}
        impossible_rows, found = _impossible(model, own, varied, len(sound))
        mask[sound] = impossible_rows
        why = why or (None if found is None else (int(sound[found[0]]), found[1]))
        for target, x in assigned.items():
            if target.kind in SURFACES:
                beyond = (x < 0.0) | ((x > 1.0) & (target.kind == "restitution"))
                if beyond.any():
                    k = int(np.argmax(beyond))
                    mask |= beyond
                    why = why or (k, f"{target.name!r} is {x[k]:g}; must be >= 0, and a restitution at most 1")
        if why is not None and first is None:
            first = begin + why[0], why[1]
        bad += int(mask.sum())
    if first is not None:
        advice = "Choose a distribution without such numbers (sl.studies.LogNormal, or Normal with low=)"
        if design.kind == "table":
            advice = "Correct these rows of the table, or leave them out"
        raise InputError(
            f"study: {bad} of {design.runs} draws ({100.0 * bad / design.runs:.3g} %) are impossible; the first is "
            f"that of run {first[0]}: {first[1]}. {advice}"
        )


def _not_finite(
    names: Sequence[str], rows: np.ndarray, assigned: Mapping[Target, np.ndarray]
) -> tuple[np.ndarray, tuple[int, str] | None]:
    """Which draws (n,) have a number that is not finite, or are assigned one, and the first with the reason."""
    columns = [*zip(names, rows.T, strict=True), *((t.name, x) for t, x in assigned.items())]
    mask, first = np.zeros(len(rows), bool), None
    for name, x in columns:
        own = ~np.isfinite(x)
        if own.any():
            k = int(np.argmax(own))
            first = first or (k, f"{name!r} is {x[k]:g}; must be finite")
            mask |= own
    return mask, first


def _impossible(
    model: Model, own: np.ndarray, varied: Mapping[Target, np.ndarray], n: int
) -> tuple[np.ndarray, tuple[int, str] | None]:
    """Which of n draws (n,) no mechanism can have, and the first with the reason."""
    mask, first = np.zeros(n, bool), None
    if not varied:
        return mask, None
    columns: list[Any] = list(own)
    for target, x in varied.items():
        columns[target.place] = x
    names = {t.name for t in varied}
    for name, x in not_negative(model, columns):
        if np.ndim(x) and (below := x < -NEGLIGIBLE).any():
            k = int(np.argmax(below))
            first = first or (k, f"{name!r} is {x[k]:g}; must be >= 0")
            mask |= below
    bends = {j.child for j in model.joints if j.kind.bends}
    shaped = any(".inertia." in name or name.split(".")[0] in bends for name in names)
    if shaped and not mask.all():
        left = np.flatnonzero(~mask)
        rows = np.tile(own, (len(left), 1))
        for target, x in varied.items():
            rows[:, target.place] = x[left]
        while len(rows) and (found := impossible(model, rows)) is not None:
            k, words = found
            same = _alike(model, rows, k)
            mask[left[same]] = True
            first = first or (int(left[k]), words)
            rows, left = rows[~same], left[~same]
    return mask, first


def _alike(model: Model, rows: np.ndarray, k: int) -> np.ndarray:
    """Which rows (n,) are impossible, row k among them, found by halves."""
    bad = np.zeros(len(rows), bool)
    parts = [np.arange(len(rows))]
    while parts:
        part = parts.pop()
        if impossible(model, rows[part]) is None:
            continue
        if len(part) == 1:
            bad[part] = True
        else:
            parts += [part[: len(part) // 2], part[len(part) // 2 :]]
    bad[k] = True
    return bad


def _units_of_losses(model: Model) -> Iterator[tuple[str, str]]:
    """Names and units of the armature, damping and stiffness of joints, for each degree of freedom."""
    for joint in model.joints:
        for k, unit in enumerate(joint.kind.units):
            for loss, known in _LOSSES.items():
                yield f"{joint.name}.{loss}" + (f".{k}" if joint.kind.nv > 1 else ""), known.get(unit, "")


def _parameter_unit(name: str) -> str:
    """The unit of a parameter of gravity, of a body, or of the place of a joint; else ""."""
    words = name.split(".")
    if words[0] == "gravity":
        return "m/s²"
    for word, unit in (("mass", "kg"), ("center", "m"), ("inertia", "kg m²"), ("position", "m")):
        if word in words[-2:]:
            return unit
    return ""
