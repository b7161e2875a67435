"""Interfaces of a finite-element model: the nodes that are one rigid frame for what is attached there.

    rigid (RBE2)   every node of the set moves with the frame:  d = R ξ
    mean (RBE3)    the frame moves with the nodes in the mean:  ξ = W d, least squares over their displacements

d are the degrees of freedom of the model, ξ (6,) displacement and rotation of the frame. Nodes that are tied rigidly
are replaced by their frame: d = Z z with z = (ξ of each rigid interface, all other degrees of freedom).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices.real_numbers import real_numbers
from spanloop.flexible.particles import skew

ROOT = "root"
_RESERVED = ("modes", "end")
TIES = ("rigid", "mean")
MOTIONS = ("displacement along x", "displacement along y", "displacement along z") + tuple(
    f"rotation about {a}" for a in "xyz"
)
_RANK = 1e-8  # of the largest singular value: nodes so nearly in a line leave a rotation free


@dataclass(frozen=True, eq=False)
class Interface:
    """A named set of nodes, the place of its frame [m], and how it is tied; rows: its degrees of freedom."""

    name: str
    nodes: np.ndarray
    reference: np.ndarray
    tie: str
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Tied:
    """A model whose rigid interfaces are frames: mass and stiffness (n, n) of z, sparse.

    Z (N, n): d = Z z; rigid: places in z of the six numbers of each rigid interface by name; means: (6, n) rows of each
    mean interface by name.
    """

    mass: Any
    stiffness: Any
    Z: Any
    rigid: dict[str, np.ndarray]
    means: dict[str, Any]
    positions: np.ndarray  # (n, 3) of each row, for the order of elimination

    @property
    def size(self) -> int:
        """Number of coordinates z."""
        return int(self.stiffness.shape[0])

    def frame_motion(self, name: str, z: np.ndarray) -> np.ndarray:
        """ξ (6, k) of an interface for vectors z (n, k)."""
        return np.asarray(z[self.rigid[name]] if name in self.rigid else self.means[name] @ z)


def rigid_vectors(positions: np.ndarray, dofs: np.ndarray, about: np.ndarray) -> np.ndarray:
    """R (N, 6): values of the degrees of freedom for unit displacements and rotations of a frame at `about`."""
    node, component = dofs[:, 0], dofs[:, 1]
    arms = np.where(node[:, None] >= 0, positions[node] - about, 0.0)
    out = np.zeros((len(dofs), 6))
    turn = -skew(arms)  # displacement for unit rotations
    for c in range(3):
        at = (component == c) & (node >= 0)
        out[at, c] = 1.0
        out[at, 3:] = turn[at, c]
        at = (component == c + 3) & (node >= 0)
        out[at, 3 + c] = 1.0
    return out


def read_interfaces(fe: FiniteElements, interfaces: Any, tie: Any, owner: str) -> list[Interface]:
    """The interfaces that a user names, the root first."""
    if not isinstance(interfaces, Mapping) or not interfaces:
        raise InputError(
            f"{owner}: interfaces is {interfaces!r:.60}; expected nodes by name, as {{'root': 0, 'tip': 5}}"
        )
    if ROOT not in interfaces:
        raise InputError(f"{owner}: no interface is called 'root'; the root is where the body's joint holds it")
    ties = _ties(interfaces, tie, owner)
    found = []
    taken: dict[int, str] = {}
    for name in (ROOT, *(k for k in interfaces if k != ROOT)):
        check_name(name, owner)
        where = f"{owner}: interface {name!r}"
        nodes, reference = _nodes(fe, interfaces[name], where)
        for k in nodes:
            if int(k) in taken:
                raise InputError(
                    f"{where}: {_label(fe, k)} belongs to interface {taken[int(k)]!r} already; a node has one"
                )
            taken[int(k)] = name
        found.append(_interface(fe, name, nodes, reference, ties[name], where))
    return found


def check_name(name: Any, owner: str) -> None:
    """Raise InputError for a name that no interface can have."""
    if name in _RESERVED:
        raise InputError(
            f"{owner}: an interface is called {name!r}, which names another part of a flexible body "
            f"({', '.join(map(repr, _RESERVED))} do); take another name, such as {name + '1'!r}"
        )
    if not isinstance(name, str) or not name or "." in name or name.isdigit():
        raise InputError(f"{owner}: an interface is called {name!r}; expected a name without a dot, and no number")


def _ties(interfaces: Mapping, tie: Any, owner: str) -> dict[str, str]:
    given = dict.fromkeys(interfaces, tie) if isinstance(tie, str) else None
    if given is None:
        if not isinstance(tie, Mapping):
            raise InputError(f"{owner}: tie is {tie!r}; expected 'rigid' or 'mean', or one of them by interface")
        for name in tie:
            if name not in interfaces:
                raise InputError(f"{owner}: tie names the interface {name!r}; {nearest(str(name), interfaces)}")
        given = {name: tie.get(name, "rigid") for name in interfaces}
    for t in given.values():
        if t not in TIES:
            raise InputError(f"{owner}: tie is {t!r}; {nearest(str(t), TIES)}")
    return given


def _nodes(fe: FiniteElements, given: Any, where: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Indices of the nodes, and the place of the frame if the user gives one: (nodes, position)."""
    reference = None
    if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[1]) == 1 and np.size(given[1]) == 3:
        given, place = given
        reference = _three(place, where)
    try:
        wanted = np.atleast_1d(np.asarray(given))
        if wanted.ndim != 1 or not wanted.size or wanted.dtype.kind not in "iu":
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(f"{where} is {given!r:.60}; expected a node, or a list of nodes, by number") from None
    if fe.labels is None:
        out, known = wanted, set(range(len(fe.positions)))
        missing = [int(k) for k in wanted if int(k) not in known]
        range_of = f"0 to {len(fe.positions) - 1}"
    else:
        index = {int(label): k for k, label in enumerate(fe.labels)}
        missing = [int(k) for k in wanted if int(k) not in index]
        out = np.array([index.get(int(k), 0) for k in wanted])
        range_of = f"numbers of its file, {int(np.min(fe.labels))} to {int(np.max(fe.labels))}"
    if missing:
        raise InputError(
            f"{where}: there is no node {missing[0]}; {fe.source} has {len(fe.positions)} nodes ({range_of})"
        )
    if len(set(out.tolist())) < len(out):
        raise InputError(f"{where}: a node is named twice")
    return out, reference


