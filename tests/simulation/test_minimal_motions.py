"""Simulation in minimal coordinates: the actuated joints are integrated, the others follow from them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from closed_answers import case_of
from independent_motions import FiveBar
from random_legs import FITS, random_legs, three_legs
from scipy.integrate import solve_ivp
from sentences import says
from singular_cases import five_bar_in_line

import spanloop as sl
from spanloop import zoo
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.errors import InputError, SpanloopWarning, StateError, UnsupportedError

NAMES = (*FITS, "three legs", "random legs 1", "random legs 4")


def state(name: str) -> tuple[sl.Model, np.ndarray]:
    """A model and a closed q."""
    if name == "three legs":
        return three_legs()
    case = random_legs(int(name.split()[-1])) if name.startswith("random legs") else case_of(name)
    return case.model, case.q


def moving(name: str) -> tuple[sl.Dynamics, np.ndarray, np.ndarray]:
    """A robot and a closed state whose actuated joints turn at about 0.3 rad/s."""
    model, q = state(name)
    robot = sl.Dynamics(model)
    T = robot.kernel("actuated_rates")(q)
    return robot, q, T @ (0.3 * np.random.default_rng(3).normal(size=T.shape[1]))


def actuated(model) -> list[int]:
    return [f for j in model.actuated for f in range(model.nv)[model.v_slice(j)]]


def minimal(model, q=None, v=None, **how):
    return sl.simulate(model, q, v, **{"duration": 0.1, "closures": "minimal", **how})


def energy_change(run) -> float:
    energy = run.energy.sum(axis=-1)
    return float(np.abs(energy - energy[0]).max())


# ---- joints that follow


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rates_of_all_joints_keep_the_loops_closed(name):
    model, q = state(name)
    robot, T = sl.Dynamics(model), sl.compile(model, "actuated_rates")(q)
    np.testing.assert_array_equal(T[actuated(model)], np.eye(len(actuated(model))))
    assert np.abs(robot.closure_jacobian(q) @ T).max() < 1e-12 * max(1.0, np.abs(T).max())
    np.testing.assert_allclose(sl.compile(model, "actuated_rates", target="python")(q), T, atol=1e-12 * np.abs(T).max())


@pytest.mark.parametrize("name", NAMES)
def test_newton_steps_close_the_loops_and_the_error_is_squared_by_each(name):
    """From 1e-3 rad or m off: 1e-6 times what the mechanism makes of it, then rounding; actuated joints rest."""
    model, q = state(name)
    robot, step = sl.Dynamics(model), sl.compile(model, "position_completion")
    away = 1e-3 * np.random.default_rng(8).normal(size=model.nv)
    away[actuated(model)] = 0.0
    x, errors = robot.integrate(q, away), []
    for _ in range(4):
        errors.append(np.abs(robot.closure_error(x)).max())
        delta = step(x, robot.closure_error(x))
        np.testing.assert_array_equal(delta[actuated(model)], 0.0)
        x = robot.integrate(x, delta)
    assert errors[1] < 300.0 * errors[0] ** 2
    assert errors[3] < 3e-15
    assert np.abs(robot.difference(q, x)).max() < 1e-12  # the same assembly


# ---- the motion


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["four_bar", "slider_crank", "five_bar", "bricard", "three legs", pytest.param("stewart", marks=pytest.mark.slow)],
)
def test_the_motion_is_that_of_projection_to_the_order_of_the_method(name):
    """Both are of fourth order: their difference falls 16 times at half the step (less where it meets rounding)."""
    robot, q, v = moving(name)
    apart = []
    for step in (4e-3, 2e-3):
        few = minimal(robot, q, v, duration=0.2, step=step, limits="ignore")
        all_of_them = sl.simulate(robot, q, v, duration=0.2, step=step, limits="ignore")
        assert few.outcome.finished
        assert few.settings["closures"] == "minimal"
        assert few.settings["method"] == "parallel_legs"
        assert few.residual < 1e-14
        assert few.closure_residual.max() < 1e-13  # of rates too
        apart.append(np.abs(robot.difference(few.q[-1], all_of_them.q[-1])).max())
    assert apart[1] < max(apart[0] / 12.0, 1e-13)


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("midpoint", 2), ("euler", 1)])
def test_energy_is_kept_to_the_order_of_the_method(method, order):
    q = zoo.five_bar_start()
    changes = [energy_change(minimal(zoo.five_bar(), q, duration=0.5, step=h, integrator=method)) for h in (4e-3, 2e-3)]
    assert changes[0] / changes[1] == pytest.approx(2.0**order, rel=0.15)


@pytest.mark.parametrize("torques", [(0.0, 0.0), (3.0, -2.0)])
def test_the_motion_is_that_of_scipy_on_the_actuated_coordinates(torques):
    """robot.minimal assembles on the host and asks elimination for accelerations; both to about 1e-9."""
    model, q = zoo.five_bar(), zoo.five_bar_start()
    few = sl.Dynamics(model).minimal_coordinates(q)

    def right(t, y):
        return np.concatenate((y[2:], few.forward_dynamics(y[:2], y[2:], np.array(torques))))

    y = solve_ivp(right, (0.0, 0.2), [*q[[0, 2]], 0.0, 0.0], rtol=1e-9, atol=1e-11).y[:, -1]
    run = minimal(model, q, duration=0.2, tau=dict(zip(few.names, torques, strict=True)))
    np.testing.assert_allclose(y, (*run.q[-1, [0, 2]], *run.v[-1, [0, 2]]), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "BDF", "LSODA"])
def test_integrators_with_their_own_steps_agree(method):
    """The five-bar and three legs, tolerance 1e-9; BDF and LSODA reach about a thousand times that."""
    for name in ("five_bar", "three legs"):
        robot, q, v = moving(name)
        run = minimal(robot, q, v, integrator=method, duration=0.2, limits="ignore")
        exact = sl.simulate(
            robot, q, v, integrator=sl.Integrator("DOP853", accuracy=1e-12), duration=0.2, limits="ignore"
        )
        assert np.abs(robot.difference(run.q[-1], exact.q[-1])).max() < 2e-6
        assert run.residual < 1e-14
        assert run.closure_residual.max() < 1e-13


@pytest.mark.slow
def test_all_joints_are_felt_springs_dampers_rotors_and_pushes():
    """Passive torques at unactuated joints, a force on the platform and a controller, beside projection."""
    model, q = three_legs()
    model = replace(model, joints=tuple(replace(j, friction=(0.3,) * j.kind.nv) for j in model.joints))

    def control(t, q, v):
        return {"drive1": 4.0 - 2.0 * v["drive1"], "drive2": -3.0 * q["elbow2"], "elbow3": 1.0}

    how = {"duration": 0.3, "controller": control, "forces": {"plate": [0, 0, 0.2, 1.0, -2.0, 0.0]}}
    few, others = minimal(model, q, **how), sl.simulate(model, q, **how)
    np.testing.assert_allclose(few.q, others.q, atol=1e-9)
    np.testing.assert_allclose(few.tau, others.tau, atol=1e-7)
    assert few.audit().well


@pytest.mark.slow
def test_conditions_and_memory_work_as_with_projection():
    model = zoo.five_bar().with_actuator("motor", "drive1", delay=3e-3)
    how = {"duration": 1.0, "tau": {"drive1": 5.0}, "events": {"far": lambda t, q, v: q["drive1"] - 0.5}}
    few, others = minimal(model, zoo.five_bar_start(), **how), sl.simulate(model, zoo.five_bar_start(), **how)
    assert few.outcome.reason == others.outcome.reason == "event"
    assert few.outcome.time == pytest.approx(others.outcome.time, abs=1e-8)
    assert few.closure_residual.max() < 1e-13


# ---- singular configurations


@pytest.mark.slow
@pytest.mark.parametrize("step", [5e-3, 2e-3, 1e-3, 3e-4])
def test_a_run_ends_where_the_distal_links_come_in_line(step):
    """Against a dense system in four angles. A run ends at a margin of 1e-8, about 3e-6 s before it."""
    q = zoo.five_bar_start()
    expected = FiveBar().in_line(np.array((q[0], q[0] + q[1], q[2], q[2] + q[3])))
    run = minimal(zoo.five_bar(), q, duration=2.0, step=step)
    assert run.outcome.reason == "singular"
    assert "the actuated joints do not determine the motion of the others. closures='project' goes" in str(run.outcome)
    assert run.outcome.time == pytest.approx(expected, abs=1e-5)
    assert abs(np.sin(run.q[-1] @ (1.0, 1.0, -1.0, -1.0))) < 1e-4
    assert energy_change(run) < 0.1  # of 20 J of kinetic energy; numbers lose digits toward the end
    assert run.residual < 1e-8


def test_inputs_for_every_step_lead_to_the_same_end():
    """The step that is refused is the one before: the end is found with the inputs of the next, not beyond the run."""
    q = zoo.five_bar_start()
    tau = np.tile((0.1, 0.0, 0.0, 0.0), (2000, 1))
    one, each = (minimal(zoo.five_bar(), q, duration=2.0, tau=x) for x in (tau[0], tau))
    assert one.outcome.reason == each.outcome.reason == "singular"
    assert each.outcome.time == one.outcome.time
    np.testing.assert_array_equal(each.q[-1], one.q[-1])
    told = minimal(zoo.five_bar(), q, duration=2.0, controller=sl.control.callback(lambda t, q, v: tau[0]))
    assert told.outcome.reason == "singular"
    assert one.outcome.time - 2e-3 < told.outcome.time <= one.outcome.time
    early = minimal(zoo.five_bar(), q, duration=1.366, step=1e-3)  # ends in between
    assert early.outcome.time <= 1.366


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DOP853", "Radau"])
def test_integrators_with_their_own_steps_end_there_too(method):
    run = minimal(zoo.five_bar(), zoo.five_bar_start(), duration=2.0, integrator=method)
    assert run.outcome.reason == "singular"
    assert run.outcome.time == pytest.approx(1.36671844, abs=1e-5)
    assert energy_change(run) < 1e-5


@pytest.mark.slow
def test_a_run_that_was_lost_near_a_singular_position_says_so_in_single_precision():
    run = minimal(zoo.five_bar(), zoo.five_bar_start(), duration=2.0, integrator=sl.Integrator(dtype="float32"))
    assert run.outcome.reason == "singular"
    assert run.outcome.time == pytest.approx(1.36671844, abs=2e-3)


def near_the_end(duration: float, **how) -> sl.Trajectory:
    """A five-bar that comes to a singular configuration of its legs at 1.05031 s; the default step fails at 1.048 s."""
    q = zoo.five_bar_start(base=1.2, assembly="above")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it passes close to the configuration
        return minimal(zoo.five_bar(base=1.2), q, duration=duration, **how)


def test_a_step_that_fails_near_a_singular_position_is_taken_in_parts_and_the_run_goes_on():
    """A run of 1.05 s ended at 1.048 s."""
    run = near_the_end(1.05)
    assert run.outcome.finished
    assert len(run) == 1051
    exact = sl.simulate(run.model, run.q[0], duration=1.05, step=2.5e-4, sample=1e-3)
    np.testing.assert_allclose(run.q, exact.q, atol=1e-5)  # rates of 15 rad/s, steps of 1 ms
    assert run.closure_residual.max() < 1e-12
    longer = near_the_end(1.06)
    assert longer.outcome.reason == "singular"
    assert longer.outcome.time == pytest.approx(1.05031, abs=1e-4)
    np.testing.assert_array_equal(longer.q[:1051], run.q)


@pytest.mark.slow
def test_events_and_samples_are_found_in_steps_that_are_taken_in_parts():
    run = near_the_end(1.06, events=lambda t, q, v: 1.0485 - t)
    assert run.outcome.reason == "event"
    assert run.outcome.time == pytest.approx(1.0485, abs=1e-9)
    sparse, dense = near_the_end(1.05, sample=0.007), near_the_end(1.05)
    np.testing.assert_array_equal(sparse.q, dense.q[::7])


@pytest.mark.slow
def test_the_margin_means_the_same_for_every_method():
    """The smallest pivot of a constraint row over its own admittance; it was 0.20, 0.093 and 1.0 on one motion."""
    model, q = zoo.five_bar(base=1.2), zoo.five_bar_start(base=1.2, assembly="above")
    ways = [{"method": x} for x in (None, "dense", "parallel_legs", "simple_closed_chain")]
    ways += [{"closures": x} for x in ("minimal", "feedback", "none")]
    found = [sl.simulate(model, q, duration=0.5, **way).settings["margin"] for way in ways]
    np.testing.assert_allclose(found, found[0], rtol=0.02)  # the last step ends with a sample and begins without one


def test_a_step_that_is_too_long_is_refused():
    """A crank at 400 rad/s turns by 4 rad in a step: Newton's method does not follow."""
    model, q = zoo.four_bar(), zoo.four_bar_start()
    v = sl.compile(model, "actuated_rates")(q)[:, 0] * 400.0
    run = minimal(model, q, v, step=1e-2)
    assert run.outcome.reason == "not_finite"
    assert "loops could not be kept closed" in str(run.outcome)
    assert "Take a shorter step than 0.01 s" in str(run.outcome)
    assert minimal(model, q, v, step=1e-5, duration=0.01).outcome.finished


