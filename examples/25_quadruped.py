"""A quadruped stands, trots and is pushed: hard contact with friction under four feet, in one compiled run.

The law is simple and compiled into the time loop. Each foot is pulled by springs and dampers toward a place of the
gait, seen from its hip; feet that stand also carry the weight. Diagonal feet swing together. A foot lands where half a
stance at the present speed takes it, and further out by a share of the speed that is not wanted (Raibert): so pushes
are walked off.

The page, with figures: docs/examples/25_quadruped.md
"""

import numpy as np

import spanloop as sl

LEGS = ("fl", "fr", "hl", "hr")
FRICTION, RADIUS = 0.8, 0.02  # of the feet, m
model = sl.zoo.quadruped()
for leg in LEGS:
    model = model.with_contact(leg, (f"{leg}_foot", sl.contacts.Sphere(RADIUS)), "ground", friction=FRICTION)

# ---- the gait, of the legs in this order

SIDE, HIP = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.2, 0.2, -0.2, -0.2])  # left or right; x of the hips [m]
OFFSET = np.array([0.0, 0.5, 0.5, 0.0])  # diagonal feet together
LIMB, OUT, HEIGHT, LIFT = 0.22, 0.08, 0.33, 0.06  # m: thigh and shank, foot beside its hip and below it, of a swing
BEGIN, PERIOD, SPEED, CAUTION = 1.0, 0.36, 0.5, 0.1  # s, s, m/s, s
STANDS, SWINGS = (
    ((400.0, 400.0, 4000.0), (150.0, 150.0, 160.0)),
    ((700.0, 700.0, 900.0), (25.0, 25.0, 25.0)),
)  # N/m, N s/m
WEIGHT = model.mass * 9.81


def trot(t, q, v):
    """Torques of a trot that begins at BEGIN; arrays have one entry a leg, and places are those of feet from hips."""
    place, jacobian = feet(q)
    rates = [v[6 + k :: 3] for k in range(3)]
    speed = [sum(j * r for j, r in zip(row, rates, strict=True)) for row in jacobian]
    goes = np.where(t > BEGIN, 1.0, 0.0)
    wanted = SPEED * goes * np.minimum(t - BEGIN, 1.0)
    phase = ((t - BEGIN) / PERIOD + OFFSET) % 1.0
    swings = phase * goes > 0.5
    part = np.where(phase > 0.5, 2.0 * phase - 1.0, 2.0 * phase)  # of the stance or the swing
    half = 0.5 * PERIOD
    along, across = v[3] - v[2] * SIDE * (0.1 + OUT), v[4] + v[2] * HIP  # speeds of the hips, in axes of the trunk

    standing = (wanted * half * (0.5 - part), SIDE * OUT, -HEIGHT + 0.0 * part)
    moving = (-wanted, 0.0, 0.0)
    blend = part * part * (3.0 - 2.0 * part)
    landing = (0.5 * half * along + CAUTION * (along - wanted), 0.5 * half * across + CAUTION * across)
    leaving = (-0.5 * half * along, -0.5 * half * across)
    x, y = (a + (b - a) * blend for a, b in zip(leaving, landing, strict=True))
    swinging = (x, SIDE * OUT + y, -HEIGHT + LIFT * np.sin(np.pi * part) ** 2)

    w, a, b, c = (q[k] for k in range(4))
    up = (2.0 * (a * c - w * b), 2.0 * (b * c + w * a), 1.0 - 2.0 * (a * a + b * b))  # in axes of the trunk
    carried = WEIGHT / (4.0 - 2.0 * goes)
    force = []
    for k in range(3):
        stands = STANDS[0][k] * (standing[k] - place[k]) + STANDS[1][k] * (moving[k] - speed[k]) - carried * up[k]
        force.append(np.where(swings, SWINGS[0][k] * (swinging[k] - place[k]) - SWINGS[1][k] * speed[k], stands))
    torques = [sum(jacobian[i][k] * force[i] for i in range(3)) for k in range(3)]
    return np.concatenate([np.zeros(6), np.stack(torques, axis=1).reshape(-1)])


