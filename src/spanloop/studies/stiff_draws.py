"""The draws of a study in which dampers and springs pull fastest, found among all of them, side by side.

Whether steps are implicit is decided once for all runs, so that one stiff run among a million must be known before.

| symbol | meaning |
|---|---|
| K, D (n, nv) | stiffness and damping at the joints of each run |
| M (n, nv, nv) | mass matrix: of trees in the neutral position, with closed loops where the reference starts |
| s (n, nv) | 1 / √diag M, by which all is scaled: C = s M s |
| P (n, nv, nv) | projector on the scaled rates that keep the loops closed |
| W | P C⁻¹ P on these rates; C⁻¹ for trees |

The rate of a run is the largest eigenvalue of [0 1; −W K −W D], as in simulation/stiffness.py. It is at most
(d + √(d² + 4 k)) / 2 with d = trace W D, k = trace W K: of runs in which this is slow no eigenvalue is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.simulation.problem import Problem
from spanloop.simulation.stiffness import EXPLICIT, Stiffest, causes, stiffest
from spanloop.simulation.system import System
from spanloop.simulation.traced_kernels import kernel
from spanloop.studies.draws.designs import Design
from spanloop.studies.setup import Setup, parameters_at

_NUMBERS = 4_000_000  # in the matrices of a block of runs
_TINY = 1e-12  # of the scaled mass matrix: links without mass are very fast, not infinitely
_RANK = 1e-9  # of the largest singular value of the closures' rows: a smaller one is that of a redundant row


def stiffest_draw(setup: Setup, problem: Problem, design: Design) -> tuple[int, Stiffest] | None:
    """The number of the run with the fastest rate and what causes it; None where no run is too fast for the steps.

    Constant gains and stops count beside dampers and springs; torques of functions are not known. problem: of the
    reference.
    """
    step, fastest, run, row = setup.grid.h, 0.0, 0, None
    size = max(1, _NUMBERS // (4 * max(1, setup.model.nv) ** 2))
    for begin in range(0, design.runs, size):
        draws = setup.variables.values(design.rows(begin, min(design.runs, begin + size)))
        p = parameters_at(setup, setup.variables.assigned(draws), len(draws))
        if p is None or p.ndim == 1:
            return None  # no parameter varies
        p = np.ascontiguousarray(p, float)
        K, D = _springs_and_dampers(problem, p)
        if not (K.any() or D.any()):
            continue
        K, D, W = _scaled(setup, problem, p, K, D)
        d, k = (np.einsum("njj,nj->n", W, x) for x in (D, K))
        bound = 0.5 * (d + np.sqrt(d**2 + 4.0 * np.maximum(k, 0.0)))
        rows = np.flatnonzero(bound * step > max(EXPLICIT, fastest * step))
        if len(rows):
            rates = _rates(K[rows], D[rows], W[rows])
            at = int(rates.argmax())
            if rates[at] * step > max(EXPLICIT, fastest * step):
                fastest, run, row = float(rates[at]), begin + int(rows[at]), p[rows[at]]
    found = None if row is None else stiffest(problem.system, problem.q[0], row)
    return None if found is None else (run, found)


def _rates(K: np.ndarray, D: np.ndarray, W: np.ndarray) -> np.ndarray:
    """The largest eigenvalue (n,) of each run."""
    n, nv = K.shape
    A = np.zeros((n, 2 * nv, 2 * nv))
    A[:, :nv, nv:] = np.eye(nv)
    A[:, nv:, :nv], A[:, nv:, nv:] = -W * K[:, None, :], -W * D[:, None, :]
    return np.abs(np.linalg.eigvals(A)).max(axis=1, initial=0.0)


def _scaled(
    setup: Setup, problem: Problem, p: np.ndarray, K: np.ndarray, D: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K and D (n, nv), scaled, and W (n, nv, nv); a run whose matrices are not finite has none."""
    model, system, robot = setup.model, problem.system, setup.robot
    closed = system.has_loops and not (system.model.switches or any(x.driven for x in model.loops))
    q = np.tile(problem.q[0] if closed else np.array(model.neutral(), float), (len(p), 1))
    M = robot.kernel("mass_matrix", parameters="live").evaluate(q, p)
    diagonal = np.einsum("njj->nj", M)
    s = 1.0 / np.sqrt(np.maximum(diagonal, _TINY * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-30 / _TINY)))
    C = s[:, :, None] * M * s[:, None, :] + _TINY * np.eye(model.nv)
    C = np.where(np.isfinite(C).all(axis=(1, 2))[:, None, None], C, np.eye(model.nv))
    if closed:
        J = robot.kernel("closure_jacobian", parameters="live").evaluate(q, p).reshape(len(p), -1, model.nv)
        W = _inverse_on(_free(J * s[:, None, :]), C)
    else:
        W = np.linalg.inv(C)
    return K * s**2, D * s**2, W


def _free(J: np.ndarray) -> np.ndarray:
    """The projectors (n, nv, nv) on what rows J (n, rows, nv) leave free."""
    J = np.where(np.isfinite(J).all(axis=(1, 2))[:, None, None], J, 0.0)
    _, sizes, V = np.linalg.svd(J, full_matrices=False)
    V = V * (sizes > _RANK * sizes.max(axis=1, keepdims=True, initial=0.0))[:, :, None]
    return np.eye(J.shape[2]) - np.einsum("nri,nrj->nij", V, V)


def _inverse_on(P: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The inverse of C on the rates that P projects on, 0 beside them."""
    found: np.ndarray = P @ np.linalg.inv(P @ C @ P + np.eye(P.shape[-1]) - P) @ P
    return found


def _springs_and_dampers(problem: Problem, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """K and D (n, nv) of springs, dampers, friction, gains and stops with each run's parameters p (n, k)."""
    model, given = problem.model, problem.system
    system = System(model, given.applied, live=True)

    def compute(x: Mapping[str, Sequence[Any]]) -> tuple[list[Any], tuple[()]]:
        K, D = system.springs_and_dampers(x)
        return [*K, *D], ()

    sizes = {"p": p.shape[1]}
    found = kernel("springs_and_dampers", sizes, 2 * model.nv, compute, system.key()).evaluate(p)
    K, D = found[:, : model.nv].copy(), found[:, model.nv :].copy()
    own = causes(given, model)
    for more_K, more_D in (own[cause] for cause in own if cause not in ("damping", "spring")):
        K, D = K + more_K, D + more_D
    return K, D
