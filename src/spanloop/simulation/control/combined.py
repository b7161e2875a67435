"""Several controllers as one: their torques add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.simulation.drive import Callback, Controller, controller_of


def callback(function: Callable) -> Callback:
    """A controller (t, q, v) -> torques that Python calls once a step, for what cannot be traced.

    Args:
        function: takes the time t [s], q (..., nq) and v (..., nv) with the batch axes of the simulation, and returns
            torques (nv) or (..., nv) [N m or N], which act during the step.

    Returns:
        What sl.simulate takes as controller.

    Raises:
        InputError: `function` cannot be called.

    Example:
        sl.simulate(model, duration=1.0, controller=sl.control.callback(lambda t, q, v: -3.0 * v))
    """
    return Callback(function)


def together(model: Model, *controllers) -> Controller:
    """The sum of controllers or plain functions (t, q, v); those with inputs read theirs one after the other."""
    parts = [controller_of(c) for c in controllers]
    if any(c.inputs is None for c in parts):
        raise InputError(
            "together: a function (t, q, v, u) does not say how many inputs it takes; make it a Controller"
        )
    return _Sum(model, parts)


class _Sum(Controller):
    def __init__(self, model: Model, parts: list[Controller]):
        self.model, self.parts = model, parts
        self.inputs = sum(c.inputs or 0 for c in parts)
        self.memory = sum(c.memory for c in parts)

    def start(self, model):
        return [x for c in self.parts for x in c.start(model)]

    def torques(self, t, q, v, u, z):
        tau = [0.0] * self.model.nv
        for c, mine, own in self._shares(u, z):
            tau = [a + b for a, b in zip(tau, self._all(c.torques(t, q, v, mine, own)), strict=True)]
        return tau

    def update(self, t, h, q, v, u, z):
        return [x for c, mine, own in self._shares(u, z) for x in c.update(t, h, q, v, mine, own)]

    def _shares(self, u, z):
        at = kept = 0
        for c in self.parts:
            yield c, u[at : at + (c.inputs or 0)], z[kept : kept + c.memory]
            at, kept = at + (c.inputs or 0), kept + c.memory

    def _all(self, found) -> list:
        """Torques (nv), also of joints by name."""
        if not isinstance(found, Mapping):
            return list(found)
        tau = [0.0] * self.model.nv
        for name, x in found.items():
            tau[self.model.v_slice(name)] = list(x) if hasattr(x, "__len__") else [x]
        return tau
