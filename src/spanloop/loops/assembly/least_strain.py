"""Closed states in which flexible bodies are strained as little as closing takes.

Joints have gone as far as they can. Of the rows of the loops, without units, e is what is left open, and

    J_j = U S Vᵀ,   N = U without the columns that joints reach,
    ζ = argmin ½ (ζ − ζ₀)ᵀ K (ζ − ζ₀)   with   Nᵀ (e + J_m (ζ − ζ_now)) = 0,
    Δq_j = −J_j⁺ (e + J_m Δζ),

until both are closed: modes take what joints cannot, joints all else. What joints are free to move stays where it is.

| symbol | shape | meaning |
|---|---|---|
| J_j, J_m | rows × joints, rows × modes | closure Jacobian of joints and of modes |
| ζ, ζ₀ | modes | modal coordinates, and where they are without strain |
| K | modes | modal stiffness |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from spanloop.model import Model
from spanloop.model.parts import Joint

_ROUNDS = 40
_REACHED = 1e-3  # of the largest singular value: rows that joints move less are left to modes
_RANK = 1e-10
_TURN = 0.5  # rad or the same share of a length: the most that anything moves in a round
_SETTLED = 1e-9  # of the modal coordinates: a smaller change ends


class Closing(Protocol):
    """What closes loops: errors (n, rows) and Jacobians (n, rows, nv) of states (n, nq) without units."""

    @property
    def tolerance(self) -> float:
        """The errors that are left."""

    def error(self, q: np.ndarray) -> np.ndarray:
        """The closure errors."""

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """Their derivatives by steps over `dof_lengths`."""

    def moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The states after steps (n, nv)."""

    @property
    def dof_lengths(self) -> np.ndarray:
        """What makes steps (nv,) free of units."""


@dataclass(frozen=True, eq=False)
class LeastStrain:
    """Closes states of one model; fixed (nv,): DoF that do not move."""

    model: Model
    closing: Closing
    fixed: np.ndarray

    def closed(self, q: np.ndarray) -> np.ndarray:
        """States (n, nq) near q (n, nq), each on its own; those that do not come to an end are as far as they got."""
        return np.concatenate([self._closed(row[None]) for row in q]) if len(q) else q

    def _closed(self, q: np.ndarray) -> np.ndarray:
        lengths, joints, modes = self.closing.dof_lengths, self._joints, self._modes
        for _ in range(_ROUNDS):
            e, J = self.closing.error(q)[0], self.closing.jacobian(q)[0]
            zeta = self._from_rest(q[0]) / lengths[modes]
            change = self._modes_needed(J, e, zeta) - zeta
            step = np.zeros(len(lengths))
            step[modes] = change
            step[joints] = -_inverse(J[:, joints], _REACHED) @ (e + J[:, modes] @ change)
            size = float(np.abs(step).max(initial=0.0))
            is_closed = np.abs(e).max(initial=0.0) <= self.closing.tolerance
            if is_closed and np.abs(change).max(initial=0.0) <= _SETTLED * max(np.abs(zeta).max(initial=0.0), _SETTLED):
                break
            q = self.closing.moved(q, (min(1.0, _TURN / max(size, 1e-300)) * step * lengths)[None])
        return q

    def _modes_needed(self, J: np.ndarray, e: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        """The modal coordinates of least strain energy that close the rows which joints do not reach."""
        U, sizes, _ = np.linalg.svd(J[:, self._joints])
        beyond = U[:, int((sizes > _REACHED * sizes.max(initial=0.0)).sum()) :]
        A = beyond.T @ J[:, self._modes]
        weights = 1.0 / (np.sqrt(self._stiffness) * self.closing.dof_lengths[self._modes])
        found: np.ndarray = weights * (_inverse(A * weights, _RANK) @ (A @ zeta - beyond.T @ e))
        return found

    def _from_rest(self, q: np.ndarray) -> np.ndarray:
        return np.array([q[place] - rest for place, rest in self._places])

    @cached_property
    def _bending(self) -> list[Joint]:
        return [j for j in self.model.joints if j.kind.bends and not self.fixed[self.model.v_slice(j.name)].any()]

    @cached_property
    def _modes(self) -> np.ndarray:
        return np.array([k for j in self._bending for k in range(self.model.nv)[self.model.v_slice(j.name)]], dtype=int)

    @cached_property
    def _places(self) -> list[tuple[int, float]]:
        """Where each modal coordinate is in q, and where it has no strain."""
        return [(self.model.q_slice(j.name).start + i, rest) for j in self._bending for i, rest in enumerate(_rest(j))]

    @cached_property
    def _stiffness(self) -> np.ndarray:
        k = np.array([k for j in self._bending for k in j.stiffness], dtype=float)
        return np.asarray(np.maximum(k, 1e-12 * k.max(initial=1e-12)))

    @cached_property
    def _joints(self) -> np.ndarray:
        return np.setdiff1d(np.flatnonzero(~self.fixed), self._modes)


def strain_energies(model: Model, q: np.ndarray) -> dict[str, float]:
    """½ K (ζ − ζ₀)² [J] of each body on modes in one state (nq,), the largest first."""
    found = {
        j.child: float(0.5 * np.array(j.stiffness) @ (q[model.q_slice(j.name)] - _rest(j)) ** 2)
        for j in model.joints
        if j.kind.bends
    }
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _rest(joint: Joint) -> np.ndarray:
    return np.array(joint.rest or (0.0,) * joint.kind.nq, dtype=float)


def _inverse(J: np.ndarray, cut: float) -> np.ndarray:
    """The pseudo-inverse, without singular values below `cut` of the largest."""
    found: np.ndarray = np.linalg.pinv(J, rcond=cut) if J.size else np.zeros(J.T.shape)
    return found
