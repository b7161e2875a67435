"""The best numbers of a study, by SciPy's differential evolution [Storn 1997]: a generation is one batch of runs."""

from __future__ import annotations

import concurrent.futures
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, SpanloopError, UnsupportedError, nearest
from spanloop.studies.chunk import FAILED_CODES, run_chunk
from spanloop.studies.definition import Prepared
from spanloop.studies.draws.distributions import Choice, Distribution, Levels
from spanloop.studies.kept import Samples

OPTIONS = ("population", "generations", "seed", "tolerance", "polish")
_PENALTY = 1e100  # of a run that failed, or whose number is not finite
_CORNERS, _BETWEEN = 8, 64  # variables of whose ranges all corners are examined for stiffness; places between them
_SHARE = 32  # runs of a batch for a thread, at least


@dataclass(frozen=True)
class Best:
    """The best numbers by variable, the objective there, and how they were found.

    history (generations,): the best objective after each. runs: how many were simulated; failed: of these, how many
    failed or had no finite number, which counts as worst.
    """

    values: Mapping[str, float]
    objective: float
    name: str
    runs: int
    failed: int
    history: np.ndarray
    converged: bool
    message: str

    def __str__(self) -> str:
        found = ", ".join(f"{name} = {x:.6g}" for name, x in self.values.items())
        return f"{self.name} = {self.objective:.6g} at {found} ({self.runs} runs, {self.failed} failed; {self.message})"


def refuse_unknown_options(options: Mapping[str, Any]) -> None:
    """Raise InputError for an option that study.best does not have."""
    for name in options:
        if name not in OPTIONS:
            raise InputError(f"study: best has no option {name!r}; {nearest(name, OPTIONS)}")


