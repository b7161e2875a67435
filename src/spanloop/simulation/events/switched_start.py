"""What a run with events carries at its start: which switches are on, what they hold, and the watchers' values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.compiler.lower import unrolled
from spanloop.errors import Reason, Refusal, StateError
from spanloop.loops.closure_errors import rows_of
from spanloop.math.scalar import absolute, where
from spanloop.simulation.controllers import traced
from spanloop.simulation.events.conditions import condition_value
from spanloop.simulation.events.location import SLACK
from spanloop.simulation.events.switches import OPEN, STOP, Switching
from spanloop.simulation.events.watched_values import values_and_rates, watched_row
from spanloop.simulation.traced_kernels import kernel, must_repeat

if TYPE_CHECKING:
    from spanloop.simulation.problem import Problem

_LARGEST = 1e300


def initial_arrays(problem: Problem) -> dict[str, np.ndarray]:
    """Arrays (n or 1, size) by name, of located_step.state_sizes."""
    switching = problem.system.switching
    assert switching is not None
    out: dict[str, Any] = {"on": np.array(switching.begins_on, float), "ending": np.zeros(1), "share": np.zeros(1)}
    out["active"] = np.array(switching.active(out["on"].tolist()), float)
    out["captured"] = np.array([x for name in switching.captures for x in switching.own_placement(name)], float)
    out["present"] = np.array(switching.begins_present, float)
    known = {name: np.atleast_2d(x) for name, x in out.items() if np.size(x)}
    g, r = watched(problem, known, np.full((len(problem), 1), problem.start), problem.q, problem.v)
    _refuse_beyond(problem, g)
    if problem.inputs.callback is not None:  # whose torques, and so the forces, are not known yet
        g[:, [w.needs_forces for w in switching.watchers]] = 1.0
    limits = [w.kind == "limit" for w in switching.watchers]
    armed = np.where(limits, g > 0.0, True) & ~_returns(problem, known, g, r)
    armed[:, switching.touches] = g[:, switching.touches] > SLACK["float64"]
    return {**known, "g": g, "r": r, "armed": armed.astype(float)}


def _returns(problem: Problem, known: Mapping[str, np.ndarray], g: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Whether each watcher (n, watchers) is of a joint at rest beyond its limit that is pulled inside: no stop acts."""
    system, switching = problem.system, problem.system.switching
    assert switching is not None
    stops = [w.kind == "gap" and w.limit is not None for w in switching.watchers]
    rest = np.array(stops, bool) & (g < 0.0) & (r == 0.0)
    if not rest.any() or problem.inputs.callback is not None:
        return rest & False

    def compute(x: dict[str, Any]) -> tuple[list[Any], tuple[()]]:
        return list(replace(system, implicit=False).accelerations(x)[0]), ()

    n, nv = len(problem), system.model.nv
    state = (np.full((n, 1), problem.start), problem.q, problem.v)
    a = _evaluated(problem, "accelerations", nv, compute, known, state)
    for j in np.flatnonzero(stops):
        w = switching.watchers[j]
        assert w.limit is not None
        rest[:, j] &= w.limit.sign * a[:, switching.switches[w.switch].dof] > 0.0
    return rest


def _refuse_beyond(problem: Problem, g: np.ndarray) -> None:
    """StateError where an open one-sided constraint starts on the wrong side; g (n, watchers)."""
    switching = problem.system.switching
    assert switching is not None
    absent = [b for b, present in enumerate(switching.begins_present) if not present]
    for j, w in enumerate(switching.watchers):
        if w.kind != "gap" or w.limit is not None or switching.begins_on[w.switch]:
            continue
        row = watched_row(switching.switches[w.switch])
        k = int(np.argmin(g[:, j]))
        beyond = g[k, j] < -OPEN * switching.mechanism.row_lengths[row]
        if beyond and not set(absent) & set(switching.bodies_of(w.switch)):
            size = f"{g[k, j]:.3g} {rows_of(switching.model)[row].unit}{f' in run {k}' if len(g) > 1 else ''}"
            words = (
                f"OneSided({w.name!r}) starts on the wrong side: sign times its error is {size}, and must be positive. "
                "Start where it is not, or give the other sign="
            )
            raise StateError.of("simulate", Refusal(Reason.OPEN_LOOP, words))


def start_note(problem: Problem) -> str:
    """A sentence on the changes whose conditions are met at the start, "" if there are none."""
    switching, g = problem.system.switching, problem.switched_start["g"]
    assert switching is not None
    absent = {b for b, present in enumerate(switching.begins_present) if not present}
    changes = [(j, w) for j, w in enumerate(switching.watchers) if w.condition is not None and w.kind != "end"]
    changes = [(j, w) for j, w in changes if w.switch < 0 or not absent & set(switching.bodies_of(w.switch))]
    met = [f"{type(w.event).__name__}({w.name!r})" for j, w in changes if (g[:, j] <= 0.0).any()]
    timed = [w for w in switching.watchers if w.moment >= 0 and not w.name.endswith(STOP)]
    past = [f"{type(w.event).__name__}({w.name!r})" for w in timed if _is_past(switching.moments[w.moment], problem)]
    notes = [f"not positive at the start, so that it happens at once: the condition of {', '.join(met)}"] * bool(met)
    notes += [f"before the start, so that it happens at once: at of {', '.join(past)}"] * bool(past)
    return "; ".join(notes)


