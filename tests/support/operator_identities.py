"""The identities of spatial operators that the papers state, as pairs of expressions.  [Rodriguez, Jain & Kreutz]"""

from __future__ import annotations


def identities(S):
    """Pairs of expressions that the papers call equal."""
    E_phi, phi, H, Mb, P, D, G, K = S.E_phi, S.phi, S.H, S.Mb, S.P, S.D, S.G, S.K
    tau_bar, E_psi, psi, Upsilon, Omega, B, J = S.tau_bar, S.E_psi, S.psi, S.Upsilon, S.Omega, S.B, S.J
    M = H @ phi @ Mb @ phi.T @ H.T + S.armature
    psi_strict = psi - 1
    siblings = E_psi.T @ Upsilon @ E_psi - Upsilon + H.T @ D.inverse() @ H
    return {
        "2.9": ((1 - E_phi) @ phi, 1 + 0 * phi),
        "3.1": (Mb, P - E_phi @ (P - P @ H.T @ D.inverse() @ H @ P) @ E_phi.T),
        "3.2": (tau_bar, 1 - G @ H),
        "3.3": ((1 - E_psi) @ psi, 1 + 0 * psi),
        "lemma 1": (M, (1 + H @ phi @ K) @ D @ (1 + H @ phi @ K).T),
        "lemma 2": ((1 + H @ phi @ K) @ (1 - H @ psi @ K), 1 + 0 * D),
        "lemma 3": (M @ M.inverse(), 1 + 0 * D),
        "lemma 4": ((1 - H @ psi @ K) @ H @ phi, H @ psi),
        "3.10": (J @ M.inverse() @ J.T, B.T @ Omega @ B),
        "lemma 5, trees": (
            Omega,
            Upsilon + psi_strict.T @ Upsilon + Upsilon @ psi_strict + psi.T @ siblings @ psi,
        ),
    }