def test_a_start_in_a_singular_position_is_refused():
    here = five_bar_in_line(0.0)
    with says(StateError, "the run starts in a singular configuration of the legs, where the actuated joints do not"):
        minimal(zoo.five_bar(), here.q, here.v)


def test_a_motion_that_passes_close_to_one_is_told():
    """A slider that drives its crank, 5e-3 rad before the dead centre."""
    model, q = zoo.slider_crank(), zoo.slider_crank_start()
    slide = next(j.name for j in model.joints if j.kind.name == "prismatic")
    driven = replace(model, joints=tuple(replace(j, actuated=j.name == slide) for j in model.joints))
    q[model.q_slice("crank_hinge")] = 5e-3
    q = sl.Dynamics(model).assemble(q, ("crank_hinge",))
    with pytest.warns(SpanloopWarning, match="the legs passed close to a singular configuration"):
        minimal(driven, q, duration=1e-3)


# ---- the start


def test_the_start_is_completed_from_the_actuated_joints():
    model, q = zoo.five_bar(), zoo.five_bar_start()
    robot, rates = sl.Dynamics(model), np.array((0.4, 0.0, -0.2, 0.0))
    with pytest.warns(SpanloopWarning, match="the start was brought to the closed loops: loops were open by up to"):
        run = minimal(model, q + (0.0, 1e-4, 0.0, -2e-4), rates)
    np.testing.assert_array_equal(run.q[0, [0, 2]], q[[0, 2]])
    np.testing.assert_array_equal(run.v[0, [0, 2]], rates[[0, 2]])
    np.testing.assert_allclose(run.q[0], q, atol=1e-14)
    np.testing.assert_allclose(run.v[0], robot.complete_velocity(q, rates[[0, 2]], ("drive1", "drive2")), atol=1e-13)
    with says(StateError, "is open by"):
        minimal(model, q + (0.0, 0.1, 0.0, 0.0))


