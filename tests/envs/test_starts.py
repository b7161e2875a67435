"""Starts of episodes: closed, random as asked, and the same for the same seed."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest
from linkage import linkage

import spanloop as sl
from spanloop.errors import InputError, StateError

pytest.importorskip("gymnasium")


def four_bars(n, **options):
    settings = {"q": sl.zoo.four_bar_start(), "actions": {"crank_hinge": 5.0}, "reward": lambda s: s["crank_hinge"].v}
    return sl.envs.MechanismEnv(sl.zoo.four_bar(), n, **settings | options)


def test_random_starts_are_closed_and_within_their_noise():
    env = four_bars(200, reset=0.3)
    env.reset(seed=1)
    assert np.abs(env.robot.closure_error(env.q)).max() < 1e-12
    off = env.q[:, 0] - sl.zoo.four_bar_start()[0]
    assert np.abs(off).max() < 0.3 + 1e-11  # of the independent coordinate; assemble closes to 1e-12
    assert np.ptp(off) > 0.57


def test_starts_of_live_loops_whose_joints_have_stops_are_closed():
    model = sl.zoo.four_bar().with_joint("crank_hinge", limits=(-2.0, 2.0))
    own = model.parameters()
    values = np.tile(own.values, (4, 1))
    values[:, own.names.index("coupler_hinge.position.x")] *= [0.9996, 0.9999, 1.0, 1.0004]
    how = {"actions": {"crank_hinge": 5.0}, "reward": lambda s: s.time, "reset": 0.1}
    env = sl.envs.MechanismEnv(model, 4, q=sl.zoo.four_bar_start(), parameters=lambda random, n: values[:n], **how)
    env.reset(seed=0)
    for k in range(4):
        robot = sl.Dynamics(model.with_parameters(values[k]))
        assert np.abs(robot.closure_error(env.q[k])).max() < 1e-12  # rounding; they were open by 4e-4


@pytest.mark.parametrize("limits", ["stop", "ignore"])
def test_starts_of_live_loops_that_can_be_switched_are_closed(limits):
    b = sl.Builder("switched").body("arm", 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
    b.body("bar", 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
    b.revolute("shoulder", "world", "arm", "y", limits=(-2.0, 2.0)).revolute("elbow", "arm", "bar", "y", (0.4, 0, 0))
    b.frame("tip", "bar", (0.5, 0, 0)).frame("hook", "world", (0.6, 0, 0))
    model = b.loop("hook", "tip", sl.joints.PointOnPlane("z"), name="rail", switchable=True).build()
    start = sl.Dynamics(model).assemble([0.5, -1.0])
    how = {"actions": {"shoulder": 5.0}, "reward": lambda s: s.time, "reset": 0.1, "limits": limits}
    env = sl.envs.MechanismEnv(model, 8, q=start, parameters=model.parameters(), **how)
    env.reset(seed=0)
    assert np.abs(sl.Dynamics(model).closure_error(env.q)).max() < 1e-12
    assert np.ptp(env.q[:, 0]) > 0.05


def floating(joint):
    b = sl.Builder("floating").body("ball", 1.0, inertia=[0.1, 0.1, 0.1])
    return {"free": b.free, "ball": b.spherical, "planar": b.planar}[joint]("flight", "world", "ball").build()


@pytest.mark.parametrize("joint", ["free", "ball", "planar"])
@pytest.mark.parametrize("size", [0.1, 1.0])
def test_noise_turns_and_shifts_floating_bodies_by_no_more_than_its_size(joint, size):
    model = floating(joint)
    start = sl.Dynamics(model).integrate(model.neutral(), [0.8, -0.3, 0.5, 1.0, -2.0, 3.0][: model.nv])
    env = sl.envs.MechanismEnv(
        model, 500, q=start, forces=lambda q, v, u: {}, reward=lambda s: s.time, reset=size,
        actions={"push": (-1, 1)}, controller=lambda q, v, u: [0.0] * model.nv,
    )  # fmt: skip
    env.reset(seed=0)
    begin, poses = env.robot.pose(start, "ball"), env.robot.pose(env.q, "ball")
    relative = np.einsum("ji,njk->nik", begin[:3, :3], poses[:, :3, :3])
    angles = np.arccos(np.clip((np.trace(relative, axis1=1, axis2=2) - 1.0) / 2.0, -1.0, 1.0))
    shifts = np.linalg.norm(poses[:, :3, 3] - begin[:3, 3], axis=1)
    assert 0.9 * size < angles.max() < size + 1e-7
    if joint != "ball":
        assert 0.9 * size < shifts.max() < size + 1e-12


@pytest.mark.slow
def test_noise_of_a_platform_moves_every_leg_by_no_more_than_its_size():
    model, start = sl.zoo.stewart(), sl.zoo.stewart_start(position=(0.0, 0.0, 1.2))
    how = {"actions": {"slide1": 1.0}, "reward": lambda s: s.time, "reset": 0.05}
    env = sl.envs.MechanismEnv(model, 200, q=start, **how)
    env.reset(seed=0)
    legs = [model.q_slice(f"slide{k}").start for k in range(1, 7)]
    off = np.abs(env.q[:, legs] - np.asarray(start)[legs])
    assert 0.049 < off.max() < 0.05 + 1e-11
    assert np.abs(env.robot.closure_error(env.q)).max() < 1e-12


def test_coordinates_are_drawn_from_their_ranges_and_others_follow():
    env = four_bars(200, reset={"crank_hinge": (0.2, 2.0)})
    env.reset(seed=1)
    crank = env.q[:, 0]
    assert 0.2 <= crank.min() < 0.3
    assert 1.9 < crank.max() <= 2.0
    assert np.abs(env.robot.closure_error(env.q)).max() < 1e-12
    middle = np.histogram(crank, 3, (0.2, 2.0))[0]
    assert middle.min() > 40  # 67 of 200 in each third, and a deviation of 7


def test_a_crank_that_is_drawn_all_round_keeps_the_way_in_which_its_linkage_is_put_together():
    model = linkage("d")
    start = sl.Dynamics(model).assemble([-0.9, 0.8, -1.6])
    env = sl.envs.MechanismEnv(
        model, 64, q=start, actions={"a": 1.0}, reward=lambda s: s.time, reset={"a": (-3.1, 3.1)}
    )
    env.reset(seed=2)
    assert np.ptp(env.q[:, 0]) > 5.0

    def side(a, b, c):  # of the coupler on which the rocker is
        return np.sign(np.sin(a + b - c))

    assert (side(*env.q.T) == side(*start)).all()


def test_velocities_that_a_function_draws_become_closed():
    def drawn(random, n):
        v = np.zeros((n, 3))
        v[:, 0] = random.uniform(1.0, 2.0, n)
        return np.tile(sl.zoo.four_bar_start(), (n, 1)), v

    env = four_bars(8, reset=drawn)
    env.reset(seed=1)
    rates = np.einsum("nrv,nv->nr", env.robot.closure_jacobian(env.q), env.v)
    assert np.abs(rates).max() < 1e-12
    assert np.abs(env.v[:, 1:]).max() > 0.1


@pytest.mark.slow
def test_starts_that_cannot_be_assembled_are_drawn_again():
    """A four-bar whose crank is shorter than it needs to turn: beyond some angle nothing closes."""
    model = sl.zoo.four_bar(crank=1.2, coupler=0.9)
    robot = sl.Dynamics(model)
    guess = sl.zoo.four_bar_start(crank=1.2, coupler=0.9)
    angles = np.linspace(-np.pi, np.pi, 60)
    with pytest.warns(sl.SpanloopWarning):
        closable = np.isfinite(robot.assemble(np.stack([angles, 0 * angles, 0 * angles], axis=1), ["crank_hinge"]))
    assert 0.1 < closable[:, 0].mean() < 0.95
    how = {"actions": {"crank_hinge": 5.0}, "reward": lambda s: s.time}
    env = sl.envs.MechanismEnv(model, 50, q=guess, reset={"crank_hinge": (-np.pi, np.pi)}, **how)
    env.reset(seed=0)
    assert np.abs(robot.closure_error(env.q)).max() < 1e-12


@pytest.mark.slow
def test_starts_that_never_close_are_refused_with_the_loop():
    env = four_bars(4, reset=lambda random, n: np.tile([0.0, 0.0, 0.0], (n, 1)) + 0.1)
    env.reset(seed=0)  # far from closed, and assembled
    model = sl.zoo.four_bar().with_joint("*", limits=(0.4, 1.5))  # of the coupler's hinge nothing closed is inside
    with pytest.raises(StateError, match=r"reset: none of 64 random starts can be used; of the first: .*loop"):
        sl.envs.MechanismEnv(
            model, 4, q=sl.zoo.four_bar_start(), actions={"crank_hinge": 5.0}, reward=lambda s: s.time, limits="ignore",
            reset={"crank_hinge": (0.5, 0.6)},
        ).reset(seed=0)  # fmt: skip


def trace(env, seed, steps=30):
    out = [env.reset(seed=seed)[0]]
    random = np.random.default_rng(9)
    for _ in range(steps):
        found = env.step(random.uniform(-1.0, 1.0, env.action_space.shape))
        out.append(np.column_stack([found[0], *found[1:4]]))
    return np.concatenate([x.ravel() for x in out])


def test_the_same_seed_has_the_same_episodes_and_another_has_others():
    env = four_bars(4, reset=0.2, duration=0.1)
    first = trace(env, 7)
    assert np.array_equal(first, trace(env, 7))
    assert np.array_equal(first, trace(four_bars(4, reset=0.2, duration=0.1), 7))
    assert not np.array_equal(first, trace(env, 8))
    seeded = four_bars(4, reset=0.2, seed=7)
    assert np.array_equal(seeded.reset()[0], env.reset(seed=7)[0])


def test_given_starts_are_used_and_open_ones_refused():
    env = four_bars(3)
    other = env.robot.assemble({"crank_hinge": 1.3}, ["crank_hinge"])
    env.reset(options={"q": other})
    assert np.abs(env.q - other).max() < 1e-11  # assemble closes to 1e-12
    with pytest.raises(StateError, match="is open by"):
        env.reset(options={"q": other + [0.2, 0.0, 0.0]})
    for count in (2, 4):
        with pytest.raises(InputError, match=rf"q and v for {count} environments; 3 of 3 are reset. Expected one row"):
            env.reset(options={"q": np.tile(other, (count, 1))})
    with pytest.raises(InputError, match=r"there is no option 'reset_masks'; did you mean 'reset_mask'\?"):
        env.reset(options={"reset_masks": np.ones(3, bool)})


def test_a_start_that_opens_loops_is_changed_with_a_warning():
    """The words are those of a simulation that begins there."""
    env, v = four_bars(2), np.ones(3)
    words = (
        r"the start was brought to the closed loops: velocities opened the loops, and were changed by up to 3.6e\+00"
    )
    with pytest.warns(sl.SpanloopWarning, match=f"^reset: {words}") as found:
        env.reset(options={"q": np.tile(sl.zoo.four_bar_start(), (2, 1)), "v": v})
    assert found[0].filename == __file__
    with pytest.warns(sl.SpanloopWarning, match=f"^simulate: {words}"):
        run = sl.simulate(env.robot, sl.zoo.four_bar_start(), v, duration=0.01)
    assert np.array_equal(env.v[0], run.v[0])
    with pytest.warns(sl.SpanloopWarning, match=r"^reset: .* loops were open by up to"):
        env.reset(options={"q": sl.zoo.four_bar_start() + [1e-5, 0.0, 0.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(options={"q": env.q, "v": env.v})


def test_rows_of_starts_with_a_mask_are_of_those_that_are_reset():
    env = four_bars(4)
    env.reset(seed=0)
    q = env.robot.assemble(np.tile(sl.zoo.four_bar_start(), (2, 1)) + [[0.1, 0, 0], [0.2, 0, 0]], ["crank_hinge"])
    env.reset(options={"reset_mask": np.array([False, True, False, True]), "q": q})
    assert np.abs(env.q[[1, 3]] - q).max() < 1e-11
    assert np.array_equal(env.q[[0, 2]], np.tile(sl.zoo.four_bar_start(), (2, 1)))
    for count in (1, 2):
        mask = np.arange(4) < count
        with pytest.raises(InputError, match=f"q and v for 4 environments; {count} of 4 are reset"):
            env.reset(options={"reset_mask": mask, "q": np.tile(sl.zoo.four_bar_start(), (4, 1))})


@pytest.mark.slow
def test_random_starts_are_inside_limits():
    model = sl.zoo.pendulum(2).with_joint("hinge1", limits=(-0.5, 0.5))
    how = {"actions": {"hinge1": 5.0}, "reward": lambda s: s.time, "reset": 1.0}
    env = sl.envs.MechanismEnv(model, 100, **how)
    env.reset(seed=0)
    assert np.abs(env.q[:, 0]).max() <= 0.5
    assert np.abs(env.q[:, 1]).max() > 0.9
    free = sl.envs.MechanismEnv(model, 100, limits="ignore", **how)
    free.reset(seed=0)
    assert np.abs(free.q[:, 0]).max() > 0.9
    far = {"reset": lambda random, n: np.tile([0.7, 0.0], (n, 1))}
    with pytest.raises(StateError, match=r"none of 64 .*: joint 'hinge1' is at 0.7, outside -0.5 to 0.5"):
        sl.envs.MechanismEnv(model, 4, **how | far).reset(seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("limits", ["stop", "end"])
def test_given_starts_beyond_a_limit_are_used_with_a_warning(limits):
    """The words are those of a simulation that begins there."""
    model = sl.zoo.pendulum(2).with_joint("hinge1", limits=(-0.5, 1.5))
    env = sl.envs.MechanismEnv(model, 2, actions={"hinge1": 5.0}, reward=lambda s: s.time, limits=limits)
    words = "joint 'hinge1' starts at 2, 0.5 beyond its upper limit 1.5; "
    with pytest.warns(sl.SpanloopWarning, match=f"^reset: {words}") as found:
        env.reset(options={"q": [2.0, 0.0]})
    assert found[0].filename == __file__
    with pytest.warns(sl.SpanloopWarning, match=f"^simulate: {words}") as simulated:
        sl.simulate(model, [2.0, 0.0], duration=0.01, limits=limits)
    assert simulated[0].filename == __file__
    assert str(simulated[0].message).removeprefix("simulate") == str(found[0].message).removeprefix("reset")
    assert np.array_equal(env.q, [[2.0, 0.0]] * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(options={"q": [1.0, 0.0]})
        free = sl.envs.MechanismEnv(model, 2, actions={"hinge1": 5.0}, reward=lambda s: s.time, limits="ignore")
        free.reset(options={"q": [2.0, 0.0]})


def test_starts_that_a_function_draws_are_closed_without_a_warning():
    q = np.array(sl.zoo.four_bar_start()) + [0.0, 0.01, 0.0]
    env = four_bars(4, reset=lambda random, n: (np.tile(q, (n, 1)), np.ones((n, 3))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(seed=0)
    assert np.abs(env.robot.closure_error(env.q)).max() < 1e-12
    assert np.abs(np.einsum("nrv,nv->nr", env.robot.closure_jacobian(env.q), env.v)).max() < 1e-12


def test_lengths_of_loops_that_open_them_by_more_than_a_thousandth_are_refused():
    model = sl.zoo.four_bar()
    place = list(model.parameters().names).index("rocker_hinge.position.x")

    def env(share):
        p = np.tile(model.parameters().values, (2, 1))
        p[:, place] *= 1.0 + share
        return four_bars(2, parameters=lambda random, n: p[:n])

    made = env(2e-4)
    made.reset(seed=0)
    assert made.closure_residual.max() < 1e-12
    with pytest.raises(StateError, match=r"^reset: .* is open by .* \(with the live parameters\)"):
        env(2e-2).reset(seed=0)


def damped(values, **options):
    """Pendulums with dampers of these values, one drawn for each episode in turn; with 1e4 a rate of 1.5e5 1/s."""
    model, turns = sl.zoo.pendulum(2), itertools.cycle(values)
    own, places = model.parameters(), [model.parameters().names.index(f"hinge{k}.damping") for k in (1, 2)]

    def drawn(random, n):
        p = np.tile(own.values, (n, 1))
        p[:, places] = np.array([next(turns) for _ in range(n)])[:, None]
        return p

    how = {"actions": {"hinge1": 5.0}, "reward": lambda s: s.time, "autoreset_mode": "Disabled"}
    return sl.envs.MechanismEnv(model, 2, q=[1.0, 0.2], parameters=drawn, **how | options)


def test_steps_are_implicit_where_parameters_that_are_drawn_are_too_stiff():
    env = damped([0.0, 1e4])
    assert env.motion.integrator.name == "implicit"
    env.reset(seed=0)
    ended = env.step(np.ones((2, 1)))[2]
    assert not ended.any()
    with pytest.warns(sl.SpanloopWarning, match="^MechanismEnv: the damping of joint 'hinge2' .*integrator='implicit'"):
        damped([0.0, 1e4], integrator="rk4")


def test_an_episode_whose_parameters_are_stiffer_than_all_before_names_the_joint():
    env = damped([0.0] * 64 + [0.0, 1e4])  # 64 examples, and the first episodes
    assert env.motion.integrator.name == "rk4"
    env.reset(seed=0)
    ended, infos = env.step(np.ones((2, 1)))[2::2]
    assert ended.tolist() == [False, True]
    assert infos["end_reason"][1] == "not_finite"
    assert re.search("The damping of joint 'hinge2' .* Use integrator='implicit'", infos["end"][1])


def test_every_episode_draws_its_parameters_and_moves_with_them():
    model = sl.zoo.four_bar()
    place = list(model.parameters().names).index("coupler.mass")

    def drawn(random, n):
        p = np.tile(model.parameters().values, (n, 1))
        p[:, place] *= random.uniform(0.2, 5.0, n)
        return p

    env = four_bars(3, parameters=drawn, duration=0.05, control_steps=50)
    seen = []
    env.reset(seed=0)
    for _ in range(6):
        start, live = env.q, env.motion.problem.system.live_parameters(env.motion.constants_of(np.arange(3))).copy()
        env.step(np.ones((3, 1)))
        run = sl.simulate(
            env.robot, start, tau={"crank_hinge": 5.0}, duration=0.05, parameters=live, limits="stop", integrator="rk4"
        )
        assert np.array_equal(env.q, run.q[:, -1])
        seen.append(live[:, place])
        env.step(np.ones((3, 1)))  # resets
    assert len(np.unique(seen)) == 18
    with pytest.raises(InputError, match=r"parameters returned float64 of shape \(3,\); expected numbers \(3, "):
        four_bars(3, parameters=lambda random, n: np.ones(n)).reset()
    with pytest.raises(InputError, match=r"parameters returned what no mechanism can have, in row 0: .*must be >= 0"):
        four_bars(3, parameters=lambda random, n: -drawn(random, n)).reset()


def hanging(reach, **options):
    """Two environments of a ball on two hinges above a floor 1.5 m below, with arms of these lengths [m]."""
    b = sl.Builder("arm").body("arm", 1.0, (0, 0, -0.5), (0.1,) * 3).body("ball", 1.0, (0, 0, 0), (0.1,) * 3)
    b.revolute("shoulder", "world", "arm", "y").revolute("wrist", "arm", "ball", "y", position=(0, 0, -1.0))
    floor = ("world", sl.contacts.Plane(position=(0.0, 0.0, -1.5)))
    model = b.build().with_contact("touch", ("ball", sl.contacts.Sphere(0.1)), floor, friction=0.5)
    p = np.tile(model.parameters().values, (2, 1))
    p[:, model.parameters().index("wrist.position.z")] = -np.array(reach)
    how = {"q": [0.0, 0.0], "actions": {"shoulder": 1.0}, "reward": lambda s: s.time}
    return sl.envs.MechanismEnv(model, 2, **how | {"parameters": lambda random, n: p[:n]} | options)


def test_starts_overlap_or_not_with_the_live_parameters_of_each_environment():
    words = r"^reset: contact 'touch' of run 1: .* overlap by 50 mm"
    for options in ({}, {"q": [0.0, 0.0]}):
        hanging([1.0, 1.2]).reset(seed=0, options=options)
        with pytest.raises(StateError, match=words):
            hanging([1.0, 1.45]).reset(seed=0, options=options)


def test_random_starts_that_overlap_with_live_parameters_are_drawn_again():
    env = hanging([1.0, 1.45], reset={"shoulder": (-1.0, 1.0)})
    for seed in range(10):
        env.reset(seed=seed)
        heights = 1.5 - np.array([1.0, 1.45]) * np.cos(env.q[:, 0])
        assert heights.min() > 0.1 - 1e-6  # of the ball's radius; less by what may overlap


def test_coordinates_by_name_are_assembled_with_live_parameters():
    model = sl.zoo.four_bar()
    p = np.tile(model.parameters().values, (2, 1))
    p[1, model.parameters().index("rocker_hinge.position.x")] *= 1.02
    start = sl.zoo.four_bar_start()[0]
    env = four_bars(2, q={"crank_hinge": start}, parameters=p)
    env.reset(options={"q": {"crank_hinge": start}})
    assert np.abs(env.q[:, 0] - start).max() < 1e-9
    for k in range(2):
        own = sl.Dynamics(model.with_parameters(p[k]))
        assert np.abs(own.closure_error(env.q[k])).max() < 1e-11
