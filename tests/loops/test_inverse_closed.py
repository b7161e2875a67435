"""Inverse dynamics of closed chains: against forward dynamics, against dense equations, by the work that is done."""

from __future__ import annotations

import numpy as np
import pytest
from closed_answers import difference
from closed_zoo import CASES, mechanism
from dense_closures import ClosedReference
from linkage import linkage
from pinocchio_closures import ClosedPeer
from random_loops import moving, random_loops
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, SpanloopWarning, StateError

RETURNS = 1e-10  # of the largest acceleration: what inverse and then forward dynamics may change
# the object spins between the fingers, slides between the palms; the governor's sleeve goes as it likes
UNDRIVEN = {"arms 2 ball", "arms 2 plane", "governor", "governor sprung"}


def actuated_torques(model, rng) -> np.ndarray:
    tau = np.zeros(model.nv)
    for name in model.actuated:
        tau[model.v_slice(name)] = rng.normal(size=model.joint(name).kind.nv)
    return tau


def motion(case: str, seed: int = 0):
    """Robot, and q, v, a of a motion that its loops allow and its actuators can make."""
    model, q = mechanism(case)
    rng = np.random.default_rng(seed)
    robot, v = sl.Dynamics(model), moving(model, q, rng).v
    if case in UNDRIVEN:
        return robot, q, v, robot.forward_dynamics(q, v, actuated_torques(model, rng))
    return robot, q, v, robot.complete_acceleration(q, v, rng.normal(size=robot.mobility()))


# ---- there and back


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_forward_dynamics_returns_the_motion(case):
    robot, q, v, a = motion(case)
    tau = robot.inverse_dynamics(q, v, a)
    passive = [j.name for j in robot.model.joints if not j.actuated]
    assert all((tau[robot.model.v_slice(name)] == 0.0).all() for name in passive)
    assert difference(robot.forward_dynamics(q, v, tau), a) < RETURNS


@pytest.mark.slow
@pytest.mark.parametrize("case", ["four_bar", "five_bar", "stewart", "delta", "andrews", "linkage_leg", "n_four_bar 8"])
def test_as_many_actuators_as_dofs_have_one_answer(case):
    """The torques that made a motion come back."""
    model, q = mechanism(case)
    rng = np.random.default_rng(5)
    robot, v, tau = sl.Dynamics(model), moving(model, q, rng).v, actuated_torques(model, rng)
    a = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, atol=1e-9 * np.abs(tau).max())


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if ClosedPeer.knows(mechanism(c)[0])])
def test_pinocchio_returns_the_motion(case):
    """Its proximal solver stops at 1e-10 of the rows' residual."""
    robot, q, v, a = motion(case)
    found = ClosedPeer(robot.model).closed_forward_dynamics(q, v, robot.inverse_dynamics(q, v, a))
    np.testing.assert_allclose(found, a, atol=1e-9 * max(1.0, np.abs(a).max()))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random_loops_return_the_motion(seed):
    """Every DoF is actuated: the loops leave torques open, the shortest are taken."""
    c = random_loops(seed)
    robot = sl.Dynamics(c.model)
    a = robot.forward_dynamics(c.q, c.v, c.tau)
    tau = robot.inverse_dynamics(c.q, c.v, a, actuated=[j.name for j in c.model.joints if j.kind.nv])
    assert difference(robot.forward_dynamics(c.q, c.v, tau), a) < RETURNS
    assert np.linalg.norm(tau) <= np.linalg.norm(c.tau) * (1.0 + 1e-9)


# ---- against dense equations: S u + Jᵀ λ = M a + h, solved for u and λ at once


@pytest.mark.parametrize("case", [c for c in CASES if c not in UNDRIVEN])
def test_torques_agree_with_dense_equations(case):
    """What u and λ are is one least-squares problem; u is unique or, if not, differs by what only strains the loops."""
    robot, q, v, a = motion(case)
    model = robot.model
    reference = ClosedReference(model, q, v)
    M, h, J = (np.array(x, float) for x in (reference.mass_matrix(), reference.bias(), reference.closure_jacobian()))
    free = [k for name in model.actuated for k in range(model.nv)[model.v_slice(name)]]
    S = np.eye(model.nv)[:, free]
    x = np.linalg.lstsq(np.hstack((S, J.T)), M @ a + h, rcond=1e-11)[0]
    tau, expected = robot.inverse_dynamics(q, v, a), S @ x[: len(free)]
    scale = np.abs(M @ a + h).max()
    if len(free) == robot.mobility():
        np.testing.assert_allclose(tau, expected, atol=1e-9 * scale)
    strain = np.linalg.lstsq(J.T, tau - expected, rcond=1e-11)[0]
    np.testing.assert_allclose(J.T @ strain, tau - expected, atol=1e-9 * scale)
    assert np.linalg.norm(tau) <= np.linalg.norm(expected) * (1.0 + 1e-9)


