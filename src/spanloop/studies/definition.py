"""The definition of a study: arguments checked, the reference run found, and a description to compare stores by."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.compiler.runtime import machine
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopWarning, StateError, UnsupportedError, nearest
from spanloop.model import Model
from spanloop.simulation.controllers import Callback
from spanloop.simulation.inputs import torques_by_name
from spanloop.simulation.integrators.integrator import AUTO, Integrator
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of, simulate, with_stiffness
from spanloop.simulation.time_loop import Grid, grid
from spanloop.studies.chunk import OUTCOMES, sample_numbers
from spanloop.studies.counted_events import refuse_unknown
from spanloop.studies.description import description
from spanloop.studies.draws.assign_check import refuse_unread
from spanloop.studies.draws.designs import Design, design_of
from spanloop.studies.draws.distributions import Distribution
from spanloop.studies.draws.tables import table_of
from spanloop.studies.draws.variables import Target, Variables, refuse_impossible, targets, variables_of
from spanloop.studies.kept import Item, Samples, items_of
from spanloop.studies.kept_spins import spin_items
from spanloop.studies.real_numbers import real_numbers
from spanloop.studies.result_names import refuse_result_names, refuse_same_names
from spanloop.studies.setup import Setup, own_start, starts_of, step_numbers, with_reference
from spanloop.studies.stiff_draws import stiffest_draw
from spanloop.studies.storage.store import Variable, differences
from spanloop.trajectory import Trajectory
from spanloop.trajectory.files.labels import coordinates, dofs, joined

_FIRST = 64  # runs that are examined before the study begins
_CHUNK = 4096  # runs of a chunk, at most
_NUMBERS = 4_000_000  # that the samples of a chunk hold, at most
_OPTIONS = tuple(
    name
    for name, p in inspect.signature(simulate).parameters.items()
    if p.kind is p.KEYWORD_ONLY and name not in ("inputs",)
)
_DEFAULTS = {name: inspect.signature(simulate).parameters[name].default for name in _OPTIONS}


@dataclass(frozen=True, eq=False)
class Prepared:
    """A study that can run: its setup, design and definition."""

    setup: Setup
    design: Design
    definition: Mapping[str, Any]
    seed_text: str
    given: Mapping[str, Any]  # the arguments of sl.simulate
    describe: Callable[[], dict[str, Any]]  # the definition of the arguments as they are now
    is_open: bool = False  # whether the integrator was left to the study

    def refuse_changed(self) -> None:
        """Raise InputError if an argument has changed since, as an attribute of an object or a global of a function."""
        changed = differences(self.definition, self.describe())
        if changed:
            raise InputError(
                f"study: its arguments have changed since sl.Study(...) was called: {'; '.join(changed)}. Make a new "
                "sl.Study, with a store of its own; a function must not change what it reads, as a counter"
            )

    def for_draws(self, draws: np.ndarray) -> Prepared:
        """The study with steps for these draws (n, k) as well: implicit where one is stiff, if that was left open.

        Draws that are relative are not multiplied yet.
        """
        setup = self.setup
        if setup.implicit:
            return self
        problem = setup.problem(starts_of(setup, np.stack([setup.reference] * 2)))
        found = stiffest_draw(setup, problem, Design("table", len(draws), 0, (), draws))
        if found is None:
            return self
        if not self.is_open:
            advice = found[1].advice(setup.grid.h, setup.integrator.name)
            warnings.warn(f"study: at an end of the ranges, {advice}", SpanloopWarning, stacklevel=4)
            return self
        implicit = replace(setup.integrator, name="implicit")
        return replace(self, setup=replace(setup, integrator=implicit, implicit=True))

    def chunk(self, wanted: Any) -> int:
        """Runs of a chunk."""
        if wanted is not None:
            if isinstance(wanted, bool) or not isinstance(wanted, int | np.integer) or wanted < 1:
                raise InputError(f"study: chunk is {wanted!r}; expected a whole number, at least 1")
            return int(wanted)
        width = self.setup.grid.samples * (self.setup.model.nq + self.setup.model.nv)
        shared = -(-self.design.runs // (4 * (os.cpu_count() or 1)))
        return max(1, min(_CHUNK, max(16, shared), max(16, _NUMBERS // width)))

    def coordinates(self) -> dict[str, tuple[Any, dict[str, str]]]:
        """{dimension: (values, attributes)} of the results, beside `run`."""
        out: dict[str, tuple[Any, dict[str, str]]] = {}
        gap, start = self.setup.grid.h * self.setup.grid.every, self.setup.arguments["start"]
        if self.setup.trajectories or any(_whole(item) for item in self.setup.items):
            out["time"] = start + gap * np.array(self.setup.samples, float), {"units": "s"}
        for item in self.setup.items:
            if isinstance(item.given, Samples) and not _whole(item):
                numbers = np.array(sample_numbers(self.setup, item), float)
                out[f"time_{item.name}"] = start + gap * numbers, {"units": "s"}
        return out

    def results_variables(self) -> dict[str, Variable]:
        """The variables of the results."""
        setup, out = self.setup, dict[str, Variable]()
        for name, unit in zip(setup.variables.names, setup.variables.units, strict=True):
            out[name] = Variable((), (), "float64", _attrs(unit, "varies"))
        flags = {"flag_values": list(range(len(OUTCOMES))), "flag_meanings": " ".join(OUTCOMES)}
        out["outcome"] = Variable((), (), "uint8", flags)
        out["end_time"] = Variable((), (), "float64", _attrs("s", "time of the end of the run"))
        out["reason"] = Variable((), (), "str", {})
        if setup.model.loops or setup.model.couplings:
            words = "largest closure error after any step, rad or share of the loop's length"
            out["closure_error"] = Variable((), (), "float64", _attrs("1", words))
        for item in setup.items:
            shape: tuple[int, ...] = ()
            dims: tuple[str, ...] = ()
            if isinstance(item.given, Samples):
                shape = (len(sample_numbers(setup, item)),)
                dims = ("time" if _whole(item) else f"time_{item.name}",)
            out[item.name] = Variable(shape, dims, "float64", _attrs(item.unit, str(item)))
        if setup.trajectories:
            count, model = len(setup.samples), setup.model
            q = {"names": [joined(*name) for name in coordinates(model)]}
            v = {"names": [joined(*name) for name in dofs(model)]}
            out["q"] = Variable((count, model.nq), ("time", "coordinate"), "float64", q)
            out["v"] = Variable((count, model.nv), ("time", "rate"), "float64", v)
        return out

    def simulated(self, row: np.ndarray, changed: Mapping[str, Any]) -> Trajectory:
        """The run with these numbers (1, k), alone, by sl.simulate; changed: other arguments."""
        for name in changed:
            if name not in _OPTIONS:
                raise InputError(f"study: rerun has no argument {name!r}; {nearest(name, _OPTIONS)}")
        starts = starts_of(self.setup, np.concatenate([self.setup.reference[None], row]))
        if 1 in starts.refused:
            raise StateError(f"study: this run cannot start: {starts.refused[1]}")
        own = starts.arguments
        q, v = own["q"][-1], own["v"][-1]
        more = {
            name: own[name][-1] if np.ndim(own[name]) == n else own[name]
            for name, n in (("parameters", 2), ("tau", 3), ("inputs", 3))
        }
        contacts = _surfaces_of_last(own["contacts"])
        given = {
            **self.given,
            **more,
            "method": self.setup.arguments["method"],  # of the Dynamics, if that was given
            "contacts": contacts,
            "integrator": replace(self.setup.integrator, progress=None),
        }
        given |= {"duration": self.setup.grid.duration, "step": self.setup.grid.h, "sample": None}
        return simulate(self.setup.model, q, v, **{**given, **changed})


def _surfaces_of_last(settings: Any) -> Any:
    if isinstance(settings, str):
        return settings

    def own(x: Any) -> Any:
        return {name: float(np.ravel(y)[-1]) for name, y in x.items()} if isinstance(x, Mapping) else x

    return replace(settings, friction=own(settings.friction), restitution=own(settings.restitution))


def _whole(item: Item) -> bool:
    """Whether an item has all samples."""
    return isinstance(item.given, Samples) and item.given.times is None


def _attrs(unit: str, name: str) -> dict[str, str]:
    return {"units": unit, "long_name": name} if unit else {"long_name": name}


def prepared(
    model: Any, given: Mapping[str, Any], keep: Any, trajectories: bool, inputs: Any, others: Mapping[str, Any]
) -> Prepared:
    """A study from the arguments of sl.Study, checked."""
    if not isinstance(model, Model | Dynamics):
        raise InputError(f"study: model is a {type(model).__name__}; expected a Model or a Dynamics")
    refuse_target(model, others)
    robot = robot_of(model)
    if robot.on_singular != "raise":
        raise UnsupportedError(
            f"study: a run ends at a singular configuration, and the Dynamics has on_singular={robot.on_singular!r}; "
            "give the model"
        )
    own = robot.model
    arguments = _options(others)
    if not isinstance(trajectories, bool | np.bool_):
        raise InputError(f"study: trajectories is {trajectories!r:.60}; expected True or False")
    names, distributions, table = _varied(given)
    refuse_result_names(names)
    named_inputs, input_row = _inputs(inputs)
    known = targets(own, named_inputs)
    units = {n: d.unit for n, d in zip(names, distributions, strict=True) if d.unit}
    relative = [n for n, d in zip(names, distributions, strict=True) if d.relative]
    parameters = _own_parameters(own, arguments["parameters"])
    nominal = _nominal(own, known, parameters, input_row, arguments)
    variables = variables_of(names, known, given["assign"], units, relative, nominal)
    if table is None:
        design = design_of(given["design"], given["runs"], given["seed"], distributions, names)
    else:
        design = Design("table", len(table), 0, (), table)
    refuse_unread(variables, variables.values(design.rows(0, min(2, design.runs))))
    with machine.reported(f"checking the draws of {design.runs} runs"):
        refuse_impossible(own, variables, design, parameters)
    items = items_of(keep, own, [*names, *(("q", "v") if trajectories else ())])
    items += spin_items(own, [*names, *(item.name for item in items)])
    refuse_same_names(names, items, trajectories)
    integrator = _integrator(arguments["integrator"])
    times, samples = _grid(arguments, items)
    setup = _setup(
        robot, arguments, parameters, input_row, variables, items, times, samples, integrator, trajectories, design
    )
    first = variables.values(design.rows(0, min(_FIRST, design.runs)))
    middle = np.array([nominal.get(n, np.nan) for n in names])
    middle = np.where(np.isfinite(middle), middle, first[0]) if len(names) else middle
    setup, problem = with_reference(setup, middle, first)
    refuse_unknown(items, problem)
    setup = _with_integrator(setup, problem, first, design)
    passed = {
        n: arguments[n]
        for n in _OPTIONS
        if n not in ("duration", "step", "sample", "integrator", "contacts", "tau", "parameters")
    }
    starts = starts_of(setup, np.stack([setup.reference] * 2))

    def describe() -> dict[str, Any]:
        return description(
            setup, setup.problem(starts), design, given, arguments, distributions, named_inputs, _DEFAULTS
        )

    seed_text = "of the table" if table is not None else f"seed {design.seed}"
    return Prepared(setup, design, describe(), seed_text, passed, describe, integrator.name == AUTO)


def _options(others: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of sl.simulate, those that are not given as by default."""
    known = (*_OPTIONS, "q", "v")
    for name in others:
        if name not in known:
            raise InputError(f"study: there is no argument {name!r}; {nearest(name, known)}")
    if "duration" not in others:
        raise InputError("study: duration is missing; expected a number of seconds")
    out = {**_DEFAULTS, "q": None, "v": None, **_copied(others)}
    if isinstance(out["controller"], Callback):
        raise UnsupportedError(
            "study: the controller is a callback, which Python would call at every step of every run; write it in the "
            "arithmetic of NumPy, so that it is compiled"
        )
    return out


