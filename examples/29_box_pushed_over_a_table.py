"""A finger pushes a box over a table: through its middle and beside it, and stops; the box slides on.

Pushed through its middle the box moves as the finger does; it needs µ m g, and slides on by u²/2µg when the finger
stops. Pushed beside its middle it turns. There its motion depends on how its four corners share the weight, which
rigid bodies leave open: the run says so.

The page, with figures: docs/examples/29_box_pushed_over_a_table.md
"""

import numpy as np

import spanloop as sl

MASS, SIZE, FRICTION, G = 1.2, (0.2, 0.2, 0.1), 0.3, 9.81  # kg, m
TIP, SPEED, STOPS = 0.02, 0.3, 0.8  # m, m/s, s
BRAKE = 6.0  # m/s²: more than µg, so that the box leaves the finger
BESIDE = np.array([0.0, 0.02, 0.05])  # m: from the middle of the box to the finger's way

b = sl.Builder("table").body("finger", 0.5, inertia=(1e-3,) * 3, geometry=[sl.contacts.Sphere(TIP)])
b.prismatic("push", "world", "finger", "x", (-SIZE[0] / 2 - TIP, 0, SIZE[2] / 2), driven=True)
moments = MASS / 12 * np.array([SIZE[1] ** 2 + SIZE[2] ** 2, SIZE[0] ** 2 + SIZE[2] ** 2, SIZE[0] ** 2 + SIZE[1] ** 2])
b.body("box", MASS, inertia=moments, geometry=[sl.contacts.Box(*SIZE)]).free("free", "world", "box")
model = b.build().with_contact("table", "box", "ground", friction=FRICTION)
model = model.with_contact("finger", "finger", "box", friction=0.2)


def law(t, q, v):
    """The finger's acceleration: none, then braking to rest."""
    return {"push": np.where((t > STOPS) & (v["push"] > 0.0), -BRAKE, 0.0)}


q = np.array([[0.0, 1, 0, 0, 0, 0, -y, SIZE[2] / 2] for y in BESIDE])
v = np.zeros(model.nv)
v[0], v[4] = SPEED, SPEED
run = sl.simulate(model, q, v, duration=1.2, controller=law)

# ---- through the middle: closed forms

middle = run[0]
way, known = middle.q[-1, 5], SPEED * STOPS + SPEED**2 / (2.0 * FRICTION * G)
print(f"pushed through its middle the box ends {way:.6f} m on, {abs(way - known):.0e} m from the closed form")
assert abs(way - known) < 1e-6
pushed = (middle.times > 0.01) & (middle.times < STOPS - 0.01)
force = middle.contacts["finger"].normal_force[pushed]
print(f"the finger pushes with {force.mean():.4f} N, {np.abs(force - FRICTION * MASS * G).max():.0e} N from µ m g")
assert np.abs(force - FRICTION * MASS * G).max() < 1e-5

# ---- beside it: the box turns

for k, y in enumerate(BESIDE):
    one = run[k]
    turned = np.degrees(2.0 * np.arctan2(one.q[-1, 4], one.q[-1, 1]))
    print(f"{1e3 * y:2.0f} mm beside its middle: turned by {turned:.1f}°")
print("the shares of its four corners are unique:", run[0].contacts["table"].unique.any())
print("where it turns its motion is unique:", run[2].contacts.motion_is_unique[400:800].any())
