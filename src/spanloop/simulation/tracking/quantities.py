"""Quantities of a state by name or as functions, on any scalar: `v.elbow`, `tip.position.z`, `energy.kinetic`.

| text | quantity |
|---|---|
| arithmetic on `t`, `q.JOINT`, `v.JOINT` | as in conditions of run files: `abs(v.elbow)`, `q.ball[2] - 0.3` |
| `tau.JOINT`, `tau.JOINT[k]` | torque or force at a joint, of controllers, motors and friction |
| `NAME.position.x`, `NAME.velocity.x`, `NAME.speed` | of a body's or frame's origin, in the world |
| `energy.kinetic`, `energy.potential`, `energy.total` | of the mechanism |
| `center_of_mass.x` | of all that moves |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.algorithms.tree.energy import center_of_mass, energy
from spanloop.algorithms.tree.kinematics import frame_velocity, pose
from spanloop.errors import InputError, SpanloopError, nearest
from spanloop.math.scalar import sqrt
from spanloop.model import Model
from spanloop.simulation.controllers import Named, traced
from spanloop.simulation.run_files.conditions import condition
from spanloop.simulation.system import System
from spanloop.simulation.traced_kernels import arguments, noted
from spanloop.sweeps import walk
from spanloop.trajectory.files.labels import coordinate_units, dof_units, torque_units

Arrays = Mapping[str, Sequence[Any]]
_AXES = ("x", "y", "z")
_ENERGIES = ("kinetic", "potential", "total")
_PLAIN = re.compile(r"(q|v|tau)\.(\w+(?:\.\w+)*)(?:\[(\d+)\])?")
_READS = re.compile(r"(?:^|[\s\-])[qvf]\.|[\s\-]t$|^t[\s\-]")  # arithmetic on coordinates, rates, forces or time


@dataclass(frozen=True)
class Quantity:
    """A number of every state of a run: value(system, x) with the arrays x of a step.

    text: how it is written; the name of the function for one. unit: "" where it is not known.
    """

    text: str
    unit: str
    value: Callable[[System, Arrays], Any]
    written: Callable[..., Any] | None = None  # the user's function


def quantity(given: str | Callable[..., Any], model: Model, place: str) -> Quantity:
    """The quantity of a text or of a function (t, q, v), or (t, q, v, s): s["tip.position.z"] is any other quantity.

    place: where it stands, for messages.

    Raises:
        InputError: there is no such quantity.
    """
    if callable(given):
        return _of_function(given, model, place)
    if not isinstance(given, str):
        raise InputError(f"{place} is {given!r:.60}; expected a quantity as text, or a function (t, q, v)")
    text = given.strip()
    if text in ("energy", "energy.total"):
        return Quantity(text, "J", lambda system, x: sum(_energy(system, x)[1:], _energy(system, x)[0]))
    found = _of_mechanism(text, model) or _torque(text, model, place)
    if found is not None:
        return found
    _refuse_unknown(text, model, place)
    compute = condition(text, model, place)
    if arguments(compute, place, (3, 4), "tqvf") == 4:
        raise InputError(f"{place}: {text!r} reads the force of a loop; forces f are for conditions of events alone")

    def value(system: System, x: Arrays) -> Any:
        try:
            return compute(x["t"][0], *_named(model, x))
        except ArithmeticError as error:
            raise InputError(f"{place}: {text!r} has no value at any state: {error}") from error

    return Quantity(text, _unit(text, model), value)


def _of_function(function: Callable[..., Any], model: Model, place: str) -> Quantity:
    """A user's function of (t, q, v), or of (t, q, v, s)."""
    count = arguments(function, place, (3, 4), "tqvs")

    def value(system: System, x: Arrays) -> Any:
        given = (x["t"][0], *_named(model, x), *((_Others(system, x, place),) if count == 4 else ()))

        def called() -> Any:
            with noted(place):
                try:
                    return function(*given)
                except ArithmeticError as error:
                    raise InputError(f"{place} has no value at any state: {error}") from error
                except (SpanloopError, TypeError):  # TypeErrors are those of tracing
                    raise
                except Exception as error:  # whatever a user's function raises
                    sizes = f"q has {model.nq} numbers and v {model.nv}, those of joints by name: q['elbow']"
                    raise InputError(f"{place} raised {type(error).__name__}: {str(error)[:200]}; {sizes}") from error

        found = traced(place, called, [function])
        if isinstance(found, bool | str) or hasattr(found, "select") or hasattr(found, "__len__"):
            raise InputError(f"{place} returned a {type(found).__name__}; expected one number")
        return found

    return Quantity(getattr(function, "__name__", "function"), "", value, function)


@dataclass(frozen=True)
class _Others:
    """Other quantities of the same state by name, for a user's function."""

    system: System
    x: Arrays
    place: str

    def __getitem__(self, text: str) -> Any:
        return quantity(text, self.system.model, self.place).value(self.system, self.x)