@pytest.mark.parametrize("case", CASES)
def test_power_is_the_rate_of_energy(case):
    """tau · v = d(energy)/dt + what dampers take, the rate by central differences; rotors count in the energy."""
    robot, q, v, a = motion(case)
    model = robot.model
    tau = robot.inverse_dynamics(q, v, a)
    h = 1e-5 / max(1.0, np.abs(v).max(), np.sqrt(np.abs(a).max()))

    def energy(t):
        there, rate = robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a
        return 0.5 * rate @ robot.mass_matrix(there) @ rate + robot.energy(there, rate)[1]

    damping = np.concatenate([np.ravel(j.damping) for j in model.joints])
    rate = (energy(h) - energy(-h)) / (2.0 * h) + damping @ v**2
    assert tau @ v == pytest.approx(rate, abs=1e-6 * max(np.abs(tau * v).sum(), abs(energy(0.0))))


@pytest.mark.slow
def test_closure_forces_and_reactions_go_with_the_torques():
    robot, q, v, a = motion("stewart")
    found = robot.solve_inverse(q, v, a)
    forward = robot.solve(q, v, found.tau)
    assert set(found.loop_forces) == set(forward.loop_forces) == {f"ball{i}" for i in range(1, 7)}
    for name, six in forward.loop_forces.items():
        np.testing.assert_allclose(found.loop_forces[name], six, atol=1e-8)
        np.testing.assert_allclose(robot.reactions(q, v, found.tau)[name], six, atol=1e-8)
    np.testing.assert_allclose(found.rows, forward.rows, atol=1e-8)
    assert all(found.unique.values())
    assert found.residual < 1e-10
    assert found.status == "ok"


# ---- more actuators than the motion needs


@pytest.mark.slow
def test_torques_are_the_least_of_all_that_make_the_motion():
    robot, q, v, a = motion("arms 2")
    model, J = robot.model, robot.closure_jacobian(motion("arms 2")[1])
    weights = np.random.default_rng(2).uniform(0.5, 3.0, 12)
    plain, weighted = robot.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a, weights=weights)
    assert difference(robot.forward_dynamics(q, v, weighted), a) < RETURNS
    cost = np.concatenate((np.zeros(6), weights))
    assert cost @ weighted**2 < cost @ plain**2
    assert plain @ plain < weighted @ weighted
    # torques that only strain the loops: those of closure forces that push neither object nor anything unactuated
    pushes = np.linalg.svd(J[:, :6].T)[2][6:]
    strains = pushes @ J
    np.testing.assert_allclose(strains[:, :6], 0.0, atol=1e-12)
    np.testing.assert_allclose(strains @ plain, 0.0, atol=1e-9 * np.linalg.norm(plain))
    np.testing.assert_allclose(strains @ (cost * weighted), 0.0, atol=1e-9 * np.linalg.norm(cost * weighted))
    by_name = dict(zip(model.actuated, weights, strict=True))
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a, weights=by_name), weighted, atol=1e-12)


@pytest.mark.slow
def test_the_force_of_one_arm_can_be_given():
    robot, q, v, a = motion("arms 2")
    squeeze = np.array((1.0, -2.0, 0.5, 30.0, 10.0, -20.0))
    found = robot.solve_inverse(q, v, a, internal_forces={"holding1": squeeze})
    np.testing.assert_allclose(found.loop_forces["holding1"], squeeze, atol=1e-8)
    assert difference(robot.forward_dynamics(q, v, found.tau), a) < RETURNS
    np.testing.assert_allclose(robot.reactions(q, v, found.tau)["holding2"], found.loop_forces["holding2"], atol=1e-8)


