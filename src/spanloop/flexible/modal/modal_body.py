"""`sl.flexible.from_modal`: a flexible body from modes and integrals over its mass.

The modes of a free body move its root, too. Here a body moves as rigid motion of its root and shapes that vanish there,
so that each mode gives up the rigid motion of the root that it contains,

    φ'_k = φ_k − Φ_k − Ψ_k × (x − x_r),    ψ'_k = ψ_k − Ψ_k,

which has no strain: Ke stays. All products of 1, x, φ' over the mass are combinations of those of 1, x, φ. The modes
are then combined so that stiffness and mass are diagonal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.flexible.files.formats.sid import ModalData, ModalNode
from spanloop.flexible.files.units import Units
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.matrices.damping import modal_damping
from spanloop.flexible.matrices.interfaces import ROOT, check_name
from spanloop.flexible.matrices.mass import MassMoments, factor
from spanloop.flexible.matrices.reduced_body import effective_shares
from spanloop.flexible.matrices.stiffening import Stiffening, stiffening
from spanloop.flexible.modal.integrals import ModalIntegrals, modal_integrals, node_stiffening
from spanloop.flexible.modal.modal_checks import (
    check_contradictions,
    check_damping,
    check_mass,
    warn_of_directions,
    warn_of_size,
)
from spanloop.flexible.particles import axial, skew

_OWNER = "from_modal"
_STILL = 1e-6  # of the largest motion of a mode: a root that moves less does not move


def from_modal(
    data: ModalData,
    *,
    interfaces: Mapping[str, int],
    units: str = "m kg s",
    damping: float | Sequence[float] | None = None,
    any_spin: bool = False,
) -> FiniteElementBody:
    """Return a flexible body from modes and integrals over its mass, as sl.flexible.load_modal reads them.

    data: the modal data; modes of a free body are re-based to the root
    interfaces: nodes of the file by name, {"root": 6023, "tip": 6022}: frames that carry something, parallel to the
        axes of the file. "root" is where the body's joint holds it, and the origin of the body
    units: length, mass and time of the file, such as "mm t s"
    damping: ratio of each mode's critical one with the root held, for all or one each; by default De of the file
    any_spin: simulations take any spin of a body without geometric stiffening

    Me, Ct, Cr, J, mdCM and Ke are those of the file at η = 0, exactly. Level of data: 0 where Oe and Cr are constant, 1
    where they are to first order, 2 with geometric stiffness. docs/finite_element_files.md
    """
    if not isinstance(data, ModalData):
        raise InputError(f"{_OWNER}: data is {type(data).__name__}; expected the result of sl.flexible.load_modal")
    scale = Units.of(units)
    if not data.modes:
        raise InputError(f"{_OWNER}: {data.source} has no modes: it is a rigid body")
    integrals = modal_integrals(data, scale, _OWNER)
    nodes = _chosen(data, interfaces)
    warn_of_size(data, scale, units)
    warn_of_directions(nodes, data)
    root = nodes[ROOT]
    about, moves = _motion(root, scale)
    base = _Base(integrals, about, moves)
    Z = _modes(base, _displacements(data, base, scale), data)
    made = _body(data, integrals, base, Z, nodes, scale)
    d = np.diag(Z.T @ integrals.damping @ Z) if damping is None else modal_damping(damping, made, _OWNER)
    if damping is None:
        check_damping(Z.T @ integrals.damping @ Z, data, _OWNER)
    return replace(made, damping=np.asarray(d), any_spin=bool(any_spin))


class _Base:
    """The integrals for shapes φ' of a root at `about` (3,) that moves by `moves` (6, n), displacement first."""

    def __init__(self, of: ModalIntegrals, about: np.ndarray, moves: np.ndarray):
        self.of, self.about, self.moves = of, about, moves
        n = moves.shape[1]
        rebased = np.eye(6 + n)
        rebased[:3, 3:6] = skew(about)  # a rotation about the root as one about the origin
        rebased[:6, 6:] = -rebased[:6, :6] @ moves
        self.mass_matrix = rebased.T @ of.mass_matrix @ rebased
        functions = np.eye(4 + 3 * n)  # 1, x − x_r, φ' in terms of 1, x, φ
        functions[1:4, 0] = -about
        for k in range(n):
            rows = slice(4 + 3 * k, 7 + 3 * k)
            turn = skew(moves[3:, k])
            functions[rows, 0] = -moves[:3, k] + turn @ about
            functions[rows, 1:4] = -turn
        self.products = functions @ of.products @ functions.T
        self.crossed_products = functions @ of.crossed_products @ functions.T

    def motion(self, position: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """How a place moves (6, n) by φ', from how it moves by φ."""
        own = moves - self.moves
        own[:3] -= np.cross(self.moves[3:].T, position - self.about).T
        return np.asarray(own)


def _chosen(data: ModalData, interfaces: Any) -> dict[str, ModalNode]:
    by_label = {node.label: node for node in data.nodes}
    if not isinstance(interfaces, Mapping) or ROOT not in interfaces:
        raise InputError(
            f"{_OWNER}: interfaces is {interfaces!r:.60}; expected nodes of the file by name, with 'root', where the "
            f"body's joint holds it, as {{'root': {next(iter(by_label), 1)}}}"
        )
    found: dict[str, ModalNode] = {}
    for name in (ROOT, *(k for k in interfaces if k != ROOT)):
        check_name(name, _OWNER)
        label = interfaces[name]
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)) or int(label) not in by_label:
            raise InputError(
                f"{_OWNER}: interface {name!r} is node {label!r}, which {data.file} does not have; "
                f"{nearest(str(label), [str(x) for x in by_label])}"
            )
        if any(by_label[int(label)] is other for other in found.values()):
            raise InputError(f"{_OWNER}: interface {name!r}: node {label} belongs to another one already")
        found[name] = by_label[int(label)]
    return found


