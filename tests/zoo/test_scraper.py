"""Saha's carpet scraper and the flyball governor against mechanics written by hand."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.loops.closure_errors import rows_of

SPEED = 45.0 * 2.0 * pi / 60.0  # rad/s, of the crank [Saha, section 4.4]


def crossing(a, ra, b, rb, side):
    """Where two circles of the complex plane meet."""
    d = b - a
    x = (ra**2 - rb**2 + abs(d) ** 2) / (2 * abs(d))
    return a + (x + side * 1j * np.sqrt(ra**2 - x**2)) * d / abs(d)


def bars(angle, side):
    """Table 5 in the complex plane: (mass, moment about the mass centre, mass centre, direction) of every bar."""
    pin, post = 0.038 * np.exp(1j * angle), 0.038 + 0.410j
    middle = crossing(-0.089 + 0j, 0.115, pin, 0.115, 1)
    tip = 2 * middle - pin
    branch = crossing(post, 0.096, tip, 0.239, side)
    arm, rod = (branch - post) / 0.096, (tip - branch) / 0.239
    shoulder = post + 0.335 * arm
    corner = shoulder + 0.239 * rod
    beam = 0.239 * 0.335 / 0.096
    assert abs(tip - corner) == pytest.approx(0.239, abs=1e-12)  # the link closes the parallelogram
    ends = [  # start, end, length for the mass centre, mass, moment about the start
        (-0.089 + 0j, middle, 0.115, 3.0, 0.0133),
        (0j, pin, 0.038, 1.5, 7.258e-4),
        (post, shoulder, 0.335, 4.2, 0.157),
        (shoulder, shoulder + beam * rod, beam, 10.5, 2.449),
        (corner, tip, 0.239, 3.0, 0.057),
        (branch, tip, 0.239, 3.0, 0.057),
    ]
    out = [(m, i - m * (0.5 * l) ** 2, 0.5 * (a + b), (b - a) / abs(b - a)) for a, b, l, m, i in ends]
    return [*out, (5.0, 2.212e-2, middle, (middle - pin) / 0.115)]


def torque_by_hand(angle, side, h=1e-4):
    """At constant speed: ½ ω² d/dφ Σ (m |c'|² + I θ'²) + d/dφ Σ m g y, by differences of fourth order."""

    def derivative(f, x):
        return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)

    def inertia(x):
        total = 0.0
        for k, (m, i, _, u) in enumerate(bars(x, side)):
            c = derivative(lambda y, k=k: bars(y, side)[k][2], x)
            turn = derivative(lambda y, k=k: bars(y, side)[k][3], x) / u
            total += m * abs(c) ** 2 + i * turn.imag**2
        return total

    def height(x):
        return sum(m * 9.81 * c.imag for m, _, c, _ in bars(x, side))

    return 0.5 * SPEED**2 * derivative(inertia, angle) + derivative(height, angle)


@pytest.mark.parametrize(("assembly", "side"), [("left", 1), ("right", -1)])
def test_the_scrapers_torque_is_that_of_its_energy(assembly, side):
    """Differences of differences leave about 1e-6 of the torques, which are some tens of N m."""
    robot = sl.Dynamics(zoo.carpet_scraper())
    for angle in np.linspace(0.1, 6.2, 9):
        q = zoo.carpet_scraper_start(angle=angle, assembly=assembly)
        v = robot.complete_velocity(q, {"crank_hinge": SPEED})
        for by_subsystems in (False, True):
            tau = robot.inverse_dynamics(q, v, {"crank_hinge": 0.0}, by_subsystems=by_subsystems)
            assert tau[robot.model.v_slice("crank_hinge")][0] == pytest.approx(torque_by_hand(angle, side), abs=1e-4)


def test_the_scraper_has_the_subsystems_of_the_text():
    found = sl.Dynamics(zoo.carpet_scraper()).subsystems()
    assert [(p.name, p.joints, p.determinate) for p in found.parts] == [
        ("I", ("rocker_hinge", "coupler_hinge"), False),
        ("II", ("crank_hinge",), False),
        ("III", ("arm_hinge", "beam_hinge", "link_hinge", "rod_hinge"), True),
    ]
    assert [s.subsystems for s in found.stages] == [("III",), ("I",), ("II",)]
    assert [(len(s.rows), len(s.actuated)) for s in found.stages] == [(4, 0), (2, 0), (0, 1)]


def test_forces_of_its_pins_are_unique_in_the_plane():
    """Of each pin's rows those along x and y; moments and the force along z are shared as nobody can tell."""
    robot, q = sl.Dynamics(zoo.carpet_scraper()), zoo.carpet_scraper_start(angle=0.4)
    v = robot.complete_velocity(q, {"crank_hinge": SPEED})
    solutions = robot.solve(q, v, np.zeros(7)), robot.solve_inverse(q, v, {"crank_hinge": 0.0})
    for found in solutions:
        assert not any(found.unique.values())
        names = [row.name for row, alone in zip(rows_of(robot.model), found.unique_rows, strict=True) if alone]
        assert [name.partition(": ")[2] for name in names] == ["force along x", "force along y"] * 3


def test_the_pantograph_enlarges_the_straight_line():
    """The scraper moves 0.335/0.096 times as far as the coupler's tip, seen from the post."""
    robot = sl.Dynamics(zoo.carpet_scraper())
    post = np.array((0.038, 0.410))
    for assembly in ("left", "right"):
        for angle in np.linspace(0.0, 6.0, 7):
            q = zoo.carpet_scraper_start(angle=angle, assembly=assembly)
            tip, end = (robot.pose(q, name)[:2, 3] for name in ("coupler_tip", "scraper"))
            np.testing.assert_allclose(end - post, (tip - post) * 0.335 / 0.096, atol=1e-12)


@pytest.mark.parametrize("angle", [0.3, 0.7, 1.1])
def test_the_governor_balances_at_the_speed_of_its_energy(angle):
    """With arms at θ the sleeve needs no force where ½ ω² dI/dθ = dV/dθ; bars are rods, balls full spheres.

    A bar from radius r₀ to r₁ has m (r₀² + r₀ r₁ + r₁²)/3 about the spindle.
    """
    arm, ball, sleeve, edge, bar = 0.3, 1.0, 2.0, 0.04, 0.2
    robot = sl.Dynamics(zoo.flyball_governor(arm=arm, ball=ball, sleeve=sleeve))

    def inertia(t):
        r = edge + arm * sin(t)
        return 2 * (ball * r**2 + 2 * bar * (edge**2 + edge * r + r**2) / 3)

    def potential(t):
        drop = arm * cos(t)
        return -9.81 * (2 * ball * drop + 2 * bar * (0.5 * drop + 1.5 * drop) + sleeve * 2 * drop)

    h = 1e-5
    slope = [(f(angle + h) - f(angle - h)) / (2 * h) for f in (inertia, potential)]
    speed = np.sqrt(2 * slope[1] / slope[0])
    q = zoo.flyball_governor_start(angle=angle)
    v = robot.complete_velocity(q, {"spindle_hinge": speed, "sleeve_slide": 0.0})
    a = robot.forward_dynamics(q, v, np.zeros(robot.model.nv))
    np.testing.assert_allclose(a, 0.0, atol=1e-6)
    lift = robot.inverse_dynamics(
        q, 0 * v, {"spindle_hinge": 0.0, "sleeve_slide": 0.0}, actuated=["spindle_hinge", "sleeve_slide"]
    )[robot.model.v_slice("sleeve_slide")]
    assert lift[0] == pytest.approx(slope[1] / (2 * arm * sin(angle)), rel=1e-7)
