"""sl.gradient: the derivative of a loss of a run, by the adjoint of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, Reason, Refusal, nearest
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.simulation.controllers import Controller
from spanloop.simulation.gradients.adjoint_run import AdjointRun
from spanloop.simulation.gradients.differentiated_run import DifferentiatedRun
from spanloop.simulation.gradients.event_gradient import EventGradient
from spanloop.simulation.gradients.objective import Objective
from spanloop.simulation.gradients.start_map import StartMap
from spanloop.simulation.gradients.wanted import MOMENTS, PARAMETERS
from spanloop.simulation.integrators.integrator import AUTO, Integrator
from spanloop.simulation.system import Closures


@dataclass(frozen=True)
class Gradient:
    """The value of a loss and its derivatives, one for each run of the batch (...); None for what was not asked for.

    Attributes:
        value: of the loss and the integral, (...).
        q: derivatives by the coordinates at the start, at rates of the joints (..., nv): q moves to q ⊕ dq, where
            dq are joint rates times a time, as those of v. Of closed loops it is the derivative along closed motions.
        v: derivatives by the velocities at the start, (..., nv).
        tau, inputs: derivatives by the torques, or the inputs of the controller: (..., steps, n) where each step has
            its own, (..., n) or (..., 1, n) as they are given where all steps share them.
        parameters: derivatives by all live parameters, (..., n), packed as model.parameters(); the adjoint has them all
            at once, also where wrt names a few. None where it names none.
        at: derivatives by the times of events [1/s], (..., n), in the order in which events with `at=` are given.
        names: of the parameters.
    """

    value: np.ndarray
    q: np.ndarray | None = None
    v: np.ndarray | None = None
    tau: np.ndarray | None = None
    inputs: np.ndarray | None = None
    parameters: np.ndarray | None = None
    at: np.ndarray | None = None
    names: tuple[str, ...] = ()

    def parameter(self, name: str) -> np.ndarray:
        """The derivative (...) by one parameter: 'forearm.mass', 'elbow.position.x', 'gravity.z'.

        Any will do where the gradient was taken by parameters, whichever wrt named.
        """
        if self.parameters is None:
            raise InputError("the gradient was not taken by parameters; pass wrt=('parameters',)")
        if name not in self.names:
            raise InputError(f"there is no parameter {name!r}; {nearest(name, self.names)}")
        found: np.ndarray = self.parameters[..., self.names.index(name)][()]  # a number of one run
        return found


def gradient(
    model: Model | Dynamics,
    loss: Callable[..., Any] | Mapping[str, ArrayLike] | None,
    q: ArrayLike | Mapping[str, ArrayLike] | None = None,
    v: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    duration: float,
    running: Callable[..., Any] | None = None,
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
) -> Gradient:
    """Differentiate a loss of a simulated motion by its initial state, inputs, gains and parameters.

    The run is that of sl.simulate with the same arguments, and the derivative is that of its steps, exact but for
    rounding. It takes about five times as long as the run, however many derivatives there are (the adjoint method).
    Batch axes (...) are runs side by side, each with a value and derivatives of its own, also by what they share.

    Args:
        model: a Model or a Dynamics.
        loss: of the state at the end of the run: a function (q, v) or (t, q, v) -> number in the arithmetic of NumPy,
            compiled as a controller is. Or weights of samples, {"q": (..., samples, nq), "v": (..., samples, nv)} in
            the shapes of run.q and run.v: the loss is the sum of weights times samples, so that derivatives by the
            samples, which another library computed, become derivatives by the arguments. None with `running` alone.
        q, v, duration, step, method, tau, controller, inputs, forces, closures, limits, parameters, start: as in
            sl.simulate. Gains of a controller are inputs (n,) that all steps share.
        running: a function (t, q, v) or (t, q, v, u) -> number that is integrated over the run and added to the loss,
            by the trapezoidal rule on the grid of steps; u are the torques, or the inputs of the controller.
        wrt: what derivatives are taken by: some of "q", "v", "tau" or "inputs", "parameters" or names of them,
            "at" (the times of events).
        integrator: "rk4", "euler", "midpoint", "implicit", or an sl.Integrator with dtype, threads and progress.
        events: as in sl.simulate: loops that attach and release, one-sided constraints, stops (limits="stop" too),
            grasps, bodies that come and go, conditions that end a run. The times of events move with what the
            derivative is taken by; a loss (t, q, v) has the time of an end as t (docs/gradients.md, Across events).
        contacts: "ignore" for a model with contacts.
        sample: time between the samples that have weights [s]; every step by default.

    Returns:
        A Gradient.

    Raises:
        InputError: an argument does not fit the model.
        StateError: the run ended early, at a limit for example, or the loss has no finite value or derivative, or an
            event has none: it grazes, coincides with another, or a constraint bounces until it rests. In a batch the
            rows of such runs are NaN, and one warning names the first.
        UnsupportedError: the run has contacts, a callback or adaptive steps.

    Example:
        >>> pendulum = sl.zoo.pendulum()
        >>> found = sl.gradient(pendulum, lambda q, v: q[0] ** 2, [1.0], duration=0.5)
        >>> found.q.shape, found.v.shape
        ((1,), (1,))
    """
    run = DifferentiatedRun.of(
        "gradient",
        model,
        q,
        v,
        wrt=wrt,
        duration=duration,
        step=step,
        sample=sample,
        integrator=integrator,
        parameters=parameters,
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
    if run.meets_events:
        across = EventGradient.of(run, loss, running)
        return _of(run, across.cotangents(), across.value, across.refused)
    objective = Objective(run, loss, running)
    back = AdjointRun(run, objective)
    found = back.cotangents()
    if "u" in found:
        found["u"] = found["u"].reshape(objective.u.shape) + objective.u
    return _of(run, found, objective.value, back.refused)


def _of(
    run: DifferentiatedRun, found: dict[str, np.ndarray], value: np.ndarray, refused: dict[int, Refusal]
) -> Gradient:
    """The gradient from derivatives by the arrays of steps."""
    for x in found.values():
        x[list(refused)] = 0.0
    at_start = StartMap(run.problem).pullback(found["q"], found["v"])
    rows = {"value": value, "q": at_start["q"], "v": at_start["v"]}
    wanted = run.wanted.names
    if PARAMETERS in wanted:
        rows[PARAMETERS] = found["p"] + at_start.get("p", 0.0)
    if MOMENTS in wanted:
        rows[MOMENTS] = found[MOMENTS]
    for name in ("tau", "inputs"):
        if name in wanted:
            rows[name] = found["u"] if run.has_step_axis else found["u"][:, 0]
    for k in np.flatnonzero(~np.all([np.isfinite(x).reshape(len(x), -1).all(axis=1) for x in rows.values()], axis=0)):
        refused.setdefault(int(k), Refusal(Reason.NOT_FINITE, "its derivatives are not finite"))
    dtype, batch = run.integrator.dtype, run.problem.batch
    arrays = {name: np.array(x, dtype) for name, x in rows.items()}
    refuse_states(run.function, sorted(refused), lambda k: refused[k], batch, *arrays.values())
    shaped = {n: x.reshape((*batch, *x.shape[1:]))[()] for n, x in arrays.items() if n == "value" or n in wanted}
    return Gradient(**shaped, names=run.problem.model.parameters().names if PARAMETERS in wanted else ())
