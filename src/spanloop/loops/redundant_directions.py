"""Directions in which the closure rows of a mechanism transmit nothing: Jᵀ λ = 0, in the axes of the child frames.

A direction that lies in the moments or in the forces of one closure is preferred, then one in a single closure, then
any. Of several in one space those along the axes of the child frame come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spanloop.algorithms.closed.redundancy import without_traces
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.constraint_rank import RANK, Structure
from spanloop.math.spatial import Force
from spanloop.model import Model
from spanloop.topology import Mechanism
from spanloop.topology.closures import Closure, Gear, wrench_name

_NOTHING = 1e-6  # of a direction of unit length: smaller components are left out


Names = tuple[str, ...]


def redundant_directions(model: Model, rows: Structure, J: np.ndarray | None = None) -> tuple[Names, Names]:
    """Names of the redundant directions: wherever the loops are closed, and of the others at a closed state.

    J (n_rows, nv): the Jacobian at that state. A direction that turns with the state is one of that state.
    """
    lengths = _common_lengths(model, rows.lengths)[:, None]
    states = [x / lengths for x in rows.jacobians]
    m = mechanism_of(model)
    units = np.array(m.row_lengths)[:, None]
    here = None if J is None else without_traces(m, J / units * rows.dof_lengths) * units / lengths
    everywhere = np.concatenate(states if here is None else [*states, here], axis=1)
    always = null_directions(model, everywhere, RANK * _size(everywhere))
    others = always[:0] if here is None else null_directions(model, here, RANK * _size(here), always)
    return direction_names(model, always, lengths[:, 0]), direction_names(model, others, lengths[:, 0])


def _size(rows: np.ndarray) -> float:
    return float(np.linalg.norm(rows, 2)) if rows.size else 0.0


def null_directions(model: Model, rows: np.ndarray, tolerance: float, found: np.ndarray | None = None) -> np.ndarray:
    """Unit vectors λ (k, n_rows), square to each other, with |rowsᵀ λ| below the tolerance; rows (n_rows, any).

    found (j, n_rows): directions that are known already, orthonormal; the others are square to them.
    """
    m = mechanism_of(model)
    out = np.zeros((0, len(rows))) if found is None else found
    for group in _groups(m):
        u, s, _ = np.linalg.svd(rows[group])
        null = np.zeros((len(group) - int(np.sum(s > tolerance)), len(rows)))
        null[:, group] = u[:, len(group) - len(null) :].T
        null = null - null @ out.T @ out
        out = np.concatenate([out, _along_axes(null, _candidates(m, group, len(rows)))])
    return out[len(found) if found is not None else 0 :]


def direction_names(model: Model, directions: np.ndarray, lengths: np.ndarray) -> Names:
    """Directions (k, n_rows) of rows that were divided by lengths (n_rows,), in words."""
    m = mechanism_of(model)
    return tuple(" with ".join(_shares(m, x / lengths)) for x in directions)


def _common_lengths(model: Model, lengths: np.ndarray) -> np.ndarray:
    """One length for all moments of a closure and one for all its forces, so that directions keep their angles."""
    out = lengths.copy()
    for group in _kinds(mechanism_of(model)):
        out[group] = lengths[group].max()
    return out


def _groups(m: Mechanism) -> Iterator[list[int]]:
    """Numbers of rows: the moments and the forces of each closure, each closure, all."""
    yield from _kinds(m)
    yield from ([*c.rows] for c in m.closures)
    yield [*range(m.n_rows)]


def _kinds(m: Mechanism) -> Iterator[list[int]]:
    for c in m.closures:
        for kind in ("moment", "force"):
            rows = [r for k, r in enumerate(c.rows) if c.row_kind(k) == kind]
            if rows:
                yield rows


def _candidates(m: Mechanism, group: Sequence[int], n_rows: int) -> np.ndarray:
    """Directions (k, n_rows) that are preferred: the axes of the child frames, then single rows."""
    axes = np.zeros((6 * len(m.closures), n_rows))
    for c in m.closures:
        for k, r in enumerate(c.rows):
            if r in group and k not in c.kind.row_names():
                axes[6 * c.number : 6 * c.number + 6, r] = tuple(c.child_row(k))
    return np.concatenate([axes, np.eye(n_rows)[list(group)]])


def _along_axes(space: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the rows of `space`: again and again the image of the candidate nearest to it."""
    _, s, vt = np.linalg.svd(space, full_matrices=False)
    inside = vt[s > _NOTHING].T @ vt[s > _NOTHING]
    sizes = np.maximum(np.linalg.norm(candidates, axis=1, keepdims=True), 1e-300)
    out = np.zeros((int(np.sum(s > _NOTHING)), space.shape[1]))
    for k in range(len(out)):
        images = (candidates / sizes) @ inside
        best = images[np.argmax(np.round(np.linalg.norm(images, axis=1), 9))]
        out[k] = best / np.linalg.norm(best)
        inside = inside - np.outer(out[k], out[k])
    return out


def _shares(m: Mechanism, x: np.ndarray) -> Iterator[str]:
    """The shares of closures and couplings in a direction, the first one positive; smaller ones with their factor."""
    owners = [(c.rows, c) for c in m.closures] + [((g.row,), g) for g in m.gears]
    sizes = [float(np.linalg.norm(x[list(rows)])) for rows, _ in owners]
    sign = 0.0
    for size, (rows, owner) in zip(sizes, owners, strict=True):
        if size <= _NOTHING * max(sizes):
            continue
        six, words = _wrench(owner, x[list(rows)])
        lead = six[3:] if six[3:].any() else six[:3]
        sign = sign or float(np.sign(lead[np.argmax(np.abs(lead).round(9))]))
        share = size / max(sizes)
        if words and sign * lead[np.argmax(np.abs(lead))] < 0.0:
            share = -share  # words have no direction of their own
        factor = "" if share > 0.9995 else f"{share:.3g} "
        yield f"{factor}{owner.name}: {words or wrench_name(Force.of((sign * six).tolist()))}"


def _wrench(owner: Closure | Gear, x: np.ndarray) -> tuple[np.ndarray, str]:
    """The six numbers of a share; words instead of their name where they turn with the state."""
    if isinstance(owner, Gear):
        return np.array([0.0, 0.0, x[0], 0.0, 0.0, 0.0]), "its rates"
    used = [k for k in range(len(x)) if abs(x[k]) > _NOTHING * np.abs(x).max()]
    six: np.ndarray = sum((x[k] * np.array(tuple(owner.child_row(k))) for k in used), np.zeros(6))
    six[np.abs(six) <= _NOTHING * np.abs(six).max()] = 0.0
    turning = any(k in owner.kind.row_names() for k in used)
    names = [owner.row_name(k).removeprefix(f"{owner.name}: ") for k in used] if turning else []
    return six, " and ".join(names)
