"""Samples and ends of runs, gathered into a Trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import spanloop
from spanloop.simulation.problem import Task
from spanloop.trajectory import Outcome, Segment, Trajectory


@dataclass(frozen=True)
class Samples:
    """times (s,); q, v, z (memory), u (inputs): (n, s, width), NaN after a run's end."""

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    held: bool = False  # are torques constant from each sample to the next?


@dataclass(frozen=True)
class State:
    """One state of one run."""

    q: np.ndarray
    v: np.ndarray
    z: np.ndarray


@dataclass(frozen=True)
class End:
    """How one run ended: in words, and the state there (None where that is the last sample)."""

    outcome: Outcome
    state: State | None = None


def gathered(
    task: Task,
    samples: Samples,
    ends: Sequence[End],
    inputs_at_ends: np.ndarray,
    settings: Mapping[str, Any],
    residual: np.ndarray | None,
) -> Trajectory:
    """The Trajectory of a task. inputs_at_ends (n, width); residual (n,): largest closure errors."""
    n, count = samples.q.shape[:2]

    def flat(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, (n, count, x.shape[-1])).reshape(n * count, x.shape[-1])

    def shaped(x: np.ndarray) -> np.ndarray:
        return x.reshape(*task.batch, count, x.shape[-1])

    t = np.broadcast_to(samples.times, (n, count)).reshape(-1, 1)
    tau, forces = task.pushes(t, *(flat(x) for x in (samples.q, samples.v, samples.u, samples.z)))
    memory = shaped(samples.z) if samples.z.shape[-1] else None
    segment = Segment(
        times=samples.times, q=shaped(samples.q), v=shaped(samples.v), tau=shaped(tau), memory=memory, held=samples.held
    )
    closures = task.system.closures if task.system.closed else "no loops"
    known = {"closures": closures, "method": task.system.chosen_method, "dtype": task.dtype}
    known |= {"spanloop": spanloop.__version__} | ({"note": task.note} if task.note else {})
    six = shaped(forces)
    return Trajectory(
        task.model,
        (segment,),
        tuple(e.outcome for e in ends),
        {**settings, **known},
        forces={b: six[..., 6 * k : 6 * k + 6] for k, b in enumerate(task.drive.bodies)} or None,
        ends=_ends(task, ends, inputs_at_ends),
        residual=None if residual is None else residual.reshape(task.batch),
    )


def _ends(task: Task, ends: Sequence[End], u: np.ndarray) -> Segment | None:
    """The located ends, NaN where a run has none."""
    if all(e.state is None for e in ends):
        return None
    sizes = {"q": task.model.nq, "v": task.model.nv, "z": task.drive.memory}
    rows = {
        name: np.array([np.full(size, np.nan) if e.state is None else getattr(e.state, name) for e in ends], float)
        for name, size in sizes.items()
    }
    times = np.array([np.nan if e.state is None else e.outcome.time for e in ends])
    u = np.broadcast_to(u, (len(ends), u.shape[-1]))
    tau, _ = task.pushes(times[:, None], rows["q"], rows["v"], u, rows["z"].reshape(len(ends), -1))

    def shaped(x: np.ndarray) -> np.ndarray:
        return x.reshape(*task.batch, 1, x.shape[-1])

    memory = shaped(rows["z"]) if sizes["z"] else None
    return Segment(times.reshape(task.batch), shaped(rows["q"]), shaped(rows["v"]), shaped(tau), memory)
