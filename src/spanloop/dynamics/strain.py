"""Strain energy of the modes of flexible bodies."""

from __future__ import annotations

import numpy as np

from spanloop.model import Model


def mode_energies(model: Model, joint: str, q: np.ndarray) -> np.ndarray:
    """½ k η² (..., n) of the modes at a joint [J], at coordinates q (..., nq) of the mechanism."""
    j = model.joint(joint)
    eta = q[..., model.q_slice(joint)] - np.array(j.rest)
    return np.asarray(0.5 * np.array(j.stiffness) * eta**2)
