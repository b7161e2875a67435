"""The problem that a simulation solves: the arguments of sl.simulate, checked; and its samples as a Trajectory."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

import spanloop
from spanloop.contacts.contact_arrays import COEFFICIENTS
from spanloop.contacts.settings import ContactsOfRun, contacts_of
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, Refusal, SpanloopWarning, UnsupportedError
from spanloop.kernels.on_scalars import CLOSURE_INPUTS
from spanloop.loops.arguments import active_row_mask, checked_active_loops
from spanloop.model import Model
from spanloop.model.edits.remove import without_switches
from spanloop.simulation import initial_state
from spanloop.simulation.actuators import actuation
from spanloop.simulation.controllers import AppliedForces, Callback, NoTorques, applied_forces
from spanloop.simulation.events.declared_events import switching_of
from spanloop.simulation.events.endings import Events, Limit, events_of
from spanloop.simulation.events.event_log import SHORT, event_table, plastic_note
from spanloop.simulation.events.rows_read import with_rows_read
from spanloop.simulation.events.switched_start import absent_note, initial_arrays, start_note
from spanloop.simulation.forces import along_loops, together
from spanloop.simulation.inputs import Inputs, constant_forces, constants, inputs_of
from spanloop.simulation.integrators.implicit import linearized
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.stiffness import EXPLICIT, measured, stops_at_limits
from spanloop.simulation.system import Closures, System
from spanloop.simulation.time_loop import STEP
from spanloop.simulation.traced_kernels import kernel
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.trajectory.events import NO_EVENTS, EventTable
from spanloop.trajectory.selection import with_surfaces

LIMITS = ("end", "stop", "ignore")
_WORDS = {"p": "parameters"}


@dataclass(frozen=True)
class Samples:
    """times (s,); q, v, z (memory), u (inputs): (n, s, width), NaN after a run's end."""

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    held: bool = False  # torques are constant from each sample to the next
    active: np.ndarray | None = None  # (n, s, rows) of switches, where events change them
    contacts: np.ndarray | None = None  # (n, s, numbers) of contacts: System.contact_arrays, one after the other


@dataclass(frozen=True)
class End:
    """The outcome of one run, and q, v, z (memory) there; None where the end is the last sample.

    event: number of the one of `Problem.events` that ended it, −1 where none did or where the start meets it.
    """

    outcome: Outcome
    q: np.ndarray | None = None
    v: np.ndarray | None = None
    z: np.ndarray | None = None
    event: int = -1


