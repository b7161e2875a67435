"""Build a mechanism part by part, edit it, save it to a file."""

import tempfile
from pathlib import Path

import numpy as np

import spanloop as sl
from spanloop.model.solid_inertia import rod

arm = sl.Builder("arm")
arm.body("upper", mass=2.0, center=(0.25, 0, 0), inertia=rod(2.0, 0.5))
arm.body("fore", mass=1.0, center=(0.2, 0, 0), inertia=rod(1.0, 0.4))
arm.revolute("shoulder", "world", "upper", axis="y")
arm.revolute("elbow", "upper", "fore", axis="y", position=(0.5, 0, 0), damping=0.1)
arm.frame("tool", "fore", position=(0.4, 0, 0))
model = arm.build()
print(model)

# stretched out, the shoulder carries both rods: 9.81 (2.0 · 0.25 + 1.0 · 0.7) N m
g = sl.Dynamics(model).gravity_torques(model.neutral())
print("gravity torques [N m]", g.round(3))
np.testing.assert_allclose(abs(g[0]), 9.81 * (2.0 * 0.25 + 1.0 * 0.7))

# an edit returns a new model; the old one does not change
stiff = model.lock("elbow", at={"elbow": 0.3})
print("degrees of freedom", model.nv, "->", stiff.nv)

# our own format stores everything, bit for bit
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "arm.toml"
    model.save(path)
    assert sl.load(path) == model
