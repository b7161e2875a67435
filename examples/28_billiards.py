"""Billiards: a cue ball hits an object ball half full, with draw, without spin, and rolling; then a break with cushions.

After the impact both balls slide until they roll. With no friction and no loss between the balls the end is known: the
object ball leaves along the line of centres; the cue ball keeps what is across it, u, and ends with 5/7 u + 2/7 w,
where w is the velocity with which it would roll with the spin that it brought. Without spin the two leave at right
angles; a rolling cue ball is turned by 33.67°.

The page, with figures: docs/examples/28_billiards.md
"""

import numpy as np

import spanloop as sl

RADIUS, MASS, SPEED = 0.028575, 0.17, 1.5  # m, kg, m/s
CLOTH = 0.2  # friction of balls on the cloth
SHOTS = {"draw": -1.0, "stun": 0.0, "follow": 1.0}  # spin of the cue ball, as a part of that of rolling


def balls(names):
    """Balls on a cloth, each a free body."""
    b = sl.Builder("billiards")
    for name in names:
        b.body(name, MASS, inertia=(0.4 * MASS * RADIUS**2,) * 3, geometry=[sl.contacts.Sphere(RADIUS)])
        b.free(f"{name}_free", "world", name)
    model = b.build()
    for name in names:
        model = model.with_contact(f"{name}_cloth", name, "ground", friction=CLOTH)
    return model


def at(x, y):
    """Coordinates of a ball on the cloth."""
    return [1, 0, 0, 0, x, y, RADIUS]


def toward(q, v):
    """Velocities (..., 3) of a ball in world axes, from its own."""
    w, turn = q[..., :1], q[..., 1:4]
    return v + 2.0 * np.cross(turn, np.cross(turn, v) + w * v)


# ---- three shots side by side

pair = balls(["cue", "object"]).with_contact("pair", "cue", "object", restitution=1.0)
cut = np.radians(30.0)  # between the cue ball's way and the line of centres: half of the ball is hit
line = np.array([np.cos(cut), np.sin(cut), 0.0])
first = [*at(*(-(2.0 * RADIUS + 0.01) * line[:2] - [0.0, 0.0])), *at(0.0, 0.0)]
first[4], first[5] = -2.0 * RADIUS * line[0] - 0.01, -2.0 * RADIUS * line[1]  # 10 mm before the impact
spins = np.array(list(SHOTS.values())) * SPEED / RADIUS
v = np.zeros((3, 12))
v[:, 1], v[:, 3] = spins, SPEED
run = sl.simulate(pair, first, v, duration=1.2, step=1e-4, sample=2e-3, contacts="events")

for k, (name, part) in enumerate(SHOTS.items()):
    cue = toward(run.q[k, -1, :4], run.v[k, -1, 3:6])
    target = toward(run.q[k, -1, 7:11], run.v[k, -1, 9:12])
    turned = np.degrees(np.arctan2(-cue[1], cue[0]))
    print(f"{name:6s}: the cue ball ends at {np.linalg.norm(cue):.4f} m/s, turned by {turned:7.2f}°, "
          f"the object ball at {np.linalg.norm(target):.4f} m/s")  # fmt: skip

# ---- the break

rack = {"one": (0.0, 0.0), "two": (np.sqrt(3.0), 1.0), "three": (np.sqrt(3.0), -1.0)}
