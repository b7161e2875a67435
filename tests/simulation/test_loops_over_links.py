"""Steps of long trees, whose accelerations are loops over links, beside unrolled steps, Pinocchio and other targets."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from pinocchio_peer import Peer
from plain_steps import rk4
from portable_code import needs_gcc, run_together

import spanloop as sl
from spanloop.compiler.lower import For, OneOf, Schedule
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.exports.portable_motion import PortableMotion
from spanloop.simulation import system
from spanloop.simulation.integrators.integrator import schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of

RUNS, STEPS, H = 5, 20, 1e-3


def forked() -> sl.Model:
    """A free body with two arms of joints of all kinds whose masses and axes differ."""
    b, rng = sl.Builder("forked"), np.random.default_rng(5)
    b.body("trunk", 3.0, inertia=(0.2, 0.3, 0.25)).free("flight", "world", "trunk")
    for side in ("left", "right"):
        parent = "trunk"
        for k, kind in enumerate(("revolute", "spherical", "prismatic", "revolute", "universal", "revolute")):
            name = f"{side}{k}"
            b.body(name, rng.uniform(0.5, 2.0), rng.normal(size=3) / 10, (0.2, 0.3, 0.25))
            given = {"axis": "xyz"[k % 3]} if kind in ("revolute", "prismatic") else {}
            more = {"revolute": {"damping": 0.1}, "prismatic": {"limits": (-0.5, 0.5)}}.get(kind, {})
            getattr(b, kind)(f"{name}.joint", parent, name, **given, position=rng.normal(size=3) / 5, **more)
            parent = name
    return b.build()


def push(t, q, v):
    return {"left0.joint": 0.5 - q["left0.joint"], "right3.joint": -0.2 * v["right3.joint"]}


CASES = {
    "rk4": (forked, "rk4", {"controller": push}),
    "euler": (forked, "euler", {}),
    "midpoint": (forked, "midpoint", {}),
    "stops": (lambda: sl.zoo.puma(), "rk4", {"limits": "stop"}),
    "contacts": (lambda: sl.zoo.quadruped(), "rk4", {}),
    "located contacts": (lambda: sl.zoo.quadruped(), "rk4", {"contacts": "events"}),
}


def looped_and_unrolled(name: str, dtype: str, monkeypatch) -> tuple[Problem, list[Schedule]]:
    monkeypatch.setattr(system, "LOOPED", 2)
    make, integrator, given = CASES[name]
    problem = Problem.of(robot_of(make()), None, None, step=H, **given)
    taken = problem.system, problem.events, integrator, dtype
    return problem, [schedule(*taken), schedule(*taken, unrolled=True)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_steps_in_loops_are_the_unrolled_steps(name, dtype, monkeypatch):
    problem, schedules = looped_and_unrolled(name, dtype, monkeypatch)
    assert [any(isinstance(x, OneOf) for x in s.items()) for s in schedules] == [True, False]
    layout = StateLayout.of(problem.system, problem.events, dtype)
    state = np.repeat(problem.state(layout), RUNS, axis=0).astype(dtype)
    state[:, layout.places["v"]] += np.random.default_rng(7).normal(size=(RUNS, layout.sizes["v"])) / 10
    constants, ended = np.ascontiguousarray(problem.constants, dtype), []
    for k, s in enumerate(schedules):
        own = Rollout(f"{name} {k}", lambda s=s: s, dtype)
        for runs in (1, RUNS):  # one run alone, and all in lanes
            x, why = state[:runs].copy(), np.zeros(runs, np.uint8)
            own.run(x, constants, np.zeros((1, 1, s.width(s.controls)), dtype), why, Steps(0.0, H, 0, STEPS))
            assert not why.any()
            assert np.abs((x - state[:runs])[:, layout.places["q"]]).max() > 1e-4
            ended.append(x)
    bound = 1e-11 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(ended[0], ended[2], rtol=bound, atol=bound)
    np.testing.assert_allclose(ended[1], ended[3], rtol=bound, atol=bound)


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("name", ["rk4", "stops"])
def test_loops_over_links_are_the_same_to_the_bit_in_webassembly_and_c(name, monkeypatch):
    monkeypatch.setattr(system, "LOOPED", 2)
    make, integrator, given = CASES[name]
    motion = PortableMotion.of(make(), step=H, integrator=integrator, **given)
    assert any(isinstance(x, OneOf) for x in motion.schedule.items())
    rows, ended, _ = run_together(motion, STEPS)
    assert not ended
    run = sl.simulate(motion.problem.robot, step=H, duration=STEPS * H, integrator=integrator, **given)
    assert np.abs(rows[-1][: run.model.nq] - run.q[-1]).max() < 1e-11


@pytest.mark.slow
def test_a_chain_beyond_a_hundred_links_moves_as_pinocchio_says():
    model = sl.zoo.chain(110, seed=4)
    peer, (q, v) = Peer(model), model.random_state(seed=1)
    v, tau = 0.1 * v, np.zeros(model.nv)

    def accelerate(t, q, v):
        return pin.aba(peer.model, peer.data, q, v, tau)

    expected = q, v
    for k in range(10):
        expected = rk4(accelerate, lambda q, dv: q + dv, *expected, H, k * H)
    run = sl.simulate(model, q, v, duration=10 * H, step=H, integrator="rk4", limits="ignore")
    np.testing.assert_allclose(run.q[-1], expected[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(run.v[-1], expected[1], rtol=1e-8, atol=1e-8)


def test_motions_are_unrolled_up_to_a_hundred_links_and_where_loops_over_links_cannot_be():
    def is_looped(model, **given):
        problem = Problem.of(robot_of(model), None, None, step=H, **given)
        return any(isinstance(x, For) for x in schedule(problem.system, problem.events, "rk4", "float64").items())

    assert is_looped(sl.zoo.chain(101))
    assert not is_looped(sl.zoo.chain(100))
    tip = {"link101": np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])}
    assert not is_looped(sl.zoo.chain(101), forces=tip)
