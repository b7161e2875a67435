"""What a finite-element model must be: symmetric, of positive mass, free of the ground, in one piece, in SI units."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from spanloop.errors import InputError, SpanloopWarning
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices.interfaces import MOTIONS, Interface, rigid_vectors

_SYMMETRIC = 1e-6  # of the largest entry of two rows: printed files have six digits
_INDEFINITE = 1e-6  # of the diagonal
_DENSE = 500  # rows: smaller matrices are taken as a whole
_RIGID = 1e-5  # strain energy of rigid motion, of what its degrees of freedom would have one by one: six digits
_PRINTED = 1e-5  # force of a rigid motion in a row, of the sum of its parts: six digits leave 5e-6 at most
_RESISTS = 1e-4
_NO_STIFFNESS = 1e-15  # of the largest ratio of stiffness to mass of one degree of freedom
_GROUND = 0.05  # of the first frequency
_FIRST_MOMENTS = 1e-4  # of mass times length
_MIXED = 0.02  # of a mass of displacements: condensing a tenth of the nodes leaves 0.1
_COMPONENTS = ("x", "y", "z", "rotation x", "rotation y", "rotation z")
FASTEST = 2e4  # m/s: no material carries sound faster
DENSEST = 2.3e4  # kg/m³: osmium


def row_label(fe: FiniteElements, row: int) -> str:
    """A degree of freedom in words: row 12 (node 4, y)."""
    node, component = (int(k) for k in fe.dofs[row])
    if node < 0:
        return f"row {row}"
    number = node if fe.labels is None else int(fe.labels[node])
    return f"row {row} (node {number}, {_COMPONENTS[component]})"


def check_matrices(fe: FiniteElements, owner: str) -> None:
    """Raise InputError for matrices that are not finite or symmetric, or have negative diagonals."""
    for name, A in (("M", fe.mass), ("K", fe.stiffness)):
        bad = np.flatnonzero(~np.isfinite(A.data))
        if len(bad):
            raise InputError(f"{owner}: {name} has a number that is not finite in {row_label(fe, _row_of(A, bad[0]))}")
        diagonal = A.diagonal()
        size = np.sqrt(np.abs(diagonal))
        off = abs(A - A.T).tocoo()
        largest = abs(A).max() if A.nnz else 0.0
        most = np.maximum(size[off.row] * size[off.col], 1e-9 * largest)
        wrong = np.flatnonzero(off.data > _SYMMETRIC * most)
        if len(wrong):
            k = wrong[np.argmax(off.data[wrong])]
            i, j = int(off.row[k]), int(off.col[k])
            a, b = A[i, j], A[j, i]
            half = " (one triangle only? add the other: A + A.T less the diagonal)" if not (a and b) else ""
            raise InputError(
                f"{owner}: {name} is not symmetric: {row_label(fe, i)}, {row_label(fe, j)} is {a:g} one way and {b:g} "
                f"the other{half}"
            )
        low = int(np.argmin(diagonal)) if len(diagonal) else 0
        if len(diagonal) and diagonal[low] < -1e-9 * largest:
            raise InputError(
                f"{owner}: {name} is indefinite: its diagonal is {diagonal[low]:g} in {row_label(fe, low)}"
            )
        if not largest:
            raise InputError(f"{owner}: {name} is zero")


def _row_of(A: Any, entry: int) -> int:
    return int(np.searchsorted(A.indptr, entry, side="right") - 1)


def check_definite(fe: FiniteElements, owner: str) -> None:
    """Raise InputError for a mass matrix with a negative eigenvalue beyond rounding."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    d = fe.mass.diagonal()
    scale = 1.0 / np.sqrt(np.maximum(d, 1e-12 * float(d.max())))
    D = sp.diags(scale)
    A = (D @ fe.mass @ D).tocsr()  # with a diagonal of ones, eigenvalues are of the order of 1
    if len(d) <= _DENSE:
        values, vectors = np.linalg.eigh(A.toarray())
    else:
        try:
            values, vectors = eigsh(A, 1, which="SA", tol=1e-3, v0=np.ones(len(d)), maxiter=300)
        except ArpackNoConvergence:  # many eigenvalues close to zero, none below
            return
    if values[0] < -_INDEFINITE:
        row = int(np.argmax(np.abs(vectors[:, 0])))
        raise InputError(
            f"{owner}: M is indefinite: a motion, most at {row_label(fe, row)}, has negative mass, {values[0]:.2g} of "
            "what its degrees of freedom have one by one"
        )