def _copied(x: Any) -> Any:
    """Arrays, lists and dictionaries as they are now; other objects are compared before they are used."""
    if isinstance(x, np.ndarray):
        return x.copy()
    if type(x) is dict:
        return {name: _copied(y) for name, y in x.items()}
    return [_copied(y) for y in x] if type(x) is list else x


def refuse_target(model: Model | Dynamics, others: Mapping[str, Any]) -> None:
    """Raise UnsupportedError or InputError if runs are to be computed elsewhere than on the CPU."""
    places = {
        "target": others.get("target"),
        "the integrator's target": getattr(others.get("integrator"), "target", None),
        "the target of the Dynamics": getattr(model, "target", None),
    }
    for place, target in places.items():
        if target == "cuda":
            raise UnsupportedError(
                f"study: {place} is 'cuda'; studies run on the cores of this machine, or of a cluster: "
                "study.run(client=...). sl.simulate(..., target='cuda') takes batches of runs on a GPU"
            )
    if others.get("target") not in (None, "cpu"):
        raise InputError(f"study: target is {others['target']!r}; expected 'cpu', or leave it out")


def _varied(given: Mapping[str, Any]) -> tuple[list[str], list[Distribution], np.ndarray | None]:
    """Names and distributions of what varies, and the table if there is one."""
    vary, table = given["vary"], given["table"]
    if table is not None:
        if vary is not None or given["design"] != "random":
            raise InputError("study: table and vary or design are both given; a table has the numbers of all runs")
        names, rows = table_of(table)
        if given["runs"] not in (None, len(rows)):
            raise InputError(f"study: runs is {given['runs']}, and the table has {len(rows)} rows; leave runs out")
        return names, [Distribution() for _ in names], rows
    if not isinstance(vary, Mapping) or not vary:
        raise InputError(f"study: vary is {vary!r:.60}; expected {{'name': sl.studies.Uniform(...)}}, or give table=")
    for name, d in vary.items():
        if not isinstance(d, Distribution) or type(d) is Distribution:
            raise InputError(
                f"study: vary[{name!r}] is {d!r:.60}; expected a distribution of sl.studies: Uniform, Normal, "
                "LogNormal, Triangular, Choice, Levels"
            )
    return [str(n) for n in vary], list(vary.values()), None


