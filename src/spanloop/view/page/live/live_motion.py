"""The motion of a live page as one WebAssembly module, and the table by which the page runs it.

`LiveMotion.data()` is plain JSON:

| key | meaning |
|---|---|
| wasm | the module: gzip, base64. Exports memory, begin, step and the names of `kernels`, all () -> status or nothing |
| places, sizes | by array: where it begins in memory, in float64 numbers (bytes / 8), and how many numbers it has |
| state | names of the arrays that a step carries on: keep and restore these together |
| start | {array: numbers} before the first step: of state, constants, parameters "p" and inputs "u" |
| time | of the first step [s]; write t = time + k · step into the array "t" |
| step | length of a step [s], of the array "h" |
| integrator | its name |
| velocity | the array of velocities with closed loops, right after `begin` |
| rates | for each entry of v: {"joint", "unit"}, unit "rad" or "m" (per second) |
| inputs | parts of u, see below |
| grab | for each body of the page (Scene.bodies): {"place": of its six numbers in u, "about": number of the body at whose origin they act}, or {"why": sentence} |
| gravity | {"places": in p, "values", "factor", "most"}: p[places] = factor · values; None if gravity does not vary |
| parameters | [{"name", "place": in p, "value", "low", "high", "unit", "increment"}]; increment > 0: a length [m], changed by continuation (live_parameters.py) |
| continuation | {"most": (nq) the most that each coordinate changes in one step of it, "least_share"} |
| kernels | by name: what it writes into the array of its name, see below |
| torques | the array with the torques that act at the joints (nv), right after `begin`; None if it is not there |
| events | names of the events that end the motion |
| status | {bit: sentence} of what a step returns: 1, 2 or 4, or a sum of them; the state stays as it was |
| not_live | sentences: what the page does differently from the run, or cannot do |

inputs:

| key | meaning |
|---|---|
| count | numbers of u |
| own | {"first", "count", "rows", "values"}: inputs of the user's controller or torques of the run; values: base64 of float64 (rows, count), the row of step k is min(k, rows − 1); None if there is one row, that of start |
| gains | [{"name": "kp" or "kd", "place", "value": 1, "low", "high"}], factors |
| targets | [{"joint", "place", "value": 0, "low", "high", "unit"}], offsets of targets |
| torques | [{"joint", "place", "value": 0, "low", "high", "unit"}], added to what acts |
| damping | {"place", "value": 0, "low", "high", "unit": "1/s"} |

kernels, each to be called after `begin`, and their arrays:

| name | numbers |
|---|---|
| poses | 12 for each body of the page: rotation row by row, then position [m] |
| energy | kinetic and potential [J]; gravity (0 at the world's origin), springs and strain are in the potential |
| closure | errors of the rows of loops and couplings [rad or m]; kernels.closure.loops: [{"name", "first", "count"}] |
| loop_forces | for each of kernels.loop_forces.loops {"name", "first", "unit"}: the force [N] and torque [N m] that a loop carries, 2 numbers; 1 number for a coupling |

A frame: for each step write t, h, u and call `step`; then write t of the state, call `begin`, and the kernels that are
drawn. A page that has to grab body b at a point x of the world with force F writes [(x − o) × F; F] to u[place ...], o
the position of the body "about" in the poses, anew for every frame or step.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.portable.wasm_program import Program
from spanloop.compiler.render.rollout import HALTED, LOST, NOT_CONVERGED
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, UnsupportedError
from spanloop.export.portable_motion import PortableMotion
from spanloop.model import Model
from spanloop.simulation.controllers import Callback
from spanloop.simulation.integrators.integrator import ADAPTIVE, AUTO, FIXED_STEP, Integrator
from spanloop.simulation.integrators.step_schedule import ACTING
from spanloop.simulation.time_loop import STEP
from spanloop.topology import mechanism
from spanloop.trajectory import Trajectory
from spanloop.view.beams import segments
from spanloop.view.page.live.live_inputs import STRONGEST, LiveInputs, own_controller
from spanloop.view.page.live.live_kernels import POSE, kernels
from spanloop.view.page.live.live_parameters import LEAST_SHARE, MOST_TURN, LiveParameters
from spanloop.view.scene import poses
from spanloop.view.stand_ins import reach

MOST_DOFS = 120  # of a mechanism whose page is not too large and runs in real time
MOST_ROWS = 50_000  # numbers of a table of inputs that a page carries
STATUS = {
    LOST: "the state has no next one: it is singular, a loop came open, or a number is no longer finite",
    HALTED: "an event ends the motion",
    NOT_CONVERGED: "the step did not converge; take a shorter step, or less force",
}


@dataclass(frozen=True)
class LiveMotion:
    """A mechanism that runs in a page.

    motion: its step. inputs, parameters: what the page changes. own: rows (k, n) of the run's own inputs, one a step.
    not_live: sentences.
    """

    motion: PortableMotion
    inputs: LiveInputs
    parameters: LiveParameters
    own: np.ndarray
    size: float
    not_live: tuple[str, ...] = ()

    @staticmethod
    def of(
        robot: Dynamics,
        q: Any = None,
        v: Any = None,
        *,
        step: float = 1e-3,
        integrator: str | Integrator = AUTO,
        limits: str = "stop",
        controller: Any = None,
        tau: Any = None,
        inputs: Any = None,
        forces: Any = None,
        parameters: Any = (),
        gravity: bool = True,
        **options: Any,
    ) -> LiveMotion:
        """The live motion of a mechanism from a state, with the arguments of sl.simulate.

        parameters: names of those that have sliders, or {name: (low, high)}; gravity: whether it has one.
        """
        model, notes = robot.model, list[str]()
        _refuse_large(model)
        integrator = _fixed_step(integrator, notes)
        if isinstance(controller, Callback):
            notes.append("the controller is a Python function that a page cannot call: no torques act in its place")
            controller = None
        base = PortableMotion.of(
            robot, q, v, step=step, integrator=integrator, limits=limits, controller=controller, tau=tau,
            inputs=inputs, forces=forces, **options,
        )  # fmt: skip
        own = _own_rows(base, tau is not None or inputs is not None, notes)
        size = _size(model, base.problem.q[0])
        chosen = LiveParameters.of(model, parameters, gravity, size)
        lengths = [p.name for p in chosen.chosen if p.increment]
        if lengths and not base.problem.system.projects:
            raise InputError(
                f"live: the length {lengths[0]!r} opens loops, which closures='project' alone closes again"
            )
        acting = base.problem.applied.forces
        parts = LiveInputs(model, base.problem.q[0], own.shape[1], own_controller(controller), acting)
        if parts.gains and base.integrator == "implicit":
            parts = replace(parts, changes_gains=False)
            notes.append("gains are fixed: the steps of this motion take them implicitly")
        motion = PortableMotion.of(
            robot, q, v, step=step, integrator=base.integrator, limits=limits, varied=chosen.names, compact=True,
            controller=parts.acting_controller(), inputs=parts.start(own[0]), forces=parts.acting_forces(),
            **_without_loop_forces(options),
        )  # fmt: skip
        if chosen.names and (controller is not None or forces is not None):
            notes.append("controllers and forces keep the parameters of the model that they were made with")
        return LiveMotion(motion, parts, chosen, own, size, tuple(notes))

    @staticmethod
    def of_run(run: Trajectory, **options: Any) -> LiveMotion:
        """The live motion of a run, from its first state; options: parameters and gravity, as of `of`.

        A run that knows how it was made (run.recipe) has its controller, inputs, forces and events. Of another one, the
        mechanism moves freely from the first state.
        """
        if run.batch:
            raise InputError(f"this is a batch of {len(run.outcomes)} runs; a live page shows one of them: run[0]")
        made, step = run.recipe, run.settings.get("step", STEP)
        step = float(step) if isinstance(step, float) and run.settings.get("integrator") not in ADAPTIVE else STEP
        if made is None:
            note = (
                "this run does not know what acted in it (it is of a file, of a batch, or a part of a run): the live "
                "motion begins in its first state without torques and forces"
            )
            found = LiveMotion.of(Dynamics(run.pieces[0].model), run.pieces[0].q[0], run.pieces[0].v[0], **options)
            return replace(found, not_live=(note, *found.not_live))
        given, notes = dict(made.arguments), list[str]()
        robot, parameters = made.robot, given.pop("parameters")
        if parameters is not None:
            robot = Dynamics(robot.model.with_parameters(np.asarray(parameters, float)))
        if given["limits"] == "end":
            given["limits"] = "stop"
            if _has_limits(robot.model):
                notes.append("joints stop at their limits, where the run would end")
        used = str(run.settings.get("integrator"))
        chosen = replace(made.integrator, name=used) if used in FIXED_STEP else made.integrator
        found = LiveMotion.of(robot, made.q, made.v, step=step, integrator=chosen, **given, **options)
        return replace(found, not_live=(*notes, *found.not_live))

    @cached_property
    def program(self) -> Program:
        """The module."""
        found = Program()
        found.add_schedule(self.motion.schedule)
        for name, (plan, reads) in kernels(self.motion.problem.system, self.velocity).items():
            found.add_kernel(name, plan, reads=reads)
        return found

    @property
    def velocity(self) -> str:
        """The array of velocities with closed loops."""
        return "v.closed" if self.motion.problem.system.keeps_closed else "v"

    def data(self) -> dict[str, Any]:
        """What the page reads, ready for JSON."""
        s, memory, problem = self.motion.schedule, self.program.memory, self.motion.problem
        own = kernels(problem.system, self.velocity)
        needed = {"t", "h", *self.motion.start, *s.state, self.velocity, *own, ACTING, "margin", "log", "logged"}
        names = [n for n in memory.places if n in needed]
        start = {name: x.tolist() for name, x in self.motion.start.items()}
        if self.parameters.gravity:
            start["p"][: len(self.parameters.gravity)] = self._gravity_at_start()
        return {
            "wasm": base64.b64encode(gzip.compress(self.program.binary(), 9, mtime=0)).decode(),
            "places": {n: memory.places[n] for n in names},
            "sizes": {n: memory.sizes[n] for n in names},
            "state": list(s.state),
            "start": start,
            "time": problem.start,
            "step": self.motion.step,
            "integrator": self.motion.integrator,
            "velocity": self.velocity,
            "rates": _rates(problem.model),
            "inputs": self._inputs(),
            "grab": self._grab(),
            **self.parameters.data(),
            "continuation": {"most": _most_changes(problem.model, self.size), "least_share": LEAST_SHARE},
            "kernels": {name: self._kernel(name) for name in own},
            "torques": ACTING if ACTING in memory.places else None,
            "events": [name for name, _ in problem.events.conditions],
            "status": {str(bit): words for bit, words in STATUS.items()},
            "not_live": list(self.not_live),
        }

    def _gravity_at_start(self) -> list[float]:
        return [self.parameters.factor * g for g in self.parameters.gravity.values()]

    def _inputs(self) -> dict[str, Any]:
        parts, model = self.inputs, self.motion.problem.model
        first, many = parts.first, len(self.own) > 1
        values = base64.b64encode(np.ascontiguousarray(self.own, "<f8").tobytes()).decode() if many else None
        most = [_most_torque(model, parts, k) for _, k in parts.torques]
        return {
            "count": first["end"],
            "own": {"first": 0, "count": parts.own, "rows": len(self.own), "values": values},
            "gains": [
                {"name": name, "place": first["gains"] + k, "value": 1.0, "low": 0.0, "high": self._most_gain()}
                for k, name in enumerate(("kp", "kd")[: parts.gains])
            ],
            "targets": [
                {**_named(model, k), "place": first["targets"] + i, "value": 0.0, **_reach_of(model, k, self.size)}
                for i, (_, k) in enumerate(parts.targets)
            ],
            "torques": [
                {**_named(model, k, True), "place": first["torques"] + i, "value": 0.0, "low": -x, "high": x}
                for i, ((_, k), x) in enumerate(zip(parts.torques, most, strict=True))
            ],
            "damping": {
                "place": first["damping"],
                "value": 0.0,
                "low": 0.0,
                "high": parts.most_damping(self.motion.step),
                "unit": "1/s",
            },
        }

    def _most_gain(self) -> float:
        from spanloop.simulation.stiffness import EXPLICIT, stiffest

        found = stiffest(self.motion.problem.system, self.motion.problem.q[0], None)
        rate = 0.0 if found is None else found.rate
        return float(f"{min(STRONGEST, max(1.0, 0.9 * EXPLICIT / max(rate * self.motion.step, 1e-9))):.3g}")

    def _grab(self) -> list[dict[str, Any]]:
        model, parts = self.motion.problem.model, self.inputs
        number = model.body_number
        out: list[dict[str, Any]] = [{"why": "the world does not move"}]

        def entry(name: str) -> dict[str, Any]:
            load = parts.load_of(name)
            if load is None:
                return {"why": f"{name!r} is fixed in the world"}
            return {"place": parts.first["forces"] + 6 * parts.loads.index(load), "about": number[load]}

        out += [entry(b.name) for b in model.bodies]
        for bent in segments.bent_bodies(model):
            stations = segments.stations(bent.source).positions
            middles = 0.5 * (stations[1:] + stations[:-1])
            nodes = [j for j in model.joints if j.kind.rides and number[j.parent] == bent.body]
            root = model.bodies[bent.root - 1].name if bent.root else None
            for x in middles:
                near = min(nodes, key=lambda j, x=x: float(np.linalg.norm(x - j.placement.position)), default=None)
                name = root if near is None else near.child
                out.append(entry(name) if name is not None else {"why": "this beam has no node that a force acts on"})
        return out

    def _kernel(self, name: str) -> dict[str, Any]:
        model = self.motion.problem.model
        if name == "poses":
            return {"bodies": self.program.memory.sizes["poses"] // POSE}
        if name == "energy":
            return {"names": ["kinetic", "potential"]}
        rows, out = 0, []
        if name == "closure":
            m = mechanism(model)
            out = [{"name": c.name, "first": min(c.rows), "count": len(c.rows)} for c in m.closures if len(c.rows)]
            return {"loops": out + [{"name": g.name, "first": g.row, "count": 1} for g in m.gears]}
        for loop in model.loops:
            out.append({"name": loop.name, "first": rows, "unit": "N, N m"})
            rows += 2
        for c in model.couplings:
            out.append({"name": c.name, "first": rows, "unit": "N m"})
            rows += 1
        return {"loops": out}


def _refuse_large(model: Model) -> None:
    if model.nv > MOST_DOFS:
        raise UnsupportedError(
            f"model {model.name!r} has {model.nv} DoF; a live page takes {MOST_DOFS} at most: its code would be "
            "megabytes. run.page(path) without live shows the run"
        )


def _has_limits(model: Model) -> bool:
    return any(x is not None for j in model.joints for limits in (j.lower, j.upper) for x in limits or ())


def _fixed_step(integrator: str | Integrator, notes: list[str]) -> str:
    chosen = integrator if isinstance(integrator, Integrator) else Integrator(integrator)
    if chosen.adaptive:
        notes.append(f"the run was integrated by {chosen.name!r}, which chooses its steps; the page takes fixed ones")
        return AUTO
    if chosen.dtype != "float64":
        notes.append(f"the run was computed in {chosen.dtype}; the page computes in float64")
    return chosen.name


def _own_rows(base: PortableMotion, given: bool, notes: list[str]) -> np.ndarray:
    """Rows (k, n) of the inputs that the run has by itself, one a step or one for all."""
    if not given:
        return np.zeros((1, 0))
    values = base.problem.inputs.values
    assert values is not None
    rows = values.reshape(-1, values.shape[-1])
    if rows.size > MOST_ROWS:
        notes.append(
            f"the inputs of all {len(rows)} steps are {rows.size} numbers, more than the {MOST_ROWS} that a page "
            "carries: those of the first step stay"
        )
        return rows[:1]
    return rows


def _without_loop_forces(options: dict[str, Any]) -> dict[str, Any]:
    """Options whose closures have no forces: these are among the forces already."""
    loops = options.get("closures")
    if loops is None or isinstance(loops, str) or loops.loop_forces is None:
        return options
    return {**options, "closures": replace(loops, loop_forces=None)}


def _size(model: Model, q: np.ndarray) -> float:
    return max(float(reach(model, poses(Dynamics(model, target="python"), q))), 1e-6)


def _most_changes(model: Model, size: float) -> list[float]:
    """For each coordinate (nq) the most that it changes in one step of a continuation."""
    return [MOST_TURN * (size if x else 1.0) for j in model.joints if j.kind.nv for x in j.kind.lengths()]


def _rates(model: Model) -> list[dict[str, str]]:
    return [{"joint": j.name, "unit": unit} for j in model.joints for unit in j.kind.units]


def _named(model: Model, dof: int, torque: bool = False) -> dict[str, str]:
    row = _rates(model)[dof]
    units = {"rad": "N m", "m": "N"}
    return {"joint": row["joint"], "unit": units.get(row["unit"], row["unit"]) if torque else row["unit"]}


def _reach_of(model: Model, dof: int, size: float) -> dict[str, float]:
    far = 1.5 if _rates(model)[dof]["unit"] == "rad" else 0.3 * size
    return {"low": -far, "high": far}


def _most_torque(model: Model, parts: LiveInputs, dof: int) -> float:
    """A torque that accelerates a joint by about 20 rad/s², or 10 m/s², rounded."""
    share = 20.0 if _rates(model)[dof]["unit"] == "rad" else 10.0
    most = share * float(parts.inertias[dof])
    return float(f"{most:.1g}") if most > 0.0 else 1.0
