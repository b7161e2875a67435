"""Many states in one call: any number of batch axes, which come first; threads share the work."""

import time

import numpy as np

import spanloop as sl

model = sl.zoo.puma()
n = 20_000
rng = np.random.default_rng(0)
q = rng.uniform(-np.pi, np.pi, (n, model.nq))
v, tau = rng.normal(size=(2, n, model.nv))

for threads in (1, 2):
    robot = sl.Dynamics(model, threads=threads)
    a = robot.forward_dynamics(q, v, tau)  # compiles the batch kernel, or loads it from the cache
    began = time.perf_counter()
    robot.forward_dynamics(q, v, tau, out=a)
    each = (time.perf_counter() - began) / n
    print(f"{threads} thread(s): {1e9 * each:.0f} ns a state")

# a row equals the result of a single call
np.testing.assert_allclose(a[7], robot.forward_dynamics(q[7], v[7], tau[7]), rtol=1e-9, atol=1e-9)

# axes broadcast: one torque for a grid of states
grid = robot.forward_dynamics(q[:600].reshape(20, 30, -1), v[:600].reshape(20, 30, -1), np.zeros(model.nv))
print("grid", grid.shape)

# float32 halves the memory and doubles the lanes
small = sl.Dynamics(model, dtype="float32").forward_dynamics(q, v, tau)
print("float32 differs by", f"{np.abs(small - a).max() / np.abs(a).max():.1e}", "of the largest acceleration")
