"""SID files of solid bodies, by the definitions of the format: integrals over the consistent mass of the nodes."""

import numpy as np
from finite_element_writers import sid

CENTRIFUGAL = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))  # columns of Oe: products of angular velocities


def skew(a):
    x, y, z = a
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0.0]])


def six(m):
    """xx, yy, zz, xy, xz, yz (6, 1) of a symmetric matrix."""
    return np.array([m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2]])[:, None]


def axial(m):
    """∫ r × s of m = ∫ r sᵀ."""
    return np.array([m[1, 2] - m[2, 1], m[2, 0] - m[0, 2], m[0, 1] - m[1, 0]])


def quadratic(m):
    """Factors of products of angular velocities in ω · m ω."""
    return np.array([m[a, b] + (m[b, a] if a != b else 0.0) for a, b in CENTRIFUGAL])


class Modal:
    """Modes of a solid: nodes x (p, 3), displacements phi (p, 3, n), m (p, p) the mass of scalar functions."""

    def __init__(self, solid, shapes):
        """shapes (N, n), rows as those of the solid's matrices."""
        p, n = len(solid.positions), shapes.shape[1]
        self.x, self.n = solid.positions, n
        self.phi = np.zeros((p, 3, n))
        self.phi[solid.dofs[:, 0], solid.dofs[:, 1]] = shapes
        rows = np.flatnonzero(solid.dofs[:, 1] == 0)
        order = rows[np.argsort(solid.dofs[rows, 0])]
        self.m = solid.mass[order][:, order].toarray()
        self.stiffness = shapes.T @ (solid.stiffness @ shapes)

    def integral(self, a, b):
        """∫ a bᵀ (3, 3) of two fields (p, 3)."""
        return a.T @ self.m @ b

    def crossed(self, a, b):
        """∫ [a] [b] (3, 3)."""
        m = self.integral(b, a)
        return m - np.trace(m) * np.eye(3)

    def terms(self, gyroscopic=0, stiffening=None, damping=None, orders=1):
        """SID's terms; stiffening: (n, n) by load; gyroscopic: order of Gr; orders: of J, Cr and Oe."""
        n, x, one = self.n, self.x, np.ones(len(self.x))
        modes = [self.phi[:, :, k] for k in range(n)]
        K0 = (stiffening or {}).get
        none = np.zeros((n, n))
        total = float(one @ self.m @ one)
        first = np.array([one @ self.m @ f for f in modes])
        J = -self.crossed(x, x)
        C4 = [self.crossed(x, f) for f in modes]  # ∫ [x] [φ_k]
        C6 = [[self.crossed(g, f) for g in modes] for f in modes]  # at k, l: ∫ [φ_l] [φ_k]
        Cr = np.array([axial(self.integral(x, f)) for f in modes])
        pairs = np.array([[axial(self.integral(g, f)) for g in modes] for f in modes])  # k, l: ∫ φ_l × φ_k
        turns = np.stack([K0(key, none) for key in ("dwx", "dwy", "dwz")], axis=-1)
        spins = np.stack([K0(key, none) for key in ("wxwx", "wywy", "wzwz", "wxwy", "wywz", "wxwz")], axis=-1)
        along = np.stack([K0(key, none) for key in ("ax", "ay", "az")], axis=-1)
        centrifugal = np.array([[quadratic(C6[k][m]) for m in range(n)] for k in range(n)])
        gyro = np.stack([np.hstack([-2 * C6[k][m] for k in range(n)]) for m in range(n)], axis=1)

        def slope(s):
            return s if orders else None

        return total, {
            "mdCM": (3, (one @ self.m @ x)[:, None], first.T[:, :, None]),
            "J": (3, six(J), slope(np.stack([six(-(c + c.T)) for c in C4], axis=1))),
            "Ct": (3, first, along if along.any() else None),
            "Cr": (3, Cr, slope(pairs + turns)),
            "Me": (2, np.array([[np.trace(self.integral(f, g)) for g in modes] for f in modes]), None),
            "Gr": (3, np.hstack([-2 * c for c in C4]), gyro if gyroscopic else None),
            "Ge": (3, 2 * pairs.transpose(0, 2, 1).reshape(n, 3 * n), None),
            "Oe": (3, np.array([quadratic(c) for c in C4]), slope(centrifugal + spins)),
            "ksigma": (0, np.zeros((n, 1)), None),
            "Ke": (2, self.stiffness, None),
            "De": (2, np.zeros((n, n)) if damping is None else damping, None),
        }  # fmt: skip

    def nodes(self):
        """Blocks of the solid's nodes, by number from 1; they do not turn."""
        none = np.zeros((3, self.n))
        return {
            k + 1: {
                "origin": (3, x[:, None], self.phi[k][:, :, None]),
                "phi": (3, self.phi[k], None),
                "psi": (3, none, None),
                "AP": (3, np.eye(3), None),
            }
            for k, x in enumerate(self.x)
        }

    def text(self, frames, **options):
        """The file; frames: further nodes by number."""
        mass, terms = self.terms(**options)
        return sid(mass, self.n, self.nodes() | frames, terms)
