"""Calls for contacts: where their points are, and how the two sides move on each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.types import Array


@dataclass(frozen=True, eq=False)
class ContactGeometry:
    """The n contact points of a state or of a batch of states, in world axes; batch axes come first.

    names: of the points, in order. gap (..., n): distance of the surfaces [m], negative where they overlap.
    point (..., n, 3): on the surface of the rounder shape; between two round ones it divides the gap as their radii
    [m]. normal (..., n, 3): from side b to side a.
    axes (..., n, 3, 3): unit vectors n, t1, t2 as rows, right-handed.
    slip (..., n, 3) [m/s]: velocity of side a relative to the surface of side b at the point; gap_rate (..., n) [m/s]:
    its part along the normal; spin (..., n, 3) [rad/s]: angular velocity of a relative to b. None without v.
    """

    names: tuple[str, ...]
    gap: Array
    point: Array
    normal: Array
    axes: Array
    gap_rate: Array | None = None
    slip: Array | None = None
    spin: Array | None = None

    def __str__(self) -> str:
        if self.gap.ndim > 1:
            return f"{len(self.names)} contact points of {self.gap.shape[:-1]} states"
        width = max(map(len, self.names))
        rows = [f"{'point':{width}s}  {'gap [mm]':>12s}  position [m]"]
        for name, gap, point in zip(self.names, self.gap, self.point, strict=True):
            rows.append(f"{name:{width}s}  {1e3 * gap:12.6f}  ({', '.join(f'{x:.6f}' for x in point)})")
        return "\n".join(rows)


def contact_geometry(
    kernel: Callable[[str], Any], names: tuple[str, ...], q: ArrayLike, v: ArrayLike | None
) -> ContactGeometry:
    """The contact points at q, with velocities where v is given; kernel: of a function of the catalog."""
    found = kernel("contact_geometry")(q)
    axes = found[..., 4:].reshape(*found.shape[:-1], 3, 3)
    gap, point = found[..., 0], found[..., 1:4]
    if v is None:
        return ContactGeometry(names, gap, point, axes[..., 0, :], axes)
    u = kernel("contact_velocities")(q, v)
    slip, spin = (np.einsum("...k,...kx->...x", part, axes) for part in (u[..., :3], u[..., 3:]))
    return ContactGeometry(names, gap, point, axes[..., 0, :], axes, u[..., 0], slip, spin)
