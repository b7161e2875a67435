"""A mesh to a mechanism: the rocker of a four-bar linkage is a slotted bar of tetrahedra, reduced to a few modes.

scikit-fem meshes the bar and assembles its mass and stiffness; sl.flexible.from_matrices reduces them to the motion of
its two bores and inner modes, with the stiffening that loads in the bar cause; the linkage closes its loop at the bore.
The page of the run shows the bar bending, in the colours of the strain energy of its elements.

The page, with figures: docs/examples/39_finite_element_linkage.md. Needs the extra `fem`.
"""

import numpy as np
from skfem import Basis, BilinearForm, ElementTetP2, ElementVector, MeshTet
from skfem.helpers import ddot, dot, sym_grad, trace

import spanloop as sl

LENGTH, WIDTH, THICK = 0.30, 0.040, 0.010  # of the bar [m]
SLOT = (0.08, 0.22, 0.024)  # from, to along the bar, and width [m]
YOUNG, POISSON, DENSITY = 7e10, 0.33, 2700.0
LAMBDA, MU = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)), YOUNG / (2 * (1 + POISSON))


def slotted_bar(finer=1):
    """A mesh of tetrahedra along x, with a slot through its middle that leaves two slender sides."""
    x = np.linspace(0.0, LENGTH, 30 * finer + 1)
    y = np.linspace(-WIDTH / 2, WIDTH / 2, 5 * finer + 1)
    z = np.linspace(-THICK / 2, THICK / 2, finer + 1)
    mesh = MeshTet.init_tensor(x, y, z)
    middle = mesh.p[:, mesh.t].mean(axis=1)
    inside = (middle[0] > SLOT[0]) & (middle[0] < SLOT[1]) & (np.abs(middle[1]) < SLOT[2] / 2)
    return mesh.remove_elements(np.flatnonzero(inside))


@BilinearForm
def stiffness(u, v, w):
    e, f = sym_grad(u), sym_grad(v)
    return LAMBDA * trace(e) * trace(f) + 2 * MU * ddot(e, f)


@BilinearForm
def mass(u, v, w):
    return DENSITY * dot(u, v)


@BilinearForm
def stressed(u, v, w):
    """What stresses of displacements w["d"] add to the stiffness: ∫ σ : ∇uᵀ∇v."""
    e = sym_grad(w["d"])
    stress = 2 * MU * e
    out = 0.0
    for i in range(3):
        for j in range(3):
            s = stress[i, j] + (LAMBDA * trace(e) if i == j else 0.0)
            out = out + s * sum(u.grad[k, i] * v.grad[k, j] for k in range(3))
    return out


