"""Arguments that are a Model or a Dynamics: what users mean by either, and a sentence for anything else."""

from __future__ import annotations

from typing import Any

from spanloop.dynamics.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.kernels import checked_model
from spanloop.model import Model


def model_of(value: Any, owner: str) -> Model:
    """The Model that is given, or that of a Dynamics; owner: what was called."""
    return value.model if isinstance(value, Dynamics) else checked_model(value, owner)


def robot_of(value: Any, owner: str) -> Dynamics:
    """The Dynamics that is given; owner: what was called."""
    if not isinstance(value, Dynamics):
        hint = "sl.Dynamics(model)" if isinstance(value, Model) else "sl.Dynamics(model) makes one"
        raise InputError(f"{owner}: robot is a {type(value).__name__}; expected a Dynamics: {hint}")
    return value
