"""Linear models agree with closed forms, and with differences of closed states; the choice of DoF does not matter."""

from __future__ import annotations

import numpy as np
import pytest
from linear_mechanisms import cart_pole, slider

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, Reason, StateError, UnsupportedError

G = 9.81


def test_a_cart_pole_is_the_textbook_matrix():
    linear = sl.Dynamics(cart_pole(0.1)).linearize([0.0, 0.0])
    M, m, l, inertia = 2.0, 0.5, 0.4, 0.03
    mass = np.array([[M + m, m * l], [m * l, inertia + m * l * l]])
    A = np.block(
        [
            [np.zeros((2, 2)), np.eye(2)],
            [np.linalg.solve(mass, np.hstack([np.diag([0.0, m * G * l]), np.diag([0.0, -0.1])]))],
        ]
    )
    np.testing.assert_allclose(linear.A, A, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(linear.B[:, 0], [0.0, 0.0, *np.linalg.solve(mass, [1.0, 0.0])], rtol=1e-13)
    np.testing.assert_array_equal(linear.C, np.eye(4))
    assert linear.states == ("rail", "hinge", "rail.v", "hinge.v")
    assert linear.state_units == ("m", "rad", "m/s", "rad/s")
    assert linear.inputs == ("rail",)
    assert linear.input_units == ("N",)
    assert linear.point.is_equilibrium
    np.testing.assert_allclose(linear.mass, mass, rtol=1e-14)


def test_a_mass_on_a_spring_has_its_frequency_and_damping():
    linear = sl.Dynamics(slider(2.0, 50.0, 4.0)).linearize([0.0])
    np.testing.assert_allclose(linear.poles, [-1.0 - 1j * np.sqrt(24.0), -1.0 + 1j * np.sqrt(24.0)], rtol=1e-12)
    response = linear.frequency_response([0.0, 3.0])[:, 0, 0]
    np.testing.assert_allclose(response, [1 / 50, 1 / (50 - 2 * 9 + 12j)], rtol=1e-12)


def test_a_double_pendulum_has_its_two_frequencies():
    model = zoo.pendulum(2).without_losses()
    robot = sl.Dynamics(model)
    linear = robot.linearize([0.0, 0.0])
    M = robot.mass_matrix([0.0, 0.0])
    K = -M @ linear.A[2:, :2]
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    np.testing.assert_allclose(
        sorted(linear.poles.imag)[2:], np.sort(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)))), rtol=1e-10
    )


# ---- against differences of closed states


def displaced(robot, q, v, dofs, x):
    """The closed state that x (2 n) in displacements and rates of the independent DoF leads to."""
    n, dependent = len(dofs), [k for k in range(robot.model.nv) if k not in dofs]
    there = robot.integrate(q, robot.velocity_map(q, dofs) @ x[:n])
    for _ in range(4 if dependent else 0):
        delta = np.zeros(robot.model.nv)
        J = robot.closure_jacobian(there)[:, dependent]
        delta[dependent] = -np.linalg.lstsq(J, robot.closure_error(there), rcond=1e-10)[0]
        there = robot.integrate(there, delta)
    return there, robot.complete_velocity(there, v[list(dofs)] + x[n:], dofs)


def differences(function, n, step=2e-3):
    """Derivatives (size, n) by central differences of sixth order."""
    columns = []
    for unit in np.eye(n):
        pairs = [function(k * step * unit) - function(-k * step * unit) for k in (1, 2, 3)]
        columns.append((45 * pairs[0] - 9 * pairs[1] + pairs[2]) / (60 * step))
    return np.stack(columns, axis=-1)


def moving(model, q, seed=3):
    robot = sl.Dynamics(model)
    random = np.random.default_rng(seed)
    dofs = robot.independent_coordinates(q)
    v = robot.complete_velocity(q, 0.5 * random.normal(size=len(dofs)), dofs)
    return robot, np.asarray(q), v, 0.3 * random.normal(size=model.nv), dofs


