"""A chunk of runs, from their draws to what is kept of them: the function that threads and Dask's workers call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.errors import InputError, StateError
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import End, Problem
from spanloop.simulation.simulate import steps_taken
from spanloop.simulation.termination import Termination
from spanloop.simulation.time_loop import Progress, TimeLoop
from spanloop.simulation.tracking.tracked import Evaluator
from spanloop.studies.counted_events import counted, happened
from spanloop.studies.kept import Item, Last, Samples
from spanloop.studies.kept_spins import too_fast
from spanloop.studies.setup import Prototype, Setup, Starts, prototype, quietly, starts_of
from spanloop.trajectory import EndReason

REFUSED = "refused"  # the outcome of a run that cannot start
SPIN = "spin"  # of one in which a body from finite elements spins too fast for its data
OUTCOMES = (*(x.value for x in EndReason), REFUSED, SPIN)
FAILED = (
    "refused",
    "spin",
    "singular",
    "open",
    "overlap",
    "tunnel",
    "jam",
    "unsolved",
    "not_finite",
    "not_converged",
    "controller",
)
FAILED_CODES = [OUTCOMES.index(name) for name in FAILED]
State = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, v, z (n, size)


@dataclass(frozen=True)
class Ended:
    """Runs after all their steps: what is needed to evaluate quantities at their samples and ends."""

    problem: Problem
    loop: TimeLoop
    progress: Progress
    layout: StateLayout
    ends: Sequence[End]

    @property
    def times(self) -> np.ndarray:
        """Times (n, 3): of the start, of the end of the last whole step, of the end."""
        grid, start, counts = self.loop.grid, self.loop.start, self.progress.counts
        end = np.array([e.outcome.time for e in self.ends])
        whole = start + counts * grid.h
        end = np.where(counts == grid.steps, whole, end)
        return np.column_stack([np.full(len(counts), start), whole, end])


def run_chunk(setup: Setup, rows: np.ndarray) -> dict[str, np.ndarray]:
    """What is kept of runs with these numbers (n, k): arrays (n, ...) by name of the results' variables."""
    with quietly():
        return _run_chunk(setup, rows)


def _run_chunk(setup: Setup, rows: np.ndarray) -> dict[str, np.ndarray]:
    n = len(rows)
    out = empty(setup, n)
    starts = starts_of(setup, np.concatenate([setup.reference[None], rows]))
    for k, reason in starts.refused.items():
        if k:
            _refuse(out, k - 1, reason)
    made = prototype(setup)
    for part, problem in _problems(setup, made, starts, out):
        found = _kept(setup, made, _ended(setup, problem))
        where = part[1:] - 1  # without the reference
        for name, array in found.items():
            out[name][where] = array[1:]
    return out


def empty(setup: Setup, n: int) -> dict[str, np.ndarray]:
    """The arrays of n runs before anything is known of them."""
    out: dict[str, np.ndarray] = {
        "outcome": np.full(n, OUTCOMES.index(REFUSED), np.uint8),
        "end_time": np.full(n, np.nan),
        "reason": np.full(n, "", object),
    }
    if setup.model.loops or setup.model.couplings:
        out["closure_error"] = np.full(n, np.nan)
    for item in setup.items:
        shape = (n, len(sample_numbers(setup, item))) if isinstance(item.given, Samples) else (n,)
        out[item.name] = np.full(shape, np.nan)
    if setup.trajectories:
        out["q"] = np.full((n, len(setup.samples), setup.model.nq), np.nan)
        out["v"] = np.full((n, len(setup.samples), setup.model.nv), np.nan)
    return out


def sample_numbers(setup: Setup, item: Item) -> list[int]:
    """Numbers of the grid's samples that an item keeps."""
    assert isinstance(item.given, Samples)
    if item.given.times is None:
        return list(setup.samples)
    gap, start = setup.grid.h * setup.grid.every, setup.arguments["start"]
    return [round((t - start) / gap) for t in item.given.times]


def _refuse(out: Mapping[str, np.ndarray], k: int, reason: str) -> None:
    out["outcome"][k], out["reason"][k] = OUTCOMES.index(REFUSED), reason