def test_internal_forces_come_on_top_of_those_of_the_motion():
    """Two arms that push against each other: the pushes cancel on the object, and what it needs is shared."""
    robot, q, v, a = motion("arms 2")
    ends = [robot.pose(q, "object") @ _frame(x.placement_b) for x in robot.model.loops]
    push = 40.0 * (ends[1][:3, 3] - ends[0][:3, 3]) / np.linalg.norm(ends[1][:3, 3] - ends[0][:3, 3])
    asked = {"holding1": np.array((0, 0, 0, *push)), "holding2": np.array((0, 0, 0, *-push))}
    none = {name: np.zeros(6) for name in asked}
    without, found = (robot.solve_inverse(q, v, a, internal_forces=x) for x in (none, asked))
    for name, six in asked.items():
        np.testing.assert_allclose(found.loop_forces[name] - without.loop_forces[name], six, atol=1e-8)


def _frame(placement):
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = placement.rotation, placement.position
    return X


def test_wishes_that_cannot_be_granted_get_a_sentence():
    robot, q, v, a = motion("five_bar")
    with says(InputError, "internal_forces need more actuators than the motion: 2 actuated DoF for a mobility of 2"):
        robot.inverse_dynamics(q, v, a, internal_forces={"meeting": np.zeros(6)})
    with says(InputError, "internal_forces names 'meting', which is not a loop; did you mean 'meeting'?"):
        robot.inverse_dynamics(q, v, a, internal_forces={"meting": np.zeros(6)})
    with says(InputError, "weights is [1.0]; expected positive numbers, by joint or one for each of the 2"):
        robot.inverse_dynamics(q, v, a, weights=[1.0])
    with says(InputError, "weights names 'elbow1', which is not among the actuators"):
        robot.inverse_dynamics(q, v, a, weights={"elbow1": 2.0})
    with says(InputError, "has no joint or DoF 'drive3'; did you mean 'drive2'?"):
        robot.inverse_dynamics(q, v, a, actuated=["drive3"])
    with says(InputError, "internal_forces need by_subsystems=False; subsystems are solved one after the other"):
        robot.inverse_dynamics(q, v, a, internal_forces={"meeting": np.zeros(6)}, by_subsystems=True)


# ---- which joints, which accelerations


def test_other_joints_can_be_the_actuators():
    robot, q, v, a = motion("five_bar")
    for pair in (("elbow1", "elbow2"), ("drive1", "elbow2"), ("elbow1", "drive2")):
        tau = robot.inverse_dynamics(q, v, a, actuated=pair)
        assert {j.name for j in robot.model.joints if tau[robot.model.v_slice(j.name)] != 0.0} == set(pair)
        assert difference(robot.forward_dynamics(q, v, tau), a) < RETURNS


def test_accelerations_can_be_those_of_the_independent_joints():
    robot, q, v, _ = motion("five_bar")
    a = robot.complete_acceleration(q, v, {"drive1": 0.3, "drive2": -0.2})
    expected = robot.inverse_dynamics(q, v, a)
    np.testing.assert_array_equal(robot.inverse_dynamics(q, v, {"drive1": 0.3, "drive2": -0.2}), expected)
    assert robot.independent_coordinates().names == ("drive1", "drive2")
    np.testing.assert_array_equal(robot.inverse_dynamics(q, v, [0.3, -0.2]), expected)


@pytest.mark.slow
def test_forces_from_outside_are_borne():
    robot, q, v, a = motion("delta")
    push = {"platform": np.array((0.1, 0.2, -0.1, 3.0, -2.0, 5.0)), "arm1": np.arange(6.0)}
    tau = robot.inverse_dynamics(q, v, a, forces=push)
    assert difference(robot.forward_dynamics(q, v, tau, forces=push), a) < RETURNS


def test_a_tree_with_passive_joints_can_be_asked_who_drives_it():
    robot = sl.Dynamics(zoo.pendulum(2))
    q, v, tau = np.array((0.3, -0.5)), np.array((0.7, 0.2)), np.array((2.0, 0.0))
    a = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a, actuated=["hinge1"]), tau, atol=1e-12)
    with says(StateError, "(hinge1) cannot produce this motion, or hold this load: none of them drives hinge2"):
        robot.inverse_dynamics(q, v, a + (0.0, 1.0), actuated=["hinge1"])
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, atol=1e-12)


