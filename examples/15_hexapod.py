"""A hexapod on its feet: Lilly & Orin's Type 1, a body on legs whose feet stand on the ground in unpowered contacts.

Their text has no numbers for such a vehicle; the hexapod is `sl.zoo.hexapod`: 18 hinges, six ball-jointed feet, 5.8 kg.
It sways and squats. Eighteen motors move six degrees of freedom, so that twelve numbers can be chosen: the torques of
least norm, or feet that push straight up. Then one foot is lifted, and three.

The page, with figures: docs/examples/15_hexapod.md
"""

import numpy as np

import spanloop as sl

model = sl.zoo.hexapod(switchable=True)  # footholds can be released
robot = sl.Dynamics(model)
FEET = [x.name for x in model.loops]
mass = sum(b.inertia.mass for b in model.bodies)

# ---- forward dynamics under random torques

fixed = sl.zoo.hexapod()
q0 = sl.zoo.hexapod_start()
rng = np.random.default_rng(0)
tau = np.concatenate([np.zeros(6), rng.uniform(-1.0, 1.0, 18)])
results = {
    m: sl.compile(fixed, "forward_dynamics", method=m, target="python")(q0, np.zeros(24), tau)
    for m in ("simple_closed_chain", "closed_topology", "elimination", "dense")
}
dense = results.pop("dense")
difference = max(np.abs(a - dense).max() for a in results.values()) / np.abs(dense).max()
print(f"{mass:.2f} kg, mobility {robot.mobility(q0)}; {len(results)} methods agree with the dense equations", end=" ")
print(f"to {difference:.0e}")
assert difference < 1e-10

# ---- a motion of the body, once around in 2 s: up and down by 4 cm, forth and sideways; the legs follow

t = np.linspace(0.0, 2.0, 1001)
sine, cosine = np.sin(np.pi * t)[:, None], np.cos(np.pi * t)[:, None]
across, along = np.array([0.03, 0.01, 0.0]), np.array([0.0, 0.01, 0.02])  # m
place = np.array([0.0, 0.0, 0.1]) + sine * across - cosine * along
rate, acceleration = np.pi * (cosine * across + sine * along), np.pi**2 * (-sine * across + cosine * along)
q = np.stack([sl.zoo.hexapod_start(position=tuple(p), turn=(0.0, 0.0, 0.0)) for p in place])
upright = np.zeros((len(t), 3))  # the body does not turn: its axes are the world's
v = robot.complete_velocity(q, {"floating": np.hstack([upright, rate])})
a = robot.complete_acceleration(q, v, {"floating": np.hstack([upright, acceleration])})

# ---- torques and forces at the feet


def friction(forces):
    """The friction coefficient that the feet need: the largest ratio of horizontal to vertical force."""
    return max((np.hypot(f[..., 3], f[..., 4]) / f[..., 5]).max() for f in forces.values())


up = np.zeros((len(t), 6))
up[:, 5] = mass * 9.81 / 6
choices = {"least torques": {}, "feet push up": {"internal_forces": dict.fromkeys(FEET, up)}}
torques, feet = {}, {}
for name, options in choices.items():
    found = robot.solve_inverse(q, v, a, **options)
    torques[name], feet[name] = found.tau, {f: found.loop_forces[f] for f in FEET}
    norm = np.sqrt((found.tau**2).sum(axis=1)).max()
    print(f"{name}: at most {np.abs(found.tau).max():.3f} N m at a joint, norm {norm:.3f};", end=" ")
    print(f"the feet need friction of {friction(feet[name]):.3f}")

    # the forces at the feet balance weight and rate of momentum; forward dynamics gives the motion back
    total = sum(f[:, 3:] for f in feet[name].values()) + mass * np.array([0.0, 0.0, -9.81])
    center = robot.center_of_mass(q)
    inertial = mass * np.gradient(np.gradient(center, t, axis=0), t, axis=0)
    assert np.abs(total - inertial)[5:-5].max() < 1e-3  # error of the finite differences
    np.testing.assert_allclose(robot.forward_dynamics(q, v, found.tau), a, atol=1e-8)

# ---- the same by simulation, with springs and dampers to the path


def follow(t, q, v, u):
    """u: torques, angles and rates of the 18 hinges."""
    angles, rates = list(q)[7:], list(v)[6:]
    pull = [u[k] + 20.0 * (u[18 + k] - angles[k]) + 0.5 * (u[36 + k] - rates[k]) for k in range(18)]
    return [*[0.0] * 6, *pull]


inputs = np.hstack([torques["feet push up"][:, 6:], q[:, 7:], v[:, 6:]])[:-1]
follows = {"controller": follow, "inputs": inputs, "method": "simple_closed_chain"}
run = sl.simulate(fixed, q[0], v[0], duration=2.0, step=2e-3, **follows)
away = np.abs(run.q[:, 4:7] - place).max()
print(f"simulated: the body follows its path within {away:.0e} m,", end=" ")
print(f"feet closed to {run.residual:.0e} m")
assert away < 3e-4  # inputs are constant during a step, so the path lags by half a step

# ---- feet off the ground: standing still on six, five and three

q, still = q[-1], np.zeros(24)
for standing in (FEET, FEET[1:], FEET[::2]):
    found = robot.solve_inverse(q, still, still, active_loops=standing)
    loads = [found.loop_forces[f][5] for f in standing]
    print(f"on {len(standing)} feet: {np.abs(found.tau).max():.3f} N m at most; feet carry", np.round(loads, 2), "N")
    np.testing.assert_allclose(sum(loads), mass * 9.81)
    np.testing.assert_allclose(robot.forward_dynamics(q, still, found.tau, active_loops=standing), still, atol=1e-8)
