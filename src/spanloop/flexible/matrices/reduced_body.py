"""From shapes of a finite-element model to a flexible body: moments, interfaces, what the shapes leave out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, SpanloopWarning
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices.bases import Reduction, Wanted
from spanloop.flexible.matrices.interfaces import ROOT
from spanloop.flexible.matrices.mass import MassMoments, mass_moments
from spanloop.flexible.matrices.real_numbers import real_numbers
from spanloop.flexible.matrices.stiffening import (
    ACCELERATIONS,
    LOADS,
    TURNS,
    Stiffening,
    inertia_load,
    read_stiffening,
    stiffening,
)
from spanloop.flexible.matrices.turning import turning

_MOST_MODES = 120
_MANY_MODES = 24


@dataclass(frozen=True, eq=False)
class Drawn:
    """The surface that is drawn: triangles (t, 3) of nodes; energy: of the elements behind them, by shapes (N, n)."""

    triangles: np.ndarray
    energy: Callable[[np.ndarray], np.ndarray] | None = None


def reduced_body(
    job: Reduction, wanted: Wanted, drawn: Drawn | None, given: Any, is_condensed: bool, owner: str
) -> FiniteElementBody:
    """The body, without damping; is_condensed: whether M and K were reduced before."""
    fe, root = job.fe, job.interfaces[0].reference
    z, inner = job.shapes(wanted, owner)
    if job.held.negative_pivots:
        raise InputError(
            f"{owner}: K is indefinite: {job.held.negative_pivots} of its eigenvalues are negative with the root held"
        )
    if z.shape[1] > _MOST_MODES:
        raise InputError(f"{owner}: {z.shape[1]} modes; {_MOST_MODES} at most. Name fewer interfaces, or fewer modes")
    if z.shape[1] > _MANY_MODES:
        warnings.warn(
            f"{owner}: {z.shape[1]} modes; compiling the dynamics of a body takes seconds with 12, half a minute with "
            "24, minutes with 48 and an hour with 120. Give fewer modes=, or name fewer interfaces",
            SpanloopWarning,
            stacklevel=4,
        )
    z, units = _scaled(fe, job, z)
    shapes = np.asarray(job.tied.Z @ z)
    moments = mass_moments(fe, shapes, root)
    stiffness = np.einsum("ik,ik->k", z, np.asarray(job.tied.stiffness @ z))
    level, bent, ends = 1, np.zeros((*moments.masses.shape, 3, 4)), {}
    loads: tuple[str, ...] = ()
    if given is not None:
        found = _stiffening(job, shapes, moments, given, owner)
        level, bent, ends, loads = 2, found.affine, found.at, found.given
    elif _is_reduced(job) or is_condensed:
        level = 0
    n = z.shape[1]
    motion = {name: _tidy(job.tied.frame_motion(name, z)) for name in job.names}
    second = {name: ends.get(name, np.zeros((n, n, 6))) for name in job.names}
    frames = {x.name: x.reference - root for x in job.interfaces}
    surface = _surface(fe, shapes, root, drawn)
    return FiniteElementBody(
        **moments.arrays(bent),
        stiffness=stiffness,
        damping=np.zeros(n),
        mode_names=tuple(f"m{k + 1}" for k in range(n)),
        mode_units=units,
        names=job.names,
        at=_stacked([frames[name] for name in job.names], (3,)),
        shifts=_stacked([motion[name][:3].T for name in job.names], (n, 3)),
        turns=_stacked([motion[name][3:].T for name in job.names], (n, 3)),
        bent_shifts=_stacked([second[name][..., :3] for name in job.names], (n, n, 3)),
        bent_turns=_stacked([second[name][..., 3:] for name in job.names], (n, n, 3)),
        level=level,
        loads=loads,
        basis=f"{job.basis} ({inner} inner)" if job.basis == "craig-bampton" else job.basis,
        size=len(fe.dofs),
        source=fe.source,
        effective=effective_shares(moments),
        left_out=_left_out(job, z, stiffness),
        turning=turning(fe, shapes, stiffness),
        **surface,  # type: ignore[arg-type]
    )


def _stacked(parts: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.stack(parts) if parts else np.zeros((0, *shape))


def _tidy(motion: np.ndarray) -> np.ndarray:
    """Motions (6, n) of a frame without residues of rounding: shapes move by 1 m at most, or turn by 1 rad."""
    return np.where(np.abs(motion) > 1e-13, motion, 0.0)


def _is_reduced(job: Reduction) -> bool:
    """Whether the matrices have nothing but interfaces, and coordinates without a place."""
    at = np.concatenate([x.nodes for x in job.interfaces])
    own = job.fe.dofs[:, 0]
    return bool(np.isin(own[own >= 0], at).all())


def _scaled(fe: FiniteElements, job: Reduction, z: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Shapes with a largest displacement of 1 m that is positive; or rotation of 1 rad where nothing is displaced."""
    d = np.asarray(job.tied.Z @ z)
    moving = (fe.dofs[:, 1] < 3) & (fe.dofs[:, 0] >= 0)
    size = np.ptp(fe.positions, axis=0).max() or 1.0
    turning = (fe.dofs[:, 1] >= 3) & (fe.dofs[:, 0] >= 0)
    out, units = z.copy(), []
    for k in range(z.shape[1]):
        shift, turn = d[moving, k], d[turning, k]
        most = np.abs(shift).max(initial=0.0)
        is_turn = most <= 1e-6 * size * np.abs(turn).max(initial=0.0)
        values = turn if is_turn else shift
        largest = values[np.argmax(np.abs(values) > (1 - 1e-6) * np.abs(values).max())] if len(values) else 1.0
        out[:, k] /= largest or 1.0
        units.append("rad" if is_turn else "m")
    return out, tuple(units)


