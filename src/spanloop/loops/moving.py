"""Velocities that would open a loop: J v is not zero."""

from __future__ import annotations

import numpy as np

from spanloop.loops.measuring import mechanism_of, rows_of
from spanloop.loops.robot import Robot, resolution
from spanloop.loops.states import Faults
from spanloop.loops.structure import Structure

_FITS = 1e-6  # of |J| |v|: what may be left of J v


def opening(robot: Robot, rows: Structure, J: np.ndarray, v: np.ndarray) -> Faults:
    """States whose velocities v (n, nv) open a loop, with J (n, n_rows, nv); rates along driven loops are free."""
    held = [r for r in rows.kept if r in set(mechanism_of(robot.model).velocity_rows)]
    left = np.zeros(J.shape[:2])
    left[:, held] = np.abs(np.einsum("nrv,nv->nr", J[:, held], v))
    most = np.linalg.norm(v, axis=1)[:, None] * rows.lengths
    wrong = (left > max(_FITS, 1e3 * resolution(robot)) * most).any(axis=1)
    model, names = robot.model, rows_of(robot.model)
    owners = [x.name for x in model.loops] + [c.name for c in model.couplings]

    def why(k: int) -> str:
        row = int(np.argmax(left[k] / rows.lengths))
        by = f"{left[k, row]:.3g} {names[row].unit}/s"
        return (
            f"the velocities v open {owners[names[row].owner]!r} at {by}; J v must be 0. "
            "Take the nearest that keep the loops closed: q, v = robot.project(q, v)"
        )

    return {int(k): why(int(k)) for k in np.flatnonzero(wrong)}
