"""`sl.export(model, "arm.fmu")`: a model as a Functional Mock-up Unit of FMI 3.0."""

from __future__ import annotations

import hashlib
import inspect
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.errors import InputError, SpanloopWarning, UnsupportedError, nearest
from spanloop.exports.fmu.archive import archive
from spanloop.exports.fmu.binary import library, library_name, platform_tuple
from spanloop.exports.fmu.dependencies import dependencies
from spanloop.exports.fmu.fmu_inputs import Actions, actions
from spanloop.exports.fmu.model_description import Description, build_description
from spanloop.exports.fmu.overview import overview_page, overview_text
from spanloop.exports.fmu.unit_functions import (
    UnitFunction,
    closing,
    exchanged,
    gains,
    outputs,
    rates,
    without_exchange,
)
from spanloop.exports.fmu.unit_source import TOKEN, Unit, quaternions
from spanloop.exports.fmu.variables import PARAMETER, POSITION, VELOCITY, Variable, chosen_parameters, legal, variables
from spanloop.exports.portable_motion import PortableMotion
from spanloop.model import Model
from spanloop.model.files.file_io import write_file
from spanloop.model.parameters import Parameters
from spanloop.simulation.system import FREQUENCY
from spanloop.topology import mechanism

MANY, MOST = 100_000, 1_000_000  # operations that compilers take long for, and those of a unit at most
KINDS = ("CoSimulation", "ModelExchange")
_PASSED = ("integrator", "method", "closures", "limits", "events", "contacts")  # of sl.simulate


def write_fmu(
    model: Model,
    functions: Sequence[str],
    path: Path,
    *,
    q: Any = None,
    v: Any = None,
    step: float = 1e-3,
    controller: Any = None,
    inputs: Sequence[str] | Sequence[float] | Mapping[str, str | float] | None = None,
    torques: Sequence[str] | None = None,
    forces: Any = None,
    parameters: Sequence[str] = (),
    frames: Sequence[str] = (),
    energy: bool = True,
    kinds: Sequence[str] | str | None = None,
    name: str | None = None,
    binary: bool = True,
    feedback: float = FREQUENCY,
    **options: Any,
) -> Path:
    """Write a model as an FMU; docs/fmu.md describes the options."""
    if functions:
        raise InputError(
            f"export: an FMU has no functions {list(functions)}; write sl.export(model, {str(path)!r}, ...)"
        )
    unknown = [x for x in options if x not in _PASSED]
    if unknown:
        known = (*_PASSED, *(n for n in inspect.signature(write_fmu).parameters if n != "options"))
        raise InputError(f"export: an FMU takes no option {unknown[0]!r}; {nearest(unknown[0], known)}")
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0.0 < step < np.inf:
        raise InputError(f"export: step is {step!r}; expected the length of a step in seconds, a positive number")
    for option, x in (("energy", energy), ("binary", binary)):
        if not isinstance(x, bool):
            raise InputError(f"export: {option} is {x!r}; expected True or False")
    identifier = _identifier(path, name)
    names = chosen_parameters(model, parameters)
    shown = _frames(model, frames)
    acting = actions(model, controller, inputs, torques, forces)
    if isinstance(feedback, bool) or not isinstance(feedback, int | float) or not 0.0 <= feedback < np.inf:
        raise InputError(f"export: feedback is {feedback!r}; expected a frequency in rad/s, 0 for none")
    motion = {"q": q, "v": v, "step": step, **options}
    made = _unit(model, acting, names, shown, energy, kinds, float(feedback), motion)
    write_file(path, archive(_files(made, identifier, binary)))
    return path


@dataclass(frozen=True)
class _Made:
    """A unit and what its description says."""

    unit: Unit
    dependencies: Mapping[int, Sequence[int]]
    ends: bool
    motion: PortableMotion
    limits: str
    note: str


def _unit(
    model: Model,
    acting: Actions,
    parameters: Sequence[str],
    frames: Sequence[str],
    energy: bool,
    kinds: Any,
    feedback: float,
    options: dict[str, Any],
) -> _Made:
    live = {"parameters": Parameters.of(model).values} if parameters else {}
    values = np.array([x.value for x in acting.inputs])
    motion = PortableMotion.of(
        model,
        controller=acting.controller,
        inputs=values if acting.inputs else None,
        forces=acting.forces,
        **{"limits": "ignore", **options, **live},
    )
    problem, system = motion.problem, motion.problem.system
    why = without_exchange(problem)
    offered = _kinds(kinds, why)
    fixed = bool(system.contacts or system.switching or len(problem.events))
    if fixed and parameters:
        raise UnsupportedError(
            "export: parameters cannot be changed in a model with contacts, or with limits or events that end or "
            "change the motion, which begin with the exported start. Leave parameters out, or use limits='ignore'"
        )
    start = {n: np.asarray(x, float) for n, x in motion.start.items()} | {"u": values}
    has_rates = not why
    own = [closing(system), outputs(system, frames, energy)]
    own += [rates(system)] if has_rates else []
    if has_rates and "gains" in exchanged(system).sizes:
        start.setdefault("gains", gains(feedback))
    _check_size(model, sum(len(p.nodes) for p in (*motion.schedule.plans(), *(f.plan for f in own))))
    found = variables(model, start, acting.inputs, parameters, frames, energy, has_rates)
    closes = bool(system.has_loops and system.closures != "none") or bool(quaternions(model))
    openness = float(system.openness({n: list(x) for n, x in start.items()}))
    unit = Unit(
        legal(model.name), model, motion.schedule, own, found, start, motion.step, offered, closes, fixed, openness
    )
    return _Made(unit, _dependencies(own, found, system.has_loops), fixed, motion, options.get("limits", "ignore"), why)


