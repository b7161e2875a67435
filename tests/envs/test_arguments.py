"""Arguments of environments: what they mean, and what a wrong one is answered."""

from __future__ import annotations

import copy
import functools
import pickle
import re

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime.gpu import driver
from spanloop.errors import DeviceError, InputError, StateError, UnsupportedError

pytest.importorskip("gymnasium")


def made(model=None, n=2, **options):
    settings = {"actions": {"hinge1": 5.0}, "reward": lambda s: s["hinge1"].v}
    return sl.envs.MechanismEnv(sl.zoo.pendulum(2) if model is None else model, n, **settings | options)


def test_actions_are_torques_between_their_bounds_and_clipped():
    env = made(actions={"hinge2": (-1.0, 5.0), "hinge1": 2.0})
    assert np.allclose(env.torques([[-1.0, 0.0], [0.0, 1.0], [3.0, -3.0]]), [[0.0, -1.0], [2.0, 2.0], [-2.0, 5.0]])


def test_actions_are_by_default_all_actuated_joints_within_their_efforts():
    env = made(sl.zoo.pendulum(2).with_joint("*", effort=3.0), actions=None)
    assert env.actions.names == ("hinge1", "hinge2")
    assert np.allclose(env.torques([[1.0, -1.0]]), [[3.0, -3.0]])
    assert np.allclose(made(env.robot, actions=["hinge2"]).torques([[0.5]]), [[0.0, 1.5]])


def test_observations_are_all_coordinates_and_rates_by_default():
    env = made(sl.zoo.pendulum(2).with_joint("hinge2", limits=(-1.0, 1.0)), q=[0.3, 0.2])
    found = env.reset(options={"v": [0.1, -0.1]})[0]
    expected = [np.cos(0.3), np.sin(0.3), 0.2, 0.1, -0.1]
    assert np.abs(found - expected).max() < 1e-7


def test_observations_by_name_are_those_of_the_dynamics():
    env = made(observation=["tip.position", "rod1.rotation", "tip.velocity", "hinge2.q"], q=[0.3, 0.2])
    found = env.reset(options={"v": [0.1, -0.1]})[0][0]
    robot, q, v = env.robot, env.q[0], env.v[0]
    parts = [
        robot.pose(q, "tip")[:3, 3],
        robot.pose(q, "rod1")[:3, :3].ravel(),
        robot.frame_velocity(q, v, "tip"),
        [0.2],
    ]
    assert np.abs(found - np.concatenate(parts)).max() < 1e-6


def test_a_controller_of_actions_is_compiled_into_the_steps():
    def hold(q, v, u):
        return {"hinge1": 40.0 * (u[0] - q["hinge1"]) - 8.0 * v["hinge1"]}

    env = made(sl.zoo.pendulum(1), 3, actions={"angle": (-0.5, 0.5)}, controller=hold)
    env.reset(seed=0)
    for _ in range(300):
        env.step([[-1.0], [0.0], [1.0]])
    reached = env.q[:, 0]
    lift = np.array([40.0 * (a - x) for a, x in zip([-0.5, 0.0, 0.5], reached, strict=True)])
    held = env.robot.gravity_torques(env.q)[:, 0]
    assert np.abs(lift - held).max() < 1e-3  # at rest the spring carries the weight
    assert reached[2] > 0.2


def test_forces_on_bodies_act():
    env = made(sl.zoo.pendulum(1), forces=lambda q, v: {"rod1": [0.0, 0.0, 0.0, 3.0, 0.0, 0.0]}, q=[0.2])
    push = made(sl.zoo.pendulum(1), forces=lambda q, v, u: {"rod1": [0.0, 0.0, 0.0, 3.0 + u[0], 0.0, 0.0]}, q=[0.2])
    plain = made(sl.zoo.pendulum(1), q=[0.2])
    ends = []
    for one in (env, push, plain):
        one.reset(seed=0)
        one.step(np.zeros((2, 1)))
        ends.append(one.q)
    assert np.allclose(ends[0], ends[1], atol=1e-12)
    run = sl.simulate(sl.zoo.pendulum(1), [0.2], forces={"rod1": [0, 0, 0, 3.0, 0, 0]}, duration=0.01, limits="stop")
    assert np.abs(ends[0][0] - run.q[-1]).max() < 1e-14


