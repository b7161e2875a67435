"""What is refused of modal data, and what warns: masses that no body has, integrals that contradict one another."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from spanloop.errors import InputError, SpanloopWarning
from spanloop.flexible.files.formats.sid import ModalData, ModalNode
from spanloop.flexible.files.unit_suspicion import LARGE
from spanloop.flexible.files.units import Units

_CONTRADICTION = 0.05  # of the size of two functions: their product in the file and in the body differ by more
_REFUSED = 0.5


def check_mass(whole: np.ndarray, data: ModalData, owner: str) -> None:
    """Raise InputError for a mass matrix that is not positive definite."""
    size = np.sqrt(np.abs(np.diag(whole)))
    if (size > 0.0).all():
        scaled = whole / np.outer(size, size)
        rigid = np.linalg.eigvalsh(scaled[:6, :6])
        if rigid[0] > 1e-10:
            across = scaled[:6, 6:]
            share = float(
                np.linalg.eigvals(
                    np.linalg.solve(scaled[6:, 6:], across.T @ np.linalg.solve(scaled[:6, :6], across))
                ).real.max()
            )
            if share < 1.0 and np.linalg.eigvalsh(scaled)[0] > 1e-12:
                return
            raise InputError(
                f"{owner}: mass, mdCM, J, Ct, Cr and Me of {data.source} belong to no body: {share:.4g} of the "
                "kinetic energy of a mode would be that of rigid motion; less than 1 is possible (0.97 for the first "
                "bending mode of a bar). Are the integrals of fewer or other nodes than the modes?"
            )
    raise InputError(
        f"{owner}: mass, mdCM, J and Me of {data.source} leave a rigid motion or a mode without inertia; expected a "
        "positive definite matrix"
    )


def warn_of_size(data: ModalData, scale: Units, units: str) -> None:
    places = np.array([node.position.constant.ravel() for node in data.nodes]) * scale.length
    side = float(np.ptp(places, axis=0).max(initial=0.0)) if len(places) else 0.0
    if side > LARGE:
        warnings.warn(
            f"{data.file}: read with units={units!r}, the body is {side:.3g} m long. Are its "
            "units others, such as units='mm t s'?",
            SpanloopWarning,
            stacklevel=3,
        )


def warn_of_directions(nodes: Mapping[str, ModalNode], data: ModalData) -> None:
    """Nodes of solid elements have no rotations, and files have zeros for them."""
    still = [
        f"{name!r} (node {node.label})"
        for name, node in nodes.items()
        if node.translation.constant.any() and not node.rotation.constant.any()
    ]
    if still:
        warnings.warn(
            f"{data.file}: interface {', '.join(still)} is displaced by the modes and does not turn (psi is 0), as "
            "nodes of solid elements: what is attached keeps its direction while the body bends. Export a node with "
            "rotations that is tied to the surface there (RBE2, RBE3)",
            SpanloopWarning,
            stacklevel=3,
        )


def check_contradictions(products: np.ndarray, functions: np.ndarray, data: ModalData, owner: str) -> None:
    """Judge what the nearest positive semidefinite products differ from those of the file by.

    Those of real displacements are positive; files with lumped masses or few digits are not quite.
    """
    size = np.sqrt(np.maximum(np.diag(products), 0.0))
    size[4:] = np.repeat(size[4:].reshape(-1, 3).max(axis=1), 3)
    size[1:4] = size[1:4].max()
    error = float((np.abs(functions.T @ functions - products) / np.outer(size, size)).max())
    said = (
        f"integrals over the mass (mdCM, J, Ct, Oe, Gr) of {data.file} contradict one another by "
        f"{error:.1g} of their size, no body has them all"
    )
    if error > _REFUSED:
        raise InputError(f"{owner}: {said}. Are Ct and Cr those of another frame of reference than Oe?")
    if error > _CONTRADICTION:
        warnings.warn(
            f"{said}. Linear motion is that of the file; how the inertia changes with deformation is that of the "
            "nearest body",
            SpanloopWarning,
            stacklevel=4,
        )


def check_damping(damping: np.ndarray, data: ModalData, owner: str) -> None:
    d = np.diag(damping)
    if (d < 0.0).any():
        raise InputError(f"{owner}: De of {data.source} is negative in a mode; give damping= as ratios instead")
    size = np.sqrt(np.outer(d, d))
    off = np.abs(damping - np.diag(d))
    if (off > 0.01 * np.where(size > 0.0, size, np.inf)).any():
        warnings.warn(
            f"{data.file}: De couples the modes of the body with its root held; the coupling is "
            "left out. damping= gives ratios instead",
            SpanloopWarning,
            stacklevel=3,
        )
