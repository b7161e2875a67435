"""Motions that owe nothing to the library: closed forms, published digits, SciPy on equations written here."""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.special import ellipj, ellipkinc

# Andrews' squeezing mechanism at t = 0.03 s: q₁ ... q₇ of the Test Set for Initial Value Problem Solvers, release 2.4,
# problem "Andrews' squeezing mechanism", its file andrews.f (PSIDE with tolerances of 1e-14).
ANDREWS = {
    "beta": 15.81077119629904,
    "theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}


def fall(accelerate, q, times) -> np.ndarray:
    """q (n, nq) at the times, from rest at q (nq,), of a motion with a = accelerate(q, v), by DOP853 at its limit."""
    n = len(q)
    found = solve_ivp(
        lambda t, y: np.concatenate((y[n:], accelerate(y[:n], y[n:]))),
        (times[0], times[-1]),
        np.concatenate((q, np.zeros(n))),
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
        t_eval=times,
    )
    return found.y[:n].T


class FiveBar:
    """Saha's five-bar in the angles of its four rods against the x axis: near 1, far 1, near 2, far 2.

    A rod of length l that starts at the end of another of length L, with m, the mass of the outer one:
    kinetic energy ½ (m_near l²/3 + m_far L²) ω² + ½ m_far l²/3 ω'² + ½ m_far L l cos(angle between) ω ω'.
    """

    lengths = ((0.6, 1.1), (0.7, 1.2))
    masses = ((3.0, 1.6), (2.0, 1.1))
    gravity = 9.81

    def acceleration(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """From M a + h = Jᵀ λ, J a + γ = 0, as one dense system."""
        M, h, J, gamma = np.zeros((4, 4)), np.zeros(4), np.zeros((2, 4)), np.zeros(2)
        for leg, ((L, l), (m, n)) in enumerate(zip(self.lengths, self.masses, strict=True)):
            i, j = 2 * leg, 2 * leg + 1
            c, s = cos(x[i] - x[j]), sin(x[i] - x[j])
            M[i, i], M[j, j] = m * L * L / 3 + n * L * L, n * l * l / 3
            M[i, j] = M[j, i] = 0.5 * n * L * l * c
            h[i] = 0.5 * n * L * l * s * w[j] ** 2 + self.gravity * (0.5 * m + n) * L * cos(x[i])
            h[j] = -0.5 * n * L * l * s * w[i] ** 2 + self.gravity * 0.5 * n * l * cos(x[j])
            sign = 1.0 - 2.0 * leg
            for k, length in ((i, L), (j, l)):
                J[:, k] = sign * length * np.array((-sin(x[k]), cos(x[k])))
                gamma -= sign * length * w[k] ** 2 * np.array((cos(x[k]), sin(x[k])))
        system = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
        return np.linalg.solve(system, np.concatenate((-h, -gamma)))[:4]

    def in_line(self, x: np.ndarray) -> float:
        """When, from rest at x (4,), the far rods first come in line [s]."""

        def event(t, y):
            return sin(y[1] - y[3])

        event.terminal = True  # type: ignore[attr-defined]
        found = solve_ivp(
            lambda t, y: np.concatenate((y[4:], self.acceleration(y[:4], y[4:]))),
            (0.0, 2.0),
            np.concatenate((x, np.zeros(4))),
            method="DOP853",
            rtol=1e-13,
            atol=1e-13,
            events=event,
        )
        return float(found.t_events[0][0])


class FreeBody:
    """A rigid body without torque, moments I₁ < I₂ < I₃, that starts with ω = (a, 0, c), L² > 2 E I₂.

    [Landau & Lifshitz, Mechanics, §37]: ω by Jacobi's elliptic functions. The attitude follows from L, which is
    constant in the world, and from the turn φ about it, dφ/dt = L (I₁ ω₁² + I₂ ω₂²) / (I₁² ω₁² + I₂² ω₂²).
    """

    moments = np.array((1.5, 2.0, 3.0))
    start = np.array((0.9, 0.0, 0.7))

    def __init__(self):
        self.double_energy = float(self.moments @ self.start**2)
        self.length = float(np.linalg.norm(self.moments * self.start))

    def angular_velocity(self, t: float) -> np.ndarray:
        """ω (3,) in the body."""
        (i1, i2, i3), e, square = self.moments, self.double_energy, self.length**2
        rate = sqrt((i3 - i2) * (square - e * i1) / (i1 * i2 * i3))
        sn, cn, dn, _ = ellipj(rate * t, (i2 - i1) * (e * i3 - square) / ((i3 - i2) * (square - e * i1)))
        return np.array(
            (
                sqrt((e * i3 - square) / (i1 * (i3 - i1))) * cn,
                sqrt((e * i3 - square) / (i2 * (i3 - i2))) * sn,
                sqrt((square - e * i1) / (i3 * (i3 - i1))) * dn,
            )
        )

    def attitude(self, t: float) -> np.ndarray:
        """Rotation (3, 3) of the body in the world, the identity at the start."""
        return self._seen_from_momentum(0.0) @ self._seen_from_momentum(t).T if t else np.eye(3)

    def _seen_from_momentum(self, t: float) -> np.ndarray:
        """Columns: axes, fixed in the world, of which the third is along L; in the body."""
        momentum = self.moments * self.angular_velocity(t)
        third = momentum / self.length
        across = np.array((momentum[1], -momentum[0], 0.0)) / np.hypot(momentum[0], momentum[1])  # line of nodes
        turn = quad(self._turning, 0.0, t, epsabs=1e-14, epsrel=1e-14)[0]
        along = np.cross(third, across)
        first = cos(turn) * across - sin(turn) * along
        return np.column_stack((first, np.cross(third, first), third))

    def _turning(self, t: float) -> float:
        w, i = self.angular_velocity(t)[:2], self.moments[:2]
        return float(self.length * (i @ w**2) / (i**2 @ w**2))


def pendulum_time(angle: float, start: float, frequency: float) -> float:
    """When a pendulum from rest at `start` first passes `angle` [s]; frequency: of small swings [rad/s].

    sin(θ/2) = k sn(K − ω t), k = sin(start/2).
    """
    k = sin(0.5 * start)
    quarter, rest = ellipkinc(0.5 * np.pi, k * k), ellipkinc(np.arcsin(sin(0.5 * angle) / k), k * k)
    return float(quarter - rest) / frequency
