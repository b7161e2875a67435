"""Loops that close at one moment: positions corrected where they are a little open, velocities by a plastic impact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import OPEN
from spanloop.dynamics import Dynamics
from spanloop.errors import Reason, Refusal, StateError
from spanloop.loops.batching import values
from spanloop.loops.closure_errors import errors, mechanism_of, positional, relative_errors, worst
from spanloop.loops.reduced_inertia import Weighted
from spanloop.simulation.initial_state import assembled
from spanloop.trajectory.events import ImpulseRow, impulse_rows


@dataclass(frozen=True)
class Impact:
    """q (n, nq); v_before, v_after (n, nv); opening (n, n_rows): rates of rows before; impulse (n, n_rows) of them.

    The impulses act on bodies b, in the axes of the loops' child frames [N m s, N s]; rows: what the rows are.
    """

    q: np.ndarray
    v_before: np.ndarray
    v_after: np.ndarray
    opening: np.ndarray
    impulse: np.ndarray
    rows: tuple[ImpulseRow, ...] = ()

    def energy_lost(self, rows: Sequence[int] | slice) -> np.ndarray:
        """Kinetic energy (n,) that some of the rows took [J]."""
        return -0.5 * (self.impulse[:, rows] * self.opening[:, rows]).sum(axis=1)


def impact(robot: Dynamics, q: np.ndarray, v: np.ndarray, movable: Sequence[str]) -> Impact:
    """The loops of a robot close at rows q (n, nq), v (n, nv).

    movable: joints that are free to find a position in which they close; the others hardly move.

    Raises:
        StateError: a loop is open by more than simulate accepts of a start.
    """
    if not (robot.model.loops or robot.model.couplings):
        none = np.zeros((len(q), 0))
        return Impact(q, v, v, none, none)
    q = _closed(robot, q, movable)
    lengths = np.array(mechanism_of(robot.model).row_lengths)
    jacobian = values(robot, "closure_jacobian", q)
    opening = np.einsum("nrv,nv->nr", jacobian, v)
    weighted = Weighted(robot, q, jacobian / lengths[:, None])
    after = v + weighted.correction(opening / lengths)
    return Impact(q, v, after, opening, weighted.impulses(opening / lengths) / lengths, impulse_rows(robot.model))


def _closed(robot: Dynamics, q: np.ndarray, movable: Sequence[str]) -> np.ndarray:
    """Rows q with the loops closed."""
    still = [j.name for j in robot.model.joints if j.kind.nv and j.name not in movable]
    q = q.copy()
    for k in np.flatnonzero(_openness(robot, q) > OPEN) if movable else ():
        try:
            q[k] = assembled(robot, q[k], still)
        except StateError:
            break  # and say how far it is open
    openness = _openness(robot, q)
    far = np.flatnonzero(openness > OPEN)
    if len(far):
        first = int(far[0])
        miss = worst(robot.model, errors(robot, q[first : first + 1])[0])
        which = f"run {first} ends where " if len(q) > 1 else ""
        words = (
            f"{which}{miss.what} is open by {1e3 * miss.meters:.3g} mm and {1e3 * miss.radians:.3g} mrad; at most "
            f"{OPEN:g} (rad, or of its length) is closed at once. Give coordinates that close it, q={{joint: "
            "coordinate}, or continue where it is closed"
        )
        raise StateError.of("continued", Refusal(Reason.OPEN_LOOP, words))
    off = openness > 1e-14
    if off.any():
        q[off] = robot.project(q[off])
    return q


def _openness(robot: Dynamics, q: np.ndarray) -> np.ndarray:
    """The largest closure error (n,) of each state [rad, or of the loop's length]."""
    return np.abs(relative_errors(robot, q)[:, positional(robot.model)]).max(axis=1, initial=0.0)
