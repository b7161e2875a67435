"""Bodies on smooth guides, always in contact: accelerations and forces beside closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import StateError

G = 9.81
EXACT = 1e-12


def point(kind, mass: float) -> sl.Dynamics:
    """A mass at (x, z) that a closure of this kind holds in the world's frame."""
    b = sl.Builder("point").body("across").body("mass", mass)
    b.prismatic("x", "world", "across", "x").prismatic("z", "across", "mass", "z")
    return sl.Dynamics(b.loop("world", "mass", kind, name="guide").build())


@pytest.mark.parametrize("loose", [False, True])
def test_a_ladder_slides_down_a_smooth_wall(loose):
    """From rest at φ₀: φ'' = −3g cos φ / 2l, and the wall pushes with ¾ m g cos φ (3 sin φ − 2 sin φ₀)."""
    length, mass, first, phi = 2.0, 3.0, 1.2, 0.9
    b = sl.Builder("ladder").body("rod", mass, inertia=(0.01, *[mass * length**2 / 12] * 2))
    if loose:
        b.free("way", "world", "rod")
    else:
        b.body("across").body("up").prismatic("x", "world", "across", "x").prismatic("z", "across", "up", "z")
        b.revolute("turn", "up", "rod", "y")
    b.frame("foot", "rod", (length / 2, 0, 0)).frame("top", "rod", (-length / 2, 0, 0))
    b.loop("world", "foot", sl.joints.PointOnPlane("z"), name="floor")
    b.loop("world", "top", sl.joints.PointOnPlane("x"), name="wall")
    robot = sl.Dynamics(b.build())
    rate = -np.sqrt(3.0 * G / length * (np.sin(first) - np.sin(phi)))
    c, s = 0.5 * length * np.cos(phi), 0.5 * length * np.sin(phi)
    q, v = np.array([c, s, phi]), rate * np.array([-s, c, 1.0])
    if loose:
        turn = np.array([[np.cos(phi), 0.0, -np.sin(phi)], [0.0, 1.0, 0.0], [np.sin(phi), 0.0, np.cos(phi)]])
        q = np.array([np.cos(phi / 2), 0.0, np.sin(phi / 2), 0.0, c, 0.0, s])
        v = np.concatenate([[0.0, rate, 0.0], turn @ [v[0], 0.0, v[1]]])
    assert np.abs(robot.closure_error(q)).max() < EXACT
    assert np.abs(robot.closure_jacobian(q) @ v).max() < EXACT
    found = robot.solve(q, v, np.zeros(robot.model.nv))
    assert found.a[1 if loose else 2] == pytest.approx(-1.5 * G * np.cos(phi) / length, rel=EXACT)
    wall = 0.75 * mass * G * np.cos(phi) * (3.0 * np.sin(phi) - 2.0 * np.sin(first))
    assert found.rows[1] == pytest.approx(wall, rel=EXACT)
    assert found.rows[0] > 0.0


@pytest.mark.parametrize(("angle", "speed"), [(0.6, 1.5), (np.pi - 0.7, -2.0)])
def test_a_bead_slides_on_a_ball_and_a_ball_in_a_bowl(angle, speed):
    """At an angle from the top of a sphere of radius r: θ'' = g sin θ / r, and m (g cos θ − v²/r) pushes outward.

    A ball in a bowl, without friction, is the same below the centre, with r less its own radius: the bowl pushes
    inward, as a string does.
    """
    radius, mass = 0.8, 2.5
    robot = point(sl.joints.Distance(radius), mass)
    out, along = np.array([np.sin(angle), np.cos(angle)]), np.array([np.cos(angle), -np.sin(angle)])
    found = robot.solve(radius * out, speed * along, np.zeros(2))
    np.testing.assert_allclose(found.a, G * np.sin(angle) * along - speed**2 / radius * out, rtol=0, atol=20 * EXACT)
    assert found.rows[0] == pytest.approx(mass * (G * np.cos(angle) - speed**2 / radius), rel=EXACT)


@pytest.mark.parametrize("kind", [sl.joints.PointOnLine, sl.joints.PointOnPlane])
def test_a_bead_slides_down_a_wire_and_a_slope(kind):
    """At an inclination α the acceleration is g sin α, and the guide pushes with m g cos α."""
    alpha, mass = 0.4, 2.0
    down, normal = np.array([np.cos(alpha), -np.sin(alpha)]), np.array([np.sin(alpha), np.cos(alpha)])
    axis = down if kind is sl.joints.PointOnLine else normal
    robot = point(kind((axis[0], 0.0, axis[1])), mass)
    found = robot.solve(0.7 * down, 3.0 * down, np.zeros(2))
    np.testing.assert_allclose(found.a, G * np.sin(alpha) * down, rtol=0, atol=EXACT * G)
    push = found.loop_forces["guide"][3:]
    np.testing.assert_allclose(push[[0, 2]], mass * G * np.cos(alpha) * normal, rtol=0, atol=100 * EXACT)


def test_errors_of_lengths_say_which_side_a_point_is_on():
    """A string is slack where the error is negative; a bead is outside its ball where it is positive."""
    robot = point(sl.joints.Distance(0.8), 1.0)
    assert robot.closure_error([0.3, 0.4])[0] == pytest.approx(-0.3)
    assert robot.closure_error([0.6, 0.8])[0] == pytest.approx(0.2)


def test_a_string_without_a_direction_is_slack_or_open():
    """Where its two ends meet a rod has no direction: rows are finite, and a search for closed states starts there."""
    b = sl.Builder("point").body("across").body("mass", 1.0)
    b.prismatic("x", "world", "across", "x").prismatic("z", "across", "mass", "z")
    model = b.build()
    string = sl.Dynamics(model.with_loop("world", "mass", sl.joints.Distance(0.8), name="string", switchable=True))
    still = np.zeros(2)
    np.testing.assert_array_equal(string.forward_dynamics(still, still, still, active_loops=[]), [0.0, -G])
    rod = sl.Dynamics(model.with_loop("world", "mass", sl.joints.Distance(0.8), name="rod"))
    with says(StateError, "loop 'rod', between 'world' and 'mass', is open by 0.8 m"):
        rod.forward_dynamics(still, still, still)
    assert np.linalg.norm(rod.assemble(still)) == pytest.approx(0.8)
    assert "is open by 0.8 m" in str(rod.diagnose(still))
