"""One step of fourth order for coordinates that are not a vector space (quaternions).

Classical Runge-Kutta for the rates; the coordinates follow by flows of constant velocity, `q ⊕ delta`, alone.
Averaging the four velocities in one flow would be of second order only: rotations do not commute. Here
the step is made of two flows whose weights restore the order without brackets, so that any joint with `plus`
can take part [Celledoni, Marthinsen & Owren 2003, the method of order 4]:

    q₂ = q ⊕ ½h k₁    q₃ = q ⊕ ½h k₂    q₄ = q₂ ⊕ h (k₃ − ½ k₁)
    q₊ = q ⊕ h/12 (3k₁ + 2k₂ + 2k₃ − k₄) ⊕ h/12 (−k₁ + 2k₂ + 2k₃ + 3k₄)

k₁ ... k₄ are the velocities v at the four stages. Where coordinates add up this is classical Runge-Kutta.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Accelerate = Callable[[np.ndarray, np.ndarray], np.ndarray]
Move = Callable[[np.ndarray, np.ndarray], np.ndarray]


def step(accelerate: Accelerate, move: Move, q: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """State (q (nq,), v (nv,)) after h [s]; accelerate(q, v) gives a (nv,), move(q, delta) q ⊕ delta."""
    half = 0.5 * h
    a1 = accelerate(q, v)
    q2, v2 = move(q, half * v), v + half * a1
    a2 = accelerate(q2, v2)
    q3, v3 = move(q, half * v2), v + half * a2
    a3 = accelerate(q3, v3)
    q4, v4 = move(q2, h * v3 - half * v), v + h * a3
    a4 = accelerate(q4, v4)
    middle = 2.0 * (v2 + v3)
    k = h / 12.0
    first = move(q, k * (3.0 * v + middle - v4))
    return move(first, k * (middle - v + 3.0 * v4)), v + 2.0 * k * (a1 + 2.0 * (a2 + a3) + a4)
