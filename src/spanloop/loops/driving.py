"""The linear algebra of inverse dynamics, for rows of states: motions that are left, least torques, stage by stage."""

from __future__ import annotations

import numpy as np

from spanloop.loops.actuating import Actuators
from spanloop.loops.structure import RANK
from spanloop.loops.subsystems import Stage, Subsystems


def motions_left(J: np.ndarray, usual: int) -> tuple[np.ndarray, np.ndarray]:
    """N (n, nv, nv) with J N = 0: orthonormal columns, the others zero; and at which states J has less than usual rank.

    J (n, rows, nv).
    """
    _, s, Vt = np.linalg.svd(J)
    counts = np.zeros(Vt.shape[:2], dtype=bool)
    counts[:, : s.shape[1]] = s > RANK * s.max(axis=1, initial=0.0, keepdims=True)
    return np.swapaxes(Vt * ~counts[:, :, None], 1, 2), counts.sum(axis=1) < usual


def least_torques(N: np.ndarray, needed: np.ndarray, by: Actuators) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u (n, m) with NᵀS u = Nᵀ needed and least Σ weight u²; Z (n, m, m) with NᵀS Z = 0; the rank of NᵀS.

    Where there is no such u it leaves the least rest.
    """
    over = 1.0 / np.sqrt(by.weights / by.weights.min(initial=np.inf))
    B = np.swapaxes(N, 1, 2)[:, :, list(by.freedoms)] * over
    right = np.einsum("nvk,nv->nk", N, needed)
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    counts = s > RANK * s.max(axis=1, initial=0.0, keepdims=True)
    inner = np.where(counts, np.einsum("nkr,nk->nr", U, right) / np.where(counts, s, 1.0), 0.0)
    taken = Vt * counts[:, :, None]
    Z = np.eye(len(by)) - np.swapaxes(taken, 1, 2) @ taken
    return over * np.einsum("nrm,nr->nm", Vt, inner), over[:, None] * Z, counts.sum(axis=1)


def in_stages(found: Subsystems, by: Actuators, J: np.ndarray, needed: np.ndarray) -> np.ndarray:
    """Torques (n, nv), subsystem by subsystem: each with the closure forces that those before it gave. [Saha, eq. 42]

    J (n, n_rows, nv).
    """
    tau, lam = np.zeros_like(needed), np.zeros(J.shape[:2])
    for stage in found.stages:
        left = needed - np.einsum("nrv,nr->nv", J, lam)
        u, x = _stage(stage, by, J[:, list(stage.rows)][:, :, list(stage.freedoms)], left[:, list(stage.freedoms)])
        tau[:, list(stage.actuated)], lam[:, list(stage.rows)] = u, x
    return tau


def _stage(stage: Stage, by: Actuators, J: np.ndarray, needed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torques and closure forces of one stage; of least weight where it is not determinate."""
    places = [stage.freedoms.index(f) for f in stage.actuated]
    if stage.determinate:
        unit = np.broadcast_to(np.eye(len(stage.freedoms))[:, places], (*needed.shape, len(places)))
        A = np.concatenate((unit, np.swapaxes(J, 1, 2)), axis=2)
        x = np.einsum("nuf,nf->nu", np.linalg.pinv(A, rcond=RANK), needed)
        return x[:, : len(places)], x[:, len(places) :]
    own = [by.freedoms.index(f) for f in stage.actuated]
    part = Actuators(tuple(places), tuple(by.names[k] for k in own), by.weights[own])
    u = least_torques(motions_left(J, 0)[0], needed, part)[0]
    left = needed.copy()
    left[:, places] -= u
    return u, np.einsum("nrf,nf->nr", np.linalg.pinv(np.swapaxes(J, 1, 2), rcond=RANK), left)