def _problems(
    setup: Setup, made: Prototype, starts: Starts, out: Mapping[str, np.ndarray]
) -> Iterator[tuple[np.ndarray, Problem]]:
    """Problems of all runs that start, each with the reference as its first row, and the rows of the chunk they have.

    Where sl.simulate refuses the start of a run the others are taken in halves, until it is alone.
    """
    parts = [np.arange(len(starts.rows))]
    while parts:
        part = parts.pop()
        if len(part) < 2:
            continue
        try:
            problem = made.of(Problem.of(setup.robot, **{**setup.arguments, **_some(starts, part).arguments}))
            if problem.system.switching:  # one-sided constraints have a side on which they start
                problem.state(StateLayout.of(problem.system, problem.events, setup.integrator.dtype))
        except (StateError, InputError) as error:
            if len(part) == 2:
                _refuse(out, int(starts.rows[part[1]]) - 1, _of_one(str(error)))
                continue
            middle = (len(part) + 1) // 2
            parts += [part[:middle], np.concatenate([part[:1], part[middle:]])]
            continue
        yield starts.rows[part], problem


def _of_one(sentence: str) -> str:
    """The sentence without the number that the run has in its call."""
    found = re.sub(r" in run 1\b", "", sentence)
    found = re.sub(r"\b(of )?run 1\b:? ?", lambda x: x[1] or "", found)
    return re.sub(r"\b(tau|inputs|parameters|q|v)\[1, ", r"\1[", found).replace("  ", " ")


def _some(starts: Starts, part: np.ndarray) -> Starts:
    """Those of the starts with these numbers."""
    n = len(starts.rows)
    if len(part) == n:
        return starts
    axes = {"q": 2, "v": 2, "parameters": 2, "tau": 3, "inputs": 3}  # of arrays with a row for each run
    given = {
        name: x[part] if name in axes and np.ndim(x) == axes[name] and len(x) == n else x
        for name, x in starts.arguments.items()
    }
    contacts = given["contacts"]
    if not isinstance(contacts, str):
        given["contacts"] = _some_surfaces(contacts, part, n)
    return Starts(given, starts.rows[part], {})


def _some_surfaces(settings: Any, part: np.ndarray, n: int) -> Any:

    def own(x: Any) -> Any:
        if not isinstance(x, Mapping):
            return x
        return {name: y[part] if np.ndim(y) and len(y) == n else y for name, y in x.items()}

    return replace(settings, friction=own(settings.friction), restitution=own(settings.restitution))


def _ended(setup: Setup, problem: Problem) -> Ended:
    """Take all steps, and find how each run ended."""
    loop, progress, layout = steps_taken(problem, setup.grid, setup.integrator)
    others = End(loop.outcome(progress))
    ends: Sequence[End] = [others] * len(problem)
    if progress.why.any():
        ends = Termination(loop, problem, layout, setup.integrator.name).ends(progress, others)
    return Ended(problem, loop, progress, layout, ends)


def _kept(setup: Setup, made: Prototype, ended: Ended) -> dict[str, np.ndarray]:
    p, layout, problem = ended.progress, ended.layout, ended.problem
    out: dict[str, np.ndarray] = {
        "outcome": np.array([OUTCOMES.index(e.outcome.reason) for e in ended.ends], np.uint8),
        "end_time": ended.times[:, 2],
        "reason": np.array(["" if e.outcome.finished else e.outcome.sentence for e in ended.ends], object),
    }
    if setup.model.loops or setup.model.couplings:
        out["closure_error"] = p.state[:, layout.places["loops"].start].astype(float)
    _numbers(setup, made.numbers, ended, out)
    _samples(setup, made.samples, ended, out)
    if any(item.quantity is None for item in setup.items):
        found = happened(problem, ended.ends, p.log, ended.loop.grid.h, setup.integrator.dtype)
        out |= counted(setup.items, problem, found)
    for k, reason in too_fast(setup.model, out).items():
        if out["outcome"][k] not in FAILED_CODES:
            out["outcome"][k], out["reason"][k] = OUTCOMES.index(SPIN), reason
    _without_lost(out, kept=("end_time", *(("q", "v") if setup.trajectories else ())))
    return out


def _without_lost(out: Mapping[str, np.ndarray], kept: Sequence[str]) -> None:
    """Let the numbers of runs that failed be NaN, all but those of these names: they enter no mean and no figure."""
    failed = np.isin(out["outcome"], FAILED_CODES)
    if failed.any():
        for name, array in out.items():
            if array.dtype.kind == "f" and name not in kept:
                array[failed] = np.nan


