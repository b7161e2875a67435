"""sl.sensitivities: how every sample of a run changes with a few numbers, by forward derivatives of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.lower import Schedule
from spanloop.compiler.lower.tangent import tangent
from spanloop.compiler.render.rollout import HALTED
from spanloop.compiler.runtime.gpu.rollout import AnyRollout
from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.compiler.runtime.rollout import Steps
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, Reason, Refusal, nearest
from spanloop.loops.arguments import dof_names
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.simulation.controllers import Controller
from spanloop.simulation.gradients.differentiated_run import DifferentiatedRun
from spanloop.simulation.gradients.event_tangents import Arrays, sampled_rates
from spanloop.simulation.gradients.start_map import StartMap, joint_rates
from spanloop.simulation.gradients.wanted import MOMENTS, PARAMETERS, Wanted
from spanloop.simulation.integrators.integrator import AUTO, Integrator, schedule
from spanloop.simulation.system import Closures

_MOST = 50_000_000  # numbers of all samples


@dataclass(frozen=True)
class Sensitivities:
    """Samples of runs (...), and how they change with k numbers.

    Attributes:
        times: of the samples (samples,) [s].
        q, v: the samples (..., samples, nq) and (..., samples, nv), as those of sl.simulate.
        dq: derivatives of q at joint rates, (..., samples, nv, k).
        dv: derivatives of v, (..., samples, nv, k).
        names: of the k columns: "q.elbow", "v.elbow", "tau.elbow" or "inputs.0", names of parameters, "at.0"; of inputs
            that each step has for itself "tau.elbow@3", the third after the first step.
        widths: how many columns belong to each of what derivatives were taken by, {"q": nv, ...}.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    names: tuple[str, ...]
    widths: Mapping[str, int]

    def by(self, *arguments: str) -> np.ndarray:
        """Derivatives of the last state [q; v], at joint rates, by arguments: (..., 2 nv, columns).

        Of one step, A = s.by("q", "v") and B = s.by("tau") are the matrices of the linear system x⁺ = A x + B u.
        """
        columns: list[int] = []
        for name in arguments:
            if name in self.widths:
                first = sum(n for other, n in _before(self.widths, name))
                columns += range(first, first + self.widths[name])
            elif name in self.names:
                columns.append(self.names.index(name))
            else:
                raise InputError(f"by: {name!r} is not among wrt; {nearest(name, (*self.widths, *self.names))}")
        found: np.ndarray = np.concatenate([self.dq[..., -1, :, :], self.dv[..., -1, :, :]], axis=-2)[..., columns]
        return found


def _before(widths: Mapping[str, int], name: str) -> list[tuple[str, int]]:
    items = list(widths.items())
    return items[: list(widths).index(name)]


def sensitivities(
    model: Model | Dynamics,
    q: ArrayLike | Mapping[str, ArrayLike] | None = None,
    v: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    duration: float,
    wrt: str | Sequence[str] = ("q", "v"),
    step: float | None = None,
    integrator: str | Integrator = AUTO,
    method: str | None = None,
    tau: ArrayLike | Mapping[str, ArrayLike] | None = None,
    controller: Callable[..., Any] | Controller | None = None,
    inputs: ArrayLike | None = None,
    forces: Callable[..., Mapping[Any, Any]] | Mapping[str, ArrayLike] | None = None,
    closures: str | Closures = "project",
    limits: str = "end",
    events: Any = None,
    parameters: ArrayLike | Parameters | None = None,
    contacts: Any = "steps",
    sample: float | None = None,
    start: float = 0.0,
) -> Sensitivities:
    """Differentiate every sample of a simulated motion by its initial state, inputs, gains and parameters.

    The run is that of sl.simulate with the same arguments, and derivatives are those of its steps, carried forward with
    it. The time grows with the number of columns k: for one loss and many inputs sl.gradient is faster. For the linear
    systems of all steps of a motion, as iLQR needs them, give its samples as a batch of runs of one step:

        s = sl.sensitivities(model, run.q[:-1], run.v[:-1], duration=h, step=h, tau=tau[:, None], wrt=("q", "v", "tau"))
        A, B = s.by("q", "v"), s.by("tau")

    Args:
        model: a Model or a Dynamics.
        q, v, duration, step, method, tau, controller, inputs, forces, closures, limits, parameters, sample, start: as
            in sl.simulate. Of closed loops derivatives by q and v are along closed motions.
        wrt: what derivatives are taken by: some of "q", "v", "tau" or "inputs", "parameters" or names of them,
            "at" (the times of events).
        integrator, events, contacts: as in sl.gradient.

    Returns:
        Sensitivities, with `names` of the columns.

    Raises:
        InputError: an argument does not fit the model.
        StateError: the run ended early, at a limit or by an event for example, or an event has no derivative (see
            sl.gradient). In a batch the rows of such runs are NaN, and one warning names the first.
        UnsupportedError: the run has contacts, a callback or adaptive steps.

    Example:
        >>> s = sl.sensitivities(sl.zoo.pendulum(), [1.0], duration=0.5, wrt=("q", "v", "gravity.z"))
        >>> s.names, s.dq.shape
        (('q.hinge1', 'v.hinge1', 'gravity.z'), (501, 1, 3))
    """
    run = DifferentiatedRun.of(
        "sensitivities",
        model,
        q,
        v,
        wrt=wrt,
        duration=duration,
        step=step,
        sample=sample,
        integrator=integrator,
        parameters=parameters,
        by_samples=True,
        method=method,
        tau=tau,
        controller=controller,
        inputs=inputs,
        forces=forces,
        closures=closures,
        limits=limits,
        events=events,
        contacts=contacts,
        start=start,
    )
    return _TangentRun(run).found()


