"""The variables of a unit: names, units, causality, and where each is in the memory of an instance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanloop.errors import InputError
from spanloop.exports.fmu.fmu_inputs import Input
from spanloop.exports.fmu.unit_functions import SHOWN
from spanloop.exports.fmu.units import parameter_units, per_second
from spanloop.model import Model
from spanloop.model.parameters import Parameters, not_negative
from spanloop.trajectory.files import labels

TIME, INPUT, PARAMETER, POSITION, VELOCITY, OUTPUT, RATE = range(7)  # kinds, as in c/instance.c
_FORBIDDEN = re.compile("[^ -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f]")  # in names of variables and XML


@dataclass(frozen=True)
class Variable:
    """One number. array, place: where its value is read; start: at instantiation, None for what is computed.

    reference: its value reference; state: of a rate, the number of its state; least: the smallest value allowed.
    """

    name: str
    kind: int
    array: str
    place: int
    unit: str = ""
    description: str = ""
    start: float | None = None
    least: float | None = None
    state: int = -1
    reference: int = field(default=-1)


def variables(
    model: Model,
    start: Mapping[str, Any],
    inputs: Sequence[Input],
    parameters: Sequence[str],
    frames: Sequence[str],
    energy: bool,
    rates: bool,
) -> list[Variable]:
    """All variables, in the order of their value references: time, inputs, parameters, states, outputs, rates."""
    found = [Variable("time", TIME, "t", 0, "s", "time")]
    found += [
        Variable(x.name, INPUT, "u", k, x.unit, x.description, float(start["u"][k])) for k, x in enumerate(inputs)
    ]
    found += _parameters(model, parameters, start)
    first = len(found)
    states = list(_states(model, start))
    found += states + list(_outputs(model, frames, energy))
    if rates:
        found += [
            Variable(f"der({x.name})", RATE, "rates", k, per_second(x.unit), f"rate of {x.name}", state=first + k)
            for k, x in enumerate(states)
        ]
    _refuse_taken([legal(x.name) for x in inputs if x.is_named], [legal(x.name) for x in found])
    names = _distinct([legal(x.name) for x in found])
    return [
        replace(x, name=name, unit=legal(x.unit), description=legal(x.description), reference=k)
        for k, (x, name) in enumerate(zip(found, names, strict=True))
    ]


def chosen_parameters(model: Model, names: Sequence[str] | str) -> list[str]:
    """Names of live parameters, checked; 'gravity' stands for its three numbers, 'live' for all parameters."""
    if isinstance(names, str) and names == "live":
        return list(Parameters.of(model).names)
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple) or not all(isinstance(x, str) for x in given):
        raise InputError(f"export: parameters is {names!r}; expected names of model.parameters(), as 'forearm.mass'")
    own = Parameters.of(model)
    wide = [n for x in given for n in ([f"gravity.{a}" for a in "xyz"] if x == "gravity" else [x])]
    return list(dict.fromkeys(own.names[own.index(n)] for n in wide))


def _parameters(model: Model, names: Sequence[str], start: Mapping[str, Any]) -> Iterable[Variable]:
    if not names:
        return
    own, units = Parameters.of(model), parameter_units(model)
    positive = {name for name, _ in not_negative(model, own.values.tolist())}
    for name in names:
        k = own.index(name)
        least = 0.0 if name in positive or name.rsplit(".", 1)[0] in positive else None
        yield Variable(name, PARAMETER, "p", k, units[name], "parameter of the model", float(start["p"][k]), least)


def _states(model: Model, start: Mapping[str, Any]) -> Iterable[Variable]:
    for k, (word, unit) in enumerate(zip(labels.coordinates(model), labels.coordinate_units(model), strict=True)):
        what = f"position of the joint {word[0]}"
        yield Variable(f"q.{labels.joined(*word)}", POSITION, "q", k, unit, what, float(start["q"][k]))
    for k, (word, unit) in enumerate(zip(labels.dofs(model), labels.dof_units(model), strict=True)):
        what = f"velocity of the joint {word[0]}"
        yield Variable(f"v.{labels.joined(*word)}", VELOCITY, SHOWN, k, unit, what, float(start["v"][k]))


def _outputs(model: Model, frames: Sequence[str], energy: bool) -> Iterable[Variable]:
    words: list[tuple[str, str, str]] = []
    for f in frames:
        words += [(f"position.{f}.{a}", "m", f"position of the frame {f} in the world") for a in "xyz"]
        words += [
            (f"rotation.{f}.{a}{b}", "1", f"component {a} in the world of the axis {b} of the frame {f}")
            for a in "xyz" for b in "xyz"
        ]  # fmt: skip
    if energy:
        words += [("energy.kinetic", "J", "kinetic energy"), ("energy.potential", "J", "energy of gravity and springs")]
    if model.loops or model.couplings:
        words.append(("closure_error", "1", "largest closure error, in rad or of the length of its loop"))
    for k, (name, unit, what) in enumerate(words):
        yield Variable(name, OUTPUT, "outputs", k, unit, what)


def legal(name: str) -> str:
    """A name without characters that XML or flat names do not allow."""
    return _FORBIDDEN.sub("_", name)


def _refuse_taken(chosen: Sequence[str], every: Sequence[str]) -> None:
    """InputError for an input of a name that another variable has, which would have to change its own."""
    counts = Counter(every)
    for name in chosen:
        if counts[name] > 1:
            raise InputError(f"export: inputs names {name!r}, which is the name of another variable; choose another")


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of which none occurs twice: a later one gets a number."""
    taken: set[str] = set()
    out = []
    for name in names:
        k, own = 1, name
        while own in taken:
            k += 1
            own = f"{name}#{k}"
        taken.add(own)
        out.append(own)
    return out
