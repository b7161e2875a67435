"""Environments with bodies from finite elements without stiffening: episodes that spin too fast end."""

import warnings

import numpy as np
import pytest

import spanloop as sl

pytest.importorskip("gymnasium")
FE = sl.flexible.to_matrices(
    sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=3)
)


def rotors(count, **options):
    """Environments of a blade on a hub, and its first frequency [rad/s]."""
    part = sl.flexible.from_matrices(FE, interfaces={"root": 0, "tip": 6}, basis="cantilever", modes=2, **options)
    b = sl.Builder("rotor", gravity=(0, 0, 0)).body("blade", flexible=part).body("tip", 0.1, inertia=(1e-4,) * 3)
    model = b.revolute("hub", "world", "blade", "z").fixed("weld", "blade.tip", "tip").build()
    acting = {"actions": {"hub": 1.0}, "reward": lambda s: s["hub"].v, "step": 1e-4}
    return sl.envs.MechanismEnv(model, count, **acting), part.frequencies.min()


def stepped(shares, **options):
    """Environments after one step that begins with the hubs at these shares of the first frequency."""
    env, slowest = rotors(len(shares), **options)
    rates = np.zeros((len(shares), env.robot.model.nv))
    rates[:, env.robot.model.v_slice("hub")] = slowest * np.array(shares)[:, None]
    env.reset(options={"v": rates})
    return env.step(np.zeros((len(shares), 1)))


def test_an_episode_ends_where_a_blade_spins_too_fast_for_its_data():
    with pytest.warns(sl.errors.SpanloopWarning, match=r"spins with 0\.4 of its first frequency in environment 2"):
        _, _, terminations, _, infos = stepped([0.05, 0.2, 0.4])
    assert terminations.tolist() == [False, False, True]
    assert infos["end_reason"].tolist() == [None, None, "spin"]
    assert "no geometric stiffening" in infos["end"][2]


def test_spins_are_judged_with_the_live_parameters_of_each_environment():
    env, slowest = rotors(2)
    own = env.robot.model.parameters()
    soft = {x: own.values[own.index(x)] / 100.0 for x in own.names if x.startswith("blade.modes.stiffness")}
    live = np.array([own.values, own.changed(soft).values])
    acting = {"actions": {"hub": 1.0}, "reward": lambda s: s["hub"].v, "step": 1e-4}
    env = sl.envs.MechanismEnv(env.robot.model, 2, parameters=live, **acting)
    env.reset(options={"v": np.eye(env.robot.model.nv)[0] * 0.05 * slowest})
    with pytest.warns(sl.errors.SpanloopWarning, match="in environment 1"):
        _, _, terminations, _, infos = env.step(np.zeros((2, 1)))
    assert terminations.tolist() == [False, True]
    assert infos["end_reason"][1] == "spin"


def test_slow_blades_are_silent_and_any_spin_goes_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not stepped([0.05])[2].any()
    with pytest.warns(sl.errors.SpanloopWarning, match="spins with"):
        assert not stepped([0.4], any_spin=True)[2].any()
