"""What a run with events carries at its start: which switches are on, what they hold, and the watchers' values."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.compiler.lower import unrolled
from spanloop.simulation.controllers import traced
from spanloop.simulation.events.switching import Switching
from spanloop.simulation.events.watched_values import condition_value, values_and_rates
from spanloop.simulation.traced_kernels import kernel, must_repeat

if TYPE_CHECKING:
    from spanloop.simulation.problem import Problem


def initial_arrays(problem: Problem) -> dict[str, np.ndarray]:
    """Arrays (n or 1, size) by name, of located_step.state_sizes."""
    system, switching = problem.system, problem.system.switching
    assert switching is not None
    out: dict[str, Any] = {"on": np.array(switching.begins_on, float), "ending": np.zeros(1), "share": np.zeros(1)}
    out["active"] = np.array(switching.active(out["on"].tolist()), float)
    out["captured"] = np.array([x for name in switching.captures for x in switching.own_placement(name)], float)
    out["present"] = np.array(switching.begins_present, float)
    known = {name: np.atleast_2d(x) for name, x in out.items() if np.size(x)}
    g, r = watched(problem, known, np.full((len(problem), 1), problem.start), problem.q, problem.v)
    if problem.inputs.callback is not None:  # whose torques, and so the forces, are not known yet
        g[:, [w.needs_forces for w in switching.watchers]] = 1.0
    limits = [w.kind == "limit" for w in switching.watchers]
    armed = np.where(limits, g > 0.0, True).astype(float)
    return {**known, "g": g, "r": r, "armed": armed}


def watched(
    problem: Problem, switched: dict[str, np.ndarray], t: np.ndarray, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and rates (n, watchers) at rows t (n, 1), q, v with the switched arrays (n or 1, size)."""
    system, switching, n = problem.system, problem.system.switching, len(q)
    assert switching is not None
    count = len(switching.watchers)
    given: dict[str, np.ndarray] = {"t": t, "q": q, "v": v}
    if switching.needs_forces:
        u = problem.inputs.at(problem.batch, np.zeros((n, 1), int))[:, 0]
        given |= {"u": np.nan_to_num(u), "z": np.reshape(problem.applied.start(), (1, -1))}
    given |= problem.constant_rows()
    given |= {name: switched[name] for name in system.switched}

    def compute(x: dict[str, Any]) -> tuple[list[Any], tuple[()]]:
        f = system.row_forces(x)[0] if switching.needs_forces else ()
        g, r = values_and_rates(system, {**x, "f": f})
        return [*g, *r], ()

    rows = {name: np.ascontiguousarray(np.broadcast_to(x, (n, x.shape[-1])), float) for name, x in given.items()}
    found = kernel("watched", {name: x.shape[-1] for name, x in rows.items()}, 2 * count, compute, watch_key(problem))
    values = found(*rows.values())
    return values[:, :count], values[:, count:]


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
            wrenches = {name[2:]: x[name] if size > 1 else x[name][0] for name, size in parts.items()}
            return [condition_value(w, model, x, wrenches) for w in watchers]

        first = found()
        must_repeat(first, found())
        return first, (), ()

    plan = traced("a condition", lambda: unrolled("events", sizes, (0,), compute), [w.condition for w in watchers])
    return hashlib.sha256(str(plan).encode()).hexdigest()
