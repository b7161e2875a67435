"""As accurate as was asked for: steps are halved until halving them changes nothing that matters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanloop.errors import InputError, SpanloopError
from spanloop.results import Trajectory
from spanloop.simulation.grid import MOST_STEPS, Grid

_HALVINGS = 14


class AccuracyError(SpanloopError):
    """The accuracy that was asked for cannot be reached."""


def refined(run: Callable[[Grid], Trajectory], grid: Grid, order: int, accuracy: float) -> Trajectory:
    """run(grid) on grids of shorter and shorter steps; the estimated error of the result is among its settings.

    Two motions with steps h and h/2 differ by (2ᵖ − 1) times the error of the better one, p the order.
    """
    if not (np.isfinite(accuracy) and accuracy > 0.0):
        raise InputError(f"accuracy is {accuracy!r}; must be positive (rad or m)")
    coarse = run(grid)
    factor = 2**order - 1
    best = np.inf
    for _ in range(_HALVINGS):
        grid = grid.halved()
        if grid.steps > MOST_STEPS:
            break
        fine = run(grid)
        error = _difference(coarse, fine) / factor
        if error <= accuracy:
            object.__setattr__(fine, "settings", {**fine.settings, "accuracy": accuracy, "estimated_error": error})
            return fine
        if error > 0.7 * best and np.isfinite(best):  # rounding, or a motion that cannot be foretold
            break
        best, coarse = min(best, error), fine
    raise AccuracyError(
        f"the accuracy {accuracy:g} cannot be reached: with steps of {grid.h:.3g} s the motion is still uncertain by "
        f"{error:.2g} (rad or m). Ask for less, or for a shorter duration: a motion may be chaotic"
    )


def _difference(a: Trajectory, b: Trajectory) -> float:
    """The largest difference of any coordinate at the samples that both have."""
    n = min(len(a), len(b))
    delta = a.robot.difference(a.q[..., :n, :], b.q[..., :n, :])
    well = np.isfinite(delta)
    return float(np.abs(delta[well]).max(initial=0.0))