CASES = {
    "four_bar": (zoo.four_bar, zoo.four_bar_start),
    "five_bar": (zoo.five_bar, zoo.five_bar_start),
    "stewart": (zoo.stewart, zoo.stewart_start),
    "arms": (lambda: zoo.arms_with_object(2), lambda: zoo.arms_with_object_start(2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_accelerations_change_as_along_closed_states(case):
    model, start = CASES[case]
    robot, q, v, tau, dofs = moving(model(), start())
    linear = robot.linearize(q, v, tau, dofs=dofs, inputs=list(robot.model.actuated)[:2])
    n, i = len(dofs), list(dofs.dofs)

    def accelerations(x):
        return robot.forward_dynamics(*displaced(robot, q, v, dofs.dofs, x), tau)[i]

    found = differences(accelerations, 2 * n)
    np.testing.assert_allclose(linear.A[n:], found, rtol=1e-9, atol=1e-9 * np.abs(found).max())
    np.testing.assert_allclose(linear.drift, [*v[i], *robot.forward_dynamics(q, v, tau)[i]], rtol=1e-12)


@pytest.mark.slow
def test_outputs_change_as_along_closed_states():
    robot, q, v, tau, dofs = moving(zoo.five_bar(), zoo.five_bar_start())
    body = robot.model.bodies[-1].name
    passive = next(j.name for j in robot.model.joints if j.name not in dofs.names)

    def own(q, v):
        return np.sin(q[0]) * v[1] + q[3] ** 2

    names = [passive, f"{passive}.v", f"{passive}.a", f"{body}.x", f"{body}.velocity", f"{body}.angular_velocity.y",
             f"{body}.acceleration", "center_of_mass.z", own]  # fmt: skip
    linear = robot.linearize(q, v, tau, dofs=dofs, outputs=names)
    k = robot.model.v_slice(passive).start

    def values(x):
        there, rates = displaced(robot, q, v, dofs.dofs, x)
        a = robot.forward_dynamics(there, rates, tau)
        pose, twist = robot.pose(there, body), robot.frame_velocity(there, rates, body)
        pushed = robot.frame_acceleration(there, rates, a, body)
        return np.array([there[k], rates[k], a[k], pose[0, 3], *twist[3:], twist[1], *pushed[3:],
                         robot.center_of_mass(there)[2], own(there, rates)])  # fmt: skip

    np.testing.assert_allclose(linear.C, differences(values, 2 * len(dofs)), rtol=1e-8, atol=1e-9)
    assert linear.outputs[-1] == "own"
    assert linear.outputs[4:7] == tuple(f"{body}.velocity.{x}" for x in "xyz")
    pushed = robot.forward_dynamics(q, v, tau + np.eye(4)[robot.model.v_slice(linear.inputs[0]).start])
    np.testing.assert_allclose(linear.D[2, 0], (pushed - robot.forward_dynamics(q, v, tau))[k], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "wanted"),
    [("four_bar", ["force.x", "force.z", "torque.y"]), ("stewart", ["force"]), ("arms", ["torque", "force"])],
)
def test_forces_of_loops_change_as_along_closed_states(case, wanted):
    model, start = CASES[case]
    robot, q, v, tau, dofs = moving(model(), start())
    loop, body = robot.model.loops[0].name, robot.model.bodies[-1].name
    load, joint = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0]), robot.model.actuated[0]
    inputs, outputs = [joint, f"{body}.force.x"], [f"{loop}.{x}" for x in wanted]
    linear = robot.linearize(q, v, tau, dofs=dofs, inputs=inputs, outputs=outputs, forces={body: load})
    places = [3 * ("torque", "force").index(x.split(".")[-2]) + "xyz".index(x[-1]) for x in linear.outputs]

    def forces(state, torques=tau, push=load):
        return robot.solve(*state, torques, forces={body: push}).loop_forces[loop][places]

    found = differences(lambda x: forces(displaced(robot, q, v, dofs.dofs, x)), 2 * len(dofs))
    np.testing.assert_allclose(linear.C, found, rtol=1e-8, atol=1e-10 * np.abs(found).max())
    unit = np.eye(robot.model.nv)[robot.model.v_slice(joint).start]
    np.testing.assert_allclose(linear.D[:, 0], forces((q, v), tau + unit) - forces((q, v)), atol=1e-10)
    np.testing.assert_allclose(linear.D[:, 1], forces((q, v), tau, load + np.eye(6)[3]) - forces((q, v)), atol=1e-10)


@pytest.mark.slow
def test_forces_that_redundant_constraints_leave_open_are_refused():
    robot, q = sl.Dynamics(zoo.four_bar()), zoo.four_bar_start()
    with pytest.raises(
        InputError, match=r"torque.x of loop 'closing' is not unique.*Determined: torque.y, force.x, force.z"
    ):
        robot.linearize(q, outputs="closing.torque")


