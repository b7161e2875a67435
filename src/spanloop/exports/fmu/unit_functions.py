"""The functions of a unit beside its step, traced: rates of the state, its projection to the closed loops, outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.kernels import KernelSpec
from spanloop.simulation.controllers import traced
from spanloop.simulation.problem import Problem
from spanloop.simulation.system import System

SHOWN = "v.shown"  # the velocities that outputs and rates are computed from


@dataclass(frozen=True)
class UnitFunction:
    """A plan with the arrays that it reads and the one that it fills."""

    name: str
    plan: Plan
    reads: tuple[str, ...]
    size: int


def without_exchange(problem: Problem) -> str:
    """Why a problem has no form for Model Exchange; "" if it has."""
    system = problem.system
    if problem.applied.memory:
        return "a controller or an actuator keeps numbers from step to step"
    if system.contacts:
        return "contacts are solved once a step"
    if system.switching or len(problem.events):
        return "events are located by the steps"
    if system.minimal:
        return "minimal coordinates are completed by the steps"
    return ""


def exchanged(system: System) -> System:
    """The system whose rates an importer integrates: closure errors are fed back, as nothing projects its stages."""
    fed_back = system.has_loops and system.closures in ("project", "feedback")
    return replace(system, closures="feedback" if fed_back else system.closures, implicit=False)


def gains(frequency: float) -> np.ndarray:
    """The gains of critically damped feedback of closure errors, frequency in rad/s."""
    return np.array([2.0 * frequency, frequency**2])


def rates(system: System) -> UnitFunction:
    """dq/dt, dv/dt at t, q, v.shown with the inputs u."""
    system = exchanged(system)

    def compute(x: Mapping[str, Any]) -> tuple[list[Any], Sequence[Any]]:
        given = {**x, "v": x[SHOWN], "z": ()}
        a, pairs = system.accelerations(given)
        return [*system.rates(x["q"], x[SHOWN]), *a], pairs

    reads = ("t", "q", SHOWN, "u", *system.parameters)
    return _function("rates", system, reads, system.model.nq + system.model.nv, compute)


def closing(system: System) -> UnitFunction:
    """q, v projected to the closed loops, the largest closure error before and after."""
    system = replace(system, implicit=False)
    closes = system if system.closures == "none" else replace(system, closures="project")
    nv = system.model.nv

    def compute(x: Mapping[str, Any]) -> tuple[list[Any], Sequence[Any]]:
        if not closes.projects:
            return [*system.moved(x["q"], [0.0] * nv), *x["v"], 0.0, 0.0], ()
        q, left = closes.closed_position(x)
        return [*q, *closes.closed_velocity({**x, "q": q}), closes.openness(x), left], ()

    return _function("closing", system, ("q", "v", *system.parameters), system.model.nq + nv + 2, compute)


def outputs(system: System, frames: Sequence[str], energy: bool) -> UnitFunction:
    """Poses of frames (position, then rotation row by row), energies, and the closure error of loops."""
    how: dict[str, Any] = {"parameters": "live" if system.live else "baked", "refuses_open": False}
    poses = [KernelSpec.of(system.model, "pose", frame=f, near=system.near, **how) for f in frames]
    energies = KernelSpec.of(system.model, "energy", near=system.near, **how) if energy else None

    def compute(x: Mapping[str, Any]) -> tuple[list[Any], Sequence[Any]]:
        given = {"q": x["q"], "v": x[SHOWN], "parameters": x.get("p", ())}
        found: list[Any] = []
        for spec in poses:
            matrix = _answer(spec, given)
            found += [matrix[k] for k in (3, 7, 11)] + [matrix[4 * r + c] for r in range(3) for c in range(3)]
        found += _answer(energies, given) if energies else []
        return found + ([system.openness({**x, "v": x[SHOWN]})] if system.has_loops else []), ()

    size = 12 * len(poses) + (2 if energy else 0) + bool(system.has_loops)
    return _function("outputs", replace(system, implicit=False), ("q", SHOWN, *system.parameters), size, compute)


def _answer(spec: KernelSpec, given: Mapping[str, Any]) -> list[Any]:
    return spec.compute({n: given[n] for n, _ in spec.signature()[0]})[0]


def _function(name: str, system: System, reads: Sequence[str], size: int, compute: Callable[..., Any]) -> UnitFunction:
    sizes = {**system.sizes, SHOWN: system.model.nv}

    def plan() -> Plan:
        x = traced_inputs(tuple((n, sizes[n]) for n in reads))
        numbers, pairs = compute(x)
        return Plan.of(name, x, (size,), numbers, demands=[a < b for a, b in pairs])

    return UnitFunction(name, traced("what acts on the mechanism", plan), tuple(reads), size)
