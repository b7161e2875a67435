"""Starts of runs with closed loops: rows of states near one that is closed, each with lengths of its own.

Loops and couplings that events close later begin open, as in sl.simulate, and are left out.
Newton's method on all rows side by side. A row is changed until its own loops are closed and then never again, so that
its numbers do not depend on its neighbours. Joints that are given far from the reference run are moved there in parts,
and the others follow: one step from afar can close the loops in the other way in which they can be put together, which
the mechanism does not reach, or nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.loops.arguments import checked_active_loops
from spanloop.loops.closure_errors import positional
from spanloop.model import Model
from spanloop.simulation.events.declared_events import switching_of
from spanloop.simulation.system import Closures

_ROUNDS = 60
_PART, _PARTS = 0.15, 200  # rad or m: of the way to a start that is far; parts of it, at most
_FEW, _NEARLY = 6, 1e-3  # rounds after such a part, and m or rad that may be left
_CLOSED = 1e-12  # m or rad
OPEN = 1e-6  # m or rad: a start that is open by more has not been closed
_LONGEST = 0.3  # rad or m: of a step of one joint
_STILL = 1e-13  # rad or m: a smaller step closes nothing
_RANK = 1e-9  # of the largest singular value: a smaller one is that of a redundant row
_OPENS = 1e-9  # rad/s or m/s, of the rates: more opens the loops


def closed_at_start(model: Model, arguments: Mapping[str, Any]) -> frozenset[str] | None:
    """Names of the switchable loops and couplings that are closed at the start of a simulation; None for all.

    arguments: of sl.simulate.
    """
    closures = arguments["closures"]
    loops = closures if isinstance(closures, Closures) else Closures(closures)
    active = None if loops.active_loops is None else checked_active_loops(model, loops.active_loops, "study")
    if not model.switches:
        return active
    switching, _ = switching_of(model, arguments["events"], arguments["limits"], active, loops.stabilization)
    return frozenset(switching.begins_closed) if switching else active


def parameters_of(part: Model, model: Model, parameters: np.ndarray | None, n: int) -> np.ndarray | None:
    """Parameters (n, k) of a part of a model, one without some loops, from those of the model: (m,), (n, m) or None."""
    if parameters is None:
        return None
    rows = np.broadcast_to(parameters, (n, parameters.shape[-1]))
    if part is not model:
        names = model.parameters().names
        rows = rows[:, [names.index(name) for name in part.parameters().names]]
    return np.ascontiguousarray(rows)


def closed_starts(
    robot: Dynamics, start: np.ndarray, q: np.ndarray, parameters: np.ndarray | None, fixed: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Rows q (n, nq) with their loops closed, and what is left of the largest closure error (n,) [m or rad].

    start (nq,): of the reference run, from which q differs by single coordinates that add, those of fixed joints.
    parameters (n, k): of the rows, None for the model's. fixed: DoF that do not move.
    """
    away = np.abs(q - start).max(axis=1, initial=0.0)
    parts = np.where(away > _PART, np.ceil(np.minimum(away / _PART, _PARTS)), 0)
    way = q.copy()
    way[parts > 0] = start
    for part in range(1, int(parts.max(initial=0)) + 1):
        going = np.flatnonzero(parts >= part)
        share = (part / parts[going])[:, None]
        way[going] = np.where(q[going] != start, start + share * (q[going] - start), way[going])
        own = None if parameters is None else parameters[going]
        way[going], _ = _closed(robot, way[going], own, fixed, _FEW, _NEARLY)
    way[q != start] = q[q != start]
    out, left = _closed(robot, way, parameters, fixed)
    lost = np.flatnonzero(~(left < OPEN) & (parts > 0))  # the way there cannot be closed
    if len(lost):
        own = None if parameters is None else parameters[lost]
        out[lost], left[lost] = _closed(robot, q[lost], own, fixed)
    return out, left


def _closed(
    robot: Dynamics,
    q: np.ndarray,
    parameters: np.ndarray | None,
    fixed: list[int],
    rounds: int = _ROUNDS,
    tolerance: float = _CLOSED,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows q (n, nq) after Newton's method, and what is left of the largest closure error (n,)."""
    rows = np.flatnonzero(positional(robot.model))
    free = np.setdiff1d(np.arange(robot.model.nv), fixed)
    q, left = q.copy(), np.full(len(q), np.inf)
    going = np.arange(len(q))
    for _ in range(rounds):
        error = _evaluated(robot, "closure_error", q[going], parameters, going)[:, rows]
        left[going] = np.abs(error).max(axis=1, initial=0.0)
        open_ = left[going] > tolerance
        going, error = going[open_], error[open_]
        if not len(going):
            break
        J = _evaluated(robot, "closure_jacobian", q[going], parameters, going)[:, rows][:, :, free]
        step = -np.einsum("nvr,nr->nv", _inverse(J), error)
        size = np.abs(step).max(axis=1, initial=0.0)
        step *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))[:, None]
        well = np.isfinite(step).all(axis=1) & (size > _STILL)
        going, step = going[well], step[well]
        delta = np.zeros((len(going), robot.model.nv))
        delta[:, free] = step
        q[going] = _kernel(robot, "integrate", False).evaluate(q[going], delta)
    return q, left


def closed_rates(
    robot: Dynamics, q: np.ndarray, v: np.ndarray, parameters: np.ndarray | None, fixed: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Rates (n, nv) in which those of `fixed` DoF stay and the others follow, and by how much loops open (n,).

    The others are the nearest to theirs in v that keep the loops closed: those of joints in no loop stay, too.
    """
    free = np.setdiff1d(np.arange(robot.model.nv), fixed)
    J = _evaluated(robot, "closure_jacobian", q, parameters, np.arange(len(q)))
    out = v.copy()
    opening = np.einsum("nrv,nv->nr", J, v)
    out[:, free] -= np.einsum("nvr,nr->nv", _inverse(J[:, :, free]), opening)
    left = np.abs(np.einsum("nrv,nv->nr", J, out)).max(axis=1, initial=0.0)
    scale = np.abs(v[:, fixed]).max(axis=1, initial=0.0) + 1.0
    return out, np.where(left > _OPENS * scale, left, 0.0)


def _inverse(J: np.ndarray) -> np.ndarray:
    """The pseudo-inverses (n, v, r) of rows (n, r, v), zero where a row is not finite."""
    well = np.isfinite(J).all(axis=(1, 2))
    return np.linalg.pinv(np.where(well[:, None, None], J, 0.0), rcond=_RANK)


def _evaluated(
    robot: Dynamics, function: str, q: np.ndarray, parameters: np.ndarray | None, which: np.ndarray
) -> np.ndarray:
    found: np.ndarray
    if parameters is None:
        found = _kernel(robot, function, False).evaluate(q)
    else:
        found = _kernel(robot, function, True).evaluate(q, parameters[which])
    return found


def _kernel(robot: Dynamics, function: str, live: bool) -> Any:
    return robot.kernel(function, **({"parameters": "live"} if live else {}))