def _named(model: Model, x: Arrays) -> tuple[Named, Named]:
    return Named.by_joint(x["q"], model, False), Named.by_joint(x["v"], model, True)


def _torque(text: str, model: Model, place: str) -> Quantity | None:
    found = _PLAIN.fullmatch(text)
    if found is None or found[1] != "tau":
        return None
    _, joint, number = found.groups()
    known = [j.name for j in model.joints]
    if joint not in known:
        raise InputError(f"{place}: there is no joint {joint!r} in {model.name!r}; {nearest(joint, known)}")
    own = range(model.nv)[model.v_slice(joint)]
    if number is None and len(own) != 1:
        raise InputError(f"{place}: tau.{joint} has {len(own)} numbers; expected one of them, such as tau.{joint}[0]")
    if int(number or 0) >= len(own):
        raise InputError(f"{place}: tau.{joint} has the numbers 0 to {len(own) - 1}; found [{number}]")
    dof = own[int(number or 0)]
    return Quantity(text, torque_units(model)[dof], lambda system, x: system.torques(x)[0][dof])


def _of_mechanism(text: str, model: Model) -> Quantity | None:
    """A part of a pose or velocity, of an energy, or of the centre of mass; None if the text is none of these."""
    owner, _, rest = text.rpartition(".")
    if owner == "energy" and rest in _ENERGIES[:2]:
        k = _ENERGIES.index(rest)
        return Quantity(text, "J", lambda system, x: _energy(system, x)[k])
    if owner == "center_of_mass" and rest in _AXES:
        k = _AXES.index(rest)

        def centre(system: System, x: Arrays) -> Any:
            m = system.mechanism_at(x)
            return walk(center_of_mass(m), m, {"q": x["q"]})[k]

        return Quantity(text, "m", centre)
    places = [*(b.name for b in model.bodies), *(f.name for f in model.frames)]
    if rest == "speed" and owner in places:
        return Quantity(text, "m/s", lambda system, x: sqrt(sum((y * y for y in _velocity(system, x, owner)), 0.0)))
    frame, _, kind = owner.rpartition(".")
    if rest not in _AXES or frame not in places or kind not in ("position", "velocity"):
        return None
    k = _AXES.index(rest)
    if kind == "velocity":
        return Quantity(text, "m/s", lambda system, x: _velocity(system, x, frame)[k])

    def position(system: System, x: Arrays) -> Any:
        m = system.mechanism_at(x)
        return walk(pose(m, frame), m, {"q": x["q"]})[4 * k + 3]

    return Quantity(text, "m", position)


def _velocity(system: System, x: Arrays, frame: str) -> list[Any]:
    m = system.mechanism_at(x)
    return list(walk(frame_velocity(m, frame), m, {"q": x["q"], "v": x["v"]})[3:])


def _energy(system: System, x: Arrays) -> list[Any]:
    m = system.mechanism_at(x)
    return list(walk(energy(m), m, {"q": x["q"], "v": x["v"]}))


def _refuse_unknown(text: str, model: Model, place: str) -> None:
    """Refuse a name that looks like one of the table and is none, with the nearest one."""
    words = text.split(".")
    looks = re.fullmatch(r"[\w.\- ]+", text) and len(words) > 1 and words[0] not in ("q", "v", "tau")
    looks = looks and not _READS.search(text)
    if looks and not re.fullmatch(r"[\d.eE+\- ]+", text):
        raise InputError(f"{place}: there is no quantity {text!r}; {nearest(text, names(model))}")


def names(model: Model) -> list[str]:
    """Names of the quantities of a model, without arithmetic on them."""
    return list(_names(model))


def _names(model: Model) -> Iterator[str]:
    for joint in model.joints:
        for letter, n in (("q", joint.kind.nq), ("v", joint.kind.nv), ("tau", joint.kind.nv)):
            yield from ([f"{letter}.{joint.name}"] if n == 1 else [f"{letter}.{joint.name}[{k}]" for k in range(n)])
    for place in (*(b.name for b in model.bodies), *(f.name for f in model.frames)):
        yield from (f"{place}.{kind}.{axis}" for kind in ("position", "velocity") for axis in _AXES)
        yield f"{place}.speed"
    yield from (f"energy.{kind}" for kind in _ENERGIES)
    yield from (f"center_of_mass.{axis}" for axis in _AXES)


def _unit(text: str, model: Model) -> str:
    """The unit of a coordinate or a rate, of its size too; "" of other arithmetic."""
    inner = re.fullmatch(r"abs\((.*)\)", text)
    found = _PLAIN.fullmatch(inner[1] if inner else text)
    if found is None:
        return "s" if text == "t" else ""
    letter, joint, number = found.groups()
    place = model.q_slice(joint) if letter == "q" else model.v_slice(joint)
    return (coordinate_units if letter == "q" else dof_units)(model)[place.start + int(number or 0)]