def _numbers(setup: Setup, evaluator: Evaluator, ended: Ended, out: dict[str, np.ndarray]) -> None:
    """The quantities at the end, and statistics over the steps."""
    if not evaluator.items:
        return
    tracked, p = setup.tracked, ended.progress
    all_finished = bool((p.counts == ended.loop.grid.steps).all())
    last = _values(ended, evaluator, 2)
    whole = last if all_finished else _values(ended, evaluator, 1)
    needs_start = not p.counts.all() or (tracked is not None and any(name == "mean" for name, _ in tracked.items))
    first = _values(ended, evaluator, 0) if needs_start else np.full_like(last, np.nan)
    seen = {x: np.column_stack([first[:, j], whole[:, j], last[:, j]]) for j, x in enumerate(evaluator.items)}
    for item in setup.items:
        if isinstance(item.given, Last) and item.quantity is not None:
            out[item.name] = seen[item.quantity][:, 2]
    if tracked:
        times, h = ended.times, ended.loop.grid.h
        carried = p.state[:, ended.layout.places["tracked"]]
        found = tracked.final(carried, times[:, 2] - times[:, 0], times, [seen[q] for _, q in tracked.items], h)
        names = [item.name for item in setup.sorted_items if item.statistic]
        out |= dict(zip(names, found, strict=True))


def _state_at(ended: Ended, moment: int) -> State:
    """q, v, z (n, size) at the start (0), after the last whole step (1) or at the end (2)."""
    p, model = ended.progress, ended.problem.model
    nq, nv, memory = model.nq, model.nv, ended.problem.applied.memory
    if moment == 0:
        row = p.record[:, 0].astype(float)
    else:
        row = p.record[:, -1].astype(float)
        cut = p.counts < ended.loop.grid.steps
        places = [ended.layout.places[n] for n in ("q", "v", *(("z",) if memory else ()))]
        row[cut, : nq + nv + memory] = np.concatenate([p.state[cut, place] for place in places], axis=1)
    out = row[:, :nq], row[:, nq : nq + nv], row[:, nq + nv : nq + nv + memory]
    if moment == 2:
        for k, end in enumerate(ended.ends):
            if end.q is not None:
                out[0][k], out[1][k], out[2][k] = end.q, end.v, end.z
    return out


def _values(ended: Ended, evaluator: Evaluator, moment: int) -> np.ndarray:
    numbers = np.minimum(ended.progress.counts, ended.loop.grid.steps - 1) * (moment > 0)
    return _evaluated(ended, evaluator, ended.times[:, moment], _state_at(ended, moment), numbers)


def _evaluated(ended: Ended, evaluator: Evaluator, t: np.ndarray, state: State, steps: np.ndarray) -> np.ndarray:
    """Values (n, quantities) at rows q, v, z of states at times t (n,) in steps with these numbers (n,)."""
    problem = ended.problem
    arrays = {"t": t[:, None], **dict(zip("qvz", state, strict=True))}
    arrays["u"] = problem.inputs.at(problem.batch, steps[:, None])[:, 0]
    constants = problem.constant_rows()
    arrays |= {name: constants[name] for name in problem.system.constants}
    arrays |= {name: ended.progress.state[:, ended.layout.places[name]] for name in problem.system.switched}
    return evaluator(arrays)


def _samples(setup: Setup, evaluator: Evaluator, ended: Ended, out: dict[str, np.ndarray]) -> None:
    """Quantities and states at the samples that are kept; NaN after the end of a run."""
    model, p, grid = ended.problem.model, ended.progress, ended.loop.grid
    nq, nv = model.nq, model.nv
    reached = p.counts[:, None] >= grid.every * np.arange(grid.samples)[None]
    if setup.trajectories:
        kept = np.array(setup.samples)
        rows = np.where(reached[:, kept, None], p.record[:, kept].astype(float), np.nan)
        out["q"], out["v"] = rows[..., :nq], rows[..., nq : nq + nv]
    wanted = [item for item in setup.items if isinstance(item.given, Samples)]
    if not wanted:
        return
    memory = ended.problem.applied.memory
    places = {item.name: sample_numbers(setup, item) for item in wanted}
    for item in wanted:
        out[item.name] = np.full((len(p.state), len(places[item.name])), np.nan)
    for number in sorted({k for kept in places.values() for k in kept}):
        row = np.where(reached[:, number, None], p.record[:, number].astype(float), np.nan)
        step = np.full(len(row), min(number * grid.every, grid.steps - 1))
        t = np.full(len(row), ended.loop.start + number * grid.every * grid.h)
        state = row[:, :nq], row[:, nq : nq + nv], row[:, nq + nv : nq + nv + memory]
        values = _evaluated(ended, evaluator, t, state, step)
        for item in wanted:
            for j in np.flatnonzero(np.array(places[item.name]) == number):
                assert item.quantity is not None
                out[item.name][:, j] = values[:, evaluator.items.index(item.quantity)]
