"""Control of a parallel robot: its two motors carry the tip of a five-bar along a line, and hold it against a load.

Laws in sl.control act on the actuated joints and keep to the loops; your own law is a function in NumPy's arithmetic.
Both are compiled into the simulation.
"""

import numpy as np

import spanloop as sl
from spanloop import control

model, start = sl.zoo.five_bar(), sl.zoo.five_bar_start()
robot = sl.Dynamics(model)
x, y, _ = robot.pose(start, "tip1")[:3, 3]

# ---- how well it can move there, and what holds it

found = robot.manipulability(start, "tip1", axes="xy")
print(f"1 rad/s of the motors moves the tip by {found.lengths[1]:.2f} to {found.lengths[0]:.2f} m/s")
load = {"tip1": [0.0, 0.0, 0.0, 0.0, -20.0, 0.0]}  # [torque; force] in world axes
tau = robot.static_torques(start, load)
print("torques under 20 N:", {name: round(float(tau[model.v_slice(name)][0]), 2) for name in model.actuated})

# ---- the tip along a line, by operational-space control

line = control.quintic([x, y], [x + 0.1, y - 0.05], duration=0.5)
law = control.operational_space(model, "tip1", line, kp=400.0, kd=40.0, axes="xy")
run = sl.simulate(model, start, duration=0.6, limits="ignore", controller=law)
off = np.abs(run["tip1"].position[:, :2] - np.array([line(t)[0] for t in run.times])).max()
print(f"the tip is off its line by {off:.0e} m, the loop open by {run.closure_residual.max():.0e}")
assert off < 1e-8

# ---- the same line by the motors alone: their motion follows from the first run

way = {name: float(run[name].q[-1]) for name in model.actuated}
moves = {name: control.quintic(float(run[name].q[0]), end, duration=0.5) for name, end in way.items()}
run = sl.simulate(
    model, start, duration=0.6, limits="ignore", controller=control.computed_torque(model, moves, 400.0, 40.0)
)
print(f"computed torque ends {max(abs(run[n].q[-1] - end) for n, end in way.items()):.0e} rad off")

# ---- a law of your own: springs that saturate, and gravity compensation

able = np.array([float(j.name in model.actuated) for j in model.joints])  # every joint here has one coordinate
gravity = control.gravity(model)


def spring(t, q, v):
    return able * np.clip(60.0 * (start - q) - 8.0 * v, -5.0, 5.0)


held = sl.simulate(model, start, duration=1.0, limits="ignore", controller=control.together(model, gravity, spring))
print(f"held: the joints move by {np.abs(held.q - start).max():.0e} rad")
assert np.abs(held.q - start).max() < 1e-9
