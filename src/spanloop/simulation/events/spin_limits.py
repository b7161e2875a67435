"""Spins and loads that a body from finite elements cannot follow without geometric stiffening, in runs.

Spin is judged at the start of a run and at its samples, loads at some of its samples.
"""

from __future__ import annotations

import warnings

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopWarning, UnsupportedError
from spanloop.flexible.matrices.spin import SPIN, TOO_FAST
from spanloop.model.flexible_bodies.stiffening_limits import (
    loaded_bodies,
    soft_bodies,
    spin_share,
    spin_words,
    warn_of_load,
)
from spanloop.trajectory import Trajectory
from spanloop.trajectory.audit.stiffening_findings import loads_along

_SAMPLES = 20  # at which loads are computed
_DIVERGED = 5.0  # of the first frequency: more likely steps that are too long than a spin


def refuse_fast_start(
    function: str, robot: Dynamics, q: np.ndarray, v: np.ndarray, parameters: np.ndarray | None = None
) -> None:
    """Raise UnsupportedError for a start that spins too fast; parameters (..., p): live ones, if there are any."""
    for body in soft_bodies(robot.model):
        share = float(np.nanmax(spin_share(robot, body, q, v, parameters), initial=0.0))
        if share > TOO_FAST and not body.elements.any_spin:  # type: ignore[union-attr]
            raise UnsupportedError(f"{function}: {spin_words(body, share, 'at the start')}")


def checked_spin(run: Trajectory) -> Trajectory:
    """The run; raises UnsupportedError where a body spins too fast for its data, and warns where it is near that."""
    for piece in run.pieces:
        soft = soft_bodies(piece.model)
        robot = piece.robot if run.parameters is None else Dynamics(piece.model)  # with the model's own lengths
        live = None if run.parameters is None else run.parameters[..., None, :]  # of all samples of a run
        for body in soft:
            shares = np.nan_to_num(spin_share(robot, body, piece.q, piece.v, live, run.model), posinf=np.inf)
            if not shares.size:
                continue
            at = np.unravel_index(int(np.argmax(shares)), shares.shape)
            share, when = float(shares[at]), f"at {piece.times[at[-1]]:.4g} s"
            if share > TOO_FAST and not body.elements.any_spin:  # type: ignore[union-attr]
                first = int(np.argmax((shares > TOO_FAST).reshape(-1, shares.shape[-1]).any(axis=0)))
                late = f"; the run is sound before {piece.times[first]:.4g} s"
                raise UnsupportedError(f"simulate: {spin_words(body, share, when)}{late}{_diverged(run, share)}")
            if share > SPIN:
                warnings.warn(
                    f"simulate: {spin_words(body, share, when)}{_diverged(run, share)}", SpanloopWarning, stacklevel=4
                )
    if len(run.pieces) == 1 and run.parameters is None and loaded_bodies(run.model):
        warn_of_load("simulate", *loads_along(run, _SAMPLES))
    return run


def _diverged(run: Trajectory, share: float) -> str:
    if share < _DIVERGED:
        return ""
    return (
        f". A spin like that is more likely a run that has diverged: steps of {run.step:g} s may be too long for its "
        "fastest mode; try shorter ones, or integrator='implicit'"
    )
