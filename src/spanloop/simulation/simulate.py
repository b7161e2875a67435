"""sl.simulate: a mechanism, a state and what acts on it become a motion."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.simulation import fixed_step
from spanloop.simulation.drive import Callback, Controller
from spanloop.simulation.fixed_step import refined
from spanloop.simulation.integrators import ORDER, Integrator, adaptive
from spanloop.simulation.problem import task
from spanloop.simulation.system import Closures
from spanloop.simulation.time_grid import Grid, grid
from spanloop.trajectory import Trajectory


def simulate(
    model: Model | Dynamics,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    duration: float,
    step: float | None = None,
    integrator: str | Integrator = "rk4",
    method: str | None = None,
    tau: ArrayLike | Mapping[str, ArrayLike] | None = None,
    controller: Callable[..., Any] | Controller | Callback | None = None,
    inputs: ArrayLike | None = None,
    forces: Callable[..., Mapping[Any, Any]] | Mapping[str, ArrayLike] | None = None,
    closures: str | Closures = "project",
    limits: str = "end",
    events: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None,
    parameters: ArrayLike | Parameters | None = None,
    sample: float | None = None,
) -> Trajectory:
    """Simulate the motion of a mechanism from a state, over a duration.

    With fixed steps the whole time loop is one compiled kernel. Batch axes (...) of q, v, tau, inputs and parameters
    are runs side by side.

    Args:
        model: a Model, or a Dynamics, whose `method` and `on_singular` are used.
        q: coordinates (..., nq) at the start; the neutral position, with its loops assembled, by default.
        v: velocities (..., nv) at the start; zero by default.
        duration: of the motion [s].
        step: length of a fixed step, or the longest adaptive step [s]; fixed steps are 1 ms by default.
        integrator: "rk4", "euler", "midpoint", an adaptive method of SciPy ("DOP853", "Radau", ...), or an
            sl.Integrator, which also has accuracy, dtype, threads, checkpoint and progress.
        method: the algorithm of forward dynamics, as in sl.Dynamics.
        tau: torques (..., nv), or (..., steps, nv) for each step [N m or N], or {"joint": torque}.
        controller: a function (t, q, v) -> torques in plain arithmetic, compiled into the motion, or (t, q, v, u) with
            inputs; a law of sl.control; or sl.control.callback(function), which Python calls once a step.
        inputs: u (..., n), or (..., steps, n) for each step, of the controller.
        forces: {"body": [torque; force]}, six numbers at the body's origin in world axes [N m, N]; or a function
            (t, q, v) that returns that, as those of sl.forces.
        closures: "project" brings every step back to the closed loops, "feedback" adds gains times the closure errors
            to the constraints, "minimal" integrates the actuated joints alone, "none" lets loops drift; or an
            sl.Closures, which also has gains, active_loops, loop_accelerations and loop_forces.
        limits: "end" ends a run at a joint's limit, "ignore" does not check limits.
        events: a function (t, q, v) -> number, or {"name": function}; a run ends where one is no longer positive.
        parameters: live parameters (..., n), packed as model.parameters().
        sample: time between the samples that are kept [s]; every step by default.

    Returns:
        The Trajectory up to the end of each run; `outcome` has the reason why it ended. Ctrl-C returns what there is.

    Raises:
        InputError: an argument does not fit the model.
        StateError: a start is not finite or far from closed.
        UnsupportedError: the model cannot be simulated in this way.

    Example:
        run = sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=5.0, integrator="midpoint", step=1e-3)
    """
    robot = model if isinstance(model, Dynamics) else _robot(model)
    chosen = integrator if isinstance(integrator, Integrator) else Integrator(integrator)
    problem = task(
        robot,
        q,
        v,
        tau=tau,
        controller=controller,
        inputs=inputs,
        forces=forces,
        closures=closures,
        limits=limits,
        events=events,
        parameters=parameters,
        method=robot.method if method is None else method,
        dtype=chosen.dtype,
        threads=chosen.threads,
        step=step,
    )
    if chosen.adaptive:
        return adaptive.integrate(problem, duration, step, sample, chosen.name, chosen.accuracy, chosen.progress)
    times = grid(duration, step, sample, len(problem) * (robot.model.nq + robot.model.nv))
    if chosen.accuracy is None:
        return fixed_step.integrate(problem, times, chosen.name, chosen.checkpoint, chosen.progress)
    order = 1 if problem.drive.memory else ORDER[chosen.name]  # a memory is constant during a step

    def run(g: Grid) -> Trajectory:
        return fixed_step.integrate(problem, g, chosen.name, None, chosen.progress)

    return refined(run, times, order, chosen.accuracy)


@functools.lru_cache(maxsize=16)
def _robot(model: Model) -> Dynamics:
    """The dynamics of a model, kept for a while: simulations come in series."""
    if not isinstance(model, Model):
        raise InputError(f"simulate: model is a {type(model).__name__}; expected a Model or a Dynamics")
    return Dynamics(model)
