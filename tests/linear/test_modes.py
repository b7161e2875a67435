"""robot.modes: natural frequencies, damping and shapes about an equilibrium, against closed forms and dense models."""

from __future__ import annotations

import numpy as np
import pytest
from linear_mechanisms import cart_pole

import spanloop as sl
from spanloop.errors import InputError, Reason, StateError

G = 9.81


def close(found, expected, tolerance):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max(), (found, expected)


def sprung(model, stiffness=40.0, damping=0.0, rest=None):
    """The model with a spring at every joint of one DoF, at rest in the coordinates `rest` (nq,)."""
    for j in model.joints:
        if j.kind.nv == 1 and j.kind.takes_springs:
            at = 0.0 if rest is None else float(rest[model.q_slice(j.name)][0])
            model = model.with_joint(j.name, stiffness=stiffness, rest=at, damping=damping)
    return model


def carts(springs, masses, dampers=None):
    """Carts in a row on a horizontal rail, each tied to the one before it."""
    b, parent = sl.Builder("carts"), "world"
    for k, (stiffness, mass) in enumerate(zip(springs, masses, strict=True)):
        b.body(f"cart{k}", mass, inertia=(1.0, 1.0, 1.0))
        damping = dampers[k] if dampers else 0.0
        b.prismatic(f"slide{k}", parent, f"cart{k}", "x", stiffness=stiffness, damping=damping, actuated=False)
        parent = f"cart{k}"
    return sl.Dynamics(b.build())


# ---- closed forms


def test_a_physical_pendulum_swings_with_the_root_of_its_restoring_torque_over_its_inertia():
    mass, arm, inertia = 1.3, 0.4, 0.02
    b = sl.Builder("physical").body("rod", mass, (0.0, 0.0, -arm), (inertia, inertia, inertia))
    robot = sl.Dynamics(b.revolute("hinge", "world", "rod", "y").build())
    rate = np.sqrt(mass * G * arm / (inertia + mass * arm**2))
    hanging, standing = robot.modes([0.0]), robot.modes([np.pi])
    close(hanging.angular_frequencies, [rate], 1e-13)
    close(hanging.frequencies, [rate / (2.0 * np.pi)], 1e-13)
    close(standing.poles, [rate], 1e-13)
    assert (hanging.kinds, standing.kinds) == (("oscillation",), ("unstable",))
    assert (hanging.is_stable, standing.is_stable) == (True, False)
    close(hanging.damping_ratios, [0.0], 0.0)
    close(standing.damping_ratios, [-1.0], 0.0)


@pytest.mark.slow
def test_a_held_pendulum_swings_about_where_its_motor_holds_it():
    robot = sl.Dynamics(sl.zoo.pendulum(1))
    base, held = robot.modes([0.0]).angular_frequencies, robot.modes([0.8])
    close(held.angular_frequencies, base * np.sqrt(np.cos(0.8)), 1e-13)
    close(held.tau, robot.gravity_torques([0.8]), 1e-13)


def test_a_double_pendulum_of_equal_points_has_the_two_frequencies_of_the_textbook():
    length, b, parent = 0.7, sl.Builder("points"), "world"
    for k in range(2):
        b.body(f"rod{k}", 2.0, (0.0, 0.0, -length), (0.0, 0.0, 0.0))
        b.revolute(f"hinge{k}", parent, f"rod{k}", "y", (0.0, 0.0, -length) if k else (0.0, 0.0, 0.0))
        parent = f"rod{k}"
    found = sl.Dynamics(b.build()).modes([0.0, 0.0])
    close(found.angular_frequencies**2, G / length * np.array([2.0 - np.sqrt(2.0), 2.0 + np.sqrt(2.0)]), 1e-12)
    angles = np.cumsum(found.shapes, axis=0)  # of the rods: √2 in phase, −√2 against it
    close(angles[1] / angles[0], [np.sqrt(2.0), -np.sqrt(2.0)], 1e-12)


