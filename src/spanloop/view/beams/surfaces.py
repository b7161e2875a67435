"""Surfaces of bodies from finite elements: one mesh whose corners move with the modes, coloured by strain energy.

A corner is at x + Σ φ_i η_i in the frame of its body. The second-order displacements of interfaces, by which frames and
what they carry are placed, have no field over the surface; the shapes that displace the interfaces just so are added to
η instead, so that the surface ends where its frames are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.view.body_shapes import Shape
from spanloop.view.meshes.mesh import Mesh

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory

_SAMPLES = 200  # of a run, at which strain energy is looked at
_STILL = 0.1  # what moves the surface by more than the inverse of this times the interface is not added
_RAMP = np.array([[0x2B, 0x4C, 0x9B], [0x2E, 0xA0, 0xA8], [0xE9, 0xD3, 0x4F], [0xC8, 0x2F, 0x2A]], float)  # low to high


def surface_shape(body: FiniteElementBody, colors: np.ndarray | None = None, owner: str = "") -> Shape:
    """The surface in the body's frame; colors (triangles,): 0xrrggbb of each; owner: of the colours."""
    mesh = replace(Mesh.of(body.vertices, body.triangles, colors), movement=body.movement)
    return Shape("mesh", (1.0, 1.0, 1.0), file=f"surface {body.digest} {owner}", derived=True, mesh=mesh)


@lru_cache(maxsize=64)
def second_order(body: FiniteElementBody) -> tuple[np.ndarray, np.ndarray] | None:
    """P (n, r) and g (r, n, n): P ½ g η η is added to the coordinates η; None for a body without second-order field.

    g: second derivatives of the displacements and, times the length of the body, rotations of its interfaces. P solves
    S Δη = ½ g η η by least squares for their first derivatives S, with a small weight on motion of the surface.
    """
    n, length = body.n, body.length
    g = np.concatenate([body.bent_shifts, length * body.bent_turns], axis=-1)
    if not g.any():
        return None
    S = np.concatenate([body.shifts, length * body.turns], axis=-1).transpose(0, 2, 1).reshape(-1, n)
    moved = body.movement.transpose(0, 2, 1).reshape(-1, n)
    weight = _STILL**2 / max(len(body.vertices), 1)
    P = np.linalg.pinv(S.T @ S + weight * moved.T @ moved, rcond=1e-12, hermitian=True) @ S.T
    return P, np.moveaxis(g, -1, 1).reshape(-1, n, n)


def drawn_coordinates(body: FiniteElementBody, eta: np.ndarray) -> np.ndarray:
    """The coordinates (..., n) with which a surface is drawn, at modal coordinates eta (..., n)."""
    found = second_order(body)
    if found is None:
        return np.asarray(eta, float)
    P, g = found
    return np.asarray(eta + 0.5 * np.einsum("ir,rjk,...j,...k->...i", P, g, eta, eta, optimize=True))


def ramp(shares: np.ndarray) -> np.ndarray:
    """Colours 0xrrggbb of shares from 0 to 1."""
    at = np.clip(shares, 0.0, 1.0) * (len(_RAMP) - 1)
    rgb = np.stack([np.interp(at, np.arange(len(_RAMP)), _RAMP[:, c]) for c in range(3)], axis=-1).round().astype(int)
    return (rgb[..., 0] << 16) + (rgb[..., 1] << 8) + rgb[..., 2]


def largest_energies(body: FiniteElementBody, eta: np.ndarray) -> np.ndarray:
    """The largest strain energy (triangles,) [J] of the element behind each triangle over states (..., n)."""
    rows = eta.reshape(-1, body.n)
    rows = rows[:: max(1, len(rows) // _SAMPLES)]
    rows = rows[np.isfinite(rows).all(axis=1)]
    found = 0.5 * np.einsum("tik,si,sk->st", body.energies, rows, rows, optimize=True)
    return np.asarray(found.max(axis=0, initial=0.0))


def coloured_shape(body: FiniteElementBody, run: Trajectory, q: slice, owner: str) -> Shape:
    """The surface with the largest strain energy over a run as colours, from none to the most."""
    if not len(body.energies):
        return surface_shape(body)
    found = largest_energies(body, run.q[..., q])
    most = float(found.max(initial=0.0))
    return surface_shape(body, ramp(np.sqrt(found / most) if most else np.zeros(len(found))), owner)


def with_strain_colors(seen, run: Trajectory, bent):
    """The scene of a run, with the surfaces of bodies from finite elements in the colours of their strain energy.

    bent: the flexible bodies of its model; surfaces come after the bodies of the model, in that order.
    """
    from spanloop.view.beams.segments import shape_count

    bodies, at = list(seen.bodies), run.model.n_bodies + 1
    for b in bent:
        if isinstance(b.source, FiniteElementBody):
            shape = coloured_shape(b.source, run, b.q, bodies[at].name)
            bodies[at] = replace(bodies[at], shapes=(shape,))
        at += shape_count(b.source)
    return replace(seen, bodies=tuple(bodies))
