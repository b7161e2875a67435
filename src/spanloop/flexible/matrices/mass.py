"""The mass of a finite-element model with n shapes, as particles (math/flexible.py).

What the equations need of the mass are products of the functions 1, x, y, z and φ_i,x, φ_i,y, φ_i,z over it. A function
with value s at the nodes is embedded along each axis: displacements s there, and of nodes that have rotations those
that cost least strain energy. The mass matrix has the products of functions along one axis. For solids all axes give
the same ones, those of the finite elements. Particles are a factor of the matrix of products.

Momentum for unit modal rates, modal masses and the rigid inertia at η = 0 are those of the mass matrix, to rounding:
`Sections` has the inertia of rotations that the particles lack, as constants. docs/theory/flexible.md, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices.eccentric import eccentric_masses
from spanloop.flexible.matrices.interfaces import rigid_vectors
from spanloop.flexible.particles import antisymmetric, axial, triangular, tuples
from spanloop.math.flexible import Particles, Sections

_ROUNDING = 1e-14  # of the largest product: smaller eigenvalues are rounding
_NOTHING = 1e-11  # of the largest function of its kind: a smaller one is rounding


@dataclass(frozen=True, eq=False)
class MassMoments:
    """Of n shapes and the rigid body, in the frame of the root.

    rigid (6, 6): RᵀM R; momentum (6, n): RᵀM T, displacement first; masses (n, n): TᵀM T
    functions (r, 4 + 3n): values at r particles of 1, x, y, z, and φ_i along x, y, z for each i
    swirls (n, n, 3): ∫ φ_j × φ_i at [i, j], where it is known beside the functions
    """

    rigid: np.ndarray
    momentum: np.ndarray
    masses: np.ndarray
    functions: np.ndarray
    swirls: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of shapes."""
        return len(self.masses)

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(np.trace(self.rigid[:3, :3]) / 3.0)

    @property
    def center(self) -> np.ndarray:
        """Centre of mass (3,) [m]."""
        S = self.rigid[3:, :3] / self.mass  # [c]×
        return 0.5 * np.array([S[2, 1] - S[1, 2], S[0, 2] - S[2, 0], S[1, 0] - S[0, 1]])

    @property
    def inertia(self) -> np.ndarray:
        """Inertia (3, 3) about the centre of mass [kg m²]."""
        c, own = self.center, self.rigid[3:, 3:]
        return 0.5 * (own + own.T) - self.mass * (c @ c * np.eye(3) - np.outer(c, c))

    def particles(self, bent: np.ndarray) -> Particles:
        """Particles and constant inertia of rotations; bent (n, n, 3, 4): g_ik = bent · (1, x, y, z)."""
        n, r = self.n, len(self.functions)
        weights, positions = self.functions[:, 0], self.functions[:, 1:4]
        translations = self.functions[:, 4:].reshape(r, n, 3)
        seen = np.einsum("pa,pib->iab", positions, translations)
        lacking = self.momentum[3:].T - axial(seen)
        mixed = antisymmetric(lacking)
        size = np.sqrt(np.diag(self.masses))
        masses = self.masses - np.einsum("pia,pja->ij", translations, translations)
        masses = np.where(np.abs(masses) <= 1e-13 * np.outer(size, size), 0.0, masses)
        length = np.sqrt(np.abs(np.diag(self.rigid)[3:]).max())
        mixed = np.where(np.abs(mixed) <= 1e-13 * (size * length)[:, None, None], 0.0, mixed)
        second = np.einsum("ikac,pc->pika", bent, self.functions[:, :4])
        swirls = np.zeros((n, n, 3))
        if self.swirls is not None:
            crossed = axial(np.einsum("pja,pib->ijab", translations, translations))
            swirls = self.swirls - crossed
            swirls = np.where(np.abs(swirls) <= 1e-13 * np.outer(size, size)[..., None], 0.0, swirls)
        sections = Sections(
            tuples(mixed),
            tuples(antisymmetric(swirls)),
            tuples(swirls),
            tuples(np.zeros((n, n, 3))),
            tuples(masses),
        )
        return Particles(tuples(weights), tuples(positions), tuples(translations), tuples(second), sections)

    def arrays(self, bent: np.ndarray) -> dict[str, Any]:
        """The mass of a FiniteElementBody, by the names of its fields; bent: as of `particles`."""
        own, about = self.particles(bent), self.inertia
        return {
            "mass": self.mass,
            "center": self.center,
            "moments": np.array([about[i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]),
            **{name: np.array(getattr(own, name)) for name in ("weights", "positions", "translations", "bent")},
            **{name: np.array(getattr(own.sections, name)) for name in ("mixed", "swirls", "masses")},
        }


def mass_moments(fe: FiniteElements, shapes: np.ndarray, root: np.ndarray) -> MassMoments:
    """Moments of shapes (N, n), for a frame at `root`."""
    M, n = fe.mass, shapes.shape[1]
    R = rigid_vectors(fe.positions, fe.dofs, root)
    moved = np.asarray(M @ R)
    momentum = moved.T @ shapes
    masses = shapes.T @ np.asarray(M @ shapes)
    rigid = R.T @ moved
    products = _products(fe, shapes, root)
    mass = np.trace(rigid[:3, :3]) / 3.0
    # exact mass, first moments and momentum, by constants added to the functions
    first = products[0, 1:].copy()
    center = rigid[3:, :3]
    wanted = np.concatenate(
        [0.5 * np.array([center[2, 1] - center[1, 2], center[0, 2] - center[2, 0], center[1, 0] - center[0, 1]]),
         momentum[:3].T.ravel()]
    )  # fmt: skip
    delta = (wanted - first) / mass
    products[1:, 1:] += np.outer(delta, first) + np.outer(first, delta) + mass * np.outer(delta, delta)
    products[0, 1:] = products[1:, 0] = wanted
    products[0, 0] = mass
    return MassMoments(rigid, momentum, 0.5 * (masses + masses.T), factor(products, n))


def _products(fe: FiniteElements, shapes: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Products (4 + 3n, 4 + 3n) of the functions over the mass."""
    n, nodes = shapes.shape[1], len(fe.positions)
    where = fe.rows[:, :3]
    has = where >= 0
    values = np.zeros((nodes, 4 + 3 * n))
    values[:, 0], values[:, 1:4] = 1.0, fe.positions - root
    for c in range(3):
        values[has[:, c], 4 + c :: 3] = shapes[where[has[:, c], c]]
    own = np.array([-1] * 4 + [0, 1, 2] * n)  # the axis to which a function belongs
    beside = eccentric_masses(fe)
    embedding = _Embedding(replace(fe, mass=beside.without(fe.mass)), shapes, where)
    along = [embedding.products(values, own, c) for c in range(3)]
    any_axis, of = slice(0, 4), [slice(4 + c, None, 3) for c in range(3)]
    out = np.zeros_like(along[0])
    out[any_axis, any_axis] = sum(a[any_axis, any_axis] for a in along) / 3.0
    for c in range(3):
        out[any_axis, of[c]] = along[c][any_axis, of[c]]
        out[of[c], any_axis] = out[any_axis, of[c]].T
        for d in range(3):  # along both axes where both functions are known
            axes = [e for e in {c, d} if not (has[:, e] & ~(has[:, c] & has[:, d])).any()] or ([c] if c == d else [])
            if axes:
                out[of[c], of[d]] = sum(along[e][of[c], of[d]] for e in axes) / len(axes)
    out = 0.5 * (out + out.T)
    return out + beside.products(values[beside.nodes], _gradients(shapes[beside.rows[:, 3:]]))


def _gradients(rotations: np.ndarray) -> np.ndarray:
    """Gradients (k, 4 + 3n, 3) of the functions beside nodes whose rotations (k, 3, n) are known: φ + Θ × ρ."""
    k, _, n = rotations.shape
    out = np.zeros((k, 4 + 3 * n, 3))
    out[:, 1:4] = np.eye(3)
    for c, axis in enumerate(np.eye(3)):
        out[:, 4 + c :: 3] = np.cross(axis, rotations.transpose(0, 2, 1))
    return out


class _Embedding:
    """Nodal functions as displacements along an axis, with the rotations that they bring."""

    def __init__(self, fe: FiniteElements, shapes: np.ndarray, where: np.ndarray):
        self.fe, self.shapes, self.where = fe, shapes, where
        turning = np.flatnonzero((fe.dofs[:, 1] >= 3) | (fe.dofs[:, 0] < 0))
        moving = np.zeros(len(fe.dofs), dtype=bool)
        moving[where[where >= 0]] = True
        self.turning = turning if len(turning) and abs(fe.mass[turning]).sum() > 0.0 else turning[:0]
        self.solve = _condensed(fe, self.turning)
        self.rest = self._rest(moving)

    def _rest(self, moving: np.ndarray) -> np.ndarray:
        """What rotations the shapes have beyond those of their displacements (turning, n)."""
        if not len(self.turning):
            return np.zeros((0, self.shapes.shape[1]))
        only = np.where(moving[:, None], self.shapes, 0.0)
        return np.asarray(self.shapes[self.turning] - self.solve(only))

    def products(self, values: np.ndarray, own: np.ndarray, c: int) -> np.ndarray:
        """Products (f, f) of functions values (nodes, f), all along axis c."""
        nodes = np.flatnonzero(self.where[:, c] >= 0)
        rows = self.where[nodes, c]
        if not len(self.turning):
            M = self.fe.mass[rows][:, rows]
            return np.asarray(values[nodes].T @ np.asarray(M @ values[nodes]))
        d = np.zeros((len(self.fe.dofs), values.shape[1]))
        d[rows] = values[nodes]
        d[self.turning] = self.solve(d)
        mine = np.flatnonzero(own == c)
        n = self.shapes.shape[1]
        sizes = (values[:, 4:].reshape(-1, n, 3) ** 2).sum(axis=0)  # (n, 3)
        total = sizes.sum(axis=1)
        share = np.divide(sizes[:, c], total, out=np.zeros(n), where=total > 0.0)
        share = np.where(total > 1e-20 * total.max(initial=0.0), share, 0.0)
        d[np.ix_(self.turning, mine)] += self.rest * share
        return np.asarray(d.T @ np.asarray(self.fe.mass @ d))


def _condensed(fe: FiniteElements, turning: np.ndarray) -> Any:
    """A function: rotations (turning, k) of least strain energy for displacements d (N, k), zero at rotations."""
    if not len(turning):
        return None
    import scipy.sparse as sp
    from scipy.sparse.linalg import splu

    K = fe.stiffness.tocsr()[turning]
    own = K[:, turning].tocsc()
    floor = 1e-12 * np.abs(own.diagonal()).max(initial=1e-300)
    lu = splu((own + floor * sp.identity(len(turning))).tocsc())
    still = np.ones(K.shape[1])
    still[turning] = 0.0
    across = (K @ sp.diags(still)).tocsr()
    return lambda d: -lu.solve(np.ascontiguousarray(across @ d))


def factor(products: np.ndarray, n: int) -> np.ndarray:
    """Values (r, f) of the functions at r particles, with these products: exactly those with 1.

    The first particle has all mass. What is left over is positive but for rounding, and for rotations that axes
    estimate differently: such a part is left out.
    """
    size = np.sqrt(np.maximum(np.diag(products), 0.0))
    first = np.sqrt(products[0, 0])
    along = products[0] / first
    rest = (products - np.outer(along, along))[1:, 1:]
    most = _scale(size, n)[1:]
    own = np.sqrt(np.maximum(np.diag(rest), 0.0))
    used = own > _NOTHING * most
    scale = np.where(used, own, 1.0)
    rest = np.where(np.outer(used, used), rest, 0.0) / np.outer(scale, scale)
    w, V = np.linalg.eigh(0.5 * (rest + rest.T))
    keep = w > _ROUNDING * max(w[-1], 0.0)
    values = triangular((V[:, keep] * np.sqrt(w[keep])) * scale[:, None])
    values[~used] = 0.0
    out = np.zeros((len(products), values.shape[1] + 1))
    out[:, 0], out[1:, 1:] = np.where(np.abs(along) > 1e-15 * size, along, 0.0), values
    return np.asarray(out.T)


def _scale(size: np.ndarray, n: int) -> np.ndarray:
    """What functions of a kind are compared with: the largest of them."""
    out = size.copy()
    out[1:4] = size[1:4].max()
    if n:
        out[4:] = np.repeat(size[4:].reshape(n, 3).max(axis=1), 3)
    return out
