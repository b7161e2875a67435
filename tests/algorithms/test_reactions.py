"""Forces at every joint and loop: each body obeys Newton and Euler, and what is not determined is marked."""

from __future__ import annotations

import numpy as np
import pytest
from momentum import about_origin, rate_of_momentum

import spanloop as sl
from spanloop import zoo

CASES = {
    "puma": (zoo.puma(), None),
    "quadruped": (zoo.quadruped().without_losses(), None),
    "four_bar": (zoo.four_bar(), zoo.four_bar_start()),
    "stewart": (zoo.stewart(), zoo.stewart_start()),
    "arms": (zoo.arms_with_object(2), zoo.arms_with_object_start(2)),
    "leg": (zoo.linkage_leg().without_losses(), zoo.linkage_leg_start()),
}


def state(name):
    model, q = CASES[name]
    robot = sl.Dynamics(model)
    rng = np.random.default_rng(3)
    if q is None:
        q, v = model.random_state(3)
    else:
        v = robot.project(q, rng.normal(size=model.nv))[1]
    return model, robot, q, v, rng.normal(size=model.nv)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_body_obeys_newton_and_euler(name):
    """Its joint, what it carries, its loops and gravity against its inertia, about the world's origin.

    Accelerations of the centre of mass and angular momentum by Jacobians; 1e-11 of the largest force.
    """
    model, robot, q, v, tau = state(name)
    f, a = robot.reactions(q, v, tau), robot.forward_dynamics(q, v, tau)
    largest = max(np.abs(x).max() for x in f.values())
    net = {b.name: np.zeros(6) for b in model.bodies} | {"world": np.zeros(6)}
    for j in model.joints:
        wrench = about_origin(f[j.name], robot.pose(q, j.child)[:3, 3])
        net[j.child] += wrench
        net[j.parent] -= wrench
    for x in model.loops:
        pose = robot.pose(q, x.b)
        wrench = about_origin(f[x.name], pose[:3, 3] + pose[:3, :3] @ np.array(x.placement_b.position))
        net[x.b] += wrench
        net[x.a] -= wrench
    for b in model.bodies:
        np.testing.assert_allclose(net[b.name], rate_of_momentum(model, robot, b, q, v, a), atol=1e-11 * largest)


@pytest.mark.slow
def test_forces_that_redundant_rows_leave_open_are_marked():
    _, robot, q, v, tau = state("four_bar")
    f = robot.reactions(q, v, tau)
    assert not any(f.unique.values())  # every joint lies on the loop, whose hinge is overconstrained
    _, robot, q, v, tau = state("stewart")
    assert all(robot.reactions(q, v, tau).unique.values())


def test_forces_from_outside_load_the_joints():
    model, robot, q, v, tau = state("puma")
    push = {model.bodies[-1].name: np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])}
    f = robot.reactions(q, v, tau, forces=push)
    a = robot.forward_dynamics(q, v, tau, forces=push)
    body = model.bodies[-1]
    at = robot.pose(q, body.name)[:3, 3]
    total = about_origin(f[model.joints[-1].name], at) + about_origin(push[body.name], at)
    np.testing.assert_allclose(total, rate_of_momentum(model, robot, body, q, v, a), atol=1e-10)
