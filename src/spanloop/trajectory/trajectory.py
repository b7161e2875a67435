"""Trajectory: a motion that can be asked for what happened in it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.loops.solution import Reactions
from spanloop.model import Model
from spanloop.trajectory import quantities, report, resampling, segment, selection
from spanloop.trajectory.part import Part, roles
from spanloop.trajectory.segment import Outcome, Segment, read_only

if TYPE_CHECKING:
    from spanloop.trajectory.audit.audit import Audit


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """A motion of one run or of a batch of runs, sampled in time; batch axes come first, as everywhere.

    segments: the samples, a segment for each topology. outcomes: how each run ended, in C order of the batch.
    settings: how the motion was made (method, step, ...). forces: (..., n, 6) by body, [torque; force] at its origin in
    world axes. ends: the located end of each run of a batch, times (...), q (..., 1, nq), ...; NaN where it has none.
    residual (...): the largest closure error that was met at any step, where it was measured.

    run["elbow"].q, run["tool"].pose, run["closing"].force give what belongs to a part; run[3] one run of a batch,
    up to its end; run[10:20] samples.
    """

    model: Model
    segments: tuple[Segment, ...]
    outcomes: tuple[Outcome, ...]
    settings: Mapping[str, str | float | int | bool]
    forces: Mapping[str, np.ndarray] | None = None
    ends: Segment | None = None
    residual: np.ndarray | None = None

    def __post_init__(self):
        segments = segment.checked_segments(self.model, self.segments)
        batch, count = segments[0].batch, sum(map(len, segments))
        ends = segment.checked_ends(segments, self.ends)
        forces = segment.checked_forces(self.model, (*batch, count), self.forces)
        if not batch:
            segments, forces = selection.settled(segments, ends, forces)
            ends = None
        values = {
            "segments": segments,
            "outcomes": segment.checked_outcomes(batch, self.outcomes),
            "settings": segment.checked_settings(self.settings),
            "forces": forces,
            "ends": ends,
            "residual": None if self.residual is None else read_only(self.residual, "residual"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # ---- samples

    def __len__(self) -> int:
        """Number of samples in time."""
        return sum(map(len, self.segments))

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; () for one run."""
        return self.segments[0].batch

    @cached_property
    def times(self) -> np.ndarray:
        """Times (n,) of the samples [s]; where topology changes a time stands twice, before and after."""
        return self._joined("times", 0)

    @cached_property
    def q(self) -> np.ndarray:
        """Coordinates (..., n, nq)."""
        return self._joined("q")

    @cached_property
    def v(self) -> np.ndarray:
        """Rates (..., n, nv)."""
        return self._joined("v")

    @cached_property
    def tau(self) -> np.ndarray:
        """What acted at the joints (..., n, nv); a driven joint's entry is its acceleration."""
        return self._joined("tau")

    @cached_property
    def memory(self) -> np.ndarray | None:
        """States of controllers and actuators (..., n, nz), if there are any."""
        return None if any(s.memory is None for s in self.segments) else self._joined("memory")

    def _joined(self, name: str, axis: int = -2) -> np.ndarray:
        if len(self.segments) == 1:
            return getattr(self.segments[0], name)
        return read_only(np.concatenate([getattr(s, name) for s in self.segments], axis=axis), name)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.times[-1] - self.times[0])

    @property
    def step(self) -> float:
        """The integrator's step [s]; if it is not among the settings, the time between samples, NaN if that varies."""
        given = self.settings.get("step")
        if isinstance(given, (int, float)):
            return float(given)
        gaps = np.diff(self.times)
        even = len(gaps) > 0 and np.ptp(gaps) <= 1e-9 * gaps.max()
        return float(gaps.mean()) if even else math.nan

    @property
    def outcome(self) -> Outcome:
        """How the one run ended."""
        if self.batch:
            raise InputError(
                f"this is a batch of {len(self.outcomes)} runs; run.outcomes has all of them, run[0].outcome is of one"
            )
        return self.outcomes[0]

    # ---- less of it

    def __getitem__(self, key):
        """A part by its name; one run of a batch by numbers; samples by a slice; run[3, 10:20] for both."""
        if isinstance(key, str):
            roles(self.model, key)
            return Part(self, key)
        keys = key if isinstance(key, tuple) else (key,)
        samples = keys[-1] if keys and isinstance(keys[-1], slice) else None
        try:
            index = tuple(operator.index(k) for k in (keys if samples is None else keys[:-1]))
        except TypeError:
            raise InputError(f"run[{key!r}]: expected a name, numbers of runs, or a slice of samples") from None
        run = selection.picked(self, index) if index else self
        return run if samples is None else selection.sampled(run, samples)

    def __iter__(self) -> Iterator[Trajectory]:
        """The runs of a batch, along its first axis."""
        if not self.batch:
            raise InputError("this is one run, not a batch; for its samples use run.times, run.q, run.v")
        return (self[k] for k in range(self.batch[0]))

    def between(self, start: float, stop: float) -> Trajectory:
        """The samples from time start to time stop [s], both included."""
        return selection.between(self, start, stop)

    def at(self, times) -> Trajectory:
        """The run at other times (k,) [s] within it, to fourth order in the time between samples; exact at samples."""
        return resampling.at(self, times)

    def every(self, gap: float) -> Trajectory:
        """The run at its first time and every `gap` [s] after it."""
        return resampling.every(self, gap)

    def changed(self, **changes) -> Trajectory:
        """The same run with other fields; the kernels are shared."""
        other = replace(self, **changes)
        if other.model is self.model:
            other.__dict__["robot"] = self.robot
        return other

    # ---- what follows from the samples; NaN after a run's end

    @cached_property
    def robot(self) -> Dynamics:
        """The kernels of the model."""
        return Dynamics(self.model)

    @cached_property
    def a(self) -> np.ndarray:
        """Accelerations (..., n, nv) under the torques and forces that acted."""
        return quantities.accelerations(self)

    @cached_property
    def energy(self) -> np.ndarray:
        """(..., n, 2): kinetic and potential energy [J]."""
        return quantities.quantity(self, "energy", "q", "v")

    @cached_property
    def momentum(self) -> np.ndarray:
        """(..., n, 6): [angular; linear] momentum about the centre of mass, world axes."""
        return quantities.quantity(self, "momentum", "q", "v")

    @cached_property
    def center_of_mass(self) -> np.ndarray:
        """(..., n, 3): centre of mass in the world [m]."""
        return quantities.quantity(self, "center_of_mass", "q")

    @cached_property
    def closure_error(self) -> np.ndarray:
        """(..., n, n_rows): errors of all closure rows, those of the loops, then of the couplings [m or rad]."""
        return quantities.quantity(self, "closure_error", "q")

    @cached_property
    def closure_residual(self) -> np.ndarray:
        """(..., n): the largest closure error of each sample [m or rad]; 0 without loops."""
        return quantities.closure_residual(self)

    @cached_property
    def velocity_residual(self) -> np.ndarray:
        """(..., n): the largest rate at which a closure opens [m/s or rad/s]; 0 without loops."""
        return quantities.velocity_residual(self)

    @cached_property
    def _reactions(self) -> Reactions:
        return quantities.reactions(self)

    def reactions(self) -> Reactions:
        """[torque; force] (..., n, 6) of every joint on its child and every loop on its body b, by name, world axes."""
        return self._reactions

    # ---- judgement

    def audit(self, **bounds: float) -> Audit:
        """Is this motion to be trusted? Energy, momentum, closures, quaternions, limits, each against its bound.

        bounds: energy=1e-6 and momentum=1e-6 of what is at stake, closure=1e-9 m or rad, velocity=1e-8 m/s or rad/s,
        quaternion=1e-9.
        """
        from spanloop.trajectory.audit.audit import audit

        return audit(self, **bounds)

    # ---- files

    def save(self, path) -> None:
        """Write the run to a .nc or .h5 (netCDF-4), .npz, or .csv file (one run, to look at), completely or not at
        all."""
        from spanloop.trajectory.files.storage import save

        save(self, path)

    @staticmethod
    def load(path) -> Trajectory:
        """The run in a .nc, .h5 or .npz file, bit for bit."""
        from spanloop.trajectory.files.storage import load_run

        return load_run(path)

    # ---- text

    def __repr__(self) -> str:
        return report.line(self)

    def __str__(self) -> str:
        return report.report(self)

    # ---- sensors

    def sensor(self, name: str) -> dict[str, np.ndarray]:
        """What a sensor of the model would have read, by name, with its times: run.sensor("imu")["specific_force"]."""
        from spanloop.trajectory.sensors import sensed

        return sensed(self, name)

    # ---- pictures

    def plot(self, what: str, names=None, *, ax=None, **options):
        """A figure with matplotlib: "q", "v", "a", "tau", "reactions", "energy", "closure_residual" or "phase".

        names: of the joints (or loops) in it, all if not told. ax: axes to draw on. Returns the axes, a tuple of them
        where units differ; see spanloop.view.plots for what each figure takes.
        """
        from spanloop.view.plots import plot

        return plot(self, what, names, ax=ax, **options)

    def view(self, *, port: int = 0, block: bool = True, **options):
        """The run in the browser, with a timeline; see spanloop.view.viewer.show."""
        from spanloop.view.viewer import show

        return show(self, port=port, block=block, **options)

    def page(self, path, **options):
        """Write the run as one HTML file: moving picture, plots and audit, for any browser, without a network."""
        from spanloop.view.page import write

        return write(self, path, **options)
