"""sl.simulate: problem → compiled time loop → samples → trajectory."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.gpu.device_runs import DeviceRuns
from spanloop.compiler.runtime.gpu.driver import Device
from spanloop.contacts.settings import Settings
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopError, SpanloopWarning, UnsupportedError
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.simulation.checkpoint import Checkpoint, key_of
from spanloop.simulation.controllers import Callback, Controller
from spanloop.simulation.events.event_log import logged_width
from spanloop.simulation.events.kinds import Event
from spanloop.simulation.events.spin_limits import checked_spin, refuse_fast_start
from spanloop.simulation.integrators import adaptive
from spanloop.simulation.integrators.integrator import (
    ADAPTIVE,
    AUTO,
    FIXED_STEP,
    ORDER,
    Integrator,
    gpu_rollout,
    rollout,
)
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import End, Problem, Samples
from spanloop.simulation.recipe import Recipe
from spanloop.simulation.stiffness import EXPLICIT, Stiffest, stiffest
from spanloop.simulation.system import Closures
from spanloop.simulation.termination import CLOSE, Termination, end_at_start
from spanloop.simulation.time_loop import (
    LASTING,
    LONG_STEP,
    MOST_STEPS,
    Grid,
    Progress,
    ProgressBar,
    StepErrors,
    TimeLoop,
    expect_forces,
    grid,
    step_errors,
)
from spanloop.trajectory import EndReason, Trajectory

_HALVINGS = 14  # of the step, at most


class AccuracyError(SpanloopError):
    """The accuracy that was asked for cannot be reached."""


def simulate(
    model: Model | Dynamics,
    q: ArrayLike | Mapping[str, ArrayLike] | None = None,
    v: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    duration: float,
    step: float | None = None,
    integrator: str | Integrator = AUTO,
    method: str | None = None,
    tau: ArrayLike | Mapping[str, ArrayLike] | None = None,
    controller: Callable[..., Any] | Controller | Callback | None = None,
    inputs: ArrayLike | None = None,
    forces: Callable[..., Mapping[Any, Any]] | Mapping[str, ArrayLike] | None = None,
    closures: str | Closures = "project",
    limits: str = "end",
    events: Callable[..., Any] | Mapping[str, Callable[..., Any]] | Sequence[Event] | None = None,
    parameters: ArrayLike | Parameters | None = None,
    contacts: str | Settings = "steps",
    sample: float | None = None,
    start: float = 0.0,
    target: str | None = None,
) -> Trajectory:
    """Simulate the motion of a mechanism from a state, over a duration.

    With fixed steps the whole time loop is one compiled kernel. Batch axes (...) of q, v, tau, inputs and parameters
    are runs side by side.

    Args:
        model: a Model, or a Dynamics, whose `method` and `on_singular` are used.
        q: coordinates (..., nq) at the start; by default the neutral position, with joints inside their limits and
            loops assembled. {"joint": coordinate} sets some joints, (..., 1) for runs; the others are as by default,
            with loops assembled around them.
        v: velocities (..., nv) at the start; zero by default. {"joint": rate} sets some joints; the others have none,
            or what closed loops make of these (robot.complete_velocity).
        duration: of the motion [s].
        step: length of a fixed step, or the longest adaptive step [s]; fixed steps are 1 ms by default. Whole steps
            fill the time between samples, and whole samples the duration: a length that does not divide them is
            adjusted, with a warning, and run.settings["step"] has the one that was used.
        integrator: "rk4", "euler", "midpoint", "implicit" for stiff joints, an adaptive method of SciPy ("DOP853",
            "Radau", ...), or an sl.Integrator, which also has accuracy, dtype, threads, checkpoint and progress. By
            default "rk4", or "implicit" where dampers, springs, friction or gains of a joint are too stiff for it; then
            run.settings["stiff"] names the joint.
        method: the algorithm of forward dynamics, as in sl.Dynamics.
        tau: torques (nv,), (..., 1, nv) of runs, or (..., steps, nv) for each step [N m or N]; or {"joint": torque},
            a number, (..., 1) of runs or (..., steps), zero at the other joints. They act at every joint that is
            named, whether it is actuated or not.
        controller: a function (t, q, v) -> torques in the arithmetic of NumPy, compiled into the run; (t, q, v, u) with
            inputs; a law of sl.control; or sl.control.callback(function), which Python calls once a step.
        inputs: u (n,), (..., 1, n) of runs, or (..., steps, n) for each step, of the controller and of forces that
            read them ((steps, 1) of one number a step); without a controller of the forces alone, and no torques act.
        forces: {"body": [torque; force]}, six numbers at the body's origin in world axes [N m, N]; or a function
            (t, q, v) that returns that, as those of sl.forces, or (t, q, v, u): u are the inputs of the step or,
            without any, the torques.
        closures: "project" brings every step back to the closed loops, "feedback" adds gains times the closure errors
            to the constraints, "minimal" integrates the actuated joints alone, "none" lets loops drift; or an
            sl.Closures, which also has gains, active_loops, loop_accelerations and loop_forces.
        limits: "end" ends a run at a joint's limit, "stop" puts a stop there, which pushes and never pulls (joints of
            several DoF: springs and dampers beyond it), "ignore" does not check limits.
        events: a function (t, q, v) -> number, or {"name": function}; a run ends where one is no longer positive, at
            t = 0 if it starts there. Or a list of sl.events: loops that attach and release, one-sided constraints,
            grasps, bodies that come and go, ends; run.events has what happened (docs/events.md).
        parameters: live parameters (..., n), packed as model.parameters(): masses, lengths, losses, gravity. The start
            is checked and closed with them, and run.model has them; controllers and forces keep the numbers of the
            model that they were made with.
        contacts: of a model with contacts: "steps" solves them once a step, "events" also locates impacts in the step,
            "ignore" leaves them out; or an sl.contacts.Settings, which also has friction of runs (docs/contacts.md).
        sample: time between the samples that are kept [s], at least a step; every step by default, and less often
            where that would be more than 20 million numbers. Adjusted, with a warning, if it does not divide the
            duration; run.times has the times.
        start: time of the initial state [s], from which controllers, forces and events count on; run.continued uses it.
        target: "cpu", or "cuda" for fixed steps on an NVIDIA GPU, one thread a run; by default that of the integrator,
            or "cuda" for a Dynamics with that target (docs/gpu.md).

    Returns:
        The Trajectory up to the end of each run; `outcome` has the reason why it ended. Ctrl-C returns what there is.

    Raises:
        InputError: an argument does not fit the model.
        StateError: a start or a torque is not finite, or a start is far from closed.
        UnsupportedError: the model cannot be simulated in this way.
        DeviceError: target is "cuda", and there is no GPU, or its memory is too small.

    Example:
        >>> model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
        >>> run = sl.simulate(model, q, duration=0.5, integrator="midpoint", step=1e-3)
        >>> print(run.outcome.reason, run.q.shape)
        finished (501, 3)
    """
    if not isinstance(model, Model | Dynamics):
        raise InputError(f"simulate: model is a {type(model).__name__}; expected a Model or a Dynamics")
    chosen = with_target(integrator if isinstance(integrator, Integrator) else Integrator(integrator), model, target)
    robot = robot_of(model)
    _refuse_integrator_as_method(method)
    given: dict[str, Any] = {
        "method": robot.method if method is None else method,
        "tau": tau,
        "controller": controller,
        "inputs": inputs,
        "forces": forces,
        "closures": closures,
        "limits": limits,
        "events": events,
        "parameters": parameters,
        "contacts": contacts,
        "start": start,
    }
    problem = Problem.of(robot, q, v, step=step, **given)
    live = problem.system.live_parameters(problem.constants)
    refuse_fast_start("simulate", robot, problem.q, problem.v, live)
    recipe = Recipe.of(problem, given, chosen)
    if chosen.adaptive:
        if problem.system.contacts:
            raise UnsupportedError(
                f"simulate: contacts are solved once a step of fixed length; integrator {chosen.name!r} chooses its "
                "own. Use integrator='rk4', or contacts='ignore'"
            )
        return checked_spin(adaptive.integrate(problem, chosen, duration, step, sample)).with_recipe(recipe)
    times = grid(duration, step, sample, len(problem) * (robot.model.nq + robot.model.nv))
    problem.inputs.refuse_two_readings(times.steps, problem.applied.controller.inputs)
    problem, chosen = with_stiffness(problem, chosen, times.h)
    found = integrated(problem, times, chosen) if chosen.accuracy is None else _refined(problem, times, chosen)
    return checked_spin(found).with_recipe(recipe)


def _refuse_integrator_as_method(method: str | None) -> None:
    """`method` is the algorithm of forward dynamics; an integrator's name there has a better place."""
    name = {x.lower(): x for x in (*FIXED_STEP, *ADAPTIVE)}.get(str(method).lower())
    if name is not None:
        raise InputError(
            f"simulate: method is {method!r}, the name of an integrator; method is the algorithm of forward dynamics. "
            f"Use integrator={name!r}"
        )


