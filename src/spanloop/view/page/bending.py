"""Surfaces that bend, as a page draws them: at most MOST shapes of a mesh, added up by the graphics card.

A surface with more modes is drawn with MOST combinations of them: the best in the sense of least squares over the
motion that is shown, and, with a small weight, over modes of equal strain energy, since a live page moves otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from spanloop.view.meshes.mesh import Mesh
from spanloop.view.moving_scene import MovingScene
from spanloop.view.page.meshes import Key, key
from spanloop.view.scene import Scene

MOST = 16  # shapes of a surface
OTHERS = 0.01  # weight of modes of equal strain energy, beside the motion that is shown
_SAMPLES, _CORNERS = 200, 2000  # at which what is left out is measured


@dataclass(frozen=True, eq=False)
class Bending:
    """The scene of a page, with MOST shapes a surface at most; mixes: for each of its meshes with more modes the matrix
    (MOST, modes) that turns modal coordinates into those of the shapes. notes: what the shapes leave out."""

    scene: Scene
    mixes: dict[Key, np.ndarray]
    notes: tuple[str, ...]


def bending(moved: MovingScene) -> Bending:
    """What the page of a motion draws of its surfaces."""
    bodies, mixes, notes = list(moved.scene.bodies), dict[Key, np.ndarray](), list[str]()
    for own, numbers in _meshes(moved):
        first = bodies[numbers[0]]
        mesh, count = first.surface, len(first.stiffness)
        if mesh is None or mesh.movement is None or count <= MOST:
            continue
        eta = np.concatenate([moved.bending[k] for k in numbers])
        mix, shapes, others = combined(mesh, eta, np.array(first.stiffness))
        mixes[own] = mix
        for k in numbers:
            bodies[k] = replace(bodies[k], shapes=(replace(first.shapes[0], mesh=replace(mesh, movement=shapes)),))
        missing = _left_out(mesh.movement, shapes, mix, eta)
        here = f"{missing:.1g} of its largest displacement in this motion, and " if len(eta) > len(numbers) else ""
        notes.append(
            f"the surface of {first.name!r} has {count} modes and is drawn with {MOST} combinations. They leave "
            f"out {here}{others:.1g} of displacements in which all modes have the same strain energy"
        )
    return Bending(replace(moved.scene, bodies=tuple(bodies)), mixes, tuple(notes))


def _meshes(moved: MovingScene) -> Iterator[tuple[Key, list[int]]]:
    """The distinct meshes that bend, and the bodies that each is of."""
    found: dict[Key, list[int]] = {}
    for k in moved.bending:
        found.setdefault(key(moved.scene.bodies[k].shapes[0]), []).append(k)
    yield from found.items()


def combined(mesh: Mesh, eta: np.ndarray, stiffness: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The mix (MOST, modes), the shapes (corners, MOST, 3) of the best combinations, and the share that they leave out
    of displacements with equal strain energy in every mode (root of the mean square).

    eta (n, modes): the motion; with G = Σ φφᵀ over corners = L Lᵀ the combinations are the first singular vectors of
    Lᵀ ηᵀ, so that Σ |φ η − shapes mix η|² is least.
    """
    assert mesh.movement is not None
    used = np.unique(mesh.faces)
    values, axes = np.linalg.eigh(np.einsum("vka,vla->kl", mesh.movement[used], mesh.movement[used], optimize=True))
    kept = values > 1e-14 * values[-1]
    L = axes[:, kept] * np.sqrt(values[kept])  # (modes, rank)
    own, even = eta @ L, L / np.sqrt(stiffness)[:, None]
    total = (own**2).sum()
    C = OTHERS * even.T @ even / (even**2).sum() + (own.T @ own / total if total else 0.0)
    U = np.linalg.eigh(C)[1][:, ::-1][:, :MOST]
    mix = U.T @ L.T
    shapes = np.einsum("vka,kc->vca", mesh.movement, axes[:, kept] / np.sqrt(values[kept]) @ U, optimize=True)
    others = 1.0 - ((even @ U) ** 2).sum() / (even**2).sum()
    return mix, shapes, float(np.sqrt(max(others, 0.0)))


def _left_out(movement: np.ndarray, shapes: np.ndarray, mix: np.ndarray, eta: np.ndarray) -> float:
    """The largest displacement that shapes leave out, as a share of the largest displacement."""
    corners = slice(None, None, -(-len(movement) // _CORNERS))
    rows = eta[:: -(-len(eta) // _SAMPLES)]
    whole = np.einsum("vka,nk->nva", movement[corners], rows, optimize=True)
    drawn = np.einsum("vka,nk->nva", shapes[corners], rows @ mix.T, optimize=True)
    largest = np.linalg.norm(whole, axis=-1).max(initial=0.0)
    return float(np.linalg.norm(whole - drawn, axis=-1).max(initial=0.0) / largest) if largest else 0.0
