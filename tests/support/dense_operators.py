"""Spatial operators as dense matrices, from their definitions: block by block, with inverses by NumPy.

Of the library only each link's transform, motion space, inertia and armature are used.
"""

from __future__ import annotations

import numpy as np

from spanloop.topology import mechanism


def skew(p):
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])


def force_map(x) -> np.ndarray:
    """φ (6×6) of a pose: [moment; force] in the inner frame seen in the outer one."""
    R = np.array(x.rotation.matrix(), dtype=float)
    return np.block([[R, skew(x.translation) @ R], [np.zeros((3, 3)), R]])


def rigid(inertia) -> np.ndarray:
    m, h, J = inertia.mass, skew(inertia.first), np.array(inertia.second)
    return np.block([[np.trace(J) * np.eye(3) - J, h], [h.T, m * np.eye(3)]])


def block_diagonal(blocks) -> np.ndarray:
    out = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)))
    i = j = 0
    for b in blocks:
        out[i : i + b.shape[0], j : j + b.shape[1]] = b
        i, j = i + b.shape[0], j + b.shape[1]
    return out


class DenseOperators:
    """All of them at q, under the names that they have in the library."""

    def __init__(self, model, q, frames=()):
        m = mechanism(model)
        n = len(m.links)
        own = [tuple(q[link.q]) for link in m.links]
        self.E_phi = np.zeros((6 * n, 6 * n))
        for k, link in enumerate(m.links):
            if link.parent >= 0:
                at = slice(6 * link.parent, 6 * link.parent + 6)
                self.E_phi[at, 6 * k : 6 * k + 6] = force_map(link.transform(own[k]))
        spaces = [
            np.array([tuple(s) for s in k.kind.motion_space(x)]).reshape(-1, 6)
            for k, x in zip(m.links, own, strict=True)
        ]
        self.H = block_diagonal(spaces)
        self.Mb = block_diagonal([rigid(link.inertia) for link in m.links])
        self.armature = np.diag([x for link in m.links for x in link.armature])
        one = np.eye(6 * n)
        self.phi = np.linalg.inv(one - self.E_phi)
        self.P = self._articulated()
        self.D = self.H @ self.P @ self.H.T + self.armature
        self.D_root = np.linalg.cholesky(self.D)
        self.G = self.P @ self.H.T @ np.linalg.inv(self.D)
        self.K = self.E_phi @ self.G
        self.tau_bar = one - self.G @ self.H
        self.E_psi = self.E_phi @ self.tau_bar
        self.psi = np.linalg.inv(one - self.E_psi)
        self.Omega = self.psi.T @ self.H.T @ np.linalg.inv(self.D) @ self.H @ self.psi
        self.Upsilon = block_diagonal([self.Omega[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] for k in range(n)])
        self.B = np.zeros((6 * n, 6 * len(frames)))
        for k, name in enumerate(frames):
            anchor = m.anchors[name]
            if anchor.link >= 0:
                at = slice(6 * anchor.link, 6 * anchor.link + 6)
                self.B[at, 6 * k : 6 * k + 6] = force_map(anchor.transform())
        self.J = self.B.T @ self.phi.T @ self.H.T

    def _articulated(self) -> np.ndarray:
        """P of 3.1 by iteration: after as many rounds as there are links nothing changes any more."""
        P = self.Mb
        for _ in range(len(P) // 6):
            D = self.H @ P @ self.H.T + self.armature
            less = P - P @ self.H.T @ np.linalg.inv(D) @ self.H @ P
            P = self.Mb + self.E_phi @ less @ self.E_phi.T
        return P
