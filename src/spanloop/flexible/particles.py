"""The mass of a rod as few particles (math/flexible.py), and its rigid moments.

The axis of the rod has its mass at the Gauss points. All that is needed of it are products of the functions 1, x, φ_i
and g_ik, weighted by the mass. Written in an orthonormal basis, they are as many particles as the functions have
independent ones. What is less than 1e-7 of every function is left out: it would change products by 1e-14.
"""

from __future__ import annotations

import numpy as np

from spanloop.flexible.rod import Fields, Rod
from spanloop.math.flexible import Particles, Sections

_NEGLIGIBLE = 1e-7  # of the functions' size: the share of a direction of their space that is left out
_DEPENDENT = 1e-11  # of a function's size: what it adds to the functions before it is rounding
_ROUNDING = 1e-15  # of a function's size: smaller coordinates are zero


def rigid_moments(rod: Rod) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass [kg], first (3,) and second (3, 3) moment about the root, sections included."""
    mass, inertia = rod.properties["mass"] * rod.weights, _section_inertia(rod).sum(axis=0)
    second = np.diag(0.5 * inertia.sum() - inertia)
    second[0, 0] += mass @ rod.points**2
    return float(mass.sum()), np.array([mass @ rod.points, 0.0, 0.0]), second


def particles(rod: Rod, fields: Fields, g: np.ndarray) -> Particles:
    """The particles of modes with these fields, and their second-order displacement g (n, n, points, 3)."""
    n, root = len(fields.u), np.sqrt(rod.properties["mass"] * rod.weights)
    columns: list[tuple[tuple, np.ndarray]] = []  # where a function belongs, and the function times the root of mass
    columns += [(("bent", i, k, a), g[i, k, :, a]) for i in range(n) for k in range(i + 1) for a in range(3)]
    columns += [(("translation", i, a), fields.u[i, :, a]) for i in range(n) for a in range(3)]
    columns += [(("position",), rod.points), (("weight",), np.ones_like(rod.points))]
    places, functions = [c for c, _ in columns], np.array([root * f for _, f in columns])
    sizes = np.linalg.norm(functions, axis=1)
    used = np.flatnonzero(sizes > _ROUNDING * sizes.max())
    coordinates = triangular(_projected(functions[used]))
    count = coordinates.shape[1]
    weights, positions = np.zeros(count), np.zeros((count, 3))
    translations, bent = np.zeros((count, n, 3)), np.zeros((count, n, n, 3))
    for place, row in zip([places[k] for k in used], coordinates, strict=True):
        kind, at = place[0], place[1:]
        if kind == "bent":
            i, k, a = at
            bent[:, i, k, a] = bent[:, k, i, a] = row
        elif kind == "translation":
            translations[:, at[0], at[1]] = row
        elif kind == "position":
            positions[:, 0] = row
        else:
            weights[:] = row
    return Particles(tuples(weights), tuples(positions), tuples(translations), tuples(bent), _sections(rod, fields))


def _projected(functions: np.ndarray) -> np.ndarray:
    """Coordinates (functions, r) of functions (functions, points) in the directions in which any of them counts."""
    sizes = np.linalg.norm(functions, axis=1, keepdims=True)
    _, s, directions = np.linalg.svd(functions / sizes, full_matrices=False)
    return np.asarray(functions @ directions[s > _NEGLIGIBLE * s[0]].T)


def triangular(functions: np.ndarray) -> np.ndarray:
    """Coordinates (functions, particles) of functions (functions, r) in an orthonormal basis of their own.

    Function k has coordinates along the first basis vectors only; those without own digits add none.
    """
    basis: list[np.ndarray] = []
    rows = []
    for f in functions:
        size, rest, row = np.linalg.norm(f), f.copy(), np.zeros(len(basis))
        for _ in range(2):  # the second time removes what rounding left
            for k, e in enumerate(basis):
                along = e @ rest
                row[k] += along
                rest = rest - along * e
        row[np.abs(row) <= _ROUNDING * size] = 0.0
        left = np.linalg.norm(rest)
        if left > _DEPENDENT * size:
            basis.append(rest / left)
            row = np.append(row, left)
        rows.append(row)
    return np.array([np.pad(row, (0, len(basis) - len(row))) for row in rows])


def _section_inertia(rod: Rod) -> np.ndarray:
    """Rotary inertia (points, 3) of the sections about x, y and z [kg m²]."""
    return np.stack([rod.properties[name] * rod.weights for name in ("polar", "about_y", "about_z")], axis=1)


def _sections(rod: Rod, fields: Fields) -> Sections:
    """The rotary inertia of sections that turn by Θ; where bending has none (no `about_y`, `about_z`) only by torsion.

    With the second moments j of a section, C_i = ∫ j [Θ_i]ᵀ, C_ij = ∫ [Θ_i] j [Θ_j]ᵀ, E_ij = ∫ ½ j ([Θ_i][Θ_j] + …)ᵀ.
    """
    thick = rod.properties["about_y"].any() or rod.properties["about_z"].any()
    theta = fields.theta if thick else fields.theta * np.array([1.0, 0.0, 0.0])
    across = np.stack([rod.properties[name] * rod.weights for name in ("across_y", "across_z")])
    j = np.zeros((len(rod.points), 3, 3))
    j[:, 1, 1], j[:, 2, 2] = across
    turn = skew(theta)
    mixed = np.einsum("pac,ipbc->iab", j, turn)
    pairs = np.einsum("ipac,pcd,jpbd->ijab", turn, j, turn)
    twice = np.einsum("ipac,kpcb->ikpab", turn, turn)
    bent = np.einsum("pac,ikpbc->ikab", j, 0.5 * (twice + twice.swapaxes(0, 1)))
    size = np.sqrt(np.einsum("iiaa->i", pairs))
    most = np.multiply.outer(size, size)
    moved = pairs.swapaxes(0, 1)  # C_ji at [i, j]
    return Sections(
        tuples(mixed),
        tuples(_tidy(moved + bent, most[:, :, None, None])),
        tuples(_tidy(axial(moved), most[:, :, None])),
        tuples(_tidy(axial(bent), most[:, :, None])),
        tuples(_tidy(np.einsum("ijaa->ij", pairs), most)),
    )


def skew(a: np.ndarray) -> np.ndarray:
    """[a]× (..., 3, 3)."""
    x, y, z, zero = a[..., 0], a[..., 1], a[..., 2], np.zeros_like(a[..., 0])
    return np.stack([np.stack([zero, -z, y], -1), np.stack([z, zero, -x], -1), np.stack([-y, x, zero], -1)], -2)


def axial(m: np.ndarray) -> np.ndarray:
    """∫ r × s from m = ∫ r sᵀ (..., 3, 3)."""
    pairs = ((1, 2), (2, 0), (0, 1))
    return np.stack([m[..., a, b] - m[..., b, a] for a, b in pairs], axis=-1)


def antisymmetric(a: np.ndarray) -> np.ndarray:
    """The antisymmetric matrices (..., 3, 3) m = ∫ r sᵀ of given ∫ r × s (..., 3)."""
    return -0.5 * skew(a)


def _tidy(a: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The numbers without residues of rounding; most: what they could be."""
    return np.where(np.abs(a) <= 1e-13 * most, 0.0, a)


def tuples(a: np.ndarray):
    """Nested tuples of floats."""
    return tuple(tuples(x) for x in a) if a.ndim else float(a)