def _inputs(inputs: Any) -> tuple[list[str], np.ndarray | None]:
    """Names of the inputs, and their numbers (n,), or (steps, n) of arrays."""
    if inputs is None:
        return [], None
    by_name = isinstance(inputs, Mapping)
    row = real_numbers(list(inputs.values()) if by_name else inputs)
    if row is None or (by_name and row.ndim != 1):
        raise InputError(f"study: inputs is {inputs!r:.60}; expected {{'name': number}} or an array of real numbers")
    if by_name:
        return [str(n) for n in inputs], row
    if row.ndim not in (1, 2):
        raise InputError(f"study: inputs has shape {row.shape}; expected (n,) or (steps, n), of one run")
    return [str(k) for k in range(row.shape[-1])], row


def _own_parameters(model: Model, given: Any) -> np.ndarray | None:
    if given is None:
        return None
    values = real_numbers(getattr(given, "values", given))
    count = len(model.parameters())
    if values is None:
        raise InputError(f"study: parameters is {given!r:.60}; expected real numbers ({count},)")
    if values.shape != (count,):
        raise InputError(f"study: parameters has shape {values.shape}; expected ({count},), of one run")
    return values


def _nominal(
    model: Model,
    known: Mapping[str, Any],
    parameters: np.ndarray | None,
    inputs: np.ndarray | None,
    arguments: Mapping[str, Any],
) -> dict[str, float]:
    """The values of a study in which nothing varies, by name, as far as they are numbers."""
    own = model.parameters().values if parameters is None else parameters
    tau = arguments["tau"]
    if isinstance(tau, Mapping):
        tau = torques_by_name(model, tau)
    out = {}
    for name, target in known.items():
        if target.kind == "parameters":
            out[name] = float(own[target.place])
        elif target.kind == "input" and inputs is not None:
            out[name] = _constant(inputs, target.place)
        elif target.kind in ("q", "v"):
            out[name] = _given(model, arguments[target.kind], target)
        elif target.kind == "tau":
            out[name] = 0.0 if tau is None else _constant(tau, target.place)
        elif target.kind in ("friction", "restitution"):
            out[name] = float(getattr(model.contacts[target.place], target.kind))
    return out