def test_a_chain_of_masses_and_springs_has_the_sines_of_a_fixed_and_a_free_end():
    n, k, m = 7, 300.0, 0.8
    found = carts([k] * n, [m] * n).modes(np.zeros(n))
    numbers = np.arange(1, n + 1)
    close(
        found.angular_frequencies, 2.0 * np.sqrt(k / m) * np.sin((2 * numbers - 1) * np.pi / (2 * (2 * n + 1))), 1e-12
    )
    close(found.shapes.T @ found.mass @ found.shapes, np.eye(n), 1e-12)
    close(found.shapes.T @ found.stiffness @ found.shapes, np.diag(found.angular_frequencies**2), 1e-12)


def test_a_free_shaft_with_two_discs_turns_as_a_whole_and_twists():
    b = sl.Builder("shaft").body("first", 1.0, inertia=(1.0, 1.0, 0.3)).body("second", 1.0, inertia=(1.0, 1.0, 0.1))
    b.revolute("bearing", "world", "first", "z").revolute("twist", "first", "second", "z", stiffness=50.0)
    found = sl.Dynamics(b.build()).modes([0.4, 0.0])
    close(found.angular_frequencies, [0.0, np.sqrt(50.0 * (1.0 / 0.3 + 1.0 / 0.1))], 1e-12)
    assert found.kinds == ("rigid", "oscillation")
    assert abs(found.shapes[1, 0]) < 1e-9 * abs(found.shapes[0, 0])


@pytest.mark.parametrize("ratio", [0.05, 0.7, 0.9999])
def test_a_cart_on_spring_and_damper_has_its_natural_frequency_and_damping_ratio(ratio):
    k, m = 200.0, 1.7
    found = carts([k], [m], [2.0 * ratio * np.sqrt(k * m)]).modes([0.0])
    close(found.angular_frequencies, [np.sqrt(k / m)], 1e-11)
    close(found.damping_ratios, [ratio], 1e-11)
    assert found.kinds == ("oscillation",)


def test_an_overdamped_cart_decays_in_two_ways_and_one_without_spring_stays_or_decays():
    k, m, ratio = 200.0, 1.7, 1.5
    slow, fast = np.sqrt(k / m) * (ratio - np.sqrt(ratio**2 - 1)), np.sqrt(k / m) * (ratio + np.sqrt(ratio**2 - 1))
    found = carts([k], [m], [2.0 * ratio * np.sqrt(k * m)]).modes([0.0])
    close(found.poles, [-slow, -fast], 1e-12)
    assert found.kinds == ("decay", "decay")
    loose = carts([0.0], [m], [3.0]).modes([0.0])
    close(loose.poles, [0.0, -3.0 / m], 1e-12)
    assert loose.kinds == ("rigid", "decay")


@pytest.mark.slow
def test_damping_in_proportion_to_stiffness_leaves_frequencies_and_real_shapes():
    k, m, share = [300.0, 200.0, 100.0], [1.0, 2.0, 0.5], 1e-3
    plain, damped = carts(k, m).modes(np.zeros(3)), carts(k, m, [share * x for x in k]).modes(np.zeros(3))
    close(damped.angular_frequencies, plain.angular_frequencies, 1e-12)
    close(damped.damping_ratios, 0.5 * share * plain.angular_frequencies, 1e-10)
    close(damped.shapes.real, plain.shapes, 1e-9)
    assert np.abs(damped.shapes.imag).max() < 1e-9


@pytest.mark.slow
def test_a_free_body_without_gravity_has_six_rigid_modes_damped_joints_or_not():
    b = sl.Builder("floating", gravity=(0.0, 0.0, 0.0)).body("base", 3.0, inertia=(0.1, 0.2, 0.3))
    b.body("arm", 1.0, (0.2, 0.0, 0.0), (0.01, 0.02, 0.03)).free("root", "world", "base")
    b.revolute("elbow", "base", "arm", "z", (0.3, 0.1, 0.0), stiffness=20.0)
    model = b.build()
    for damping, kind in ((0.0, "oscillation"), (0.05, "oscillation")):
        found = sl.Dynamics(model.with_joint("elbow", damping=damping)).modes(model.neutral())
        assert found.kinds == ("rigid",) * 6 + (kind,)


