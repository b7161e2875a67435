"""A straight rod in finite elements: displacements and rotations in each direction, stiffness and mass.

The axis of the rod is x, its root is at x = 0. Four directions are independent of each other: bending in y and in z,
torsion, extension. Each is a row of elements, of which the degrees of freedom of the root are left out.

| symbol | shape | meaning |
|---|---|---|
| u | (…, 3) | displacement of the axis |
| Θ | (…, 3) | rotation of the cross-section |
| κ = Θ' | (…, 3) | twist and curvatures |
| Γ = u' + e_x × Θ | (…, 3) | extension and shear |

Bending elements interpolate deflection and rotation together and are exact under forces at their ends
[Przemieniecki 1968, section 11]; Φ = 12 EI/(k GA l²), 0 without shear. Torsion and extension are quadratic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

DIRECTIONS = ("y", "z", "torsion", "extension")
POINTS = 6  # Gauss points an element: products of two fields are integrated exactly
_XI, _WEIGHTS = ((x + 1.0) / 2.0 if k == 0 else x / 2.0 for k, x in enumerate(np.polynomial.legendre.leggauss(POINTS)))

Property = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Fields:
    """u, Θ, κ, Γ (n, k, 3) of n shapes at k points."""

    u: np.ndarray
    theta: np.ndarray
    kappa: np.ndarray
    gamma: np.ndarray


@dataclass(frozen=True)
class Rod:
    """Edges (elements + 1,) of the elements [m], and section properties at the Gauss points, by name.

    properties: mass [kg/m], EA, kGAy, kGAz [N], GJ, EIy, EIz [N m²], and the rotary inertia of sections per length,
    polar, about_y, about_z [kg m], and their second moments ∫y², ∫z² by mass, across_y, across_z [kg m]; kGA infinite
    for rods without shear.
    """

    edges: np.ndarray
    properties: Property

    @property
    def points(self) -> np.ndarray:
        """Positions (elements · POINTS,) of the Gauss points [m]."""
        return (self.edges[:-1, None] + self.lengths[:, None] * _XI).ravel()

    @property
    def weights(self) -> np.ndarray:
        """Lengths (elements · POINTS,) that the Gauss points stand for [m]."""
        return (self.lengths[:, None] * _WEIGHTS).ravel()

    @property
    def lengths(self) -> np.ndarray:
        """Length of each element [m]."""
        return np.diff(self.edges)

    def dofs_at(self, direction: str, edge: int) -> list[int]:
        """Numbers of the degrees of freedom of a direction at an edge; none at the root."""
        if edge == 0:
            return []
        return [2 * edge - 2, 2 * edge - 1] if direction in "yz" else [2 * edge - 1]

    def matrices(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and mass (n, n) of a direction, without the degrees of freedom of the root."""
        K, M = self.free_matrices(direction)
        at_root = _at_root(direction)
        return K[at_root:, at_root:], M[at_root:, at_root:]

    def free_matrices(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and mass of a direction with those of the root, which come first."""
        at_root = _at_root(direction)
        n = at_root + 2 * len(self.lengths)
        K, M = np.zeros((n, n)), np.zeros((n, n))
        p = {name: x.reshape(-1, POINTS) for name, x in self.properties.items()}
        for e, length in enumerate(self.lengths):
            of = {name: x[e] for name, x in p.items()}
            shapes, stiffness, mass = self._element(direction, e, _XI)
            w = length * _WEIGHTS
            k = sum(np.einsum("p,pi,pj->ij", w * of[c], s, s) for c, s in stiffness(shapes) if np.isfinite(of[c]).all())
            m = sum(np.einsum("p,pi,pj->ij", w * of[c], s, s) for c, s in mass(shapes))
            own = slice(2 * e, 2 * e + 2 + at_root)
            K[own, own] += k
            M[own, own] += m
        return K, M

    def fields(self, direction: str, shapes: np.ndarray) -> Fields:
        """The fields of shapes (dofs, n) of one direction at the Gauss points."""
        return self._fields(direction, shapes, _XI)

    def end_fields(self, direction: str, shapes: np.ndarray) -> Fields:
        """The same at the outer end of each element."""
        return self._fields(direction, shapes, np.array([1.0]))

    def _fields(self, direction: str, shapes: np.ndarray, xi: np.ndarray) -> Fields:
        n, k = shapes.shape[1], len(self.lengths) * len(xi)
        found = Fields(*(np.zeros((n, k, 3)) for _ in range(4)))
        padded = np.vstack([shapes, np.zeros((1, n))])  # of the root
        for e in range(len(self.lengths)):
            at = slice(e * len(xi), (e + 1) * len(xi))
            own = padded[self._element_dofs(direction, e)]
            rows = {name: (row @ own).T for name, row in self._element(direction, e, xi)[0].items()}
            for name, (field, axis, sign) in _PLACES[direction].items():
                getattr(found, field)[:, at, axis] = sign * rows[name]
        return found

    def _element_dofs(self, direction: str, e: int) -> list[int]:
        """Numbers of an element's degrees of freedom; −1 at the root."""
        if direction in "yz":
            return [2 * e - 2, 2 * e - 1, 2 * e, 2 * e + 1] if e else [-1, -1, 0, 1]
        return [2 * e - 1, 2 * e, 2 * e + 1]

    def _element(self, direction: str, e: int, xi: np.ndarray):
        """Shape functions (points, dofs) by name, and what they contribute to stiffness and mass."""
        length = self.lengths[e]
        if direction in "yz":
            bending, shear = ("EIz", "kGAy") if direction == "y" else ("EIy", "kGAz")
            middle = slice(e * POINTS, (e + 1) * POINTS)
            ratio = 12.0 * self.properties[bending][middle].mean() / length**2
            shapes = _bending(xi, length, ratio / self.properties[shear][middle].mean())
            rotary = "about_z" if direction == "y" else "about_y"
            return (
                shapes,
                lambda s: ((bending, s["curvature"]), (shear, s["shear"])),
                lambda s: (("mass", s["deflection"]), (rotary, s["rotation"])),
            )
        stiffness, mass = ("GJ", "polar") if direction == "torsion" else ("EA", "mass")
        return (
            _quadratic(xi, length),
            lambda s: ((stiffness, s["slope"]),),
            lambda s: ((mass, s["value"]),),
        )


# where the fields of a direction are found: name of the shape function -> field, axis, sign. Bending in z turns about
# −y for a positive slope.
_PLACES = {
    "y": {
        "deflection": ("u", 1, 1.0),
        "rotation": ("theta", 2, 1.0),
        "curvature": ("kappa", 2, 1.0),
        "shear": ("gamma", 1, 1.0),
    },
    "z": {
        "deflection": ("u", 2, 1.0),
        "rotation": ("theta", 1, -1.0),
        "curvature": ("kappa", 1, -1.0),
        "shear": ("gamma", 2, 1.0),
    },
    "torsion": {"value": ("theta", 0, 1.0), "slope": ("kappa", 0, 1.0)},
    "extension": {"value": ("u", 0, 1.0), "slope": ("gamma", 0, 1.0)},
}


def _at_root(direction: str) -> int:
    """How many degrees of freedom of a direction the root has: deflection and rotation, or one."""
    return 2 if direction in "yz" else 1


def _bending(xi: np.ndarray, length: float, phi: float) -> dict[str, np.ndarray]:
    """Deflection, rotation, curvature and shear (points, 4) for deflection and rotation at both ends."""
    k = 1.0 / (1.0 + phi)
    one = np.ones_like(xi)
    deflection = [
        1 - 3 * xi**2 + 2 * xi**3 + phi * (1 - xi),
        length * (xi - 2 * xi**2 + xi**3 + phi / 2 * (xi - xi**2)),
        3 * xi**2 - 2 * xi**3 + phi * xi,
        length * (-(xi**2) + xi**3 + phi / 2 * (xi**2 - xi)),
    ]
    rotation = [
        6 / length * (xi**2 - xi),
        1 - 4 * xi + 3 * xi**2 + phi * (1 - xi),
        -6 / length * (xi**2 - xi),
        3 * xi**2 - 2 * xi + phi * xi,
    ]
    curvature = [
        6 / length**2 * (2 * xi - 1),
        (-4 + 6 * xi - phi) / length,
        -6 / length**2 * (2 * xi - 1),
        (6 * xi - 2 + phi) / length,
    ]
    shear = [-phi / length * one, -phi / 2 * one, phi / length * one, -phi / 2 * one]
    named = {"deflection": deflection, "rotation": rotation, "curvature": curvature, "shear": shear}
    return {name: k * np.stack(rows, axis=1) for name, rows in named.items()}


def _quadratic(xi: np.ndarray, length: float) -> dict[str, np.ndarray]:
    """Value and slope (points, 3) for values at both ends and in the middle."""
    value = [(1 - xi) * (1 - 2 * xi), 4 * xi * (1 - xi), xi * (2 * xi - 1)]
    slope = [(4 * xi - 3) / length, (4 - 8 * xi) / length, (4 * xi - 1) / length]
    return {"value": np.stack(value, axis=1), "slope": np.stack(slope, axis=1)}


def integration_matrix() -> np.ndarray:
    """(POINTS, POINTS): integrals of a field from the start of an element of length 1 to its Gauss points."""
    vander = np.vander(_XI, POINTS, increasing=True)
    powers = np.arange(1, POINTS + 1)
    return np.asarray((_XI[:, None] ** powers / powers) @ np.linalg.inv(vander))


def point_weights() -> np.ndarray:
    """(POINTS,): weights of the Gauss points of an element of length 1."""
    return np.asarray(_WEIGHTS)