@dataclass(frozen=True)
class Problem:
    """Runs side by side, from their initial states; rows of arrays are runs in C order of the batch."""

    robot: Dynamics
    q: np.ndarray  # (n, nq)
    v: np.ndarray  # (n, nv)
    batch: tuple[int, ...]
    note: str  # how the initial states were changed
    system: System
    inputs: Inputs
    events: Events
    constants: np.ndarray  # (n or 1, width), in the system's order
    open_loops: tuple[str, ...] = ()  # switchable loops that are not active
    start: float = 0.0  # time of the initial states [s]
    stiff: str = ""  # the joint for which steps are implicit, though nobody asked for it
    advice: str = ""  # where steps are too long for a joint that is stiff
    contacts: str = ""  # how contacts are treated, "" of a model without any

    @staticmethod
    def of(
        robot: Dynamics,
        q: Any,
        v: Any,
        *,
        step: float | None = None,
        method: str | None = None,
        tau: Any = None,
        controller: Any = None,
        inputs: Any = None,
        forces: Any = None,
        closures: str | Closures = "project",
        limits: str = "end",
        events: Any = None,
        parameters: Any = None,
        contacts: Any = "steps",
        start: float = 0.0,
        where: str = "simulate",
    ) -> Problem:
        """The problem of sl.simulate's arguments, each checked; where: begins messages on parameters, q and v."""
        model = robot.model
        if limits not in LIMITS:
            raise InputError(f"limits is {limits!r}; expected 'end', 'stop' or 'ignore'")
        if not (isinstance(start, Real) and np.isfinite(float(start))):
            raise InputError(f"start is {start!r}; expected a time in seconds, a finite number")
        loops = closures if isinstance(closures, Closures) else Closures(closures)
        touching = _contacts(model, contacts, loops.stabilization)
        if loops.stabilization == "minimal" and (model.loops or model.couplings):
            initial_state.refuse_minimal(robot, method)
        active = None if loops.active_loops is None else checked_active_loops(model, loops.active_loops, "simulate")
        switching, ends = None, None
        located = touching.points.names if touching and touching.settings.impacts == "events" else ()
        if events is not None or limits == "stop" or located:
            switching, ends = switching_of(model, events, limits, active, loops.stabilization, located)
        if switching and model.switches:
            active = frozenset(switching.begins_closed)
        fixed = constants(model, loops, parameters, active, where)
        acting = _forces(model, forces, loops, active, fixed.get("p"))
        controls = inputs_of(model, tau, controller, inputs, acting)
        commanding = None if isinstance(controller, Callback) else controller
        applied = applied_forces(
            model,
            NoTorques(model) if controller is None and inputs is not None else commanding,
            controls.width if controls.exist else None,
            actuation(model, step) if model.actuators else None,
            acting,
        )
        strict = robot.on_singular == "raise"
        shapes = {"tau and inputs": controls.batch} | {_WORDS.get(n, n): x.shape[:-1] for n, x in fixed.items()}
        shapes |= switching.shapes if switching else {}
        shapes |= {initial_state.SURFACES: touching.constants()["contact.k"].shape[:-1]} if touching else {}
        initial_state.runs(shapes, where)
        moments = switching.constants() if switching else {}
        started = robot._with_active_loops(active)
        rows_q, rows_v, batch = initial_state.states(started, q, v, shapes, fixed.get("p"), where)
        near = None if parameters is not None else initial_state.assembly(started, rows_q)
        if near is not None and "active" in fixed:
            fixed["active"] = active_row_mask(model, frozenset(model.switches if active is None else active), near)
        system = System(model, applied, method, loops.stabilization, parameters is not None, strict, near)
        if limits == "stop":
            h = step if isinstance(step, (int, float)) and step > 0.0 else STEP
            system = replace(system, stops=stops_at_limits(model, h))
        if touching:
            ends_at_jams, overlap = touching.settings.on_jam == "end", float(touching.settings.overlap)
            system = replace(system, contacts=touching.points, ends_at_jams=ends_at_jams, overlap=overlap)
            fixed |= touching.constants()
        rows = _joined([fixed[n] for n in system.constants], batch)
        rows_q, rows_v, note = initial_state.closed(started, system, rows_q, rows_v, rows)
        if switching:
            switching = with_rows_read(switching.with_masks(rows_q[0]), rows_q[0])
            switching.refuse_undetermined()
            note = "; ".join(filter(None, (note, absent_note(switching, rows_v))))
            rows_v = switching.without_absent(rows_v)
            system = replace(system, model=switching.model, switching=switching, stops=switching.soft(system.stops))
            rows = _joined([(fixed | moments)[n] for n in system.constants], batch)
        if touching:
            initial_state.refuse_overlaps(robot, system, rows_q, fixed, batch)
        watched = events_of(model, limits == "end" and not switching, ends)
        fixed_open = active is not None and not switching
        opened = tuple(name for name in model.switches if name not in (active or ())) if fixed_open else ()
        treated = "" if not model.contacts else "ignore" if touching is None else touching.settings.impacts
        made = Problem(robot, rows_q, rows_v, batch, note, system, controls, watched, rows, opened, float(start))
        for words in made.notes_on_limits(rows_q):
            warnings.warn(f"simulate: {words}", SpanloopWarning, stacklevel=3)
        return replace(made, contacts=treated)

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self.robot.model

    @property
    def applied(self) -> AppliedForces:
        """What acts on the mechanism."""
        return self.system.applied

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.q)

    def notes_on_limits(self, q: np.ndarray) -> list[str]:
        """Sentences on joints that are, in runs that start at q (n, nq), beyond a stop or a limit that ends them."""
        switching, stops, ends = self.system.switching, list[Limit](), list(self.events.limits)
        if switching is not None:
            ends = [w.limit for w in switching.watchers if w.kind == "limit" and w.limit is not None]
            stops = [x for s in switching.switches for x in (s.lower, s.upper) if x]
        both = initial_state.note_on_limits(stops, q, is_stop=True), initial_state.note_on_limits(ends, q)
        return [words for words in both if words]

    def state(self, layout: StateLayout) -> np.ndarray:
        """Rows (n, width) of what is carried from step to step, at the start."""
        state = np.zeros((len(self), layout.width))
        state[:, layout.places["q"]], state[:, layout.places["v"]] = self.q, self.v
        if "loops" in layout:
            state[:, layout.places["loops"]] = (0.0, 1.0)[: layout.sizes["loops"]]
        if "z" in layout:
            state[:, layout.places["z"]] = self.applied.start()
        if "tracked" in layout:
            state[:, layout.places["tracked"]] = self.system.tracked.start
        if self.system.contacts:
            state[:, layout.places["contact.gap"]] = self.system.gaps(self.q, self.constant_rows())
        if self.system.switching:
            for name, rows in self.switched_start.items():
                state[:, layout.places[name]] = rows
        elif "g" in layout:
            state[:, layout.places["g"]] = self.event_values(np.full((len(self), 1), self.start), self.q, self.v)
        return state

    @cached_property
    def switched_start(self) -> dict[str, np.ndarray]:
        """What runs with events carry at the start beside q and v, arrays (n or 1, size) by name."""
        return initial_arrays(self)

    def event_values(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Values (n, events) at rows t (n, 1), q, v: positive while a run goes on."""
        sizes = {"t": 1, "q": self.model.nq, "v": self.model.nv}

        def compute(x: Mapping[str, Sequence[Any]]) -> tuple[list, tuple]:
            return self.events.values(x), ()

        return kernel("events", sizes, len(self.events), compute, self.events.key())(t, q, v)

    def torques_and_forces(self, t, q, v, u, z, active=None, runs=None) -> tuple[np.ndarray, np.ndarray]:
        """Torques (n, nv) and forces (n, 6 each) at rows t (n, 1), q, v, u, z; NaN where a row is.

        active (n, rows): of switches, where events change them. runs (n,): of each row; run after run by default.
        """
        nv, count = self.model.nv, 6 * len(self.applied.bodies)
        out = np.full((len(q), nv + count), np.nan)
        finite = np.isfinite(q).all(axis=1) & np.isfinite(u).all(axis=1)
        if self.system.inputs_are_torques:
            out[finite] = u[finite]
            return out, out[:, nv:]
        closures = self._constants_at(len(q), CLOSURE_INPUTS, runs)
        if active is not None and active.shape[-1]:
            closures = {"active": active, **closures}
        sizes = {"t": 1, "q": self.model.nq, "v": nv, "u": self.applied.inputs, "z": self.applied.memory}
        sizes |= {name: x.shape[-1] for name, x in closures.items()}

        def compute(x: Mapping[str, Sequence[Any]]) -> tuple[list, tuple]:
            tau, forces = self.system.torques(x)
            return [*tau, *forces], ()

        found = kernel("torques", sizes, nv + count, compute, self.system.key())
        if finite.any():
            rows = (t, q, v, u, z, *closures.values())
            out[finite] = found(*(np.ascontiguousarray(x[finite], float) for x in rows))
        return out[:, :nv], out[:, nv:]

    def _constants_at(self, n: int, names: Collection[str], runs: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Those of these constants that the system has, by name: rows (n, size) for n samples.

        runs (n,): of each sample; run after run by default.
        """
        of_runs = [self.constants_of(k) for k in range(len(self.constants))]
        chosen = [name for name in self.system.constants if name in names]
        if runs is not None:
            every = self.constant_rows()
            return {name: np.broadcast_to(every[name], (len(self), every[name].shape[-1]))[runs] for name in chosen}
        return {name: np.repeat([c[name] for c in of_runs], n // len(of_runs), axis=0) for name in chosen}

    def margin(self, q: np.ndarray, switched: Mapping[str, np.ndarray] = MappingProxyType({})) -> float:
        """The smallest margin at rows q (n, samples, nq) that are finite; NaN where it is not known.

        switched: arrays (n, samples, size) that events change.
        """
        if not self.system.measures_margin:
            return np.nan
        finite = np.isfinite(q).all(axis=-1)
        given = {n: x[finite.ravel()] for n, x in self._constants_at(finite.size, ("p", "active")).items()}
        given |= {n: np.ascontiguousarray(x[finite]) for n, x in switched.items()}
        sizes = {"q": self.model.nq, "v": self.model.nv} | {n: x.shape[-1] for n, x in given.items()}

        def compute(x: Mapping[str, Sequence[Any]]) -> tuple[list, tuple]:
            return [self.system.margin(x)], ()

        found = kernel("margin", sizes, 1, compute, self.system.key())
        return float(found(q[finite], np.zeros(self.model.nv), *given.values()).min(initial=1.0))

    def margin_of(self, q: np.ndarray, run: int, switched: Mapping[str, Any] = MappingProxyType({})) -> float:
        """The margin at one state q (nq,), on floats; 1 where it is not known. switched: arrays that events change."""
        if not self.system.measures_margin:
            return 1.0
        return float(self.system.margin(self._floats(run, q=q, v=np.zeros(self.model.nv), **switched)))

    def constants_of(self, run: int) -> dict[str, np.ndarray]:
        """The constants of one run by name, in the system's order."""
        row, at, out = self.constants[run if len(self.constants) > 1 else 0], 0, {}
        for name in self.system.constants:
            size = self.system.sizes[name]
            out[name] = np.ascontiguousarray(row[at : at + size], float)
            at += size
        return out

    def constant_rows(self) -> dict[str, np.ndarray]:
        """The constants (n or 1, size) of all runs by name."""
        sizes = [self.system.sizes[name] for name in self.system.constants]
        ends = np.cumsum(sizes)
        return {n: self.constants[:, e - k : e] for n, e, k in zip(self.system.constants, ends, sizes, strict=True)}

    @cached_property
    def system_at_start(self) -> System:
        """The system whose loops a start closes: without what events switch later, and the frames that these hold."""
        return replace(self.system, model=self.model, switching=None) if self.system.switching else self.system

    def closed(self, q: np.ndarray, v: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        """Starts q, v (n, ...) of the runs of these numbers with the loops closed: initial_state.closed."""
        system, switching = self.system_at_start, self.system.switching
        rows = {name: x[runs] if len(x) > 1 else x[0] for name, x in self.constant_rows().items()}
        if switching and self.model.switches:
            rows["active"] = active_row_mask(self.model, frozenset(switching.begins_closed), system.near)
        constants = _joined([rows[name] for name in system.constants], (len(runs),))
        return initial_state.closed(self.robot, system, q, v, constants)

    def refusal(
        self, t: float, q, v, z, u, run: int, h: float = 0.0, switched: Mapping[str, Any] = MappingProxyType({})
    ) -> Refusal | None:
        """Why this one state has no accelerations; None if it has. h: length of the step, of implicit ones [s].

        switched: arrays that events change.
        """
        x = self._floats(run, t=t, h=h, q=q, v=v, z=z, u=u, **switched)
        return self.system.refusal({**x, **linearized(self.system, x)} if self.system.implicit else x)

    def passing(self, t: float, q, v, z, run: int, h: float, present: Sequence[float] = ()) -> Refusal | None:
        """Why a step of length h [s] from this state can pass through a shape of a contact; None if it cannot.

        present: 1 or 0 for bodies that come and go.
        """
        if not self.system.contacts:
            return None
        from spanloop.contacts.tunnel_guard import passing

        there = [all(present[k] > 0.5 for k in own) for own in self.system.bodies_of_points]
        return passing(self.system.contact_mechanics, self._floats(run, t=t, h=h, q=q, v=v, z=z), h, there)

    def too_stiff(self, t: float, q, v, z, u, run: int, h: float, integrator: str) -> str:
        """A sentence on the joint that is too stiff for steps of h [s], at or near this one state; "" if none is."""
        if self.advice or self.applied.inputs_are_torques:
            return self.advice
        try:
            found = measured(self.system, self._floats(run, t=t, q=q, v=v, z=z, u=u))
        except InputError:  # torques beside this state are no numbers: the run has another cause
            return ""
        return found.advice(h, integrator) if found is not None and found.rate * h > EXPLICIT else ""

    def _floats(self, run: int, **arrays: Any) -> dict[str, list[float]]:
        """Arrays of one state, and the constants of its run, as lists."""
        return {n: [float(y) for y in np.ravel(a)] for n, a in (arrays | self.constants_of(run)).items()}

    def trajectory(
        self,
        samples: Samples,
        ends: Sequence[End],
        inputs_at_ends: np.ndarray,
        settings: Mapping[str, Any],
        residual: np.ndarray | None,
        log: Sequence[np.ndarray] = (),
    ) -> Trajectory:
        """The Trajectory of all runs.

        inputs_at_ends (n, width); residual (n,): largest closure errors; log: of events, stretch by stretch.
        """
        n, count = samples.q.shape[:2]

        def flat(x: np.ndarray) -> np.ndarray:
            return np.broadcast_to(x, (n, count, x.shape[-1])).reshape(n * count, x.shape[-1])

        def shaped(x: np.ndarray) -> np.ndarray:
            return x.reshape(*self.batch, count, x.shape[-1])

        t = np.broadcast_to(samples.times, (n, count)).reshape(-1, 1)
        active = None if samples.active is None else flat(samples.active)
        q, v, u, z = (flat(x) for x in (samples.q, samples.v, samples.u, samples.z))
        tau, forces = self.torques_and_forces(t, q, v, u, z, active)
        memory = shaped(samples.z) if samples.z.shape[-1] else None
        q, v = shaped(samples.q), shaped(samples.v)
        segment = Segment(times=samples.times, q=q, v=v, tau=shaped(tau), memory=memory, held=samples.held)
        closures = self.system.closures if self.system.has_loops else "no loops"
        known: dict[str, Any] = {
            "closures": closures,
            "method": self.system.chosen_method,
            "spanloop": spanloop.__version__,
        }
        known |= {"limits": "stop"} if self.system.has_stops else {}
        known |= {"contacts": self.contacts} if self.contacts else {}
        known |= {"open_loops": ", ".join(self.open_loops)} if self.open_loops else {}
        if self.system.has_loops and "margin" not in settings:
            known["margin"] = self.margin(samples.q)
        table, notes = NO_EVENTS, [self.note]
        if self.system.switching:
            gap = float(np.diff(samples.times).min(initial=np.inf)) if count > 1 else 0.0
            step = float(settings.get("step", gap))
            table = event_table(self, log, step, str(settings.get("dtype", "float64")))
            notes += [start_note(self), plastic_note(self.system.switching, table)]
        if samples.contacts is not None:
            segment = replace(segment, **self._of_contacts(samples, table, float(settings["step"])))
        known |= {"note": "; ".join(filter(None, notes))} if any(notes) else {}
        six = shaped(forces)
        refused = (np.isfinite(flat(samples.q)).all(axis=1) & np.isnan(tau).any(axis=1)).reshape(n, count).any(axis=1)
        model, parameters = self._own_model()
        model, surfaces = self._own_surfaces(model)
        return Trajectory(
            model,
            (segment,),
            tuple(e.outcome for e in ends),
            {**settings, **known},
            forces={b: six[..., 6 * k : 6 * k + 6] for k, b in enumerate(self.applied.bodies)} or None,
            ends=self._ends(ends, inputs_at_ends, refused, segment),
            residual=None if residual is None else residual.reshape(self.batch),
            parameters=parameters,
            events=table,
            surfaces=surfaces,
        )

    def _of_contacts(self, samples: Samples, table: EventTable, step: float) -> dict[str, Any]:
        """Forces and checks of contacts from what was recorded; no step leads to the first sample.

        Of a step with events the impulses of its last part are recorded.
        """
        assert self.system.contacts is not None
        assert samples.contacts is not None
        recorded = samples.contacts
        length = np.full(recorded.shape[:2], step)
        after = np.searchsorted(samples.times, table.time)
        for run, time, k in zip(table.run, table.time, after, strict=True):  # in the order of time
            if k < recorded.shape[1] and samples.times[k] - time < step:
                length[run, k] = samples.times[k] - time
        length[length <= SHORT * step] = np.nan
        forces = recorded[..., : self.system.contacts.n * self.system.contacts.B] / length[..., None]
        forces[:, 0] = np.nan
        arrays = {"contact_forces": forces, "contact_checks": recorded[..., -3:]}
        return {name: x.reshape(*self.batch, *x.shape[1:]) for name, x in arrays.items()}

    def _own_surfaces(self, model: Model) -> tuple[Model, np.ndarray | None]:
        """The model with the friction and restitution of its run; (..., contacts, 2), where each run has its own."""
        if self.system.contacts is None:
            return model, None
        points = self.system.contacts
        first = [points.contact_of.index(k) for k in range(len(model.contacts))]
        rows = self.constant_rows()["contact.k"].reshape(-1, points.n, len(COEFFICIENTS))
        places = [COEFFICIENTS.index("friction"), COEFFICIENTS.index("restitution")]
        own = rows[:, first][..., places].astype(float)
        if (own == own[:1]).all():
            return with_surfaces(model, own[0]), None
        return model, own.reshape(*self.batch, *own.shape[1:])

    def _own_model(self) -> tuple[Model, np.ndarray | None]:
        """The model of the runs, without loops that are open; its parameters (..., k), where each run has its own."""
        model, live = self.model, self.system.live_parameters(self.constants)
        if live is not None and live.ndim == 1:
            model, live = model.with_parameters(live), None
        if self.open_loops:
            names, model = model.parameters().names, without_switches(model, self.open_loops)
            live = live if live is None else live[:, [names.index(name) for name in model.parameters().names]]
        return model, None if live is None else live.reshape(*self.batch, -1)

    def _ends(self, ends: Sequence[End], u: np.ndarray, refused: np.ndarray, samples: Segment) -> Segment | None:
        """The located ends, NaN where a run has none. refused (n,): runs with a sample that has no torques."""
        if all(e.q is None for e in ends):
            return None
        sizes = {"q": self.model.nq, "v": self.model.nv, "z": self.applied.memory}
        rows = {
            name: np.array([np.full(size, np.nan) if e.q is None else getattr(e, name) for e in ends], float)
            for name, size in sizes.items()
        }
        times = np.array([np.nan if e.q is None else e.outcome.time for e in ends])
        u = np.broadcast_to(u, (len(ends), u.shape[-1]))
        z = rows["z"].reshape(len(ends), -1)
        q = np.where(refused[:, None], np.nan, rows["q"])  # NaN asks for nothing, and warns of nothing again
        tau, _ = self.torques_and_forces(times[:, None], q, rows["v"], u, z)

        def shaped(x: np.ndarray) -> np.ndarray:
            return x.reshape(*self.batch, 1, x.shape[-1])

        memory = shaped(rows["z"]) if sizes["z"] else None
        there = Segment(times.reshape(self.batch), shaped(rows["q"]), shaped(rows["v"]), shaped(tau), memory)
        if samples.contact_forces is None or samples.contact_checks is None:
            return there
        unknown = np.full((*self.batch, 1, samples.contact_forces.shape[-1]), np.nan)  # no whole step leads there
        most = np.nanmax(samples.contact_checks, axis=-2, keepdims=True, initial=0.0)
        return replace(there, contact_forces=unknown, contact_checks=most)


def _contacts(model: Model, contacts: Any, closures: str) -> ContactsOfRun | None:
    """The contacts of a run, None without any; closures: how loops are kept closed."""
    if not model.contacts and isinstance(contacts, str) and contacts == "steps":
        return None
    found = contacts_of(model, contacts)
    if found and closures != "project" and (model.loops or model.couplings):
        raise UnsupportedError(
            f"simulate: contacts need closures='project' in a model with loops; closures is {closures!r}. "
            "contacts='ignore' leaves contacts out"
        )
    return found


def _forces(model: Model, forces: Any, loops: Closures, active: Any, live: np.ndarray | None) -> Any:
    """Forces on bodies and along loops as one function of (t, q, v); None if there are none.

    live (..., n): live parameters. Forces along loops act at frames, which live lengths move.
    """
    given = constant_forces(model, forces) if isinstance(forces, Mapping) else forces
    if loops.loop_forces is None:
        return given
    if live is not None and live.ndim > 1:
        raise InputError(
            "simulate: loop_forces act at frames, and each run has lengths of its own among its parameters. "
            "Give one set of parameters for all runs, or simulate the runs in turn"
        )
    inside = along_loops(model if live is None else model.with_parameters(live), loops.loop_forces, active)
    return inside if given is None else together(given, inside)


def _joined(rows: list[np.ndarray], batch: tuple[int, ...]) -> np.ndarray:
    """Constants side by side: one row for all runs, or one for each."""
    if not rows:
        return np.zeros((1, 1))
    if all(x.ndim == 1 for x in rows):
        return np.concatenate(rows)[None]
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1]) for x in rows], axis=1)