def test_a_body_on_a_ball_joint_swings_alike_in_any_attitude_about_the_vertical():
    b = sl.Builder("ball").body("bob", 2.0, (0.0, 0.0, -0.5), (0.02, 0.02, 0.01))
    robot = sl.Dynamics(b.spherical("ball", "world", "bob").build())
    rate = np.sqrt(2.0 * G * 0.5 / (0.02 + 2.0 * 0.25))
    for angle in (0.0, 1.1):
        found = robot.modes([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
        close(found.angular_frequencies, [0.0, rate, rate], 1e-12)
        assert found.kinds == ("rigid", "oscillation", "oscillation")


# ---- closed loops


X = np.longdouble
GROUND, BARS, MASSES = 2.0, (1.0, 2.25, 1.75), (1.0, 1.5, 0.75)  # exact in binary: crank, coupler, rocker
HINGE = sl.joints.Revolute((0.0, 1.0, 0.0))
SPRING, REST = 64.0, 1.25  # at the crank


def four_bar(cut="coupler"):
    """A four-bar whose crank has a spring; cut: the loop is closed at the coupler's tip, or at the rocker's foot."""
    b = sl.Builder("four_bar")
    for name, length, mass in zip(("crank", "coupler", "rocker"), BARS, MASSES, strict=True):
        moment = mass * length**2 / 12.0
        b.body(name, mass, (0.5 * length, 0.0, 0.0), (0.0, moment, moment))
    b.revolute("crank_hinge", "world", "crank", "y", stiffness=SPRING, rest=REST, actuated=False)
    b.revolute("coupler_hinge", "crank", "coupler", "y", (BARS[0], 0.0, 0.0), actuated=False)
    b.frame("coupler_tip", "coupler", (BARS[1], 0.0, 0.0))
    if cut == "coupler":
        b.revolute("rocker_hinge", "world", "rocker", "y", (GROUND, 0.0, 0.0), actuated=False)
        b.frame("rocker_tip", "rocker", (BARS[2], 0.0, 0.0)).loop("coupler_tip", "rocker_tip", HINGE)
    else:
        b.revolute("rocker_pin", "coupler", "rocker", "y", (BARS[1], 0.0, 0.0), actuated=False)
        b.frame("rocker_foot", "rocker", (BARS[2], 0.0, 0.0)).frame("foot", "world", (GROUND, 0.0, 0.0))
        b.loop("rocker_foot", "foot", HINGE)
    return b.build()


def bar_angles(a):
    """Of crank, coupler and rocker against the ground, the coupler above; an angle about y turns x to −z."""
    px, pz = X(BARS[0]) * np.cos(a), -X(BARS[0]) * np.sin(a)
    dx, dz = X(GROUND) - px, -pz
    d = np.sqrt(dx * dx + dz * dz)
    inner = np.arccos((X(BARS[1]) ** 2 + d**2 - X(BARS[2]) ** 2) / (2 * X(BARS[1]) * d))
    coupler = np.arctan2(-dz, dx) - inner
    tx, tz = px + X(BARS[1]) * np.cos(coupler), pz - X(BARS[1]) * np.sin(coupler)
    return np.array([a, coupler, np.arctan2(-tz, tx - X(GROUND))])


def centres(a):
    """x and z of the three mass centres (3, 2)."""
    b = bar_angles(a)
    along = np.stack([np.cos(b), -np.sin(b)], axis=1) * np.array(BARS, X)[:, None]
    feet = np.array([[X(0), X(0)], along[0], [X(GROUND), X(0)]])
    return feet + along / 2


def potential(a):
    return X(G) * np.array(MASSES, X) @ centres(a)[:, 1] + X(SPRING) * (a - X(REST)) ** 2 / 2


def slope(f, a):
    """To sixth order."""
    h = X(1) / 512
    pairs = [(f(a + k * h) - f(a - k * h)) / (2 * k * h) for k in (1, 2, 3)]
    return (15 * pairs[0] - 6 * pairs[1] + pairs[2]) / 10


def energy_method():
    """The crank's angle at the equilibrium, and the frequency: V'' over the inertia that the crank sees."""
    a = X(REST)
    for _ in range(30):
        a = a - slope(potential, a) / slope(lambda x: slope(potential, x), a)
    moments = np.array(MASSES, X) * np.array(BARS, X) ** 2 / 12
    inertia = np.array(MASSES, X) @ (slope(centres, a) ** 2).sum(axis=1) + moments @ slope(bar_angles, a) ** 2
    return a, np.sqrt(slope(lambda x: slope(potential, x), a) / inertia)


def four_bar_position(cut, a):
    crank, coupler, rocker = bar_angles(a)
    last = rocker if cut == "coupler" else rocker + np.pi - coupler
    return np.array([crank, coupler - crank, last], dtype=float)


@pytest.mark.parametrize("cut", ["coupler", "foot"])
def test_a_four_bar_swings_as_its_energy_says_wherever_the_loop_is_cut_and_whatever_its_coordinate(cut):
    a, rate = energy_method()
    robot, q = sl.Dynamics(four_bar(cut)), four_bar_position(cut, a)
    shapes = []
    for joint in robot.model.joints:
        found = robot.modes(q, np.zeros(3), dofs=[joint.name])
        close(found.angular_frequencies, [float(rate)], 1e-9)
        assert found.dofs == (joint.name,)
        shapes.append(found.shapes)
    close(shapes[1], shapes[0], 1e-9)
    close(shapes[2], shapes[0], 1e-9)
    assert np.abs(robot.closure_jacobian(q) @ shapes[0]).max() < 1e-12


CLOSED = {
    "five_bar": (lambda: sl.zoo.five_bar(), lambda: sl.zoo.five_bar_start()),
    "n_four_bar": (lambda: sl.zoo.n_four_bar(2), lambda: sl.zoo.n_four_bar_start(2)),
    "stewart": (lambda: sl.zoo.stewart(), lambda: sl.zoo.stewart_start()),
    "delta": (lambda: sl.zoo.delta(), lambda: sl.zoo.delta_start()),
    "bricard": (lambda: sl.zoo.bricard(), lambda: sl.zoo.bricard_start()),
    "slider_crank": (lambda: sl.zoo.slider_crank(), lambda: sl.zoo.slider_crank_start()),
}


def dense_poles(robot, q, tau, dofs):
    """Poles of the mechanism from differences of forward_dynamics between assembled states, without a derivative."""
    places, n = list(dofs.dofs), len(dofs)
    T, h = robot.velocity_map(q, dofs), 2e-4

    def at(x, rates):
        guess = robot.integrate(q, T @ x)
        there = robot.assemble(guess, tolerance=1e-15) if robot.model.loops else guess
        v = robot.complete_velocity(there, rates, dofs)
        return np.concatenate([robot.difference(q, there)[places], robot.forward_dynamics(there, v, tau)[places]])

    def difference(f, k):
        e = np.eye(n)[k]
        near, mid, far = ((f(j * h * e) - f(-j * h * e)) / (2 * j * h) for j in (1, 2, 3))
        return (15 * near - 6 * mid + far) / 10

    by_q = np.stack([difference(lambda x: at(x, np.zeros(n)), k) for k in range(n)], axis=1)
    by_v = np.stack([difference(lambda x: at(np.zeros(n), x), k)[n:] for k in range(n)], axis=1)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [by_q[n:] @ np.linalg.inv(by_q[:n]), by_v]])
    return np.linalg.eigvals(A)