def with_stiffness(
    problem: Problem, integrator: Integrator, h: float, live: np.ndarray | None = None
) -> tuple[Problem, Integrator]:
    """The problem and the integrator of fixed steps, chosen where it is left open; a warning where one is too stiff.

    live: parameters (n, p) by which stiffness is judged, those of the runs by default.
    """
    found = stiffest_of(problem, live)
    rate = 0.0 if found is None else found.rate
    if integrator.name == AUTO:
        integrator = replace(integrator, name="implicit" if rate * h > EXPLICIT else "rk4")
        problem = replace(problem, stiff=str(found) if integrator.name == "implicit" else "")
    elif found is not None and integrator.name != "implicit" and rate * h > EXPLICIT:
        problem = replace(problem, advice=found.advice(h, integrator.name))
        warnings.warn(f"simulate: {problem.advice}", SpanloopWarning, stacklevel=3)
    if integrator.name == "implicit":
        problem = replace(problem, system=replace(problem.system, implicit=True))
    return problem, integrator


def stiffest_of(problem: Problem, live: np.ndarray | None = None) -> Stiffest | None:
    """The fastest decay or oscillation at the start of runs; live: parameters (n, p), those of the runs by default."""
    model, applied = problem.model, problem.applied
    live = problem.system.live_parameters(problem.constants) if live is None else live
    losses = any(any(j.damping + j.friction + j.stiffness) for j in model.joints) or _has_losses(model, live)
    pulls = losses or bool(model.actuators or problem.system.stops) or applied.gains() is not None
    return stiffest(problem.system, problem.q[0], live) if pulls else None


