"""The setup of a study: everything that a chunk of runs needs, as plain data that travels to other processes.

What sl.simulate decides from the states that it is given (the assembly of loops, implicit steps where joints are stiff)
is decided once, for a reference run, so that no chunk decides otherwise. The reference is also the first row of every
chunk: so every run has the same kernel, and the same bits in any chunk.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.contacts.settings import Settings
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopError, SpanloopWarning, StateError, listed
from spanloop.model import Model
from spanloop.model.poses import default_position
from spanloop.model.user_input import by_name
from spanloop.simulation.initial_state import LiveRobot, assembled
from spanloop.simulation.integrators.integrator import Integrator
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of
from spanloop.simulation.system import System
from spanloop.simulation.time_loop import Grid
from spanloop.simulation.tracking.tracked import Evaluator, Tracked
from spanloop.studies.closing import OPEN, closed_at_start, closed_rates, closed_starts, parameters_of
from spanloop.studies.draws.variables import SURFACES, Target, Variables
from spanloop.studies.kept import Item, Samples
from spanloop.studies.real_numbers import real_numbers

_EARLY = 1e-6  # of a step: a time that is nearer to the end of a step counts as that end


@dataclass(frozen=True, eq=False)
class Setup:
    """A model, the arguments of sl.simulate, what varies and what is kept.

    arguments: of Problem.of, without what varies. start: coordinates (nq,) and rates (nv,) of the reference, closed.
    closes: whether rows of q are to be closed, held: names of joints whose q is given and stays; named: of joints whose
    rates are given in loops, None where v is an array. active: names of the switchable loops and couplings that are
    closed at the start, None for all. reference (k,): its draws. samples: numbers of the samples that are kept, of the
    grid.
    """

    model: Model
    variables: Variables
    items: tuple[Item, ...]
    arguments: Mapping[str, Any]
    grid: Grid
    integrator: Integrator
    start: tuple[np.ndarray, np.ndarray]
    closes: bool
    held: tuple[str, ...]
    named: tuple[str, ...] | None
    active: frozenset[str] | None
    reference: np.ndarray
    samples: tuple[int, ...]
    trajectories: bool
    inputs: np.ndarray | None
    implicit: bool = False

    @property
    def tracked(self) -> Tracked | None:
        """The statistics that steps follow."""
        found = tuple((item.statistic, item.quantity) for item in self.sorted_items if item.statistic and item.quantity)
        return Tracked(found) if found else None

    @property
    def sorted_items(self) -> list[Item]:
        """What is kept by name: kernels do not depend on the order in which a user keeps it."""
        return sorted(self.items, key=lambda item: item.name)

    @property
    def robot(self) -> Dynamics:
        """The dynamics of the model."""
        return robot_of(self.model)

    def problem(self, starts: Starts) -> Problem:
        """The problem of these runs, as sl.simulate makes it, with the statistics that are kept."""
        problem = Problem.of(self.robot, **{**self.arguments, **starts.arguments})
        system = problem.system
        if self.implicit:
            system = replace(system, implicit=True)
        if self.tracked:
            system = replace(system, tracked=self.tracked)
        return replace(problem, system=system)


@dataclass(frozen=True)
class Starts:
    """Runs that can start: their arguments of Problem.of (q, v, tau, inputs, parameters, contacts), rows side by side.

    refused: {row: reason} of those that cannot, which are not among the arguments.
    """

    arguments: Mapping[str, Any]
    rows: np.ndarray
    refused: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class Prototype:
    """The system of all runs of a study, made once from the reference, so that nothing is traced for every chunk."""

    system: System
    numbers: Evaluator  # of quantities at the end, and of statistics
    samples: Evaluator

    def of(self, problem: Problem) -> Problem:
        """A problem of other runs with this system; its first run is the reference, from which both are made."""
        assert (problem.system.near, problem.system.live) == (self.system.near, self.system.live)
        return replace(problem, system=self.system)


@functools.lru_cache(maxsize=8)
def prototype(setup: Setup) -> Prototype:
    """The prototype of a setup, whose reference is known."""
    system = setup.problem(starts_of(setup, np.stack([setup.reference] * 2))).system
    plain = replace(system, tracked=None)
    items = setup.sorted_items
    ends = [x.quantity for x in items if x.quantity is not None and not isinstance(x.given, Samples)]
    sampled = [x.quantity for x in items if x.quantity is not None and isinstance(x.given, Samples)]
    return Prototype(system, *(Evaluator(plain, tuple(dict.fromkeys(x))) for x in (ends, sampled)))


def starts_of(setup: Setup, rows: np.ndarray) -> Starts:
    """The starts of runs with these numbers (n, k): loops closed around what is given."""
    assigned = setup.variables.assigned(rows)
    n, model = len(rows), setup.model
    parameters = parameters_at(setup, assigned, n)
    q = np.tile(setup.start[0], (n, 1))
    v = np.tile(setup.start[1], (n, 1))
    refused: dict[int, str] = {}
    for letter, array in (("q", q), ("v", v)):
        for target, column in assigned.items():
            if target.kind == letter:
                array[:, target.place] = column
    robot = setup.robot._with_active_loops(setup.active)
    live = parameters_of(robot.model, model, parameters, n)
    if setup.closes:
        held = tuple(dict.fromkeys((*setup.held, *(t.joint for t in assigned if t.kind == "q"))))
        q, left = closed_starts(robot, setup.start[0], q, live, _dofs(model, held))
        around = f" with q of {listed(map(repr, held))} as given" if held else ""
        for k in np.flatnonzero(~(left < OPEN)):
            refused[int(k)] = f"the loops cannot be closed at the start{around}: {left[k]:.2g} m or rad is left open"
    if setup.named is not None:
        v, left = closed_rates(robot, q, v, live, _dofs(model, setup.named))
        for k in np.flatnonzero(left):
            refused.setdefault(int(k), f"the rates that are given open the loops, by {left[k]:.2g} m/s or rad/s")
    well = np.array([k for k in range(n) if k not in refused], int)
    out: dict[str, Any] = {"q": q[well], "v": v[well], "parameters": parameters}
    if parameters is not None and parameters.ndim > 1:
        out["parameters"] = parameters[well]
    out |= _inputs(setup, assigned, well, n)
    return Starts(out, well, refused)


def _dofs(model: Model, joints: Sequence[str]) -> list[int]:
    return [dof for name in dict.fromkeys(joints) for dof in range(model.nv)[model.v_slice(name)]]


def parameters_at(setup: Setup, assigned: Mapping[Target, np.ndarray], n: int) -> np.ndarray | None:
    """Live parameters (n, k), (k,) if none of them varies, None if the model's own are baked."""
    base = setup.arguments["parameters"]
    varied = {t: x for t, x in assigned.items() if t.kind == "parameters"}
    if not varied:
        return base
    out = np.tile(setup.model.parameters().values if base is None else base, (n, 1))
    for target, column in varied.items():
        out[:, target.place] = column
    return out


