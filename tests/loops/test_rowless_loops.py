"""Loops without rows: a free joint between two bodies."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl

ARM = sl.zoo.chain(2)
Q, V, TAU = np.array([0.1, 0.2]), np.array([0.3, 0.4]), np.array([1.0, 2.0])
TIP = ARM.bodies[-1].name


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("options", [{}, {"switchable": True}])
def test_a_free_loop_changes_nothing(options):
    robot = sl.Dynamics(ARM.with_loop("world", TIP, "free", name="loop", **options))
    a = sl.Dynamics(ARM).forward_dynamics(Q, V, TAU)
    np.testing.assert_allclose(robot.forward_dynamics(Q, V, TAU), a, rtol=1e-12)
    found = robot.solve(Q, V, TAU)
    assert str(found.status) == "ok"
    assert not found.loop_forces["loop"].any()