def same_poles(found, expected, tolerance):
    """Every pole of one list is in the other."""
    size = np.abs(expected).max()
    for one, many in ((found, expected), (expected, np.concatenate([found, found.conj()]))):
        far = np.abs(np.asarray(one)[:, None] - np.asarray(many)).min(axis=1)
        assert far.max() <= tolerance * size, far / size


@pytest.mark.slow
@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("name", CLOSED)
def test_modes_of_closed_mechanisms_are_those_of_a_dense_linearisation_in_any_coordinates(name, damping):
    make, start = CLOSED[name]
    q = np.asarray(start())
    robot = sl.Dynamics(sprung(make(), 2000.0, damping, rest=q))
    found = robot.modes(q)
    usual = robot.independent_coordinates(q)
    expected = dense_poles(robot, q, found.tau, usual)
    poles = np.concatenate([found.poles, -found.poles]) if damping == 0.0 else found.poles
    same_poles(poles, expected, 1e-8)
    rng = np.random.default_rng(3)
    for _ in range(3):
        others = _another_choice(robot, q, rng)
        again = robot.modes(q, found.tau, dofs=others)
        close(np.sort(again.angular_frequencies), np.sort(found.angular_frequencies), 1e-9)
        close(np.sort(again.damping_ratios), np.sort(found.damping_ratios), 1e-9) if damping else None
    error = robot.closure_jacobian(q) @ found.shapes
    assert np.abs(error).max() <= 1e-10 * np.abs(found.shapes).max()


