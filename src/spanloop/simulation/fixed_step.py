"""Runs with steps of one length, in the compiled rollout."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from spanloop.errors import SpanloopError, SpanloopWarning
from spanloop.simulation.checkpoint import Checkpoint, key_of
from spanloop.simulation.problem import Task
from spanloop.simulation.rollout import rollout
from spanloop.simulation.samples import End, Samples, gathered
from spanloop.simulation.state_layout import Layout
from spanloop.simulation.termination import CLOSE, Ending
from spanloop.simulation.time_grid import MOST_STEPS, Grid
from spanloop.simulation.time_loop import Bar, Job, Progress, run
from spanloop.trajectory import Trajectory


def integrate(task: Task, times: Grid, method: str, checkpoint=None, progress: bool | None = None) -> Trajectory:
    """The motion on this grid of times."""
    layout = Layout.of(task.system, task.watch, task.dtype)
    compiled = rollout(task.system, task.watch, method, task.dtype, task.threads)
    controls = task.inputs.rows(task.batch, times.steps, _told(task, layout))
    constants = np.ascontiguousarray(task.constants, compiled.dtype)
    job = Job(compiled, times, constants, controls, task.drive.inputs)
    p = job.begin(task.state(layout), task.model.nq + task.model.nv + task.drive.memory)
    kept = None
    if checkpoint is not None:
        told = "callback" if callable(controls) else controls
        kept = Checkpoint(checkpoint, key_of(compiled.key, times, p.state, constants, told), times.every)
        kept.resume(p)
    bar = Bar(times.steps, times.h, len(task), progress)
    run(job, p, lambda p: bar.tell(p.done), kept.keep if kept else lambda p: None)
    bar.end()
    if kept is not None and p.interrupted:
        kept.write(p)
    elif kept is not None:
        kept.remove()
    return _trajectory(task, job, p, layout, method)


def _told(task: Task, layout: Layout):
    """What a callback is told of the rows of state: q and v with the batch's axes."""

    def told(state: np.ndarray) -> list[np.ndarray]:
        return [state[:, layout.places[n]].reshape(*task.batch, -1).astype(float) for n in ("q", "v")]

    return told


def _trajectory(task: Task, job: Job, p: Progress, layout: Layout, method: str) -> Trajectory:
    g, model = job.grid, task.model
    ending = Ending(job, task, layout)
    ends = ending.all(p)
    last = int(p.counts.max()) // g.every + 1
    record = p.record[:, :last]
    for k in np.flatnonzero(p.counts < g.steps):
        record[k, p.counts[k] // g.every + 1 :] = np.nan
    nq, nv = model.nq, model.nv
    numbers = np.minimum(g.every * np.arange(last), g.steps - 1)
    samples = Samples(
        job.start + g.h * g.every * np.arange(last),
        record[..., :nq],
        record[..., nq : nq + nv],
        record[..., nq + nv :],
        task.inputs.at(task.batch, np.broadcast_to(numbers, (len(task), last))),
        task.system.plain and (g.every == 1 or (not callable(job.controls) and job.controls.shape[1] == 1)),
    )
    settings: dict[str, Any] = {"integrator": method, "step": g.h}
    residual = None
    if "loops" in layout:
        loops = p.state[:, layout.places["loops"]].astype(float)
        residual, settings["margin"] = loops[:, 0], float(loops[:, 1].min())
        _tell_of_margin(settings["margin"], ends, task.system.minimal)
    steps = np.minimum(p.counts, g.steps - 1)
    at_ends = task.inputs.at(task.batch, steps[:, None])[:, 0]
    return gathered(task, samples, ends, at_ends, settings, residual)


def _tell_of_margin(margin: float, ends: list[End], minimal: bool) -> None:
    """A warning where a run went on through a place at which the motion may not be the only one possible."""
    if margin < CLOSE and not any(e.outcome.reason == "singular" for e in ends):
        if minimal:
            words = (
                f"the legs passed close to a singular position (margin {margin:.1e}, 0 where the actuated joints do "
                "not determine the others), where numbers lose digits. closures='project' loses none there"
            )
        else:
            words = (
                f"the loops passed close to a singular position (margin {margin:.1e}, 0 where they lose rank), where a "
                "mechanism may go on in more than one way; what is computed is the way that its velocities point"
            )
        warnings.warn(f"simulate: {words}", SpanloopWarning, stacklevel=5)


# ---- As accurate as was asked for: steps are halved until halving them changes nothing that matters.


_HALVINGS = 14


class AccuracyError(SpanloopError):
    """The accuracy that was asked for cannot be reached."""


def refined(run: Callable[[Grid], Trajectory], grid: Grid, order: int, accuracy: float) -> Trajectory:
    """run(grid) on grids of shorter and shorter steps; the estimated error of the result is among its settings.

    Two motions with steps h and h/2 differ by (2ᵖ − 1) times the error of the better one, p the order.
    """
    coarse = run(grid)
    factor = 2**order - 1
    best = np.inf
    for _ in range(_HALVINGS):
        grid = grid.halved()
        if grid.steps > MOST_STEPS:
            break
        fine = run(grid)
        error = _difference(coarse, fine) / factor
        if error <= accuracy:
            object.__setattr__(fine, "settings", {**fine.settings, "accuracy": accuracy, "estimated_error": error})
            return fine
        if error > 0.7 * best and np.isfinite(best):  # rounding, or a motion that cannot be foretold
            break
        best, coarse = min(best, error), fine
    raise AccuracyError(
        f"the accuracy {accuracy:g} cannot be reached: with steps of {grid.h:.3g} s the motion is still uncertain by "
        f"{error:.2g} (rad or m). Ask for less, or for a shorter duration: a motion may be chaotic"
    )


def _difference(a: Trajectory, b: Trajectory) -> float:
    """The largest difference of any coordinate at the samples that both have."""
    n = min(len(a), len(b))
    delta = a.robot.difference(a.q[..., :n, :], b.q[..., :n, :])
    well = np.isfinite(delta)
    return float(np.abs(delta[well]).max(initial=0.0))
