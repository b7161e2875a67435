"""Bringing a state that has drifted back to the closed loops, by the change of least kinetic energy."""

from __future__ import annotations

import numpy as np

from spanloop.loops.assembling import SMALL
from spanloop.loops.measuring import errors, positional, worst
from spanloop.loops.robot import Robot, resolution, values
from spanloop.loops.states import Faults, over_states
from spanloop.loops.structure import structure
from spanloop.loops.weighted import Weighted

_STEPS = 12
_TARGET, _ENOUGH = 1e-14, 1e-11  # m or rad: where steps end, and what must be reached


def project(robot: Robot, q, v=None):
    """q (..., nq) with the loops closed; with v also v (..., nv) with J v = 0: (q, v).

    Positions by Newton steps −M⁻¹Jᵀ(J M⁻¹ Jᵀ)⁺ e, velocities by one such step on J v. For small errors; `assemble`
    closes large ones. Driven joints stay as they are.
    """
    model = robot.model
    if v is None:
        return over_states("project", robot, lambda x: _positions(robot, x), q=(q, model.nq))[0]

    def compute(q, v):
        (closed,), faults = _positions(robot, q)
        return (closed, v + _velocity_correction(robot, closed, v)), faults

    return tuple(over_states("project", robot, compute, q=(q, model.nq), v=(v, model.nv)))


def _positions(robot: Robot, q: np.ndarray) -> tuple[tuple[np.ndarray], Faults]:
    q, rows = q.copy(), None
    target, enough = (max(x, y * resolution(robot)) for x, y in ((_TARGET, 10.0), (_ENOUGH, 1000.0)))
    for _ in range(_STEPS):
        rows, e = _kept_positions(robot, q), errors(robot, q)
        busy = np.flatnonzero(np.abs(e[:, rows]).max(axis=1, initial=0.0) > target)
        if not len(busy):
            break
        J = values(robot, "closure_jacobian", q[busy])[:, rows]
        lengths = np.maximum(np.linalg.norm(J, axis=2), 1e-12)
        step = Weighted(robot, q[busy], J / lengths[:, :, None]).correction(e[busy][:, rows] / lengths)
        moved = values(robot, "integrate", q[busy], step)
        smaller = np.linalg.norm(errors(robot, moved)[:, rows], axis=1) < np.linalg.norm(e[busy][:, rows], axis=1)
        if not smaller.any():
            break
        q[busy[smaller]] = moved[smaller]
    e = errors(robot, q)
    rows = _kept_positions(robot, q)
    left, anywhere = (np.abs(x).max(axis=1, initial=0.0) for x in (e[:, rows], e))
    return (q,), {int(k): _why(robot, e[k]) for k in np.flatnonzero((left > enough) | (anywhere > SMALL))}


def _kept_positions(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Rows that constrain positions and are not redundant."""
    kept = structure(robot, q[0] if len(q) else robot.model.neutral()).kept
    return kept[positional(robot.model)[kept]]


def _velocity_correction(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    rows = structure(robot, q[0] if len(q) else robot.model.neutral())
    J = rows.scaled(values(robot, "closure_jacobian", q))
    return Weighted(robot, q, J).correction(np.einsum("nrv,nv->nr", J, v))


def _why(robot: Robot, error: np.ndarray) -> str:
    miss = worst(robot.model, error)
    return f"{miss.what} stays open by {miss.by()}. Projection closes small errors only; try robot.assemble(q)"