def _another_choice(robot, q, rng):
    """Independent DoF that are not too badly chosen, drawn at random."""
    n = len(robot.independent_coordinates(q))
    for _ in range(1000):
        dofs = sorted(rng.choice(robot.model.nv, n, replace=False).tolist())
        try:
            T = robot.velocity_map(q, dofs)
        except StateError:
            continue
        if np.linalg.norm(T, 2) < 30.0:
            return dofs
    raise AssertionError("no other choice was found")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_modes_of_trees_are_those_of_pinocchios_derivatives(seed):
    pin = pytest.importorskip("pinocchio")
    from pinocchio_peer import Peer

    model = sl.zoo.random_model(seed, 7, kinds=("revolute", "prismatic", "helical")).without_losses()
    q = model.random_state(seed=seed)[0]
    found = sl.Dynamics(model).modes(q)
    peer = Peer(model)
    at, still = peer.order.q_to(q), np.zeros(model.nv)
    K, _, M = (np.array(x) for x in pin.computeRNEADerivatives(peer.model, peer.data, at, still, still))
    M = np.triu(M) + np.triu(M, 1).T
    squares = np.linalg.eigvals(np.linalg.solve(M, K))
    close(np.sort(found.angular_frequencies**2), np.sort(np.abs(squares)), 1e-8)
    assert sum(x == "unstable" for x in found.kinds) == (squares.real < -1e-10 * np.abs(squares).max()).sum()


@pytest.mark.slow
def test_a_small_swing_along_a_shape_returns_after_the_period():
    a, _ = energy_method()
    robot, q = sl.Dynamics(four_bar()), four_bar_position("coupler", a)
    found = robot.modes(q, np.zeros(3))
    period, small = 1.0 / found.frequencies[0], 1e-4
    v = small * found.angular_frequencies[0] * found.shapes[:, 0]
    run = sl.simulate(robot, q, v, duration=period, step=period / 400)
    assert np.abs(run.q[-1] - q).max() < 1e-3 * small
    assert np.abs(run.v[-1] - v).max() < 1e-3 * np.abs(v).max()


# ---- what is no equilibrium, and what has no modes


def test_a_state_that_is_no_equilibrium_is_refused_with_the_acceleration():
    robot = sl.Dynamics(sl.zoo.pendulum(1))
    with pytest.raises(StateError, match=r"no equilibrium: its mass would accelerate by .* m/s².*'hinge1'") as caught:
        robot.modes([0.3], [0.0])
    assert caught.value.reason is Reason.NO_EQUILIBRIUM
    assert robot.modes([1e-8], [0.0]).residual == pytest.approx(G * 1e-8, rel=0.5)
    assert robot.modes([0.01], [0.0], tolerance=0.1).residual > 1e-2


def test_a_falling_body_is_refused_since_no_motor_holds_it():
    model = sl.Builder("stone").body("stone", 1.0, inertia=(0.1, 0.1, 0.1)).free("root", "world", "stone").build()
    with pytest.raises(StateError, match="no equilibrium"):
        sl.Dynamics(model).modes(model.neutral())


