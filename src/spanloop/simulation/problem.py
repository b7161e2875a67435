"""What is simulated: all that a user said, checked, but for how and how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.loops.arguments import checked_active_loops, loop_inputs
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.simulation import initial_state as simulation_initial_state
from spanloop.simulation.actuators import actuation
from spanloop.simulation.drive import Callback, Drive, drive
from spanloop.simulation.events import Watch, watch
from spanloop.simulation.forces import along_loops, together
from spanloop.simulation.inputs import Inputs, constant_forces, inputs_of
from spanloop.simulation.minimal import initial_state as minimal_initial_state
from spanloop.simulation.state_layout import Layout
from spanloop.simulation.system import FREQUENCY, Closures, System
from spanloop.simulation.traced_kernels import kernel


@dataclass(frozen=True)
class Task:
    """Runs side by side; rows of arrays are runs in C order of the batch."""

    robot: Dynamics
    q: np.ndarray  # (n, nq)
    v: np.ndarray  # (n, nv)
    batch: tuple[int, ...]
    note: str  # what was done to the start
    drive: Drive
    inputs: Inputs
    watch: Watch
    system: System
    constants: np.ndarray  # (n or 1, width), in the system's order
    dtype: str
    threads: int

    @property
    def model(self) -> Model:
        return self.robot.model

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.q)

    def state(self, layout: Layout) -> np.ndarray:
        """Rows of what is carried from step to step, at the start."""
        state = np.zeros((len(self), layout.width))
        state[:, layout.places["q"]], state[:, layout.places["v"]] = self.q, self.v
        if "loops" in layout:
            state[:, layout.places["loops"]] = (0.0, 1.0)
        if "z" in layout:
            state[:, layout.places["z"]] = self.drive.start()
        if "g" in layout:
            state[:, layout.places["g"]] = self.watched(np.zeros((len(self), 1)), self.q, self.v)
        return state

    def watched(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Values (n, count) that are watched at rows t (n, 1), q, v."""
        sizes = {"t": 1, "q": self.model.nq, "v": self.model.nv}

        def compute(x: Mapping[str, Sequence[Any]]) -> tuple[list, tuple]:
            return self.watch.values(x), ()

        return kernel("conditions", sizes, len(self.watch), compute, self.watch.key())(t, q, v)

    def pushes(self, t, q, v, u, z) -> tuple[np.ndarray, np.ndarray]:
        """What acts at rows t (n, 1), q, v, u, z: torques (n, nv), forces (n, 6 each); NaN where a row is."""
        nv, count = self.model.nv, 6 * len(self.drive.bodies)
        out = np.full((len(q), nv + count), np.nan)
        well = np.isfinite(q).all(axis=1) & np.isfinite(u).all(axis=1)
        if self.system.plain:
            out[well] = u[well]
            return out, out[:, nv:]
        sizes = {"t": 1, "q": self.model.nq, "v": nv, "u": self.drive.inputs, "z": self.drive.memory}

        def compute(x: Mapping[str, Sequence[Any]]) -> tuple[list, tuple]:
            tau, forces = self.system.torques(x)
            return [*tau, *forces], ()

        found = kernel("torques", sizes, nv + count, compute, self.system.key())
        if well.any():
            out[well] = found(*(np.ascontiguousarray(x[well], float) for x in (t, q, v, u, z)))
        return out[:, :nv], out[:, nv:]

    def explain(self, t: float, q, v, z, u, run: int) -> str:
        """Why this one state has no accelerations; "" if it has."""
        x = {n: [float(y) for y in np.ravel(a)] for n, a in (("t", t), ("q", q), ("v", v), ("z", z), ("u", u))}
        row, at = self.constants[run if len(self.constants) > 1 else 0], 0
        for name in self.system.constants:
            size = self.system.sizes[name]
            x[name] = [float(y) for y in row[at : at + size]]
            at += size
        return self.system.explain(x)


def task(
    robot: Dynamics,
    q,
    v,
    *,
    tau=None,
    controller=None,
    inputs=None,
    forces=None,
    closures: str | Closures = "project",
    limits="end",
    events=None,
    parameters=None,
    method=None,
    dtype="float64",
    threads=1,
    step=None,
) -> Task:
    """The words of sl.simulate, each checked."""
    model = robot.model
    if limits not in ("end", "ignore"):
        raise InputError(f"limits is {limits!r}; expected 'end' or 'ignore'")
    loops = closures if isinstance(closures, Closures) else Closures(closures)
    if loops.stabilization == "minimal" and (model.loops or model.couplings):
        minimal_initial_state.refuse(robot, method)
    told = inputs_of(model, tau, controller, inputs)
    active = None if loops.active_loops is None else checked_active_loops(model, loops.active_loops, "simulate")
    pushing = constant_forces(model, forces) if isinstance(forces, Mapping) else forces
    if loops.loop_forces is not None:
        inside = along_loops(model, loops.loop_forces, active)
        pushing = inside if pushing is None else together(pushing, inside)
    law = None if isinstance(controller, Callback) else controller
    driven = drive(model, law, told.width if told.given else None, actuation(model, step), pushing)
    strict = robot.on_singular == "raise"
    system = System(model, driven, method, loops.stabilization, parameters is not None, strict)
    fixed = constants(robot, loops, parameters, active)
    shape = np.broadcast_shapes(told.batch, *(x.shape[:-1] for x in fixed.values()))
    rows_q, rows_v, batch = simulation_initial_state.states(robot, q, v, shape)
    rows = _joined([fixed[n] for n in system.constants], batch)
    note = ""
    if loops.stabilization != "none":
        held = robot._with_active_loops(active)
        simulation_initial_state.refuse_open(held, rows_q)
        if system.holds:
            shut = (
                minimal_initial_state.completed(system, rows_q, rows_v, rows)
                if system.minimal
                else held.project(rows_q, rows_v)
            )
            note = simulation_initial_state.note(held, rows_q, rows_v, shut)
            rows_q, rows_v = shut
    watched = watch(model, limits == "end", events)
    simulation_initial_state.tell_of_limits(watched, rows_q)
    return Task(
        robot,
        rows_q,
        rows_v,
        batch,
        note,
        driven,
        told,
        watched,
        system,
        rows,
        dtype,
        threads,
    )


def _joined(rows: list[np.ndarray], batch: tuple[int, ...]) -> np.ndarray:
    """Constants side by side: one row for all runs, or one for each."""
    if not rows:
        return np.zeros((1, 1))
    if all(x.ndim == 1 for x in rows):
        return np.concatenate(rows)[None]
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1]) for x in rows], axis=1)


# ---- What does not change during a run: live parameters, sets of active loops, gains of the feedback.


def constants(robot: Dynamics, loops: Closures, parameters, active: Iterable[str] | None) -> dict[str, np.ndarray]:
    """Arrays (..., n) by name."""
    model = robot.model
    out: dict[str, np.ndarray] = {}
    if parameters is not None:
        out["p"] = _parameters(model, parameters)
    switchable, driven = any(x.switchable for x in model.loops), any(x.driven for x in model.loops)
    names = [name for name, there in (("active", switchable), ("given", driven)) if there]
    out |= dict(zip(names, loop_inputs(model, active, loops.loop_accelerations), strict=True))
    if loops.stabilization == "feedback" and (model.loops or model.couplings):
        out["gains"] = _gains(loops.gains)
    elif loops.gains is not None:
        raise InputError(
            f"gains are for closures='feedback' of a model with loops; closures is {loops.stabilization!r}"
        )
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
