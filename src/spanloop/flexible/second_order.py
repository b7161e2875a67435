"""Second-order fields of a rod whose strains are linear in modal coordinates.

With rotation R of the sections, R' = R [κ] and r' = R (e_x + Γ). To second order in the strains

    r₂' = ∫ Θ × (κ × e_x) + Θ × Γ − ½ i² κ_x² e_x,    ψ₂' = ½ Θ × κ,

where i is the polar radius of gyration of the section: fibres around the axis of a twisted rod are helices, and the
mean of their strains is the extension. r₂ is the displacement and ψ₂ the rotation vector beyond the linear ones
(docs/theory/flexible.md, section 5). The first term is the shortening of a bent rod, and how torsion turns its
deflection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.flexible.rod import POINTS, Fields, Rod, integration_matrix, point_weights

_E1 = np.array([1.0, 0.0, 0.0])


@dataclass(frozen=True)
class SecondOrder:
    """g, γ (n, n, k, 3): second derivatives of displacement and rotation by the modal coordinates.

    at Gauss points (displacement only), and at the outer end of each element.
    """

    g: np.ndarray
    g_ends: np.ndarray
    gamma_ends: np.ndarray


def second_order(rod: Rod, fields: Fields) -> SecondOrder:
    """The second-order fields of shapes given by their linear ones at the Gauss points."""
    turned = np.cross(fields.kappa, _E1)
    a, _ = _integrated(rod, _pairs(fields.theta, turned))
    slope = a + _pairs(fields.theta, fields.gamma)
    gyration = rod.properties["polar"] / rod.properties["mass"]
    twists = fields.kappa[:, :, 0]
    slope[..., 0] -= gyration * twists[:, None] * twists[None, :]
    g, g_ends = _integrated(rod, slope)
    _, gamma_ends = _integrated(rod, 0.5 * _pairs(fields.theta, fields.kappa))
    return SecondOrder(g, g_ends, gamma_ends)


def _pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a_i × b_k + a_k × b_i (n, n, points, 3)."""
    one = np.cross(a[:, None], b[None, :])
    return np.asarray(one + one.swapaxes(0, 1))


def _integrated(rod: Rod, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The integral from the root of f (n, n, points, 3): at the Gauss points, and at the outer ends of elements."""
    cut = f.reshape(*f.shape[:2], -1, POINTS, 3)
    whole = np.einsum("p,e,ikepc->ikec", point_weights(), rod.lengths, cut)
    ends = np.cumsum(whole, axis=2)
    starts = ends - whole
    inside = np.einsum("ap,e,ikepc->ikeac", integration_matrix(), rod.lengths, cut)
    return (starts[:, :, :, None] + inside).reshape(f.shape), ends
