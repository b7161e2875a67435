"""Ends of episodes and what follows, compared with gymnasium.vector.SyncVectorEnv over single environments."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

MODES = [mode.value for mode in AutoresetMode]
N = 3


def pendulums(n, mode="NextStep", **options):
    """Pendulums that swing from rest; episodes end at 0.6 rad, or after 0.4 s."""
    settings = {
        "q": [0.0],
        "actions": {"hinge1": 20.0},
        "reward": lambda s: 1.0 + s["hinge1"].v,
        "terminate": lambda s: {"far": np.abs(s["hinge1"].q) > 0.6},
        "duration": 0.4,
        "step": 1e-2,
        "control_steps": 2,
        "autoreset_mode": mode,
    }
    return sl.envs.MechanismEnv(sl.zoo.pendulum(1), n, **settings | options)


def actions(steps, seed=0):
    """Strong for one environment, weak for another: episodes end at different times, and for both reasons."""
    random = np.random.default_rng(seed)
    return random.uniform(-1.0, 1.0, (steps, N, 1)) * 0.2 + np.array([1.0, 0.5, 0.0])[:, None]


@pytest.mark.parametrize("mode", MODES)
def test_episodes_go_on_as_those_of_gymnasiums_own_vector_environment(mode):
    ours = pendulums(N, mode)
    theirs = SyncVectorEnv([lambda: sl.envs.SingleEnv(pendulums(1, "Disabled"))] * N, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert np.array_equal(ours.reset(seed=0)[0], theirs.reset(seed=0)[0])
    ends = np.zeros(2, int)
    for action in actions(80):
        one, other = ours.step(action), theirs.step(action)
        for a, b in zip(one[:4], other[:4], strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            assert np.abs(a.astype(float) - b).max() < 1e-6  # one run and batches round differently; float32
        assert_same_infos(one[4], other[4])
        ends += [one[2].sum(), one[3].sum()]
        done = one[2] | one[3]
        if mode == "Disabled" and done.any():
            again = [e.reset(options={"reset_mask": done.copy()})[0] for e in (ours, theirs)]
            assert np.abs(again[0] - again[1]).max() < 1e-6
    assert (ends > 2).all()  # terminated and truncated


def assert_same_infos(one, other):
    assert set(one) == set(other)
    for name, value in one.items():
        if name == "final_info":
            assert_same_infos(value, other[name])
        elif name == "final_obs":
            for a, b in zip(value, other[name], strict=True):
                assert (a is None and b is None) or np.abs(a - b).max() < 1e-6
        elif name == "end":
            assert [x is None for x in value] == [x is None for x in other[name]]
        else:
            assert list(value) == list(other[name]), name


def test_the_step_after_an_end_resets_and_ignores_its_action():
    env = pendulums(N)
    first = env.reset(seed=0)[0]
    while not (done := np.logical_or(*env.step(np.array([[1.0], [0.0], [0.0]]))[2:4])).any():
        pass
    assert list(done) == [True, False, False]
    found, rewards, terminations, truncations, infos = env.step(np.ones((N, 1)))
    assert np.array_equal(found[0], first[0])
    assert rewards[0] == 0.0
    assert rewards[1] > 1.0
    assert not terminations[0]
    assert not truncations.any()
    assert infos == {}
    assert env.time[0] == 0.0


def test_a_step_of_an_ended_environment_is_refused_where_nothing_resets_it():
    env = pendulums(N, "Disabled", duration=0.04)
    env.reset(seed=0)
    env.step(np.zeros((N, 1)))
    *_, truncations, infos = env.step(np.zeros((N, 1)))
    assert truncations.all()
    assert list(infos["end_reason"]) == ["duration"] * N
    with pytest.raises(InputError, match=r"environment 0 has ended \(3 of 3\), and autoreset_mode is 'Disabled'"):
        env.step(np.zeros((N, 1)))
    env.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(InputError, match=r"environment 1 has ended \(1 of 3\)"):
        env.step(np.zeros((N, 1)))


def test_a_mask_resets_these_environments_alone():
    env = pendulums(N, reset=0.1)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros((N, 1)))
    before = env.q
    env.reset(options={"reset_mask": np.array([False, True, False])})
    assert list(env.time > 0.0) == [True, False, True]
    assert np.array_equal(env.q[[0, 2]], before[[0, 2]])


# ---- motions that cannot go on


@pytest.mark.slow
def test_a_limit_ends_an_episode_with_the_joint_in_the_reason():
    model = sl.zoo.four_bar().with_joint("crank_hinge", limits=(0.6, 1.4))
    options = {"q": sl.zoo.four_bar_start(), "actions": {"crank_hinge": 30.0}, "reward": lambda s: s.time}
    env = sl.envs.MechanismEnv(model, 2, limits="end", **options)
    env.reset(seed=0)
    for _ in range(100):
        found, _, terminations, _, infos = env.step(np.array([[1.0], [0.0]]))
        assert np.isfinite(found).all()
        if terminations[0]:
            break
    assert infos["end_reason"][0] == "limit"
    assert "joint 'crank_hinge' reached its upper limit, 1.4, at t = " in infos["end"][0]
    assert env.q[0, 0] <= 1.4
    alone = sl.simulate(env.robot, options["q"], tau={"crank_hinge": 30.0}, duration=1.0, integrator="rk4")
    assert alone.outcome.reason == "limit"
    t = float(infos["end"][0].split("t = ")[1].split(" s")[0])
    assert abs(t - alone.outcome.time) < 1e-5  # interpolated in a step of 1 ms


def parallelogram():
    b = sl.Builder("parallelogram", gravity=(0.0, 0.0, 0.0))
    for name, length in (("crank", 0.5), ("coupler", 1.0), ("rocker", 0.5)):
        b.body(name, 1.0, (0.5 * length, 0.0, 0.0), (1e-3, length**2 / 12, length**2 / 12))
    b.revolute("left", "world", "crank", "z").revolute("top", "crank", "coupler", "z", (0.5, 0.0, 0.0))
    b.revolute("right", "world", "rocker", "z", (1.0, 0.0, 0.0))
    b.frame("tip", "coupler", (1.0, 0.0, 0.0)).frame("end", "rocker", (0.5, 0.0, 0.0))
    return b.loop("tip", "end", "revolute").build()


@pytest.mark.parametrize("n", [1, 3])
def test_a_singular_position_ends_an_episode_and_observations_stay_finite(n):
    """All links in a line: the loop loses rank."""
    robot = sl.Dynamics(parallelogram())
    q = robot.assemble([0.01, -0.01, 0.01])
    v = robot.complete_velocity(q, {"left": -3.0})
    how = {"q": q, "actions": {"left": 1.0}, "reward": lambda s: s.time, "step": 1e-5, "control_steps": 50}
    env = sl.envs.MechanismEnv(robot, n, integrator="rk4", **how)
    env.reset(options={"q": q, "v": v})
    for _ in range(20):
        found, _, terminations, _, infos = env.step(np.zeros((n, 1)))
        assert np.isfinite(found).all()
        if terminations.any():
            break
    assert terminations.all()
    assert infos["end_reason"][0] == "singular"
    assert "singular configuration" in infos["end"][0]


def test_many_failures_at_once_are_explained_as_far_as_that_takes_no_time():
    model = sl.zoo.pendulum(2)
    env = sl.envs.MechanismEnv(
        model, 40, actions={"hinge1": 1e160}, reward=lambda s: s.time, step=1e-2, integrator="rk4"
    )
    env.reset(seed=0)
    found, _, terminations, _, infos = env.step(np.ones((40, 1)))
    assert terminations.all()
    assert np.isfinite(found).all()
    reasons = list(infos["end_reason"])
    assert reasons[0] == "not_finite"
    assert "the motion was lost" in infos["end"][0] or "not finite" in infos["end"][0]
    assert reasons.count("failed") == 24
    assert "failed, as those of 39 others, of which 16 are explained" in infos["end"][-1]


def test_a_function_of_the_user_that_returns_nan_is_refused():
    env = pendulums(N, reward=lambda s: np.where(s.time > 0.03, np.nan, 0.0))
    env.reset(seed=0)
    env.step(np.zeros((N, 1)))
    with pytest.raises(InputError, match="reward returned nan for environment 0; every number must be finite"):
        env.step(np.zeros((N, 1)))


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_an_episode_that_terminates_in_its_last_step_is_not_truncated(mode):
    """TimeLimit of Gymnasium reports both; docs/envs.md says so."""
    env = pendulums(2, duration=0.04, terminate=lambda s: (s.time > 0.03) & [True, False], autoreset_mode=mode)
    env.reset(seed=0)
    env.step(np.zeros((2, 1)))
    _, _, terminations, truncations, infos = env.step(np.zeros((2, 1)))
    assert (terminations.tolist(), truncations.tolist()) == ([True, False], [False, True])
    assert infos["end_reason"].tolist() == ["terminated", "duration"]


def test_of_two_reasons_that_are_met_at_once_the_first_counts():
    env = pendulums(N, terminate=lambda s: {"first": s.time > 0.0, "second": s.time > 0.0})
    env.reset(seed=0)
    infos = env.step(np.zeros((env.num_envs, len(env.actions))))[4]
    assert list(infos["end_reason"]) == ["first"] * env.num_envs