def absent_note(switching: Switching, v: np.ndarray) -> str:
    """A sentence on initial velocities (n, nv) of bodies that are not there and do not move, "" if there are none."""
    moving = [body for body in switching.begins_absent if v[:, switching.dofs_of(body)].any()]
    return f"not used: v of {', '.join(moving)} and of what it carries, absent at the start" if moving else ""


def _is_past(at: Any, problem: Problem) -> bool:
    return bool((np.asarray(at, float) < problem.start).any())


def watched(
    problem: Problem, switched: Mapping[str, np.ndarray], t: np.ndarray, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and rates (n, watchers) at rows t (n, 1), q, v with the switched arrays (n or 1, size)."""
    system, switching = problem.system, problem.system.switching
    assert switching is not None
    count = len(switching.watchers)

    def compute(x: dict[str, Any]) -> tuple[list[Any], tuple[()]]:
        f = system.row_forces(x)[0] if switching.needs_forces else ()
        g, r = values_and_rates(system, {**x, "f": f})
        finite = [where(absolute(y) < _LARGEST, y, -1.0) for y in g]  # one that is no number fires, and no other
        return [*finite, *r], ()

    values = _evaluated(problem, "watched", 2 * count, compute, switched, (t, q, v))
    return values[:, :count], values[:, count:]


def wrenches(
    problem: Problem, switched: Mapping[str, np.ndarray], t: np.ndarray, q: np.ndarray, v: np.ndarray, **acting: Any
) -> dict[str, np.ndarray]:
    """[torque; force] (n, 6) of every loop, as conditions read them. acting: inputs u and memory z."""
    system, loops = problem.system, problem.system.model.loops

    def compute(x: dict[str, Any]) -> tuple[list[Any], tuple[()]]:
        found = system.wrenches(x, system.row_forces(x)[0])
        return [y for loop in loops for y in found[loop.name]], ()

    values = _evaluated(problem, "wrenches", 6 * len(loops), compute, switched, (t, q, v), acting)
    return {loop.name: values[:, 6 * k : 6 * k + 6] for k, loop in enumerate(loops)}


def _evaluated(
    problem: Problem,
    name: str,
    count: int,
    compute: Any,
    switched: Mapping[str, np.ndarray],
    state: tuple[np.ndarray, np.ndarray, np.ndarray],
    acting: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
    """compute(arrays) -> count scalars at rows of t, q, v; with the inputs of the first step if none are given."""
    system, n = problem.system, len(state[1])
    given = dict(zip(("t", "q", "v"), state, strict=True))
    if acting is None:
        u = problem.inputs.at(problem.batch, np.zeros((n, 1), int))[:, 0]
        acting = {"u": np.nan_to_num(u), "z": np.asarray(problem.applied.start(), float)}
    for k, x in acting.items():
        given[k] = np.reshape(x, (-1 if np.size(x) else 1, system.sizes[k]))
    given |= problem.constant_rows() | {k: switched[k] for k in system.switched}
    rows = {k: np.ascontiguousarray(np.broadcast_to(x, (n, x.shape[-1])), float) for k, x in given.items()}
    sizes = {k: x.shape[-1] for k, x in rows.items()}
    found: np.ndarray = kernel(name, sizes, count, compute, watch_key(problem))(*rows.values())
    return found


def watch_key(problem: Problem) -> str:
    """Names everything that the watchers' values depend on."""
    system, switching = problem.system, problem.system.switching
    assert switching is not None
    return f"{system.key()}|{conditions_key(switching)}"


def conditions_key(switching: Switching) -> str:
    """A hash of the users' conditions, traced once."""
    watchers = [w for w in switching.watchers if w.condition is not None]
    if not watchers:
        return ""
    model = switching.model
    parts = {f"f.{x.name}": 6 for x in model.loops} | {f"f.{x.name}": 1 for x in model.couplings}
    sizes = (("t", 1), ("q", model.nq), ("v", model.nv), *parts.items())

    def compute(x: Any) -> Any:
        def found() -> list[Any]:
            wrenches = {name[2:]: x[name] for name in parts}
            return [condition_value(w, model, x, wrenches) for w in watchers]

        first = found()
        must_repeat(first, found())
        return first, (), ()

    plan = traced("a condition", lambda: unrolled("events", sizes, (0,), compute), [w.condition for w in watchers])
    return hashlib.sha256(str(plan).encode()).hexdigest()
