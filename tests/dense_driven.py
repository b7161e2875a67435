"""Dense dynamics of closed mechanisms with all that acts on them: gears, driven joints, external forces.

A gear is one more row, rate(joint) − ratio · rate(source) = 0; a driven joint one row for each freedom, a = given.
"""

from __future__ import annotations

import numpy as np

from dense_closures import ClosedReference, Extended


class WholeReference(ClosedReference):
    """A model at a state with tau and forces {body: (6,)}; a driven joint's entry of tau is its acceleration."""

    def __init__(self, model, q, v, tau, forces=None, scalar=float):
        super().__init__(model, q, v, scalar)
        self.tau, self.forces = np.asarray(tau, dtype=float), forces

    def closure_jacobian(self):
        rows = [super().closure_jacobian()]
        for c in self.model.couplings:
            row = np.zeros(self.model.nv)
            row[self.model.v_slice(c.joint)], row[self.model.v_slice(c.source)] = 1.0, -c.ratio
            rows.append(self._array(row[None]))
        rows.append(self._array(np.eye(self.model.nv)[self._driven()]))
        return np.vstack(rows)

    def closure_bias(self):
        still = np.zeros(len(self.model.couplings))
        return np.concatenate((super().closure_bias(), self._array(still), self._array(-self.tau[self._driven()])))

    def bias(self, forces=None):
        return super().bias(self.forces)

    def accelerations(self) -> np.ndarray:
        """a (nv,), from equations in 50 digits where the scalar is Extended."""
        return self.exact_forward_dynamics(self.tau) if self.scalar is Extended else self.forward_dynamics(self.tau)[0]

    def _driven(self) -> list[int]:
        return [i for j in self.model.joints if j.driven for i in range(self.model.nv)[self.model.v_slice(j.name)]]


def exact(model, q, v, tau, forces=None) -> np.ndarray:
    """Accelerations (nv,) of a model with loops, gears and driven joints, from equations in 50 digits."""
    return WholeReference(model, q, v, tau, forces, Extended).accelerations()


def consistent(model, q, v) -> np.ndarray:
    """The velocity nearest to v that keeps loops closed and gears in step; driven joints are free to move."""
    free = ClosedReference(model, q)
    J = np.array(free.closure_jacobian(), dtype=float)
    for c in model.couplings:
        row = np.zeros(model.nv)
        row[model.v_slice(c.joint)], row[model.v_slice(c.source)] = 1.0, -c.ratio
        J = np.vstack((J, row))
    return v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)
