"""One linkage cut at two joints must move alike: what is said of a joint in the tree can be said of it as a loop."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError
from spanloop.loops.known import known_forces


def linkage(cut: str, driven: bool = False) -> sl.Model:
    """A planar four-bar of hinges a, b, c, d, cut at one of them."""
    b = sl.Builder("linkage")
    for name, length in (("crank", 0.4), ("coupler", 1.0), ("rocker", 0.8)):
        b.body(name, 1.0, (length / 2, 0.0, 0.0), (0.01, 0.1, 0.1))
    b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", "y", (0.4, 0.0, 0.0))
    b.revolute("c", "world", "rocker", "y", (0.9, 0.0, 0.0))
    b.revolute("d", "rocker", "coupler", "y", (0.8, 0.0, 0.0), child_position=(1.0, 0.0, 0.0))
    model = b.build(cut=[cut])
    return model.drive("d") if driven else model


def matching_states(cut_d: sl.Model, cut_b: sl.Model):
    """q and v of the linkage in both descriptions, and how the coordinates correspond."""
    first, second = sl.Dynamics(cut_d), sl.Dynamics(cut_b)
    q = first.assemble(np.array([-0.9, 0.8, -1.6]))
    v = first.project(q, np.array([1.0, 0.3, -0.5]))[1]
    names = [j.name for j in cut_b.joints]
    turn = q[0] + q[1] - q[2]  # of the coupler on the rocker
    rate = v[0] + v[1] - v[2]
    values = {"a": (q[0], v[0]), "c": (q[2], v[2]), "d": (turn, rate)}
    q2, v2 = (np.array([values[n][k] for n in names]) for k in (0, 1))
    assert np.abs(second.closure_error(q2)).max() < 1e-12
    return (first, q, v), (second, q2, v2), names


def test_a_driven_closure_moves_like_the_driven_joint_it_is():
    (first, q, v), (second, q2, v2), names = matching_states(linkage("d", driven=True), linkage("b", driven=True))
    alpha = 0.7
    tau2 = np.zeros(3)
    tau2[names.index("d")] = alpha
    a2 = second.forward_dynamics(q2, v2, tau2)
    a = first.forward_dynamics(q, v, np.zeros(3), given={"d": [alpha]})
    assert a[0] + a[1] - a[2] == pytest.approx(alpha, abs=1e-12)
    assert a[0] == pytest.approx(a2[names.index("a")], rel=1e-11)
    dense = sl.Dynamics(first.model, method="dense").forward_dynamics(q, v, np.zeros(3), given={"d": [alpha]})
    np.testing.assert_allclose(dense, a, rtol=1e-10)


def test_a_known_force_in_a_closure_is_the_torque_of_that_joint():
    (first, q, v), (second, q2, v2), names = matching_states(linkage("d"), linkage("b"))
    tau2 = np.zeros(3)
    tau2[names.index("d")] = 1.3
    a2 = second.forward_dynamics(q2, v2, tau2)
    a = first.forward_dynamics(q, v, np.zeros(3), known={"d": [1.3]})
    assert a[0] == pytest.approx(a2[names.index("a")], rel=1e-11)


def test_names_of_driven_and_known_loops_are_checked():
    robot = sl.Dynamics(linkage("d", driven=True))
    q = robot.assemble(np.array([-0.9, 0.8, -1.6]))
    z = np.zeros(3)
    with pytest.raises(InputError) as said:
        robot.forward_dynamics(q, z, z, given={"D": [1.0]})
    assert str(said.value) == "forward_dynamics: given names 'D', which is not a driven loop; there are 'd'"
    with pytest.raises(InputError) as said:
        robot.forward_dynamics(q, z, z, known={"d": [1.0, 2.0]})
    assert str(said.value) == "forward_dynamics: the known force of 'd' has shape (2,); expected (..., 1)"


def test_a_gear_moves_like_the_two_joints_it_couples():
    """Two flywheels on a gear of ratio −2: one freedom with the inertia I₁ + 4 I₂ (rates 1 and −2)."""
    b = sl.Builder("gear").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.3, 0.3, 0.5))
    b.revolute("p", "world", "one", "z").revolute("q", "world", "two", "z", (1.0, 0.0, 0.0))
    b.couple("gear", "q", "p", -2.0, 0.0)
    for method in ("elimination", "dense"):
        a = sl.Dynamics(b.build(), method=method).forward_dynamics(np.zeros(2), np.zeros(2), [0.4, 0.1])
        np.testing.assert_allclose(a, (0.4 - 2 * 0.1) / (0.3 + 4 * 0.5) * np.array([1.0, -2.0]), rtol=1e-13)


def test_a_known_force_along_a_universal_closure_does_the_power_of_its_rates():
    """The force h on the two rates does the power h · rate, whatever the state: Jacobians of the two bodies say so."""
    b = sl.Builder("pair")
    for name in ("one", "two"):
        b.body(name, 1.0, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02)).spherical(name + "_ball", "world", name)
    model = b.build().close("one", "two", sl.joints.Universal(axis="x", second_axis=(0.0, 0.6, 0.8)))
    q, h = np.tile((1.0, 0.0, 0.0, 0.0), 2), np.array([0.7, -0.4])
    robot = sl.Dynamics(model)
    pushed = known_forces(robot, q, {"one_two": h}, {})
    w = np.array([0.3, -0.2, 0.5])
    first, second = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.6, 0.8])
    for rates in ((1.0, 0.0), (0.0, 1.0)):
        relative = rates[0] * first + rates[1] * second
        power = pushed["one"][:3] @ w + pushed["two"][:3] @ (w + relative)
        assert power == pytest.approx(h @ rates, abs=1e-12)
