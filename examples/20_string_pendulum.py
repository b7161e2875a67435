"""A bob on a string that goes slack, flies and is caught: a loop that pulls and never pushes.

The string is a loop that keeps a distance, `sl.joints.Distance`, and one-sided: it opens where its force would push and
closes where it is straight again; what moves along it then is lost. Moments and places are known in closed form.

The page, with figures: docs/examples/20_string_pendulum.md
"""

import numpy as np

import spanloop as sl

G, LENGTH, SPEED = 9.81, 1.0, 6.8  # m/s², m, m/s at the lowest point: between √(2gl) and √(5gl)

b = sl.Builder("string pendulum").body("carriage").body("bob", 1.0, inertia=(4e-4, 4e-4, 4e-4))
b.prismatic("x", "world", "carriage", "x").prismatic("z", "carriage", "bob", "z")
model = b.loop("world", "bob", sl.joints.Distance(LENGTH), name="string", switchable=True).build()

string = sl.events.OneSided("string", sign=-1)  # its error, distance − length, must not be positive
taut = sl.Closures(active_loops=["string"])
run = sl.simulate(model, [0.0, -LENGTH], [SPEED, 0.0], duration=3.0, closures=taut, events=[string])
print(run.events)

# ---- slack at cos θ = −(v₀² − 2gl)/3gl from below, then a parabola for 4 v sin θ / g

(slack, catch), (start, end) = run.events.time[:2], run.events.q[:2]
angle, known = np.arctan2(start[0], -start[1]), np.arccos(-(SPEED**2 - 2 * G * LENGTH) / (3 * G * LENGTH))
print(f"slack at {np.degrees(angle):.6f}°, {abs(angle - known):.0e} rad from the closed form")
assert abs(angle - known) < 1e-8
flight = 4.0 * np.sqrt(-G * LENGTH * np.cos(known)) * np.sin(known) / G
print(f"slack for {catch - slack:.9f} s, {abs(catch - slack - flight):.0e} s from the closed form")
assert abs(catch - slack - flight) < 1e-8

# ---- what the catch takes: the velocity along the string

along = run.events.v_before[1] @ end / LENGTH
lost = run.events.energy_lost
print(f"the catch takes {lost[1]:.6f} J of {0.5 * SPEED**2:.0f} J, {abs(lost[1] - 0.5 * along**2):.0e} J off ½ m v²")
assert abs(lost[1] - 0.5 * along**2) < 1e-9
print(f"the string keeps its length to {run.residual:.0e} m")
assert run.residual < 1e-12