def _has_losses(model: Model, live: np.ndarray | None) -> bool:
    """Whether live parameters, if there are any, contain a damper or a spring."""
    if live is None:
        return False
    names = model.parameters().names
    return bool(live[..., [k for k, n in enumerate(names) if "damping" in n or "stiffness" in n]].any())


def with_target(integrator: Integrator, model: Model | Dynamics, target: str | None) -> Integrator:
    """The integrator on the target that was asked for; DeviceError if that is a GPU and there is none."""
    if target is None and isinstance(model, Dynamics) and model.target == "cuda":
        target = "cuda"
    if target is not None and target != integrator.target:
        integrator = replace(integrator, target=target)
    if integrator.target == "cuda":
        Device.of()
    return integrator


def robot_of(model: Model | Dynamics) -> Dynamics:
    """The dynamics of a model, kept for a while: simulations come in series.

    Starts and ends of runs are few states at a time: for them the CPU is faster, also where the steps are on a GPU.
    """
    if not isinstance(model, Dynamics):
        return _robot(model)
    return model if model.target != "cuda" else _robot(model.model, model.method, model.on_singular)


@functools.lru_cache(maxsize=16)
def _robot(model: Model, method: str | None = None, on_singular: str = "raise") -> Dynamics:
    return Dynamics(model, method=method, on_singular=on_singular)


def integrated(problem: Problem, times: Grid, integrator: Integrator) -> Trajectory:
    """The motion with fixed steps on a grid of times."""
    return _trajectory(problem, *steps_taken(problem, times, integrator), integrator)


def steps_taken(problem: Problem, times: Grid, integrator: Integrator) -> tuple[TimeLoop, Progress, StateLayout]:
    """The time loop of fixed steps on a grid of times, the runs after all its steps, and the layout of their state."""
    dtype = integrator.dtype
    layout = StateLayout.of(problem.system, problem.events, dtype)
    compiled = rollout(problem.system, problem.events, integrator.name, dtype, integrator.threads)
    controls = problem.inputs.rows(problem.batch, times.steps, _state_of(problem, layout))
    constants = np.ascontiguousarray(problem.constants, compiled.dtype)
    logs = logged_width(problem.system) if problem.system.switching else 0
    on_device = None
    if integrator.target == "cuda":
        on_device = DeviceRuns(gpu_rollout(problem.system, problem.events, integrator.name, dtype))
        if not callable(controls) and controls.shape[1] == 1:
            controls = np.ascontiguousarray(controls, compiled.dtype)  # one array for all stretches: copied once
    loop = TimeLoop(compiled, times, constants, controls, problem.applied.inputs, problem.start, logs, on_device)
    own = problem.model.nq + problem.model.nv + problem.applied.memory
    switched = sum(layout.sizes[name] for name in problem.system.switched)
    touching = sum(layout.sizes[name] for name in problem.system.contact_arrays)
    progress = loop.begin(problem.state(layout), own + switched + touching)
    end_at_start(problem, layout, progress)
    if problem.system.contacts:
        expect_forces(loop, progress, layout)
    _run(problem, loop, progress, integrator)
    return loop, progress, layout


