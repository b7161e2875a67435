"""Legs on one platform, as in Saha's section 3: against 50 digits, against Jacobians, and where it does not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from closed_answers import AGREE, answer_of, case_of, difference
from dense_driven import exact
from random_legs import FITS, random_legs, three_legs
from random_loops import moving, scaled
from scipy.integrate import solve_ivp
from sentences import says
from singular_cases import five_bar_in_line

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.papers.saha.parallel_matrices import parallel_complement
from spanloop.errors import InputError, StateError, UnsupportedError
from spanloop.topology import mechanism as numbers

ARM = ("turn", "shoulder", "elbow", "roll", "pitch", "spin")


# ---- forward and inverse


@pytest.mark.parametrize("options", [{}, {"target": "python"}], ids=str)
@pytest.mark.parametrize("name", FITS)
def test_accelerations_agree_with_fifty_digits(name, options):
    case = case_of(name)
    a = sl.compile(case.model, "forward_dynamics", method="parallel_legs", **options)(case.q, case.v, case.tau)
    assert difference(a, answer_of(name)) < AGREE


def test_a_platform_that_one_leg_carries_and_loops_that_start_at_it():
    model, q = three_legs()
    case = moving(model, q, np.random.default_rng(4))
    a = sl.Dynamics(model, method="parallel_legs").forward_dynamics(case.q, case.v, case.tau)
    assert difference(a, exact(model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.parametrize("seed", range(10))
def test_random_legs_agree_with_fifty_digits(seed):
    """Ratios of singular values are below 50, which costs about 50² eps = 6e-13."""
    case = random_legs(seed)
    a = sl.compile(case.model, "forward_dynamics", method="parallel_legs", target="python")(case.q, case.v, case.tau)
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 110))
def test_more_random_legs_agree_with_fifty_digits(seed):
    test_random_legs_agree_with_fifty_digits(seed)


@pytest.mark.parametrize("length", [1e-5, 1e3])
def test_legs_of_any_size_agree_with_fifty_digits(length):
    """Twists of the platform mix metres and radians: in legs of 10 µm ten digits were lost."""
    case = scaled(random_legs(4), length)
    a = sl.compile(case.model, "forward_dynamics", method="parallel_legs", target="python")(case.q, case.v, case.tau)
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.parametrize("actuated", [("elbow1", "elbow2"), ("drive1", "elbow2"), ("elbow1", "drive1")])
def test_actuators_may_be_anywhere(actuated):
    model = zoo.five_bar()
    model = replace(model, joints=tuple(replace(j, actuated=j.name in actuated) for j in model.joints))
    case = case_of("five_bar")
    a = sl.Dynamics(model, method="parallel_legs").forward_dynamics(case.q, case.v, case.tau)
    assert difference(a, answer_of("five_bar")) < AGREE


@pytest.mark.slow
def test_forces_live_parameters_and_batches():
    case = case_of("stewart")
    push = {"platform": np.arange(6.0), "piston2": np.ones(6)}
    robot = sl.Dynamics(case.model, method="parallel_legs")
    a = robot.forward_dynamics(case.q, case.v, case.tau, forces=push)
    assert difference(a, exact(case.model, case.q, case.v, case.tau, push)) < AGREE
    case = case_of("five_bar")
    kernel = sl.compile(case.model, "forward_dynamics", method="parallel_legs", parameters="live")
    a = kernel(case.q, case.v, case.tau, case.model.parameters().values)
    assert difference(a, answer_of("five_bar")) < AGREE
    robot = sl.Dynamics(case.model, method="parallel_legs")
    many = robot.forward_dynamics(np.tile(case.q, (11, 1)), case.v, case.tau)
    np.testing.assert_allclose(many, np.tile(answer_of("five_bar"), (11, 1)), rtol=1e-10)


@pytest.mark.parametrize("name", ["five_bar", "stewart", "slider_crank", "bricard", "three legs"])
def test_torques_of_the_actuators_are_those_of_inverse_dynamics(name):
    model, q = three_legs() if name == "three legs" else (case_of(name).model, case_of(name).q)
    robot = sl.Dynamics(model)
    v = moving(model, q, np.random.default_rng(6)).v
    rng = np.random.default_rng(7)
    a = robot.complete_acceleration(q, v, rng.normal(size=robot.mobility()))
    free = [k for j in model.actuated for k in range(model.nv)[model.v_slice(j)]]
    expected = robot.inverse_dynamics(q, v, a)[free]
    np.testing.assert_allclose(
        sl.papers.actuated_inverse_dynamics(robot, q, v, a), expected, atol=1e-10 * np.abs(expected).max()
    )
    unread = np.where(np.isin(np.arange(model.nv), free), a, 7.0)
    np.testing.assert_array_equal(
        sl.papers.actuated_inverse_dynamics(robot, q, v, unread), sl.papers.actuated_inverse_dynamics(robot, q, v, a)
    )


# ---- the three matrices


@pytest.mark.parametrize("name", ["five_bar", "stewart", "slider_crank", "three legs"])
def test_the_three_matrices_give_the_twists_of_all_links(name):
    """Twists by Jacobians of body frames, turned into the axes and moved to the origins of links."""
    model, q = three_legs() if name == "three legs" else (case_of(name).model, case_of(name).q)
    robot, m = sl.Dynamics(model), numbers(model)
    N = parallel_complement(m, q)
    n = len(N.actuated)
    blocks = len(N.links)
    assert (N.N_l.shape, N.N_c.shape, N.N_d.shape) == ((6 * blocks,) * 2, (6 * blocks, 6 * n), (6 * n, n))
    np.testing.assert_array_equal(np.triu(N.N_l, 1), 0.0)
    rates = np.random.default_rng(8).normal(size=n)
    v = robot.complete_velocity(q, rates, list(N.actuated))
    twists = (N.matrix @ rates).reshape(-1, 6)
    last = {link: k for k, link in enumerate(N.links)}  # of a joint of several freedoms the last block is the link
    assert set(last) == set(range(len(m.links)))
    for joint in model.joints:
        anchor = m.anchors[joint.child]
        pose, moving_frame = robot.pose(q, joint.child), robot.jacobian(q, joint.child) @ v
        turn = np.array(anchor.rotation) @ pose[:3, :3].T  # world to link
        w, u = turn @ moving_frame[:3], turn @ moving_frame[3:]
        found = twists[last[anchor.link]]
        np.testing.assert_allclose(found[:3], w, atol=1e-12)
        np.testing.assert_allclose(found[3:] + np.cross(w, anchor.position), u, atol=1e-12)


def test_the_inertia_of_the_actuated_coordinates_is_that_of_the_complement():
    """I = Nᵀ M N of the five-bar, as the mass matrix in its independent freedoms."""
    model, q = zoo.five_bar(), zoo.five_bar_start()
    m, N = numbers(model), parallel_complement(numbers(model), q)
    last = {link: k for k, link in enumerate(N.links)}
    I = np.zeros((2, 2))
    for link in m.links:
        block = N.matrix[6 * last[link.number] : 6 * last[link.number] + 6]
        wrenches = np.array([tuple(link.inertia @ sl.math.spatial.Motion.of(list(t))) for t in block.T]).T
        I += block.T @ wrenches
    np.testing.assert_allclose(I, sl.Dynamics(model).mass_matrix(q, coordinates="independent"), rtol=1e-12)


def legs_called(name) -> tuple[sl.Model, np.ndarray]:
    if name == "three legs":
        return three_legs()
    case = random_legs(int(name.split()[1])) if name.startswith("random") else case_of(name)
    return case.model, case.q


COMPLEMENTS = ("five_bar", "stewart", "slider_crank", "three legs", "random 0", "random 1", "random 2", "random 3")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLEMENTS)
def test_the_complement_by_names_gives_the_twists_of_bodies(name):
    """N θ̇ beside Jacobians at completed rates, in each body's axes; I = Nᵀ M N beside Tᵀ M T."""
    model, q = legs_called(name)
    robot, N = sl.Dynamics(model), sl.papers.parallel_complement(sl.Dynamics(model), q)
    rates = np.random.default_rng(8).normal(size=len(N.joints))
    v, twists = robot.complete_velocity(q, dict(zip(N.joints, rates, strict=True))), N.twists(rates)
    for body in model.bodies:
        expected = robot.jacobian(q, body.name, expressed_in=body.name) @ v
        np.testing.assert_allclose(twists[body.name], expected, atol=1e-11 * max(1.0, np.abs(expected).max()))
    bare = sl.Dynamics(model.without_losses())  # M has no rotors
    T = bare.velocity_map(q, N.joints)
    expected = T.T @ bare.mass_matrix(q) @ T
    np.testing.assert_allclose(N.N.T @ N.M @ N.N, expected, atol=1e-11 * np.abs(expected).max())
    if set(bare.independent_coordinates().names) == set(N.joints):
        np.testing.assert_allclose(expected, bare.mass_matrix(q, coordinates="independent"), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(np.triu(N.N_l, 1), 0.0)


def test_the_complement_does_not_depend_on_the_robots_method():
    model, q = zoo.five_bar(), zoo.five_bar_start()
    found = [sl.papers.parallel_complement(sl.Dynamics(model, method=m), q).N for m in (None, "parallel_legs", "dense")]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_complement_prints_its_blocks():
    assert str(sl.papers.parallel_complement(sl.Dynamics(zoo.five_bar()), zoo.five_bar_start())).splitlines() == [
        "five_bar: twists of 5 bodies for the rates of drive1, drive2.",
        "t = N_l N_c N_d θ̇; N_l (30, 30), N_c (30, 12), N_d (12, 2). Blocks: 1 unit, x full, . zero.",
        "body    N_l    N_c",
        "near1   1....  1.",
        "far1    x1...  xx",
        "near2   ..1..  .1",
        "elbow2  ..x1.  xx",
        "far2    ....1  xx",
    ]


def test_the_complement_is_refused_where_the_method_is():
    robot = sl.Dynamics(zoo.five_bar())
    with says(StateError, "parallel_complement: loop 'meeting', between 'far1' and 'far2', is open by"):
        sl.papers.parallel_complement(robot, np.zeros(4))
    with says(StateError, "parallel_complement: the legs are in a singular configuration"):
        sl.papers.parallel_complement(robot, five_bar_in_line(0.0).q)
    with says(InputError, "parallel_complement: q has shape (2, 4); expected one state (4,)"):
        sl.papers.parallel_complement(robot, np.zeros((2, 4)))
    arms = zoo.arms_with_object(2)
    with says(UnsupportedError, "parallel_complement is for legs on one platform: 12 DoF are actuated, and the"):
        sl.papers.parallel_complement(sl.Dynamics(arms), zoo.arms_with_object_start(2))
    with says(UnsupportedError, "parallel_complement: model 'chain2_revolute' has no loops"):
        sl.papers.parallel_complement(sl.Dynamics(zoo.chain(2)), np.zeros(2))


# ---- where it has no answer


def test_the_singular_position_of_the_legs_is_told():
    """Distal links in line: the drives do not determine the point where they meet."""
    robot = sl.Dynamics(zoo.five_bar(), method="parallel_legs")
    state = five_bar_in_line(0.0)
    with says(StateError, "the legs are in a singular configuration: the actuated joints do not determine the motion"):
        robot.forward_dynamics(state.q, state.v, state.tau)
    near = robot.minimal_coordinates(zoo.five_bar_start())
    a = near.forward_dynamics(zoo.five_bar_start()[[0, 2]], np.zeros(2), np.zeros(2))
    assert np.isfinite(a).all()


@pytest.mark.slow
def test_motions_that_the_actuators_leave_free_are_never_guessed():
    """Two arms that hold an object by points leave it a spin."""
    with says(UnsupportedError, "wherever the loops are closed, the actuated joints leave a motion of 'floating' free"):
        sl.Dynamics(case_of("arms 2 ball").model, method="parallel_legs")
    arms = zoo.arms_with_object(2).actuate(*(f"arm1_{x}" for x in ARM), only=True)
    assert sl.Dynamics(arms, method="parallel_legs").mobility() == len(ARM)  # one arm determines all
    mixed = arms.unactuate("arm1_turn").actuate("arm2_turn")
    assert sl.Dynamics(mixed, method="parallel_legs").model.actuated[-1] == "arm2_turn"


def test_a_singular_position_is_refused_whatever_is_asked_for():
    """There is no answer of minimum norm in coordinates that do not determine the motion."""
    robot = sl.Dynamics(zoo.five_bar(), method="parallel_legs", on_singular="minimum_norm")
    state, case = five_bar_in_line(0.0), case_of("five_bar")
    assert difference(robot.forward_dynamics(case.q, case.v, case.tau), answer_of("five_bar")) < AGREE
    with says(StateError, "the legs are in a singular configuration"):
        robot.forward_dynamics(state.q, state.v, state.tau)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (zoo.delta, "joint 'motor1' belongs to more than one leg"),
        (lambda: zoo.n_four_bar(3), "the loops do not all end at one body"),
        (lambda: zoo.arms_with_object(2), "12 DoF are actuated, and the loops leave 6; the numbers must be equal"),
        (lambda: zoo.four_bar(closure="universal"), "loop 'closing' is closed by a universal joint"),
        (lambda: zoo.four_bar().drive("crank_hinge"), "joint 'crank_hinge' is driven"),
    ],
)
def test_it_says_why_it_does_not_fit(make, why):
    with says(UnsupportedError, f"method 'parallel_legs' does not fit: {why}"):
        sl.compile(make(), "forward_dynamics", method="parallel_legs").operations  # noqa: B018


