"""A free-flying arm captures a tumbling body: momentum is conserved, the energy of the relative motion is lost.

A PUMA on a free base of 300 kg waits with its tool stretched out. A body of 60 kg tumbles by; where its handle comes
within a millimetre of the tool, the grip closes and holds the pose that it finds. Then brakes in the arm's joints take
what is left of the relative motion, and all turn as one.

The page, with figures: docs/examples/24_capture_in_orbit.md
"""

import numpy as np

import spanloop as sl
from spanloop.math.quaternion import matrix
from spanloop.model.parts import Geometry, Placement

HANDLE = np.array([-0.35, 0.1, 0.0])  # m, on the tumbling body
POSTURE = (0.0, -0.5, -0.9, 0.0, 0.4, 0.0)  # rad, of the arm
REACH, ARRIVAL = 1e-3, 2.0  # m; s, when the handle would pass through the tool
SPIN, FLIGHT = (0.5, 0.3, -0.4), (-0.12, 0.05, 0.08)  # rad/s and m/s of the body at that moment, in its axes

# ---- base, arm and body; there is no gravity

hull = Geometry("box", (0.5, 0.5, 0.3), placement=Placement(position=(0.0, 0.0, -0.2)))
base = sl.Builder("satellite", gravity=(0, 0, 0)).body("base", 300.0, (0.0, 0.0, -0.2), (60.0, 70.0, 80.0), [hull])
part = Geometry("box", (0.7, 0.3, 0.3))
target = sl.Builder("target", gravity=(0, 0, 0)).body("target", 60.0, (0, 0, 0), (4.0, 5.0, 3.0), [part])
target = target.free("tumbling", "world", "target").build()
model = base.free("floating", "world", "base").build().attach(sl.zoo.puma(), "base", prefix="arm_")
model = model.attach(target, "world").with_frame("handle", "target", HANDLE)
model = model.with_loop("arm_tool", "handle", "fixed", name="grip", switchable=True)

# ---- where the body starts: two seconds before the encounter, found by running its motion backward

start = model.neutral()
start[model.q_slice("arm_joint1").start :][:6] = POSTURE
tool = sl.Dynamics(model, target="python").pose(start, "arm_tool")[:3, 3]
encounter = [1.0, 0.0, 0.0, 0.0, *(tool - HANDLE)]
past = sl.simulate(target, encounter, [-x for x in (*SPIN, *FLIGHT)], duration=ARRIVAL)
start[model.q_slice("tumbling")] = past.q[-1]
v = np.zeros(model.nv)
v[model.v_slice("tumbling")] = -past.v[-1]

# ---- the capture


def nearness(t, q, v):
    """Square of the handle's distance from the waiting tool, less that of the reach [m²]."""
    pose = q["tumbling"]
    away = np.array(matrix(pose[:4])) @ HANDLE + pose[4:] - tool
    return away @ away - REACH**2


def brakes(t, q, v):
    return {f"arm_joint{k}": -d * v[f"arm_joint{k}"] for k, d in zip(range(1, 7), (60, 60, 40, 8, 8, 4), strict=True)}


grip = sl.events.Attach("grip", when=nearness, capture=True)
run = sl.simulate(model, start, v, duration=8.0, controller=brakes, events=[grip])
print(run.events)

# ---- momentum is conserved, energy is lost in the grip and in the brakes

momentum = run.momentum
drift = np.abs(momentum - momentum[0]).max(axis=0)
print(f"momentum {np.linalg.norm(momentum[0, 3:]):.3f} N s and {np.linalg.norm(momentum[0, :3]):.3f} N m s,", end=" ")
print(f"conserved to {drift[3:].max():.0e} and {drift[:3].max():.0e}")
assert drift.max() < 1e-9

before, after = run.events.v_before[0], run.events.v_after[0]
M = run.robot.mass_matrix(run.events.q[0])
energy = run.energy.sum(axis=-1)
lost = run.events.energy_lost[0]
print(
    f"energy {energy[0]:.3f} J; the grip takes {lost:.3f} J, the brakes {energy[0] - lost - energy[-1]:.3f} J;", end=" "
)
rigid = 0.5 * (before @ M @ before - after @ M @ after)
print(f"the grip's share is off ½ (vᵀMv) before less after by {abs(lost - rigid):.0e} J")
assert abs(lost - rigid) < 1e-12
print(f"after 8 s the joints turn at {np.abs(run.v[-1, 6:12]).max():.3f} rad/s;", end=" ")
print(f"the grip is closed to {run.residual:.0e} m")
assert run.residual < 1e-12