WRONG = [
    ({"n": 0}, "num_envs is 0; expected a whole number of at least 1"),
    ({"control_steps": 1.5}, "control_steps is 1.5; expected a whole number of at least 1"),
    ({"model": "arm.urdf"}, "MechanismEnv: model is a str; expected a Model or a Dynamics"),
    ({"actions": {"hinge": 5.0}}, "actions: 'hinge' is no degree of freedom; did you mean 'hinge"),
    ({"actions": None}, "actions: joint 'hinge1' has no effort, and so no largest torque; give one"),
    ({"actions": {"hinge1": -2.0}}, "actions['hinge1'] is -2.0; expected a positive number, or (low, high)"),
    ({"actions": "hinge1"}, "actions is 'hinge1'; expected {'joint': largest torque}"),
    ({"controller": lambda q, v, u: {}, "actions": None}, "with a controller (q, v, u) expected {'name': (low, high)}"),
    ({"reward": 3.0}, "reward is 3.0; expected a function"),
    ({"terminate": True}, "terminate is True; expected a function of the state"),
    ({"observation": "hinge1.q"}, "observation is 'hinge1.q'; expected names as 'joint.q', or a function"),
    ({"observation": []}, "observation is []; expected names as 'joint.q', or a function of the state"),
    ({"observation": ["hinge1.angle"]}, "observation 'hinge1.angle' is no quantity; expected 'joint.{q,v,cos,sin}'"),
    ({"observation": ["hinge3.q"]}, "observation 'hinge3.q': 'hinge3' is no joint; did you mean 'hinge"),
    ({"observation": ["top.position"]}, "observation 'top.position': 'top' is no frame or body; did you mean 'tip'"),
    (
        {"observation": ["tip.q"]},
        "observation 'tip.q': 'tip' is no joint; it is a frame or body, which has position, rotation, pose, velocity",
    ),
    (
        {"observation": ["hinge1.pose"]},
        "observation 'hinge1.pose': 'hinge1' is no frame or body; it is a joint, which has q, v, cos, sin",
    ),
    ({"observation": lambda s: s["tip"].q}, "state['tip'] is no joint; it is a frame or body, which has position, rot"),
    ({"observation": lambda s: s.q[0]}, "observation returned float64 of shape (2,); expected numbers (2, k)"),
    ({"reset": -1.0}, "reset is -1.0; expected a size of noise [rad or m], {'joint': (low, high)}, or a function"),
    ({"reset": {"hinge": (0, 1)}}, "reset: 'hinge' is no joint of one coordinate; did you mean 'hinge"),
    ({"reset": {"hinge1": (1, 0)}}, "reset['hinge1'] is (1, 0); expected (low, high) [rad or m]"),
    ({"reset": {"hinge1": "far"}}, "reset['hinge1'] is 'far'; expected (low, high) [rad or m]"),
    ({"reset": {}}, "reset is {}; expected a size of noise [rad or m], {'joint': (low, high)}, or a function"),
    ({"actions": ["hinge1", "hinge1"]}, "actions: 'hinge1' is there twice; a degree of freedom has one action"),
    ({"autoreset_mode": ["SameStep"]}, "autoreset_mode is ['SameStep']; "),
    ({"duration": -1.0}, "duration is -1 s; must be positive"),
    ({"step": 0.0}, "step is 0 s; must be positive"),
    ({"limits": "bounce"}, "limits is 'bounce'; expected 'end', 'stop' or 'ignore'"),
    ({"integrator": "DOP853"}, "environments take steps of one length"),
    ({"integrator": "rk5"}, "integrator is 'rk5'; did you mean 'rk4'"),
    ({"autoreset_mode": "SameSteps"}, "autoreset_mode is 'SameSteps'; did you mean 'SameStep'?"),
    ({"target": "gpu"}, "target is 'gpu'; expected 'cpu' or 'cuda'. Try target='cuda'"),
    ({"target": "cudaa"}, "target is 'cudaa'; did you mean 'cuda'?"),
    ({"parameters": np.full(35, np.nan)}, "MechanismEnv: parameters holds a number that is not finite; every number"),
    ({"parameters": "live"}, "parameters has shape () of <U4; expected (..., 35), packed as model.parameters()"),
    (
        {"controller": lambda q, v, u: {"hinge1": u[1]}, "actions": {"push": (-1, 1)}},
        "the controller reads an entry that is not there (index 1 is out of bounds for axis 0 with size 1): u has 1 "
        "number a step, those of inputs= (of an environment, of actions=)",
    ),
    (
        {"q": [[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]]},
        "MechanismEnv: q has shape (3, 2); expected (2,), one start for all environments. For different ones try reset",
    ),
    ({"q": {"hinge1": [[0.1], [0.2]]}}, "MechanismEnv: q has shape (2, 2); expected (2,), one start for all"),
    ({"q": [0.1, 0.2, 0.3]}, "MechanismEnv: q has shape (3,); expected (..., 2)"),
    (
        {"controller": lambda t, q, v: {}, "actions": {"push": (-1, 1)}},
        "controller: the first argument of the function is 't'; expected (q, v, u), as environments differ in age and "
        "nothing that acts on them reads the time. Try it without 't'",
    ),
    ({"forces": lambda time, q, v: {}}, "forces: the first argument of the function is 'time'; expected (q, v) or"),
    ({"forces": lambda t, q, v, u: {}}, "forces: the first argument of the function is 't'; expected (q, v) or (q, v"),
    ({"forces": lambda q: {}}, "forces takes 1 arguments; expected (q, v) or (q, v, u)"),
    (
        {"controller": lambda q, v: {}, "actions": {"push": (-1, 1)}},
        "controller takes 2 arguments; expected (q, v, u)",
    ),
    ({"reward": lambda: 0.0}, "reward takes 0 arguments; expected (state)"),
    ({"reward": lambda state, action: 0.0}, "reward takes 2 arguments; expected (state)"),
    ({"observation": lambda state, n: 0.0}, "observation takes 2 arguments; expected (state)"),
    ({"terminate": lambda state, n: 0.0}, "terminate takes 2 arguments; expected (state)"),
    ({"reset": lambda n: 0.0}, "reset takes 1 arguments; expected (random, n)"),
    ({"parameters": lambda n: 0.0}, "parameters takes 1 arguments; expected (random, n)"),
    ({"seed": -1}, "seed is -1; expected one number, not negative, for all environments"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=[w[1][:40] for w in WRONG])
def test_a_wrong_argument_is_answered_with_what_is_expected(given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        made(**given)


def scaled(s, scale=1.0):
    return scale * s["hinge1"].v


class Scaled:
    def of(self, s):
        return scaled(s)

    def __call__(self, *states):
        return scaled(*states)


@pytest.mark.parametrize("reward", [scaled, functools.partial(scaled, scale=2.0), Scaled().of, Scaled(), np.zeros_like])
def test_functions_of_the_state_may_have_defaults_and_be_methods_and_partials(reward):
    made(reward=reward)


def test_forces_of_any_number_of_arguments_or_with_a_default_are_of_q_and_v():
    pushes = []

    def push(*given, scale=1.0):
        pushes.append(len(given))
        return {"rod1": [0.0, 0.0, 0.0, scale, 0.0, 0.0]}

    made(forces=push)
    made(forces=lambda q, v, scale=1.0: push(q, v, scale=scale))
    assert set(pushes) == {2}


def test_inputs_of_forces_are_torques_of_all_degrees_of_freedom_or_those_of_the_controller():
    seen = []

    def push(q, v, u):
        seen.append(len(u))
        return {"rod1": [0.0, 0.0, 0.0, 0.0, u[0] + 2.0 * u[-1], 0.0]}

    env = made(actions={"hinge2": (-1.0, 5.0)}, forces=push)
    env.reset(seed=0)
    env.step(np.ones((2, 1)))
    run = sl.simulate(
        env.robot, [0.0, 0.0], tau={"hinge2": 5.0}, forces={"rod1": [0, 0, 0, 0, 10.0, 0]}, duration=0.01, limits="stop"
    )
    assert np.abs(env.q[0] - run.q[-1]).max() < 1e-14
    made(forces=push, controller=lambda q, v, u: {"hinge1": u[2]}, actions=dict.fromkeys("abc", (0.0, 1.0)))
    assert set(seen) == {2, 3}


def test_a_row_of_coordinates_is_a_start():
    env = made(q=[[0.3, 0.2]])
    env.reset(seed=0)
    assert np.array_equal(env.q, [[0.3, 0.2], [0.3, 0.2]])


@pytest.mark.parametrize("options", ["q", 1.0, ["reset_mask"]])
def test_options_of_a_reset_are_a_dict(options):
    words = f"reset: options is {options!r}; expected a dict, as {{'q': q, 'v': v, 'reset_mask': mask}}"
    with pytest.raises(InputError, match=re.escape(words)):
        made().reset(options=options)


def test_a_wrong_start_is_refused_by_the_environment():
    how = {
        "model": sl.zoo.four_bar(),
        "q": [0.0, 0.0, 0.0],
        "actions": {"crank_hinge": 1.0},
        "reward": lambda s: s.time,
    }
    with pytest.raises(StateError, match=r"^MechanismEnv: loop .* is open by .*robot.assemble\(q\)$") as found:
        made(**how)
    assert found.value.where == "MechanismEnv"
    words = r"assemble\(q\)\. The start q= of an environment must be a usable one also where reset= is a function"
    with pytest.raises(StateError, match=words):
        made(**how, reset=lambda random, n: np.tile(sl.zoo.four_bar_start(), (n, 1)))


def test_a_duration_that_actions_do_not_divide_is_adjusted_with_a_warning():
    with pytest.warns(
        sl.SpanloopWarning, match=r"duration is 0.024 s, which actions of 0.01 s do not divide; 0.02 s is"
    ):
        env = made(duration=0.024)
    env.reset(seed=0)
    assert not env.step(np.zeros((2, 1)))[3].any()
    assert env.step(np.zeros((2, 1)))[3].all()


def test_rows_for_another_number_of_environments_are_refused():
    p = np.repeat(sl.zoo.pendulum(2).parameters().values[None], 3, axis=0)
    with pytest.raises(InputError, match="arguments have rows for 3 environments; num_envs is 2"):
        made(parameters=p)


@pytest.mark.skipif(driver.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_missing_is_reported_at_once():
    with pytest.raises(DeviceError, match="target 'cuda' needs an NVIDIA GPU"):
        made(target="cuda")


def test_a_step_is_refused_before_a_reset_and_with_wrong_actions():
    env = made()
    with pytest.raises(InputError, match="step: no episode has begun; call reset first"):
        env.step(np.zeros((2, 1)))
    env.reset(seed=0)
    with pytest.raises(
        InputError, match=r"step: actions have shape \(2,\); expected numbers \(2, 1\): hinge1 of every"
    ):
        env.step(np.zeros(2))
    with pytest.raises(StateError, match="action 'hinge1' of environment 1 is nan; every number must be finite"):
        env.step([[0.0], [np.nan]])
    with pytest.raises(InputError, match=r"seed is \[1, 2\]; expected one number"):
        env.reset(seed=[1, 2])
    with pytest.raises(InputError, match=r"reset_mask is int64 of shape \(2,\); expected booleans \(2,\)"):
        env.reset(options={"reset_mask": np.array([1, 0])})


@pytest.mark.parametrize("name", ["q", "v", "time", "parameters", "closure_residual"])
def test_what_an_episode_has_is_refused_before_the_first_reset(name):
    env = made(parameters=sl.zoo.pendulum(2).parameters().values)
    with pytest.raises(InputError, match=f"^{name}: no episode has begun; call reset first"):
        getattr(env, name)
    assert np.allclose(env.torques([0.5]), [2.5, 0.0])  # of actions alone
    env.reset(seed=0)
    assert len(getattr(env, name)) == 2


class RequiresGrad:
    """As a tensor of PyTorch that requires grad is to NumPy."""

    requires_grad = True

    def __array__(self, *args, **kwargs):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_actions_that_numpy_cannot_read_are_refused_with_what_to_give():
    env, one = made(), sl.envs.SingleEnv(made(n=1, autoreset_mode="Disabled"))
    env.reset(seed=0)
    one.reset(seed=0)
    for call, name in ((env.step, "step: actions"), (env.torques, "torques: actions"), (one.step, "step: action")):
        with pytest.raises(InputError, match=rf"{name} is a .* that requires grad \(give its \.detach\(\)"):
            call(RequiresGrad())
    with pytest.raises(InputError, match=r"MechanismEnv: the observation is a .* that requires grad"):
        made(observation=lambda s: RequiresGrad())
    wrong = made(reward=lambda s: RequiresGrad())
    wrong.reset(seed=0)
    with pytest.raises(InputError, match=r"MechanismEnv: the reward is a .* that requires grad"):
        wrong.step(np.zeros((2, 1)))


def test_actions_that_jax_traces_are_refused_with_what_to_use():
    jax = pytest.importorskip("jax")
    env = made()
    env.reset(seed=0)
    with pytest.raises(InputError, match="step: actions is traced by JAX, as inside jit, grad or vmap"):
        jax.jit(lambda a: env.step(a)[1])(np.zeros((2, 1)))


def test_wrong_starts_of_a_reset_are_refused_in_its_name():
    env = made()
    for q, words in (
        ([0.0], r"reset: q has shape \(1,\); expected \(..., 2\)"),
        ({"hinge1": [1.0, 2.0]}, r"reset: q\['hinge1'\] is \[1.0, 2.0\]; expected a number"),
    ):
        with pytest.raises(InputError, match=f"^{words}"):
            env.reset(options={"q": q})
    with pytest.raises(StateError, match=r"^reset: q"):
        env.reset(options={"q": [0.0, np.nan]})


def test_an_environment_warns_in_its_own_name_as_a_simulation_does():
    model = sl.zoo.four_bar()
    p = np.tile(model.parameters().values, (2, 1))
    p[:, model.parameters().index("rocker_hinge.position.x")] *= 1.0002
    how = {"actions": {"crank_hinge": 1.0}, "reward": lambda s: s.time}
    with pytest.warns(sl.SpanloopWarning) as found:
        sl.envs.MechanismEnv(model, 2, q=sl.zoo.four_bar_start(), parameters=p, **how)
    assert [x.filename for x in found] == [__file__]
    assert str(found[0].message).startswith("MechanismEnv: the start was brought to the closed loops: loops were open")
    with pytest.warns(sl.SpanloopWarning, match="^MechanismEnv: joint 'hinge1' starts at 1.5, 0.5 beyond its upper"):
        made(sl.zoo.pendulum(2).with_joint("hinge1", limits=(-1.0, 1.0)), q=[1.5, 0.0])
    with pytest.warns(sl.SpanloopWarning, match="^MechanismEnv: the damping of joint 'hinge1' .* asks for steps below"):
        made(sl.zoo.pendulum(2).with_joint("hinge1", damping=1e4), integrator="rk4")


def test_torques_are_of_as_many_numbers_as_an_action_has():
    env = made(actions={"hinge1": 5.0, "hinge2": 1.0})
    with pytest.raises(
        InputError, match=r"torques: actions have shape \(3,\); expected \(..., 2\): hinge1, hinge2, from"
    ):
        env.torques(np.zeros(3))
    with pytest.raises(InputError, match=r"torques: actions have shape \(\); expected \(..., 2\)"):
        env.torques(0.5)
    with pytest.raises(StateError, match="torques: action 'hinge2' of environment 0 is nan"):
        env.torques([0.0, np.nan])


def test_observations_keep_the_width_of_the_observation_space():
    width = [2]
    env = made(observation=lambda s: np.zeros((len(s), width[0])))
    env.reset(seed=0)
    width[0] = 3
    words = r"observation returned an array of shape \(2, 3\); expected \(2, 2\), as when the environment was made"
    with pytest.raises(InputError, match=words):
        env.step(np.zeros((2, 1)))
    with pytest.raises(InputError, match=words):
        env.reset(seed=1)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_an_environment_is_made_anew_rather_than_copied(copied):
    env = made(n=1, autoreset_mode="Disabled")
    for one in (env, sl.envs.SingleEnv(env)):
        if one is not env and copied is copy.copy:
            continue  # which copies no more than the reference
        with pytest.raises(UnsupportedError, match=r"cannot be pickled or copied: .* Make one in each process"):
            copied(one)


def test_functions_that_return_the_wrong_shape_are_refused():
    for name, words in (
        ("reward", "reward returned float64 of shape (2, 1)"),
        ("terminate", "terminate: 'terminated' is"),
    ):
        env = made(**{name: lambda s: s.q[:, :1]})
        env.reset(seed=0)
        with pytest.raises(InputError, match=re.escape(words)):
            env.step(np.zeros((2, 1)))


def test_a_random_start_of_the_wrong_shape_is_refused():
    env = made(reset=lambda random, n: np.zeros((n, 3)))
    with pytest.raises(
        InputError, match=r"reset returned arrays of shape \(64, 3\), .*; expected q \(64, 2\), or a tuple"
    ):
        env.reset(seed=0)


def test_a_single_environment_is_of_one_that_nothing_resets():
    with pytest.raises(InputError, match="SingleEnv: env has num_envs=2 and autoreset_mode='NextStep'; expected"):
        sl.envs.SingleEnv(made())
    with pytest.raises(InputError, match="SingleEnv: env is a str; expected a MechanismEnv"):
        sl.envs.SingleEnv("env")


@pytest.mark.parametrize("number", ["a", 1.0 + 1.0j])
def test_a_reset_function_that_returns_no_real_numbers_is_refused(number):
    with pytest.raises(InputError, match=r"reset returned (<U1|complex128); expected real numbers"):
        made(reset=lambda random, n: np.full((n, 2), number)).reset()