def check_rigid(fe: FiniteElements, root: np.ndarray, owner: str) -> None:
    """Raise InputError where K resists rigid motion, or M is not that of a body that moves rigidly."""
    R = rigid_vectors(fe.positions, fe.dofs, root)
    energy = np.einsum("ik,ik->k", R, np.asarray(fe.stiffness @ R))
    apart = fe.stiffness.diagonal() @ R**2 + _of_modes(fe) * np.einsum("ik,ik->k", R, np.asarray(fe.mass @ R))
    share = np.abs(energy) / np.where(apart > 0.0, apart, 1.0)
    if (share > _RIGID).any():
        k = int(np.argmax(share))
        resisting = np.asarray(fe.stiffness @ R[:, k])
        worst = int(np.argmax(np.abs(resisting)))
        raise InputError(
            f"{owner}: K resists rigid motion, {MOTIONS[k]}, most at {row_label(fe, worst)}: {share[k]:.2g} of the "
            "strain energy that its degrees of freedom have one by one; expected none. Leave supports out, and check "
            "positions, the order of degrees of freedom (dofs=), and that K is in global axes"
        )
    _check_rows(fe, R, owner)
    inertia = R.T @ np.asarray(fe.mass @ R)
    mass = np.diag(inertia)[:3]
    if mass.min() <= 0.0:
        raise InputError(f"{owner}: the mass along {'xyz'[int(np.argmin(mass))]} is {mass.min():g} kg; must be > 0")
    if np.ptp(mass) > 1e-4 * mass.max():
        raise InputError(
            f"{owner}: M has a mass of {mass[0]:g}, {mass[1]:g}, {mass[2]:g} kg along x, y, z; expected one mass. Are "
            "degrees of freedom missing, or supports taken out of M?"
        )
    moments = inertia[3:, :3]  # mass times [c]×
    arm = mass.max() * max(float(np.ptp(fe.positions, axis=0).max()), float(np.abs(moments).max()) / mass.max())
    odd = float(np.abs(moments + moments.T).max())
    if odd > _FIRST_MOMENTS * arm:
        raise InputError(
            f"{owner}: M has no centre of mass: its moments under accelerations along two axes contradict each other "
            f"by {odd / arm:.2g} of the mass times the length; no body does. Is an entry of M missing or wrong, or the "
            "order of degrees of freedom (dofs=)?"
        )


def warn_of_condensed_mass(fe: FiniteElements, owner: str) -> bool:
    """Warn of a mass of displacements that couples different axes: whether it does.

    Elements with displacements alone have one mass matrix along every axis, and nothing between axes. Static
    condensation mixes them, and what mass lies between the nodes that are left is no longer known.
    """
    where = fe.rows[:, :3]
    nodes = (where >= 0).all(axis=1)
    if (fe.dofs[:, 1] > 2).any() or (fe.dofs[:, 0] < 0).any() or 3 * nodes.sum() < len(fe.dofs):
        return False
    rows = where[nodes]
    own = [fe.mass[rows[:, c]][:, rows[:, c]] for c in range(3)]
    mean = (own[0] + own[1] + own[2]) / 3.0
    apart = sum(abs(A - mean).power(2).sum() for A in own)
    apart += sum(2.0 * abs(fe.mass[rows[:, a]][:, rows[:, b]]).power(2).sum() for a, b in ((0, 1), (0, 2), (1, 2)))
    share = float(np.sqrt(apart / (3.0 * abs(mean).power(2).sum())))
    if share <= _MIXED:
        return False
    warnings.warn(
        f"{owner}: M couples displacements along different axes ({share:.2g} of it), as a model does that was reduced "
        "before (static condensation): level of data 0. Linear motion is that of M and K; how deformation changes the "
        "inertia, and centrifugal and Coriolis forces on the modes, are estimates. Give the full matrices",
        SpanloopWarning,
        stacklevel=4,
    )
    return True