def test_a_file_that_says_nothing_of_motors_is_told_which_joints_have_them():
    """All joints of the five-bar actuated, as URDF has them."""
    model = zoo.five_bar().actuate("elbow1", "elbow2")
    with says(UnsupportedError, "4 DoF are actuated, and the loops leave 2; the numbers must be equal"):
        sl.Dynamics(model, method="parallel_legs")
    advice = "or mark which joints are actuated: model.actuate(..., only=True), model.unactuate(...)"
    with says(UnsupportedError, advice):
        sl.Dynamics(model, method="parallel_legs")
    case, told = case_of("five_bar"), model.actuate("drive1", "drive2", only=True)
    a = sl.Dynamics(told, method="parallel_legs").forward_dynamics(case.q, case.v, case.tau)
    assert difference(a, answer_of("five_bar")) < AGREE


# ---- an ordinary differential equation in the actuated coordinates


@pytest.mark.slow
def test_free_fall_in_the_actuated_coordinates_is_that_of_all_coordinates():
    """Saha's five-bar, 0.5 s: SciPy on two angles and a simulation with projection; both to about 1e-9."""
    model, start = zoo.five_bar(), zoo.five_bar_start()
    few = sl.Dynamics(model, method="parallel_legs").minimal_coordinates(start)
    assert few.names == ("drive1", "drive2")

    def fall(t, y):
        return np.concatenate((y[2:], few.forward_dynamics(y[:2], y[2:], np.zeros(2))))

    y = solve_ivp(fall, (0.0, 0.5), [*start[[0, 2]], 0.0, 0.0], rtol=1e-10, atol=1e-12).y[:, -1]
    run = sl.simulate(model, start, np.zeros(4), duration=0.5, step=1e-3)
    q, v = run.q[-1], run.v[-1]
    np.testing.assert_allclose(y, (*q[[0, 2]], *v[[0, 2]]), atol=1e-7)
    a = few.forward_dynamics(y[:2], y[2:], np.zeros(2))
    np.testing.assert_allclose(few.inverse_dynamics(y[:2], y[2:], a), 0.0, atol=1e-9)