def _check_size(model: Model, operations: int) -> None:
    """Warn of a unit that takes long to compile, and refuse one that compilers do not take."""
    if operations > MOST:
        raise UnsupportedError(
            f"export: a step of {model.name!r} is {operations} operations without loops; an FMU may have {MOST}. "
            "Export a part of it, or lock joints: model.lock(...)"
        )
    if operations > MANY:
        warnings.warn(
            f"export: {model.name!r} takes {operations} operations; compilers take minutes",
            SpanloopWarning,
            stacklevel=5,
        )


def _files(made: _Made, identifier: str, binary: bool) -> dict[str, str | bytes]:
    """All files of the archive by path."""
    unit = made.unit
    source = unit.source()

    def described(token: str) -> str:
        return Description(
            unit.name,
            identifier,
            token,
            unit.variables,
            made.dependencies,
            unit.step,
            unit.kinds,
            unit.closes,
            made.ends,
        ).text()

    digest = hashlib.sha256((source + described(TOKEN)).encode()).hexdigest()
    token = f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"
    source = source.replace(TOKEN, token)
    compiled = library(source, identifier) if binary else None
    about = unit, made.motion.integrator, made.limits, made.note
    files: dict[str, str | bytes] = {
        "modelDescription.xml": described(token),
        "documentation/index.html": overview_page(*about),
        "resources/model.txt": overview_text(*about),
        "sources/buildDescription.xml": build_description(identifier),
        f"sources/{identifier}.c": source,
    }
    if compiled is not None:
        files[f"binaries/{platform_tuple()}/{library_name(identifier)}"] = compiled
    return files


def _dependencies(functions: Sequence[UnitFunction], found: Sequence[Variable], closed: bool) -> dict[int, list[int]]:
    """What outputs and rates depend on, by their references; projections to closed loops join all states."""
    joined = {x.reference for x in found if closed and x.kind in (PARAMETER, POSITION, VELOCITY)}
    rows = {f.name: dependencies(f, found) for f in functions}
    out: dict[int, list[int]] = {}
    for x in found:
        if x.kind in (POSITION, VELOCITY):
            out[x.reference] = sorted({x.reference, *joined})
        elif x.array in rows:
            out[x.reference] = sorted({*rows[x.array][x.place], *joined})
    return out


def _identifier(path: Path, name: str | None) -> str:
    """The name of the library and its source, a C identifier."""
    wanted = path.stem if name is None else name
    if not isinstance(wanted, str):
        raise InputError(f"export: name is a {type(wanted).__name__}; expected a C identifier, as 'arm'")
    legal = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
    legal = legal if re.match(r"[A-Za-z_]", legal) else f"_{legal}"
    if name is not None and legal != name:
        raise InputError(f"export: name is {name!r}, which is not a C identifier; try name={legal!r}")
    return legal


def _frames(model: Model, frames: Sequence[str] | str) -> list[str]:
    given = [frames] if isinstance(frames, str) else frames
    if not isinstance(given, list | tuple) or not all(isinstance(x, str) for x in given):
        raise InputError(f"export: frames is {frames!r}; expected names of frames or bodies")
    known = mechanism(model).anchors
    for x in given:
        if x not in known:
            raise InputError(f"export: there is no frame or body {x!r}; {nearest(x, list(known))}")
    return list(dict.fromkeys(given))


def _kinds(kinds: Any, why: str) -> list[str]:
    """The interfaces that the unit offers."""
    given = KINDS if kinds is None else [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(given, list | tuple) or not given:
        raise InputError(f"export: kinds is {kinds!r}; expected a list of {' and '.join(map(repr, KINDS))}, or one")
    for x in given:
        if x not in KINDS:
            raise InputError(f"export: kinds has {x!r}; {nearest(str(x), KINDS)}")
    wanted = list(dict.fromkeys(given))
    if not why:
        return wanted
    if kinds is not None and "ModelExchange" in wanted:
        raise UnsupportedError(f"export: Model Exchange is not possible: {why}. Use kinds=['CoSimulation']")
    return ["CoSimulation"]
