"""Control of mechanisms with loops: exact tracking, torques of inverse dynamics, gravity, frames, and sentences."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError
from spanloop.simulation import control

PLANAR = ["four_bar", "five_bar"]
SPATIAL = [pytest.param(name, marks=pytest.mark.slow) for name in ("delta", "stewart")]
STEPS = {"step": 1e-3, "limits": "ignore"}


def mechanism(name: str) -> tuple[sl.Model, np.ndarray]:
    return getattr(sl.zoo, name)(), getattr(sl.zoo, f"{name}_start")()


def ways(model: sl.Model, start: np.ndarray, size: float, duration: float) -> dict[str, control.Path]:
    """A path of every actuated joint, each by another way."""
    angles = {name: float(start[model.q_slice(name)][0]) for name in model.actuated}
    return {n: control.quintic(x, x + size * np.cos(1.0 + k), duration) for k, (n, x) in enumerate(angles.items())}


@pytest.mark.parametrize("name", PLANAR + SPATIAL)
def test_computed_torque_follows_a_motion_of_the_actuated_joints_to_the_integrators_error(name):
    model, start = mechanism(name)
    robot, way = sl.Dynamics(model), ways(model, start, 0.05, 0.2)
    run = sl.simulate(model, start, duration=0.25, controller=control.computed_torque(model, way, 400.0, 40.0), **STEPS)
    assert run.outcome.finished
    for joint, path in way.items():
        np.testing.assert_allclose(run[joint].q, [path(t)[0][0] for t in run.times], atol=1e-9)
    assert run.closure_residual.max() < 1e-12
    q, _, _ = robot.follow(start, {n: tuple(np.array([p(t) for t in run.times])[:, :, 0].T) for n, p in way.items()})
    np.testing.assert_allclose(run.q, q, atol=1e-8)  # the passive joints are where the loops put them
    k = len(run.times) // 3
    expected = robot.inverse_dynamics(run.q[k], run.v[k], run.a[k])
    np.testing.assert_allclose(run.tau[k], expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", PLANAR + SPATIAL)
def test_gravity_compensation_holds_a_mechanism_where_it_is(name):
    model, start = mechanism(name)
    run = sl.simulate(model, start, duration=0.1, controller=control.gravity(model), **STEPS)
    assert np.abs(run.v).max() < 1e-10
    still = np.zeros(model.nv)
    expected = sl.Dynamics(model).inverse_dynamics(start, still, still)
    np.testing.assert_allclose(run.tau[0], expected, atol=1e-10 * np.abs(expected).max())


def test_pd_with_gravity_leaves_no_error_at_rest():
    model, start = mechanism("five_bar")
    aim = {n: float(start[model.q_slice(n)][0]) for n in model.actuated}
    law = control.pd(model, 50.0, 5.0, aim, gravity=True)
    assert np.abs(sl.simulate(model, start, duration=0.1, controller=law, **STEPS).q - start).max() < 1e-10


@pytest.mark.parametrize("weights", [None, {"drive1": 4.0}])
def test_more_actuators_than_needed_share_the_least_torques_as_inverse_dynamics_does(weights):
    model, q = mechanism("five_bar")
    model = model.actuate(*(j.name for j in model.joints))
    robot = sl.Dynamics(model)
    rng = np.random.default_rng(3)
    v = robot.complete_velocity(q, rng.normal(size=2))
    law = control.computed_torque(model, q, 0.0, 0.0, weights=weights)
    tau = np.array(law.torques(0.0, q.tolist(), v.tolist(), (), ()), dtype=float)
    chosen = robot.independent_coordinates()
    a = robot.complete_acceleration(q, v, np.zeros(2), chosen)
    expected = robot.inverse_dynamics(q, v, a, weights=weights)
    np.testing.assert_allclose(tau, expected, atol=1e-10)
    assert np.count_nonzero(tau) == 4


OTHERS = ["arms_with_object", "bricard", "carpet_scraper", "linkage_leg", "slider_crank", "three_pumas"]


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_computed_torque_of_a_moving_mechanism_is_its_inverse_dynamics(name):
    """Object in three arms, over-constrained and planar linkages: the same torques by another way."""
    model, q = mechanism(name)
    robot = sl.Dynamics(model)
    chosen = robot.independent_coordinates()
    v = robot.complete_velocity(q, np.random.default_rng(5).normal(size=len(chosen)), chosen)
    a = robot.complete_acceleration(q, v, np.zeros(len(chosen)), chosen)
    law = control.computed_torque(model, {n: q[model.q_slice(n)] for n in model.actuated}, 0.0, 0.0)
    tau = np.array(law.torques(0.0, q.tolist(), v.tolist(), (), ()), dtype=float)
    expected = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(tau, expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.slow
def test_legs_on_a_free_body_stand_with_the_torques_of_inverse_dynamics():
    model, q = mechanism("hexapod")
    still = np.zeros(model.nv)
    law = control.gravity(model, weights={"knee1": 9.0})
    tau = np.array(law.torques(0.0, q.tolist(), still.tolist(), (), ()), dtype=float)
    expected = sl.Dynamics(model).inverse_dynamics(q, still, still, weights={"knee1": 9.0})
    np.testing.assert_allclose(tau, expected, atol=1e-11)


def test_a_frame_of_a_closed_mechanism_follows_a_line():
    model, start = mechanism("five_bar")
    x, y, _ = sl.Dynamics(model).pose(start, "tip1")[:3, 3]
    line = control.quintic([x, y], [x + 0.03, y - 0.02], duration=0.2)
    law = control.operational_space(model, "tip1", line, 400.0, 40.0, axes="xy")
    run = sl.simulate(model, start, duration=0.25, controller=law, **STEPS)
    np.testing.assert_allclose(run["tip1"].position[:, :2], [line(t)[0] for t in run.times], atol=1e-9)


def test_a_frame_with_fewer_directions_leaves_the_rest_to_the_posture():
    """The null space is that of the actuated joints, in the inertia of the closed mechanism."""
    model, start = mechanism("five_bar")
    robot = sl.Dynamics(model)
    x = robot.pose(start, "tip1")[0, 3]
    line = control.quintic([x], [x + 0.03], duration=0.2)
    aim = {"drive1": float(start[0]) + 0.1}
    law = control.operational_space(
        model, "tip1", line, 400.0, 40.0, axes="x", posture=aim, posture_gains=(100.0, 20.0)
    )
    run = sl.simulate(model, start, duration=0.25, controller=law, **STEPS)
    np.testing.assert_allclose(run["tip1"].position[:, 0], [line(t)[0][0] for t in run.times], atol=1e-9)
    k = 100  # Khatib's law in independent coordinates
    q, v, t = run.q[k], run.v[k], float(run.times[k])
    T, ids = robot.velocity_map(q), list(robot.independent_coordinates().dofs)
    J = (robot.jacobian(q, "tip1")[3:4] @ T)[0]
    M = robot.mass_matrix(q, coordinates="independent")
    wanted, rate, acceleration = (part[0] for part in line(t))
    e = 400.0 * (wanted - run["tip1"].position[k, 0]) + 40.0 * (rate - J @ v[ids]) + acceleration
    posture = np.array([100.0 * (aim["drive1"] - q[0]) - 20.0 * v[ids[0]], 0.0])
    still = robot.complete_acceleration(q, v, posture)
    miss = e - robot.jacobian_bias(q, v, "tip1")[3] - robot.jacobian(q, "tip1")[3] @ still
    own = posture + np.linalg.solve(M, J) * miss / (J @ np.linalg.solve(M, J))
    expected = robot.inverse_dynamics(q, v, robot.complete_acceleration(q, v, own))
    np.testing.assert_allclose(run.tau[k], expected, atol=1e-8)


@pytest.mark.slow
def test_a_stewart_platform_follows_a_line_and_keeps_its_orientation():
    model, start = mechanism("stewart")
    pose = sl.Dynamics(model).pose(start, "platform")
    line = control.quintic(pose[:3, 3], pose[:3, 3] + [0.03, -0.02, 0.04], duration=0.2)
    law = control.operational_space(model, "platform", line, 400.0, 40.0, orientation=pose[:3, :3])
    run = sl.simulate(model, start, duration=0.25, controller=law, **STEPS)
    np.testing.assert_allclose(run["platform"].position, [line(t)[0] for t in run.times], atol=1e-9)
    np.testing.assert_allclose(sl.Dynamics(model).pose(run.q[-1], "platform")[:3, :3], pose[:3, :3], atol=1e-9)


def test_a_coupled_joint_needs_no_target():
    arm = sl.zoo.pendulum(2).with_coupling("hinge2", "hinge1", ratio=-2.0)
    law = control.computed_torque(arm, {"hinge1": control.quintic(0.0, 0.4, 0.2)}, 400.0, 40.0)
    run = sl.simulate(arm, duration=0.25, controller=law)
    np.testing.assert_allclose(run.q[-1], [0.4, -0.8], atol=1e-9)


def test_springs_and_dampers_are_compensated_by_computed_torque_and_left_by_gravity():
    model, start = mechanism("four_bar")
    model = model.with_joint("crank_hinge", stiffness=30.0, damping=2.0, rest=0.3)
    way = ways(model, start, 0.2, 0.2)
    run = sl.simulate(model, start, duration=0.25, controller=control.computed_torque(model, way, 400.0, 40.0), **STEPS)
    np.testing.assert_allclose(run["crank_hinge"].q[-1], way["crank_hinge"](1.0)[0][0], atol=1e-9)
    bare = sl.zoo.four_bar()
    given = [x.torques(0.0, start.tolist(), [0.0] * 3, (), ()) for x in (control.gravity(model), control.gravity(bare))]
    np.testing.assert_allclose(*np.array(given, dtype=float), atol=1e-12)


def switched() -> tuple[sl.Model, np.ndarray]:
    model, start = mechanism("four_bar")
    loop = model.loops[0]
    opened = model.remove("closing")
    for name, body, place in (("a", loop.a, loop.placement_a), ("b", loop.b, loop.placement_b)):
        opened = opened.with_frame(name, body, place.position, place.rotation)
    return opened.with_loop("a", "b", loop.kind, name="closing", switchable=True), start


@pytest.mark.slow
def test_a_law_of_closed_switchable_loops_refuses_a_run_that_opens_one():
    model, start = switched()
    law = control.gravity(model)
    run = sl.simulate(model, start, duration=0.05, controller=law)
    assert run.outcome.finished
    assert np.abs(run.v).max() < 1e-10
    with pytest.warns(sl.errors.StateWarning):
        lost = sl.simulate(model, start, duration=0.05, controller=law, closures=sl.Closures(active_loops=[]))
    assert "a switchable loop is open, and the law is made for closed loops" in str(lost.outcome)
    opened = control.gravity(model.remove("closing").actuate(*(j.name for j in model.joints)))
    run = sl.simulate(
        model.actuate(*(j.name for j in model.joints)),
        start,
        duration=0.05,
        controller=opened,
        closures=sl.Closures(active_loops=[]),
    )
    assert np.abs(run.v).max() < 1e-10


def test_what_cannot_be_controlled_is_said():
    model, start = mechanism("five_bar")
    with says(InputError, "computed_torque: joint 'drive2' has no target, and it does not follow from those that have"):
        control.computed_torque(model, {"drive1": 0.0}, 1.0, 1.0)
    with says(InputError, "operational_space: 3 directions of 'tip1' are to be controlled with 2 degrees of freedom"):
        control.operational_space(model, "tip1", [0.0, 0.0, 0.0], 1.0, 1.0)
    law = control.operational_space(model, "tip1", [0.0, 0.0], 1.0, 1.0, axes="xz")
    with says(InputError, "operational_space: the actuated joints cannot move 'tip1' along z; leave it out"):
        sl.simulate(model, start, duration=0.1, controller=law)
    with says(InputError, "gravity: weights are for mechanisms with loops; the torques of a tree are unique"):
        control.gravity(sl.zoo.puma(), weights={"joint1": 2.0})
    with says(UnsupportedError, "gravity: model 'four_bar' has no actuated joint"):
        control.gravity(sl.zoo.four_bar().unactuate("crank_hinge"))


def test_a_singular_configuration_of_the_actuators_ends_the_run_by_name():
    arm = sl.zoo.pendulum(2)
    law = control.operational_space(arm, "tip", [1.9, 0.9], 400.0, 40.0, axes="xz")
    with pytest.warns(sl.errors.StateWarning):
        run = sl.simulate(arm, [0.3, 0.0], duration=0.1, controller=law)
    assert "the actuated joints cannot accelerate 'tip' along z at this state" in str(run.outcome)


def test_a_function_on_scalars_has_all_switchable_loops_closed_unless_a_run_opens_them():
    model, start = switched()
    still, tau = np.zeros(3), np.array([1.0, 0.0, 0.0])
    found = sl.on_scalars(model, "forward_dynamics")(start.tolist(), still.tolist(), tau.tolist())
    np.testing.assert_allclose(found, sl.Dynamics(model).forward_dynamics(start, still, tau), atol=1e-12)