def _given(model: Model, given: Any, target: Target) -> float:
    """A number of the arguments q and v; NaN where it is not given, or refused later."""
    place = target.place
    if isinstance(given, Mapping):
        place -= (model.q_slice if target.kind == "q" else model.v_slice)(target.joint).start
        given = given.get(target.joint)
    values = None if given is None else real_numbers(given)
    return float(values.flat[place]) if values is not None and values.size > place else math.nan


def _constant(rows: Any, place: int) -> float:
    """Column `place` of (n,) or (steps, n); NaN if it changes from step to step, or is not a number."""
    try:
        column = np.atleast_2d(np.asarray(rows, float))[..., place]
    except (TypeError, ValueError, IndexError):  # refused where all of it is checked
        return math.nan
    return float(column.flat[0]) if column.size and (column == column.flat[0]).all() else math.nan


def _integrator(given: Any) -> Integrator:
    found = given if isinstance(given, Integrator) else Integrator(given)
    if found.adaptive or found.accuracy is not None:
        what = f"integrator is {found.name!r}" if found.adaptive else "accuracy is given"
        raise UnsupportedError(f"study: steps are of one length in all runs, and {what}. Use 'rk4' and step=")
    if found.checkpoint is not None:
        raise InputError("study: a checkpoint belongs to one simulation; a study with a store continues by itself")
    return replace(found, threads=1, progress=False)