# ---- batches, precision, parameters, long runs


def test_runs_of_a_batch_are_single_runs_to_the_bit():
    """Eleven five-bars, three lanes' worth, of which some come to a singular configuration."""
    model, rng = zoo.five_bar(), np.random.default_rng(1)
    angles = np.radians((80.0, 70.0) + 5.0 * rng.normal(size=(11, 2)))
    q = np.array([zoo.five_bar_start(angles=tuple(x)) for x in angles])
    tau = np.zeros((11, 1, 4))
    tau[:, 0, [0, 2]] = 6.0 * rng.normal(size=(11, 2))
    how = {"duration": 1.2, "step": 2e-3}
    many, threaded = (minimal(model, q, tau=tau, integrator=sl.Integrator(threads=n), **how) for n in (1, 2))
    assert {o.reason for o in many.outcomes} == {"finished", "singular"}
    np.testing.assert_array_equal(many.q, threaded.q)
    for k in range(11):
        one = minimal(model, q[k], tau=tau[k], **how)
        assert str(one.outcome) == str(many.outcomes[k])
        np.testing.assert_array_equal(many[k].q, one.q)
        np.testing.assert_array_equal(many[k].v, one.v)
        assert many.residual[k] == one.residual


@pytest.mark.slow
def test_single_precision_follows():
    robot, q, v = moving("three legs")
    run, exact = (
        minimal(robot, q, v, integrator=sl.Integrator(dtype=d), limits="ignore") for d in ("float32", "float64")
    )
    assert run.outcome.finished
    assert run.residual < 1e-6
    np.testing.assert_allclose(run.q, exact.q, atol=1e-5)