@pytest.mark.slow
def test_loads_at_frames_are_inputs():
    robot, q, v, tau, _ = moving(zoo.five_bar(), zoo.five_bar_start())
    body = robot.model.bodies[-1].name
    linear = robot.linearize(q, v, tau, inputs=[f"{body}.force", f"{body}.torque.y"])
    assert linear.inputs == (f"{body}.force.x", f"{body}.force.y", f"{body}.force.z", f"{body}.torque.y")
    dofs, base = robot.independent_coordinates(), robot.forward_dynamics(q, v, tau)
    for column, load in zip(linear.B[len(dofs) :].T, np.eye(6)[[3, 4, 5, 1]], strict=True):
        made = robot.forward_dynamics(q, v, tau, forces={body: load}) - base
        np.testing.assert_allclose(column, made[list(dofs.dofs)], atol=1e-11)


@pytest.mark.parametrize("name", sorted(set(sl.joints.KINDS) - {"general", "fixed"}))
def test_displacements_from_a_motion_change_by_the_bracket(name):
    kind, random = sl.joints.KINDS[name](), np.random.default_rng(5)
    if not kind.carries:
        pytest.skip("it closes loops only")
    v, delta = random.normal(size=(2, kind.nv))
    q = kind.plus(kind.neutral(), random.normal(size=kind.nv))

    def displacement(t, size):
        return np.array(kind.minus(kind.plus(kind.plus(q, size * delta), t * v), kind.plus(q, t * v)))

    h, e = 1e-3, 1e-4
    rate = sum(s * w * displacement(s * h, w * e) for s in (-1, 1) for w in (-1, 1)) / (4 * h * e)
    np.testing.assert_allclose(rate, -np.array(kind.bracket(v, delta), dtype=float), atol=1e-5)


@pytest.mark.slow
def test_about_a_motion_displacements_of_quaternions_turn_with_it():
    """The platform's six DoF as independent ones: rates of displacements between two motions."""
    robot, q, _, tau, _ = moving(zoo.stewart(), zoo.stewart_start())
    dofs = list(range(6))
    v = robot.complete_velocity(q, np.array([0.7, -0.4, 0.5, 0.1, -0.2, 0.3]), dofs)
    linear = robot.linearize(q, v, tau, dofs=dofs)

    def rate(x):
        (there, rates), h = displaced(robot, q, v, dofs, x), 1e-3
        apart = [robot.difference(robot.integrate(q, t * v), robot.integrate(there, t * rates))[:6] for t in (-h, h)]
        return (apart[1] - apart[0]) / (2.0 * h)

    np.testing.assert_allclose(linear.A[:6], differences(rate, 12), atol=2e-6)
    assert np.abs(linear.A[:6, :6]).max() > 0.5


def test_a_spinning_body_is_eulers_equation_about_its_spin():
    """About spin about a principal axis, ω̇ = −I⁻¹ (ω × I ω): the intermediate axis is unstable."""
    inertia = np.array([0.02, 0.03, 0.04])
    body = sl.Builder("top").body("top", 1.0, inertia=list(inertia)).free("root", "world", "top").build()
    robot = sl.Dynamics(body.with_gravity((0, 0, 0)))
    spin = 3.0
    linear = robot.linearize(body.neutral(), [0, spin, 0, 0, 0, 0], inputs=[])
    a = spin * np.sqrt((inertia[1] - inertia[0]) * (inertia[2] - inertia[1]) / (inertia[0] * inertia[2]))
    assert np.abs(linear.poles - a).min() < 1e-9
    np.testing.assert_allclose(linear.A[:3, :3], np.cross(np.eye(3), [0, spin, 0]).T, atol=1e-12)


# ---- coordinates and batches