def _of_modes(fe: FiniteElements) -> float:
    """The least ratio [rad²/s²] of stiffness to mass of coordinates without a place; 0 without them.

    The boundary of a model that was reduced before may have no stiffness except rounding, which is compared with this.
    """
    modes = fe.dofs[:, 0] < 0
    mass = fe.mass.diagonal()[modes]
    return float((fe.stiffness.diagonal()[modes] / np.where(mass > 0.0, mass, np.inf)).min()) if modes.any() else 0.0


def _check_rows(fe: FiniteElements, R: np.ndarray, owner: str) -> None:
    """Raise InputError for a row of K in which rigid motion causes a force; warn where K has few digits.

    A force K_i r is a sum that cancels. Entries with d digits leave 5·10^-d of Σ |K_ij| |r_j|. Errors of
    positions are of the body's size, not of a node's distance, so every arm counts with that size. A lost or wrong
    entry of K leaves its own share of the sum.
    """
    node, component = fe.dofs[:, 0], fe.dofs[:, 1]
    used = node >= 0
    size = float(np.ptp(fe.positions[np.unique(node[used])], axis=0).max())
    most = np.abs(R)
    most[:, 3:] = np.where((used & (component < 3))[:, None], np.maximum(most[:, 3:], size), most[:, 3:])
    apart = np.asarray(abs(fe.stiffness) @ most)
    diagonal = fe.stiffness.diagonal()
    if not used.all():  # a model that was reduced before: rounding beside the stiffness of its modes
        inertia = np.maximum(np.einsum("ik,ik->k", R, np.asarray(fe.mass @ R)), 0.0)
        apart += _of_modes(fe) * np.sqrt(np.outer(np.maximum(fe.mass.diagonal(), 0.0), inertia))
        of_modes = np.sqrt(np.maximum(diagonal[~used, None] * (np.maximum(diagonal, 0.0) @ most**2), 0.0))
        apart[~used] = np.maximum(apart[~used], of_modes)
    share = np.abs(np.asarray(fe.stiffness @ R)) / np.where(apart > 0.0, apart, 1.0)
    row, k = np.unravel_index(int(np.argmax(share)), share.shape)
    found = float(share[row, k])
    words = (
        f"{owner}: K resists rigid motion, {MOTIONS[k]}, in {row_label(fe, int(row))}: the forces in this row leave "
        f"{found:.2g} of their sum without signs; expected 0, or 5e-06 with entries of six digits"
    )
    if found > _RESISTS:
        raise InputError(
            f"{words}. Is an entry of K missing or wrong there, or a support in K? Check also positions and the order "
            "of degrees of freedom (dofs=)"
        )
    if found > _PRINTED:
        warnings.warn(f"{words}. Give K and positions with more digits", SpanloopWarning, stacklevel=5)


def warn_of_far_frames(fe: FiniteElements, interfaces: list[Interface], owner: str) -> None:
    """Warn of an interface whose frame is farther from its nodes than the body is long."""
    own = fe.positions[np.unique(fe.dofs[fe.dofs[:, 0] >= 0, 0])]
    length = float(np.linalg.norm(np.ptp(own, axis=0)))
    for x in interfaces:
        away = float(np.linalg.norm(fe.positions[x.nodes] - x.reference, axis=1).min())
        if away > length > 0.0:
            warnings.warn(
                f"{owner}: the frame of interface {x.name!r} is {away:.3g} m from its nodes, on a body of {length:.3g} "
                "m; is its place in m, and in the axes of positions?",
                SpanloopWarning,
                stacklevel=4,
            )


