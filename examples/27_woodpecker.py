"""Glocker's woodpecker toy: a sleeve that jams on a pole, and a bird on a spring that knocks it free.

Each cycle the sleeve sticks at its lower and at its upper edge, the bird swings, its beak hits the pole, and the sleeve
slides down by two centimetres. Glocker's equations are linear in the angles, and Siconos publishes the motion that they
give: we run them too, as the toy at a thousandth of its angles, and then the toy as it is.

The page, with figures: docs/examples/27_woodpecker.md
"""

import numpy as np

import spanloop as sl

G, FRICTION, BOUNCE = 9.81, 0.3, 0.5  # m/s²; of the pole; of the beak
POLE, SLEEVE, HALF = 0.0025, 0.0031, 0.0058  # m: radii, half the sleeve's height
SPRING, BIRD = 0.010, 0.015  # m: from the sleeve's axis to the spring, from there to the bird's centre
BEAK = (-0.0201, 0.020)  # m: from the bird's centre, across and up
PUBLISHED = 0.14606, 0.019477  # s, m: a cycle of Siconos' reference, with steps of 2e-5 s


def woodpecker(angles):
    """The toy; `angles` scales all angles of its motion, by its clearances and gravity."""
    b = sl.Builder("woodpecker", gravity=(0, 0, -G * angles)).body("slider")
    b.body("sleeve", 0.3e-3, inertia=(5e-9,) * 3).body("bird", 4.5e-3, (BIRD, 0, 0), (7e-7,) * 3)
    b.prismatic("height", "world", "slider", "z").revolute("tilt", "slider", "sleeve", "-y")
    b.revolute("spring", "sleeve", "bird", "-y", (SPRING, 0, 0), stiffness=5.6e-3)
    b.frame("beak", "bird", (BIRD + BEAK[0], 0, BEAK[1]))
    b.frame("lower", "sleeve", (SLEEVE, 0, -HALF)).frame("upper", "sleeve", (SLEEVE, 0, HALF))
    model = b.build()
    for name, reach in (("beak", SPRING + BIRD + BEAK[0]), ("lower", SLEEVE), ("upper", SLEEVE)):
        side = (reach - angles * (reach - POLE), 0, 0)  # the pole's surface; its normal is x
        pole = ("world", sl.contacts.Plane(position=side, rotation=(0, np.pi / 2, 0)))
        bounce = BOUNCE if name == "beak" else 0.0
        model = model.with_contact(name, name, pole, friction=FRICTION, restitution=bounce, resting=1e-3 * angles)
    return model


def start(angles):
    """The start of Siconos' run: the sleeve sits on its lower edge, the bird swings away from the pole."""
    pole = SLEEVE - angles * (SLEEVE - POLE)
    tilt = np.arctan2(HALF, SLEEVE) - np.arccos(pole / np.hypot(HALF, SLEEVE))
    bird, fall, swing = angles * np.array([-0.2788, -0.3411, -7.4583])
    return [0.0, tilt, bird - tilt], [fall, 0.0, swing]


def cycles(run):
    """Times of the beak's impacts, and between them periods [s] and descents [m]."""
    swing = run.v[:, 1] + run.v[:, 2]
    hits = np.flatnonzero((swing[:-1] > 0.5 * swing.max()) & (swing[1:] < 0.0))
    return hits, np.diff(run.times[hits]), -np.diff(run.q[hits, 0])


# ---- the linear toy, as published

SMALL = 1e-3
linear = sl.simulate(woodpecker(SMALL), *start(SMALL), duration=1.0, step=2e-5)
hits, periods, descents = cycles(linear)
swing = (linear.v[:, 1] + linear.v[:, 2]) / SMALL
period, descent = periods.mean(), descents.mean() / SMALL
print(f"linear toy: {len(periods)} cycles of {period:.4f} s, each {1e3 * descent:.1f} mm down")
print(f"the beak comes with {swing[hits[0]]:.1f} rad/s and leaves with {swing[hits[0] + 1]:.1f} rad/s")
off = 100.0 * (period / PUBLISHED[0] - 1.0), 100.0 * (descent / PUBLISHED[1] - 1.0)
print(f"Siconos has {PUBLISHED[0]:.4f} s and {1e3 * PUBLISHED[1]:.1f} mm: we are {off[0]:.1f} % and {off[1]:.1f} % off")
assert max(abs(x) for x in off) < 0.5

# ---- the toy as it is

run = sl.simulate(woodpecker(1.0), *start(1.0), duration=1.0, step=2e-5)
hits, periods, descents = cycles(run)
print(f"true angles: {len(periods)} cycles of {periods.mean():.4f} s, each {1e3 * descents.mean():.1f} mm down")
for name in ("beak", "upper", "lower"):
    state = run.contacts[name].state
    sticks, slips = (100.0 * np.mean(state == word) for word in ("sticks", "slips"))
    print(f"{name}: sticks {sticks:.0f} % and slips {slips:.0f} % of the time")
print(f"surfaces overlap by {max(0.0, -min(c.gap.min() for c in run.contacts.values())):.0e} m at most")
