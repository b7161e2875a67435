"""An arm of two soft booms on a free hub slews a payload: it rings, unless its path is shaped for its slow modes.

The drives follow their paths exactly; hub, booms and payload are free. A path is shaped by splitting it into halves,
one of them half a period of a mode later [Singer & Seering 1990]: what the first half excites the second one cancels.
The periods are those of robot.modes where the arm arrives.

The page, with figures: docs/examples/35_flexible_arm_in_space.md
"""

import itertools

import numpy as np

import spanloop as sl

SLEW, DURATION = 3.0, 12.0  # s
ENDS = {"shoulder": 1.2, "elbow": -0.8}  # rad, from 0
TUBE = sl.flexible.tube(0.025, 0.024)


def boom():
    return sl.flexible.beam(4.0, E=7e10, density=1600.0, section=TUBE, modes={"y": 1}, damping=0.002)


b = sl.Builder("space_arm", gravity=(0, 0, 0)).body("hub", 400.0, inertia=(80.0, 80.0, 80.0))
b.body("upper", flexible=boom()).body("lower", flexible=boom()).body("payload", 30.0, (0.3, 0, 0), (2.0, 2.0, 2.0))
b.planar("floating", "world", "hub").revolute("shoulder", "hub", "upper", position=(0.7, 0, 0), driven=True)
b.revolute("elbow", "upper.tip", "lower", driven=True).fixed("grip", "lower.tip", "payload")
model = b.build()
robot = sl.Dynamics(model)
print(boom())

# ---- the modes of the arm where it arrives, drives held

end = model.neutral()
for name, angle in ENDS.items():
    end[model.q_slice(name)] = angle
modes = robot.modes(end)
slow = [f for f in modes.frequencies if f > 1e-3][:2]
print("slowest modes there:", ", ".join(f"{f:.3f} Hz" for f in slow))

# ---- slews: plain, shaped for the first mode, shaped for both


def acceleration(t):
    """Of a move from 0 to 1 in SLEW seconds, cycloidal."""
    moving = (t > 0.0) & (t < SLEW)
    return np.where(moving, 2.0 * np.pi / SLEW**2 * np.sin(2.0 * np.pi / SLEW * t), 0.0)


def slewed(frequencies):
    delays = [sum(d) for d in itertools.product(*((0.0, 0.5 / f) for f in frequencies))]

    def drives(t, q, v):
        rate = sum(acceleration(t - d) for d in delays) / len(delays)
        return {name: angle * rate for name, angle in ENDS.items()}

    run = sl.simulate(model, duration=DURATION, step=1e-3, integrator="rk4", controller=drives)
    assert all(abs(run[name].q[-1] - angle) < 1e-6 for name, angle in ENDS.items())
    return run, SLEW + max(delays)


def payload(run):
    """Position of the payload (samples, 2) seen from the hub."""
    turn = np.swapaxes(run["hub"].pose[:, :2, :2], 1, 2)
    away = run["payload"].position - run["hub"].position
    return np.einsum("nab,nb->na", turn, away[:, :2])


cases = {"plain": (), "first mode": slow[:1], "both modes": slow}
runs, arrivals = {}, {}
print("shaped for    arrives [s]  energy left [J]  payload swings by [mm]")
for name, frequencies in cases.items():
    run, arrival = slewed(frequencies)
    after = run.times > arrival
    energy, place = run.energy.sum(axis=-1)[after][0], payload(run)[after]
    swing = np.linalg.norm(place - place.mean(axis=0), axis=1).max()
    print(f"{name:12} {arrival:12.2f} {energy:16.5f} {1e3 * swing:16.1f}")
    runs[name], arrivals[name] = run, arrival
    audit = {x.name: x.verdict for x in run.audit().findings}
    assert all(audit[x] == "well" for x in ("outcome", "steps", "energy"))
    assert np.abs(run.momentum).max() < 1e-9  # nothing acts from outside
print("momentum stays zero to 1e-9 N s and N m s; energy is that of the drives and dampers")
