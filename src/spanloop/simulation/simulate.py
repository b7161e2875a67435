"""sl.simulate: a mechanism, a state and what acts on it become a motion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import spanloop
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.results import Segment, Trajectory
from spanloop.simulation import adaptive, starting
from spanloop.simulation.accuracy import refined
from spanloop.simulation.checkpoint import Checkpoint, key_of
from spanloop.simulation.driving import Drive, drive
from spanloop.simulation.ending import Ending
from spanloop.simulation.evaluating import kernel
from spanloop.simulation.grid import Grid, grid
from spanloop.simulation.inputs import Inputs, constant_forces, inputs_of
from spanloop.simulation.layout import Layout
from spanloop.simulation.methods import METHODS
from spanloop.simulation.progress import Bar
from spanloop.simulation.rolling import schedule, schedule_key
from spanloop.simulation.running import Job, Progress, run
from spanloop.simulation.system import System
from spanloop.simulation.watching import Watch, watch


def simulate(
    model: Model | Dynamics,
    q=None,
    v=None,
    *,
    duration: float,
    step: float | None = None,
    method: str = "rk4",
    tau=None,
    controller: Callable | Any | None = None,
    inputs=None,
    callback: Callable | None = None,
    forces: Callable | Mapping | None = None,
    closures: str = "project",
    gains: tuple[float, float] | float | None = None,
    limits: str = "stop",
    stop: Callable | Mapping[str, Callable] | None = None,
    sample: float | None = None,
    accuracy: float | None = None,
    parameters=None,
    active: Iterable[str] | None = None,
    given: Mapping | None = None,
    dynamics: str | None = None,
    dtype: str = "float64",
    threads: int = 1,
    on_singular: str = "raise",
    checkpoint=None,
    progress: bool | None = None,
) -> Trajectory:
    """The motion of a model from q (..., nq), v (..., nv) on, over `duration` [s]; batch axes are runs side by side.

    step [s]: 1 ms if not given. method: "rk4", "euler" (semi-implicit), "midpoint" (implicit), or an adaptive one of
    SciPy: "DOP853", "RK45", "Radau", "BDF", "LSODA". accuracy: the step is halved until halving it changes no
    coordinate by more (rad or m); for adaptive methods it is the tolerance.
    tau: torques (..., nv), or (..., steps, nv) for each step. controller: a function (t, q, v) -> torques in plain
    arithmetic, compiled into the motion; (t, q, v, u) with inputs (..., n) or (..., steps, n). callback: a function
    (t, q, v) -> torques that is called in Python at every step, for what cannot be traced. forces: {"body": six
    numbers}, or a function (t, q, v) that returns that. parameters (..., n): live ones, as model.parameters().
    closures: "project" brings every step back to the closed loops; "feedback" pulls errors back, with gains (2ω, ω²) or
    one frequency ω [rad/s]; "none". active, given: as in forward_dynamics. dynamics: method of forward dynamics.
    limits: "stop" ends a run at a joint's limit, "ignore" does not look. stop: {"name": function (t, q, v)}, which ends a
    run when it is no longer positive. on_singular: "raise" ends it at a singular position.
    sample [s]: time between samples that are kept. threads: for batches, 0 for all cores. checkpoint: a file to go on from
    if the process is killed. progress: a bar; by default on a terminal and in notebooks.
    """
    robot = model if isinstance(model, Dynamics) else Dynamics(model, on_singular=on_singular)
    job = _Task.of(
        robot, q, v, tau, controller, inputs, callback, forces, closures, gains, limits, stop, parameters, active, given
    )
    job.dynamics, job.strict, job.dtype, job.threads = dynamics, on_singular == "raise", dtype, threads
    if method in adaptive.METHODS:
        return adaptive.integrate(job, duration, step, sample, method, accuracy, progress)
    if method not in METHODS:
        raise InputError(f"method is {method!r}; {nearest(method, (*METHODS, *adaptive.METHODS))}")
    width = len(job.q) * (robot.model.nq + robot.model.nv)
    times = grid(duration, step, sample, width)
    if accuracy is not None:
        return refined(lambda g: job.run(g, method, None, progress), times, method, accuracy)
    return job.run(times, method, checkpoint, progress)


@dataclass
class _Task:
    """What is simulated, all but when and how."""

    robot: Dynamics
    q: np.ndarray  # (n, nq)
    v: np.ndarray  # (n, nv)
    batch: tuple[int, ...]
    note: str
    drive: Drive
    inputs: Inputs
    watch: Watch
    closures: str
    constants: dict[str, np.ndarray]
    dynamics: str | None = None
    strict: bool = True
    dtype: str = "float64"
    threads: int = 1

    @staticmethod
    def of(
        robot, q, v, tau, controller, inputs, callback, forces, closures, gains, limits, stop, parameters, active, given
    ) -> _Task:
        model = robot.model
        if limits not in ("stop", "ignore"):
            raise InputError(f"limits is {limits!r}; expected 'stop' or 'ignore'")
        if isinstance(forces, Mapping):
            forces = constant_forces(model, forces)
        told = inputs_of(model, tau, controller, inputs, callback)
        driven = drive(model, controller, told.width, actuation(model), forces)
        constants = _constants(robot, closures, gains, parameters, active, given or {})
        shape = np.broadcast_shapes(told.batch, *(x.shape[:-1] for x in constants.values()))
        rows_q, rows_v, batch = starting.states(robot, q, v, shape)
        note = ""
        if closures != "none":
            rows_q, rows_v, note = starting.closed(robot, rows_q, rows_v)
        watched = watch(model, limits == "stop", stop)
        return _Task(robot, rows_q, rows_v, batch, note, driven, told, watched, closures, constants)

    @property
    def model(self) -> Model:
        return self.robot.model

    def system(self) -> System:
        live = "parameters" in self.constants
        return System(self.model, self.drive, self.dynamics, self.closures, live, self.strict)

    def constant_rows(self, system: System) -> np.ndarray:
        """Constants (n or 1, width) in the system's order."""
        names = {"p": "parameters"}
        rows = [self.constants[names.get(n, n)] for n in system.constants]
        if not rows:
            return np.zeros((1, 1))
        if all(x.ndim == 1 for x in rows):
            return np.concatenate(rows)[None]
        spread = [np.broadcast_to(x, (*self.batch, x.shape[-1])).reshape(len(self.q), -1) for x in rows]
        return np.concatenate(spread, axis=1)

    def run(self, times: Grid, method: str, checkpoint, progress: bool | None) -> Trajectory:
        """With steps of one length."""
        system = self.system()
        layout = Layout.of(system, self.watch, self.dtype)
        key = schedule_key(system, self.watch, method, self.dtype)
        rollout = Rollout(key, lambda: schedule(system, self.watch, method, self.dtype), self.dtype, self.threads)
        controls = self.inputs.rows(self.batch, times.steps, self._told(layout))
        constants = np.ascontiguousarray(self.constant_rows(system), rollout.dtype)
        job = Job(rollout, times, constants, controls, self.drive.inputs)
        state = self._state(layout)
        recorded = self.model.nq + self.model.nv + self.drive.memory
        p = job.begin(state, recorded)
        bar = Bar(times.steps, times.h, len(state), progress)
        kept = None
        if checkpoint is not None:
            told = controls if not callable(controls) else "callback"
            kept = Checkpoint(checkpoint, key_of(key, times, state, constants, told), times.every)
            kept.resume(p)
        run(job, p, lambda p: bar.tell(p.done), kept.keep if kept else lambda p: None)
        bar.end()
        if kept is not None:
            kept.write(p) if p.interrupted else kept.remove()
        return self._trajectory(job, p, system, layout, method)

    def _told(self, layout: Layout):
        """What a callback is told of the rows of state: q and v with the batch's axes."""

        def told(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return tuple(state[:, layout.places[n]].reshape(*self.batch, -1) for n in ("q", "v"))  # type: ignore[return-value]

        return told

    def _state(self, layout: Layout) -> np.ndarray:
        """The rows at the start."""
        state = np.zeros((len(self.q), layout.width))
        state[:, layout.places["q"]], state[:, layout.places["v"]] = self.q, self.v
        if "loops" in layout:
            state[:, layout.places["loops"]] = (0.0, 1.0)
        if "z" in layout:
            state[:, layout.places["z"]] = self.drive.start()
        if "g" in layout:
            sizes = {"t": 1, "q": self.model.nq, "v": self.model.nv}
            values = kernel("conditions", sizes, len(self.watch), self.watch.values, self.watch.key())
            state[:, layout.places["g"]] = values(np.zeros((len(self.q), 1)), self.q, self.v)
        return state

    def _trajectory(self, job: Job, p: Progress, system: System, layout: Layout, method: str) -> Trajectory:
        model, g, n = self.model, job.grid, len(p.state)
        ending = Ending(job, system, self.watch, layout, self._explain(system, layout))
        ends = [ending.of(p, k) for k in range(n)]
        times = job.start + g.h * g.every * np.arange(g.samples)
        last = int(p.counts.max(initial=0)) // g.every + 1 if p.interrupted or p.why.all() else g.samples
        times, record = times[:last], p.record[:, :last]
        for k in np.flatnonzero(p.counts < g.steps):
            record[k, p.counts[k] // g.every + 1 :] = np.nan
        nq, nv = model.nq, model.nv
        q, v, z = record[..., :nq], record[..., nq : nq + nv], record[..., nq + nv :]
        numbers = np.minimum(np.arange(last) * g.every, g.steps - 1)
        tau, forces = self._pushes(system, times, q, v, z, numbers)
        segment = Segment(times, *(x.reshape(*self.batch, last, -1) for x in (q, v, tau)), self._shaped(z, last))
        residual = None
        settings: dict[str, Any] = {
            "method": method,
            "step": g.h,
            "closures": self.closures if system.closed else "no loops",
            "dynamics": system.chosen_method,
            "dtype": self.dtype,
            "spanloop": spanloop.__version__,
        }
        if "loops" in layout:
            residual = p.state[:, layout.places["loops"].start].astype(float).reshape(self.batch)
            settings["margin"] = float(p.state[:, layout.places["loops"].start + 1].min())
        if self.note:
            settings["note"] = self.note
        return Trajectory(
            model,
            (segment,),
            tuple(e.outcome for e in ends),
            settings,
            forces=self._forces(forces, last),
            ends=self._ends(ends, layout, system),
            residual=residual,
        )

    def _shaped(self, z: np.ndarray, last: int) -> np.ndarray | None:
        return z.reshape(*self.batch, last, -1) if z.shape[-1] else None

    def _pushes(self, system: System, times, q, v, z, numbers) -> tuple[np.ndarray, np.ndarray]:
        """Torques (n, samples, nv) and forces (n, samples, 6 each) at the samples."""
        u = self.inputs.at(self.batch, numbers)
        bodies = 6 * len(self.drive.bodies)
        if system.plain:
            return np.broadcast_to(u, (*q.shape[:2], self.model.nv)).copy(), np.empty((*q.shape[:2], 0))
        sizes = {"t": 1, "q": self.model.nq, "v": self.model.nv, "u": self.drive.inputs, "z": self.drive.memory}

        def compute(x):
            tau, forces = system.torques(x)
            return [*tau, *forces]

        push = kernel("torques", sizes, self.model.nv + bodies, compute, system.key())
        t = np.broadcast_to(times[:, None], (*q.shape[:2], 1))
        well = np.isfinite(q).all(axis=-1)
        found = np.full((*q.shape[:2], self.model.nv + bodies), np.nan)
        u = np.broadcast_to(u, (*q.shape[:2], self.drive.inputs))
        rows = [np.ascontiguousarray(x[well], float) for x in (t, q, v, u, z)]
        found[well] = push(*rows)
        return found[..., : self.model.nv], found[..., self.model.nv :]

    def _forces(self, forces: np.ndarray, last: int) -> dict[str, np.ndarray] | None:
        if not self.drive.bodies:
            return None
        shaped = forces.reshape(*self.batch, last, -1)
        return {body: shaped[..., 6 * k : 6 * k + 6] for k, body in enumerate(self.drive.bodies)}

    def _ends(self, ends, layout: Layout, system: System) -> Segment | None:
        """The located ends, NaN where a run has none."""
        if all(e.state is None for e in ends):
            return None
        rows = np.array([np.full(layout.width, np.nan) if e.state is None else e.state for e in ends], float)
        times = np.array([np.nan if e.state is None else e.outcome.time for e in ends])
        q, v = rows[:, layout.places["q"]], rows[:, layout.places["v"]]
        z = rows[:, layout.places["z"]] if "z" in layout else np.empty((len(rows), 0))
        numbers = np.array([int(np.nan_to_num(t)) for t in times])
        tau, _ = self._end_pushes(system, times, q, v, z, numbers)
        shape = lambda x: x.reshape(*self.batch, 1, -1)  # noqa: E731
        return Segment(times.reshape(self.batch), shape(q), shape(v), shape(tau), shape(z) if z.shape[-1] else None)

    def _end_pushes(self, system: System, times, q, v, z, numbers):
        out = np.full((len(q), 1, self.model.nv), np.nan)
        for k in np.flatnonzero(np.isfinite(times)):
            one = _Task(**{**self.__dict__})
            one.batch = ()
            u = self.inputs.at(self.batch, numbers[k : k + 1])
            one.inputs = Inputs((), u[min(k, len(u) - 1)])
            found, _ = one._pushes(
                system, times[k : k + 1], q[None, k : k + 1], v[None, k : k + 1], z[None, k : k + 1], [0]
            )
            out[k] = found[0]
        return out, None

    def _explain(self, system: System, layout: Layout) -> Callable:
        """Why forward dynamics has no answer at a row of state."""

        def explain(t: float, state: np.ndarray, controls: np.ndarray) -> str:
            x = {n: [float(y) for y in state[s]] for n, s in layout.places.items()}
            x |= {"t": [t], "u": [float(y) for y in controls.ravel()], "z": x.get("z", [])}
            row = self.constant_rows(system)[0]
            at = 0
            for name in system.constants:
                size = system.sizes[name]
                x[name] = [float(y) for y in row[at : at + size]]
                at += size
            return system.explain(x)

        return explain


def actuation(model: Model):
    """The model's actuators, as one element between commanded torques and the joints."""
    return None


def _constants(robot: Dynamics, closures, gains, parameters, active, given) -> dict[str, np.ndarray]:
    """What does not change during a run: live parameters, sets of loops, gains."""
    out: dict[str, np.ndarray] = {}
    model = robot.model
    if parameters is not None:
        known = Parameters.of(model)
        out["parameters"] = np.asarray(getattr(parameters, "values", parameters), float)
        if out["parameters"].shape[-1:] != (len(known),):
            raise InputError(
                f"simulate: parameters has shape {out['parameters'].shape}; expected (..., {len(known)}) as model.parameters()"
            )
    extras = robot._extras(active, given)
    names = [
        n
        for n, some in (
            ("active", any(x.switchable for x in model.loops)),
            ("given", any(x.driven for x in model.loops)),
        )
        if some
    ]
    out |= dict(zip(names, extras, strict=True))
    if closures == "feedback" and (model.loops or model.couplings):
        out["gains"] = _gains(gains)
    elif gains is not None:
        raise InputError(f"gains are for closures='feedback'; closures is {closures!r}")
    return out


def _gains(gains) -> np.ndarray:
    if gains is None:
        gains = 50.0
    values = np.atleast_1d(np.asarray(gains, float))
    if values.shape == (1,):
        values = np.array([2.0 * values[0], values[0] ** 2])
    if values.shape != (2,) or not np.isfinite(values).all() or (values < 0.0).any():
        raise InputError(f"gains is {gains!r}; expected (2ω, ω²), or one frequency ω [rad/s], not negative")
    return values
