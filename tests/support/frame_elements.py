"""Mass, stiffness and differential stiffness of frames of straight Euler-Bernoulli beams, by their textbook matrices.

Six degrees of freedom a node, in order. Written apart from the library's own beams, and along any direction.
"""

from dataclasses import dataclass

import numpy as np

E, POISSON, DENSITY = 7e10, 0.3, 2700.0


@dataclass
class Frame:
    """mass, stiffness (N, N), positions (n, 3), and stiffening: the differential stiffness of displacements (N,)."""

    mass: np.ndarray
    stiffness: np.ndarray
    positions: np.ndarray
    elements: list

    def stiffening(self, d):
        G = np.zeros_like(self.stiffness)
        for at, T, axial, unit in self.elements:
            u = T @ d[at]
            G[np.ix_(at, at)] += axial * (u[6] - u[0]) * unit
        return G


def frame(positions, width=0.03, height=0.01, lumped=False):
    """A chain of beams between positions (n, 3); width is along y of a beam along x. lumped: nodes as point masses."""
    positions = np.asarray(positions, dtype=float)
    n = len(positions)
    M, K, elements = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n)), []
    for a in range(n - 1):
        k, m, g, T, axial = _element(positions[a], positions[a + 1], width, height, lumped)
        at = np.arange(6 * a, 6 * a + 12)
        K[np.ix_(at, at)] += k
        M[np.ix_(at, at)] += m
        elements.append((at, T, axial, g))
    return Frame(M, K, positions, elements)


def straight(length=1.0, elements=10, **options):
    """A beam along x."""
    x = np.linspace(0.0, length, elements + 1)
    return frame(np.stack([x, 0.0 * x, 0.0 * x], axis=1), **options)


def _element(a, b, width, height, lumped):
    length = np.linalg.norm(b - a)
    x = (b - a) / length
    y = np.cross([0.0, 0.0, 1.0] if abs(x[2]) < 0.9 else [0.0, 1.0, 0.0], x)
    y /= np.linalg.norm(y)
    T = np.kron(np.eye(4), np.array([x, y, np.cross(x, y)]))
    area, Iz, Iy = width * height, height * width**3 / 12.0, width * height**3 / 12.0
    polar = Iy + Iz
    axial, torsion, mass = E * area / length, E / (2.0 + 2.0 * POISSON) * 0.3 * polar / length, DENSITY * area * length
    K, M, G = np.zeros((12, 12)), np.zeros((12, 12)), np.zeros((12, 12))
    rod = np.array([[1.0, -1.0], [-1.0, 1.0]])
    K[np.ix_([0, 6], [0, 6])], K[np.ix_([3, 9], [3, 9])] = axial * rod, torsion * rod
    s, h = np.diag([1.0, -1.0, 1.0, -1.0]), length
    bend = np.array([
        [12, 6 * h, -12, 6 * h],
        [6 * h, 4 * h * h, -6 * h, 2 * h * h],
        [-12, -6 * h, 12, -6 * h],
        [6 * h, 2 * h * h, -6 * h, 4 * h * h],
    ]) / h**3  # fmt: skip
    move = np.array([
        [156, 22 * h, 54, -13 * h],
        [22 * h, 4 * h * h, 13 * h, -3 * h * h],
        [54, 13 * h, 156, -22 * h],
        [-13 * h, -3 * h * h, -22 * h, 4 * h * h],
    ]) * mass / 420.0  # fmt: skip
    pull = np.array([
        [36, 3 * h, -36, 3 * h],
        [3 * h, 4 * h * h, -3 * h, -h * h],
        [-36, -3 * h, 36, -3 * h],
        [3 * h, -h * h, -3 * h, 4 * h * h],
    ]) / (30.0 * h)  # fmt: skip
    both = (([1, 5, 7, 11], np.eye(4), Iz), ([2, 4, 8, 10], s, Iy))
    for at, sign, I in both:
        own = np.ix_(at, at)
        K[own], G[own] = E * I * sign @ bend @ sign, sign @ pull @ sign
        if not lumped:
            M[own] = sign @ move @ sign
    if lumped:
        M = np.diag(([0.5 * mass] * 3 + [0.0] * 3) * 2)
    else:
        two = np.array([[2.0, 1.0], [1.0, 2.0]]) / 6.0
        M[np.ix_([0, 6], [0, 6])], M[np.ix_([3, 9], [3, 9])] = mass * two, mass * polar / area * two
    return T.T @ K @ T, T.T @ M @ T, T.T @ G @ T, T, axial
