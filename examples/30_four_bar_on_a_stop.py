"""A four-bar falls on a stop and bounces: a contact that acts through a closed loop.

The crank's tip meets a plane where the crank is at 0.3 rad. Each impact reverses the rates of all bars, which are e of
what they were, and the loop stays closed to rounding. contacts="events" locates the impacts; steps of 1 ms find them
inside the step, from the gaps at its ends.

The page, with figures: docs/examples/30_four_bar_on_a_stop.md
"""

import numpy as np

import spanloop as sl

STOP, BOUNCE = 0.3, 0.6  # rad, restitution

model = sl.zoo.four_bar().with_frame("tip", "crank", (1.0, 0.0, 0.0))
plane = sl.contacts.Plane(rotation=(0, -STOP, 0))  # through the crank's hinge, along the crank where it stops
model = model.with_contact("stop", "tip", ("world", plane), restitution=BOUNCE)
q = sl.zoo.four_bar_start()
located = sl.simulate(model, q, duration=3.0, contacts="events")
steps = sl.simulate(model, q, duration=3.0)
print(located.events)

# ---- each impact reverses the rates by e, and takes 1 - e² of the kinetic energy

table = located.events
struck = table.kind == "impact"
fast = np.abs(table.v_before[:, 0]) > 1e-2  # those that bounce
ratio = -table.v_after[struck & fast] / table.v_before[struck & fast]
print(f"rates after an impact are {BOUNCE} of those before, off by {np.abs(ratio - BOUNCE).max():.0e}")
assert np.abs(ratio - BOUNCE).max() < 1e-9
print(f"loops stay closed to {located.residual:.0e} m, and to {steps.residual:.0e} m in steps")
assert max(located.residual, steps.residual) < 1e-12