@pytest.mark.parametrize(("case", "other"), [("five_bar", ("elbow1", "elbow2")), ("four_bar", ("rocker_hinge",))])
def test_the_choice_of_dofs_does_not_change_the_response(case, other):
    model, start = CASES[case]
    robot, q = sl.Dynamics(model()), start()
    body = robot.model.bodies[-1].name
    options = {"outputs": [f"{body}.x", f"{body}.velocity.z"]}
    first = robot.linearize(q, **options)
    names = [j.name for j in robot.model.joints]
    other = [x for x in other if x in names] or names[-len(first.states) // 2 :]
    second = robot.linearize(q, dofs=other, **options)
    assert first.states != second.states
    omega = [0.0, 0.3, 2.0, 30.0]
    np.testing.assert_allclose(first.frequency_response(omega), second.frequency_response(omega), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_a_stewart_platform_responds_alike_in_legs_and_in_its_own_dofs():
    model = zoo.stewart().with_joint(*zoo.stewart().actuated, stiffness=3000.0, damping=40.0)
    robot, q = sl.Dynamics(model), zoo.stewart_start()
    options = {"outputs": ["platform.position", "platform.angular_velocity.x", "slide1.a"]}
    legs, platform = robot.linearize(q, **options), robot.linearize(q, dofs="floating", **options)
    assert platform.states[0] == "floating[0]"
    omega = [0.0, 0.5, 5.0, 50.0]
    np.testing.assert_allclose(
        legs.frequency_response(omega), platform.frequency_response(omega), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(np.sort_complex(legs.poles), np.sort_complex(platform.poles), rtol=1e-9)
    K, other = legs.lqr().K, platform.lqr().K
    x = 1e-2 * np.arange(6)  # the same gains, in other coordinates
    moved = robot.velocity_map(q, "floating")[list(legs.point.dofs)] @ x
    np.testing.assert_allclose(K[:, :6] @ moved, other[:, :6] @ x, rtol=1e-7)


def test_batches_are_their_operating_points_and_a_bad_one_is_nan():
    robot, q = sl.Dynamics(zoo.four_bar()), np.asarray(zoo.four_bar_start())
    wrong = q + (0.1, 0.0, 0.0)
    with pytest.warns(sl.SpanloopWarning, match="1 of 2 states") as seen:
        both = robot.linearize(np.stack([q, wrong]), outputs=["rocker_hinge.a", "coupler.x"])
    assert len(seen) == 1
    one = robot.linearize(q, outputs=["rocker_hinge.a", "coupler.x"])
    for part in ("A", "B", "C", "D", "drift", "mass"):
        np.testing.assert_allclose(getattr(both[0], part), getattr(one, part), rtol=1e-13, atol=1e-15)
        assert np.isnan(getattr(both[1], part)).all()
    assert np.isnan(both.poles[1]).all()
    assert len(both) == 2
    with pytest.raises(StateError, match="open"):
        robot.linearize(wrong)
    with pytest.raises(InputError, match=r"linear\[0\].lqr"):
        both.lqr()


# ---- operating points


@pytest.mark.parametrize(
    "case", ["four_bar", "five_bar", *(pytest.param(x, marks=pytest.mark.slow) for x in ("stewart", "arms"))]
)
def test_torques_hold_the_mechanism_by_default(case):
    model, start = CASES[case]
    robot, q = sl.Dynamics(model()), start()
    linear = robot.linearize(q)
    np.testing.assert_allclose(linear.point.tau, robot.static_torques(q), rtol=1e-7, atol=1e-9)
    assert linear.point.is_equilibrium
    assert np.abs(linear.point.a).max() < 1e-9


@pytest.mark.slow
def test_joints_that_are_no_inputs_keep_their_holding_torques():
    robot, q = sl.Dynamics(zoo.puma()), np.array([0.1, -0.5, 0.4, 0.3, 0.6, -0.2])
    linear = robot.linearize(q, inputs=["joint2"])
    np.testing.assert_allclose(linear.point.tau, robot.static_torques(q), atol=1e-9)
    assert linear.point.is_equilibrium
    both = robot.linearize(q, [np.zeros(6), np.ones(6)])
    np.testing.assert_array_equal(both.point.tau[1], 0.0)
    np.testing.assert_array_equal(both.point.tau[0], linear.point.tau)
    np.testing.assert_array_equal(both.point.is_equilibrium, [True, False])


def test_single_precision_finds_the_same_model():
    q = zoo.four_bar_start()
    linear = sl.Dynamics(zoo.four_bar(), dtype="float32").linearize(q)
    assert linear.point.is_equilibrium
    np.testing.assert_array_equal(linear.A, sl.Dynamics(zoo.four_bar()).linearize(q).A)


def test_the_input_of_a_driven_joint_is_its_acceleration():
    builder = sl.Builder("driven").body("cart", 2.0, inertia=[0.1] * 3)
    builder = builder.prismatic("rail", "world", "cart", axis="x", driven=True)
    builder = builder.body("pole", 0.5, (0.0, 0.0, 0.4), inertia=[0.03, 0.03, 1e-4])
    linear = sl.Dynamics(builder.revolute("hinge", "cart", "pole", axis="y", actuated=False).build()).linearize(
        [0.0, 0.0]
    )
    assert linear.input_units == ("m/s²",)
    np.testing.assert_allclose(linear.B[2:, 0], [1.0, -0.5 * 0.4 / (0.03 + 0.5 * 0.16)], rtol=1e-12)


def test_a_state_that_no_torque_holds_is_printed_as_such():
    linear = sl.Dynamics(cart_pole()).linearize([0.0, 0.3])
    assert not linear.point.is_equilibrium
    assert "about rest, no equilibrium: accelerations up to" in str(linear)
    assert np.abs(linear.drift[2:]).max() > 1.0


def test_an_equilibrium_is_what_modes_take_for_one():
    robot = sl.Dynamics(cart_pole())
    assert robot.linearize([0.0, 1e-7]).point.is_equilibrium
    assert len(robot.modes([0.0, 1e-7])) == 2
    assert not robot.linearize([0.0, 1e-3]).point.is_equilibrium
    near = robot.linearize([[0.0, 1e-3], [0.0, 0.3], [0.0, np.pi]], tolerance=0.01)
    np.testing.assert_array_equal(near.point.is_equilibrium, [True, False, True])
    with pytest.raises(InputError, match="tolerance is -1"):
        robot.linearize([0.0, 0.0], tolerance=-1)


def test_loads_without_gravity_and_stiffness_are_held_to_rounding():
    model = cart_pole().with_gravity([0.0, 0.0, 0.0])
    linear = sl.Dynamics(model).linearize([0.0, 0.0], forces={"cart": [0, 0, 0, 0.1, 0, 0]})
    assert linear.point.is_equilibrium
    assert not sl.Dynamics(model).linearize([0.0, 0.0], tau=[1e-3, 0.0]).point.is_equilibrium


def test_a_singular_configuration_is_named_as_by_modes():
    robot = sl.Dynamics(zoo.four_bar(ground=1.0, crank=0.4, coupler=1.0, rocker=0.4))
    with pytest.raises(StateError) as caught:
        robot.linearize(np.zeros(3))
    assert caught.value.reason is Reason.SINGULAR_CLOSURE


def test_parts_of_a_batch_are_chosen_along_its_axes_alone():
    batch = sl.Dynamics(cart_pole()).linearize(np.zeros((3, 2)))
    for wrong in (7, (0, 1), "x"):
        with pytest.raises(InputError, match="no such part of the batch"):
            batch[wrong]
    assert batch[..., 0].A.shape == (4, 4)
    assert batch[[0, 2]].point.q.shape == (2, 2)


def test_names_that_do_not_exist_are_refused_with_the_nearest():
    robot = sl.Dynamics(cart_pole())
    with pytest.raises(InputError, match="inputs is 3; expected names"):
        robot.linearize([0.0, 0.0], inputs=3)
    with pytest.raises(InputError, match="outputs is 3; expected names"):
        robot.linearize([0.0, 0.0], outputs=3)
    with pytest.raises(InputError, match=r"no input 'rial'.*'rail'"):
        robot.linearize([0.0, 0.0], inputs="rial")
    with pytest.raises(InputError, match=r"no output 'pole.posit'"):
        robot.linearize([0.0, 0.0], outputs="pole.posit")
    with pytest.raises(InputError, match="twice"):
        robot.linearize([0.0, 0.0], inputs=["rail", "rail"])
    with pytest.raises(InputError, match="outputs name 'rail' twice"):
        robot.linearize([0.0, 0.0], outputs=["rail", "rail"])
    with pytest.raises(InputError, match=r"does not take \(q, v\)"):
        robot.linearize([0.0, 0.0], outputs=lambda q: q[0])
    with pytest.raises(InputError, match="cannot be differentiated: `if` on a traced condition"):
        robot.linearize([0.0, 0.0], outputs=lambda q, v: q[0] if q[0] > 0.0 else 0.0)
    with pytest.raises(InputError, match="not finite"):
        robot.linearize([0.0, 0.0], outputs={"root": lambda q, v: np.sqrt(q[0])})


def test_a_general_joint_in_motion_is_refused():
    screw = sl.joints.General(motion=((0, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0)))
    model = sl.Builder("odd").body("body", 1.0, inertia=[1.0, 2.0, 2.5]).joint("odd", screw, "world", "body").build()
    with pytest.raises(UnsupportedError, match="general joint moves"):
        sl.Dynamics(model).linearize(model.neutral(), [1.0, 0.0])
