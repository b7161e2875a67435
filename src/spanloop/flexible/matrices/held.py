"""A finite-element model with some of its interfaces held: static shapes and natural modes, by one factorisation.

    [K  Wᵀ] [y]   [f]
    [W  0 ] [λ] = [c]       y: coordinates that are not held, W: rows of mean interfaces that are held

Unknowns are eliminated by nested dissection of the places of their nodes: a plane across the longest side of a box
divides it, and what is coupled across the plane comes last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.flexible import reduction
from spanloop.flexible.matrices.interfaces import Tied

_DENSE = 500  # unknowns: smaller problems are solved in whole
_PIVOTS = 20000
_LEAF = 60
_MOST = 300  # modes that are searched


@dataclass(frozen=True, eq=False)
class Held:
    """The model with the interfaces `names` held."""

    tied: Tied
    names: tuple[str, ...]
    shift: float = 0.0  # [rad²/s²]: stiffness has this multiple of the mass, for models that nothing holds

    @cached_property
    def free(self) -> np.ndarray:
        """Places in z of what is not held by a rigid interface."""
        fixed = np.zeros(self.tied.size, dtype=bool)
        for name in self.names:
            if name in self.tied.rigid:
                fixed[self.tied.rigid[name]] = True
        return np.flatnonzero(~fixed)

    @property
    def means(self) -> tuple[str, ...]:
        """Names of the mean interfaces that are held."""
        return tuple(name for name in self.names if name in self.tied.means)

    @cached_property
    def K(self) -> Any:
        """Stiffness of what is free."""
        own = self.tied.stiffness[self.free][:, self.free].tocsc()
        return own + self.shift * self.M if self.shift else own

    @cached_property
    def M(self) -> Any:
        """Mass of what is free."""
        return self.tied.mass[self.free][:, self.free].tocsc()

    @cached_property
    def _W(self) -> Any:
        import scipy.sparse as sp

        rows = [self.tied.means[name][:, self.free] for name in self.means]
        return sp.vstack(rows).tocsr() if rows else sp.csr_matrix((0, len(self.free)))

    @property
    def unknowns(self) -> int:
        """How many independent coordinates are left."""
        return len(self.free) - self._W.shape[0]

    @cached_property
    def _order(self) -> np.ndarray:
        return dissected(self.K, self.tied.positions[self.free])

    @cached_property
    def _scale(self) -> float:
        """Of W's rows, so that they are as large as those of K."""
        return float(np.abs(self.K.diagonal()).max()) if len(self.free) else 1.0

    @cached_property
    def _matrix(self) -> Any:
        """The matrix that is factorised, in its order."""
        import scipy.sparse as sp

        A = self.K[self._order][:, self._order]
        if self._W.shape[0]:
            B = self._scale * self._W[:, self._order]
            A = sp.bmat([[A, B.T], [B, None]])
        return A.tocsc()

    @cached_property
    def _factors(self) -> Any:
        from scipy.sparse.linalg import splu

        k = self._W.shape[0]
        options: dict[str, Any] = {"permc_spec": "NATURAL", "diag_pivot_thresh": 0.01 if k else 0.0}
        try:
            return splu(self._matrix, options={"SymmetricMode": not k}, **options)
        except RuntimeError:
            held = ", ".join(map(repr, self.names))
            raise InputError(
                f"from_matrices: stiffness is singular with {held} held; the model has a part or a degree of freedom "
                "that nothing holds (a mechanism, or a rotation without stiffness)"
            ) from None

    @property
    def negative_pivots(self) -> int:
        """How many eigenvalues of K are negative; 0 where a mean interface is held, and for models so large that
        reading the pivots would take as much memory again as the factors."""
        if self._W.shape[0] or len(self.free) > _PIVOTS:
            return 0
        return int((self._factors.U.diagonal() < 0.0).sum())

    def solve(self, f: np.ndarray, c: np.ndarray | None = None, refined: bool = True) -> np.ndarray:
        """Y (free, k) under loads f (free, k), with W y = c; refined: corrected once by its residual."""
        order, scale = self._order, self._scale
        n, k = len(self.free), self._W.shape[0]
        right = np.zeros((n + k, f.shape[1]))
        right[:n] = f[order]
        if c is not None and k:
            right[n:] = scale * c
        lu, A = self._factors, self._matrix
        found = lu.solve(right)
        if refined:
            found = found + lu.solve(right - A @ found)
        out = np.empty((n, f.shape[1]))
        out[order] = found[:n]
        return out

    def whole(self, y: np.ndarray) -> np.ndarray:
        """Vectors z (n, k) for y (free, k), zero where held."""
        out = np.zeros((self.tied.size, y.shape[1]))
        out[self.free] = y
        return out

    def static_shapes(self, names: tuple[str, ...]) -> np.ndarray:
        """Vectors z (n, 6·len(names)) for unit motions of interfaces, those of self.names among them, others held."""
        columns = []
        for name in names:
            if name in self.tied.rigid:
                own = self.tied.rigid[name]
                z = np.zeros((self.tied.size, 6))
                z[own] = np.eye(6)
                y = self.solve(-(self.tied.stiffness[self.free][:, own]).toarray())
                z[self.free] = y
            else:
                c = np.zeros((self._W.shape[0], 6))
                at = 6 * self.means.index(name)
                c[at : at + 6] = np.eye(6)
                z = self.whole(self.solve(np.zeros((len(self.free), 6)), c))
            columns.append(z)
        return np.hstack(columns) if columns else np.zeros((self.tied.size, 0))

    def modes(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The n slowest modes z (n, k) with φᵀ M φ = 1, and their frequencies [rad/s], fewer if there are fewer."""
        n = min(n, self.unknowns)
        if n <= 0:
            return np.zeros((self.tied.size, 0)), np.zeros(0)
        if self.unknowns <= _DENSE or n >= self.unknowns // 2:
            y, squares = self._dense_modes(n)
        else:
            y, squares = self._sparse_modes(n)
        order = np.argsort(squares)
        return self.whole(y[:, order]), np.sqrt(np.maximum(squares[order], 0.0))

    def modes_up_to(self, frequency: float) -> tuple[np.ndarray, np.ndarray]:
        """All modes at or below a frequency [rad/s]."""
        n = 16
        while True:
            z, w = self.modes(n)
            if len(w) < n or w[-1] > frequency or n >= _MOST:
                break
            n *= 2
        if len(w) and w[-1] <= frequency and len(w) < self.unknowns and n >= _MOST:
            raise InputError(
                f"from_matrices: more than {len(w)} modes are below {frequency / (2 * np.pi):g} Hz; that is more than "
                "a mechanism can be computed with. Lower up_to, or give modes="
            )
        keep = w <= frequency
        return z[:, keep], w[keep]

    def _dense_modes(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        K, M = self.K.toarray(), self.M.toarray()
        basis = np.eye(len(K))
        if self._W.shape[0]:
            W = self._W.toarray()
            basis = np.linalg.svd(W)[2][len(W) :].T
            K, M = basis.T @ K @ basis, basis.T @ M @ basis
        try:
            found = reduction.natural_modes(K, M, n)
        except np.linalg.LinAlgError:
            raise InputError("from_matrices: stiffness is not positive definite with its interfaces held") from None
        masses = np.einsum("ik,ij,jk->k", found, M, found)
        good = masses > 1e-15 * masses.max(initial=0.0)  # others move no mass
        y = (basis @ found)[:, good] / np.sqrt(masses[good])
        return y, 1.0 / masses[good]

    def _sparse_modes(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

        size = len(self.free)
        inverse = LinearOperator(
            (size, size), matvec=lambda b: self.solve(np.reshape(b, (-1, 1)), refined=False)[:, 0], dtype=float
        )
        start = self.solve(self.M @ np.ones((size, 1)))[:, 0]  # inside the constraints, and the same every time
        try:
            squares, y = eigsh(self.K, k=n, M=self.M, sigma=0.0, OPinv=inverse, v0=start, ncv=max(2 * n + 1, 20))
        except ArpackError as error:
            raise InputError(
                f"from_matrices: the modes were not found ({error}); is the mass matrix positive?"
            ) from None
        return y, squares


def dissected(K: Any, positions: np.ndarray) -> np.ndarray:
    """An order of unknowns at positions (n, 3) in which the factors of K (n, n) stay sparse."""
    rows = K.tocsr()
    out: list[np.ndarray] = []
    here = np.full(len(positions), np.inf)

    def divide(own: np.ndarray) -> None:
        cut = _cut(rows, own, positions[own], here) if len(own) > _LEAF else None
        if cut is None:
            out.append(own)
            return
        below, across = cut
        divide(own[below])
        divide(own[~below & ~across])
        out.append(own[across])

    divide(np.arange(len(positions)))
    return np.concatenate(out) if out else np.arange(0)


def _cut(rows: Any, own: np.ndarray, x: np.ndarray, here: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """A plane near the middle of the longest side: what is below it, and what is above and coupled to that.

    here (n,): room for coordinates, infinite before and after. None if nothing would be divided.
    """
    along = x[:, int(np.argmax(np.ptp(x, axis=0)))]
    part = rows[own]
    here[own] = along
    reach = along.copy()  # the lowest place that an unknown is coupled to
    counts = np.diff(part.indptr)
    has = counts > 0
    if part.nnz:
        reach[has] = np.minimum.reduceat(here[part.indices], part.indptr[:-1][has])
    here[own] = np.inf
    reach = np.minimum(reach, along)
    ordered, first = np.sort(along), np.sort(reach)
    low, high = ordered[int(0.35 * len(own))], ordered[int(0.65 * len(own))]
    places = np.unique(along[(along >= low) & (along <= high)])
    places = places[places > ordered[0]]
    if not len(places):
        return None
    width = np.searchsorted(first, places) - np.searchsorted(ordered, places)
    smallest = places[width <= 1.02 * width.min()]
    place = smallest[np.argmin(np.abs(smallest - np.median(along)))]
    below = along < place
    across = ~below & (reach < place)
    return None if across.sum() + below.sum() == len(own) and across.sum() > 0.5 * len(own) else (below, across)
