"""A ratchet: a crank-rocker turns a winch one way, by a pawl that drives and a pawl that holds.

Both pawls are switchable couplings that hold the angle they find. At the end of the back stroke the driving pawl falls
in and the holding one lifts; at the end of the forward stroke the other way round. Both happen where speeds agree, so
that no energy is lost.

The page, with figures: docs/examples/22_ratchet.md
"""

import numpy as np

import spanloop as sl
from spanloop.model.parts import Geometry

INERTIA, LOAD, SPEED = 0.5, 12.0, 6.0  # kg m² of the winch, N m of its load, rad/s of the crank
PLAY = 1e-6  # rad/s: pawls fall in at this relative speed, so that rounding of a speed that is held at 0 moves none

bar = Geometry("box", (0.9, 0.1, 0.1))
winch = sl.Builder("winch").body("winch", 5.0, inertia=(0.3, INERTIA, 0.3), geometry=[bar])
winch = winch.revolute("drum", "world", "winch", "-y")
model = sl.zoo.four_bar().with_frame("support", "world", (2.0, 0.5, 0.0)).attach(winch.build(), "support")
model = model.with_coupling("drum", "rocker_hinge", name="driving", switchable=True)
model = model.with_coupling("drum", None, name="holding", switchable=True)


def motor(t, q, v):
    """Keeps the crank near its speed; the load pulls the winch back."""
    return {"crank_hinge": 400.0 * (SPEED - v["crank_hinge"]), "drum": -LOAD}


def winch_is_ahead(t, q, v):
    return v["drum"] - v["rocker_hinge"] + PLAY


def winch_turns(t, q, v):
    return v["drum"] + PLAY


events = [
    sl.events.Attach("driving", when=winch_is_ahead, capture=True),
    sl.events.Release("holding", when=winch_is_ahead),
    sl.events.Attach("holding", when=winch_turns, capture=True),
    sl.events.Release("driving", when=winch_turns),
]
q = [*sl.zoo.four_bar_start(angle=5.0), 0.0]  # in the back stroke
v = {"crank_hinge": SPEED, "drum": 0.0}  # the loop follows
run = sl.simulate(model, q, v, duration=4.0, controller=motor, events=events)
print(run.events)

# ---- the winch turns by the rocker's swing each time, and never back

table = run.events
held = table.q[(table.kind == "attach") & (table.name == "holding"), model.q_slice("drum").start]
strokes = np.diff(held)
ends = 2.2 - 1.0, 2.2 + 1.0  # crank and coupler in line, folded and stretched [m]
swing = abs(np.diff([np.arccos((2.0**2 + 1.8**2 - d * d) / (2 * 2.0 * 1.8)) for d in ends]))[0]
print(
    f"each turn winds {np.degrees(swing):.6f}°, the strokes differ from that by {np.abs(strokes - swing).max():.0e} rad"
)
assert np.abs(strokes - swing).max() < 1e-8
print(f"the winch never turns back: its least rate is {run['drum'].v.min():.0e} rad/s")
assert run["drum"].v.min() > -2.0 * PLAY
print(f"energy lost in all events: {run.events.energy_lost.sum():.0e} J; loops closed to {run.residual:.0e} m")
assert run.events.energy_lost.sum() < 1e-9
assert run.residual < 1e-12
