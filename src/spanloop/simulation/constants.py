"""What does not change during a run: live parameters, sets of active loops, gains of the feedback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.model.parameters import Parameters

FREQUENCY = 50.0  # rad/s, of the feedback that pulls loops closed, if none is given


def constants(
    robot: Dynamics, closures: str, gains, parameters, active: Iterable[str] | None, given: Mapping
) -> dict[str, np.ndarray]:
    """Arrays (..., n) by name."""
    model = robot.model
    out: dict[str, np.ndarray] = {}
    if parameters is not None:
        out["p"] = _parameters(model, parameters)
    switchable, driven = any(x.switchable for x in model.loops), any(x.driven for x in model.loops)
    names = [name for name, there in (("active", switchable), ("given", driven)) if there]
    out |= dict(zip(names, robot.loop_inputs(active, given), strict=True))
    if closures == "feedback" and (model.loops or model.couplings):
        out["gains"] = _gains(gains)
    elif gains is not None:
        raise InputError(f"gains are for closures='feedback' of a model with loops; closures is {closures!r}")
    return out


def _parameters(model, parameters) -> np.ndarray:
    count = len(Parameters.of(model))
    values = np.asarray(getattr(parameters, "values", parameters))
    if values.dtype.kind not in "fiub" or values.shape[-1:] != (count,):
        raise InputError(
            f"parameters has shape {values.shape} of {values.dtype}; "
            f"expected (..., {count}), packed as model.parameters()"
        )
    if not np.isfinite(values).all():
        raise InputError("parameters holds a number that is not finite; every number must be")
    return values.astype(float)


def _gains(gains) -> np.ndarray:
    values = np.atleast_1d(np.asarray(FREQUENCY if gains is None else gains, float))
    if values.shape == (1,):
        values = np.array([2.0 * values[0], values[0] ** 2])
    if values.shape != (2,) or not np.isfinite(values).all() or (values < 0.0).any():
        raise InputError(f"gains is {gains!r}; expected (2ω, ω²), or one frequency ω [rad/s], not negative")
    return values
