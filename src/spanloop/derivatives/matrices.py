"""Derivatives of the dynamics by all DoF, as views of one array: what `derivatives` of a tree returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(eq=False, slots=True)  # not frozen: it is made in half the time
class Derivatives:
    """Derivatives of the accelerations by all positions (in joint rates), rates and torques."""

    da: np.ndarray  # (..., nv, 3 nv): da_dq, da_dv and da_dtau side by side

    @property
    def da_dq(self) -> np.ndarray:
        """(..., nv, nv): by positions, in joint rates."""
        return self.da[..., : self.da.shape[-2]]

    @property
    def da_dv(self) -> np.ndarray:
        """(..., nv, nv): by rates."""
        return self.da[..., self.da.shape[-2] : 2 * self.da.shape[-2]]

    @property
    def da_dtau(self) -> np.ndarray:
        """(..., nv, nv): by torques; of a driven joint by its acceleration."""
        return self.da[..., 2 * self.da.shape[-2] :]


@dataclass(eq=False, slots=True)
class TorqueDerivatives:
    """Derivatives of the torques by all positions (in joint rates), rates and accelerations."""

    dtau: np.ndarray  # (..., nv, 3 nv): dtau_dq, dtau_dv and dtau_da side by side

    @property
    def dtau_dq(self) -> np.ndarray:
        """(..., nv, nv): by positions, in joint rates."""
        return self.dtau[..., : self.dtau.shape[-2]]

    @property
    def dtau_dv(self) -> np.ndarray:
        """(..., nv, nv): by rates."""
        return self.dtau[..., self.dtau.shape[-2] : 2 * self.dtau.shape[-2]]

    @property
    def dtau_da(self) -> np.ndarray:
        """(..., nv, nv): by accelerations, the mass matrix."""
        return self.dtau[..., 2 * self.dtau.shape[-2] :]
