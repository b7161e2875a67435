"""Derivatives of mechanisms with flexible bodies, against differences of the dense reference and of other functions.

Differences are those of five points: with steps of 2e-4 they are right to some 1e-9 of the largest number.
"""

import numpy as np
import pytest
from flexible_reference import Reference

import spanloop as sl
from spanloop.errors import UnsupportedError

STEP = 2e-4
WEIGHTS = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


def arm(modes=1, **options):
    """A flexible boom on a hinge, and a rigid load on its tip; 5 DoF with modes={"y": 1}."""
    boom = sl.flexible.beam(
        1.0,
        E=7e9,
        density=2700.0,
        section=sl.flexible.rectangle(0.02, 0.01),
        modes=modes,
        damping=0.02,
        elements=4,
        **options,
    )
    b = sl.Builder("arm", gravity=(1.0, -2.0, -9.0))
    b.body("boom", flexible=boom).revolute("hinge", "world", "boom", "z", armature=0.01, damping=0.3)
    b.body("load", mass=0.3, inertia=(1e-3, 2e-3, 2.5e-3), center=(0.05, 0.01, -0.02))
    return b.revolute("wrist", "boom.tip", "load", "y").build()


def state(model, seed=4):
    """A position with slopes of some 0.05 rad, and rates and torques of the size of motions."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.0, 1.0, model.nv)
    stiff = np.concatenate([np.array(j.stiffness) for j in model.joints])
    modal = stiff > 0.0
    q[modal] *= 0.05 * np.sqrt(stiff[modal].min() / stiff[modal])
    v = rng.uniform(-1.0, 1.0, model.nv) * np.where(modal, 0.3, 1.0)
    return q, v, rng.uniform(-1.0, 1.0, model.nv)


def difference(function, x, step=STEP):
    """∂f/∂x (..., len(x))."""
    columns = []
    for k in range(len(x)):
        e = step * np.eye(len(x))[k]
        columns.append(sum(w * function(x + n * e) for n, w in WEIGHTS) / step)
    return np.stack(columns, axis=-1)


def close(found, wanted, bound):
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=bound * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize("modes", [{"y": 1}, {"y": 0, "z": 0, "torsion": 0}], ids=["one kernel", "by direction"])
def test_derivatives_of_inverse_dynamics_are_those_of_the_dense_equations(modes):
    model = arm(modes)
    robot, dense, (q, v, a) = sl.Dynamics(model), Reference(model), state(model)
    found = robot.inverse_dynamics_derivatives(q, v, a)
    close(found.dtau_dq, difference(lambda x: dense.mass_matrix(x) @ a + dense.bias(x, v), q), 1e-8)
    close(found.dtau_dv, difference(lambda x: dense.bias(q, x), v), 1e-8)
    close(found.dtau_da, dense.mass_matrix(q), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("modes", [{"y": 1}, {"y": 0, "z": 0, "torsion": 0}], ids=["one kernel", "by direction"])
def test_derivatives_of_forward_dynamics_are_those_of_the_dense_equations(modes):
    model = arm(modes)
    robot, dense, (q, v, tau) = sl.Dynamics(model), Reference(model), state(model)
    found = robot.derivatives(q, v, tau)

    def a(q, v):
        return np.linalg.solve(dense.mass_matrix(q), tau - dense.bias(q, v))

    close(found.da_dq, difference(lambda x: a(x, v), q), 1e-7)
    close(found.da_dv, difference(lambda x: a(q, x), v), 1e-7)
    close(found.da_dtau, np.linalg.inv(dense.mass_matrix(q)), 1e-10)


@pytest.mark.slow
def test_batches_outputs_and_forces_of_derivatives_agree_with_single_calls():
    model = arm()
    robot, n = sl.Dynamics(model), model.nv
    rows = [np.stack(x) for x in zip(*(state(model, seed) for seed in range(3)), strict=True)]
    out = np.zeros((3, n, 3 * n))
    found = robot.derivatives(*rows, out=out)
    assert np.shares_memory(found.da, out)
    for k in range(3):
        close(found.da[k], robot.derivatives(*(x[k] for x in rows)).da, 1e-12)
    push = {"load": np.array([0.1, -0.2, 0.3, 1.0, 2.0, -3.0]), "boom.tip": np.array([0.0, 0.1, 0.0, -1.0, 0.5, 0.2])}
    q, v, tau = (x[0] for x in rows)
    loaded = robot.derivatives(q, v, tau, forces=push)
    close(loaded.da_dq, difference(lambda x: robot.forward_dynamics(x, v, tau, forces=push), q), 1e-7)
    torques = robot.inverse_dynamics_derivatives(q, v, tau, forces=push)
    close(torques.dtau_dq, difference(lambda x: robot.inverse_dynamics(x, v, tau, forces=push), q), 1e-8)


@pytest.mark.slow
def test_the_row_of_a_driven_joint_is_its_own_acceleration():
    boom = sl.flexible.beam(
        1.0, E=7e9, density=2700.0, area=2e-4, I=1e-9, modes={"y": 2}, basis="cantilever", elements=6
    )
    b = sl.Builder("driven").body("boom", flexible=boom).revolute("hinge", "world", "boom", "z", driven=True)
    robot = sl.Dynamics(b.build())
    q, v, tau = state(robot.model)
    found = robot.derivatives(q, v, tau)
    np.testing.assert_array_equal(found.da[0], [0.0] * 6 + [1.0, 0.0, 0.0])
    close(found.da_dq, difference(lambda x: robot.forward_dynamics(x, v, tau), q), 1e-8)
    close(found.da_dtau[:, 0], difference(lambda x: robot.forward_dynamics(q, v, x), tau)[:, 0], 1e-9)


@pytest.mark.slow
def test_kinematic_hessian_of_a_node_is_the_derivative_of_its_jacobian():
    model = arm({"y": 1, "z": 0, "torsion": 0})
    robot, (q, v, _) = sl.Dynamics(model), state(model)
    for axes in ("world", "load"):
        found = robot.kinematic_hessian(q, "load", expressed_in=axes)
        close(found, difference(lambda x, axes=axes: robot.jacobian(x, "load", expressed_in=axes), q), 1e-9)
    H = robot.kinematic_hessian(q, "boom.tip")
    close(H @ v @ v, robot.jacobian_bias(q, v, "boom.tip"), 1e-12)


@pytest.mark.slow
def test_the_regressor_and_its_parameters_are_refused():
    model = arm({"y": 0})
    q, v, a = state(model)
    with pytest.raises(
        UnsupportedError, match=r"regressor by 'newton_euler' is for rigid bodies: body 'boom' of 'arm' bends"
    ):
        sl.Dynamics(model).regressor(q, v, a)
    with pytest.raises(UnsupportedError, match=r"body 'boom' is flexible; ten numbers do not describe"):
        model.inertial_parameters()


FUNCTIONS = {
    "forward_dynamics": {}, "inverse_dynamics": {}, "mass_matrix": {}, "mass_matrix_inverse": {}, "bias": {},
    "operational_inverse_inertia": {"frames": ("load",)}, "gravity_torques": {}, "reactions": {}, "poses": {},
    "pose": {"frame": "boom.tip"}, "jacobian": {"frame": "load"}, "jacobian_bias": {"frame": "load"},
    "frame_velocity": {"frame": "load"}, "frame_acceleration": {"frame": "boom.tip"},
    "frame_spatial_acceleration": {"frame": "load"}, "energy": {}, "momentum": {}, "center_of_mass": {},
    "center_of_mass_jacobian": {}, "centroidal_momentum_matrix": {}, "centroidal_momentum_bias": {},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_jvp_and_vjp_agree_with_each_other_and_with_differences(function):
    model = arm({"y": 0, "z": 0, "torsion": 0})
    check_products(sl.Dynamics(model), function, state(model), **FUNCTIONS[function])


def guided():
    """A flexible boom whose tip slides in a straight guide: a closed loop."""
    boom = sl.flexible.beam(1.0, E=7e9, density=2700.0, area=2e-4, I=1e-9, modes={"y": 1}, elements=4)
    b = sl.Builder("guided", gravity=(1.0, -9.0, 2.0)).body("boom", flexible=boom)
    b.revolute("hinge", "world", "boom", "z", armature=0.02).body("slider", 0.2, inertia=(1e-3, 1e-3, 1e-3))
    b.prismatic("guide", "world", "slider", "x", position=(1.0, 0.0, 0.0))
    return sl.Dynamics(b.loop("boom.tip", "slider", "revolute", name="pin").build())


CLOSED = ("forward_dynamics", "tree_inverse_dynamics", "closure_error", "closure_jacobian", "closure_bias",
          "position_correction", "velocity_correction", "impact")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("function", CLOSED)
def test_products_of_functions_of_closed_loops_agree(function):
    robot = guided()
    q, v, tau = state(robot.model)
    check_products(robot, function, (robot.assemble(0.1 * q), v, tau))


def check_products(robot, function, motion, **options):
    """The dot-product test, and directional derivatives against differences and against all derivatives."""
    rng, (q, v, tau) = np.random.default_rng(5), motion
    kernel = robot.kernel(function, **options)
    values = {"q": q, "v": v, "tau": tau, "a": tau}
    inputs = {name: values.get(name, 0.01 * rng.uniform(-1.0, 1.0, size)) for name, size in kernel.inputs}
    along = {name: rng.uniform(-1.0, 1.0, len(x)) for name, x in inputs.items()}
    weights = rng.uniform(-1.0, 1.0, kernel.shape)
    forward = robot.jvp(function, inputs, along, **options)
    backward = robot.vjp(function, inputs, weights, **options)
    one, other = (weights * forward).sum(), sum(float(backward[n] @ along[n]) for n in inputs)
    size = max(np.abs(weights * forward).sum(), 1e-12)
    assert abs(one - other) < 1e-11 * size
    x = [inputs[name] for name, _ in kernel.inputs]
    d = [along[name] for name, _ in kernel.inputs]
    wanted = difference(lambda s: kernel(*(y + s[0] * e for y, e in zip(x, d, strict=True))), np.zeros(1), 1e-4)[..., 0]
    close(forward, wanted, 1e-7)
    everything = robot.derivative(function, inputs, **options)
    close(sum(everything[n] @ along[n] for n in inputs), forward, 1e-11)


# ---- runs


def short_run(model, q, v, tau, parameters, integrator, step):
    run = sl.simulate(model, q, v, duration=0.02, step=step, integrator=integrator, tau=tau, parameters=parameters)
    return run.q[-1], run.v[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("integrator", "step"), [("rk4", 2e-4), ("implicit", 1e-3)])
def test_gradient_and_sensitivities_of_a_run_with_a_flexible_body(integrator, step):
    model = arm({"y": 1})
    q, v, tau = state(model)
    names = ("boom.modes.stiffness.0", "boom.modes.damping.1", "load.mass")
    parameters, weights = model.parameters(), np.random.default_rng(6).uniform(-1.0, 1.0, (2, model.nv))
    density = [f"boom.{x}" for x in ("mass", *(f"inertia.{ij}" for ij in ("xx", "xy", "xz", "yy", "yz", "zz")))]

    def loss(q, v, tau, values):
        end = short_run(model, q, v, tau, values, integrator, step)
        return sum(float(w @ x) for w, x in zip(weights, end, strict=True))

    options = {"duration": 0.02, "step": step, "integrator": integrator, "tau": tau, "parameters": parameters}
    found = sl.gradient(
        model, lambda q, v: weights[0] @ q + weights[1] @ v, q, v, wrt=("q", "v", "tau", "parameters"), **options
    )
    values = parameters.values
    close(found.q, difference(lambda x: loss(x, v, tau, values), q, 1e-5), 1e-7)
    close(found.v, difference(lambda x: loss(q, x, tau, values), v, 1e-3), 1e-7)
    close(found.tau, difference(lambda x: loss(q, v, x, values), tau, 1e-3), 1e-7)
    for group in (*([name] for name in names), density):
        own = np.isin(parameters.names, group)

        def scaled(x, own=own):
            return loss(q, v, tau, np.where(own, values * x[0], values))

        wanted = difference(scaled, np.ones(1), 1e-3)[0]
        assert found.parameters[own] @ values[own] == pytest.approx(wanted, rel=1e-6, abs=1e-10)
    columns = sl.sensitivities(model, q, v, wrt=("q", "v", "tau", *names), **options)
    along = weights[0] @ columns.dq[-1] + weights[1] @ columns.dv[-1]
    n = model.nv
    reverse = np.concatenate([found.q, found.v, found.tau, [found.parameter(name) for name in names]])
    assert len(along) == 3 * n + len(names)
    np.testing.assert_allclose(along, reverse, rtol=0.0, atol=1e-9 * np.abs(reverse).max())