def test_advice_fits_the_torques_that_were_given(tmp_path):
    robot = sl.Dynamics(cart_pole())
    with pytest.raises(StateError, match="even with the best torques of the actuated joints") as caught:
        robot.modes([0.0, 0.3])
    assert "Leave tau out" not in str(caught.value)
    with pytest.raises(StateError, match="Leave tau out"):
        robot.modes([0.0, 0.0], [1.0, 0.0])
    with pytest.raises(InputError, match="tolerance is -1; expected a distance >= 0"):
        robot.modes([0.0, 0.0], tolerance=-1)
    with pytest.raises(InputError, match=r"ends in .html or .htm$"):
        robot.modes([0.0, 0.0]).page(tmp_path / "x.txt")


def test_a_state_with_open_loops_a_batch_and_wrong_torques_are_refused():
    robot = sl.Dynamics(four_bar())
    with pytest.raises(StateError) as caught:
        robot.modes([0.3, 0.2, 0.1])
    assert caught.value.reason is Reason.OPEN_LOOP
    with pytest.raises(InputError, match="one state"):
        robot.modes(np.zeros((4, 3)))
    with pytest.raises(InputError, match="tau has shape"):
        sl.Dynamics(sl.zoo.pendulum(2)).modes(np.zeros(2), np.zeros((5, 2)))


def test_a_singular_configuration_of_the_loops_is_refused():
    flat = sl.zoo.four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    with pytest.raises(StateError) as caught:
        sl.Dynamics(flat).modes(np.zeros(3))
    assert caught.value.reason is Reason.SINGULAR_CLOSURE


@pytest.mark.slow
def test_a_state_near_an_equilibrium_has_symmetric_stiffness_too():
    a, rate = energy_method()
    robot = sl.Dynamics(four_bar())
    near = robot.assemble(four_bar_position("coupler", a + X(1e-4)), fixed=["crank_hinge"])
    found = robot.modes(near, np.zeros(3), tolerance=1e-3)
    assert found.is_conservative
    assert len(found) == 1
    close(found.angular_frequencies, [float(rate)], 1e-3)
    assert found.residual > 1e-6


def test_a_driven_joint_stands_still():
    model = sl.zoo.pendulum(2)
    locked = sl.Dynamics(model.lock("hinge1")).modes(np.zeros(1))
    driven = sl.Dynamics(model.with_joint("hinge1", driven=True)).modes(np.zeros(2))
    close(driven.angular_frequencies, locked.angular_frequencies, 1e-12)
    assert driven.dofs == ("hinge2",)
    assert driven.shapes[0, 0] == 0.0
    robot = sl.Dynamics(model.with_joint("hinge1", driven=True))
    near = robot.modes([0.0, 1e-3], np.zeros(2), tolerance=0.1)  # what is left does not drive the joint
    close(near.angular_frequencies, locked.angular_frequencies, 1e-5)
    with pytest.raises(InputError, match="acceleration of a driven joint"):
        robot.modes(np.zeros(2), [1.0, 0.0])


def test_a_constant_torque_that_turns_with_its_body_makes_the_stiffness_unsymmetric():
    b = sl.Builder("ball", gravity=(0.0, 0.0, 0.0)).body("bob", 1.0, inertia=(0.1, 0.1, 0.1))
    model = b.spherical("ball", "world", "bob", stiffness=4.0).build()
    assert sl.Dynamics(model).modes(model.neutral()).is_conservative
    half = 0.2  # of the angle about z that a torque of 4 · 0.4 N m holds
    found = sl.Dynamics(model).modes([np.cos(half), 0.0, 0.0, np.sin(half)])
    close(found.tau, [0.0, 0.0, 1.6], 1e-9)
    assert not found.is_conservative
    assert not found.is_stable  # the follower torque feeds the motion across its axis


@pytest.mark.slow
def test_modes_are_computed_in_double_precision_for_robots_in_single_precision():
    a, _ = energy_method()
    q = four_bar_position("coupler", a)
    single, double = (sl.Dynamics(four_bar(), dtype=x).modes(q, np.zeros(3)) for x in ("float32", "float64"))
    assert np.array_equal(single.poles, double.poles)