def test_driven_joints_and_loops_and_gears():
    robot, q, v, a = motion("five_bar")
    driven = sl.Dynamics(robot.model.drive("drive1"))
    np.testing.assert_allclose(driven.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a), atol=1e-10)
    robot = sl.Dynamics(linkage("d", driven=True))
    q = robot.assemble(np.array([-0.9, 0.8, -1.6]))
    a = robot.forward_dynamics(q, np.zeros(3), np.zeros(3), loop_accelerations={"d": [0.7]})
    found = robot.solve_inverse(q, np.zeros(3), a, loop_accelerations={"d": [0.7]})
    np.testing.assert_allclose(found.tau, 0.0, atol=1e-12)  # the loop itself is the drive
    assert abs(found.rows[-1]) > 0.1
    with says(StateError, "the accelerations would open 'd' by 0.7 rad/s²"):
        robot.inverse_dynamics(q, np.zeros(3), a)
    b = sl.Builder("gear").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.3, 0.3, 0.5))
    b.revolute("p", "world", "one", "z").revolute("q", "world", "two", "z", (1.0, 0.0, 0.0), actuated=False)
    geared = sl.Dynamics(b.coupling("gear", "q", "p", -2.0, 0.0).build())
    tau = geared.inverse_dynamics(np.zeros(2), np.zeros(2), {"p": 1.5})
    np.testing.assert_allclose(tau, (1.5 * (0.3 + 4 * 0.5), 0.0), rtol=1e-13)


@pytest.mark.slow
def test_released_feet_carry_nothing():
    model = zoo.hexapod(switchable=True)
    robot, q = sl.Dynamics(model), zoo.hexapod_start()
    tripod = [f"standing{i}" for i in (1, 3, 5)]
    v = np.zeros(model.nv)
    a = robot.forward_dynamics(q, v, np.zeros(model.nv), active_loops=tripod)
    tau = robot.inverse_dynamics(q, v, a, active_loops=tripod)
    assert difference(robot.forward_dynamics(q, v, tau, active_loops=tripod), a) < RETURNS
    with says(InputError, "active_loops names 'standing7', which is not a switchable loop"):
        robot.inverse_dynamics(q, v, a, active_loops=["standing7"])


# ---- states without an answer


def test_velocities_that_open_a_loop_are_blamed():
    """Torques and accelerations for such a v would be those of no motion; the sentence names the loop and its rate."""
    robot, q, v, a = motion("four_bar")
    wrong = v + np.array([0.0, 0.1, 0.0])
    sentence = "the velocities v open 'closing' at "
    for call in (robot.inverse_dynamics, robot.solve_inverse):
        for told in (a, {"crank_hinge": 1.0}):
            with says(StateError, sentence):
                call(q, wrong, told)
    with says(StateError, "J v must be 0. Take the nearest that keep the loops closed: q, v = robot.project(q, v)"):
        robot.complete_acceleration(q, wrong, {"crank_hinge": 1.0})
    shut = robot.project(q, wrong)[1]
    found = robot.complete_acceleration(q, shut, {"crank_hinge": 1.0})
    assert np.isfinite(robot.inverse_dynamics(q, shut, found)).all()
    with pytest.warns(SpanloopWarning, match="the velocities v open 'closing'"):
        both = robot.complete_acceleration(q, np.stack((shut, wrong)), {"crank_hinge": 1.0})
    assert np.isfinite(both[0]).all()
    assert np.isnan(both[1]).all()


def test_rates_along_a_driven_loop_open_nothing():
    robot = sl.Dynamics(linkage("d", driven=True))
    q = robot.assemble(np.array([-0.9, 0.8, -1.6]))
    v = ClosedReference(robot.model, q).consistent(np.array([1.0, 0.3, -0.5]))
    assert abs((robot.closure_jacobian(q) @ v)[-1]) > 0.1
    a = robot.forward_dynamics(q, v, np.zeros(3), loop_accelerations={"d": [0.2]})
    assert np.isfinite(robot.inverse_dynamics(q, v, a, loop_accelerations={"d": [0.2]})).all()


def test_motions_that_would_open_a_loop_are_refused():
    robot, q, v, a = motion("four_bar")
    with says(StateError, "inverse_dynamics: the accelerations would open 'closing' by 1 m/s². Complete them: a ="):
        robot.inverse_dynamics(q, v, a + np.linalg.pinv(robot.closure_jacobian(q))[:, 3])
    with says(StateError, "loop 'closing', between 'coupler' and 'rocker', is open by"):
        robot.inverse_dynamics(q + (0.1, 0.0, 0.0), v, a)


def test_dofs_that_nobody_drives_are_named():
    robot, q, v, a = motion("five_bar")
    sentence = "inverse_dynamics: the actuators (drive1) cannot produce this motion, or hold this load: none of them"
    with says(StateError, sentence):
        robot.inverse_dynamics(q, v, a, actuated=["drive1"])
    robot, q, v, a = motion("arms 2 ball")
    a = robot.complete_acceleration(q, v, np.ones(12))
    with says(StateError, "cannot produce this motion, or hold this load: none of them drives floating["):
        robot.inverse_dynamics(q, v, a)


