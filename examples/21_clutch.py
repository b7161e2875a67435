"""A clutch with a torque limit: an engine takes a load along, and loses it where the load asks for too much.

A clutch is a switchable coupling that holds the angle it finds. Closing is a plastic impact: both discs get the speed
that conserves angular momentum. It opens where its torque, which a condition may read, reaches the limit.

The page, with figures: docs/examples/21_clutch.md
"""

import numpy as np

import spanloop as sl

ENGINE, LOAD = 0.3, 0.7  # kg m²
SPEEDS = 40.0, 0.0  # rad/s, of engine and load at first
GROWTH, LIMIT = 30.0, 14.0  # N m/s, of the engine's torque from t = 0.5 s on; N m, of the clutch

b = sl.Builder("clutch").body("engine", 4.0, inertia=(0.2, 0.2, ENGINE)).body("load", 6.0, inertia=(0.4, 0.4, LOAD))
b.revolute("shaft", "world", "engine", "z").revolute("drum", "world", "load", "z", (0.0, 0.0, 0.2))
model = b.coupling("clutch", "drum", "shaft", switchable=True).build()


def throttle(t, q, v):
    return {"shaft": GROWTH * np.maximum(t - 0.5, 0.0)}


def margin(t, q, v, f):
    return LIMIT - np.abs(f["clutch"])


events = [sl.events.Attach("clutch", at=0.3, capture=True), sl.events.Release("clutch", when=margin)]
run = sl.simulate(model, v=SPEEDS, duration=1.5, controller=throttle, events=events)
print(run.events)

# ---- closing: momentum is conserved, ½ I₁ I₂ / (I₁ + I₂) Δω² is lost

after, lost = run.events.v_after[0], run.events.energy_lost[0]
common = (ENGINE * SPEEDS[0] + LOAD * SPEEDS[1]) / (ENGINE + LOAD)
known = 0.5 * ENGINE * LOAD / (ENGINE + LOAD) * (SPEEDS[0] - SPEEDS[1]) ** 2
print(f"closed: {after[0]:.6f} rad/s, off by {np.abs(after - common).max():.0e}; lost {lost:.6f} J,", end=" ")
print(f"off by {abs(lost - known):.0e}")
assert np.abs(after - common).max() < 1e-13 * SPEEDS[0]
assert abs(lost - known) < 1e-13 * known

# ---- opening: the load takes its share I₂ / (I₁ + I₂) of the engine's torque through the clutch

opened = 0.5 + LIMIT * (ENGINE + LOAD) / LOAD / GROWTH
print(f"opened at {run.events.time[1]:.9f} s, {abs(run.events.time[1] - opened):.0e} s from the closed form")
assert abs(run.events.time[1] - opened) < 1e-8
print(f"the engine ends at {run['shaft'].v[-1]:.4f} rad/s, the load at {run['drum'].v[-1]:.4f} rad/s")