def _inputs(setup: Setup, assigned: Mapping[Target, np.ndarray], well: np.ndarray, n: int) -> dict[str, Any]:
    """tau, inputs and contacts of the runs that start, as far as they vary or are given."""
    tau = setup.arguments.get("tau")
    out: dict[str, Any] = {"tau": _for_all(tau), "inputs": _for_all(setup.inputs)}
    varied = {t: x for t, x in assigned.items() if t.kind == "tau"}
    if varied:
        base = np.zeros(setup.model.nv) if tau is None else tau
        rows = (
            np.array(np.broadcast_to(base, (n, *np.shape(base))))
            if np.ndim(base) > 1
            else np.tile(base, (n, 1))[:, None]
        )
        for target, column in varied.items():
            rows[..., target.place] = column[:, None]
        out["tau"] = rows[well]
    varied = {t: x for t, x in assigned.items() if t.kind == "input"}
    if varied:
        assert setup.inputs is not None
        base = np.atleast_2d(setup.inputs)
        rows = np.array(np.broadcast_to(base, (n, *base.shape)))
        for target, column in varied.items():
            rows[..., target.place] = column[:, None]
        out["inputs"] = rows[well]
    settings = setup.arguments["contacts"]
    names = [c.name for c in setup.model.contacts]
    for kind in SURFACES:
        varied = {t: x for t, x in assigned.items() if t.kind == kind}
        if varied:
            settings = settings if isinstance(settings, Settings) else Settings(settings)
            own = getattr(settings, kind)
            given = dict(own) if isinstance(own, Mapping) else {} if own is None else dict.fromkeys(names, own)
            given |= {names[t.place]: x[well] for t, x in varied.items()}
            own_values: dict[str, Any] = {kind: given}
            settings = replace(settings, **own_values)
    out["contacts"] = settings
    return out


def _for_all(rows: Any) -> Any:
    """Rows of steps (steps, k) as (1, steps, k), which no number of runs makes one row for each run."""
    return np.asarray(rows)[None] if np.ndim(rows) == 2 else rows


@dataclass(frozen=True)
class OwnStart:
    """q (nq,) and v (nv,) of the reference; closes, held, named and active as in Setup."""

    q: np.ndarray
    v: np.ndarray
    closes: bool
    held: tuple[str, ...]
    named: tuple[str, ...] | None
    active: frozenset[str] | None


