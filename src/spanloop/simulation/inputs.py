"""What is given for every step: torques or a controller's inputs, as arrays or from a callback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import Model


@dataclass(frozen=True)
class Inputs:
    """Rows (..., steps or 1, width), or a callback."""

    batch: tuple[int, ...]
    values: np.ndarray | None  # (*batch, steps or 1, width)
    callback: Callable | None = None
    size: int = 0

    @property
    def width(self) -> int:
        return self.size if self.values is None else self.values.shape[-1]

    def rows(self, batch: tuple[int, ...], steps: int, told: Callable) -> np.ndarray | Callable:
        """(n or 1, steps or 1, width) for runs of this batch, or a function (t, rows of state) -> (n or 1, 1, width)."""
        if self.callback is not None:
            return self._from_callback(batch, told)
        assert self.values is not None
        given = self.values.shape[-2]
        if given not in (1, steps):
            raise InputError(
                f"the inputs are for {given} steps; the simulation has {steps}. Give one row for each step, or one for all"
            )
        if self.values.shape[:-2] == ():
            return self.values[None]
        return np.broadcast_to(self.values, (*batch, *self.values.shape[-2:])).reshape(-1, given, self.width)

    def at(self, batch: tuple[int, ...], numbers) -> np.ndarray:
        """The inputs (n or 1, samples or 1, width) of these steps; NaN from a callback, which is not asked again."""
        if self.values is None:
            return np.full((1, 1, self.size), np.nan)
        rows = self.rows(batch, self.values.shape[-2], lambda s: s)
        assert isinstance(rows, np.ndarray)
        return rows if rows.shape[1] == 1 else rows[:, numbers]

    def _from_callback(self, batch: tuple[int, ...], told: Callable) -> Callable:
        callback = self.callback
        assert callback is not None

        def controls(t: float, state: np.ndarray) -> np.ndarray:
            q, v = told(state)
            found = np.asarray(callback(t, q.copy(), v.copy()))
            if found.dtype.kind not in "fiub" or found.shape[-1:] != (self.size,):
                raise InputError(
                    f"the callback returned {_shape(found)} at t = {t:g} s; expected torques of shape {(*batch, self.size)}"
                )
            if not np.isfinite(found).all():
                k = int(np.argmax(~np.isfinite(found).reshape(-1, self.size).all(axis=0)))
                raise InputError(
                    f"the callback returned {found.reshape(-1, self.size)[0, k]} as torque {k} at t = {t:g} s"
                )
            return np.broadcast_to(found, (*batch, self.size)).reshape(-1, 1, self.size)

        return controls


def _shape(found: np.ndarray) -> str:
    return f"an array of shape {found.shape}" if found.dtype.kind in "fiub" else f"entries of type {found.dtype}"


def inputs_of(model: Model, tau, controller, inputs, callback) -> Inputs:
    """What the user gave, checked."""
    given = [n for n, x in (("tau", tau), ("controller", controller), ("callback", callback)) if x is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are both given; choose one")
    if inputs is not None and controller is None:
        raise InputError("inputs are for a controller; for torques use tau=")
    if callback is not None:
        if not callable(callback):
            raise InputError(f"callback is a {type(callback).__name__}; expected a function (t, q, v) -> torques")
        return Inputs((), None, callback, model.nv)
    name, value = ("inputs", inputs) if controller is not None else ("tau", np.zeros(model.nv) if tau is None else tau)
    if value is None:
        return Inputs((), np.zeros((1, 0)))
    if isinstance(value, Mapping):
        value = _by_name(model, value)
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or not array.ndim:
        raise InputError(f"{name} holds {array.dtype} of shape {array.shape}; expected real numbers (..., n)")
    if controller is None and array.shape[-1] != model.nv:
        raise InputError(f"tau has shape {array.shape}; expected (..., {model.nv})")
    array = array.astype(float)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{name}{list(where)} is {array[where]}; every number must be finite")
    return Inputs(array.shape[:-2], array if array.ndim > 1 else array[None])


def _by_name(model: Model, torques: Mapping) -> np.ndarray:
    tau = np.zeros(model.nv)
    for name, value in torques.items():
        tau[model.v_slice(model.joint(name).name)] = value
    return tau


def constant_forces(model: Model, forces: Mapping) -> Callable:
    """{"body": six numbers} as a function that returns that."""
    known = [b.name for b in model.bodies]
    fixed: dict[str, tuple[float, ...]] = {}
    for body, six in forces.items():
        if body not in known:
            raise InputError(f"forces names {body!r}, which is not a body; {nearest(body, known)}")
        if np.shape(six) != (6,):
            raise InputError(
                f"the force on {body!r} has shape {np.shape(six)}; expected six numbers, [torque; force]. "
                "For forces that change give a function (t, q, v) -> {'body': six numbers}"
            )
        fixed[body] = tuple(float(x) for x in six)
    return lambda t, q, v: fixed
