"""Strain energy and energy of vibration of the modes of flexible bodies."""

from __future__ import annotations

import numpy as np

from spanloop.model import Model
from spanloop.model.flexible_bodies.pieces import modal, modal_masses


def mode_energies(model: Model, joint: str, q: np.ndarray) -> np.ndarray:
    """½ k η² (..., n) of the modes at a joint [J], at coordinates q (..., nq) of the mechanism."""
    j = model.joint(joint)
    eta = q[..., model.q_slice(joint)] - np.array(j.rest)
    return np.asarray(0.5 * np.array(j.stiffness) * eta**2)


def vibration_energies(model: Model, joint: str, v: np.ndarray) -> np.ndarray:
    """½ m η̇² (..., n) of the modes at a joint [J], at rates v (..., nv): what moves with the root is left out."""
    masses = modal_masses(modal(model.joint(joint)))
    return np.asarray(0.5 * masses * v[..., model.v_slice(joint)] ** 2)
