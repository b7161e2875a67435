"""Swing-up by direct shooting: sl.gradient and SciPy find the forces that lift a cart-pole and a five-bar.

The unknowns are the motors' forces, one for each of N intervals. A simulation gives the motion, sl.gradient the
derivative of a cost of its end and of its effort by all forces at once, and L-BFGS-B of SciPy moves the forces, inside
their bounds. The weight of the end grows from solve to solve, until the mechanism ends upright and at rest.

The five-bar is a closed loop: every step of the run, and of its derivative, is projected to closed loops.

The page, with figures: docs/examples/31_swing_up.md
"""

import numpy as np
from scipy.optimize import minimize

import spanloop as sl

STEP, HOLD = 5e-3, 8  # s; steps for which a force is constant


def torques_of(forces, motors, nv, repeats):
    """tau (steps, nv) of forces (N, n) at these degrees of freedom, each for as many steps."""
    tau = np.zeros((repeats * len(forces), nv))
    tau[:, motors] = np.repeat(forces, repeats, axis=0)
    return tau


def shoot(robot, start, motors, running, miss, forces, bound, weights):
    """Forces (N, n) inside bounds that bring miss(q, v) to zero with the least integral of running(t, q, v, tau)."""

    def objective(x, weight):
        found = sl.gradient(
            robot,
            lambda q, v: weight * miss(q, v),
            start,
            duration=STEP * HOLD * len(forces),
            step=STEP,
            integrator="rk4",
            tau=torques_of(x.reshape(forces.shape), motors, robot.model.nv, HOLD),
            running=running,
            wrt="tau",
        )
        return float(found.value), found.tau[:, motors].reshape(len(forces), HOLD, -1).sum(axis=1).ravel()

    bounds, options = [(-bound, bound)] * forces.size, {"maxiter": 150, "maxcor": 30}
    for weight in weights:
        found = minimize(objective, forces.ravel(), (weight,), "L-BFGS-B", jac=True, bounds=bounds, options=options)
        forces = found.x.reshape(forces.shape)
    return forces


def checked(robot, start, motors, forces, upright):
    """The run in steps of a fifth, audited; it ends upright and at rest."""
    tau = torques_of(forces, motors, robot.model.nv, 5 * HOLD)
    run = sl.simulate(robot, start, duration=STEP * HOLD * len(forces), step=STEP / 5, integrator="rk4", tau=tau)
    assert all(x.verdict == "well" for x in run.audit().findings)
    off = np.abs(np.exp(1j * run.q[-1]) - np.exp(1j * upright)).max()  # whole turns do not count
    assert off < 2e-3
    assert np.abs(run.v[-1]).max() < 2e-2
    print(f"  {forces.size} forces, at most {np.abs(forces).max():.0f} N or N m, in {run.duration:.1f} s")
    print("  it ends within 0.002 rad or m of upright, slower than 0.02 rad/s or m/s; the audit is well")
    return run


# ---- a cart-pole: one force for two degrees of freedom

b = sl.Builder("cart_pole").body("cart", 1.0, inertia=(0.01, 0.01, 0.01))
b.body("pole", 0.3, (0.0, 0.0, -0.5), (0.0063, 0.0063, 0.0))
b.prismatic("rail", "world", "cart", "x").revolute("hinge", "cart", "pole", "y", actuated=False)
cart_pole = sl.Dynamics(b.build())


def effort(t, q, v, tau):
    return 0.01 * tau[0] ** 2


def off_upright(q, v):
    """Zero where the pole stands above the middle of the rail, at rest."""
    return q[0] ** 2 + 2.0 * (1.0 + np.cos(q[1])) + 0.1 * (v[0] ** 2 + v[1] ** 2)


print("cart-pole")
first = 0.5 * np.sin(np.linspace(0.0, 2.0 * np.pi, 40))[:, None]
force = shoot(cart_pole, np.zeros(2), [0], effort, off_upright, first, 12.0, (1.0, 30.0, 1e3, 3e4))
cart_run = checked(cart_pole, np.zeros(2), [0], force, np.array([0.0, np.pi]))
print(f"  the cart uses {np.ptp(cart_run.q[:, 0]):.1f} m of its rail")

# ---- a five-bar: two motors, one closed loop

BASE = 0.4  # m
model = sl.zoo.five_bar(base=BASE).with_joint("*", damping=0.5)
five_bar = sl.Dynamics(model)
guess = sl.zoo.five_bar_start(base=BASE, angles=(-1.8, -1.3))
hanging = sl.simulate(model.with_joint("*", damping=3.0), guess, duration=60.0, step=5e-3, sample=1.0).q[-1]
upright = five_bar.assemble(-hanging)  # gravity acts along −y: the mirror image is in balance, too


def turning_effort(t, q, v, tau):
    return 1e-3 * (tau[0] ** 2 + tau[2] ** 2) + 0.01 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2 + v[3] ** 2)


def off_the_top(q, v):
    """Zero where all bars stand as in `upright`, at rest."""
    near = 2.0 - np.cos(q[0] - upright[0]) - np.cos(q[2] - upright[2])
    far = 2.0 - np.cos(q[0] + q[1] - upright[0] - upright[1]) - np.cos(q[2] + q[3] - upright[2] - upright[3])
    return 2.0 * (near + far) + 0.02 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2 + v[3] ** 2)


print("five-bar")
stable = [five_bar.modes(q, np.zeros(4)).is_stable for q in (hanging, upright)]
print(f"  hanging is {'stable' if stable[0] else 'unstable'}, upright is {'stable' if stable[1] else 'unstable'}")
first = 20.0 * np.sin(2.4 * np.pi * np.linspace(0.0, 1.0, 50))[:, None] * np.ones(2)
torque = shoot(five_bar, hanging, [0, 2], turning_effort, off_the_top, first, 25.0, (1.0, 30.0, 1e3, 3e4))
run = checked(five_bar, hanging, [0, 2], torque, upright)
print(f"  the loop stays closed to {run.residual:.0e} rad or of its length")
