"""Rank of the closure rows of a mechanism: which rows are redundant, their lengths, rank and distance to singularity.

Rows and DoF have units (m, rad). They are compared after division by characteristic lengths, and rows after division by
the length that each has in general. Singular values below RANK of the largest count as zero.

A mechanism may have assemblies with different redundant rows: `structure` is that of the assembly that a state belongs
to, and `by_assembly` divides the states of a batch among assemblies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.closed import redundancy
from spanloop.kernels import redundancy_of
from spanloop.loops.batching import Computed, Refusals, Robot, values
from spanloop.loops.closure_errors import mechanism_of, relative_errors
from spanloop.model import Model

RANK = 1e-8
_DEPENDENT = 1e-6  # of a dropped row of unit length: what may be independent of the kept rows; more by what is open
_CLEAR = 1e-5  # of the largest singular value: a least one beyond it counts, however it was rounded
_FEW = 64  # states whose singular values are found at once
_AT_ONCE = 8192  # states: arrays of so many stay in the cache
_LOOKS = 16  # states of a batch whose assembly is looked for


@dataclass(frozen=True, eq=False)
class Structure:
    """The closure rows of a mechanism, of all its states, of one assembly, or at one state."""

    redundant: tuple[int, ...]  # rows that depend on the others wherever the loops are closed
    kept: np.ndarray  # numbers of the other rows
    lengths: np.ndarray  # (n_rows,) of the rows in general [m or rad], DoF in their own lengths
    dof_lengths: np.ndarray  # (nv,) by which the entries of v are divided: m, or 1
    rank: int
    distance: float  # smallest singular value that counts, divided by the largest
    general: bool  # from several closed states, not from one alone
    jacobian: np.ndarray  # (kept, nv), scaled, at a closed state
    misaligned: float  # share of the redundant rows that does not depend on the kept ones
    jacobians: tuple[np.ndarray, ...]  # (n_rows, nv) of all rows at the closed states, DoF in their own lengths

    def scaled(self, jacobian: np.ndarray) -> np.ndarray:
        """The kept rows (..., kept, nv) of a Jacobian (..., n_rows, nv), of about unit length and without units."""
        return self.unit_rows(jacobian) * self.dof_lengths

    def unit_rows(self, jacobian: np.ndarray) -> np.ndarray:
        """The kept rows (..., kept, nv) divided by their lengths; the DoF keep their units."""
        return jacobian[..., self.kept, :] / self.lengths[self.kept, None]

    def scaled_errors(self, e: np.ndarray) -> np.ndarray:
        """The kept entries (..., kept) of errors or rates of rows (..., n_rows), divided by the rows' lengths."""
        return e[..., self.kept] / self.lengths[self.kept]

    def fits(self, jacobian: np.ndarray, openness: np.ndarray) -> np.ndarray:
        """At which states (n,) the redundant rows depend on the others, and these have their rank.

        jacobian (n, n_rows, nv); openness (n,): the largest relative closure error. Most states are far from both
        bounds, which takes no singular values to see.
        """
        whole = jacobian / self.lengths[:, None] * self.dof_lengths
        kept, dropped = whole[:, self.kept], whole[:, list(self.redundant)]
        most = _DEPENDENT + 30.0 * (self.misaligned + openness)
        fitting = self._fits_clearly(kept, dropped, most)
        near = np.flatnonzero(~fitting)
        if len(near):
            fitting[near] = self._fits_by_singular_values(kept[near], dropped[near], most[near])
        return fitting

    def _fits_clearly(self, kept: np.ndarray, dropped: np.ndarray, most: np.ndarray) -> np.ndarray:
        """Where orthogonalised rows show that it fits by a margin; elsewhere it may fit or not.

        The product of the k singular values is that of the rows' independent parts, and the mean square of all but the
        least is at most |J|²/(k − 1): so the least is at least product / (|J|²/(k − 1))^((k − 1)/2).
        """
        k, n = len(self.kept), len(kept)
        if not k or self.rank < k or n < _FEW:
            return np.zeros(n, dtype=bool)
        square = np.einsum("nrv,nrv->n", kept, kept)
        rows, product = list[np.ndarray](), np.ones(n)
        with np.errstate(all="ignore"):  # what is not finite is not clear
            for x in kept.transpose(1, 2, 0):
                rest = _without(x, rows)
                size = np.sqrt(np.einsum("vn,vn->n", rest, rest))
                product *= size
                rows.append(rest / size)
            clear = product > _CLEAR * np.sqrt(square) * (square / max(k - 1, 1)) ** ((k - 1) / 2)
            for x in dropped.transpose(1, 2, 0):
                rest = _without(x, rows)
                clear &= np.einsum("vn,vn->n", rest, rest) <= (0.5 * most) ** 2
        return clear

    def _fits_by_singular_values(self, kept: np.ndarray, dropped: np.ndarray, most: np.ndarray) -> np.ndarray:
        _, s, Vt = np.linalg.svd(kept, full_matrices=False)
        counts = s > RANK * s.max(axis=1, initial=0.0, keepdims=True)
        Vt = Vt * counts[:, :, None]
        rest = dropped - (dropped @ np.swapaxes(Vt, 1, 2)) @ Vt
        share = np.linalg.norm(rest, axis=2).max(axis=1, initial=0.0)
        regular = counts.sum(axis=1) >= self.rank
        fitting: np.ndarray = regular & (share <= most)
        return fitting