def _three(place: Any, where: str) -> np.ndarray:
    place = real_numbers(place, where)
    try:
        found = np.asarray(place, dtype=float)
        if not np.isfinite(found).all():
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(f"{where}: its frame is at {place!r:.60}; expected three finite numbers [m]") from None
    return found


def _interface(fe, name: str, nodes: np.ndarray, reference, tie: str, where: str) -> Interface:
    rows = np.flatnonzero(np.isin(fe.dofs[:, 0], nodes))
    if not len(rows):
        raise InputError(f"{where}: {_label(fe, nodes[0])} has no degrees of freedom in the matrices")
    about = fe.positions[nodes].mean(axis=0) if reference is None else reference
    out = Interface(name, nodes, about, tie, rows)
    used = rows if tie == "rigid" else rows[fe.dofs[rows, 1] < 3]
    R = rigid_vectors(fe.positions, fe.dofs[used], fe.positions[nodes].mean(axis=0))
    size = np.ptp(fe.positions[nodes], axis=0).max() or 1.0
    s = np.linalg.svd(R * np.array([1, 1, 1, 1 / size, 1 / size, 1 / size]), compute_uv=False)
    if len(s) < 6 or s[5] <= _RANK * s[0]:
        kind = "displacements only" if (fe.dofs[rows, 1] < 3).all() else f"{len(rows)} degrees of freedom"
        raise InputError(
            f"{where}: its {len(nodes)} node{'s' * (len(nodes) > 1)} with {kind} leave a rotation of the frame free; "
            "expected three nodes or more that are not in a line, or a node with rotations (tie='rigid')"
        )
    return out


def _label(fe: FiniteElements, index: Any) -> str:
    return f"node {int(index) if fe.labels is None else int(fe.labels[int(index)])}"


def tied(fe: FiniteElements, interfaces: list[Interface]) -> Tied:
    """The model with its rigid interfaces as frames."""
    import scipy.sparse as sp

    rigid = [x for x in interfaces if x.tie == "rigid"]
    gone = np.zeros(len(fe.dofs), dtype=bool)
    for x in rigid:
        gone[x.rows] = True
    rest = np.flatnonzero(~gone)
    n, start = 6 * len(rigid) + len(rest), 6 * len(rigid)
    parts = [(rest, np.arange(start, n), np.ones(len(rest)))]
    places = {}
    for k, x in enumerate(rigid):
        R = rigid_vectors(fe.positions, fe.dofs[x.rows], x.reference)
        i, j = np.nonzero(R)
        parts.append((x.rows[i], 6 * k + j, R[i, j]))
        places[x.name] = np.arange(6 * k, 6 * k + 6)
    i, j, values = (np.concatenate([p[c] for p in parts]) for c in range(3))
    Z = sp.csc_matrix((values, (i, j)), shape=(len(fe.dofs), n))
    K, M = sp.csc_matrix(fe.stiffness), sp.csc_matrix(fe.mass)
    means = {x.name: sp.csr_matrix(_mean_rows(fe, x) @ Z) for x in interfaces if x.tie == "mean"}
    own = np.where(fe.dofs[rest, :1] >= 0, fe.positions[fe.dofs[rest, 0]], 0.0)
    positions = np.concatenate([np.repeat([x.reference for x in rigid], 6, axis=0).reshape(-1, 3), own])
    return Tied(sp.csc_matrix(Z.T @ M @ Z), sp.csc_matrix(Z.T @ K @ Z), Z, places, means, positions)


def _mean_rows(fe: FiniteElements, x: Interface) -> Any:
    """W (6, N): displacement and rotation of the frame, least squares over the displacements of the nodes."""
    import scipy.sparse as sp

    rows = x.rows[fe.dofs[x.rows, 1] < 3]
    W = np.linalg.pinv(rigid_vectors(fe.positions, fe.dofs[rows], x.reference))
    out = sp.lil_matrix((6, len(fe.dofs)))
    out[:, rows] = W
    return out.tocsr()