def _motion(node: ModalNode, units: Units) -> tuple[np.ndarray, np.ndarray]:
    """Where a node is (3,), and how it moves (6, n), displacement first."""
    moves = np.concatenate([node.translation.constant * units.length, node.rotation.constant])
    return node.position.constant.ravel() * units.length, moves


def _displacements(data: ModalData, base: _Base, units: Units) -> np.ndarray:
    """How all nodes move (nodes, 6, n) by φ'."""
    return np.array([base.motion(*_motion(node, units)) for node in data.nodes])


def _modes(base: _Base, moved: np.ndarray, data: ModalData) -> np.ndarray:
    """Z (n, n): the modal coordinates of the file are Z η; the largest displacement of a node by a unit of η is 1 m."""
    K, M = base.of.stiffness, base.mass_matrix[6:, 6:]
    size = np.sqrt(np.abs(np.diag(K)))
    k = np.linalg.eigvalsh(K / np.outer(size, size)) if (size > 0.0).all() and len(K) else np.zeros(1)
    if not k[0] > 1e-12:
        raise InputError(
            f"{_OWNER}: Ke of {data.source} is not positive definite: a mode without stiffness is rigid motion; "
            "leave it out of the file"
        )
    check_mass(base.mass_matrix, data, _OWNER)
    L = np.linalg.cholesky(K)
    _, V = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, M).T))
    Z = np.linalg.solve(L.T, V[:, ::-1])
    shift, turn = (np.einsum("pck,km->pcm", moved[:, at], Z) for at in (slice(0, 3), slice(3, 6)))
    for m in range(Z.shape[1]):
        values = shift[..., m] if np.abs(shift[..., m]).max() > 1e-9 * np.abs(turn[..., m]).max() else turn[..., m]
        largest = values.ravel()[np.argmax(np.abs(values).ravel() > (1 - 1e-6) * np.abs(values).max())]
        if largest == 0.0:
            raise InputError(
                f"{_OWNER}: no node of {data.source} but the root moves with mode {m + 1} of the held body"
            )
        Z[:, m] /= largest
    return Z


