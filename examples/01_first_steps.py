"""First steps: accelerations of a robot under torques, and the torques of a motion."""

import numpy as np

import spanloop as sl

model = sl.zoo.puma()  # or sl.load("arm.urdf")
print(model)

robot = sl.Dynamics(model)  # kernels compile on first use and are cached on disk
q, v = model.random_state(seed=1)
tau = np.zeros(model.nv)

a = robot.forward_dynamics(q, v, tau)
print("accelerations [rad/s²]", a.round(3))

# inverse dynamics inverts this
np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, atol=1e-11)

# the equation of motion, M a + h = tau
M, h = robot.mass_matrix(q), robot.bias(q, v)
np.testing.assert_allclose(M @ a + h, tau, atol=1e-11)

# pose and velocity of the tool
X = robot.pose(q, "tool")
velocity = robot.jacobian(q, "tool") @ v  # [angular; linear], world axes
print("tool at", X[:3, 3].round(3), "moves at", velocity[3:].round(3), "m/s")