@pytest.mark.slow
def test_live_parameters_are_those_of_a_model_made_with_them():
    """Masses and lengths: the start is completed with the lengths of each run."""
    model, q = zoo.five_bar(), zoo.five_bar_start()
    base = model.parameters()
    rows = np.array([base.values, base.values])
    rows[1][[base.names.index(n) for n in ("far1.mass", "elbow1.position.x")]] = 2.0, 0.61
    runs = minimal(model, q, parameters=rows, duration=0.2)
    np.testing.assert_allclose(runs.q[0], minimal(model, q, duration=0.2).q, atol=1e-12)
    other = with_elbow(model, 0.61, 2.0)
    start = sl.Dynamics(other).assemble(q, ("drive1", "drive2"))
    np.testing.assert_allclose(runs.q[1], minimal(other, start, duration=0.2).q, atol=1e-12)
    assert runs.residual.max() < 1e-14


def with_elbow(model, x: float, mass: float):
    """The five-bar with another place of its first elbow and another mass of the link behind it."""
    joints = tuple(
        replace(j, placement=replace(j.placement, position=(x, 0.0, 0.0))) if j.name == "elbow1" else j
        for j in model.joints
    )
    bodies = tuple(replace(b, inertia=replace(b.inertia, mass=mass)) if b.name == "far1" else b for b in model.bodies)
    return replace(model, joints=joints, bodies=bodies)


