"""Torques are linear in the inertial parameters of the bodies: robot.regressor, and the parameters of a model."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import RANDOM, ZOO, batch, model_of, states
from pinocchio_peer import Peer
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, ModelError

KINDS = [name for name in ZOO if name.startswith("chain_")]
# of ours m hx hy hz xx xy xz yy yz zz, of Pinocchio's m hx hy hz xx xy yy xz yz zz
ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)


def without_losses(model):
    """Torques of inertia and weight alone."""
    values = model.parameters()
    losses = {n: 0.0 for n in values.names if any(x in n for x in (".armature", ".damping", ".stiffness"))}
    return model.with_parameters(values.changed(losses))


@pytest.mark.parametrize("name", ["puma", "quadruped", "star", *KINDS, *RANDOM[:12]])
def test_the_regressor_times_the_parameters_are_the_torques(name):
    """Joints of every kind, bodies on fixed joints and on the world; losses and springs are left out."""
    model = model_of(name)
    robot, phi = sl.Dynamics(model, target="python"), model.inertial_parameters().values
    for q, v, a in states(model, 2, seed=3):
        Y = robot.regressor(q, v, a)
        expected = sl.Dynamics(without_losses(model), target="python").inverse_dynamics(q, v, a)
        assert Y.shape == (model.nv, 10 * model.n_bodies)
        scale = np.abs(Y).max(axis=-1) @ np.ones(model.nv) * np.abs(phi).max() + 1.0
        np.testing.assert_allclose(Y @ phi, expected, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("name", ["puma", "stanford", "quadruped", "chain_spherical", "panda"])
def test_every_entry_is_pinocchios(name):
    """Columns of a moving body that carries no other; Pinocchio gathers bodies on fixed joints in one."""
    model = model_of(name).fuse()
    peer = Peer(model)
    for q, v, a in states(model, 2, seed=4):
        args = (peer.order.q_to(q), peer.order.v_to(v), peer.order.v_to(a))
        theirs = np.array(pin.computeJointTorqueRegressor(peer.model, peer.data, *args))
        theirs = np.stack([peer.order.v_from(column) for column in theirs.T], axis=1)
        numbers = [peer.place[body.name][0] - 1 for body in model.bodies]
        columns = np.array([10 * n + k for n in numbers for k in ORDER])
        Y = sl.Dynamics(model).regressor(q, v, a)
        np.testing.assert_allclose(Y, theirs[:, columns], rtol=0, atol=1e-12 * np.abs(theirs).max())


@pytest.mark.slow
def test_batches_single_precision_and_out_agree_with_one_state():
    """More than half of the entries are always zero: loops clear them, in every row and whatever `out` held."""
    model = zoo.chain(8)
    robot = sl.Dynamics(model)
    Q, V, A = batch(model, 13, seed=5)
    expected = np.stack([robot.regressor(*x) for x in zip(Q, V, A, strict=True)])
    out = np.full(expected.shape, 7.0)
    assert robot.regressor(Q, V, A, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    assert (out[expected == 0.0] == 0.0).all()
    single = np.full(expected.shape[1:], 7.0)
    robot.regressor(Q[0], V[0], A[0], out=single)
    assert (single == expected[0]).all()
    narrow = sl.Dynamics(model, dtype="float32").regressor(Q, V, A)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_a_state_without_answer_is_a_row_of_nan_with_one_warning():
    robot = sl.Dynamics(zoo.chain(1, "free"))
    Q, V, A = batch(robot.model, 5, seed=6)
    Q[2, :4] *= 2.0
    with pytest.warns(sl.SpanloopWarning, match="regressor"):
        Y = robot.regressor(Q, V, A)
    assert np.isnan(Y[2]).all()
    assert np.isfinite(Y[[0, 1, 3, 4]]).all()


def test_of_loops_it_is_that_of_the_spanning_tree_and_closed_motions_remove_the_loop_forces():
    robot, q = sl.Dynamics(zoo.four_bar()), zoo.four_bar_start()
    v = robot.complete_velocity(q, {"crank_hinge": 1.3})
    a = robot.complete_acceleration(q, v, {"crank_hinge": 0.4})
    phi, T = robot.model.inertial_parameters().values, robot.velocity_map(q)
    tau = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(T.T @ robot.regressor(q, v, a) @ phi, T.T @ tau, rtol=1e-11)


# ---- parameters of a model


@pytest.mark.parametrize("name", ["puma", "quadruped", *RANDOM[:6]])
def test_inertial_parameters_lead_back_to_the_model(name):
    model = model_of(name)
    phi = model.inertial_parameters()
    assert model.with_inertial_parameters(phi) == model
    again = model.with_inertial_parameters(1.25 * phi.values)
    for body, old in zip(again.bodies, model.bodies, strict=True):
        assert body.inertia.mass == pytest.approx(1.25 * old.inertia.mass)
        np.testing.assert_allclose(body.inertia.center, old.inertia.center, atol=1e-13)
        np.testing.assert_allclose(body.inertia.moments, 1.25 * np.array(old.inertia.moments), atol=1e-12)


def test_a_first_moment_moves_the_centre():
    model = zoo.pendulum(1)
    heavy = model.with_inertial_parameters({"rod1.mass": 2.0, "rod1.first_moment.y": 0.0})
    h = model.inertial_parameters().values[1:4]
    assert heavy.body("rod1").inertia.mass == 2.0
    np.testing.assert_allclose(heavy.body("rod1").inertia.center, (h * (1, 0, 1)) / 2.0)


def test_parameters_of_no_body_are_refused():
    model = zoo.puma()
    phi = model.inertial_parameters()
    with says(ModelError, "body 'link2': mass is 0 kg and its first moments are not zero"):
        model.with_inertial_parameters(phi.changed({"link2.mass": 0.0}))
    with pytest.raises(ModelError, match="link3"):
        model.with_inertial_parameters(phi.changed({"link3.origin_inertia.xx": -1.0}))
    with pytest.raises(InputError, match=r"\(60,\)"):
        model.with_inertial_parameters(np.ones(59))
    with says(InputError, "link2.mass"):
        model.with_inertial_parameters({"link2.mas": 1.0})
    with says(InputError, "'link1.first_moment.z' is nan"):
        model.with_inertial_parameters(np.where(np.arange(60) == 3, np.nan, 1.0))
    with pytest.raises(InputError, match="no number"):
        model.with_inertial_parameters(["heavy"] * 60)


def test_least_squares_find_the_payload_of_a_run():
    """As docs/gradients.md shows: the ten parameters of the last link from torques along a motion."""
    true, guess = zoo.puma().with_inertia("link6", mass=2.3, center=(0.02, -0.03, 0.1)), zoo.puma()
    robot = sl.Dynamics(true)
    t = np.linspace(0.0, 2.0, 200)[:, None]
    w = np.arange(1.0, 7.0)
    q, v, a = np.sin(w * t + w), w * np.cos(w * t + w), -(w**2) * np.sin(w * t + w)
    phi, own = guess.inertial_parameters(), slice(50, 60)
    Y = sl.Dynamics(guess).regressor(q, v, a)
    rest = sl.Dynamics(guess).inverse_dynamics(q, v, a) - Y[..., own] @ phi.values[own]
    found = np.linalg.lstsq(Y[..., own].reshape(-1, 10), (robot.inverse_dynamics(q, v, a) - rest).ravel(), rcond=None)[
        0
    ]
    np.testing.assert_allclose(found, true.inertial_parameters().values[own], atol=1e-10)
    values = phi.values.copy()
    values[own] = found
    np.testing.assert_allclose(
        sl.Dynamics(guess.with_inertial_parameters(values)).inverse_dynamics(q, v, a),
        robot.inverse_dynamics(q, v, a),
        atol=1e-9,
    )