def _state_of(problem: Problem, layout: StateLayout) -> Callable[[np.ndarray], list[np.ndarray]]:
    """A function from rows of state to q and v with the batch's axes, for callbacks."""

    def state_of(state: np.ndarray) -> list[np.ndarray]:
        return [state[:, layout.places[n]].reshape(*problem.batch, -1).astype(float) for n in ("q", "v")]

    return state_of


def _run(problem: Problem, loop: TimeLoop, progress: Progress, integrator: Integrator) -> None:
    """Run the time loop, with a progress bar and a checkpoint if there is one."""
    kept = None
    if integrator.checkpoint is not None:
        controls = "callback" if callable(loop.controls) else loop.controls
        own = loop.rollout.key + integrator.target * (integrator.target != "cpu")  # other roundings
        key = key_of(own, loop.start, loop.grid, progress.state, loop.constants, controls)
        kept = Checkpoint(integrator.checkpoint, key, loop.grid.every, problem.inputs)
        kept.begin(progress)
    bar = ProgressBar(loop.grid.steps, loop.grid.h, len(progress.state), integrator.progress)
    if progress.resumed:
        at = loop.start + progress.resumed * loop.grid.h
        bar.say(f"{integrator.checkpoint}: the simulation continues at t = {at:.6g} s")

    def report(p: Progress) -> None:
        bar.draw(p.done)
        if kept is not None and kept.is_due:
            loop.fetch(p)
            kept.keep(p)

    try:
        loop.run(progress, report)
    except BaseException:  # of a callback, for example
        if kept is not None:
            loop.fetch(progress)
            kept.keep(progress, now=True)
        raise
    finally:
        bar.erase()
    if kept is not None and progress.interrupted:
        kept.keep(progress, now=True)
    elif kept is not None:
        kept.remove()