def _without(x: np.ndarray, rows: Sequence[np.ndarray]) -> np.ndarray:
    """x (nv, n) without its parts along orthonormal rows, each (nv, n)."""
    x = np.array(x, order="C")
    for row in rows:
        x -= np.einsum("vn,vn->n", row, x) * row
    return x


def structure(robot: Robot, q: np.ndarray) -> Structure:
    """The rows in general, or in the assembly of the state q (nq,) where that is another."""
    found, number = structures(robot, q[None])
    return found[number[0]]


def by_assembly(robot: Robot, compute: Callable[..., Computed]) -> Callable[..., Computed]:
    """compute(q, ...) for rows of states, called for the states of each assembly in turn."""

    def whole(q: np.ndarray, *others: np.ndarray) -> Computed:
        if len(q) <= _AT_ONCE:
            return divided(q, *others)
        parts = [slice(k, k + _AT_ONCE) for k in range(0, len(q), _AT_ONCE)]
        found = [divided(q[part], *(x[part] for x in others)) for part in parts]
        refusals = {part.start + k: x for part, (_, own) in zip(parts, found, strict=True) for k, x in own.items()}
        return tuple(np.concatenate(x) for x in zip(*(answers for answers, _ in found), strict=True)), refusals

    def divided(q: np.ndarray, *others: np.ndarray) -> Computed:
        number = structures(robot, q)[1]
        if len(np.unique(number)) <= 1:
            return compute(q, *others)
        answers: list[np.ndarray] = []
        refusals: Refusals = {}
        for k in np.unique(number):
            mine = np.flatnonzero(number == k)
            part, refused = compute(q[mine], *(x[mine] for x in others))
            answers = answers or [np.zeros((len(q), *x.shape[1:]), x.dtype) for x in part]
            for whole, some in zip(answers, part, strict=True):
                whole[mine] = some
            refusals |= {int(mine[i]): refusal for i, refusal in refused.items()}
        return tuple(answers), refusals

    return whole


def structures(robot: Robot, q: np.ndarray) -> tuple[list[Structure], np.ndarray]:
    """The assemblies that the states q (n, nq) belong to, and the number of each state's (n,)."""
    model, usual = robot.model, in_general(robot.model)
    number = np.zeros(len(q), dtype=int)
    if not len(q) or not mechanism_of(model).n_rows:
        return [usual or _of(model, [np.zeros((0, model.nv))], general=False)], number
    found, left = ([], np.arange(len(q))) if usual is None else ([usual], _others(robot, usual, q))
    if not len(left):
        return found, number
    J, openness = _rows_at(robot, q[left])
    for _ in range(_LOOKS):
        if not len(left):
            break
        here = _of_assembly(model, q[left[0]], J[0], openness[0], usual)
        known = next((k for k, x in enumerate(found) if x.redundant == here.redundant and x.rank == here.rank), None)
        mine = np.zeros(len(left), dtype=bool)
        if known is None:
            found.append(here)
            mine = here.fits(J, openness)
        mine[0] = True
        number[left[mine]] = len(found) - 1 if known is None else known
        left, J, openness = left[~mine], J[~mine], openness[~mine]
    return found, number


