"""How far flexible bodies are deformed: strain energy of modes, how far sections turn, how far fibres are strained."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from spanloop.flexible.body import Stations
from spanloop.flexible.modes import Modal

SLOPE = 0.2  # rad: a body of one piece that turns farther is beyond what its second-order shapes follow
_STATIONS = 16


def largest_turn(kind: Modal, eta: np.ndarray) -> np.ndarray:
    """The largest angle (...) by which a section or a node of the body turns at modal coordinates (..., n) [rad].

    0 where turns_are_known is not.
    """
    if not hasattr(kind.source, "stations"):
        return np.zeros(np.shape(eta)[:-1])
    psi = _turns(_stations(kind), eta)
    if hasattr(kind.source, "turning"):
        psi = np.concatenate([psi, np.einsum("kna,...n->...ka", kind.source.turning, eta)], axis=-2)
    return np.asarray(2.0 * np.arctan(0.5 * np.linalg.norm(psi, axis=-1).max(axis=-1)))


def turns_are_known(kind: Modal) -> bool:
    """Whether the body has places besides its root whose rotation is known."""
    if not hasattr(kind.source, "stations"):
        return False
    return bool(len(_stations(kind).positions) > 1 or len(getattr(kind.source, "turning", ())))


def more_pieces(kind: Modal) -> str:
    """What to do about a body that bends farther than its shapes follow."""
    if hasattr(kind.source, "turning"):
        return "Divide its finite elements into several bodies, joined by fixed joints, or make it stiffer"
    beam = getattr(kind.source, "beam", None)
    return f"Give pieces={2 * beam.pieces if beam is not None else 2} to sl.flexible.beam, or make it stiffer"


def turning(kind: Modal) -> np.ndarray:
    """Rotations (k, n, 3) of places of the body by unit modes, to first order [rad]."""
    found = [_stations(kind).rotations] if hasattr(kind.source, "stations") else [np.zeros((1, kind.nv, 3))]
    return np.concatenate([*found, getattr(kind.source, "turning", np.zeros((0, kind.nv, 3)))])


def largest_strain(kind: Modal, eta: np.ndarray) -> np.ndarray:
    """About the largest strain (...) of a fibre of the body at modal coordinates (..., n): of bending and extension."""
    if not hasattr(kind.source, "sections_at"):
        return np.zeros(np.shape(eta)[:-1])
    at = _stations(kind)
    x = at.positions[:, 0]
    gaps = np.diff(x)
    sizes = np.array([(width, height) for width, height, _ in kind.source.sections_at(0.5 * (x[1:] + x[:-1]))])
    bent = np.abs(np.diff(_turns(at, eta), axis=-2)) / gaps[:, None]
    stretched = np.diff(np.einsum("kna,...n->...ka", at.translations, eta)[..., 0], axis=-1) / gaps
    fibres = 0.5 * (bent[..., 2] * sizes[:, 0] + bent[..., 1] * sizes[:, 1]) + np.abs(stretched)
    return np.asarray(fibres.max(axis=-1))


@lru_cache(maxsize=64)
def _stations(kind: Modal) -> Stations:
    found: Stations = kind.source.stations(_STATIONS)
    return found


def _turns(at: Stations, eta: np.ndarray) -> np.ndarray:
    """Cayley vectors (..., k, 3) of the sections."""
    psi = np.einsum("kna,...n->...ka", at.rotations, eta)
    return np.asarray(psi + 0.5 * np.einsum("knma,...n,...m->...ka", at.bent_rotations, eta, eta))