@pytest.mark.slow
def test_a_singular_position_of_the_actuators_is_told():
    """A piston in its dead centre moves no crank."""
    robot = sl.Dynamics(zoo.slider_crank())
    dead = zoo.slider_crank_start(angle=0.0)
    v = robot.complete_velocity(dead, {"crank_hinge": 1.0})
    with says(
        StateError,
        "the actuators (slide) are in a singular configuration: here no torque of theirs acts on a motion of "
        "crank_pin, crank_hinge, which this motion needs. Choose others",
    ):
        robot.inverse_dynamics(dead, v, {"crank_hinge": 1.0}, actuated=["slide"])
    assert np.isfinite(robot.inverse_dynamics(dead, v, {"crank_hinge": 1.0})).all()


def test_a_singular_position_of_the_loops_is_refused_unless_one_answer_is_wanted():
    model = zoo.four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    q, v, a = np.zeros(3), np.zeros(3), np.zeros(3)
    with says(StateError, "the loops are in a singular configuration"):
        sl.Dynamics(model).inverse_dynamics(q, v, a)
    with says(StateError, "cannot produce this motion, or hold this load"):  # two motions here, one actuator
        sl.Dynamics(model, on_singular="minimum_norm").inverse_dynamics(q, v, a)
    both = {"actuated": ["crank_hinge", "rocker_hinge"]}
    tau = sl.Dynamics(model, on_singular="minimum_norm").inverse_dynamics(q, v, a, **both)
    assert np.isfinite(tau).all()


def test_batches_have_nan_rows_where_there_is_no_answer():
    robot, q, v, a = motion("five_bar")
    expected = robot.inverse_dynamics(q, v, a)
    states = np.stack((q, q + (0.1, 0.0, 0.0, 0.0), q, q))
    rates = np.stack((v, v, v, v * np.nan))
    with pytest.warns(SpanloopWarning, match="inverse_dynamics: 2 of 4 states have no answer"):
        tau = robot.inverse_dynamics(states, rates, a)
    np.testing.assert_array_equal(np.isnan(tau).all(axis=1), [False, True, False, True])
    np.testing.assert_allclose(tau[[0, 2]], np.stack((expected, expected)), rtol=1e-12)
    with pytest.warns(SpanloopWarning, match="solve_inverse: 2 of .* states have no answer"):
        found = robot.solve_inverse(states.reshape(2, 2, 4), rates.reshape(2, 2, 4), a)
    assert found.status.tolist() == [["ok", "no answer"], ["ok", "no answer"]]
    assert found.loop_forces["meeting"].shape == (2, 2, 6)
    out = np.empty((3, 4))
    assert robot.inverse_dynamics(np.stack((q, q, q)), v, a, out=out) is out
    np.testing.assert_allclose(out[1], expected, rtol=1e-12)


def test_single_precision_and_the_python_target_agree():
    robot, q, v, a = motion("four_bar")
    expected = robot.inverse_dynamics(q, v, a)
    single, floats = (sl.Dynamics(robot.model, **x) for x in ({"dtype": "float32"}, {"target": "python"}))
    np.testing.assert_allclose(floats.inverse_dynamics(q, v, a), expected, rtol=1e-11)
    np.testing.assert_allclose(single.inverse_dynamics(q, v, a), expected, rtol=1e-4, atol=1e-4)


# ---- subsystems


@pytest.mark.parametrize("case", [c for c in CASES if c not in UNDRIVEN])
def test_subsystems_give_the_same_torques(case):
    robot, q, v, a = motion(case)
    tau = robot.inverse_dynamics(q, v, a)
    found = robot.inverse_dynamics(q, v, a, by_subsystems=True)
    np.testing.assert_allclose(found, tau, atol=1e-9 * np.abs(tau).max())


