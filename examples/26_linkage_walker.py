"""A linkage walker: eight of Theo Jansen's legs, moved by one crankshaft, walk over hard ground without any control.

Each leg is a plane mechanism of six bars with three loops, and feet are points: 24 loops stay closed to rounding
while feet land, stick and slip. The motor has a torque that falls with its speed; nothing else acts.

The page, with figures: docs/examples/26_linkage_walker.md
"""

import numpy as np

import spanloop as sl

FRICTION, SPEED, STRENGTH = 0.8, 5.0, 5.0  # of the feet; of the motor: rad/s, N m s/rad
model = sl.zoo.linkage_walker()
feet = [f"leg{k}_foot" for k in range(1, 9)]
for foot in feet:
    model = model.with_contact(foot, foot, "ground", friction=FRICTION)
robot = sl.Dynamics(model)
q = sl.zoo.linkage_walker_start()
print(f"{len(model.bodies)} bodies, {len(model.loops)} loops, {model.mass:.1f} kg, mobility {robot.mobility(q)}")


def motor(t, q, v):
    """The torque of a motor whose idle speed rises to SPEED in half a second."""
    return {"crank1": STRENGTH * (SPEED * np.minimum(2.0 * t, 1.0) - v["crank1"])}


run = sl.simulate(model, q, duration=6.0, step=2e-3, controller=motor)
print(run.outcome)
place, turns = run["trunk"].position, run["crank1"].q[-1] / (2.0 * np.pi)
middle = len(run.times) // 2
speed = np.linalg.norm(place[-1, :2] - place[middle, :2]) / (run.times[-1] - run.times[middle])
print(f"{turns:.2f} turns of the crank take it {np.linalg.norm(place[-1, :2]):.2f} m far; it walks at {speed:.3f} m/s")
print(f"the trunk is between {place[:, 2].min():.3f} and {place[:, 2].max():.3f} m high", end=", ")
power = run["crank1"].tau * run["crank1"].v
print(f"the motor gives {power[middle:].mean():.2f} W in the mean")
assert run.outcome.finished
assert 0.4 < speed < 0.7

# ---- loops and contacts

print(f"24 loops stay closed to {run.residual:.0e} m")
assert run.residual < 1e-12
audit = run.audit()
print(f"conditions of contact hold to {audit['complementarity'].value:.0e} m/s in every step", end="; ")
gaps = np.array([run.contacts[foot].gap for foot in feet])
print(f"feet are at most {-gaps.min():.0e} m below the ground")
assert audit["complementarity"].verdict == audit["cones"].verdict == "well"
assert gaps.min() > -1e-4  # a foot that an impact of another one presses down is lifted in the next step
states = np.array([run.contacts[foot].state for foot in feet])[:, middle:]
stand = (states != "open").sum(axis=0)
print(f"{stand.min()} to {stand.max()} feet stand at a time")

# ---- a quarter of the step leads to the same place

fine = sl.simulate(model, q, duration=6.0, step=5e-4, controller=motor, sample=1.0)
apart = np.linalg.norm(fine["trunk"].position[-1] - place[-1])
print(f"with steps of a quarter of the length it ends {100 * apart:.0f} cm beside")
assert apart < 0.1
