"""The inputs of every step (torques, a controller's inputs, a callback) and of every run (constants)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.errors import InputError, Reason, Refusal, StateError, listed, nearest
from spanloop.loops.arguments import loop_inputs
from spanloop.math.torch_duals import refuse_tangents
from spanloop.model import Model
from spanloop.model.parameters import Parameters, impossible
from spanloop.simulation.controllers import Callback, NamedFloats
from spanloop.simulation.system import FREQUENCY, Closures
from spanloop.simulation.traced_kernels import hint_of_inputs, noted, takes_inputs


class CallbackError(InputError):
    """A callback that did not return torques."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of every step: rows (..., steps or 1, width), or a callback."""

    batch: tuple[int, ...]
    values: np.ndarray | None  # (*batch, steps or 1, width)
    callback: Callback | None = None
    size: int = 0
    exist: bool = True  # False: a controller without inputs
    name: str = "inputs"  # of the argument
    model: Model | None = None  # of a callback's arrays
    one_axis: bool = False  # `inputs` has one axis: numbers of one step, or one number for each step?
    kept: dict = field(default_factory=dict, compare=False)  # the callback's torques, step by step

    @property
    def width(self) -> int:
        """Numbers of one step."""
        return self.size if self.values is None else self.values.shape[-1]

    def refuse_two_readings(self, steps: int, wanted: int | None) -> None:
        """Refuse inputs (n,) of a run of n steps where nobody says how many a step has; wanted: by the controller."""
        if self.one_axis and not wanted and self.width == steps > 1:
            raise InputError(
                f"{self.name} has shape ({steps},): one number for each of the {steps} steps, or {steps} numbers that "
                f"are the same at every step? Give it the shape ({steps}, 1) for steps, (1, {steps}) for the same"
            )

    def rows(self, batch: tuple[int, ...], steps: int, state_of: Callable) -> np.ndarray | Callable:
        """(n or 1, steps or 1, width) for runs of this batch; or a function of (t, rows of state, step's number)."""
        if self.callback is not None:
            return self._from_callback(batch, state_of)
        assert self.values is not None
        given = self.values.shape[-2]
        if given not in (1, steps):
            raise InputError(
                f"{self.name} has {given} rows, one for each step; the simulation has {steps} steps. Give a row for "
                f"each, one row for all, or for {given} runs an array ({given}, 1, {self.width})"
            )
        if given > 1 and _fits(self.values.shape[:-1], batch):
            for_steps = (1,) * (len(batch) - len(self.values.shape[:-2])) + self.values.shape
            raise InputError(
                f"{self.name} has shape {self.values.shape}: a row for each of the {steps} steps, or one for each run "
                f"of the batch {batch}? Give it the shape {for_steps} for steps, "
                f"{(*self.values.shape[:-1], 1, self.width)} for runs"
            )
        if math.prod(self.values.shape[:-2]) == 1:
            return self.values.reshape(1, given, self.width)
        return np.broadcast_to(self.values, (*batch, *self.values.shape[-2:])).reshape(-1, given, self.width)

    def at(self, batch: tuple[int, ...], numbers: np.ndarray) -> np.ndarray:
        """The inputs (n or 1, samples or 1, width) of the steps with these numbers (n, samples)."""
        if self.values is None:
            rows = self._joined()
            if not rows.size:
                return np.full((1, 1, self.size), np.nan)
        else:
            found = self.rows(batch, self.values.shape[-2], lambda s: s)
            assert isinstance(found, np.ndarray)
            rows = found
        if rows.shape[1] == 1:
            return rows
        numbers = np.minimum(numbers, rows.shape[1] - 1)
        return np.take_along_axis(np.broadcast_to(rows, (len(numbers), *rows.shape[1:])), numbers[..., None], axis=1)

    def called(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The callback's torques, checked."""
        assert self.callback is not None
        with noted("the controller's callback", float(t)):
            own = NamedFloats.copied(q, self.model, False), NamedFloats.copied(v, self.model, True)
            answer = self.callback.function(t, *own)
            found = np.asarray(self._of_joints(answer, v.shape) if isinstance(answer, Mapping) else answer)
        if found.dtype.kind not in "fiub" or found.shape not in ((self.size,), v.shape):
            what = f"shape {found.shape}" if found.dtype.kind in "fiub" else f"entries of type {found.dtype}"
            raise CallbackError(f"the callback returned an array with {what} at t = {t:g} s; expected shape {v.shape}")
        if not np.isfinite(found).all():
            k = int(np.flatnonzero(~np.isfinite(found))[0]) % self.size
            raise CallbackError(
                f"the callback returned {found.ravel()[k]} as torque {k} at t = {t:g} s; must be finite"
            )
        return found.astype(float)

    def _of_joints(self, torques: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
        """Torques (..., nv) from those of joints by name, zero at the others."""
        assert self.model is not None
        tau = np.zeros(shape)
        for name, value in torques.items():
            s = self.model.v_slice(self.model.joint(name).name)
            numbers = np.asarray(value)
            if s.stop - s.start == 1 and numbers.ndim < len(shape):
                numbers = numbers[..., None]
            try:
                tau[..., s] = numbers
            except (TypeError, ValueError):
                own = (*shape[:-1], s.stop - s.start)
                words = f"the callback returned {value!r} for joint {name!r}; expected shape {own}"
                raise CallbackError(words) from None
        return tau

    def kept_rows(self, runs: int, count: int) -> np.ndarray:
        """The callback's torques (runs, count, width) of the first steps; (0, 0, 0) without a callback."""
        if self.callback is None:
            return np.empty((0, 0, 0))
        return self._joined(runs)[:, :count]

    def keep_rows(self, rows: np.ndarray) -> None:
        """Take over the torques (runs, count, width) of steps that an earlier process took."""
        self.kept["rows"] = [rows] if rows.shape[1] else []

    def _joined(self, runs: int = 1) -> np.ndarray:
        """All torques that are kept, which are one array from here on."""
        kept = self.kept.setdefault("rows", [])
        kept[:] = [np.concatenate(kept, axis=1)] if kept else []
        return kept[0] if kept else np.empty((runs, 0, self.size))

    def _from_callback(self, batch: tuple[int, ...], state_of: Callable) -> Callable:
        self.kept.clear()

        def controls(t: float, state: np.ndarray, number: int) -> np.ndarray:
            found = self.called(t, *state_of(state))
            rows = np.broadcast_to(found, (*batch, self.size)).reshape(-1, 1, self.size).astype(float)
            self.kept.setdefault("rows", []).append(rows)
            return rows

        return controls


def inputs_of(model: Model, tau: Any, controller: Any, inputs: Any, forces: Any = None) -> Inputs:
    """The inputs of every step, from the arguments of sl.simulate.

    forces: a function of them may read the inputs, (t, q, v, u). Without a controller `inputs` are its own; else it
    reads those of the controller, or the torques.
    """
    forces_read = callable(forces) and takes_inputs(forces)
    given = [n for n, x in (("tau", tau), ("controller", controller)) if x is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are both given; choose one")
    if inputs is not None and controller is None and not forces_read:
        hint = hint_of_inputs(forces) if callable(forces) else ""
        raise InputError(f"inputs are for a controller, or for forces (t, q, v, u); for torques use tau={hint}")
    if inputs is not None and tau is not None:
        raise InputError(
            "tau and inputs are both given; with tau, u of the forces are the torques. Give torques by a controller "
            "(t, q, v, u) that reads them from inputs"
        )
    if isinstance(controller, Callback):
        if inputs is not None:
            raise InputError("inputs are for a traced controller; a callback has none")
        return Inputs((), None, controller, model.nv, model=model)
    own = controller is not None or inputs is not None
    name, value = ("inputs", inputs) if own else ("tau", np.zeros(model.nv) if tau is None else tau)
    if value is None:
        return Inputs((), np.zeros((1, 0)), exist=False)
    if isinstance(value, Mapping):
        value = torques_by_name(model, value)
    array = as_numpy("simulate", name, value, "(..., n)")
    if array.dtype.kind not in "fiub" or not array.ndim:
        raise InputError(f"{name} holds {array.dtype} of shape {array.shape}; expected real numbers (..., n)")
    if not own and array.shape[-1] != model.nv:
        raise InputError(f"tau has shape {array.shape}; expected (..., {model.nv}){_zeros_too(model, array.shape[-1])}")
    array = array.astype(float)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        words = f"{name}{list(where)} is {array[where]}; every number must be finite"
        raise StateError.of("simulate", Refusal(Reason.NOT_FINITE, words))
    flat = array.ndim == 1
    return Inputs(array.shape[:-2], array[None] if flat else array, name=name, one_axis=own and flat)


def _zeros_too(model: Model, count: int) -> str:
    """A hint for who gives torques of the actuated DoF alone."""
    passive = [j.name for j in model.joints if j.kind.nv and not j.actuated]
    if not passive or count != sum(model.joint(name).kind.nv for name in model.actuated):
        return ""
    names = listed(map(repr, passive), 3)
    return f": with zeros for joints without a motor ({names}); or give torques by name, {{joint: torque}}"


def _fits(shape: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    """Whether an array of this shape has one entry for each run of the batch, or for some axes of it."""
    try:
        return bool(batch) and np.broadcast_shapes(shape, batch) == batch
    except ValueError:
        return False


def torques_by_name(model: Model, torques: Mapping[str, Any]) -> np.ndarray:
    """Torques (nv,), or (..., steps or 1, nv), from those of joints by name, zero at the others.

    A joint of one DoF has a number, or (..., steps or 1); one of n DoF has (n,), or (..., steps or 1, n).
    """
    rows: dict[str, np.ndarray] = {}
    for name, value in torques.items():
        n = model.joint(name).kind.nv
        found = as_numpy("simulate", f"tau[{name!r}]", value, "(steps,)" if n == 1 else f"(..., {n})")
        if found.dtype.kind not in "fiub" or (n != 1 and found.shape[-1:] != (n,)):
            what = f"shape {found.shape}" if found.dtype.kind in "fiub" else f"entries of type {found.dtype}"
            one, axis = ("one number", "") if n == 1 else (f"{n} numbers", f", {n}")
            raise InputError(
                f"tau[{name!r}] has {what}; expected {one} for all steps, an array (steps{axis or ','}) for each step, "
                f"or (runs, 1{axis}) for each run"
            )
        rows[name] = found[..., None] if n == 1 else found
    try:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in rows.values()))
    except ValueError:
        shapes = ", ".join(f"{name!r} {x.shape[:-1]}" for name, x in rows.items())
        raise InputError(
            f"tau: the joints have torques for different steps or runs: {shapes}. Give each one number, (steps,), or "
            "(runs, 1)"
        ) from None
    tau = np.zeros((*shape, model.nv))
    for name, value in rows.items():
        tau[..., model.v_slice(name)] = value
    return tau


def constant_forces(model: Model, forces: Mapping[str, Any]) -> Callable[..., dict[Any, Any]]:
    """{"body": six numbers} as a function that returns that."""
    known = [b.name for b in model.bodies]
    fixed: dict[Any, Any] = {}
    for body, six in forces.items():
        if body not in known:
            raise InputError(f"forces names {body!r}, which is not a body; {nearest(body, known)}")
        refuse_tangents("simulate", f"the force on {body!r}", six)
        if np.shape(six) != (6,):
            raise InputError(
                f"the force on {body!r} has shape {np.shape(six)}; expected six numbers, [torque; force]. "
                "For forces that change give a function (t, q, v) -> {'body': six numbers}"
            )
        fixed[body] = tuple(float(x) for x in six)
        if not np.isfinite(fixed[body]).all():
            k = int(np.argmin(np.isfinite(fixed[body])))
            words = f"forces[{body!r}][{k}] is {fixed[body][k]}; every number must be finite"
            raise StateError.of("simulate", Refusal(Reason.NOT_FINITE, words))
    return lambda t, q, v: fixed


def constants(
    model: Model, loops: Closures, parameters: Any, active: Iterable[str] | None, where: str = "simulate"
) -> dict[str, np.ndarray]:
    """Arrays (..., n) by name that are constant during a run: parameters, active loops, accelerations, gains.

    where: begins messages on parameters.
    """
    out: dict[str, np.ndarray] = {}
    if parameters is not None:
        out["p"] = _parameters(model, parameters, where)
    switchable, driven = bool(model.switches), any(x.driven for x in model.loops)
    names = [name for name, there in (("active", switchable), ("given", driven)) if there]
    if names or active is not None or loops.loop_accelerations:
        rows = loop_inputs(model, active, loops.loop_accelerations, function="simulate")
        out |= dict(zip(names, rows, strict=True))
        if not np.isfinite(out.get("given", 0.0)).all():
            raise InputError("simulate: loop_accelerations holds a number that is not finite; every number must be")
    if loops.stabilization == "feedback" and (model.loops or model.couplings):
        out["gains"] = _gains(loops.gains)
    elif loops.gains is not None:
        found = f"closures is {loops.stabilization!r}"
        if loops.stabilization == "feedback":
            found = f"model {model.name!r} has none. Leave gains out"
        raise InputError(f"gains are for closures='feedback' of a model with loops; {found}")
    return out


def _parameters(model: Model, parameters: Any, where: str) -> np.ndarray:
    count = len(Parameters.of(model))
    given = parameters.values if isinstance(parameters, Parameters) else parameters
    values = as_numpy(where, "parameters", given, f"(..., {count})")
    if values.dtype.kind not in "fiub" or values.shape[-1:] != (count,):
        raise InputError(
            f"parameters has shape {values.shape} of {values.dtype}; "
            f"expected (..., {count}), packed as model.parameters()"
        )
    if not np.isfinite(values).all():
        raise InputError(f"{where}: parameters holds a number that is not finite; every number must be")
    values = values.astype(float)
    found = impossible(model, values.reshape(-1, count))
    if found:
        run = f" of run {found[0]}" if values.ndim > 1 else ""
        raise InputError(f"{where}: parameters{run}: {found[1]}")
    return values


def _gains(gains: Any) -> np.ndarray:
    values = np.atleast_1d(np.asarray(FREQUENCY if gains is None else gains, float))
    if values.shape == (1,):
        values = np.array([2.0 * values[0], values[0] ** 2])
    if values.shape != (2,) or not np.isfinite(values).all() or (values < 0.0).any():
        raise InputError(f"gains is {gains!r}; expected (2ω, ω²), or one frequency ω [rad/s], not negative")
    return values
