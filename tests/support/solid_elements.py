"""Solid bodies in tetrahedra by scikit-fem: mass, stiffness, differential stiffness. No part of spanloop computes."""

import numpy as np
from skfem import Basis, BilinearForm, ElementTetP1, ElementTetP2, ElementVector, MeshTet
from skfem.helpers import ddot, dot, sym_grad, trace

STEEL = {"E": 2.1e11, "nu": 0.3, "rho": 7850.0}
ALUMINIUM = {"E": 7e10, "nu": 0.3, "rho": 2700.0}


def bar(length=0.5, width=0.03, height=0.02, counts=(10, 2, 2), refine=True):
    """A mesh of tetrahedra along x from 0 to length, centred in y and z."""
    axes = [np.linspace(0.0, length, counts[0] + 1)]
    axes += [np.linspace(-0.5 * w, 0.5 * w, n + 1) for w, n in ((width, counts[1]), (height, counts[2]))]
    return MeshTet.init_tensor(*axes)


class Solid:
    """Matrices of a mesh: mass, stiffness (N, N), positions (nodes, 3), dofs (N, 2); quadratic elements or linear."""

    def __init__(self, mesh, material=STEEL, quadratic=True):
        self.basis = Basis(mesh, ElementVector(ElementTetP2() if quadratic else ElementTetP1()), intorder=4)
        E, nu, rho = (material[k] for k in ("E", "nu", "rho"))
        self.lam, self.mu = E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))
        lam, mu = self.lam, self.mu

        @BilinearForm
        def stiffness(u, v, w):
            e, f = sym_grad(u), sym_grad(v)
            return lam * trace(e) * trace(f) + 2 * mu * ddot(e, f)

        @BilinearForm
        def mass(u, v, w):
            return rho * dot(u, v)

        self.stiffness, self.mass = stiffness.assemble(self.basis), mass.assemble(self.basis)
        names = self.basis.dofs
        places = self.basis.doflocs.T
        component = np.zeros(self.basis.N, dtype=int)
        for table in (names.nodal_dofs, names.edge_dofs):
            for c in range(3):
                if len(table):
                    component[table[c]] = c
        nodes, node = np.unique(places.round(12), axis=0, return_inverse=True)
        self.positions, self.dofs = nodes, np.stack([node.ravel(), component], axis=1)

    def at(self, x):
        """Nodes in the plane at x."""
        return np.flatnonzero(np.abs(self.positions[:, 0] - x) < 1e-9)

    def differential_stiffness(self, d):
        """∫ σ(d) : ∇uᵀ∇v, the stiffness that stresses of displacements d add."""
        lam, mu = self.lam, self.mu

        @BilinearForm
        def form(u, v, w):
            e = sym_grad(w["d"])
            stress = 2 * mu * e
            total = trace(e)
            out = 0.0
            for i in range(3):
                for j in range(3):
                    s = stress[i, j] + (lam * total if i == j else 0.0)
                    for k in range(3):
                        out = out + s * u.grad[k, i] * v.grad[k, j]
            return out

        return form.assemble(self.basis, d=self.basis.interpolate(d))

    def held_frequencies(self, rows, count):
        """The slowest angular frequencies of the whole model with rows held, by shift-invert."""
        from scipy.sparse.linalg import eigsh

        free = np.setdiff1d(np.arange(self.basis.N), rows)
        K, M = self.stiffness[free][:, free].tocsc(), self.mass[free][:, free].tocsc()
        return np.sqrt(np.sort(eigsh(K, count, M, sigma=0.0, return_eigenvectors=False)))

    def rows_at(self, nodes):
        """Rows of nodes."""
        return np.flatnonzero(np.isin(self.dofs[:, 0], nodes))
