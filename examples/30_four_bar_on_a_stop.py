"""A four-bar falls on a stop and bounces: a contact that acts through a closed loop.

The crank's tip meets a plane where the crank is at 0.3 rad. Each impact turns the rates of all bars by −e at once, and
the loop stays closed to rounding. Steps find the impacts to a part of a step; contacts="events" locates them.

The page, with figures: docs/examples/30_four_bar_on_a_stop.md
"""

import numpy as np

import spanloop as sl

STOP, BOUNCE = 0.3, 0.6  # rad, restitution

tip = (1.0, 0.0, 0.0)  # of the crank, in its axes
model = sl.zoo.four_bar().with_frame("tip", "crank", tip)
plane = sl.contacts.Plane(rotation=(0, -STOP, 0))  # through the crank's hinge, along the crank where it stops
model = model.with_contact("stop", "tip", ("world", plane), restitution=BOUNCE)
q = sl.zoo.four_bar_start()
located = sl.simulate(model, q, duration=4.0, contacts="events")
steps = sl.simulate(model, q, duration=4.0, contacts="steps")