@dataclass(frozen=True)
class _TangentRun:
    """A run that carries its derivatives along."""

    run: DifferentiatedRun

    @cached_property
    def widths(self) -> dict[str, int]:
        """How many columns there are of each."""
        return self.run.wanted.sizes(self.run.problem)

    @property
    def columns(self) -> int:
        return sum(self.widths.values())

    def found(self) -> Sensitivities:
        """Samples and their derivatives, of runs that ended early refused."""
        run, problem, g = self.run, self.run.problem, self.run.grid
        n, model = len(problem), problem.model
        width = (1 + self.columns) * (model.nq + model.nv)
        if n * g.samples * width > _MOST:
            raise InputError(
                f"sensitivities: {n} runs with {g.samples} samples and {self.columns} columns are "
                f"{n * g.samples * width:.2g} numbers, more than {_MOST:.0g}. Give a longer sample=, or use sl.gradient"
            )
        samples, rates, refused = self._across_events() if problem.system.switching else self._taken()
        rates["q"] = joint_rates(model, samples["q"].astype(float), rates["q"]).astype(rates["v"].dtype)
        arrays = [*samples.values(), *(np.swapaxes(x, -1, -2) for x in rates.values())]
        lost = np.flatnonzero(~np.all([np.isfinite(x).reshape(n, -1).all(axis=1) for x in arrays], axis=0))
        for k in lost:
            refused.setdefault(int(k), Refusal(Reason.NOT_FINITE, "the derivatives of its steps are not finite"))
        arrays = [np.ascontiguousarray(x) for x in arrays]
        refuse_states(run.function, sorted(refused), lambda k: refused[k], problem.batch, *arrays)
        own_q, own_v, dq, dv = (x.reshape((*problem.batch, *x.shape[1:])) for x in arrays)
        times = problem.start + g.h * g.every * np.arange(g.samples)
        return Sensitivities(times, own_q, own_v, dq, dv, self._names(), self.widths)

    def _taken(self) -> tuple[Arrays, Arrays, dict[int, Refusal]]:
        """Samples q, v (n, samples, size), their rates (n, samples, columns, size), and why runs have none."""
        run, problem, g = self.run, self.run.problem, self.run.grid
        n, width = len(problem), (1 + self.columns) * (problem.model.nq + problem.model.nv)
        record, why = np.full((n, g.samples, width), np.nan, run.integrator.dtype), np.zeros(n, np.uint8)
        steps = Steps(problem.start, g.h, 0, g.steps, g.every)
        rollout = self._rollout
        state = self._state(rollout)
        why[run.met_at_start(state)] = HALTED
        rollout.run(state, self._constants(rollout), self._controls(rollout), why, steps, record)
        parts = {name: record[..., place] for name, place in rollout.places("record", n).items()}
        samples = {"q": parts["q"], "v": parts[run.velocity]}
        rates = {name: self._shaped(parts.get(f"d.{x}"), x) for name, x in (("q", "q"), ("v", run.velocity))}
        return samples, rates, {int(k): run.ended(int(k)) for k in np.flatnonzero(why)}

    def _across_events(self) -> tuple[Arrays, Arrays, dict[int, Refusal]]:
        """As _taken, of runs with events."""
        rows, width = self.run.inputs.shape[1:]
        seeds = {n: self._units[n] for n in ("p", MOMENTS)} | {"u": self._units["u"].reshape(self.columns, rows, width)}
        return sampled_rates(self.run, *StartMap(self.run.problem).pushed(self._units), seeds)

    def _shaped(self, rates: np.ndarray | None, name: str) -> np.ndarray:
        """Rates (n, samples, columns, size) of an array; zero where nothing changes it."""
        n, samples = len(self.run.problem), self.run.grid.samples
        size = self.run.problem.model.nq if name == "q" else self.run.problem.model.nv
        if rates is None:
            return np.zeros((n, samples, self.columns, size), self.run.integrator.dtype)
        return rates.reshape(n, samples, self.columns, size)

    # ---- what it starts with

    @cached_property
    def _units(self) -> dict[str, np.ndarray]:
        """Unit columns: rates of q and v (k, nv), u (k, rows · width) and p (k, parameters)."""
        model, k = self.run.problem.model, self.columns
        rows = self.run.inputs.shape[1] * self.run.inputs.shape[2]
        live = len(model.parameters())
        out = {"q": np.zeros((k, model.nv)), "v": np.zeros((k, model.nv)), "u": np.zeros((k, rows))}
        out |= {"p": np.zeros((k, live)), MOMENTS: np.zeros((k, self.widths.get(MOMENTS, 0)))}
        at = 0
        for name, array in zip(self.run.wanted.names, self.run.wanted.arrays, strict=True):
            places = self.run.wanted.places if name == PARAMETERS else range(self.widths[name])
            for i, place in enumerate(places):
                out[array][at + i, place] = 1.0
            at += self.widths[name]
        return out

    @property
    def _wrt(self) -> tuple[str, ...]:
        """Arrays that change: live parameters may move the start."""
        return tuple(dict.fromkeys((*self.run.wanted.arrays, "q", "v")))

    @cached_property
    def _rollout(self) -> AnyRollout:
        run = self.run
        constant = ("u",) if run.inputs_are_constant and "u" in self._wrt else ()

        def make() -> Schedule:
            taken = run.problem.system, run.problem.events, run.integrator.name, run.integrator.dtype
            found = schedule(*taken, unrolled=True)
            return tangent(found, self._wrt, ("q", run.velocity), self.columns, constant, run.integrator.dtype)

        return run.compiled(f"sensitivities|{self._wrt}|{self.columns}|{constant}", make, ends=True)

    def _state(self, rollout: AnyRollout) -> np.ndarray:
        problem, n = self.run.problem, len(self.run.problem)
        places = rollout.places("state", n)
        state = np.zeros((n, max(s.stop for s in places.values())))
        state[:, : self.run.layout.width] = problem.state(self.run.layout)
        of_q, of_v = StartMap(problem).pushed(self._units)
        state[:, places["d.q"]], state[:, places["d.v"]] = of_q.reshape(n, -1), of_v.reshape(n, -1)
        return np.ascontiguousarray(state, self.run.integrator.dtype)

    def _constants(self, rollout: AnyRollout) -> np.ndarray:
        """Constants of the runs, and the rates of parameters and of inputs that all steps share."""
        more = [
            self._units[n.removeprefix("d.")].ravel()
            for n in rollout.places("constants", len(self.run.problem))
            if n.startswith("d.")
        ]
        rows = self.run.constants
        if not more:
            return rows
        own = rows[:, : sum(self.run.problem.system.sizes[n] for n in self.run.problem.system.constants)]
        added = np.broadcast_to(np.concatenate(more), (len(rows), sum(map(len, more))))
        return np.ascontiguousarray(np.concatenate([own, added], axis=1), rows.dtype)

    def _controls(self, rollout: AnyRollout) -> np.ndarray:
        """Inputs of the steps, and their rates where each step has its own."""
        rows = self.run.step_inputs(0, self.run.grid.steps)
        if "d.u" not in rollout.places("controls", len(self.run.problem)):
            return rows
        steps, width = self.run.inputs.shape[1:]
        rates = np.moveaxis(self._units["u"].reshape(self.columns, steps, width), 1, 0).reshape(1, steps, -1)
        wide = np.broadcast_to(rates, (len(rows), *rates.shape[1:]))
        return np.ascontiguousarray(np.concatenate([rows, wide], axis=2), rows.dtype)

    def _names(self) -> tuple[str, ...]:
        return column_names(
            self.run.problem.model, self.run.wanted, self.run.inputs.shape[1:], self.widths.get(MOMENTS, 0)
        )


def column_names(model: Model, wanted: Wanted, inputs: tuple[int, ...], moments: int = 0) -> tuple[str, ...]:
    """Names of columns; inputs: rows and width of the inputs; moments: how many events have times."""
    dofs, out = dof_names(model), list[str]()
    for name in wanted.names:
        if name == PARAMETERS:
            out += [model.parameters().names[k] for k in wanted.places]
        elif name == MOMENTS:
            out += [f"{name}.{k}" for k in range(moments)]
        elif name in ("q", "v"):
            out += [f"{name}.{dof}" for dof in dofs]
        else:
            own = [f"tau.{dof}" for dof in dofs] if name == "tau" else [f"inputs.{k}" for k in range(inputs[1])]
            out += own if inputs[0] == 1 else [f"{x}@{k}" for k in range(inputs[0]) for x in own]
    return tuple(out)
