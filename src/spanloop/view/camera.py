"""A view from far away: points of space on a flat picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Camera:
    """azimuth [rad], 0 looks along +y with x to the right; elevation [rad]."""

    azimuth: float = 0.0
    elevation: float = 0.0

    def seen(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) [m] as (..., 2): right and up [m]."""
        s, c = np.sin(self.azimuth), np.cos(self.azimuth)
        up, ahead = np.sin(self.elevation), np.cos(self.elevation)
        return points @ np.array([(c, s, 0.0), (-s * up, c * up, ahead)]).T

    def nearness(self, points: np.ndarray) -> np.ndarray:
        """How near points (..., 3) are to the viewer [m]."""
        s, c = np.sin(self.azimuth), np.cos(self.azimuth)
        up, ahead = np.sin(self.elevation), np.cos(self.elevation)
        return points @ np.array([s * ahead, -c * ahead, up])