def _body(
    data: ModalData, of: ModalIntegrals, base: _Base, Z: np.ndarray, nodes: Mapping[str, ModalNode], units: Units
) -> FiniteElementBody:
    n = Z.shape[1]
    spread = np.eye(4 + 3 * n)
    spread[4:, 4:] = np.kron(Z.T, np.eye(3))
    products = spread @ base.products @ spread.T
    functions = factor(products, n)
    check_contradictions(products, functions, data, _OWNER)
    matrix = base.mass_matrix
    pairs = (spread @ base.crossed_products @ spread.T)[4:, 4:].reshape(n, 3, n, 3)
    swirls = axial(pairs.transpose(2, 0, 1, 3))  # at i, j: of φ_j φ_iᵀ
    moments = MassMoments(matrix[:6, :6], matrix[:6, 6:] @ Z, Z.T @ matrix[6:, 6:] @ Z, functions, swirls)
    names = tuple(name for name in nodes if name != ROOT)
    second = _second_order(data, of, base, Z, nodes, units)
    motions = {name: base.motion(*_motion(nodes[name], units)) @ Z for name in names}
    at = np.array([_motion(nodes[name], units)[0] - base.about for name in names]).reshape(-1, 3)
    moved = _displacements(data, base, units) @ Z
    turning = np.array([x[3:].T for x in moved if np.abs(x[3:]).max() > 1e-12]).reshape(-1, n, 3)
    is_turn = np.abs(moved[:, :3]).max(axis=(0, 1)) < 0.5  # scaled to a rotation of 1 rad
    return FiniteElementBody(
        **moments.arrays(second.affine),
        stiffness=np.diag(Z.T @ of.stiffness @ Z).copy(),
        damping=np.zeros(n),
        mode_names=tuple(f"m{k + 1}" for k in range(n)),
        mode_units=tuple("rad" if x else "m" for x in is_turn),
        names=names,
        at=at,
        shifts=np.array([motions[name][:3].T for name in names]).reshape(-1, n, 3),
        turns=np.array([motions[name][3:].T for name in names]).reshape(-1, n, 3),
        bent_shifts=np.array([second.at[name][..., :3] for name in names]).reshape(-1, n, n, 3),
        bent_turns=np.array([second.at[name][..., 3:] for name in names]).reshape(-1, n, n, 3),
        level=2 if second.given else int(of.pairs_known),
        loads=second.given,
        basis="modal data",
        size=len(data.modes),
        source=data.source,
        effective=effective_shares(moments),
        left_out=np.nan,
        vertices=np.zeros((0, 3)),
        triangles=np.zeros((0, 3), dtype=int),
        movement=np.zeros((0, n, 3)),
        energies=np.zeros((0, n, n)),
        turning=turning,
    )


def _second_order(
    data: ModalData, of: ModalIntegrals, base: _Base, Z: np.ndarray, nodes: Mapping[str, ModalNode], units: Units
) -> Stiffening:
    """Second-order displacements: those of the file's frame, which must be the root's."""
    names = tuple(name for name in nodes if name != ROOT)
    given = dict(of.stiffening)
    for name in names:
        given |= node_stiffening(name, nodes[name].translation, nodes[name].rotation, units)
    if given and not _is_still(base, data, units):
        raise InputError(
            f"{_OWNER}: {data.source} has geometric stiffness of a body whose root, node {nodes[ROOT].label}, moves "
            "with the modes; it holds for a body that is held elsewhere. Give the node that the modes hold as root, or "
            "export it with the frame of reference at the root, or without geometric stiffness"
        )
    found = stiffening(given, Z, of.products[:4, :4], (ROOT, *names))
    shifted = np.eye(4)
    shifted[1:, 0] = base.about  # 1, x in terms of 1, x − x_r
    return replace(found, affine=found.affine @ shifted)


def _is_still(base: _Base, data: ModalData, units: Units) -> bool:
    every = np.array([_motion(node, units)[1] for node in data.nodes])
    most = np.abs(every).max(axis=(0, 2), initial=0.0)
    return bool((np.abs(base.moves) <= _STILL * np.array([most[:3].max()] * 3 + [most[3:].max()] * 3)[:, None]).all())
