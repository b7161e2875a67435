"""Masses, lengths and inertias as inputs of a kernel: one compiled kernel, many robots."""

import numpy as np

import spanloop as sl

model = sl.zoo.puma()
parameters = model.parameters()
print(len(parameters), "parameters:", ", ".join(parameters.names[:6]), "...")

kernel = sl.compile(model, "forward_dynamics", parameters="live")
print(kernel.operations)

q, v = model.random_state(seed=2)
tau = np.zeros(model.nv)

# the model's own parameters give the model's own result
baked = sl.Dynamics(model).forward_dynamics(q, v, tau)
np.testing.assert_allclose(kernel(q, v, tau, parameters.values), baked, rtol=1e-9)

# a heavier load at the wrist, by parameter name
loaded = parameters.changed({"link6.mass": 2.0})
print("with 2 kg at the wrist", kernel(q, v, tau, loaded.values).round(2))

# one set for each state of a batch: the effect of a hundred masses
sets = np.tile(parameters.values, (100, 1))
sets[:, parameters.index("link6.mass")] = np.linspace(0.1, 3.0, 100)
a = kernel(q, v, tau, sets)
print("accelerations", a.shape, "from", a[0].round(2), "to", a[-1].round(2))