def own_start(robot: Dynamics, arguments: Mapping[str, Any], varied: Sequence[Target]) -> OwnStart:
    """The start of the reference by the arguments q, v and parameters, and how those of other runs follow from it."""
    model, q, v, parameters = robot.model, arguments["q"], arguments["v"], arguments["parameters"]
    active = closed_at_start(model, arguments)
    closed = robot._with_active_loops(active)
    has_loops = bool(closed.model.loops or closed.model.couplings)
    held: tuple[str, ...] = ()
    if q is None or isinstance(q, Mapping):
        held = tuple(q or ())
        found = by_name(model, q, default_position(model), "q", "study") if q else default_position(model)
        if has_loops:
            live = parameters_of(closed.model, model, parameters, 1)
            found = assembled(closed if live is None else LiveRobot(closed, live[0]), found, held)
    else:
        found = _one_row(q, model.nq, "q")
    rates = [t.joint for t in varied if t.kind == "v"]
    named: tuple[str, ...] | None = None
    if v is None or isinstance(v, Mapping):
        speeds = by_name(model, v, np.zeros(model.nv), "v", "study") if v else np.zeros(model.nv)
        if has_loops and (v or rates):
            named = tuple(dict.fromkeys((*(v or ()), *rates)))
    else:
        speeds = _one_row(v, model.nv, "v")
        if has_loops and rates:
            named = tuple(dict.fromkeys(rates))
    moves = any(t.kind == "q" or (t.kind == "parameters" and ".position." in t.name) for t in varied)
    if found.ndim != 1 or speeds.ndim != 1:
        raise InputError("study: q and v are those of one run; what differs from run to run goes into vary or table")
    return OwnStart(found, speeds, has_loops and moves, held, named, active)


def _one_row(given: Any, size: int, name: str) -> np.ndarray:
    found = real_numbers(given)
    if found is None:
        raise InputError(f"study: {name} is {given!r:.60}; expected real numbers ({size},)")
    if found.shape != (size,) or not np.isfinite(found).all():
        raise InputError(
            f"study: {name} has shape {found.shape}; expected ({size},) finite numbers, of one run. What differs from "
            "run to run goes into vary or table"
        )
    return found


def with_reference(setup: Setup, nominal: np.ndarray, first_rows: np.ndarray) -> tuple[Setup, Problem]:
    """The setup with the first row that starts: the nominal one, else one of the first runs; and its problem."""
    error: SpanloopError | None = None
    for row in (nominal, *first_rows):
        if not np.isfinite(row).all():
            continue
        try:
            starts = starts_of(setup, np.stack([row, row]))
            if not starts.refused:
                made = replace(setup, reference=row)
                return made, made.problem(starts)
            error = StateError(next(iter(starts.refused.values())))
        except StateError as refused:
            error = refused
    raise InputError(
        f"study: neither the model's own numbers nor the first {len(first_rows)} runs can start: {error}"
    ) from error


def step_numbers(times: Sequence[float], grid: Grid, start: float, name: str) -> list[int]:
    """Numbers of the steps after which these times [s] are reached."""
    out = []
    for t in times:
        number = (t - start) / grid.h
        if not -_EARLY <= number <= grid.steps + _EARLY:
            span = f"{start:g} to {start + grid.duration:g} s"
            raise InputError(f"study: keep[{name!r}]: the time {t:.9g} s is outside the runs, which are from {span}")
        if abs(number - round(number)) > _EARLY:
            near = start + grid.h * round(number)
            raise InputError(
                f"study: keep[{name!r}]: the time {t:.9g} s is not the end of a step of {grid.h:g} s; the nearest one "
                f"is {near:.9g} s"
            )
        out.append(round(number))
    return out


_NOTES = "(simulate|quantities): "  # the beginnings of warnings that results make superfluous
_quiet, _lock = list[Any](), threading.Lock()  # the filter, as often as contexts of this process have it


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """A context without what sl.simulate notes of starts, as of one that was closed, and kernels of NaN.

    Filters belong to the process, and warnings.catch_warnings must be left in reverse order, which threads do not do.
    """
    with _lock:
        if not _quiet:
            warnings.filterwarnings("ignore", _NOTES, SpanloopWarning)
        _quiet.append(_quiet[0] if _quiet else warnings.filters[0])
    try:
        yield
    finally:
        with _lock:
            own = _quiet.pop()
            if not _quiet and own in warnings.filters:
                warnings.filters.remove(own)  # type: ignore[attr-defined]