def _others(robot: Robot, usual: Structure, q: np.ndarray) -> np.ndarray:
    """Numbers of the states among q (n, nq) that do not fit the usual structure."""
    parts = [slice(k, k + _AT_ONCE) for k in range(0, len(q), _AT_ONCE)]
    return np.flatnonzero(~np.concatenate([usual.fits(*_rows_at(robot, q[part])) for part in parts]))


def _rows_at(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian (n, n_rows, nv) of all rows and the largest relative error (n,) at states q (n, nq)."""
    openness = np.abs(relative_errors(robot, q)).max(axis=1, initial=0.0)
    return values(robot, "closure_jacobian", q), openness


def _of_assembly(model: Model, q: np.ndarray, J: np.ndarray, openness: float, usual: Structure | None) -> Structure:
    """The rows near one state that does not fit the usual structure; these where it is a singular position of it."""
    near = redundancy_of(model, q)
    if not near.is_known:
        m = mechanism_of(model)
        scaled = J / np.array(m.row_lengths)[:, None] * np.array(m.dof_lengths)
        return usual or _of(model, [redundancy.without_traces(m, scaled)], general=False)
    here = _of(model, near.jacobians, True, near.misaligned)
    same = usual is not None and here.rank == usual.rank and here.redundant == usual.redundant
    return usual if same and usual is not None else here


@functools.lru_cache(maxsize=64)
def in_general(model: Model) -> Structure | None:
    """The rows at a few closed states near the neutral one; None if no closed state was found."""
    found = redundancy_of(model)
    return _of(model, found.jacobians, True, found.misaligned) if found.is_known else None


def _of(model: Model, jacobians: Sequence[np.ndarray], general: bool, misaligned: float = 0.0) -> Structure:
    """From scaled Jacobians of all rows (n_rows, nv)."""
    m, n_rows = mechanism_of(model), len(jacobians[0])
    redundant = tuple(sorted(redundancy.redundant_rows(jacobians))) if n_rows else ()
    kept = np.array([r for r in range(n_rows) if r not in redundant], dtype=int)
    sizes = np.max([np.linalg.norm(J, axis=1) for J in jacobians], axis=0)
    sizes = np.where(sizes > 1e-12 * sizes.max(initial=0.0), sizes, 1.0)
    scaled = [J[kept] / sizes[kept, None] for J in jacobians]
    spectra = [singular_values(J) for J in scaled]
    best = max(range(len(spectra)), key=lambda k: (rank(spectra[k]), distance(spectra[k], rank(spectra[k]))))
    r = rank(spectra[best])
    lengths = np.array(m.row_lengths) if n_rows else np.zeros(0)
    return Structure(
        redundant,
        kept,
        sizes * lengths,
        np.array(m.dof_lengths),
        r,
        distance(spectra[best], r),
        general,
        scaled[best],
        misaligned,
        tuple(J * lengths[:, None] for J in jacobians),
    )


def singular_values(jacobian: np.ndarray) -> np.ndarray:
    """Of a matrix (rows, columns), the largest first."""
    return np.linalg.svd(jacobian, compute_uv=False)


def distance(s: np.ndarray, r: int) -> float:
    """The r-th singular value divided by the largest: how far a rank of r is from being lost; 1 without rows."""
    return float(s[r - 1] / s[0]) if r and s[0] > 0.0 else float(r == 0)


def rank(s: np.ndarray) -> int:
    """Number of singular values (k,) that count."""
    return int(np.sum(s > RANK * s.max(initial=0.0)))
