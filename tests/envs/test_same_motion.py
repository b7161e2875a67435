"""Environments move as sl.simulate moves the same mechanisms under the same torques, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from driver_double import doubled_driver

import spanloop as sl
from spanloop.compiler.runtime.gpu import driver

pytest.importorskip("gymnasium")


def stepped(env, actions):
    """q (steps + 1, n, nq) of an environment under actions (steps, n, k)."""
    places = [env.q]
    for action in actions:
        _, _, terminations, truncations, _ = env.step(action)
        assert not (terminations | truncations).any()
        places.append(env.q)
    return np.array(places)


def simulated(env, start, actions, **options):
    """The same by sl.simulate; options: of it."""
    u = np.repeat(env.torques(actions), env.control_steps, axis=0).swapaxes(0, 1)
    every = env.control_steps * env.motion.step
    how = {"step": env.motion.step, "sample": every, "duration": every * len(actions), "integrator": "rk4"}
    u = u[0] if len(start) == 1 else u
    start = start[0] if len(start) == 1 else start
    run = sl.simulate(env.robot, start, **how, **{name: u if x is ... else x for name, x in options.items()})
    return np.moveaxis(run.q.reshape(-1, *run.q.shape[-2:]), 0, 1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "implicit", "euler"])
def test_velocities_of_closed_loops_are_those_of_a_simulation(integrator, n, dtype):
    how = {"integrator": sl.Integrator(integrator, dtype=dtype), "observation": lambda s: s.v}
    start, read = sl.zoo.four_bar_start(), {"actions": {"crank_hinge": 20.0}, "reward": lambda s: s["crank_hinge"].v}
    env = sl.envs.MechanismEnv(sl.zoo.four_bar(), n, q=start, **how, **read)
    first = env.robot.project(start, [1.0, 0.0, 0.0])[1]
    env.reset(options={"v": first})
    assert np.abs(env.v - first).max() < 1e-6
    begun, actions = env.v, np.random.default_rng(0).uniform(-1.0, 1.0, (10, n, 1))
    for count, action in enumerate(actions, 1):
        observations, rewards = env.step(action)[:2]
        if count in (1, 10):  # the last sample of a run, whatever torques would follow
            u = np.repeat(env.torques(actions[:count]), env.control_steps, axis=0).swapaxes(0, 1)
            q = np.tile(start, (n, 1))
            given = (q[0], first, u[0]) if n == 1 else (q, first, u)
            run = sl.simulate(
                env.robot, *given[:2], tau=given[2], step=1e-3, duration=0.01 * count, limits="stop",
                integrator=how["integrator"],
            )  # fmt: skip
            q, v = run.q.reshape(n, -1, 3), run.v.reshape(n, -1, 3)
            assert np.array_equal(q[:, -1], env.q)
            assert np.array_equal(v[:, -1], env.v)
            assert np.array_equal(v[:, 0], begun)
            assert np.array_equal(rewards, v[:, -1, 0])
            assert np.array_equal(observations, v[:, -1].astype(np.float32))
    opening = np.einsum("nrv,nv->nr", env.robot.closure_jacobian(env.q), env.v)
    assert np.abs(opening).max() < (1e-14 if dtype == "float64" else 1e-5)
    if dtype == "float64":
        env.robot.derivatives(env.q[0], env.v[0], np.zeros(3))  # refuses velocities that open loops


def test_velocities_do_not_depend_on_neighbours_that_end():
    """A run that ends keeps the velocity of its last state, projected, whoever is beside it; so do those that wait."""
    model = sl.zoo.four_bar().with_joint("crank_hinge", limits=(0.6, 1.4))
    how = {"q": sl.zoo.four_bar_start(), "actions": {"crank_hinge": 30.0}, "reward": lambda s: s.time, "limits": "end"}
    how |= {"integrator": "euler", "autoreset_mode": "Disabled"}
    alone, both = (sl.envs.MechanismEnv(model, n, **how) for n in (1, 9))
    ends = []
    for env in (alone, both):
        env.reset(seed=0)
        actions = np.where(np.arange(env.num_envs) == 0, 1.0, 0.0)[:, None]
        while not env.step(actions)[2][0]:
            pass
        ends.append((env.q[0], env.v[0], env.time[0]))
    for a, b in zip(*ends, strict=True):
        assert np.array_equal(a, b)
    opening = both.robot.closure_jacobian(both.q[0]) @ both.v[0]
    assert np.abs(opening).max() < 1e-14
    both.reset(options={"reset_mask": np.arange(9) == 0})
    assert not both.v[0].any()


def test_a_run_that_ends_where_loops_lose_rank_has_a_finite_velocity():
    b = sl.Builder("parallelogram")
    for name in "cpr":
        b.body(name, 1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.revolute("a", "world", "c", "y").revolute("b", "c", "p", "y", (1, 0, 0))
    b.revolute("e", "world", "r", "y", (1.0, 0, 0)).revolute("d", "r", "p", "y", (1, 0, 0), child_position=(1, 0, 0))
    how = {"q": [-1.0, 1.0, -1.0], "actions": {"a": 60.0}, "reward": lambda s: s["a"].v}
    env = sl.envs.MechanismEnv(b.build(), 2, **how, autoreset_mode="Disabled")
    env.reset(seed=0)
    for _ in range(100):
        before = env.v
        _, _, ends, _, infos = env.step([[1.0], [1.0]])
        if ends.any():
            break
    assert set(infos["end_reason"]) == {"singular"}
    assert np.isfinite(env.v).all()
    assert np.abs(env.v).max() < 2.0 * np.abs(before).max()


@pytest.mark.parametrize("n", [1, 5])
def test_a_closed_loop_under_torques_moves_as_in_a_simulation(n):
    env = sl.envs.five_bar_swing_up(n)
    env.reset(seed=3)
    start, actions = env.q, np.random.default_rng(1).uniform(-1.0, 1.0, (20, n, 2))
    assert np.array_equal(stepped(env, actions), simulated(env, start, actions, tau=..., limits="stop"))
    assert env.closure_residual.max() < 1e-13


def test_a_joint_at_its_stop_moves_as_in_a_simulation():
    model = sl.zoo.four_bar().with_joint("crank_hinge", limits=(0.6, 1.4))
    env = sl.envs.MechanismEnv(
        model, 3, q=sl.zoo.four_bar_start(), actions={"crank_hinge": 30.0}, reward=lambda s: s.time, integrator="rk4"
    )
    env.reset(seed=0)
    start, actions = env.q, np.random.default_rng(2).uniform(0.4, 1.0, (40, 3, 1))
    places = stepped(env, actions)
    assert np.array_equal(places, simulated(env, start, actions, tau=..., limits="stop"))
    assert places[..., 0].max() > 1.4 - 1e-9  # the stop is met
    assert places[..., 0].max() < 1.4 + 1e-9


@pytest.mark.slow
def test_a_ball_in_contact_moves_as_in_a_simulation():
    env = sl.envs.stewart_balance(2)
    env.reset(seed=5, options={"q": env.motion.problem.q[0]})
    start, actions = env.q, np.random.default_rng(3).uniform(-1.0, 1.0, (15, 2, 6))
    length = start[0, env.robot.model.q_slice("slide1")][0]

    def legs(t, q, v, u):
        names = [f"slide{k}" for k in range(1, 7)]
        return {n: 28.7 + 6000.0 * (length + u[k] - q[n]) - 500.0 * v[n] for k, n in enumerate(names)}

    expected = simulated(env, start, actions, controller=legs, inputs=...)
    assert np.abs(stepped(env, actions) - expected).max() < 1e-12  # the law is traced from another text


def test_environments_with_parameters_of_their_own_move_as_runs_with_these():
    model, n = sl.zoo.pendulum(2), 4
    p = np.repeat(model.parameters().values[None], n, axis=0)
    p[:, model.parameters().names.index("rod1.mass")] = [0.5, 1.0, 2.0, 4.0]
    actions = {"hinge1": 5.0}
    env = sl.envs.MechanismEnv(model, n, q=[0.3, 0.1], actions=actions, reward=lambda s: s.time, parameters=p)
    env.reset(seed=0)
    start, actions = env.q, np.random.default_rng(4).uniform(-1.0, 1.0, (10, n, 1))
    places = stepped(env, actions)
    assert np.array_equal(places, simulated(env, start, actions, tau=..., parameters=p, limits="stop"))
    assert np.ptp(places[-1, :, 0]) > 1e-3 or np.ptp(places[-1, :, 1]) > 1e-3


def test_frames_are_those_of_each_environments_own_lengths():
    model = sl.zoo.pendulum(2)
    p = np.repeat(model.parameters().values[None], 3, axis=0)
    p[:, list(model.parameters().names).index("hinge2.position.z")] -= [0.0, 0.5, 1.0]
    how = {"actions": {"hinge1": 1.0}, "reward": lambda s: s.time, "observation": ["tip.position", "tip.velocity"]}
    env = sl.envs.MechanismEnv(model, 3, q=[0.4, 0.1], parameters=p, **how)
    found = env.reset(options={"v": [0.3, -0.2]})[0]
    for row, own in zip(found, p, strict=True):
        robot = sl.Dynamics(model.with_parameters(own))
        expected = [*robot.pose(env.q[0], "tip")[:3, 3], *robot.frame_velocity(env.q[0], env.v[0], "tip")]
        assert np.abs(row - expected).max() < 1e-6  # single precision
    assert np.ptp(found[:, 2]) > 0.5


def test_threads_and_the_number_of_neighbours_change_nothing():
    actions = np.random.default_rng(5).uniform(-1.0, 1.0, (10, 7, 2))
    start = sl.envs.five_bar_swing_up(7)
    start.reset(seed=2)
    q = start.q
    whole = sl.envs.five_bar_swing_up(7, threads=2)
    whole.reset(options={"q": q})
    part = sl.envs.five_bar_swing_up(3)
    part.reset(options={"q": q[:3]})
    assert np.array_equal(stepped(whole, actions)[:, :3], stepped(part, actions[:, :3]))


def _both(n, targets, **options):
    """q and v of five-bars under the same actions, on each target, and closure errors."""
    actions = np.random.default_rng(6).uniform(-1.0, 1.0, (10, n, 2))
    found = []
    for target in targets:
        env = sl.envs.five_bar_swing_up(n, target=target, **options)
        env.reset(seed=4)
        places = [env.step(action) and np.hstack([env.q, env.v]) for action in actions]
        found.append((np.array(places), env.closure_residual))
    return found


def test_the_driver_moves_environments_as_the_cpu_does(monkeypatch):
    with doubled_driver(monkeypatch) as double:
        (cpu, _), (gpu, residual) = _both(5, ("cpu", "cuda"))
        assert "launch" in double.story
    assert np.abs(cpu - gpu).max() < 1e-11  # other places of fused multiplications
    assert residual.max() < 1e-13


@pytest.mark.skipif(not driver.is_available(), reason="this machine has no GPU")
def test_a_gpu_moves_environments_as_the_cpu_does():
    (cpu, _), (gpu, residual) = _both(500, ("cpu", "cuda"))
    assert np.abs(cpu - gpu).max() < 1e-11
    assert residual.max() < 1e-13
