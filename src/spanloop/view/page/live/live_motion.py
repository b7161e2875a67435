"""The motion of a live page as one WebAssembly module; live_data.py documents what the page reads."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.lower import Plan
from spanloop.compiler.portable.wasm_program import Program
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopWarning, UnsupportedError
from spanloop.exports.portable_motion import PortableMotion
from spanloop.model import Model
from spanloop.simulation.controllers import Callback, takes_inputs
from spanloop.simulation.integrators.integrator import ADAPTIVE, AUTO, FIXED_STEP, Integrator
from spanloop.simulation.stiffness import EXPLICIT
from spanloop.simulation.time_loop import STEP
from spanloop.trajectory import Trajectory
from spanloop.view.page.live.live_data import LOG_ROWS, live_data
from spanloop.view.page.live.live_inputs import LiveInputs, own_controller
from spanloop.view.page.live.live_kernels import kernels
from spanloop.view.page.live.live_parameters import LiveParameters
from spanloop.view.scene import poses
from spanloop.view.stand_ins import reach

MOST_DOFS = 120  # of a mechanism whose page is not too large: about 300 kB and 70 µs a step
MOST_ROWS = 50_000  # numbers of a table of inputs that a page carries


@dataclass(frozen=True)
class LiveMotion:
    """A mechanism that runs in a page.

    motion: its step. inputs, parameters: what the page changes. own: rows (k, n) of the run's own inputs, one a step.
    size: of the mechanism [m]. not_live: sentences on what the page does differently.
    """

    motion: PortableMotion
    inputs: LiveInputs
    parameters: LiveParameters
    own: np.ndarray
    size: float
    not_live: tuple[str, ...] = ()

    @staticmethod
    def of(
        robot: Dynamics | Model,
        q: Any = None,
        v: Any = None,
        *,
        step: float = STEP,
        integrator: str | Integrator = AUTO,
        limits: str = "stop",
        controller: Any = None,
        tau: Any = None,
        inputs: Any = None,
        forces: Any = None,
        parameters: Any = (),
        gravity: bool = True,
        may_be_implicit: bool | None = None,
        **options: Any,
    ) -> LiveMotion:
        """The live motion of a mechanism from a state, with the arguments of sl.simulate.

        parameters: names of those that have sliders, or {name: (low, high)}; gravity: whether it has one.
        may_be_implicit: whether steps become implicit where a slider asks for it; by default if no integrator is named.
        """
        robot = robot if isinstance(robot, Dynamics) else Dynamics(robot)
        model, notes = robot.model, list[str]()
        _refuse_large(model)
        if isinstance(controller, Callback):
            notes.append(
                "the controller is a Python function that a page cannot call: no torques act in its place, "
                "and forces that read them read 0"
            )
            controller = None
        given: dict[str, Any] = {
            "step": step,
            "integrator": _fixed_step(integrator, notes),
            "limits": limits,
            **options,
        }
        acting = {"controller": controller, "tau": tau, "inputs": inputs, "forces": forces}
        base = PortableMotion.of(robot, q, v, **given, **acting)
        pushes = base.problem.applied.forces
        reads_torques = controller is None and inputs is None and pushes is not None and takes_inputs(pushes)
        given_rows = tau is not None or inputs is not None or reads_torques  # torques of a callback are 0
        start, own = base.problem.q[0], _own_rows(base, given_rows, notes)
        size = max(float(reach(model, poses(Dynamics(model, target="python"), start))), 1e-6)
        chosen = LiveParameters.of(model, parameters, gravity, size)
        chosen.refuse_open_loops(base.problem.system.projects)
        parts = LiveInputs(model, start, own.shape[1], own_controller(controller), pushes, tau is not None)
        free = given["integrator"] == AUTO if may_be_implicit is None else may_be_implicit
        method = _for_sliders(base, chosen, free, notes)
        if method == "implicit":
            parts = _without_gains(parts, notes)
        live: dict[str, Any] = {"controller": parts.acting_controller(), "forces": parts.acting_forces()}
        live |= {"inputs": parts.start(own[0]), "decay": parts.first["damping"] if parts.decays else None}
        given |= {"integrator": method, "varied": chosen.names, "compact": True}
        with _without_warnings():  # `base` has given them
            motion = PortableMotion.of(robot, q, v, **_without_loop_forces(given), **live)
        return LiveMotion(motion, parts, chosen, own, size, tuple(notes))

    @staticmethod
    def of_run(run: Trajectory, **options: Any) -> LiveMotion:
        """The live motion of a run, from its first state; options: those of `of`, which count before the run's own.

        A run that knows how it was made (run.recipe) has its controller, inputs, forces and events. Of another one, the
        mechanism moves freely from the first state.
        """
        if run.batch:
            raise InputError(f"this is a batch of {len(run.outcomes)} runs; a live page shows one of them: run[0]")
        made = run.recipe
        if made is None:
            note = (
                "this run does not know what acted in it (it is of a file, of a batch, continued from another one, or "
                "a part of a run): the live motion begins in its first state without torques and forces"
            )
            first = run.pieces[0]
            found = LiveMotion.of(Dynamics(first.model), first.q[0], first.v[0], **options)
            return replace(found, not_live=(note, *found.not_live))
        given, notes, robot = dict(made.arguments), list[str](), made.robot
        parameters, used = given.pop("parameters"), str(run.settings.get("integrator"))
        if parameters is not None:
            robot = Dynamics(robot.model.with_parameters(np.asarray(parameters, float)), on_singular=robot.on_singular)
        if given["limits"] == "end":
            given["limits"] = "stop"
            if any(x is not None for j in robot.model.joints for ends in (j.lower, j.upper) for x in ends or ()):
                notes.append("joints stop at their limits, where the run would end")
        given["integrator"] = replace(made.integrator, name=used) if used in FIXED_STEP else made.integrator
        given["step"] = STEP if used in ADAPTIVE else float(run.settings.get("step", STEP))
        given["may_be_implicit"] = made.integrator.name == AUTO
        with _without_warnings():  # the run has given them
            found = LiveMotion.of(robot, made.q, made.v, **{**given, **options})
        return replace(found, not_live=(*notes, *found.not_live))

    @cached_property
    def kernels(self) -> dict[str, tuple[Plan, tuple[str, ...]]]:
        """Plans of the page by name, with the arrays that each reads."""
        return kernels(self.motion.problem.system, self.velocity)

    @cached_property
    def program(self) -> Program:
        """The module."""
        found = Program()
        found.add_schedule(self.motion.schedule, LOG_ROWS)
        for name, (plan, reads) in self.kernels.items():
            found.add_kernel(name, plan, reads=reads)
        return found

    @property
    def velocity(self) -> str:
        """The array of velocities with closed loops."""
        return "v.closed" if self.motion.problem.system.keeps_closed else "v"

    def data(self) -> dict[str, Any]:
        """What the page reads, ready for JSON (live_data.py)."""
        return live_data(self)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        yield


def _refuse_large(model: Model) -> None:
    if model.nv > MOST_DOFS:
        raise UnsupportedError(
            f"model {model.name!r} has {model.nv} DoF; a live page takes {MOST_DOFS} at most: its code would be "
            "too large. run.page(path) without live shows the run"
        )


def _fixed_step(integrator: str | Integrator, notes: list[str]) -> str:
    """The name of a method with fixed steps."""
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


def _for_sliders(base: PortableMotion, chosen: LiveParameters, free: bool, notes: list[str]) -> str:
    """The integrator that is stable wherever the sliders are; free: whether it may be another one than the base's."""
    if base.integrator == "implicit" or not chosen.chosen or base.problem.advice:
        return base.integrator
    found = chosen.stiffest(base.problem.system, base.problem.q[0])
    if found is None or found.rate * base.step <= EXPLICIT:
        return base.integrator
    where = "at an end of the sliders' ranges"
    if not free:
        raise InputError(f"live: {where} {found.advice(base.step, base.integrator)}; or give narrower ranges")
    notes.append(f"steps are implicit: {where} {found} is too fast for others")
    return "implicit"


def _without_gains(parts: LiveInputs, notes: list[str]) -> LiveInputs:
    """The inputs of implicit steps."""
    if parts.gains:
        notes.append("gains are fixed: the steps of this motion take them implicitly")
    if parts.model.loops:
        notes.append("forces of loops are not shown: the steps of this motion are implicit")
    return replace(parts, changes_gains=False)


def _without_loop_forces(options: dict[str, Any]) -> dict[str, Any]:
    """Options whose closures have no forces: these are among the forces already."""
    loops = options.get("closures")
    if loops is None or isinstance(loops, str) or loops.loop_forces is None:
        return options
    return {**options, "closures": replace(loops, loop_forces=None)}
