"""Gradients of short runs by the adjoint of their schedule, against differences in extended precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from extended import central
from short_runs import Run, dot_product_error

import spanloop as sl
from spanloop.compiler.lower.adjoint import adjoint
from spanloop.errors import UnsupportedError
from spanloop.simulation.integrators.integrator import FIXED_STEP, schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem

H, STEPS = 2e-3, 3
CLOSURES = ("project", "feedback", "none", "minimal")


def run_of(model, integrator, q, v=None, dtype="float64", **how) -> Run:
    """A run of three steps with random inputs, and a loss that weighs all that it samples."""
    v = np.zeros(model.nv) if v is None else v
    p = Problem.of(sl.Dynamics(model), q, v, step=H, limits="ignore", **how)
    if integrator == "implicit":
        p = replace(p, system=replace(p.system, implicit=True))
    s, layout = schedule(p.system, p.events, integrator, dtype), StateLayout.of(p.system, p.events, dtype)
    state, rng = p.state(layout)[0], np.random.default_rng(4)
    return Run(
        s,
        {n: state[place] for n, place in layout.places.items()},
        p.constants_of(0),
        {n: rng.normal(size=(STEPS, s.sizes[n])) for n in s.controls},
        {n: rng.normal(size=(STEPS + 1, s.sizes[n])) for n in s.record},
        H,
        0.3,
        dtype,
    )


def errors(run: Run, wrt: tuple[str, ...], constant: tuple[str, ...] = ()) -> dict[str, float]:
    """Of each derivative along a random direction the error, relative to the sum of sizes of its terms."""
    found, rng, out = run.gradient(wrt, constant), np.random.default_rng(5), {}
    for n in wrt:
        lam = found[f"lam.{n}"]
        d = rng.normal(size=lam.shape) * (0.01 * np.abs(run.constants[n]) if n == "p" else 1.0)
        moved = np.broadcast_to(d, run.controls[n].shape) if n in constant else d
        expected = central(lambda s, n=n, moved=moved: run.loss(**{n: s * moved}), 1e-4)
        out[n] = float(abs(expected - (lam * d).sum()) / np.abs(lam * d).sum())
    return out


def closed_four_bar():
    model = sl.zoo.four_bar()
    return model, sl.Dynamics(model).assemble(model.neutral() + 0.3)


def test_the_gradient_of_a_pendulum_agrees_with_differences():
    run = run_of(sl.zoo.pendulum(), "euler", [0.4], [1.0], tau=[0.0])
    assert max(errors(run, ("q", "v", "u")).values()) < 1e-12
    assert dot_product_error(run, ("q", "v", "u"), columns=2) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("integrator", FIXED_STEP)
def test_the_gradient_of_an_arm_agrees_with_differences(integrator):
    model = sl.zoo.pendulum(2)
    run = run_of(model, integrator, [0.4, -0.3], [1.0, 0.5], tau=np.zeros(2), parameters=model.parameters().values)
    assert max(errors(run, ("q", "v", "u", "p", "h")).values()) < 1e-11
    assert errors(run, ("u",), constant=("u",))["u"] < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("closures", CLOSURES)
@pytest.mark.parametrize("integrator", FIXED_STEP)
def test_the_gradient_of_a_closed_loop_agrees_with_differences(integrator, closures):
    model, q = closed_four_bar()
    v = [0.4] * 3 if closures in ("project", "minimal") else None
    run = run_of(model, integrator, q, v, tau=np.zeros(3), closures=closures, parameters=model.parameters().values)
    assert max(errors(run, ("q", "v", "u", "p")).values()) < 1e-10
    assert dot_product_error(run, ("q", "v", "u", "p"), columns=2) < 1e-13
    assert dot_product_error(run, ("p", "u"), columns=9, constant=("u",)) < 1e-13  # in two groups


def test_steps_that_locate_events_have_no_adjoint():
    b = sl.Builder("leg").body("shank", 3.0, (0.0, 0.0, -0.2), (0.05, 0.05, 0.005))
    b.revolute("knee", "world", "shank", "y", lower=-1.0, upper=1.0)
    p = Problem.of(sl.Dynamics(b.build()), [0.4], [0.0], step=H, limits="stop")
    with pytest.raises(UnsupportedError, match="a step of this run has no derivative"):
        adjoint(schedule(p.system, p.events, "rk4", "float64"), ("q",), ("q",))
