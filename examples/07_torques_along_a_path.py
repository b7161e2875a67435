"""Torques from a Denavit-Hartenberg table and joint histories: what Saha's program RIDIM computes, for his PUMA.

The table is Saha's Table 3, the path his cycloid (eq. 22): all six joints from 0 to π in 10 s. Our reading of the
table, which the text leaves open, is in `spanloop/model/files/dh/` and `spanloop/zoo/arms.py`; gravity is 9.81 m/s²
along −z of frame 1.

The page, with figures: docs/examples/07_torques_along_a_path.md
"""

import numpy as np

import spanloop as sl

right = np.pi / 2
TABLE = [
    {"alpha": -right, "mass": 10.521, "r": (0, 0, 0.054), "inertia": (1.612, 1.612, 0.5091)},
    {"a": 0.432, "b": 0.149, "mass": 15.761, "r": (0.292, 0, 0), "inertia": (0.4898, 8.0783, 8.2672)},
    {"a": 0.02, "alpha": -right, "mass": 8.767, "r": (0.02, 0, -0.197), "inertia": (3.3768, 3.3768, 0.3009)},
    {"b": 0.432, "alpha": -right, "mass": 1.052, "r": (0, -0.057, 0), "inertia": (0.181, 0.1273, 0.181)},
    {"alpha": -right, "mass": 1.052, "r": (0, 0, -0.007), "inertia": (0.0735, 0.1273, 0.0735)},
    {"b": 0.05, "mass": 0.351, "r": (0, 0, 0.019), "inertia": (0.0071, 0.0071, 0.0141)},
]


def torques(table, q, v, a, method="decoupled_complement"):
    """tau (n, joints) along histories q, v, a (n, joints): recursive inverse dynamics of the arm in the table."""
    return sl.compile(sl.from_dh(table), "inverse_dynamics", method=method)(q, v, a)


t = np.linspace(0.0, 10.0, 2001)
q, v, a = sl.zoo.cycloidal_path(np.zeros(6), np.full(6, np.pi), 10.0, t)
tau = torques(TABLE, q, v, a)
for k in range(6):
    print(f"joint {k + 1}: from {tau[:, k].min():8.3f} to {tau[:, k].max():8.3f} N m")

# the recursive Newton-Euler algorithm gives the same
np.testing.assert_allclose(tau, torques(TABLE, q, v, a, "newton_euler"), atol=1e-12 * np.abs(tau).max())

# the work of the torques equals the gain of energy, along the whole path
robot = sl.Dynamics(sl.from_dh(TABLE))
power = (tau * v).sum(axis=1)
work = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(t))])
energy = robot.energy(q, v).sum(axis=1)
print("work and gain of energy differ by", f"{np.abs(work - (energy - energy[0])).max():.1e} J")
assert np.abs(work - (energy - energy[0])).max() < 1e-3  # of the trapezoidal rule

# forward dynamics by I = U D Uᵀ gives the accelerations back
forward = sl.compile(robot.model, "forward_dynamics", method="decoupled_complement")
np.testing.assert_allclose(forward(q, v, tau), a, atol=1e-10)
U, D = sl.papers.inertia_factors(robot, q[500])
np.testing.assert_allclose(U @ D @ U.T, robot.mass_matrix(q[500]), atol=1e-12)
print("entries of D at 2.5 s", np.diag(D).round(3))
