"""Motions as WebAssembly and as C: equal to the bit at every step, and those of sl.simulate, whatever a step does."""

from __future__ import annotations

import numpy as np
import pytest
from event_motions import ball_model, carts_model
from flexible_mechanisms import tube
from portable_code import WasmSteps, begin_with, needs_gcc, run_together, view
from touching_motions import box

import spanloop as sl
from spanloop import control
from spanloop.compiler.render.rollout import HALTED, LOST
from spanloop.exports.portable_motion import PortableMotion

STEP = 2e-3


class Integral(control.Controller):
    inputs, memory = 2, 2

    def torques(self, t, q, v, u, z):
        return 60.0 * (u - q) + 40.0 * z - 8.0 * v

    def update(self, t, h, q, v, u, z):
        return z + h * (u - q)


def sliding_box():
    return box(), {"q": [1.0, 0, 0, 0, 0, 0, 0.25], "v": [0.2, -0.5, 0.1, 1.0, 0.2, 0]}


def bouncing_ball():
    return ball_model(), {"q": [0.03], "events": [sl.events.Stop("slide", restitution=0.7)]}


def many_bounces():
    """More events than the log has rows."""
    return ball_model(), {"q": [2e-4], "events": [sl.events.Stop("slide", restitution=0.99)]}


def catcher():
    """A loop that captures a free body in flight."""
    b = sl.Builder("catcher").body("arm", 2.0, (0.3, 0, 0), (0.01, 0.06, 0.06)).body("stone", 0.5, inertia=(2e-3,) * 3)
    b = b.revolute("hinge", "world", "arm", "-y").free("flight", "world", "stone").frame("tip", "arm", (0.6, 0, 0))
    model = b.loop("tip", "stone", "fixed", name="grip", switchable=True).build()
    caught = sl.events.Attach("grip", when=lambda t, q, v: q["flight"][6] - 0.02, capture=True)
    return model, {"q": [0, 1, 0, 0, 0, 0.6, 0, 0.1], "events": [caught, sl.events.Release("grip", at=0.2)]}


def carts():
    events = [sl.events.Attach("hook", when=lambda t, q, v: q["right_rail"] - q["left_rail"])]
    events.append(sl.events.Release("hook", at=0.14))
    return carts_model(), {"q": [0.0, 0.1], "v": [2.0, 0.0], "events": events}


def stopped_ball():
    return ball_model(), {"q": [0.05], "limits": "stop"}


def stiff_pendulum():
    b = sl.Builder("stiff").body("rod", 1.0, (0.3, 0, 0), (0.01, 0.03, 0.03))
    return b.revolute("hinge", "world", "rod", "y", damping=500.0).build(), {"q": [0.4], "integrator": "implicit"}


def flexible_boom():
    b = sl.Builder("boom").body("boom", flexible=tube(modes={"y": 1, "z": 1}))
    b.revolute("drive", "world", "boom", "y").body("load", 0.2, inertia=(1e-3,) * 3)
    return b.revolute("pin", "boom.tip", "load", "z").build(), {"v": None, "integrator": "implicit"}


def with_memory():
    return sl.zoo.pendulum(2), {"controller": Integral(), "inputs": [0.3, -0.2]}


def midpoint():
    return sl.zoo.four_bar(), {"q": sl.zoo.four_bar_start(), "integrator": "midpoint"}


def driven():
    tau = [1.0, 0.0, 0.0]
    return sl.zoo.four_bar(), {"q": sl.zoo.four_bar_start(), "controller": lambda t, q, v, u: u, "inputs": tau}


def located_contact():
    return box(), {"q": [1.0, 0, 0, 0, 0, 0, 0.102], "v": [0.1, 0.3, 0, 0, 0, -0.5], "contacts": "events"}


CASES = {
    f.__name__: f
    for f in (
        sliding_box, located_contact, bouncing_ball, many_bounces, carts, catcher, stopped_ball, stiff_pendulum,
        flexible_boom, with_memory, midpoint, driven,
    )
}  # fmt: skip


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_a_motion_is_the_same_to_the_bit_in_wasm_and_c_and_that_of_simulate(name):
    model, options = CASES[name]()
    options = {"limits": "ignore", **options}
    motion = PortableMotion.of(model, step=STEP, **options)
    rows, ended, wasm = run_together(motion, 120)
    assert not ended
    run = sl.simulate(model, step=STEP, duration=120 * STEP, **{**options, "integrator": motion.integrator})
    assert np.abs(rows[-1][: model.nq] - run.q[-1]).max() < 1e-10
    if motion.schedule.log is not None:
        assert view(wasm, "logged")[0] == len(np.unique(run.events.time)) > 0  # a row a moment
        assert name != "many_bounces" or view(wasm, "logged")[0] > 16
    if options.get("controller") and hasattr(options["controller"], "memory"):
        assert np.abs(view(wasm, "z") - run.memory[-1]).max() < 1e-12


@needs_gcc
def test_a_run_ends_at_a_joint_limit_in_both():
    motion = PortableMotion.of(ball_model(), [0.05], step=STEP, limits="end")
    rows, ended, _ = run_together(motion, 200)
    assert ended == HALTED
    assert 0.0 <= rows[-1][0] < 0.05


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_a_step_with_an_impossible_input_is_lost_and_leaves_the_state(bad):
    model, options = driven()
    motion = PortableMotion.of(model, step=STEP, **options)
    steps = WasmSteps(motion.schedule)
    begin_with(steps, motion.start, STEP)
    assert steps.call("step") == 0
    before = {n: view(steps, n).copy() for n in ("q", "v")}
    view(steps, "u")[0] = bad
    assert steps.call("step") & LOST
    assert all(np.array_equal(view(steps, n), x) for n, x in before.items())
    view(steps, "u")[0] = 1.0
    assert steps.call("step") == 0


def test_an_angle_beyond_the_range_of_the_sine_ends_the_run():
    motion = PortableMotion.of(sl.zoo.pendulum(), [0.1], [3.0], step=STEP)
    steps = WasmSteps(motion.schedule)
    begin_with(steps, {**motion.start, "q": np.array([1e6 - 1e-3])}, STEP)
    assert steps.call("step") & LOST


def test_a_step_of_no_length_closes_loops_that_are_slightly_open():
    model, q = sl.zoo.four_bar(), np.array(sl.zoo.four_bar_start())
    motion = PortableMotion.of(model, q, step=STEP)
    steps = WasmSteps(motion.schedule)
    begin_with(steps, {**motion.start, "q": q + [0.0, 1e-4, 0.0]}, 0.0)
    for _ in range(2):
        assert steps.call("step") == 0
    assert np.abs(sl.Dynamics(model).closure_error(view(steps, "q"))).max() < 1e-14
