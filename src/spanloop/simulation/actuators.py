"""Actuators of a model: between the torques that are commanded and those at the joints."""

from __future__ import annotations

from spanloop.model import Model
from spanloop.simulation.driving import Controller


def actuation(model: Model) -> Controller | None:
    """The model's actuators as one element; None if it has none."""
    return None