def test_where_a_four_bar_is_cut_decides_whether_its_subsystems_are_determinate():
    """Cut behind the crank, coupler and rocker come first, then the crank [Saha, fig. 17 a]; cut before the rocker,
    none is determinate (fig. 17 b)."""
    behind, before = (sl.Dynamics(linkage(cut)).subsystems(actuated=["a"]) for cut in ("b", "d"))
    assert [(p.joints, p.unknowns, p.determinate) for p in behind.parts] == [
        (("a",), 3, False),
        (("c", "d"), 2, True),
    ]
    assert [s.subsystems for s in behind.stages] == [("II",), ("I",)]
    assert [p.determinate for p in before.parts] == [False, False]
    assert [(s.subsystems, s.determinate) for s in before.stages] == [(("I", "II"), True)]
    assert str(behind).splitlines() == [
        "linkage: 2 subsystems.",
        "I: a. 1 DoF, 3 unknowns (loops: b; actuators: a): indeterminate.",
        "II: c, d. 2 DoF, 2 unknowns (loops: b; actuators: none): determinate.",
        "Solved in the order II, then I.",
    ]


def test_too_few_and_too_many_unknowns_are_told_apart():
    """The governor's sleeve has no actuator; two arms have six torques to spare."""
    governor, arms = (sl.Dynamics(m).subsystems() for m in (zoo.flyball_governor(), zoo.arms_with_object(2)))
    assert str(governor).splitlines()[-1] == (
        "Solved in the order I (5 unknowns for 6 DoF: not all motions can be produced)."
    )
    assert str(arms).endswith("(24 unknowns for 18 DoF: some to spare, the least torques are taken).")


def test_a_tree_is_solved_branch_by_branch():
    robot = sl.Dynamics(zoo.star(3, "revolute").actuate("root"))
    q, v = robot.model.random_state(2)
    found = robot.subsystems(actuated=[j.name for j in robot.model.joints])
    assert [s.subsystems for s in found.stages] == [("I",)]
    assert "(loops: none; actuators: root[0], root[1]" in str(found)
    tau = robot.inverse_dynamics(q, v, np.ones(9))
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, np.ones(9), by_subsystems=True), tau, atol=1e-12)


# ---- a motion from that of some joints


def test_the_other_joints_follow():
    """Rates and accelerations are those of the positions, by differences of order h² and eps/h²."""
    robot, start = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    t = np.linspace(0.0, 1.0, 201)
    turn = {"drive1": (1.4 + 0.2 * np.sin(t), 0.2 * np.cos(t), -0.2 * np.sin(t)), "drive2": (1.2 + 0 * t, 0 * t, 0 * t)}
    q, v, a = robot.follow(start, turn)
    assert np.abs(robot.closure_error(q)).max() < 1e-11
    np.testing.assert_allclose(q[:, 0], turn["drive1"][0], atol=1e-15)
    h = t[1]
    np.testing.assert_allclose((q[2:] - q[:-2]) / (2 * h), v[1:-1], atol=1e-5)
    np.testing.assert_allclose((q[2:] - 2 * q[1:-1] + q[:-2]) / h**2, a[1:-1], atol=1e-5)
    with says(InputError, "follow: the rates of 'drive1' have shape (2, 2); expected (n, 1)"):
        robot.follow(start, {"drive1": (t, np.zeros((2, 2)), t), "drive2": (t, t, t)})
    with says(InputError, "follow: the joints' positions, rates and accelerations have 2, 201 samples"):
        robot.follow(start, {"drive1": (t, t, t), "drive2": (t, t, t[:2])})


@pytest.mark.slow
def test_a_coarse_path_stays_in_its_assembly():
    """Nine samples of a swing of 1.5 rad: every one is where a thousand samples lead."""
    robot, start = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    whole = [robot.follow(start, _swing(start, n))[0] for n in (9, 1001)]
    np.testing.assert_allclose(np.sin(whole[0]), np.sin(whole[1][::125]), atol=1e-10)
    np.testing.assert_allclose(np.cos(whole[0]), np.cos(whole[1][::125]), atol=1e-10)


def _swing(start, n: int) -> dict:
    t = np.linspace(0.0, 2.0 * np.pi, n)
    drives = ((start[0], 1.5), (start[2], 0.0))
    return {
        f"drive{k}": (x + wide * np.sin(t), wide * np.cos(t), -wide * np.sin(t))
        for k, (x, wide) in enumerate(drives, 1)
    }


def test_a_path_beyond_a_singular_position_is_refused():
    """The legs of the five-bar cannot reach where its drives point away from each other."""
    robot, start = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    t = np.linspace(0.0, 1.0, 5)
    path = {
        f"drive{k}": (start[i] + s * 2.5 * t, s * 2.5 * np.ones(5), np.zeros(5)) for k, i, s in ((1, 0, 1), (2, 2, -1))
    }
    with pytest.raises(
        StateError, match=r"follow: between samples \d and \d the mechanism comes to a singular configuration"
    ):
        robot.follow(start, path)