def check_connected(fe: FiniteElements, interfaces: list[Interface], owner: str) -> None:
    """Raise InputError for interfaces or nodes that are not connected to the root."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    nodes = len(fe.positions)
    K = fe.stiffness.tocoo()
    of = fe.dofs[:, 0]
    a, b = of[K.row], of[K.col]
    good = (a >= 0) & (b >= 0) & (K.data != 0.0)
    joined = [(np.full(len(x.nodes) - 1, x.nodes[0]), x.nodes[1:]) for x in interfaces]
    rows = np.concatenate([a[good], *(r for r, _ in joined)])
    columns = np.concatenate([b[good], *(c for _, c in joined)])
    graph = sp.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(nodes, nodes))
    _, part = connected_components(graph, directed=False)
    root = part[interfaces[0].nodes[0]]
    for x in interfaces:
        if part[x.nodes[0]] != root:
            raise InputError(f"{owner}: interface {x.name!r} is not connected to the root: no stiffness leads there")
    has = np.unique(of[of >= 0])
    loose = has[part[has] != root]
    if len(loose):
        first = int(loose[0]) if fe.labels is None else int(fe.labels[loose[0]])
        raise InputError(
            f"{owner}: {len(loose)} nodes are not connected to the root, node {first} among them; the body has "
            "more than 6 rigid motions. Leave them out, or join the parts"
        )


def check_stiffness(fe: FiniteElements, root: np.ndarray, slowest: float, owner: str) -> None:
    """Raise InputError where the slowest mode [rad/s] is that of a mechanism, or rigid motion is not far slower."""
    mass = fe.mass.diagonal()
    used = mass > 1e-12 * mass.max()
    fastest = float((fe.stiffness.diagonal()[used] / mass[used]).max())
    if slowest**2 <= _NO_STIFFNESS * fastest:
        raise InputError(
            f"{owner}: a motion with the root held has next to no stiffness ({slowest / (2.0 * np.pi):.2g} Hz); a part "
            "of the body is loose, and it has more than 6 rigid motions"
        )
    share, k = _grounding(fe, root)
    share /= slowest
    if share > _GROUND:
        raise InputError(
            f"{owner}: K resists rigid motion, most in {MOTIONS[k]}, like a spring to the ground with {share:.2g} of "
            "the first frequency; expected none. Leave soft supports out, or give K with more digits"
        )


def _grounding(fe: FiniteElements, root: np.ndarray) -> tuple[float, int]:
    """The largest frequency [rad/s] of the rigid body on what K resists with, and its largest part among MOTIONS.

    Energies of all rigid motions, not of the six alone: what couples two of them counts.
    """
    R = rigid_vectors(fe.positions, fe.dofs, root)
    J, K = (R.T @ np.asarray(A @ R) for A in (fe.mass, fe.stiffness))
    size = np.sqrt(np.maximum(np.diag(J), 1e-9 * np.repeat([np.diag(J)[:3].max(), np.diag(J)[3:].max()], 3)))
    size = np.where(size > 0.0, size, 1.0)
    J, K = (A / np.outer(size, size) for A in (J, K))
    w, V = np.linalg.eigh(0.5 * (J + J.T))
    back = V / np.sqrt(np.where(w > 1e-9 * w[-1], w, 1.0))  # a straight rod has no inertia about its axis
    squares, motions = np.linalg.eigh(back.T @ (0.5 * (K + K.T)) @ back)
    worst = int(np.argmax(np.abs(squares)))
    return float(np.sqrt(np.abs(squares[worst]))), int(np.argmax(np.abs(back @ motions[:, worst])))


def check_units(fe: FiniteElements, mass: float, slowest: float, owner: str) -> None:
    """Raise InputError for a body that is too fast or too dense to be of any material in SI units; slowest [rad/s]."""
    own = np.unique(fe.dofs[fe.dofs[:, 0] >= 0, 0])
    sides = np.ptp(fe.positions[own], axis=0)
    length = float(sides.max())
    hertz = slowest / (2.0 * np.pi)
    advice = (
        "expected positions [m], M [kg], K [N/m]; in mm and tonnes, or with other units? any_units=True takes it as is"
    )
    if hertz * length > FASTEST:
        raise InputError(
            f"{owner}: the slowest mode of a body of {length:.3g} m has {hertz:.3g} Hz; sound would travel faster than "
            f"in any material. {advice}"
        )
    volume = float(np.prod(sides))
    if volume > 0.0 and mass > DENSEST * volume:
        raise InputError(
            f"{owner}: {mass:.3g} kg within a box of {volume:.3g} m³ is denser than any material. {advice}"
        )