@pytest.mark.slow
def test_a_gear_train_turns_as_one_and_an_open_switch_leaves_its_joints_alone():
    b = sl.Builder("gears").body("wheel", 1.0, inertia=(1.0, 1.0, 0.1)).body("other", 1.0, inertia=(1.0, 1.0, 0.4))
    b.revolute("a", "world", "wheel", "z", stiffness=30.0)
    b.revolute("b", "world", "other", "z", (1.0, 0.0, 0.0), actuated=False)
    model = b.build().with_coupling("b", "a", -2.0, name="gear", switchable=True)
    robot = sl.Dynamics(model)
    engaged, apart = robot.modes(np.zeros(2)), robot.modes(np.zeros(2), active_loops=[])
    close(engaged.angular_frequencies, [np.sqrt(30.0 / (0.1 + 4.0 * 0.4))], 1e-12)
    close(engaged.shapes[1] / engaged.shapes[0], [-2.0], 1e-12)
    close(apart.angular_frequencies, [0.0, np.sqrt(30.0 / 0.1)], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: sl.zoo.pendulum(3), four_bar])
def test_poles_are_those_of_the_linear_model(make):
    model = make()
    q = np.zeros(3) if not model.loops else four_bar_position("coupler", energy_method()[0])
    robot = sl.Dynamics(model.with_joint("*", damping=0.2))
    found = robot.modes(q, np.zeros(3))
    A = robot.linearize(q, np.zeros(3), np.zeros(3)).A
    same_poles(found.poles, np.linalg.eigvals(A), 1e-11)


def test_what_is_too_slow_beside_the_fastest_mode_is_rigid_and_the_table_says_how_slow_that_is():
    found = carts([1.0, 1e8, 1.0], [1.0, 0.1, 1e3]).modes(np.zeros(3))  # √(1 / 2001) rad/s beside 3e4 rad/s
    assert found.kinds == ("rigid", "oscillation", "oscillation")
    assert 0.0223 < found.resolution < 0.05
    assert "rigid: slower than 3.3e-02 rad/s" in str(found)


def test_friction_and_contacts_are_noted_as_left_out():
    model = sl.zoo.pendulum(1).with_joint("hinge1", friction=0.3)
    assert "Coulomb friction" in str(sl.Dynamics(model).modes([0.0]))


def test_a_mechanism_without_motion_has_no_modes():
    found = sl.Dynamics(sl.zoo.pendulum(1).with_joint("hinge1", driven=True)).modes([0.0])
    assert len(found) == 0
    assert "0 modes" in str(found)


# ---- text and pictures


def test_the_table_lists_frequency_damping_kind_and_shape():
    lines = str(sl.Dynamics(sl.zoo.pendulum(2)).modes([0.0, 0.0])).splitlines()
    assert lines[0] == "pendulum2: 2 modes of 2 DoF (hinge1, hinge2)"
    assert lines[1].split() == ["mode", "[Hz]", "[rad/s]", "damping", "kind", "shape"]
    assert lines[2].split()[:6] == ["0", "0.426553", "2.68011", "0", "oscillation", "hinge1"]
    assert lines[-1].startswith("acceleration left at the equilibrium")


def test_a_motion_keeps_the_loops_closed_and_a_page_shows_it(tmp_path):
    a, _ = energy_method()
    robot = sl.Dynamics(four_bar())
    found = robot.modes(four_bar_position("coupler", a), np.zeros(3))
    phases, q = found.motion(0, samples=40)
    assert (phases.shape, q.shape) == ((40,), (40, 3))
    assert np.abs(robot.closure_error(q)).max() < 1e-11
    assert np.abs(q - q[0]).max() == pytest.approx(0.3, rel=0.2)
    page = found.page(tmp_path / "modes.html").read_text(encoding="utf-8")
    assert '"modes":[{' in page
    assert "oscillation" in page
    assert found.show().html
    with pytest.raises(InputError, match="expected a number from 0 to 0"):
        found.motion(1)
