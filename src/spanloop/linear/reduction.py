"""Models of fewer states: balanced and modal truncation, with a bound of the error.

A is split into blocks along its modes: with an ordered Schur form A = Q [T₁ S; 0 T₂] Qᵀ and T₁ X − X T₂ = −S, the
blocks T₁ and T₂ do not act on each other. The stable block is balanced by the square-root method: Gramians
P = L Lᵀ, Q = K Kᵀ, Kᵀ L = U σ Vᵀ, and the states along the largest σ are kept. Any stable system with Hankel singular
values σ has a gain of at most 2 Σ σ at every frequency [Enns 1984; Glover 1984], which bounds both truncations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError
from spanloop.linear.optional_packages import optional
from spanloop.linear.responses import decay, decays, grows, rounded, spectrum

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel

METHODS = ("balanced", "modal")
_SAME = 1e-7  # relative distance of poles that count as one


@dataclass(frozen=True, eq=False)
class Part:
    """Modes of a linear model: ż = A z + B u, y = C z, with x = basis z."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    basis: np.ndarray


def reduced(model: LinearModel, order: int, method: str) -> LinearModel:
    """The model with `order` states by one of METHODS."""
    if method not in METHODS:
        raise InputError(f"reduced: method is {method!r}; expected 'balanced' or 'modal'")
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 0 <= order <= len(model.states):
        raise InputError(f"reduced: order is {order!r}; expected a whole number from 0 to {len(model.states)}")
    A, B, C, bound = _balanced(model, int(order)) if method == "balanced" else _modal(model, int(order))
    n = len(A)
    return replace(
        model, A=A, B=B, C=C, drift=np.zeros(n), states=tuple(f"z{k + 1}" for k in range(n)), state_units=("",) * n,
        point=None, mass=None, error_bound=model.error_bound + bound, name=f"{model.name}, {method} of order {n}",
    )  # fmt: skip


def hankel_singular_values(model: LinearModel) -> np.ndarray:
    """Those of the stable part, largest first."""
    return _balancing(model, _split(model, _decaying(model))[0])[0]


# ---- balanced


def _balanced(model: LinearModel, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    stable, rest = _split(model, _decaying(model))
    kept = order - len(rest.A)
    if kept < 0:
        lasting = _listed(rounded(model, np.linalg.eigvals(rest.A)))
        raise InputError(
            f"reduced: order is {order}, and {len(rest.A)} modes are unstable or undamped, which balanced truncation "
            f"keeps ({lasting}); use an order of at least {len(rest.A)}, give the joints damping, or use "
            "method='modal'"
        )
    sigma, left, right = _balancing(model, stable)
    rank = int((sigma > 1e-14 * sigma.max(initial=0.0)).sum())  # states beyond it have no part in the response
    kept = min(kept, rank)
    root = np.sqrt(sigma[:kept])
    W, T = left[:, :kept] / root, right[:, :kept] / root  # Wᵀ T = 1
    A = _block(rest.A, W.T @ stable.A @ T)
    B, C = np.concatenate([rest.B, W.T @ stable.B]), np.concatenate([rest.C, stable.C @ T], axis=1)
    return A, B, C, 2.0 * float(sigma[kept:].sum())


def _balancing(model: LinearModel, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hankel singular values σ (k,), and K U and L V (k, k)."""
    linalg = optional("scipy.linalg", "reduced", "scipy")
    if not len(part.A):
        return np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0))
    gramian: Callable[[np.ndarray, np.ndarray], np.ndarray]
    if model.step is None:
        gramian = lambda a, b: linalg.solve_continuous_lyapunov(a, -b @ b.T)  # noqa: E731
    else:
        gramian = lambda a, b: linalg.solve_discrete_lyapunov(a, b @ b.T)  # noqa: E731
    L, K = _root(gramian(part.A, part.B)), _root(gramian(part.A.T, part.C.T))
    U, sigma, Vt = np.linalg.svd(K.T @ L)
    return sigma, K @ U, L @ Vt.T


def _root(P: np.ndarray) -> np.ndarray:
    """L with L Lᵀ = P; rounding may leave P slightly indefinite."""
    w, V = np.linalg.eigh(0.5 * (P + P.T))
    return V * np.sqrt(np.clip(w, 0.0, None))


# ---- modal


def _modal(model: LinearModel, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    ranked = _by_dominance(model)
    chosen, others = ranked[:order], ranked[order:]

    def is_dropped(x: complex) -> bool:
        return bool(np.abs(others - x).min(initial=np.inf) < np.abs(chosen - x).min(initial=np.inf) - _SAME * abs(x))

    dropped, kept = _split(model, is_dropped)
    if len(kept.A) != order:
        raise InputError(
            f"reduced: order {order} would split a pair of poles or poles that coincide; use {len(kept.A)}"
        )
    return kept.A, kept.B, kept.C, _gain_bound(model, dropped)


def _by_dominance(model: LinearModel) -> np.ndarray:
    """All poles (k,) in the order in which they are kept: unstable and undamped ones, then by gain ‖c‖ ‖b‖ / decay."""
    values, right = np.linalg.eig(model.A)
    left, *_ = np.linalg.lstsq(right.T, np.eye(len(values)), rcond=None)  # rows of right⁻¹ as columns
    gain = np.linalg.norm(model.C @ right, axis=0) * np.linalg.norm(left.T @ model.B, axis=1)
    lasting, unstable = ~decays(model, values), grows(model, values)
    weight = np.where(lasting, np.inf, gain / np.where(lasting, 1.0, decay(model, values)))
    speed = np.round(np.abs(values), 9)
    ranking = sorted(range(len(values)), key=lambda k: (not unstable[k], -weight[k], speed[k], values[k].imag))
    return values[ranking]


def _gain_bound(model: LinearModel, part: Part) -> float:
    """A bound of the gain at any frequency: inf with undamped modes."""
    if not len(part.A):
        return 0.0
    values = np.linalg.eigvals(part.A)
    if not decays(model, values).all():
        return np.inf
    return 2.0 * float(_balancing(model, part)[0].sum())


# ---- blocks


def _split(model: LinearModel, belongs: Callable[[complex], Any]) -> tuple[Part, Part]:
    """The modes whose poles belong, and the others, as parts that do not act on each other."""
    linalg = optional("scipy.linalg", "reduced", "scipy")
    T, Q, k = linalg.schur(model.A, sort=lambda x, y=None: bool(belongs(_pole(x, y))))
    X = linalg.solve_sylvester(T[:k, :k], -T[k:, k:], -T[:k, k:]) if 0 < k < len(T) else np.zeros((k, len(T) - k))
    B, C = Q.T @ model.B, model.C @ Q
    first = Part(T[:k, :k], B[:k] - X @ B[k:], C[:, :k], Q[:, :k])
    second = Part(T[k:, k:], B[k:], C[:, :k] @ X + C[:, k:], Q[:, :k] @ X + Q[:, k:])
    return first, second


def _decaying(model: LinearModel) -> Callable[[complex], bool]:
    """Whether the mode of a pole decays by more than rounding."""
    known, errors = spectrum(model)
    return lambda x: bool(decay(model, np.array(x)) > errors[np.abs(known - x).argmin()])


def _pole(x: Any, y: Any) -> complex:
    return complex(x) if y is None else complex(x, y)


def _block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.zeros((len(a) + len(b), len(a) + len(b)))
    out[: len(a), : len(a)], out[len(a) :, len(a) :] = a, b
    return out


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{x.real:.3g}{x.imag:+.3g}j" for x in values[:4]) + (", ..." if len(values) > 4 else "")