def _trajectory(
    problem: Problem, loop: TimeLoop, p: Progress, layout: StateLayout, integrator: Integrator
) -> Trajectory:
    """The samples of the time loop as a Trajectory, with the end of each run located."""
    g, nq, nv = loop.grid, problem.model.nq, problem.model.nv
    others = End(loop.outcome(p))  # of runs that nothing ended inside the rollout
    ends = (
        Termination(loop, problem, layout, integrator.name).ends(p, others) if p.why.any() else [others] * len(problem)
    )
    last = int(p.counts.max()) // g.every + 1
    record = p.record[:, :last]
    for k in np.flatnonzero(p.counts < g.steps):
        record[k, p.counts[k] // g.every + 1 :] = np.nan
    numbers = np.minimum(g.every * np.arange(last), g.steps - 1)
    one_row = not callable(loop.controls) and loop.controls.shape[1] == 1
    memory = nq + nv + problem.applied.memory
    touching = sum(layout.sizes[name] for name in problem.system.contact_arrays)
    samples = Samples(
        loop.start + g.h * g.every * np.arange(last),
        record[..., :nq],
        record[..., nq : nq + nv],
        record[..., nq + nv : memory],
        problem.inputs.at(problem.batch, np.broadcast_to(numbers, (len(problem), last))),
        problem.system.inputs_are_torques and (g.every == 1 or one_row),
        record[..., memory : memory + layout.sizes["active"]] if "active" in problem.system.switched else None,
        record[..., record.shape[-1] - touching :] if touching else None,
    )
    settings: dict[str, Any] = {"integrator": integrator.name, "step": g.h, "dtype": integrator.dtype}
    if loop.on_device is not None:
        settings["target"] = integrator.target
    if problem.stiff:
        settings["stiff"] = problem.stiff
    if p.resumed:
        settings["resumed"] = f"at {loop.start + p.resumed * g.h:.6g} s"
    errors = _step_errors(problem, loop, p, layout, integrator)
    if errors is not None:
        settings["step_error"] = errors.total
    residual = None
    if "loops" in layout:
        loops = p.state[:, layout.places["loops"]].astype(float)
        residual, margin = loops[:, 0], float(loops[:, 1:].min(initial=1.0))
        if problem.system.minimal:
            settings["actuation_margin"] = margin
        elif problem.system.projects and problem.system.measures_margin:
            settings["margin"] = margin
        _warn_of_margin(margin, ends, problem.system.minimal)
    steps = np.minimum(p.counts, g.steps - 1)
    at_ends = problem.inputs.at(problem.batch, steps[:, None])[:, 0]
    return problem.trajectory(samples, ends, at_ends, settings, residual, p.log)


def _step_errors(
    problem: Problem, loop: TimeLoop, p: Progress, layout: StateLayout, integrator: Integrator
) -> StepErrors | None:
    """An estimate of the errors of steps, with a warning if they are too long for the motion."""
    if problem.system.contacts:
        return None  # at impacts velocities jump, whatever the step
    units = [unit for joint in problem.model.joints for unit in joint.kind.units]

    def inputs_at(number: int) -> np.ndarray:
        return problem.inputs.at(problem.batch, np.full((len(problem), 1), number))

    weight = float(np.linalg.norm(problem.model.gravity))
    further = LASTING if integrator.name == "implicit" else 0
    found = step_errors(loop, p, layout, units, inputs_at, ORDER[integrator.name], weight, further)
    if found is not None and found.largest > LONG_STEP and integrator.accuracy is None:
        warnings.warn(
            f"simulate: steps of {loop.grid.h:g} s are too long for this motion: one of them changes velocities by "
            f"{found.largest:.1g} of the largest speed beside the truth. Give a shorter step=, or accuracy= or an "
            "adaptive integrator in sl.Integrator",
            SpanloopWarning,
            stacklevel=5,
        )
    return found


def _warn_of_margin(margin: float, ends: list[End], minimal: bool) -> None:
    """Warn where a run passed a place at which its motion may not be the only one possible."""
    if margin < CLOSE and not any(e.outcome.reason is EndReason.SINGULAR for e in ends):
        if minimal:
            words = (
                f"the legs passed close to a singular configuration (margin {margin:.1e}, 0 where the actuated joints "
                "do not determine the others), where numbers lose digits. closures='project' loses none there"
            )
        else:
            words = (
                f"the loops passed close to a singular configuration (margin {margin:.1e}, 0 where they lose rank), "
                "where a mechanism may go on in more than one way; what is computed is the way of its "
                "velocities"
            )
        warnings.warn(f"simulate: {words}", SpanloopWarning, stacklevel=5)


def _refined(problem: Problem, times: Grid, integrator: Integrator) -> Trajectory:
    """The motion with steps that are halved until the estimated error of every coordinate is below the accuracy.

    Two motions with steps h and h/2 differ by (2ᵖ − 1) times the error of the better one, p the order.
    """
    integrator = replace(integrator, checkpoint=None)
    assert integrator.accuracy is not None
    first = problem.applied.memory or problem.system.contacts  # constant in a step
    order = 1 if first else ORDER[integrator.name]
    accuracy, factor, best = integrator.accuracy, 2**order - 1, np.inf
    slowest = 1.0 if integrator.name == "implicit" else 0.7  # errors of modes that steps do not resolve fall late
    coarse = integrated(problem, times, integrator)
    for _ in range(_HALVINGS):
        times = times.halved()
        if times.steps > MOST_STEPS:
            break
        fine = integrated(problem, times, integrator)
        error = _difference(problem.robot, coarse, fine, problem.start + _grid_times(times)) / factor
        if error <= accuracy:
            object.__setattr__(fine, "settings", {**fine.settings, "accuracy": accuracy, "estimated_error": error})
            return fine
        if error > slowest * best and np.isfinite(best):  # rounding, or a chaotic motion
            break
        best, coarse = min(best, error), fine
    raise AccuracyError(
        f"the accuracy {accuracy:g} cannot be reached: with steps of {times.h:.3g} s the motion is still uncertain by "
        f"{error:.2g} (rad or m). Ask for less, or for a shorter duration: a motion may be chaotic"
    )


def _grid_times(times: Grid) -> np.ndarray:
    """Times (samples,) of the samples of a run that starts at 0."""
    found: np.ndarray = times.h * times.every * np.arange(times.samples)
    return found


def _difference(robot: Dynamics, a: Trajectory, b: Trajectory, grid: np.ndarray) -> float:
    """The largest difference of any coordinate at the samples on the grid of times that both have.

    Runs that are cut at events have samples there as well, each at its own moments.
    """
    rows = []
    for run in (a, b):
        last = run.times[-1] + 1e-9 * (grid[-1] - grid[0])
        at = np.searchsorted(run.times, grid[grid <= last] - 1e-9 * (grid[-1] - grid[0]))
        rows.append(run.q[..., np.minimum(at, len(run.times) - 1), :])
    n = min(x.shape[-2] for x in rows)
    delta = robot.difference(rows[0][..., :n, :], rows[1][..., :n, :])
    well = np.isfinite(delta)
    return float(np.abs(delta[well]).max(initial=0.0))
