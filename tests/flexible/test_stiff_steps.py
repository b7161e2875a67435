"""Implicit steps of flexible bodies: stable at any step, of second order, in two evaluations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from flexible_runs import FOUR_BAR_START, boom, four_bar, spin_up, spun, tip_in_hub

import spanloop as sl
from spanloop.simulation.integrators.integrator import schedule
from spanloop.simulation.integrators.step_schedule import ScheduleBuilder
from spanloop.simulation.problem import Problem
from spanloop.simulation.stiffness import stiffest


def frequencies(model, q=None):
    """Those of M⁻¹ K at q, by dense algebra [rad/s]."""
    M = sl.Dynamics(model).mass_matrix(model.neutral() if q is None else q)
    K = np.diag([k for j in model.joints for k in j.stiffness])
    return np.sqrt(np.sort(np.abs(np.linalg.eigvals(np.linalg.solve(M, K)))))


def test_every_mode_has_its_own_stiffness():
    model = boom(modes=1)
    K, D = _problem(model).system.springs_and_dampers({})
    assert K[1:] == list(model.joint("boom.modes").stiffness)
    assert D[1:] == list(model.joint("boom.modes").damping)


def _problem(model):
    return Problem.of(sl.Dynamics(model), None, None, step=None, method=None, tau=None, controller=None, inputs=None,
                      forces=None, closures="project", limits="end", events=None, parameters=None, contacts="steps",
                      start=0.0)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 2])
def test_the_stiffest_rate_is_the_highest_frequency_and_names_its_mode(pieces):
    model = boom(modes={"z": 1, "torsion": 0}, pieces=pieces)
    found = stiffest(_problem(model).system, np.array(model.neutral()))
    assert found.rate == pytest.approx(frequencies(model)[-1], rel=1e-9)
    assert found.joint in (["boom.modes"] if pieces == 1 else ["boom.1.modes", "boom.2.modes"])
    assert f"mode {found.mode}, a rate of" in str(found)


def test_a_step_takes_two_accelerations_and_repeats_nothing(monkeypatch):
    calls = []
    for name in ("accelerate", "repeat"):
        original = getattr(ScheduleBuilder, name)
        monkeypatch.setattr(ScheduleBuilder, name,
                            lambda self, *a, _o=original, _n=name: (calls.append(_n), _o(self, *a))[1])  # fmt: skip
    problem = _problem(boom(modes=1))
    schedule(replace(problem.system, implicit=True), problem.events, "implicit", "float64")
    assert calls == ["accelerate", "accelerate"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:simulate. steps of")
def test_steps_a_hundred_times_too_long_for_the_fastest_mode_are_stable_and_right():
    """A pendulum with extension: its slow motion is that of DOP853, although h ω of the fastest mode is 100."""
    model = boom(modes={"z": 0, "extension": 0}, section=sl.flexible.rectangle(0.1, 0.1), length=1.0)
    fastest = frequencies(model)[-1]
    step = 0.01
    assert 95.0 < step * fastest < 110.0
    start = sl.Dynamics(model).static_deflection({"hinge": 0.0})
    run = sl.simulate(model, start, duration=10.0, step=step, integrator="implicit")
    assert run.outcome.reason == "finished"
    energy = run.energy.sum(axis=-1)
    assert energy.max() <= energy[0] + 1e-3 * np.ptp(run.energy[:, 0])
    short = sl.simulate(model, start, duration=0.2, step=step, integrator="implicit")
    exact = sl.simulate(model, start, duration=0.2, integrator=sl.Integrator("DOP853", accuracy=1e-9), sample=step)
    assert np.abs(short["hinge"].q - exact["hinge"].q).max() < 1e-3 * np.ptp(exact["hinge"].q)


def _errors(model, start, steps, duration, quantity):
    exact = sl.simulate(
        model, start, duration=duration, integrator=sl.Integrator("DOP853", accuracy=1e-12), sample=0.01
    )
    return [np.abs(quantity(sl.simulate(model, start, duration=duration, step=h, integrator="implicit", sample=0.01))
                   - quantity(exact)).max() for h in steps]  # fmt: skip


@pytest.mark.slow
def test_the_free_pendulum_converges_in_second_order():
    model = boom(modes={"z": 0}, E=7e8)
    steps = (1e-3, 5e-4, 2.5e-4)
    errors = _errors(model, {"hinge": 0.3}, steps, 0.3, lambda run: run.q)
    assert 1.8 < np.log2(errors[1] / errors[2]) < 2.2
    assert errors[2] < 1e-4


@pytest.mark.slow
def test_the_four_bar_with_a_flexible_coupler_converges_in_second_order():
    model = four_bar()
    start = sl.Dynamics(model).static_deflection(FOUR_BAR_START)
    steps = (5e-4, 2.5e-4, 1.25e-4)
    errors = _errors(model, start, steps, 0.5, lambda run: run.q)
    assert 1.8 < np.log2(errors[1] / errors[2]) < 2.4
    assert errors[2] < 1e-5


@pytest.mark.slow
def test_the_spin_up_converges_in_second_order_where_the_fastest_modes_are_not_resolved():
    """Four pieces: h ω of the fastest mode is 10, 5 and 2.6."""
    model = spun(modes={"y": 0}, pieces=4)
    exact = tip_in_hub(spin_up(model, 10.0, integrator=sl.Integrator("DOP853", accuracy=1e-10)))[:, 1]
    steps = (0.01, 0.005, 0.0025)
    errors = [
        np.abs(tip_in_hub(spin_up(model, 10.0, integrator="implicit", step=h))[:, 1] - exact).max() for h in steps
    ]
    assert frequencies(model)[-1] * steps[-1] > 2.0
    assert errors[0] < 1e-3  # m, of 0.57 m
    assert all(a / b > 3.3 for a, b in pairwise(errors))


@pytest.mark.slow
def test_the_midpoint_rule_says_that_it_does_not_converge_and_what_to_use():
    model = boom(modes=1)
    with pytest.warns(sl.SpanloopWarning, match="mode torsion1, a rate of .* Use integrator='implicit'"):
        run = sl.simulate(model, {"hinge": 0.3}, duration=0.1, step=2e-3, integrator="midpoint")
    assert run.outcome.reason == "not_converged"
    assert "Use integrator='implicit'" in run.outcome.sentence
    assert not run.audit().well
    assert run.times[-1] < 0.1


@pytest.mark.slow
def test_errors_of_modes_that_implicit_steps_damp_do_not_add_up():
    """The estimate of all steps' errors is within a factor of 30 of the truth; it was 1000 times too large."""
    model = spun(modes={"y": 0}, pieces=2)
    exact = spin_up(model, 10.0, integrator=sl.Integrator("DOP853", accuracy=1e-10))
    run = spin_up(model, 10.0, integrator="implicit", step=0.005)
    error = np.abs(run.v - exact.v)[:, 1:].max() / np.abs(exact.v[:, 1:]).max()
    assert 0.3 * error < run.settings["step_error"] < 30.0 * error


@pytest.mark.slow
def test_live_stiffness_is_that_of_the_model_with_it():
    model = boom(modes={"z": 0})
    packed = model.parameters()
    stiffer = packed.values.copy()
    stiffer[[k for k, name in enumerate(packed.names) if "stiffness" in name]] *= 9.0
    rows = np.stack([packed.values, stiffer])
    options = {"duration": 0.1, "step": 1e-3}
    runs = sl.simulate(model, {"hinge": 0.3}, parameters=rows, integrator="implicit", **options)
    own = sl.simulate(model.with_parameters(stiffer), {"hinge": 0.3}, integrator="implicit", **options)
    assert np.abs(runs[1].q - own.q).max() < 1e-14
    assert np.abs(runs[0].q - runs[1].q).max() > 1e-4
    system = _problem(model).system
    many = np.concatenate([np.linspace(packed.values, 0.5 * (packed.values + stiffer), 9), rows])
    assert stiffest(system, runs[0].q[0], many).rate == pytest.approx(3.0 * frequencies(model)[-1], rel=1e-6)
    assert stiffest(system, runs[0].q[0], rows).rate == pytest.approx(3.0 * frequencies(model)[-1], rel=1e-6)
