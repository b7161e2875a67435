"""The derivative of a frame's Jacobian by positions, beside Pinocchio and differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from extended import central, evaluate
from mechanisms import ZOO, frame_of, model_of, states
from pinocchio_peer import Peer
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, StateError

KINDS = [name for name in ZOO if name.startswith("chain_")]


def pinocchios(peer, q, body, reference):
    """Pinocchio's tensor in our order of rows and DoF; its array says C order, but its numbers are in Fortran's."""
    pin.computeJointJacobians(peer.model, peer.data, peer.order.q_to(q))
    pin.computeJointKinematicHessians(peer.model, peer.data)
    H = np.array(pin.getJointKinematicHessian(peer.model, peer.data, peer.place[body][0], reference))
    H = H.ravel().reshape(H.shape, order="F")
    order = np.argsort(peer.order.v_to(np.arange(H.shape[-1])))
    return np.concatenate((H[3:], H[:3]))[:, order][:, :, order]


@pytest.mark.parametrize(
    ("name", "axes"),
    [(name, axes) for name in ("puma", "stanford", "quadruped") for axes in ("world", "local")]
    + [("chain_spherical", "world")],
)
def test_it_is_pinocchios(name, axes):
    """In local axes of spherical joints inside a chain Pinocchio's tensor is not the difference of its Jacobians."""
    model = model_of(name)
    peer, body = Peer(model), model.bodies[-1].name
    reference = pin.LOCAL_WORLD_ALIGNED if axes == "world" else pin.LOCAL
    robot = sl.Dynamics(model)
    for q, _, _ in states(model, 2, seed=8):
        H = robot.kinematic_hessian(q, body, expressed_in="world" if axes == "world" else body)
        np.testing.assert_allclose(H, pinocchios(peer, q, body, reference), rtol=0, atol=1e-13 * np.abs(H).max())


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("axes", ["world", "local"])
def test_along_a_direction_it_is_the_difference_of_jacobians(name, axes):
    model = model_of(name)
    frame = frame_of(model)
    own = "world" if axes == "world" else frame
    plan = sl.compile(model, "jacobian", frame=frame, expressed_in=own, target="python").definition.plan
    moved = sl.compile(model, "integrate", target="python").definition.plan
    q, dq, _ = next(states(model, 1, seed=9))
    expected = central(lambda s: evaluate(plan, evaluate(moved, q, s * dq)), 1e-3).reshape(6, model.nv)
    H = sl.Dynamics(model, target="python").kinematic_hessian(q, frame, expressed_in=own)
    np.testing.assert_allclose(H @ dq, np.asarray(expected, float), rtol=0, atol=1e-11 * np.abs(H).max())


@pytest.mark.slow
def test_long_chains_take_a_direction_at_a_time_and_agree():
    """A frame that more than 24 DoF carry: no kernel of all entries."""
    model = zoo.chain(26)
    robot = sl.Dynamics(model)
    Q = np.array([q for q, _, _ in states(model, 3, seed=10)])
    v = np.random.default_rng(11).normal(size=model.nv)
    frame = frame_of(model)
    H = robot.kinematic_hessian(Q, frame, out=np.empty((3, 6, 26, 26)))
    np.testing.assert_allclose(H @ v @ v, robot.jacobian_bias(Q, v, frame), rtol=0, atol=1e-11)
    short = robot.kinematic_hessian(Q, model.bodies[3].name)
    assert (short[..., 4:] == 0.0).all()
    assert (short[..., 4:, :] == 0.0).all()


def test_what_is_wrong_is_said_in_its_name():
    robot = sl.Dynamics(zoo.chain(2, "free"))
    q = robot.model.neutral()
    body = robot.model.bodies[-1].name
    with says(InputError, "kinematic_hessian: q has shape (3,); expected (..., 14)"):
        robot.kinematic_hessian(np.zeros(3), body)
    with says(InputError, "kinematic_hessian: out has shape (6, 6); expected (6, 12, 12)"):
        robot.kinematic_hessian(q, body, out=np.zeros((6, 6)))
    with says(StateError, "kinematic_hessian: "):
        robot.kinematic_hessian(2.0 * q, body)
    with pytest.warns(sl.SpanloopWarning, match="kinematic_hessian"):
        found = robot.kinematic_hessian(np.stack([q, 2.0 * q]), body)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[0]).all()
