"""`sl.flexible.from_matrices`: a flexible body from mass and stiffness of a finite-element model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices import check
from spanloop.flexible.matrices.bases import BASES, CHOICES, Reduction, Wanted
from spanloop.flexible.matrices.damping import modal_damping
from spanloop.flexible.matrices.interfaces import read_interfaces, tied
from spanloop.flexible.matrices.real_numbers import real_numbers
from spanloop.flexible.matrices.reduced_body import Drawn, reduced_body

_MOST_MODES = 120
_OWNER = "from_matrices"
_ADVICE = {
    "M": "",
    "K": ". Structural damping is no part of K: give K.real and damping= as ratios, half the loss factor",
}


def from_matrices(
    M: Any,
    K: Any = None,
    positions: ArrayLike | None = None,
    *,
    interfaces: Mapping[str, Any],
    modes: int | None = None,
    up_to: float | None = None,
    by: str = "frequency",
    basis: str = "craig-bampton",
    tie: str | Mapping[str, str] = "rigid",
    dofs: Any = None,
    damping: float | Sequence[float] = 0.0,
    stiffening: Mapping[str, Any] | Callable[[np.ndarray], Any] | None = None,
    surface: ArrayLike | None = None,
    surface_energy: Callable[[np.ndarray], np.ndarray] | None = None,
    any_units: bool = False,
    any_spin: bool = False,
) -> FiniteElementBody:
    """Return a flexible body from mass and stiffness of a finite-element model that nothing holds.

    M, K: (N, N), SciPy sparse or dense, symmetric [kg, N/m; rotations: kg m², N m/rad], in the axes of the body; or M
        alone: a FiniteElements of a file
    positions: (nodes, 3) [m]
    interfaces: nodes by name, {"root": 0, "tip": [17, 18, 19]}: frames that carry something. "root" is where the
        body's joint holds it, and the origin of the body. The frame of several nodes is at their mean, or
        (nodes, (x, y, z)) says where
    modes: how many inner modes, 6 by default; or up_to: all up to a frequency [Hz]. by: of `modes` the slowest
        ("frequency"), or those with the largest "effective mass"
    basis: "craig-bampton": static shapes of the interfaces, and inner modes with all of them held; "guyan": the static
        ones; "rubin": the static ones, and modes with the root held; "cantilever": these modes alone; "free": modes of
        the free body, re-based to the root; "full": all
    tie: how several nodes are one frame: "rigid" (RBE2) or "mean" (RBE3); or one of them by interface
    dofs: 3 (displacements) or 6 (and rotations) of every node in order, from the size by default; or (N, 2): node and
        component 0 to 5 of each row, node -1 for coordinates without a place
    damping: ratio of each mode's critical one with the root held, for all or one each
    stiffening: differential stiffness matrices of unit loads by key ("ax", "wzwz", "dwz", "tip.fx", ...), or a function
        that returns one for static displacements (N,); docs/finite_elements.md. Without it the body does not stiffen
        or soften under load, and fast spins are refused in simulations
    surface: triangles (t, 3) of nodes, by number as interfaces are, to be drawn
    surface_energy: a function of shapes (N, n) that returns (t, n, n), d_iᵀ K_e d_k with the stiffness of the element
        behind each triangle: pages of runs show the strain energy in colours
    any_units: takes frequencies and densities that no material has in SI units
    any_spin: without stiffening simulations refuse spins above three tenths of the first frequency, where the motion is
        wrong by a tenth and diverges later; True takes them

    Of the result, `frequencies` are those with the root held in rad/s (robot.modes(q).frequencies are in Hz).

    >>> boom = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=4)
    >>> part = sl.flexible.from_matrices(sl.flexible.to_matrices(boom), interfaces={"root": 0, "tip": 8}, modes=2)
    >>> part.n, part.level, round(part.mass, 4), (part.frequencies[:2] / 6.2832).round(2)
    (8, 1, 0.8482, array([14.25, 14.25]))
    """
    fe = _model(M, K, positions, dofs)
    wanted = _wanted(modes, up_to, by)
    if not isinstance(basis, str) or basis.replace("_", "-") not in BASES:
        raise InputError(f"{_OWNER}: basis is {basis!r}; {nearest(str(basis), BASES)}")
    basis = basis.replace("_", "-")
    if basis in ("guyan", "full") and (modes or up_to is not None):
        kept = "static shapes alone" if basis == "guyan" else "all coordinates"
        raise InputError(f"{_OWNER}: basis={basis!r} has {kept}; leave modes= and up_to= out")
    _refuse_idle_choice(basis, wanted)
    check.check_matrices(fe, _OWNER)
    found = read_interfaces(fe, interfaces, tie, _OWNER)
    check.warn_of_far_frames(fe, found, _OWNER)
    check.check_rigid(fe, found[0].reference, _OWNER)
    check.check_connected(fe, found, _OWNER)
    check.check_definite(fe, _OWNER)
    job = Reduction(fe, found, tied(fe, found), basis)
    is_condensed = check.warn_of_condensed_mass(fe, _OWNER)
    made = reduced_body(job, wanted, _drawn(fe, surface, surface_energy), stiffening, is_condensed, _OWNER)
    check.check_stiffness(fe, found[0].reference, float(made.frequencies.min()), _OWNER)
    if not any_units:
        check.check_units(fe, made.mass, float(made.frequencies.min()), _OWNER)
    return replace(made, damping=modal_damping(damping, made, _OWNER), any_spin=bool(any_spin))


def _refuse_idle_choice(basis: str, wanted: Wanted) -> None:
    """Raise InputError for a choice by effective mass where nothing is chosen by it."""
    if wanted.by == "frequency":
        return
    whole = {
        "guyan": "has static shapes alone",
        "full": "has all coordinates",
        "free": "has modes of the free body, which move no mass as a whole",
    }
    why = f"basis={basis!r} {whole[basis]}" if basis in whole else "up_to= takes all modes up to a frequency"
    if basis in whole or wanted.up_to is not None:
        advice = "leave by= out" if basis in whole else "give modes=, how many, in its place, or leave by= out"
        raise InputError(f"{_OWNER}: by is {wanted.by!r}, but {why}; {advice}")


def _model(M: Any, K: Any, positions: Any, dofs: Any) -> FiniteElements:
    """The finite elements that a user gives, checked in shape; rows without mass and stiffness left out."""
    try:
        import scipy.sparse as sp
    except ImportError:
        raise UnsupportedError(f"{_OWNER}: finite elements need SciPy; pip install 'spanloop[fem]'") from None
    if isinstance(M, FiniteElements):
        if K is not None or positions is not None or dofs is not None:
            raise InputError(f"{_OWNER}: M is a finite-element model; leave K, positions and dofs out")
        source, labels = M.source, M.labels
        M, K, positions, dofs = M.mass, M.stiffness, M.positions, M.dofs
    else:
        source, labels = "matrices", None
        if K is None or positions is None:
            raise InputError(f"{_OWNER}: expected M, K and positions, or a FiniteElements")
    matrices = {}
    for name, A in (("M", M), ("K", K)):
        real = real_numbers(A, f"{_OWNER}: {name}", _ADVICE[name])
        try:
            matrices[name] = sp.csr_matrix(real, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                f"{_OWNER}: {name} is {type(A).__name__}; expected a matrix of numbers, sparse or dense"
            ) from None
        rows, columns = matrices[name].shape
        if rows != columns or not rows:
            raise InputError(f"{_OWNER}: {name} is {rows}x{columns}; expected a square matrix")
    n = matrices["K"].shape[0]
    if matrices["M"].shape[0] != n:
        raise InputError(f"{_OWNER}: M has {matrices['M'].shape[0]} rows, K {n}; expected the same degrees of freedom")
    places = _positions(positions)
    table = _dofs(dofs, n, len(places))
    used = np.flatnonzero((abs(matrices["K"]).sum(axis=1).A1 > 0) | (abs(matrices["M"]).sum(axis=1).A1 > 0))
    if len(used) < n:
        matrices, table = {k: A[used][:, used] for k, A in matrices.items()}, table[used]
    return FiniteElements(matrices["M"], matrices["K"], places, table, labels, source)


def _positions(positions: Any) -> np.ndarray:
    positions = real_numbers(positions, f"{_OWNER}: positions")
    try:
        found = np.array(positions, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{_OWNER}: positions are {positions!r:.60}; expected (nodes, 3) [m]") from None
    if found.ndim != 2 or found.shape[1] != 3 or not len(found):
        raise InputError(f"{_OWNER}: positions have the shape {found.shape}; expected (nodes, 3) [m]")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        raise InputError(f"{_OWNER}: the position of node {bad[0]} is not finite")
    return found


def _dofs(dofs: Any, n: int, nodes: int) -> np.ndarray:
    if dofs is None or (isinstance(dofs, Integral) and not isinstance(dofs, bool)):
        each = int(dofs) if dofs is not None else n // nodes
        if each not in (3, 6) or each * nodes != n:
            raise InputError(
                f"{_OWNER}: {nodes} positions and matrices of {n} rows; expected 3 or 6 rows for each node, or dofs= "
                "with node and component of each row"
            )
        return np.stack([np.repeat(np.arange(nodes), each), np.tile(np.arange(each), nodes)], axis=1)
    found = np.asarray(dofs)
    if found.shape != (n, 2) or found.dtype.kind not in "iu":
        raise InputError(f"{_OWNER}: dofs is {dofs!r:.60}; expected 3, 6, or whole numbers ({n}, 2): node, component")
    bad = np.flatnonzero((found[:, 0] < -1) | (found[:, 0] >= nodes) | (found[:, 1] < 0) | (found[:, 1] > 5))
    if len(bad):
        k = int(bad[0])
        raise InputError(
            f"{_OWNER}: dofs[{k}] is {found[k].tolist()}; expected a node from 0 to {nodes - 1} and a component "
            "from 0 to 5"
        )
    own = found[found[:, 0] >= 0]
    pairs, counts = np.unique(own, axis=0, return_counts=True)
    if (counts > 1).any():
        node, component = pairs[counts > 1][0].tolist()
        raise InputError(f"{_OWNER}: dofs has component {component} of node {node} twice")
    return found.astype(int)


def _wanted(modes: Any, up_to: Any, by: str) -> Wanted:
    if by not in CHOICES:
        raise InputError(f"{_OWNER}: by is {by!r}; {nearest(str(by), CHOICES)}")
    if modes is not None and up_to is not None:
        raise InputError(f"{_OWNER}: modes and up_to are given; give one of them")
    if up_to is not None:
        if isinstance(up_to, bool) or not isinstance(up_to, Real) or not 0.0 < float(up_to) < np.inf:
            raise InputError(f"{_OWNER}: up_to is {up_to!r}; expected a frequency [Hz]")
        return Wanted(None, 2.0 * np.pi * float(up_to), by)
    count = 6 if modes is None else modes
    if isinstance(count, bool) or not isinstance(count, Integral) or not 0 <= int(count) <= _MOST_MODES:
        raise InputError(f"{_OWNER}: modes is {modes!r}; expected a whole number from 0 to {_MOST_MODES}")
    return Wanted(int(count), None, by)


def _drawn(fe: FiniteElements, surface: Any, energy: Any) -> Drawn | None:
    if surface is None:
        if energy is not None:
            raise InputError(f"{_OWNER}: surface_energy is given without surface=, whose triangles it is for")
        return None
    found = np.asarray(surface)
    if found.ndim != 2 or found.shape[1] != 3 or found.dtype.kind not in "iu" or not len(found):
        raise InputError(f"{_OWNER}: surface is {surface!r:.60}; expected triangles (t, 3) of nodes")
    known = np.arange(len(fe.positions)) if fe.labels is None else np.asarray(fe.labels)
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, found, sorter=order), len(known) - 1)
    wrong = found[known[order[place]] != found]
    if len(wrong):
        range_of = "from 0" if fe.labels is None else f"numbers of the file, {known.min()} to {known.max()}"
        raise InputError(f"{_OWNER}: surface names node {wrong[0]}; there are {len(known)}, {range_of}")
    if energy is not None and not callable(energy):
        raise InputError(f"{_OWNER}: surface_energy is {energy!r:.60}; expected a function of shapes (N, n)")
    return Drawn(order[place], energy)
