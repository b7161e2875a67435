"""Saha's five-bar: torques of its two motors along a path, and its free fall (his figures 12 to 14).

Lengths, masses, path and start are his (eq. 34-36). The text states neither the length of the base nor the inertias
nor the assembly: here the base is 1.2 m, links are uniform thin rods, and the legs meet below the line of the elbows.

The page, with figures: docs/examples/09_five_bar_torques_and_fall.md
"""

import numpy as np

import spanloop as sl

model = sl.zoo.five_bar()
robot = sl.Dynamics(model)

# figure 12: the driven angles go from 30° to 90° and from 30° to 70.3° in 20 s, the elbows follow
t = np.linspace(0.0, 20.0, 401)
theta, rate, acceleration = sl.zoo.cycloidal_path(np.radians((30.0, 30.0)), np.radians((90.0, 70.3)), 20.0, t)
path = {f"drive{i + 1}": (theta[:, i], rate[:, i], acceleration[:, i]) for i in (0, 1)}
start = sl.zoo.five_bar_start(angles=tuple(theta[0]))
q, v, a = robot.follow(start, path)
print("elbows go from", q[0, [1, 3]].round(3), "to", q[-1, [1, 3]].round(3), "rad")

# figure 13: torques at the two motors; the elbows have none
tau = robot.inverse_dynamics(q, v, a)
for i in (0, 2):
    print(f"drive{i // 2 + 1}: from {tau[:, i].min():7.3f} to {tau[:, i].max():7.3f} N m")
np.testing.assert_array_equal(tau[:, [1, 3]], 0.0)

# Saha's own method, in the two driven coordinates alone, gives the same; the work of the torques is the gain of energy
np.testing.assert_allclose(sl.papers.actuated_inverse_dynamics(robot, q, v, a), tau[:, [0, 2]], atol=1e-9)
power = (tau * v).sum(axis=1)
work = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(t))])
energy = robot.energy(q, v).sum(axis=1)
print("work and gain of energy differ by", f"{np.abs(work - (energy - energy[0])).max():.1e} J")
assert np.abs(work - (energy - energy[0])).max() < 1e-2  # of the trapezoidal rule

# figure 14: free fall from 80° and 70°, in the two driven coordinates alone. It ends where the distal links are in
# line: there the drives do not determine the other joints, and the equations in their angles have no solution
run = sl.simulate(model, sl.zoo.five_bar_start(), duration=2.0, closures="minimal")
print(run.outcome)
print(f"in line after {run.outcome.time:.3f} s, with the drives at", run.q[-1, [0, 2]].round(3), "rad")
assert abs(run.outcome.time - 1.367) < 1e-3
energy = robot.energy(run.q, run.v).sum(axis=1)
change = np.abs(energy - energy[0])
print(f"energy is kept to {change[run.times < 1.3].max():.1e} J up to 1.3 s, to {change.max():.1e} J at the end")
