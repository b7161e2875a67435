"""Dense dynamics of closed mechanisms with all that acts on them: gears, driven joints, external forces.

A gear is one more row, rate(joint) − ratio · rate(source) = 0; a driven joint one row for each DoF, a = given.
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


def loops_with_all_that_acts(
    model, q, v, tau, active_loops=None, loop_accelerations=None, loop_forces=None, forces=None
):
    """Accelerations (nv,) and {loop: [torque; force] (6,)} of a model whose loops are switched, driven or pushed.

    The rates of a loop are α = φ⁺ r. A driven one has the rows φ⁺ J a + φ⁺ (dr/dt − dφ/dt α) = given; a force h
    does the power h · α, so that its torques are (φ⁺ J)ᵀ h. Its force on body b is φᶜ λ + φ⁺ᵀ (μ + h).
    """
    ref = ClosedReference(model, q, v)
    torque, rows, right, spaces = np.array(tau, dtype=float), [np.zeros((0, model.nv))], [], {}
    for loop in model.loops:
        if loop.switchable and active_loops is not None and loop.name not in active_loops:
            continue
        c = ref.coordinates(loop) if loop.kind.carries else ()
        r, J, rate = ref._relative(loop)
        free = motions(loop.kind, c)
        along = np.linalg.pinv(free)
        alpha = along @ r
        own = np.array(tuple(loop.kind.motion_space_rate(c, alpha.tolist()))) if loop.kind.carries else np.zeros(6)
        h = np.array((loop_forces or {}).get(loop.name, np.zeros(len(along))), dtype=float)
        torque = torque + (along @ J).T @ h
        held = np.array([tuple(f) for f in loop.kind.constraint_space(c)], dtype=float).reshape(-1, 6)
        wanted = np.zeros(len(held))
        if loop.driven:
            held = np.vstack((held, along))
            wanted = np.concatenate((wanted, (loop_accelerations or {}).get(loop.name, np.zeros(len(along)))))
        spaces[loop.name] = (held.T, along.T @ h)
        rows.append(held @ J)
        right.append(wanted - held @ (rate - own))
    J, n = np.vstack(rows), model.nv
    K = np.block([[ref.mass_matrix(), -J.T], [J, np.zeros((len(J), len(J)))]])
    x = np.linalg.lstsq(K, np.concatenate((torque - ref.bias(forces), *right)), rcond=1e-12)[0]
    out, at = {loop.name: np.zeros(6) for loop in model.loops}, n
    for loop in model.loops:
        if loop.name in spaces:
            held, pushed = spaces[loop.name]
            six = held @ x[at : at + held.shape[1]] + pushed
            R = ref._frames(loop)[2]
            out[loop.name] = np.concatenate((R @ six[:3], R @ six[3:]))
            at += held.shape[1]
    return x[:n], out


def motions(kind, q) -> np.ndarray:
    """φ (6, n) in the child's axes; a soft finger rolls about x and y."""
    if kind.name == "soft_finger":
        return np.eye(6)[:, :2]
    return np.array([tuple(s) for s in kind.motion_space(q)], dtype=float).reshape(-1, 6).T
