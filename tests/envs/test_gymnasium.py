"""Environments under Gymnasium's own checks, wrappers and names."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.wrappers import vector as wrappers  # noqa: E402

NAMES = ["spanloop/FiveBarSwingUp-v0", "spanloop/StewartBalance-v0", "spanloop/LinkageWalker-v0"]
SLOW = [pytest.param(x, marks=[pytest.mark.slow] * (x != NAMES[0])) for x in NAMES]  # they compile for seconds


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.filterwarnings("ignore:.*Box observation space m.*infinity")  # bounds are not known
def test_gymnasium_checks_a_single_environment(name):
    assert sl.envs.__name__ == "spanloop.envs"  # registers
    check_env(gymnasium.make(name).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", SLOW)
def test_a_name_of_gymnasium_makes_many_environments(name):
    env = gymnasium.make_vec(f"spanloop.envs:{name}", num_envs=3, duration=0.1)
    assert isinstance(env, sl.envs.MechanismEnv)
    assert env.num_envs == 3
    assert env.observation_space.shape[0] == env.action_space.shape[0] == 3
    found, infos = env.reset(seed=0)
    assert env.observation_space.contains(found)
    assert infos == {}
    env.action_space.seed(0)
    found, rewards, terminations, truncations, infos = env.step(env.action_space.sample())
    assert env.observation_space.contains(found)
    assert rewards.shape == terminations.shape == truncations.shape == (3,)
    assert terminations.dtype == truncations.dtype == bool
    env.close()
    assert env.closed


def test_max_episode_steps_of_gymnasium_are_actions_of_an_episode():
    name = f"spanloop.envs:{NAMES[0]}"
    env = gymnasium.make_vec(name, num_envs=2, max_episode_steps=3)
    env.reset(seed=0)
    late = [env.step(np.zeros((2, 2)))[3].all() for _ in range(3)]
    assert late == [False, False, True]
    with pytest.raises(InputError, match="duration and max_episode_steps are both lengths of an episode; give one"):
        gymnasium.make_vec(name, num_envs=2, max_episode_steps=3, duration=1.0)
    with pytest.raises(InputError, match="max_episode_steps is 0; expected a whole number of at least 1"):
        gymnasium.make_vec(name, num_envs=2, max_episode_steps=0)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_wrappers_of_gymnasium_count_returns_and_lengths_right(mode):
    env = sl.envs.five_bar_swing_up(4, duration=0.3, autoreset_mode=mode)
    wrapped = wrappers.RecordEpisodeStatistics(wrappers.ClipAction(env))
    wrapped.reset(seed=0)
    random, total, counted = np.random.default_rng(0), np.zeros(4), 0
    for _ in range(20):
        _, rewards, _, truncations, infos = wrapped.step(random.uniform(-1.0, 1.0, (4, 2)))
        total += rewards
        if truncations.any():
            kept = infos["episode"]
            assert np.allclose(kept["r"], total, atol=1e-6)
            assert list(kept["l"]) == [6] * 4
            total, counted = np.zeros(4), counted + 1
    assert counted >= 2


def test_observations_and_rewards_are_normalised_by_gymnasiums_wrappers():
    env = wrappers.NormalizeReward(wrappers.NormalizeObservation(sl.envs.five_bar_swing_up(64)))
    env.reset(seed=0)
    random = np.random.default_rng(0)
    for _ in range(150):
        found = env.step(random.uniform(-1.0, 1.0, (64, 2)))[0]
    assert np.isfinite(found).all()
    assert 0.5 < found.std() < 2.0


def test_without_gymnasium_spanloop_works_and_a_sentence_says_what_to_install():
    code = """
import sys
sys.modules["gymnasium"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "gymnasium" else find(name, *rest)
import spanloop as sl
assert "Gymnasium" in sl.envs.__doc__
assert "five_bar_swing_up" in dir(sl.envs)
try:
    sl.envs.five_bar_swing_up(2)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("sl.envs needs Gymnasium, which is not installed; try: pip install 'spanloop[envs]'")


@pytest.mark.slow
def test_gymnasium_is_imported_only_for_environments():
    code = (
        "import sys, spanloop as sl; sl.simulate(sl.zoo.pendulum(1), duration=0.01); print('gymnasium' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_gymnasium_make_makes_one_environment_without_pictures():
    name = "spanloop/FiveBarSwingUp-v0"
    with pytest.raises(
        InputError, match=r"num_envs is 3. Several: gymnasium.make_vec\('spanloop/FiveBarSwingUp-v0', num"
    ):
        gymnasium.make(name, num_envs=3)
    for make in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(
            UnsupportedError, match=r"render_mode is 'human'; environments draw no pictures. Leave it out"
        ):
            make(name, render_mode="human")


def test_wrappers_of_observations_need_the_autoreset_that_gymnasium_asks_of_them():
    """What docs/envs.md says of Gymnasium's own refusals."""
    plain, normal = wrappers.FlattenObservation, wrappers.NormalizeObservation
    for wrapper, mode, fits in (
        (plain, "NextStep", True),
        (plain, "Disabled", True),
        (plain, "SameStep", False),
        (normal, "NextStep", True),
        (normal, "Disabled", False),
        (normal, "SameStep", False),
    ):
        env = sl.envs.five_bar_swing_up(2, autoreset_mode=mode)
        if fits:
            wrapper(env).reset(seed=0)
        else:
            with pytest.raises((ValueError, AssertionError), match="autoreset_mode"):
                wrapper(env)