def best_of(
    study: Prepared,
    objective: str,
    largest: bool = False,
    *,
    population: int | None = None,
    generations: int = 100,
    seed: int = 0,
    tolerance: float = 1e-6,
    polish: bool = False,
) -> Best:
    """Search the smallest or largest objective; see Study.best."""
    try:
        from scipy.optimize import differential_evolution
    except ImportError:
        raise UnsupportedError("study.best needs SciPy; pip install scipy") from None
    names = study.setup.variables.names
    known = [item.name for item in study.setup.items if not isinstance(item.given, Samples)]
    if objective not in known:
        raise InputError(f"study: there is no number {objective!r} to optimise; {nearest(objective, known)}")
    axes = _axes(study)
    _refuse_options(population, generations, seed, tolerance, polish)
    study.refuse_changed()
    setup = study.for_draws(_probes(axes)).setup
    count = max(5, population or 15 * len(names))
    state: dict[str, Any] = {"runs": 0, "failed": 0, "history": []}
    sign = -1.0 if largest else 1.0
    threads = os.cpu_count() or 1

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:

        def cost(x: np.ndarray) -> np.ndarray:
            rows = setup.variables.values(_numbers(axes, np.atleast_2d(x.T)))
            parts = np.array_split(rows, max(1, min(threads, len(rows) // _SHARE)))
            try:
                found = list(pool.map(lambda part: run_chunk(setup, part), parts))
            except SpanloopError as error:  # SciPy would replace it by one of its own
                state["error"] = error
                raise
            y = np.concatenate([f[objective] for f in found])
            failed = np.isin(np.concatenate([f["outcome"] for f in found]), FAILED_CODES)
            well = np.isfinite(y) & ~failed
            state["runs"] += len(y)
            state["failed"] += int((~well).sum())
            y = np.where(well, sign * y, _PENALTY)
            return y if x.ndim > 1 else y[0]

        def keep(intermediate_result: Any) -> None:
            state["history"].append(sign * float(intermediate_result.fun))

        try:
            found = differential_evolution(
                cost,
                [axis.bounds for axis in axes],
                integrality=[axis.values is not None for axis in axes],
                popsize=max(1, math.ceil(count / len(names))),
                maxiter=generations,
                seed=seed,
                tol=tolerance,
                vectorized=True,
                updating="deferred",
                polish=polish,
                callback=keep,
            )
        except RuntimeError:
            if "error" in state:
                raise state["error"] from None
            raise
    if found.fun >= _PENALTY:
        raise InputError(
            f"study: none of {state['runs']} runs had a finite {objective!r}; choose ranges in which it moves"
        )
    values = setup.variables.values(_numbers(axes, np.atleast_2d(found.x)))[0]
    chosen = dict(zip(names, map(float, values), strict=True))
    history = np.array(state["history"])
    message = str(found.message)
    return Best(
        chosen,
        sign * float(found.fun),
        objective,
        state["runs"],
        state["failed"],
        history,
        bool(found.success),
        message,
    )


@dataclass(frozen=True)
class _Axis:
    """The range that is searched of one variable, before it is multiplied where it is relative.

    values (n,): of Choice and Levels, in order; their places 0 .. n − 1 are searched.
    """

    bounds: tuple[float, float]
    values: np.ndarray | None = None


def _probes(axes: Sequence[_Axis]) -> np.ndarray:
    """Numbers (n, k) all over the ranges: corners, all of them or some, and places between."""
    rng, k = np.random.default_rng(0), len(axes)
    ends = (
        np.array(list(itertools.product((0.0, 1.0), repeat=k)))
        if k <= _CORNERS
        else rng.integers(0, 2, (2**_CORNERS, k))
    )
    shares = np.concatenate([ends, np.zeros((1, k)), np.ones((1, k)), rng.random((_BETWEEN, k))])
    low, high = np.array([axis.bounds for axis in axes]).T
    return _numbers(axes, low + shares * (high - low))


def _axes(study: Prepared) -> list[_Axis]:
    out = []
    if study.design.table is not None:
        raise InputError("study: best searches ranges, and this study has a table; give vary=")
    for name, d in zip(study.setup.variables.names, study.design.distributions, strict=True):
        if not all(map(math.isfinite, d.bounds)):
            raise InputError(
                f"study: {name!r} is {d}, which has no range; give Uniform(low, high), or a Normal with low= and high="
            )
        values = _values(d)
        out.append(_Axis(d.bounds) if values is None else _Axis((0.0, len(values) - 1.0), values))
    return out


def _values(d: Distribution) -> np.ndarray | None:
    """The numbers in order of a distribution that has some alone, without those of weight 0."""
    if not isinstance(d, Choice | Levels):
        return None
    weights = d.weights if isinstance(d, Choice) and d.weights is not None else np.ones(len(d.values))
    found: np.ndarray = np.unique(np.array(d.values)[np.array(weights) > 0.0])
    return found


def _numbers(axes: Sequence[_Axis], x: np.ndarray) -> np.ndarray:
    """Numbers (n, k) of the variables at places (n, k) that are searched."""
    columns = [
        column if axis.values is None else axis.values[np.rint(column).astype(int)]
        for axis, column in zip(axes, x.T, strict=True)
    ]
    return np.column_stack(columns)


def _refuse_options(population: Any, generations: Any, seed: Any, tolerance: Any, polish: Any) -> None:
    """Raise InputError for options of study.best of another type or out of range."""
    for name, value, least in (("population", population, 1), ("generations", generations, 1), ("seed", seed, 0)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (whole and least <= value < 2**32) and not (name == "population" and value is None):
            raise InputError(f"study: best has {name}={value!r:.60}; expected a whole number from {least} to 2^32 - 1")
    number = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool)
    if not (number and math.isfinite(tolerance) and tolerance >= 0.0):
        raise InputError(f"study: best has tolerance={tolerance!r:.60}; expected a number, not negative")
    if not isinstance(polish, bool | np.bool_):
        raise InputError(f"study: best has polish={polish!r:.60}; expected True or False")
