"""Spatial operators: the formulas of Rodriguez, Jain & Kreutz typed as printed, checked, applied, compiled."""

import numpy as np

import spanloop as sl

model = sl.zoo.tree(5, seed=1)
rng = np.random.default_rng(0)
q, _ = model.random_state(rng)
S = sl.operators(model, q, frames=["body4", "body3"])
E_phi, phi, H, Mb, B, J = S.E_phi, S.phi, S.H, S.Mb, S.B, S.J
P, D, G, K, psi, E_psi, Upsilon, Omega = S.P, S.D, S.G, S.K, S.psi, S.E_psi, S.Upsilon, S.Omega


def same(name, left, right):
    """Check that two expressions have the same matrix."""
    a, b = left.matrix(), right.matrix()
    print(f"{name:14s} {left!r} = {right!r}   to {np.abs(a - b).max():.0e}")
    np.testing.assert_allclose(a, b, atol=1e-10 * np.abs(b).max())


# links are numbered from base to tip, so phi is upper triangular where the paper has it lower
print(phi.picture(), E_phi.picture(), sep="\n")

# the mass matrix as the product of 2.11, and applied to accelerations: five sweeps, no matrix
M = H @ phi @ Mb @ phi.T @ H.T
a = rng.normal(size=model.nv)
np.testing.assert_allclose(M @ a, sl.Dynamics(model).mass_matrix(q) @ a)

# lemmas 1 to 4
one = 1 + 0 * D
same("lemma 1, 3.4", M, (1 + H @ phi @ K) @ D @ (1 + H @ phi @ K).T)
same("lemma 2, 3.5", (1 + H @ phi @ K) @ (1 - H @ psi @ K), one)
same("lemma 3, 3.6", M @ (1 - H @ psi @ K).T @ D.inverse() @ (1 - H @ psi @ K), one)
same("lemma 4, 3.9", (1 - H @ psi @ K) @ H @ phi, H @ psi)
print("known inverses:", (1 - E_phi).inverse(), "|", (1 + H @ phi @ K).inverse(), "|", M.inverse())

# the effect of a force at one frame on that frame and on a frame of another branch, 3.10
same("3.10", J @ M.inverse() @ J.T, B.T @ Omega @ B)
print((B.T @ Omega @ B).picture())

# lemma 5: as printed on a chain; on trees siblings couple as well
N = E_psi.T @ Upsilon @ E_psi - Upsilon + H.T @ D.inverse() @ H
print(N.picture())
same("lemma 5, trees", Omega, Upsilon + (psi - 1).T @ Upsilon + Upsilon @ (psi - 1) + psi.T @ N @ psi)
C = sl.operators(sl.zoo.puma(), rng.uniform(-1.0, 1.0, 6))
same("lemma 5", C.Omega, C.Upsilon + (C.psi - 1).T @ C.Upsilon + C.Upsilon @ (C.psi - 1))

# the same expressions as machine code, for any q: forward dynamics without bias is one line, 3.7
forward = sl.compile(model, M.inverse())
print(forward)
np.testing.assert_allclose(forward(q, M @ a), a, rtol=1e-9)

# symbolic vectors have names: accelerations from torques and bias forces, Kreutz & Rodriguez 5.14
tau, b = S.vector("tau"), S.vector("b", "links")
kernel = sl.compile(model, (1 - H @ psi @ K).T @ D.inverse() @ (tau - H @ psi @ (K @ tau + b)))
print(kernel)
forces = rng.normal(size=Mb.shape[0])
np.testing.assert_allclose(kernel(q, M @ a + H @ phi @ forces, forces), a, rtol=1e-9)
