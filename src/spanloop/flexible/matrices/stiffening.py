"""Geometric stiffening of a finite-element body, from differential stiffness matrices of unit loads.

A load s has the matrix G_s (N, N): the stiffness is K + s G_s while it acts, with the root held. Loads by key:

| key | load | unit |
|---|---|---|
| ax, ay, az | the root accelerates along an axis; gravity −a | m/s² |
| wxwx, wywy, wzwz, wxwy, wxwz, wywz | the root spins: products of angular velocities | rad²/s² |
| dwx, dwy, dwz | the root's angular acceleration | rad/s² |
| tip.fx … tip.fz, tip.mx … tip.mz | force and moment at the interface "tip" | N, N m |

A shape's second-order displacement g does the work of each load: G = ∫ g · (a₀ + W x) for the field of accelerations,
G = −g · F at an interface. The first twelve are the affine part of g over the mass, the last six its value at an
interface (docs/theory/flexible.md, section 6).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices.check import row_label
from spanloop.flexible.matrices.interfaces import ROOT, rigid_vectors
from spanloop.flexible.matrices.real_numbers import real_numbers

ACCELERATIONS = ("ax", "ay", "az")
SPINS = ("wxwx", "wywy", "wzwz", "wxwy", "wxwz", "wywz")
TURNS = ("dwx", "dwy", "dwz")
LOADS = ("fx", "fy", "fz", "mx", "my", "mz")
_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@dataclass(frozen=True, eq=False)
class Stiffening:
    """Of n shapes: affine (n, n, 3, 4), g = affine · (1, x, y, z); at (n, n, 6) by interface: second derivatives of
    its displacement and rotation; given: the keys of the loads."""

    affine: np.ndarray
    at: dict[str, np.ndarray]
    given: tuple[str, ...]

    @property
    def has_spin(self) -> bool:
        """Whether the loads of every spin are known."""
        return all(key in self.given for key in SPINS)


def keys_of(interfaces: tuple[str, ...]) -> tuple[str, ...]:
    """All keys for a body with these interfaces."""
    return (*ACCELERATIONS, *SPINS, *TURNS, *(f"{name}.{x}" for name in interfaces if name != ROOT for x in LOADS))


def field_gradient(key: str) -> np.ndarray:
    """W (3, 3) of a unit of spin or angular acceleration: the field of accelerations is W x."""
    W = np.zeros((3, 3))
    if key in TURNS:
        k = TURNS.index(key)
        i, j = ((1, 2), (2, 0), (0, 1))[k]
        W[j, i], W[i, j] = 1.0, -1.0
        return W
    a, b = _PAIRS[SPINS.index(key)]
    if a == b:
        return np.diag(np.where(np.arange(3) == a, 0.0, -1.0))
    W[a, b] = W[b, a] = 1.0
    return W


def inertia_load(fe: FiniteElements, key: str, root: np.ndarray) -> np.ndarray:
    """The load (N,) on the model while its root accelerates or spins by a unit: −M (a₀ + W x).

    Nodes with rotations turn with the field: by the antisymmetric part of W.
    """
    R = rigid_vectors(fe.positions, fe.dofs, root)
    if key in ACCELERATIONS:
        return -np.asarray(fe.mass @ R[:, ACCELERATIONS.index(key)])
    if key in TURNS:
        return -np.asarray(fe.mass @ R[:, 3 + TURNS.index(key)])
    field = np.zeros(len(fe.dofs))
    x = fe.positions - root
    W = field_gradient(key)
    for c in range(3):
        at = (fe.dofs[:, 1] == c) & (fe.dofs[:, 0] >= 0)
        field[at] = x[fe.dofs[at, 0]] @ W[c]
    return -np.asarray(fe.mass @ field)


def read_stiffening(
    fe: FiniteElements,
    given: Mapping[str, Any] | Callable[[np.ndarray], Any],
    interfaces: tuple[str, ...],
    static: Callable[[str], np.ndarray],
    owner: str,
) -> dict[str, Any]:
    """The matrices by key; static(key): displacements (N,) of the model under a unit load with its root held."""
    known = keys_of(interfaces)
    where = f"{owner}: stiffening"
    if callable(given):
        return {key: _matrix(fe, _returned(given, static(key), where), f"{where} of load {key!r}") for key in known}
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            f"{where} is {given!r:.60}; expected matrices by load, as {{'wzwz': G}}, or a function that returns the "
            "differential stiffness of static displacements (N,)"
        )
    for key in given:
        if key not in known:
            same = [k for k in SPINS if isinstance(key, str) and key == k[2:] + k[:2]]  # wywx is wxwy
            tail = f"did you mean {same[0]!r}?" if same else nearest(str(key), known)
            raise InputError(f"{where}: no load is called {key!r}; {tail}")
    return {key: _matrix(fe, given[key], f"{where}[{key!r}]") for key in known if key in given}


def _returned(given: Callable[[np.ndarray], Any], d: np.ndarray, where: str) -> Any:
    try:
        inspect.signature(given).bind(d)
    except TypeError:
        raise InputError(
            f"{where} does not take one argument; expected a function of static displacements (N,) alone"
        ) from None
    except ValueError:  # a function without a signature
        pass
    return given(d)


def _matrix(fe: FiniteElements, G: Any, where: str) -> Any:
    import scipy.sparse as sp

    G = real_numbers(G, where)
    try:
        found = sp.csr_matrix(G, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{where} is {type(G).__name__}; expected a matrix, sparse or dense") from None
    n = len(fe.dofs)
    if found.shape != (n, n):
        raise InputError(f"{where} is {found.shape[0]}x{found.shape[1]}; expected {n}x{n} as mass and stiffness")
    if not np.isfinite(found.data).all():
        raise InputError(f"{where} has a number that is not finite")
    largest = abs(found).max() if found.nnz else 0.0
    off = abs(found - found.T).tocoo()
    if largest and off.nnz and off.data.max() > 1e-6 * largest:
        k = int(np.argmax(off.data))
        i, j = row_label(fe, int(off.row[k])), row_label(fe, int(off.col[k]))
        raise InputError(
            f"{where} is not symmetric in {i}, {j}; differential stiffness of a load that has a potential is"
        )
    return 0.5 * (found + found.T)


def stiffening(matrices: Mapping[str, Any], shapes: np.ndarray, products: np.ndarray, interfaces) -> Stiffening:
    """Second-order displacements of shapes (N, n); products (4, 4): of 1, x, y, z over the mass."""
    n = shapes.shape[1]
    reduced = {key: shapes.T @ np.asarray(G @ shapes) for key, G in matrices.items()}
    none = np.zeros((n, n))
    of = {key: reduced.get(key, none) for key in keys_of(tuple(interfaces))}
    first = np.stack([of[key] for key in ACCELERATIONS], axis=-1)  # ∫ g
    E = np.zeros((n, n, 3, 3))  # ∫ x gᵀ
    spins = np.stack([of[key] for key in SPINS[:3]])
    total = -0.5 * spins.sum(axis=0)
    for c in range(3):
        E[..., c, c] = total + spins[c]
    for key, (a, b) in zip(SPINS[3:], _PAIRS[3:], strict=True):
        c = 3 - a - b
        sign = 1.0 if (c + 1) % 3 == a else -1.0  # dw_c: x_a g_b − x_b g_a for a, b, c in cyclic order
        turn = sign * of[TURNS[c]]
        E[..., a, b], E[..., b, a] = 0.5 * (of[key] + turn), 0.5 * (of[key] - turn)
    moments = np.concatenate([first[..., None], np.swapaxes(E, -1, -2)], axis=-1)  # (n, n, 3, 4): g by 1, x, y, z
    size = np.sqrt(np.diag(products))
    size = np.where(size > 0.0, size, 1.0)
    scaled = np.linalg.pinv(products / np.outer(size, size), rcond=1e-9, hermitian=True)  # flat bodies: no slope there
    affine = moments @ (scaled / np.outer(size, size))
    at = {name: -np.stack([of[f"{name}.{x}"] for x in LOADS], axis=-1) for name in interfaces if name != ROOT}
    return Stiffening(affine, at, tuple(matrices))
