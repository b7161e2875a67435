"""Adaptive steps: SciPy's integrators on the compiled right-hand side, brought back to the closed loops between steps.

The state of the integrator is (q, v) with dq/dt from the joints' rates; quaternions are made of unit length again, and
loops closed, when they have drifted by more than a part of the tolerance. Then the integrator starts anew from there.
"""

from __future__ import annotations

METHODS = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")


def integrate(*_):
    raise NotImplementedError
