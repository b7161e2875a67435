"""Rods that twist: angle, and what tension does to it."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl

LEAF = sl.flexible.rectangle(0.3e-3, 0.02)


@pytest.mark.parametrize(("angle", "error"), [(0.05, 1e-6), (0.2, 3e-5), (0.5, 1.2e-3)])
def test_a_node_turns_in_proportion_to_the_torque(angle, error):
    """The angle is ML/GJ however large; the Cayley map follows it to the fifth order."""
    beam = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), modes={"torsion": 0})
    b = sl.Builder("bar", gravity=(0.0, 0.0, 0.0)).body("bar", flexible=beam).fixed("clamp", "world", "bar")
    robot = sl.Dynamics(b.build(), target="python")
    q = np.full(1, angle)  # one mode, of which the largest rotation is the tip's
    pose = robot.pose(q, "bar.tip")
    turned = np.arctan2(pose[2, 1], pose[1, 1])
    assert abs(turned / angle - 1.0) < error
    stiffness = robot.model.joint("bar.modes").stiffness[0]
    assert stiffness == pytest.approx(beam.G * 2.0 * np.pi * 0.01**4 / 4.0, rel=1e-9)  # GJ/L


@pytest.mark.slow
@pytest.mark.parametrize("pull", [0.0, 100.0, 500.0])
def test_tension_stiffens_a_leaf_in_torsion(pull):
    """The trapeze effect: GJ becomes GJ + T Ip/A; with a body of large inertia on it the leaf has no mass."""
    length, inertia = 0.1, 1e-4
    beam = sl.flexible.beam(length, E=2.1e11, density=7800.0, section=LEAF, modes={"torsion": 0})
    b = sl.Builder("leaf", gravity=(0.0, 0.0, 0.0)).body("leaf", flexible=beam).fixed("clamp", "world", "leaf")
    model = b.body("bob", 1.0, inertia=(inertia,) * 3).fixed("grip", "leaf.tip", "bob").build()
    robot, step = sl.Dynamics(model, target="python"), 1e-4
    force = {"bob": [0.0, 0.0, 0.0, pull, 0.0, 0.0]}
    still = np.zeros(1)
    found = (robot.forward_dynamics([-step], still, still, forces=force) / step)[0]
    M = robot.mass_matrix(still)[0, 0]
    torsion = beam.G * LEAF.J + pull * (LEAF.Iy + LEAF.Iz) / LEAF.area
    assert found * M == pytest.approx(torsion / length, rel=1e-6)