def test_a_simulation_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    from spanloop.simulation import checkpoint

    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", np.inf)
    original, calls = Rollout.run, []

    def killed(self, *args):
        calls.append(1)
        if len(calls) == 4:
            raise MemoryError("killed")
        return original(self, *args)

    model, q, file = zoo.four_bar(), zoo.four_bar_start(), tmp_path / "run.ckpt"
    monkeypatch.setattr(Rollout, "run", killed)
    with pytest.raises(MemoryError):
        minimal(model, q, duration=2.0, integrator=sl.Integrator(checkpoint=file))
    monkeypatch.undo()
    assert file.exists()
    np.testing.assert_array_equal(
        minimal(model, q, duration=2.0, integrator=sl.Integrator(checkpoint=file)).q, minimal(model, q, duration=2.0).q
    )


def test_accuracy_is_reached_and_told():
    model, q = zoo.four_bar(), zoo.four_bar_start()
    run = minimal(model, q, duration=0.5, step=1e-2, integrator=sl.Integrator(accuracy=1e-9))
    exact = sl.simulate(model, q, duration=0.5, integrator=sl.Integrator("DOP853", accuracy=1e-12))
    assert run.settings["estimated_error"] < 1e-9
    assert np.abs(run.q[-1] - exact.q[-1]).max() < 3e-9


def test_a_tree_has_minimal_coordinates_already():
    run, plain = minimal(zoo.puma(), limits="ignore"), sl.simulate(zoo.puma(), duration=0.1, limits="ignore")
    np.testing.assert_array_equal(run.q, plain.q)
    assert run.settings["closures"] == "no loops"


# ---- what does not go together


def only(*names: str):
    model = zoo.five_bar()
    return replace(model, joints=tuple(replace(j, actuated=j.name in names) for j in model.joints))


