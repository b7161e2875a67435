"""sl.simulate: a mechanism, a state and what acts on it become a motion."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.simulation import fixed_step
from spanloop.simulation.fixed_step import refined
from spanloop.simulation.integrators import METHODS, ORDER, adaptive
from spanloop.simulation.problem import task
from spanloop.simulation.time_grid import grid
from spanloop.trajectory import Trajectory


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
    known: Callable | Mapping | None = None,
    dynamics: str | None = None,
    dtype: str = "float64",
    threads: int = 1,
    on_singular: str = "raise",
    checkpoint=None,
    progress: bool | None = None,
) -> Trajectory:
    """The motion of a model from q (..., nq), v (..., nv) on, over `duration` [s]; batch axes are runs side by side.

    How. step [s]: 1 ms if not given. method: "rk4", "euler" (semi-implicit), "midpoint" (implicit), or an adaptive
    one of SciPy: "DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA", for which step is the longest. accuracy: the step
    is halved until the estimated error of every coordinate is below it (rad or m); adaptive methods' tolerance.
    dynamics: method of forward dynamics, the robot's own if it was made with one. dtype, threads: of the compiled
    steps; threads share a batch, 0 for all cores.

    What acts. tau: torques (..., nv), (..., steps, nv) for each step, or {"joint": torque}. controller: a function
    (t, q, v) -> torques in plain arithmetic, compiled into the motion; or (t, q, v, u) with inputs (..., n) or
    (..., steps, n). callback: a function (t, q, v) -> torques that Python calls at every step, for what cannot be
    traced. forces: {"body": six numbers}, or a function (t, q, v) that returns that. parameters (..., n): live ones,
    packed as model.parameters(). active, given: as in forward_dynamics. known: {"loop": numbers} along a loop's own
    freedoms, or a function (t, q, v) that returns that.

    Loops. closures: "project" brings every step back to the closed loops; "feedback" pulls errors back, with gains
    (2ω, ω²) or one frequency ω [rad/s]; "minimal" integrates the actuated joints of legs on one platform alone, from
    which the others follow at every stage; "none" lets them drift.

    Ends. limits: "stop" ends a run at a joint's limit, "ignore" does not look. stop: a function (t, q, v), or several
    by name, which end a run when no longer positive. on_singular: "raise" ends it at a singular position.

    Results. sample [s]: time between samples that are kept. checkpoint: a file from which a simulation that was
    killed goes on. progress: a bar; by default on a terminal and in notebooks. Ctrl-C returns what there is.
    """
    robot = model if isinstance(model, Dynamics) else _robot(model)
    dynamics = robot.method if dynamics is None else dynamics
    methods = (*METHODS, *adaptive.METHODS)
    if method not in methods:
        raise InputError(f"method is {method!r}; {nearest(method, methods)}")
    told = task(
        robot,
        q,
        v,
        tau=tau,
        controller=controller,
        inputs=inputs,
        callback=callback,
        forces=forces,
        closures=closures,
        gains=gains,
        limits=limits,
        stop=stop,
        parameters=parameters,
        active=active,
        given=given,
        known=known,
        dynamics=dynamics,
        on_singular=on_singular,
        dtype=dtype,
        threads=threads,
        step=step,
    )
    if method in adaptive.METHODS:
        if checkpoint is not None:
            raise InputError(
                f"checkpoint is for fixed steps; method {method!r} chooses its own. Use 'rk4' or 'midpoint'"
            )
        return adaptive.integrate(told, duration, step, sample, method, accuracy, progress)
    times = grid(duration, step, sample, len(told) * (robot.model.nq + robot.model.nv))
    if accuracy is None:
        return fixed_step.integrate(told, times, method, checkpoint, progress)
    order = 1 if told.drive.memory else ORDER[method]  # a memory is held during a step
    return refined(lambda g: fixed_step.integrate(told, g, method, None, progress), times, order, accuracy)


@functools.lru_cache(maxsize=16)
def _robot(model: Model) -> Dynamics:
    """The dynamics of a model, kept for a while: simulations come in series."""
    if not isinstance(model, Model):
        raise InputError(f"simulate: model is a {type(model).__name__}; expected a Model or a Dynamics")
    return Dynamics(model)
