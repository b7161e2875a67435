"""The three ready environments: what no action and a simple law reach, and that loops stay closed."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl

pytest.importorskip("gymnasium")


def played(env, law, steps):
    """Mean return of one episode, and how many ended for each reason, with actions law(observations)."""
    found, _ = env.reset(seed=1)
    total, ended, reasons = np.zeros(env.num_envs), np.zeros(env.num_envs, bool), {}
    for _ in range(steps):
        found, rewards, terminations, truncations, infos = env.step(law(found))
        total += np.where(ended, 0.0, rewards)
        new = (terminations | truncations) & ~ended
        for reason in infos["end_reason"][new] if new.any() else ():
            reasons[reason] = reasons.get(reason, 0) + 1
        ended |= new
        if ended.all():
            break
    return total.mean(), reasons


def test_the_five_bar_begins_at_rest_below_and_stands_where_its_reward_is_one():
    env = sl.envs.five_bar_swing_up(2, reset=0.0)
    hanging = env.motion.problem.q[0]
    a = env.robot.forward_dynamics(hanging, np.zeros(4), np.zeros(4))
    assert np.abs(a).max() < 1e-3  # five digits of the coordinates are given
    env.reset(options={"q": env.robot.assemble(-hanging)})  # gravity acts along −y: the mirror image is in balance
    assert abs(env.step(np.zeros((2, 2)))[1] - 1.0).max() < 1e-3
    env.reset()
    assert abs(env.step(np.zeros((2, 2)))[1]).max() < 1e-3


def test_the_five_bar_does_not_rise_without_swinging():
    """Full torque one way lifts it by a part: it must pump."""
    env = sl.envs.five_bar_swing_up(16)
    for sign in (-1.0, 1.0):
        env.reset(seed=0)
        for _ in range(99):
            env.step(np.full((16, 2), sign))
            assert env.robot.center_of_mass(env.q)[:, 1].max() < 0.3
    assert env.closure_residual.max() < 1e-12


@pytest.mark.slow
def test_a_linear_law_keeps_the_ball_that_a_level_platform_loses():
    env = sl.envs.stewart_balance(32)
    corners = np.radians([-50, 50, 70, 170, 190, 290])
    slopes = 0.6 / 0.08 * np.stack([np.cos(corners), np.sin(corners)])
    kept, reasons = played(env, lambda o: (0.5 * o[:, :2] + 0.4 * o[:, 2:4]) @ slopes, 260)
    assert reasons == {"duration": 32}
    assert kept > 230.0
    idle, reasons = played(env, lambda o: np.zeros((32, 6)), 260)
    assert reasons["ball_lost"] > 16
    assert idle < 0.8 * kept
    assert env.closure_residual.max() < 1e-12


@pytest.mark.slow
def test_a_motor_that_holds_its_speed_walks_and_none_stands():
    env = sl.envs.linkage_walker(8)
    walked, reasons = played(env, lambda o: np.clip((5.0 - 10.0 * o[:, -1:]) / 3.0, -1.0, 1.0), 260)
    assert reasons == {"duration": 8}
    assert walked > 180.0
    stood, _ = played(env, lambda o: np.zeros((8, 1)), 260)
    assert abs(stood) < 20.0