def feet(q):
    """Places of the feet from their hips in axes of the trunk (x, y, z), and their derivatives by roll, pitch, knee."""
    roll, pitch, knee = (q[7 + k :: 3] for k in range(3))
    sine, cosine, bend = np.sin(roll), np.cos(roll), pitch + knee
    x, down = -LIMB * (np.sin(pitch) + np.sin(bend)), -LIMB * (np.cos(pitch) + np.cos(bend))
    y, z = SIDE * OUT * cosine - down * sine, SIDE * OUT * sine + down * cosine
    forth, rise = -LIMB * np.cos(bend), LIMB * np.sin(bend)
    return (x, y, z), ((0.0 * x, down, forth), (-z, x * sine, -rise * sine), (y, -x * cosine, rise * cosine))


def push(t, q, v):
    """100 N from the right for a fifth of a second."""
    return {"trunk": [0.0, 0.0, 0.0, 0.0, np.where((t > 3.0) & (t < 3.2), 100.0, 0.0), 0.0]}


# ---- it stands, trots, is pushed at 3 s, and trots on

q = sl.zoo.quadruped_start(height=HEIGHT + RADIUS, foot=RADIUS)
run = sl.simulate(model, q, duration=6.0, controller=trot, forces=push)
print(f"{model.mass:.1f} kg on four feet: {run.outcome}")
place = run["trunk"].position
at = {t: np.searchsorted(run.times, t - 1e-9) for t in (0.9, 1.0, 3.0, 5.0, 6.0)}

stands = slice(at[0.9], at[1.0])
carried = sum(run.contacts[leg].normal_force[at[1.0] - 1] for leg in LEGS)
creep = max(np.linalg.norm(run.contacts[leg].slip[stands], axis=-1).max() for leg in LEGS)
print(f"standing: the feet carry {carried:.2f} N, {WEIGHT:.2f} N is its weight; they slip by at most {creep:.0e} m/s")
assert creep < 1e-6  # it still settles

speed = (place[at[6.0], 0] - place[at[5.0], 0]) / 1.0
tilt = np.degrees(2.0 * np.abs(run["root"].q[:, 1:3]).max(axis=0))
print(
    f"trotting: {speed:.2f} m/s, the trunk between {place[at[3.0] :, 2].min():.3f} and {place[:, 2].max():.3f} m high"
)
aside = place[at[6.0], 1] - place[at[3.0], 1]
print(f"pushed by 100 N for 0.2 s: it goes {aside:.2f} m aside and rolls by {tilt[0]:.0f}° at most")
assert run.outcome.finished
assert 0.2 < speed < 0.6
assert tilt.max() < 20.0

# ---- the contacts

audit = run.audit()
assert all(audit[x].verdict == "well" for x in ("complementarity", "penetration", "cones", "uniqueness", "jams"))
depth, residual = audit["penetration"].value, audit["complementarity"].value
print(f"feet overlap the ground by up to {depth:.0e} m; conditions of contact hold to {residual:.0e} m/s in every step")
states = np.array([run.contacts[leg].state for leg in LEGS])
share = {name: 100.0 * np.mean(states == name) for name in ("open", "sticks", "slips")}
print("feet: " + ", ".join(f"{name} {x:.1f} % of the time" for name, x in share.items()))

# ---- steps of a quarter of the length lead to the same place

fine = sl.simulate(model, q, duration=6.0, step=2.5e-4, controller=trot, forces=push, sample=1.0)
apart = np.linalg.norm(fine["trunk"].position[-1] - place[-1])
print(f"with steps of a quarter of the length the trunk ends {100 * apart:.0f} cm beside, after {place[-1, 0]:.2f} m")
assert apart < 0.03