class Bar:
    """The finite elements of the bar: matrices, nodes, and the element behind each triangle of its surface."""

    def __init__(self, finer=1):
        self.mesh = slotted_bar(finer)
        self.basis = Basis(self.mesh, ElementVector(ElementTetP2()), intorder=4)
        self.K, self.M = stiffness.assemble(self.basis), mass.assemble(self.basis)
        component = np.zeros(self.basis.N, dtype=int)
        for table in (self.basis.dofs.nodal_dofs, self.basis.dofs.edge_dofs):
            for c in range(3):
                component[table[c]] = c
        self.positions, node = np.unique(self.basis.doflocs.T.round(12), axis=0, return_inverse=True)
        self.dofs = np.stack([node.ravel(), component], axis=1)
        outside = self.mesh.boundary_facets()
        self.behind = self.mesh.f2t[0, outside]
        corner = {tuple(x): k for k, x in enumerate(self.positions)}
        number = np.array([corner[tuple(x)] for x in self.mesh.p.T.round(12)])
        self.triangles = number[self.mesh.facets[:, outside].T]
        a, b, c = np.moveaxis(self.positions[self.triangles], 1, 0)
        middle = self.mesh.p[:, self.mesh.t[:, self.behind]].mean(axis=1).T
        inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a - middle) < 0.0
        self.triangles[inward] = self.triangles[inward][:, ::-1]  # normals point outward

    def bore(self, x):
        """Nodes within 10 mm of an end of the bar, which a pin holds."""
        return np.flatnonzero(np.abs(self.positions[:, 0] - x) < 0.0101)

    def stiffening(self, d):
        """Differential stiffness of static displacements."""
        return stressed.assemble(self.basis, d=self.basis.interpolate(d))

    def energies(self, shapes):
        """d_iᵀ K_e d_k of the element behind each triangle, for shapes (N, n)."""
        n = shapes.shape[1]
        strains = [sym_grad(self.basis.interpolate(shapes[:, i])) for i in range(n)]
        out = np.zeros((len(self.behind), n, n))
        for i in range(n):
            for k in range(i + 1):
                e, f = strains[i], strains[k]
                density = LAMBDA * trace(e) * trace(f) + 2 * MU * ddot(e, f)
                out[:, i, k] = out[:, k, i] = (density * self.basis.dx).sum(axis=1)[self.behind]
        return out

    def reduced(self, modes=2, **options):
        """The flexible body: six static shapes of the far bore, and inner modes."""
        return sl.flexible.from_matrices(
            self.M, self.K, self.positions, dofs=self.dofs, modes=modes,
            interfaces={"root": self.bore(0.0), "tip": self.bore(LENGTH)},
            surface=self.triangles, surface_energy=self.energies, **options,
        )  # fmt: skip


def linkage(rocker):
    """A four-bar linkage in the plane of x and y: a crank of 60 mm, a coupler, and the bar as rocker."""
    b = sl.Builder("linkage").body("crank", 0.3, (0.03, 0, 0), (1e-5, 1e-4, 1e-4))
    b.body("coupler", 0.25, (0.15, 0, 0), (1e-5, 2e-3, 2e-3)).body("rocker", flexible=rocker)
    b.revolute("motor", "world", "crank").revolute("elbow", "crank", "coupler", position=(0.06, 0, 0))
    b.revolute("ground", "world", "rocker", position=(0.30, -0.05, 0))
    b.frame("end", "coupler", (0.30, 0, 0)).frame("bore", "rocker.tip")
    return b.loop("end", "bore", "revolute", name="pin").build()


if __name__ == "__main__":
    bar = Bar()
    rocker = bar.reduced(damping=0.005, stiffening=bar.stiffening)
    finer = bar.reduced(modes=8, damping=0.005)
    print(f"{rocker.size} degrees of freedom, {rocker.mass:.4f} kg, level of data {rocker.level}")
    for name, part in (("2 inner modes", rocker), ("8 inner modes", finer)):
        print(f"{name}: {(part.frequencies[:4] / (2 * np.pi)).round(1)} Hz with the root held")

    model = linkage(rocker)
    robot = sl.Dynamics(model)
    q = robot.assemble({"motor": 0.3, "elbow": 0.0, "ground": 1.4})
    v = robot.complete_velocity(q, {"motor": 40.0})
    run = sl.simulate(model, q, v, duration=0.3, step=5e-6, sample=1e-3, integrator="rk4")  # the crank coasts
    print(f"{run.outcome.reason}; the loop is closed to {np.abs(run.closure_error).max():.0e} m")

    energy = run.strain_energy["rocker"]
    worst = int(np.argmax(energy))
    eta = run.q[worst, model.q_slice("rocker.modes")]
    behind = 0.5 * np.einsum("tik,i,k->t", rocker.energies, eta, eta)
    x, y, _ = 1e3 * bar.mesh.p[:, bar.mesh.t[:, bar.behind[int(np.argmax(behind))]]].mean(axis=1)
    print(f"most strain energy {1e6 * energy[worst]:.1f} µJ, at {run.times[worst]:.3f} s; the most strained element is")
    print(f"at x = {x:.0f} mm, y = {abs(y):.0f} mm beside the axis, where the slot ends (at 80 and 220 mm)")
    run.page("linkage.html")  # the bar bends, in the colours of its strain energy
