"""The state of environments, as functions of users read it."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import UnsupportedError
from spanloop.zoo import four_bar, four_bar_start

pytest.importorskip("gymnasium")


def made(**options):
    settings = {"q": four_bar_start(), "actions": {"crank_hinge": 5.0}, "reward": lambda s: s["crank_hinge"].v}
    return sl.envs.MechanismEnv(four_bar(), 3, **settings | options)


READ = {
    "time": lambda s: s.time,
    "q": lambda s: s.q,
    "v": lambda s: s.v,
    "action": lambda s: s.action,
    "failed": lambda s: s.failed,
    "parameters": lambda s: s.parameters,
    "q of a joint": lambda s: s["crank_hinge"].q,
    "v of a joint": lambda s: s["crank_hinge"].v,
    "cos": lambda s: s["crank_hinge"].cos,
    "sin": lambda s: s["crank_hinge"].sin,
    "pose": lambda s: s["coupler"].pose,
    "position": lambda s: s["coupler"].position,
    "rotation": lambda s: s["coupler"].rotation,
    "velocity": lambda s: s["coupler"].velocity,
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("function", ["reward", "terminate", "observation"])
def test_functions_of_users_cannot_change_a_state(function, read):
    writes = [False]

    def written(state):
        if writes[0]:
            read(state)[...] = 0
        return {"reward": state.time, "terminate": state.failed, "observation": state.q}[function]

    env = made(**{function: written}, parameters=four_bar().parameters().values)
    env.reset(seed=0)
    env.step(np.zeros((3, 1)))
    writes[0] = True
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        env.step(np.zeros((3, 1)))


def test_what_environments_return_can_be_written_to_and_is_their_own():
    for mode in ("NextStep", "SameStep", "Disabled"):
        env = made(duration=0.02, autoreset_mode=mode, observation=lambda s: s.q, terminate=lambda s: s.failed)
        found = [env.reset(seed=0)[0], *env.step(np.zeros((3, 1)))[:4], env.q, env.v, env.time, env.closure_residual]
        before = env.q
        for x in found:
            x[...] = 1
        assert np.array_equal(env.q, before)
        env.step(np.zeros((3, 1)))
        assert np.isfinite(env.q).all()


def heavy_and_light():
    """A pendulum, and parameters (2, p) of two of other masses."""
    model = sl.zoo.pendulum(1)
    p = np.tile(model.parameters().values, (2, 1))
    p[:, model.parameters().index("rod1.mass")] = [1.0, 5.0]
    return model, p


def swinging(model, reward, **options):
    how = {"q": [0.5], "actions": {model.joints[0].name: 1.0}, "autoreset_mode": "Disabled"}
    env = sl.envs.MechanismEnv(model, 2, reward=reward, **how | options)
    env.reset(seed=0)
    env.step(np.zeros((2, 1)))
    return env


def test_functions_of_a_state_take_the_live_parameters_of_each_environment():
    model, p = heavy_and_light()
    seen = []

    def reward(state):
        seen.append((state.compute("energy", state.q, state.v), state.compute("jacobian", state.q, frame="tip")))
        return state.time

    for given in (p, lambda random, n: p[:n]):
        env = swinging(model, reward, parameters=given)
        assert np.array_equal(env.parameters, p)
        energies, jacobians = seen[-1]
        for k in range(2):
            own = sl.Dynamics(model.with_parameters(p[k]))
            assert np.abs(energies[k] - own.energy(env.q[k], env.v[k])).max() < 1e-12  # rounding of 21 J
            assert np.abs(jacobians[k] - own.jacobian(env.q[k], "tip")).max() < 1e-14


@pytest.mark.parametrize("n", [1, 2])
def test_the_parameters_of_a_state_stay_those_of_its_episode(n):
    model, seen = sl.zoo.pendulum(), []

    def heavier(random, n):
        return model.parameters().values * random.uniform(1.0, 1.1, (n, 1))

    def reward(state):
        seen.append(state.parameters)
        return state["hinge1"].v

    env = sl.envs.MechanismEnv(model, n, actions={"hinge1": 1.0}, reward=reward, parameters=heavier)
    env.reset(seed=0)
    env.step(np.zeros((n, 1)))
    before = seen[0].copy()
    env.reset(seed=1)
    assert np.array_equal(seen[0], before)
    assert not np.array_equal(env.parameters, before)


def test_functions_of_a_state_without_live_parameters_are_those_of_its_robot():
    model, _ = heavy_and_light()
    seen = []

    def reward(state):
        seen.append((state.compute("energy", state.q, state.v), state.robot.energy(state.q, state.v)))
        return state.time

    env = swinging(model, reward)
    assert np.array_equal(*seen[-1])
    assert env.parameters is None


def test_the_robot_of_a_state_is_refused_where_parameters_are_live():
    model, p = heavy_and_light()
    words = r"state\.robot computes with the model's own numbers, .* Use state\.compute\('energy', state\.q, state\.v\)"
    with pytest.raises(UnsupportedError, match=words):
        swinging(model, lambda s: s.robot.energy(s.q, s.v)[:, 1], parameters=p)


@pytest.mark.slow
def test_the_reward_of_the_five_bar_knows_live_parameters():
    model = sl.envs.five_bar_swing_up(1).robot.model
    p = np.tile(model.parameters().values, (2, 1))
    name = next(n for n in model.parameters().names if n.endswith("center.x"))
    p[1, model.parameters().index(name)] += 0.05
    env = sl.envs.five_bar_swing_up(2, reset=0.0, parameters=p)
    env.reset(seed=0)
    rewards = env.step(np.zeros((2, 2)))[1]
    own = sl.envs.five_bar_swing_up(1, reset=0.0, parameters=p[1])
    own.reset(seed=0)
    assert abs(rewards[1] - own.step(np.zeros((1, 2)))[1][0]) < 1e-12
    assert abs(rewards[1] - rewards[0]) > 1e-3