def _grid(arguments: Mapping[str, Any], items: Sequence[Item]) -> tuple[Grid, tuple[int, ...]]:
    """The grid of the runs, as coarse as the samples that are kept allow; numbers of its samples."""
    duration, step, sample = arguments["duration"], arguments["step"], arguments["sample"]
    fine = grid(duration, step, sample if sample is not None else duration, 1)
    wanted = [x for x in items if isinstance(x.given, Samples) and x.given.times is not None]
    every = fine.every
    for item in wanted:
        every = math.gcd(every, *step_numbers(item.given.times, fine, arguments["start"], item.name))  # type: ignore[union-attr]
    samples = range(0, fine.steps // every + 1, fine.every // every)
    return Grid(fine.duration, fine.steps, every), tuple(samples)


def _setup(
    robot: Dynamics, arguments: Mapping[str, Any], parameters: Any, inputs: Any, variables: Variables,
    items: tuple[Item, ...], times: Grid, samples: tuple[int, ...], integrator: Integrator,
    trajectories: bool, design: Design,
) -> Setup:  # fmt: skip
    """The setup before its reference is known."""
    first = variables.values(design.rows(0, 1))
    varied = list(variables.assigned(first))
    own = own_start(robot, {**arguments, "parameters": parameters}, varied)
    tau = arguments["tau"]
    if isinstance(tau, Mapping):
        tau = torques_by_name(robot.model, tau)
    if tau is not None and np.ndim(tau) > 2:
        raise InputError(f"study: tau has shape {np.shape(tau)}; expected (nv,) or (steps, nv), of one run")
    names = ("controller", "forces", "closures", "limits", "events", "start")
    passed = {name: arguments[name] for name in names}
    passed |= {"step": times.h, "method": arguments["method"] or robot.method}
    fixed = {"tau": tau, "parameters": parameters, "contacts": arguments["contacts"]}
    return Setup(
        robot.model, variables, items, passed | fixed, times, integrator, (own.q, own.v), own.closes, own.held,
        own.named, own.active, np.empty(0), samples, trajectories, inputs,
    )  # fmt: skip


def _with_integrator(setup: Setup, problem: Problem, first: np.ndarray, design: Design) -> Setup:
    """The integrator of all runs, chosen from the reference and all draws where it is left open."""
    starts = starts_of(setup, np.concatenate([setup.reference[None], first]))
    try:
        examined = setup.problem(starts)
    except (InputError, StateError):
        examined = problem
    examined, integrator = with_stiffness(examined, setup.integrator, setup.grid.h)
    if integrator.name != "implicit" and not examined.advice:
        integrator = _for_stiffest(setup, problem, integrator, design)
    return replace(setup, integrator=integrator, implicit=integrator.name == "implicit")


def _for_stiffest(setup: Setup, problem: Problem, integrator: Integrator, design: Design) -> Integrator:
    """The integrator for the stiffest of all draws: implicit where it is left open, else with a warning."""
    with machine.reported(f"searching {design.runs} runs for the stiffest"):
        found = stiffest_draw(setup, problem, design)
    if found is None:
        return integrator
    if setup.integrator.name == AUTO:
        return replace(integrator, name="implicit")
    run, words = found
    advice = words.advice(setup.grid.h, integrator.name)
    warnings.warn(f"study: in run {run}, {advice}", SpanloopWarning, stacklevel=5)
    return integrator
