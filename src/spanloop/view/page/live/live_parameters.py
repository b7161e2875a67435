"""The parameters that a live page changes: gravity, and those that a user chooses, with their ranges.

Lengths (positions of joints) open the loops. A page changes them by continuation, so that loops close again and never
jump to another assembly. p is the array of parameters, "last" what it was when the loops were last closed:

    share = 1
    while p is not the target:
        way = (target − last), shortened so that no length changes by more than `increment`, times share
        keep the arrays of state; write p = last + way; write h = 0; call step
        if its status is 0 and no coordinate changed by more than its number of `most`:
            take over q, and the others of state as they were; last = p; share = min(1, 2 share)
        else:
            restore all arrays of state, and p = last; share = share / 2
            if share < LEAST_SHARE: stop: the mechanism cannot be assembled beyond `last`
    write h = 0 and call step twice more, of which q is taken over: closure errors end at rounding

Velocities are projected to the closed loops at the beginning of the next step. Other parameters (masses, losses,
gravity) are written at once; a step that refuses them returns a status, after which the page restores `last`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.parameters import Parameters, Varied, impossible
from spanloop.model.user_input import number
from spanloop.simulation.stiffness import INERTIAS, LOSSES, Stiffest, is_of, stiffest
from spanloop.simulation.system import System
from spanloop.topology.mechanism import mechanism

MOST_TURN = 0.1  # rad, or of the mechanism's size: the most that a coordinate changes in one step of a continuation
LEAST_SHARE = 1.0 / 1024.0
BISECTIONS = 40  # of ranges to what a mechanism can have
INCREMENT = 0.005  # of the length of its loop: the most that a length changes in one step of a continuation
EARTH = 9.81  # m/s²
NARROW, WIDE = (0.8, 1.25), (0.2, 5.0)  # ranges of lengths, and of others, times their values
_UNITS = {"mass": "kg", "center": "m", "inertia": "kg m²", "position": "m"}
_LOSS_UNITS = {  # by the unit of a DoF
    "armature": {"rad": "kg m²", "m": "kg"},
    "damping": {"rad": "N m s/rad", "m": "N s/m"},
    "stiffness": {"rad": "N m/rad", "m": "N/m"},
}


@dataclass(frozen=True)
class LiveParameter:
    """A parameter with a slider: its name, value and range; increment > 0: a length, changed by continuation."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    increment: float


@dataclass(frozen=True)
class LiveParameters:
    """Gravity, as the components that a factor scales, and the parameters that a user chose."""

    gravity: dict[str, float]  # by name, at factor 1
    factor: float  # of gravity at the start
    chosen: tuple[LiveParameter, ...]

    @staticmethod
    def of(model: Model, parameters: Any, gravity: bool, size: float) -> LiveParameters:
        """The parameters of these names, or {name: (low, high)}; gravity: whether it has a slider. size [m]."""
        given = parameters if isinstance(parameters, Mapping) else dict.fromkeys(_listed(parameters))
        Varied.of(model, list(given), "live")
        chosen = tuple(_parameter(model, name, span, size) for name, span in given.items())
        pull = {f"gravity.{a}": float(g) for a, g in zip("xyz", model.gravity, strict=True) if g}
        mine = any(name.startswith("gravity.") for name in given)  # sliders of its components
        if not gravity or mine:
            return LiveParameters({}, 1.0, chosen)
        return LiveParameters(pull or {"gravity.z": -EARTH}, 1.0 if pull else 0.0, chosen)

    @property
    def names(self) -> tuple[str, ...]:
        """All that vary, in the order of the array "p"."""
        return (*self.gravity, *(p.name for p in self.chosen))

    def refuse_open_loops(self, projects: bool) -> None:
        """Refuse lengths where steps do not close the loops again; projects: whether they do."""
        for p in self.chosen:
            if p.increment and not projects:
                raise InputError(
                    f"live: the length {p.name!r} opens loops, which closures='project' alone closes again"
                )

    def stiffest(self, system: System, q: np.ndarray) -> Stiffest | None:
        """What pulls fastest at the ends of the sliders, one by one, and with most loss and least inertia together."""
        known, ends = Parameters.of(system.model), [{p.name: x} for p in self.chosen for x in (p.low, p.high)]
        losses = {p.name: p.high for p in self.chosen if is_of(p.name, LOSSES)}
        inertias = {p.name: p.low for p in self.chosen if is_of(p.name, INERTIAS)}
        rows = [known.changed(x).values for x in (*ends, losses | inertias)]
        possible = [row for row in rows if impossible(system.model, row[None]) is None]
        found = [stiffest(system, q, row) for row in possible]
        return max((x for x in found if x is not None), key=lambda x: x.rate, default=None)

    def data(self) -> dict[str, Any]:
        """The parts of a page's data: gravity and parameters."""
        places = {name: k for k, name in enumerate(self.names)}
        gravity = {"places": list(range(len(self.gravity))), "values": list(self.gravity.values())}
        return {
            "gravity": {**gravity, "factor": self.factor, "most": 2.0} if self.gravity else None,
            "parameters": [
                {
                    "name": p.name,
                    "place": places[p.name],
                    "value": p.value,
                    "low": p.low,
                    "high": p.high,
                    "unit": p.unit,
                    "increment": p.increment,
                }
                for p in self.chosen
            ],
        }