def _stiffening(job: Reduction, shapes: np.ndarray, moments: MassMoments, given: Any, owner: str) -> Stiffening:
    root = job.interfaces[0].reference

    def static(key: str) -> np.ndarray:
        if "." in key:
            name, _, load = key.rpartition(".")
            f = job.interface_load(name)[:, LOADS.index(load)]
        else:
            f = np.asarray(job.tied.Z.T @ inertia_load(job.fe, key, root))
        return np.asarray(job.tied.Z @ job.deflection(f[:, None]))[:, 0]

    matrices = read_stiffening(job.fe, given, (ROOT, *job.names), static, owner)
    products = moments.functions[:, :4].T @ moments.functions[:, :4]
    return stiffening(matrices, shapes, products, (ROOT, *job.names))


def effective_shares(moments: MassMoments) -> np.ndarray:
    """Shares (6,) of the mass and of the moments of inertia about the root that the modes move."""
    total = np.diag(moments.rigid)
    moved = np.einsum("ki,ij,kj->k", moments.momentum, np.linalg.pinv(moments.masses), moments.momentum)
    return np.asarray(np.divide(moved, total, out=np.zeros(6), where=total > 1e-12 * total.max()))


def _left_out(job: Reduction, z: np.ndarray, stiffness: np.ndarray) -> float:
    """The largest share of strain energy that the shapes miss under a unit acceleration or load at an interface."""
    root = job.interfaces[0].reference
    loads = [np.asarray(job.tied.Z.T @ inertia_load(job.fe, key, root)) for key in (*ACCELERATIONS, *TURNS)]
    f = np.column_stack([*loads, *(job.interface_load(name) for name in job.names)])
    if ROOT in job.tied.rigid:
        f[job.tied.rigid[ROOT]] = 0.0
    whole = np.einsum("ik,ik->k", f, job.deflection(f))
    found = ((z.T @ f) ** 2 / stiffness[:, None]).sum(axis=0)
    counts = whole > 0.0
    return float(np.clip(1.0 - found[counts] / whole[counts], 0.0, 1.0).max(initial=0.0))


def _surface(fe: FiniteElements, shapes: np.ndarray, root: np.ndarray, drawn: Drawn | None) -> dict[str, np.ndarray]:
    n = shapes.shape[1]
    if drawn is None:
        return {
            "vertices": np.zeros((0, 3)),
            "triangles": np.zeros((0, 3), dtype=int),
            "movement": np.zeros((0, n, 3)),
            "energies": np.zeros((0, n, n)),
        }
    nodes, triangles = np.unique(drawn.triangles, return_inverse=True)
    rows = fe.rows[nodes, :3]
    movement = np.where((rows >= 0)[:, :, None], shapes[rows], 0.0).transpose(0, 2, 1)
    return {
        "vertices": fe.positions[nodes] - root,
        "triangles": triangles.reshape(-1, 3),
        "movement": np.ascontiguousarray(movement),
        "energies": np.zeros((0, n, n)) if drawn.energy is None else _energies(drawn, shapes),
    }


def _energies(drawn: Drawn, shapes: np.ndarray) -> np.ndarray:
    returned = real_numbers(drawn.energy(shapes), "from_matrices: surface_energy")  # type: ignore[misc]
    found = np.asarray(returned, dtype=float)
    expected = (len(drawn.triangles), shapes.shape[1], shapes.shape[1])
    if found.shape != expected or not np.isfinite(found).all():
        raise InputError(f"from_matrices: surface_energy returned {found.shape}; expected {expected}, finite numbers")
    return found
