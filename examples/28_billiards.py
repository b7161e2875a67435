"""Billiards: a cue ball hits half of an object ball with draw, without spin and rolling; then a break with cushions.

After the impact both balls slide until they roll. Without friction and loss between the balls the end is known: the
object ball leaves along the line of centres n; the cue ball keeps what is across it, u, and ends with 5/7 u + 2/7 w,
where w is the velocity with which it would roll with the spin that it brings. Without spin the two leave at right
angles; a cue ball that rolls is turned by 33.67°.

The page, with figures: docs/examples/28_billiards.md
"""

import numpy as np

import spanloop as sl

RADIUS, MASS, SPEED = 0.028575, 0.17, 1.5  # m, kg, m/s
CLOTH, G = 0.2, 9.81  # friction of balls on the cloth; m/s²
BEFORE = 0.01  # m from the start to the impact
SHOTS = {"draw": -1.0, "stun": 0.0, "follow": 1.0}  # spin of the cue ball, 1 for rolling


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


def places(points):
    """Coordinates of balls on the cloth at points (x, y)."""
    return np.concatenate([[1, 0, 0, 0, x, y, RADIUS] for x, y in points])


# ---- three shots side by side

pair = balls(["cue", "object"]).with_contact("hit", "cue", "object", restitution=1.0)
n = np.array([np.cos(np.pi / 6), np.sin(np.pi / 6)])  # the line of centres, at 30° to the way of the cue ball
v = np.zeros((len(SHOTS), pair.nv))
v[:, 1], v[:, 3] = np.array(list(SHOTS.values())) * SPEED / RADIUS, SPEED
shots = sl.simulate(
    pair, places([-2.0 * RADIUS * n - [BEFORE, 0.0], (0, 0)]), v, duration=1.0, step=2e-4, contacts="events"
)
for k, (name, spin) in enumerate(SHOTS.items()):
    rubs = CLOTH * G * (1.0 - (spin == 1.0))  # a ball that rolls does not slide
    time = BEFORE / SPEED if rubs == 0.0 else (SPEED - np.sqrt(SPEED**2 - 2.0 * rubs * BEFORE)) / rubs
    arrives, rolling = SPEED - rubs * time, spin * SPEED + 2.5 * rubs * time  # speed, and w, along x
    across = arrives * (np.array([1.0, 0.0]) - n[0] * n)
    known = 5 / 7 * across + 2 / 7 * np.array([rolling, 0.0]), 5 / 7 * arrives * n[0] * n
    found = [shots[k][ball].velocity[-1, 3:5] for ball in ("cue", "object")]
    off = max(np.linalg.norm(a - b) for a, b in zip(found, known, strict=True))
    turned = np.degrees(np.arctan2(-found[0][1], found[0][0]))
    print(
        f"{name:6s}: cue ball {np.linalg.norm(found[0]):.4f} m/s, turned by {turned:.3f}°; "
        f"object ball {np.linalg.norm(found[1]):.4f} m/s; {off:.0e} m/s from the closed form"
    )
    assert off < 1e-5

# ---- a break: three balls that touch, and four cushions

LENGTH, WIDTH = 1.2, 0.6  # m
rack = [(0.0, 0.0), (np.sqrt(3.0) * RADIUS, RADIUS), (np.sqrt(3.0) * RADIUS, -RADIUS)]
names = ["cue", "one", "two", "three"]
model = balls(names)
for j, first in enumerate(names):
    for second in names[j + 1 :]:
        model = model.with_contact(f"{first}_{second}", first, second, friction=0.05, restitution=0.95)
turns = {"left": 0.0, "lower": np.pi / 2, "right": np.pi, "upper": -np.pi / 2}  # of the cushions' normals, from +x
for side, turn in turns.items():
    away = LENGTH / 2 if side in ("left", "right") else WIDTH / 2
    normal = np.array([np.cos(turn), np.sin(turn), 0.0])
    cushion = ("world", sl.contacts.Plane(position=-away * normal, rotation=(0, np.pi / 2, turn)))
    for name in names:
        model = model.with_contact(f"{name}_{side}", name, cushion, friction=0.1, restitution=0.8)
v = np.zeros(model.nv)
v[1], v[3] = 2.0 / RADIUS, 2.0
run = sl.simulate(model, places([(-0.4, 0.004), *rack]), v, duration=1.5, step=5e-4)
apart = min(run.contacts[f"{a}_{b}"].gap.min() for j, a in enumerate(names) for b in names[j + 1 :])
hits = [c for c in run.contacts if not c.endswith("cloth") and run.contacts[c].normal_force.max() > 0.0]
print(f"break: {len(model.contacts)} contacts, of which {len(hits)} beside the cloth are hit")
grows = np.diff(run.energy.sum(axis=-1)).max()
print(f"balls overlap by {max(0.0, -apart):.0e} m at most; no step adds energy: {grows < 1e-9}")
