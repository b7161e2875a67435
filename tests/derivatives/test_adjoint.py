"""Gradients of short runs by the adjoint of their schedule, against differences in extended precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from extended import central
from short_runs import Run, dot_product_error

import spanloop as sl
from spanloop.compiler.lower.adjoint import adjoint
from spanloop.compiler.render.rollout import LOST
from spanloop.errors import UnsupportedError
from spanloop.simulation.controllers import Controller
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
    assert dot_product_error(run, ("p", "u"), columns=5, constant=("u",)) < 1e-13  # in groups


class Integral(Controller):
    """Gains on what is left and on its integral, one of them changing with time."""

    inputs, memory = 2, 2

    def torques(self, t, q, v, u, z):
        return -5.0 * (q - u) - np.array([2.0, 1.0]) * z - v * np.sin(3.0 * t)

    def update(self, t, h, q, v, u, z):
        return z + h * (q - u)


def geared():
    b = sl.Builder("geared", gravity=(0.0, -9.81, 0.0))
    for k, mass in enumerate((1.0, 2.0, 0.5)):
        b.body(f"rod{k}", mass, (0.25, 0.0, 0.0), (0.01, 0.02, 0.02))
        b.revolute(f"hinge{k}", f"rod{k - 1}" if k else "world", f"rod{k}", "z", (0.5 if k else 0.0, 0.0, 0.0))
    model = b.coupling("gear", "hinge2", "hinge1", ratio=-2.0, offset=0.1).build()
    return model, sl.Dynamics(model).assemble([0.3, 0.2, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_the_gradient_of_other_mechanisms_agrees_with_differences(integrator):
    rng = np.random.default_rng(2)
    balls, legs = sl.zoo.chain(2, "spherical", seed=1), sl.zoo.quadruped()
    gears, meshed = geared()
    crank = sl.zoo.four_bar().drive("crank_hinge")
    motors = sl.zoo.puma().with_actuator("m2", "joint2", gear=50.0, rotor_inertia=1e-5, friction=0.01, delay=2.0 * H)
    integral = {"controller": Integral(), "inputs": np.ones(2)}
    for model, q, v, how in (
        (balls, balls.neutral(), None, {}),  # quaternions, at rest: no angle to turn by
        (balls, balls.neutral(), rng.normal(size=balls.nv), {}),
        (legs, sl.zoo.quadruped_start(), rng.normal(size=legs.nv), {}),
        (gears, meshed, None, {}),
        (crank, sl.zoo.four_bar_start(), None, {}),
        (motors, motors.neutral() + 0.2, rng.normal(size=6), {}),
        (sl.zoo.pendulum(2), [0.3, 0.2], [1.0, 0.5], integral),
    ):
        run = run_of(model, integrator, q, v, **(how or {"tau": np.zeros(model.nv)}))
        wrt = ("q", "v", "u", *(("z",) if "z" in run.state else ()))
        assert max(errors(run, wrt).values()) < 1e-11, model.name
        assert dot_product_error(run, wrt, columns=2) < 1e-13, model.name


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_the_gradient_in_float32_is_that_in_float64(integrator):
    model, q = closed_four_bar()
    given = {"tau": np.zeros(3), "parameters": model.parameters().values}
    fine, coarse = (run_of(model, integrator, q, dtype=d, **given) for d in ("float64", "float32"))
    a, b = (x.gradient(("q", "v", "u", "p")) for x in (fine, coarse))
    for name, wanted in a.items():
        np.testing.assert_allclose(b[name], wanted, rtol=0, atol=2e-5 * np.abs(wanted).max(), err_msg=name)


def test_a_cotangent_that_is_not_finite_ends_the_run_with_a_reason():
    def corner(t, q, v):
        return {"hinge1": np.sqrt(np.abs(q[0]))}

    run = run_of(sl.zoo.pendulum(), "euler", [0.0], controller=corner)
    with pytest.raises(AssertionError, match=str(LOST)):
        run.gradient(("q", "v"))


def test_steps_that_locate_events_have_no_adjoint():
    b = sl.Builder("leg").body("shank", 3.0, (0.0, 0.0, -0.2), (0.05, 0.05, 0.005))
    b.revolute("knee", "world", "shank", "y", lower=-1.0, upper=1.0)
    p = Problem.of(sl.Dynamics(b.build()), [0.4], [0.0], step=H, limits="stop")
    with pytest.raises(UnsupportedError, match="a step of this run has no derivative"):
        adjoint(schedule(p.system, p.events, "rk4", "float64"), ("q",), ("q",))
