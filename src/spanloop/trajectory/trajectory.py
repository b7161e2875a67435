"""`Trajectory`: samples of a motion, and the quantities derived from them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.dynamics.grasp_forces import GraspMargins, Normals, PerLoop, cones
from spanloop.errors import InputError
from spanloop.loops.dynamics_solution import Reactions
from spanloop.model import Model
from spanloop.trajectory import quantities, report, resampling, segment, selection, topologies
from spanloop.trajectory.event_cuts import cut_at_events
from spanloop.trajectory.events import NO_EVENTS, EventTable
from spanloop.trajectory.part import Part, roles
from spanloop.trajectory.segment import Outcome, Segment, Setting, read_only
from spanloop.trajectory.segment_models import robot_of
from spanloop.types import Array

if TYPE_CHECKING:
    from spanloop.trajectory.audit.audit import Audit
    from spanloop.trajectory.contacts.contact_results import Contacts


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """The motion of one run or of a batch of runs, sampled in time; batch axes come first.

    >>> import spanloop as sl
    >>> run = sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.1)
    >>> run.q.shape == (len(run), 3)
    True
    >>> bool(run["crank_hinge"].q[0] == run.q[0, 0])
    True
    >>> len(run.at([0.01, 0.02]))
    2

    run["elbow"].q, run["tool"].pose, run["closing"].force are the quantities of a joint, frame, body or loop; run[3] is
    one run of a batch, up to its end; run[10:20] has some of the samples.

    segments: the samples, one segment for each topology. outcomes: how each run ended, in C order of the batch.
    settings: how the motion was computed (integrator, step, ...). forces: {"body": (..., n, 6)}, [torque; force] at
    body origins in world axes [N m, N]. ends: the located end of each run of a batch, times (...), q (..., 1, nq), ...;
    NaN where there is none. residual (...): the largest closure error of any step [rad, or of its loop's
    length]; None for a tree.
    parameters (..., k): masses, lengths, ... of each run, packed as model.parameters(), where runs of a batch differ in
    them; run[3] then has its own model, and derived quantities are those of single runs.
    events: what happened, a row an event; print it. A single run is cut at its events: a segment ends with the state
    before one, the next begins with the state after it, and each has the model with its closed loops. A batch keeps its
    samples, and run[3] is cut.
    earlier: settings of the runs that this one continues, the first one first (run.continued).
    surfaces (..., contacts, 2): friction and restitution of contacts, where runs of a batch differ in them; run[3] has
    a model with its own.
    """

    model: Model
    segments: tuple[Segment, ...]
    outcomes: tuple[Outcome, ...]
    settings: Mapping[str, Setting]
    forces: Mapping[str, Array] | None = None
    ends: Segment | None = None
    residual: Array | None = None
    parameters: Array | None = None
    events: EventTable = NO_EVENTS
    earlier: tuple[Mapping[str, Setting], ...] = ()
    surfaces: Array | None = None

    def __post_init__(self) -> None:
        segments = segment.checked_segments(self.model, self.segments)
        batch, count = segments[0].batch, sum(map(len, segments))
        ends = segment.checked_ends(segments, self.ends)
        models = [self.model, *(s.model for s in segments if s.model is not None)]
        forces = segment.checked_forces(models, (*batch, count), self.forces)
        if not batch:
            segments, forces = selection.settled(segments, ends, forces)
            ends = None
            if self.events is not NO_EVENTS:
                segments, forces = cut_at_events(self.model, segments, forces, self.events)
        values = {
            "segments": segments,
            "outcomes": segment.checked_outcomes(batch, self.outcomes),
            "settings": segment.checked_settings(self.settings),
            "earlier": tuple(segment.checked_settings(x) for x in self.earlier),
            "forces": forces,
            "ends": ends,
            "residual": None if self.residual is None else read_only(self.residual, "residual"),
            "parameters": None if self.parameters is None else read_only(self.parameters, "parameters"),
            "surfaces": None if self.surfaces is None else read_only(self.surfaces, "surfaces"),
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
    def times(self) -> Array:
        """Times (n,) of the samples [s]; where the topology changes a time occurs twice, before and after."""
        return self._joined("times", 0)

    @cached_property
    def q(self) -> Array:
        """Coordinates (..., n, nq)."""
        return self._joined("q")

    @cached_property
    def v(self) -> Array:
        """Rates (..., n, nv) [rad/s, m/s]."""
        return self._joined("v")

    @cached_property
    def tau(self) -> Array:
        """Torques and forces that acted at the joints (..., n, nv) [N m, N]; of a driven joint, its acceleration."""
        return self._joined("tau")

    @cached_property
    def memory(self) -> Array | None:
        """States of controllers and actuators (..., n, nz), if there are any, and as many in all segments."""
        widths = {None if s.memory is None else s.memory.shape[-1] for s in self.segments}
        return None if None in widths or len(widths) > 1 else self._joined("memory")

    @cached_property
    def pieces(self) -> tuple[Trajectory, ...]:
        """The segments as runs of their own, each with its own model."""
        if len(self.segments) == 1 and self.segments[0].model in (None, self.model):
            return (self,)
        return tuple(selection.piece(self, k) for k in range(len(self.segments)))

    def _joined(self, name: str, axis: int = -2) -> Array:
        if len(self.segments) == 1:
            only: Array = getattr(self.segments[0], name)
            return only
        if name != "times" and not topologies.has_same_joints(self):
            raise InputError(
                f"run.{name}: the segments of this run have models with different joints. Use run.segments[k].{name}, "
                f'or run["joint"].{name}, which is NaN where there is no such joint'
            )
        return read_only(np.concatenate([getattr(s, name) for s in self.segments], axis=axis), name)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.times[-1] - self.times[0])

    @property
    def step(self) -> float:
        """The integrator's step [s]; if it is not among the settings, the time between samples, NaN if that varies."""
        step = self.settings.get("step")
        if isinstance(step, (int, float)):
            return float(step)
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

    # ---- selection

    @overload
    def __getitem__(self, key: str) -> Part: ...

    @overload
    def __getitem__(self, key: int | slice | tuple[int | slice, ...]) -> Trajectory: ...

    def __getitem__(self, key: str | int | slice | tuple[int | slice, ...]) -> Part | Trajectory:
        """A part by its name; one run of a batch by numbers; samples by a slice; run[3, 10:20] for both.

        Of a batch runs[7] is a run, and runs[0:3] are the first three samples of all runs.
        """
        if isinstance(key, str):
            roles(self, key)
            return Part(self, key)
        keys = key if isinstance(key, tuple) else (key,)
        samples = keys[-1] if keys and isinstance(keys[-1], slice) else None
        try:
            numbers: Any = keys if samples is None else keys[:-1]
            index = tuple(operator.index(k) for k in numbers)
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

    def at(self, times: ArrayLike) -> Trajectory:
        """The run at other times (k,) [s] within it, to fourth order in the time between samples; exact at samples."""
        return resampling.at(self, times)

    def every(self, gap: float) -> Trajectory:
        """The run at its first time and every `gap` [s] after it."""
        return resampling.every(self, gap)

    def changed(self, **changes: Any) -> Trajectory:
        """The same run with other fields; the kernels are shared."""
        if self.forces and "segments" in changes:  # those on bodies of the segments that are left
            model, forces = changes.get("model", self.model), changes.get("forces", self.forces)
            models = [model, *(s.model for s in changes["segments"] if s.model is not None)]
            bodies = {b.name for m in models for b in m.bodies}
            changes["forces"] = {name: six for name, six in (forces or {}).items() if name in bodies} or None
        other = replace(self, **changes)
        if other.model is self.model and self.parameters is None:
            other.__dict__["robot"] = self.robot
        return other

    @property
    def recipe(self) -> Any:
        """How sl.simulate made the run, for live pages; None of a part of a run, a changed one, or one of a file."""
        return self.__dict__.get("_recipe")

    def with_recipe(self, recipe: Any) -> Trajectory:
        """This run, which remembers how it was made as long as it is in memory."""
        self.__dict__["_recipe"] = recipe
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if name != "_recipe"}

    # ---- derived quantities; NaN after a run's end

    @cached_property
    def robot(self) -> Dynamics:
        """The kernels of the model."""
        if self.parameters is not None:
            raise InputError(
                "the runs of this batch have parameters of their own, and with them masses and lengths; derived "
                "quantities are those of one run: run[0].energy"
            )
        return Dynamics(self.model) if self.segments[0].closed is None else robot_of(self.model)

    @cached_property
    def contacts(self) -> Contacts:
        """The contacts by name, with gap, force, slip, state, ... at samples: run.contacts["foot"].force; print it."""
        from spanloop.trajectory.contacts.contact_results import Contacts

        return Contacts(self)

    @cached_property
    def acting(self) -> Mapping[str, Array]:
        """{"body": (..., n, 6)}: what pushes on bodies, `forces` and contacts, as [torque; force] at their origins.

        World axes [N m, N]. Contacts push with their mean force over the step that ends at the sample.
        """
        if all(s.contact_forces is None for s in self.segments):
            return self.forces or {}
        from spanloop.trajectory.contacts.contact_samples import contact_wrenches

        found = dict(self.forces or {})
        for name, six in contact_wrenches(self).items():
            found[name] = read_only(found[name] + six if name in found else six, "acting")
        return found

    @cached_property
    def a(self) -> Array:
        """Accelerations (..., n, nv) under the torques and forces that acted, those of contacts included (`acting`)."""
        return quantities.accelerations(self)

    @cached_property
    def energy(self) -> Array:
        """Kinetic and potential energy (..., n, 2) [J]."""
        return quantities.of_bodies(self, "energy", "q", "v")

    @cached_property
    def strain_energy(self) -> Mapping[str, Array]:
        """Strain energy (..., n) of each flexible body by name [J]; a part of the potential energy.

        NaN where a body is not in the model.
        """
        return quantities.strain_energy(self)

    @cached_property
    def momentum(self) -> Array:
        """[angular; linear] momentum (..., n, 6) about the centre of mass in world axes [N m s, N s]."""
        return quantities.of_bodies(self, "momentum", "q", "v")

    @cached_property
    def center_of_mass(self) -> Array:
        """Centre of mass (..., n, 3) in the world [m]."""
        return quantities.of_bodies(self, "center_of_mass", "q")

    @cached_property
    def closure_error(self) -> Array:
        """Errors (..., n, n_rows) of all closure rows: of the loops, then of the couplings [m or rad].

        NaN in the rows of loops and couplings while they are open; run["grip"].error has how far they are from closed.
        """
        return quantities.closure_error(self)

    @cached_property
    def closure_residual(self) -> Array:
        """The largest closure error (..., n) of each sample [m or rad], of loops that are closed; 0 without any."""
        return quantities.closure_residual(self)

    @cached_property
    def velocity_residual(self) -> Array:
        """The largest rate (..., n) at which a closed loop opens [m/s or rad/s]; 0 without any."""
        return quantities.velocity_residual(self)

    @cached_property
    def _reactions(self) -> Reactions:
        return quantities.reactions(self)

    def reactions(self) -> Reactions:
        """[torque; force] (..., n, 6) of every joint on its child and every loop on its body b, by name, world axes.

        Forces of contacts count with their mean over the step that ends at a sample.
        """
        return self._reactions

    def grasp_margin(
        self,
        friction: PerLoop,
        torsion: PerLoop | None = None,
        *,
        normal: Normals | None = None,
        loops: Iterable[str] | None = None,
    ) -> GraspMargins:
        """By loop, the pressing force (..., n) [N] that a grasp had to spare before it slips; negative: missing.

        Arguments as of robot.grasp_margin.
        """
        from spanloop.trajectory.grasp_margins import grasp_margins

        return grasp_margins(self, cones(self.model, friction, torsion, normal, loops, "grasp_margin"))

    # ---- going on

    def continued(
        self, model: Model | Dynamics | None = None, *, duration: float | None = None, **options: Any
    ) -> Trajectory:
        """The run and what follows it, with another model or the same: bodies added or gone, other joints, other loops.

        It goes on at the time of its end, from its last sample. A joint of the same name and kind keeps its coordinates
        and rates. A new joint of a body that was there before takes over the body's motion, or an error says why it
        cannot. Joints of new bodies start at rest at their default positions. Loops that are new close in a plastic
        impact, with impulse and energy lost in run.events; one that is open is refused with how far. Runs of a batch go
        on from their own ends, and must end at one time; those that failed stay ended.

        Args:
            model: a Model or a Dynamics; that of the last segment by default.
            duration: of what follows [s].
            options: q and v, {"joint": value}, of joints that are to have another state; and all others of sl.simulate:
                controller, events, closures, ... Controllers start without memory; contacts= is that of the run.

        Returns:
            One Trajectory: the segments of both, each with its model; settings are those of the last run, `earlier` has
            those of the runs before it.

        Raises:
            InputError: a joint is new, and cannot hold its body as it is.
            StateError: the run failed, or a loop of the new model is open.

        Example:
            >>> model = sl.zoo.four_bar()
            >>> run = sl.simulate(model, sl.zoo.four_bar_start(), duration=0.1)
            >>> cut = run.continued(model.remove(model.loops[0].name, kind="loop"), duration=0.1)
            >>> [len(s.model.loops) for s in cut.segments], cut.events.kind.tolist()
            ([1, 0], ['continued', 'release'])
        """
        from spanloop.simulation.continuation.continued_run import continued

        if duration is None:
            raise InputError(
                "run.continued: expected duration, the time that follows [s]: continued(model, duration=1.0)"
            )
        return continued(self, model, duration=duration, **options)

    # ---- audit

    def audit(self, *, meshes: bool = False, **bounds: float) -> Audit:
        """Check energy, momentum, closures, contacts, quaternions and limits of the motion, each against its bound.

        bounds: energy=1e-6 and momentum=1e-6, relative to what the motion exchanges, closure=1e-9 rad or of the loop's
        length, velocity=1e-8 of that in a second, quaternion=1e-9, step=1e-3: the errors of all steps over the largest
        speed; residual=1e-9 m/s and penetration=1e-6 m of contacts. Of runs in float32: 1e-5, 1e-5, 1e-5, 1e-4, 1e-6,
        1e-3, 1e-4, 1e-4. Of flexible bodies: strain=0.01 of a fibre, slope=0.2 rad, truncation=0.01 of the strain
        energy in the last mode of a direction, modes=1e-4 of the energy in modes that steps do not resolve.
        meshes=True: also measures, with MuJoCo, whether collision shapes without a contact overlap
        (docs/contacts.md).
        """
        from spanloop.trajectory.audit.audit import audit

        return audit(self, meshes=meshes, **bounds)

    # ---- files

    def save(self, path: str | Path) -> None:
        """Write the run to a .nc or .h5 (netCDF-4), .npz or .csv file (one run), completely or not at all."""
        from spanloop.trajectory.files.storage import save

        save(self, path)

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """Read a run from a .nc, .h5 or .npz file, bit for bit."""
        from spanloop.trajectory.files.storage import load_run

        return load_run(path)

    # ---- text

    def __repr__(self) -> str:
        return report.line(self)

    def __str__(self) -> str:
        return report.report(self)

    def _repr_html_(self) -> str:
        return report.html(self)

    # ---- sensors

    def sensor(self, name: str) -> dict[str, Array]:
        """The readings of a sensor of the model by name, with its times: run.sensor("imu")["specific_force"]."""
        from spanloop.trajectory.sensors import sensed

        return sensed(self, name)

    # ---- pictures

    def plot(self, what: str, names: Sequence[str] | str | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw a figure with matplotlib: "q", "v", "a", "tau", "reactions", "contacts", "energy", "closure_residual",
        "phase", or of flexible bodies "deflection" and "modes".

        names: of the joints, loops or contacts in it; all by default. ax: axes to draw on. Returns the axes, a tuple of
        them if units differ; spanloop.view.plots documents the options of each figure.
        """
        from spanloop.view.plots import plot

        return plot(self, what, names, ax=ax, **options)

    def view(self, *, port: int = 0, block: bool = True, **options: Any) -> Any:
        """Show the run in the browser, with a timeline; see spanloop.view.viewer.show."""
        from spanloop.view.viewer import show

        return show(self, port=port, block=block, **options)

    def show(self, *, height: int = 640, **options: Any) -> Any:
        """The page of the run inside a notebook, `height` pixels high: leave run.show() as the last line of a cell.

        options: those of run.page, live=True among them.
        """
        from spanloop.view.page.inline import InlinePage

        return InlinePage.of(self, height, **options)

    def page(self, path: str | Path, **options: Any) -> Any:
        """Write the run as one HTML file: animation, plots and audit, for any browser, without a network.

        live=True: the mechanism also runs in the page from the run's first state, and can be grabbed and pulled.
        """
        from spanloop.view.page import write

        return write(self, path, **options)

    def video(self, path: str | Path, **options: Any) -> Path:
        """Write the run as a video, .mp4 or .gif; see spanloop.view.video.write for size, fps, speed and view.

        view=(azimuth, elevation) is in radians: (0, 0) looks from +x, (0, 1.57) from above.
        A .gif needs pillow, an .mp4 imageio-ffmpeg (or ffmpeg on the machine).
        """
        from spanloop.view.video import write

        return write(self, path, **options)
