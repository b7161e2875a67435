"""A Stewart platform moves from pose to pose with the least effort: direct shooting through six closed loops.

The unknowns are the forces of the six legs in 20 intervals. The effort is the integral of the squares of the forces;
the end is where the legs have the lengths of the goal, at rest, its weight grows from solve to solve. sl.gradient
differentiates the whole run, with every step projected to closed loops, and L-BFGS-B moves the forces. The search
begins with the forces of a cycloidal path, which inverse dynamics gives.

The page, with figures: docs/examples/32_minimum_effort.md
"""

import numpy as np
from scipy.optimize import minimize

import spanloop as sl

DURATION, N, HOLD = 0.4, 20, 8  # s; intervals, steps of each
STEP = DURATION / (N * HOLD)

model, start = sl.zoo.stewart(), sl.zoo.stewart_start()
robot = sl.Dynamics(model)
LEGS = [f"slide{k}" for k in range(1, 7)]
legs_q = [model.q_slice(name).start for name in LEGS]
legs_v = [model.v_slice(name).start for name in LEGS]

# ---- the goal: 0.15 m aside and 0.1 m up, turned by 0.3 rad

goal = robot.pose(start, "platform")
goal[:3, 3] += (0.15, 0.1, 0.1)
c, s = np.cos(0.3), np.sin(0.3)
goal[:3, :3] = np.array([(1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)]) @ goal[:3, :3]
end = robot.inverse_kinematics({"platform": goal}, start).q

# ---- a cycloidal path, and its forces

t = np.linspace(0.0, DURATION, 401)
lengths, rates, growth = sl.zoo.cycloidal_path(start[legs_q], end[legs_q], DURATION, t)
motions = {name: (lengths[:, [k]], rates[:, [k]], growth[:, [k]]) for k, name in enumerate(LEGS)}
path_tau = robot.inverse_dynamics(*robot.follow(start, motions))[:, legs_v]
path_effort = np.trapezoid((path_tau**2).sum(axis=1), t)

# ---- direct shooting


def tau_of(forces, repeats):
    """tau (steps, nv) of forces (N, 6), each for as many steps."""
    tau = np.zeros((repeats * N, model.nv))
    tau[:, legs_v] = np.repeat(forces, repeats, axis=0)
    return tau


def effort(t, q, v, tau):
    return sum(tau[k] ** 2 for k in legs_v)


def miss(q, v):
    """Squares of what the legs lack in length, and of their rates."""
    return sum((q[k] - end[k]) ** 2 for k in legs_q) + 0.02 * sum(v[k] ** 2 for k in legs_v)


def objective(x, weight):
    found = sl.gradient(
        robot,
        lambda q, v: weight * miss(q, v),
        start,
        duration=DURATION,
        step=STEP,
        integrator="rk4",
        tau=tau_of(100.0 * x.reshape(N, 6), HOLD),
        running=effort,
        wrt="tau",
    )
    slope = found.tau[:, legs_v].reshape(N, HOLD, 6).sum(axis=1)
    return float(found.value) / path_effort, 100.0 / path_effort * slope.ravel()


x = path_tau[(np.arange(N) * 400 + 200) // N].ravel() / 100.0
for weight in (1e6, 1e8, 1e10):
    x = minimize(objective, x, (weight,), "L-BFGS-B", jac=True, options={"maxiter": 150, "maxcor": 40}).x
forces = 100.0 * x.reshape(N, 6)

# ---- checked in steps of a quarter

run = sl.simulate(robot, start, duration=DURATION, step=STEP / 4, integrator="rk4", tau=tau_of(forces, 4 * HOLD))
assert all(f.verdict == "well" for f in run.audit().findings)
reached = robot.pose(run.q[-1], "platform")
assert np.abs(reached - goal).max() < 1e-4
assert np.abs(run.v[-1]).max() < 1e-2
least = DURATION / N * (forces**2).sum()
print(f"{forces.size} forces; the platform ends within 0.1 mm and 0.1 mrad of its goal, slower than 0.01 m/s or rad/s")
print(
    f"effort of the smooth path: {path_effort:.0f} N² s, of the solution: {least:.0f} N² s, {least / path_effort:.0%}"
)
print(f"largest forces: {np.abs(path_tau).max():.0f} N and {np.abs(forces).max():.0f} N")
print(f"six loops stay closed to {run.residual:.0e} rad or of their length")