def _listed(parameters: Any) -> Sequence[str]:
    if isinstance(parameters, str) or not all(isinstance(x, str) for x in parameters):
        raise InputError(f"live: parameters is {parameters!r}; expected names, or {{name: (low, high)}}")
    return list(parameters)


def _parameter(model: Model, name: str, span: Any, size: float) -> LiveParameter:
    known = Parameters.of(model)
    value, kind = float(known.values[known.index(name)]), name.split(".")[-2 if name[-1] in "xyz" else -1]
    if span is None:
        low, high = _possible(model, name, value, _range(model, name, value, kind, size))
    else:
        low, high = _checked(name, span)
        _refuse(model, name, value, low, high)
    is_length = kind == "position" and bool(model.loops or model.couplings)
    lengths = [c.length for c in mechanism(model).closures]
    increment = INCREMENT * (min(lengths) if lengths else size) if is_length else 0.0
    return LiveParameter(name, value, low, high, _unit(model, name, kind), increment)


def _refuse(model: Model, name: str, value: float, low: float, high: float) -> None:
    """Refuse a range that does not contain the value, or that no mechanism has."""
    if not low <= value <= high:
        raise InputError(f"live: parameter {name!r} is {value:g}, outside of its range from {low:g} to {high:g}")
    if name.endswith(".mass") and low == 0.0 < value:
        raise InputError(f"live: the range of {name!r} begins at 0; a mass must be > 0. Try {0.01 * value:.2g}")
    for x in (low, high):
        found = _why_impossible(model, name, x)
        if found:
            raise InputError(f"live: parameter {name!r} cannot be {x:g}: {found}")


def _why_impossible(model: Model, name: str, x: float) -> str:
    """Why no mechanism has this value of a parameter beside the others; "" if one has."""
    found = impossible(model, Parameters.of(model).changed({name: x}).values[None])
    return found[1] if found else ""


def _possible(model: Model, name: str, value: float, span: tuple[float, float]) -> tuple[float, float]:
    """The part of a range around a value that a mechanism can have; possible inertias have no gaps."""
    ends = []
    for end in span:
        good, bad = value, end
        if not _why_impossible(model, name, end):
            good = end
        else:
            for _ in range(BISECTIONS):
                middle = 0.5 * (good + bad)
                good, bad = (good, middle) if _why_impossible(model, name, middle) else (middle, bad)
        ends.append(good)
    if ends[1] - ends[0] <= LEAST_SHARE * (span[1] - span[0]):
        why = next(filter(None, (_why_impossible(model, name, end) for end in span)), "")
        raise InputError(f"live: parameter {name!r} cannot change alone ({why}); change the model instead")
    return ends[0], ends[1]


def _checked(name: str, span: Any) -> tuple[float, float]:
    if np.shape(span) != (2,):
        raise InputError(f"live: the range of {name!r} is {span!r}; expected (low, high)")
    low, high = (number(x, f"live: the range of {name!r}") for x in span)
    if not low < high:
        raise InputError(f"live: the range of {name!r} is from {low:g} to {high:g}; the first must be less")
    return low, high


def _range(model: Model, name: str, value: float, kind: str, size: float) -> tuple[float, float]:
    """A range around a value: of lengths a narrow one, of others a wide one; products of inertia have both signs."""
    if kind == "inertia" and (value == 0.0 or name[-1] != name[-2]):
        known = Parameters.of(model)
        most = max(known.values[known.index(f"{name[:-2]}{axis}")] for axis in ("xx", "yy", "zz")) or 1.0
        return (0.0 if name[-1] == name[-2] else -most), most
    if kind in ("position", "center"):
        ends = (NARROW[0] * value, NARROW[1] * value) if value else (-0.1 * size, 0.1 * size)
        return min(ends), max(ends)
    if value == 0.0:
        return 0.0, 1.0
    ends = (WIDE[0] * value, WIDE[1] * value)
    return min(ends), max(ends)


def _unit(model: Model, name: str, kind: str) -> str:
    if name.startswith("gravity."):
        return "m/s²"
    for joint in model.joints:
        rest = name.removeprefix(f"{joint.name}.").split(".") if name.startswith(f"{joint.name}.") else [""]
        if rest[0] in _LOSS_UNITS:
            dof = int(rest[1]) if len(rest) > 1 else 0
            return _LOSS_UNITS[rest[0]].get(joint.kind.units[dof], "")
    return next((unit for word, unit in _UNITS.items() if f".{word}" in name), "")