def switchable():
    model = zoo.four_bar()
    return replace(model, loops=tuple(replace(x, switchable=True) for x in model.loops))


NOT_LEGS = "closures='minimal' is for legs on one platform: "
REFUSED = {
    "another method": (
        zoo.five_bar,
        {"method": "dense"},
        "is computed by method='parallel_legs'; method is 'dense'",
    ),
    "minimum norm": (
        lambda: sl.Dynamics(zoo.five_bar(), on_singular="minimum_norm"),
        {},
        "has no meaning with closures='minimal'",
    ),
    "gains": (
        zoo.five_bar,
        {"closures": sl.Closures("minimal", gains=30.0)},
        "gains are for closures='feedback' of a model with loops",
    ),
    "active": (
        zoo.five_bar,
        {"closures": sl.Closures("minimal", active_loops=["meeting"])},
        "active_loops names 'meeting', which is not a switchable loop",
    ),
    "shared links": (zoo.delta, {}, f"{NOT_LEGS}joint 'motor1' belongs to more than one leg. Use closures='project'"),
    "several platforms": (lambda: zoo.n_four_bar(3), {}, f"{NOT_LEGS}the loops do not all end at one body"),
    "switchable": (switchable, {}, f"{NOT_LEGS}loop 'closing' is switchable. Use closures='project'"),
    "driven": (lambda: zoo.four_bar().drive("crank_hinge"), {}, f"{NOT_LEGS}joint 'crank_hinge' is driven"),
    "too few": (
        lambda: only("drive1"),
        {},
        f"{NOT_LEGS}1 DoF is actuated, and the loops leave 2; the numbers must be equal (actuated: 'drive1'). "
        "Use closures='project', or a model in which just 'drive1', 'drive2' are actuated",
    ),
    "too many": (
        lambda: only("drive1", "elbow1", "drive2"),
        {},
        "3 DoF are actuated, and the loops leave 2; the numbers must be equal (actuated: 'drive1', 'elbow1', 'drive2')",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_gets_a_sentence(name):
    make, how, text = REFUSED[name]
    with says(sl.SpanloopError, text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minimal(make(), **how)


@pytest.mark.slow
def test_a_run_of_the_midpoint_rule_has_the_same_bits_alone_and_among_others():
    q, v = np.array([zoo.four_bar_start()] * 3), np.array([[0.0], [2.0], [3.0]]) * np.ones(3)
    how = {"duration": 0.02, "step": 2e-3, "integrator": "midpoint"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        many = minimal(zoo.four_bar(), q, v, **how)
        alone = [minimal(zoo.four_bar(), a, b, **how) for a, b in zip(q, v, strict=True)]
    np.testing.assert_array_equal(many.v, [run.v for run in alone])


def test_gears_are_refused():
    b = sl.Builder("geared")
    b.body("a", 1.0, inertia=(1.0, 1.0, 1.0)).body("b", 1.0, inertia=(1.0, 1.0, 1.0))
    b.revolute("first", "world", "a", "z").revolute("second", "world", "b", "z")
    b.coupling("mesh", "second", "first", 2.0)
    with says(UnsupportedError, f"{NOT_LEGS}'mesh' couples joints. Use closures='project'"):
        minimal(b.build())


def test_a_robot_made_with_another_method_is_refused():
    with says(InputError, "method is 'elimination'. Leave it out, or use closures='project'"):
        minimal(sl.Dynamics(zoo.five_bar(), method="elimination"))


def test_other_joints_may_be_the_coordinates():
    """The five-bar in the angles of its first leg: the same motion."""
    model, q = zoo.five_bar(), zoo.five_bar_start()
    run = minimal(only("drive1", "elbow1"), q, duration=0.3)
    np.testing.assert_allclose(run.q, minimal(model, q, duration=0.3).q, atol=1e-9)


def test_a_mechanism_that_cannot_move_is_refused():
    with says(UnsupportedError, "closures='minimal' integrates actuated joints, and the loops leave none to move"):
        minimal(zoo.four_bar().lock("crank_hinge"))
