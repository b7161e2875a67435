"""Steps in plain NumPy over `Dynamics` calls: what compiled rollouts must reproduce."""

from __future__ import annotations

import numpy as np


def rk4(accelerate, move, q, v, h, t=0.0):
    """One step of fourth order; accelerate(t, q, v), move(q, delta). Rotations by two exponentials
    [Celledoni, Marthinsen & Owren 2003]."""
    a1 = accelerate(t, q, v)
    q2, v2 = move(q, 0.5 * h * v), v + 0.5 * h * a1
    a2 = accelerate(t + 0.5 * h, q2, v2)
    q3, v3 = move(q, 0.5 * h * v2), v + 0.5 * h * a2
    a3 = accelerate(t + 0.5 * h, q3, v3)
    q4, v4 = move(q2, h * v3 - 0.5 * h * v), v + h * a3
    a4 = accelerate(t + h, q4, v4)
    first = move(q, h / 12 * (3 * v + 2 * v2 + 2 * v3 - v4))
    return move(first, h / 12 * (-v + 2 * v2 + 2 * v3 + 3 * v4)), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def euler(accelerate, move, q, v, h, t=0.0):
    """Semi-implicit."""
    v = v + h * accelerate(t, q, v)
    return move(q, h * v), v


def midpoint(accelerate, move, q, v, h, t=0.0):
    """Implicit, by repetition until nothing changes."""
    a = accelerate(t, q, v)
    for _ in range(200):
        middle = v + 0.5 * h * a
        new = accelerate(t + 0.5 * h, move(q, 0.5 * h * middle), middle)
        done = np.abs(new - a).max() * h < 1e-15
        a = new
        if done:
            break
    half = 0.5 * h * (v + 0.5 * h * a)
    return move(move(q, half), half), v + h * a


STEPS = {"rk4": rk4, "euler": euler, "midpoint": midpoint}


def steps(method, robot, q, v, h, n, torque=None, project=False):
    """q, v after n steps; torque(t, q, v); project: back to the closed loops after each step."""
    zero = np.zeros(robot.model.nv)

    def accelerate(t, q, v):
        return robot.forward_dynamics(q, v, zero if torque is None else torque(t, q, v))

    for k in range(n):
        q, v = STEPS[method](accelerate, robot.integrate, q, v, h, k * h)
        if project:
            q, v = robot.project(q, v)
    return q, v
