"""The shapes to which a finite-element model is reduced; all vanish at the root.

| basis | shapes |
|---|---|
| craig-bampton | static ones of unit motions of each interface, and inner modes with all interfaces held |
| guyan | the static ones alone |
| rubin | the static ones, and modes with the root held and all else free |
| cantilever | modes with the root held alone |
| free | modes of the model that nothing holds, each less the rigid motion of its root |
| full | all of the model |
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spanloop.errors import InputError, SpanloopWarning
from spanloop.flexible import reduction
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices.check import check_stiffness, row_label
from spanloop.flexible.matrices.held import Held
from spanloop.flexible.matrices.interfaces import MOTIONS, ROOT, Interface, Tied, rigid_vectors

BASES = ("craig-bampton", "guyan", "rubin", "cantilever", "free", "full")
CHOICES = ("frequency", "effective mass")
_MOST_WHOLE = 120  # coordinates of a body that is not reduced
_NO_MASS = 1e-13  # of the median mass of shapes of unit stiffness (1/ω²): rounding
_DEPENDENT = 1e-10  # of strain energy, of mass: less is rounding
_RIGID = 1e-3  # of the slowest frequency with the root held: slower free modes are rigid


@dataclass(frozen=True)
class Wanted:
    """Which modes: how many, or all up to a frequency [rad/s]; chosen by frequency or by effective mass."""

    modes: int | None
    up_to: float | None
    by: str


@dataclass(frozen=True, eq=False)
class Reduction:
    """A model with its interfaces, to be reduced: what is computed from one factorisation."""

    fe: FiniteElements
    interfaces: list[Interface]
    tied: Tied
    basis: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The interfaces but the root."""
        return tuple(x.name for x in self.interfaces if x.name != ROOT)

    @cached_property
    def held(self) -> Held:
        """The model that is factorised: with all interfaces held, or with the root alone."""
        every = self.basis in ("craig-bampton", "guyan")
        return Held(self.tied, (ROOT, *self.names) if every else (ROOT,))

    @cached_property
    def static(self) -> np.ndarray:
        """Static shapes z (n, 6·interfaces)."""
        if self.basis in ("craig-bampton", "guyan"):
            return self.held.static_shapes(self.names)
        loads = [self.interface_load(name) for name in self.names if self.basis == "rubin"]
        if not loads:
            return np.zeros((self.tied.size, 0))
        return self.held.whole(self.held.solve(np.hstack(loads)[self.held.free]))

    @cached_property
    def rigid(self) -> np.ndarray:
        """Rigid motions z (n, 6) about the root."""
        root = self.interfaces[0].reference
        R = rigid_vectors(self.fe.positions, self.fe.dofs, root)
        frames = {x.name: x.reference for x in self.interfaces}
        out = np.zeros((self.tied.size, 6))
        start = 6 * len(self.tied.rigid)
        for name, at in self.tied.rigid.items():
            six = np.array([(0, c) for c in range(6)])
            out[at] = rigid_vectors(frames[name][None], six, root)
        rest = np.ones(len(R), dtype=bool)
        for x in self.interfaces:
            if x.tie == "rigid":
                rest[x.rows] = False
        out[start:] = R[rest]
        return out

    def deflection(self, load: np.ndarray) -> np.ndarray:
        """Static displacements z (n, k) under loads (n, k), with the root held."""
        z = self.held.whole(self.held.solve(load[self.held.free], refined=False))
        if self.held.names == (ROOT,):
            return z
        K = self.static.T @ (self.tied.stiffness @ self.static)
        return np.asarray(z + self.static @ np.linalg.solve(0.5 * (K + K.T), self.static.T @ load))

    def interface_load(self, name: str) -> np.ndarray:
        """Loads z (n, 6): unit forces and moments at an interface."""
        if name in self.tied.means:
            return np.asarray(self.tied.means[name].toarray().T)
        out = np.zeros((self.tied.size, 6))
        out[self.tied.rigid[name]] = np.eye(6)
        return out

    def shapes(self, wanted: Wanted, owner: str) -> tuple[np.ndarray, int]:
        """The reduced basis z (n, k), stiffness and mass diagonal, slowest first; and how many inner modes it has."""
        if self.basis == "full":
            found = self._whole(owner)
            inner = found.shape[1]
        elif self.basis == "free":
            found = self._free(wanted, owner)
            inner = found.shape[1]
        else:
            modes = np.zeros((self.tied.size, 0)) if self.basis == "guyan" else self._modes(wanted)
            inner, found = modes.shape[1], np.hstack([self.static, modes])
        if not found.shape[1]:
            raise InputError(f"{owner}: no shapes are left; name an interface besides 'root', or give modes= or up_to=")
        return self._recombined(found, owner), inner

    def _recombined(self, found: np.ndarray, owner: str) -> np.ndarray:
        K = found.T @ (self.tied.stiffness @ found)
        M = found.T @ (self.tied.mass @ found)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(K), 1e-300))
        K, M = K * np.outer(scale, scale), M * np.outer(scale, scale)
        if np.linalg.eigvalsh(0.5 * (M + M.T))[0] < -1e-10 * np.abs(M).max():
            raise InputError(f"{owner}: the mass matrix is indefinite: a motion of the reduced body has negative mass")
        own = self._independent(found * scale, 0.5 * (K + K.T), 0.5 * (M + M.T), owner)
        found, K, M = (found * scale) @ own, own.T @ K @ own, own.T @ M @ own
        back = reduction.natural_modes(0.5 * (K + K.T), 0.5 * (M + M.T), len(K))
        return self._with_mass(np.asarray(found @ back), np.einsum("ik,ij,jk->k", back, M, back), owner)

    def _independent(self, found: np.ndarray, K: np.ndarray, M: np.ndarray, owner: str) -> np.ndarray:
        """Combinations (k, m) of shapes (n, k) that are independent of each other; K and M: their stiffness and mass.

        A combination without strain energy and mass is left out: a static shape that the modes contain. One with mass
        and without strain energy is the motion of a loose part.
        """
        w, V = np.linalg.eigh(K)
        nothing = w < _DEPENDENT
        if not nothing.any():
            return np.eye(len(K))
        masses = np.einsum("ik,ij,jk->k", V, M, V)
        loose = nothing & (masses > _DEPENDENT * np.abs(M).max())
        if loose.any():
            z = np.abs(np.asarray(self.tied.Z @ (found @ V[:, np.argmax(loose)])))
            raise InputError(
                f"{owner}: stiffness is not positive definite with the root held; a part of it, most at "
                f"{row_label(self.fe, int(np.argmax(z)))}, moves without strain"
            )
        return np.asarray(V[:, ~nothing])

    def _with_mass(self, z: np.ndarray, masses: np.ndarray, owner: str) -> np.ndarray:
        """Those of shapes (n, k) of unit stiffness that move mass, by masses (k,); a warning names the others.

        A shape without mass would follow its loads at once; without it the body is rigid there.
        """
        good = masses > _NO_MASS * np.median(masses)
        if good.all():
            return z
        lost = z[:, ~good]
        moves = {name: self.tied.frame_motion(name, lost) for name in self.names}
        size = np.ptp(self.fe.positions, axis=0).max() or 1.0
        most = {name: np.abs(m / np.repeat([[size], [1.0]], 3, axis=0)).max(axis=1) for name, m in moves.items()}
        largest = max((x.max() for x in most.values()), default=0.0)
        where = [f"{MOTIONS[k]} of {n!r}" for n, x in most.items() for k in range(6) if x[k] > 0.1 * largest > 0.0]
        warnings.warn(
            f"{owner}: {lost.shape[1]} of {z.shape[1]} shapes move no mass and are left out: the body is rigid there, "
            f"in {', '.join(where) or 'its inside'}. For its compliance M needs inertia of these motions, such as "
            "rotary inertia of the nodes about the axis of a straight beam",
            SpanloopWarning,
            stacklevel=5,
        )
        if not good.any():
            raise InputError(f"{owner}: no shape moves mass; M has none where the body can move")
        return z[:, good]

    def _modes(self, wanted: Wanted) -> np.ndarray:
        if wanted.up_to is not None:
            return self.held.modes_up_to(wanted.up_to)[0]
        n = wanted.modes or 0
        if wanted.by == "frequency" or not n:
            return self.held.modes(n)[0]
        candidates, _ = self.held.modes(min(max(3 * n, n + 20), self.held.unknowns))
        shares = (self.rigid.T @ (self.tied.mass @ candidates)) ** 2
        total = np.einsum("ik,ik->k", self.rigid, self.tied.mass @ self.rigid)
        best = np.sort(np.argsort(-(shares / total[:, None]).sum(axis=0))[:n])
        return np.asarray(candidates[:, best])

    def _free(self, wanted: Wanted, owner: str) -> np.ndarray:
        self._check_free(owner)
        slowest = self.held.modes(1)[1][0]
        check_stiffness(self.fe, self.interfaces[0].reference, float(slowest), owner)
        loose = Held(self.tied, (), shift=(0.1 * slowest) ** 2)
        if wanted.up_to is not None:
            z, w = loose.modes_up_to(float(np.hypot(wanted.up_to, 0.1 * slowest)))
        else:
            z, w = loose.modes((wanted.modes or 0) + 6)
        squares = w**2 - loose.shift
        count = int((squares < (_RIGID * slowest) ** 2).sum())
        if count != 6:
            raise InputError(
                f"{owner}: the free model has {count} modes without stiffness; expected 6, rigid motion. "
                + ("A part of it is loose, or turns on a hinge" if count > 6 else "Something holds it to the ground")
            )
        z = z[:, 6:]
        return np.asarray(z - self.rigid @ self.tied.frame_motion(ROOT, z))

    def _check_free(self, owner: str) -> None:
        """Raise InputError for a body that turns about an axis without inertia: it has no modes if nothing holds it."""
        inertia = self.rigid.T @ np.asarray(self.tied.mass @ self.rigid)
        size = np.sqrt(np.repeat([np.diag(inertia)[:3].max(), np.diag(inertia)[3:].max() or 1.0], 3))
        w, V = np.linalg.eigh(inertia / np.outer(size, size))
        if w[0] <= _NO_MASS * w[-1]:
            motion = MOTIONS[int(np.argmax(np.abs(V[:, 0])))]
            raise InputError(
                f"{owner}: M has no inertia for a rigid motion, most {motion}, so that basis='free' has no modes "
                "(masses on a straight line?). Give rotary inertia, or take basis='craig-bampton' or 'cantilever'"
            )

    def _whole(self, owner: str) -> np.ndarray:
        if self.held.unknowns > _MOST_WHOLE:
            raise InputError(
                f"{owner}: basis='full' keeps all {self.held.unknowns} coordinates; {_MOST_WHOLE} at most. Use "
                "'craig-bampton'"
            )
        return self.held.modes(self.held.unknowns)[0]
