"""Models of fewer states: balanced and modal truncation, with a bound of the error.

A is split into blocks along its modes: with an ordered Schur form A = Q [T₁ S; 0 T₂] Qᵀ and T₁ X − X T₂ = −S, the
blocks T₁ and T₂ do not act on each other. The stable block is balanced by the square-root method: roots of the Gramians
P = L Lᵀ, Q = K Kᵀ, Kᵀ L = U σ Vᵀ, and the states along the largest σ are kept. Any stable system with Hankel singular
values σ has a gain of at most 2 Σ σ at every frequency [Enns 1984; Glover 1984], which bounds both truncations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, SpanloopWarning
from spanloop.linear.optional_packages import optional
from spanloop.linear.responses import decay, decays, frequency_response, grows, rounded, spectrum

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel

METHODS = ("balanced", "modal")
_LEAST = 1e-15  # of the largest Hankel singular value: smaller ones are 0 to rounding
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
    scaled = _scaled(model)
    A, B, C, bound = _balanced(scaled, int(order)) if method == "balanced" else _modal(scaled, int(order))
    n = len(A)
    small = replace(
        model, A=A, B=B, C=C, drift=np.zeros(n), states=tuple(f"z{k + 1}" for k in range(n)), state_units=("",) * n,
        point=None, mass=None, name=f"{model.name}, {method} of order {n}",
    )  # fmt: skip
    bound, found = _checked(model, small, bound)
    if n < order:
        found = (*found, f"order {order} was asked for; rounding determines {n} states only, and this model has those")
    for note in found:
        warnings.warn(f"reduced: {note}", SpanloopWarning, stacklevel=3)
    return replace(small, error_bound=model.error_bound + bound, notes=(*model.notes, *found))


def _checked(model: LinearModel, small: LinearModel, bound: float) -> tuple[float, tuple[str, ...]]:
    """The bound, no less than the error at many frequencies, and what is to be said about it.

    In exact arithmetic the bound holds; stiff models lose digits, and the error that is left is measured.
    """
    if not np.isfinite(bound):
        return bound, ()
    omega = _probes(model, small)
    whole = frequency_response(model, omega)
    error, gain = _gains(whole - frequency_response(small, omega)), _gains(whole)
    excess = max(0.0, error - bound)
    raised = bound + 4.0 * excess + 1e-14 * gain
    if excess <= 1e-6 * max(gain, bound):
        return raised, ()
    return raised, (
        f"rounding adds to the error: 2 Σ of the Hankel singular values left out is {bound:.3g}, the error found "
        f"{error:.3g}; error_bound is four times what is found beyond the sum. Leave out fast or stiff modes first, "
        "or use another order",
    )


def _gains(response: np.ndarray) -> float:
    """The largest gain of responses (n, p, m) that are finite."""
    finite = response[np.isfinite(response).all(axis=(1, 2))]
    return float(np.linalg.norm(finite, 2, axis=(1, 2)).max(initial=0.0)) if finite.size else 0.0


def _probes(model: LinearModel, small: LinearModel) -> np.ndarray:
    """Frequencies (n,) [rad/s] that show an error: those of all poles, and between; not at undamped poles."""
    fades, lasting = [], []
    for one in (model, small):
        values = spectrum(one)[0]
        speeds = _speeds(one, values)
        is_fading = decays(one, values) & np.isfinite(speeds)
        fades.append(speeds[is_fading])
        lasting.append(np.abs(speeds[~is_fading].imag))
    all_fading, stays = np.concatenate(fades), np.concatenate(lasting)
    sizes = np.abs(all_fading)
    sizes = sizes[sizes > 0.0]
    span = np.geomspace(1e-2 * sizes.min(), 1e2 * sizes.max(), 200) if len(sizes) else np.zeros(0)
    side = np.linspace(-2.0, 2.0, 9)
    peaks = (np.abs(all_fading.imag)[:, None] + side * np.abs(all_fading.real)[:, None]).ravel()
    omega = np.unique(np.concatenate([[0.0], span, sizes, peaks[peaks > 0.0]]))
    if model.step is not None:
        omega = np.append(omega[omega < np.pi / model.step], np.pi / model.step)
    near = np.abs(omega[:, None] - stays) < 1e-3 * np.maximum(stays, sizes.min(initial=1.0))
    return np.asarray(omega[~near.any(axis=1)])


def _speeds(model: LinearModel, values: np.ndarray) -> np.ndarray:
    """Poles (n,) of one model as those of continuous time [1/s]."""
    if model.step is None:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(values) / model.step)


def _scaled(model: LinearModel) -> LinearModel:
    """The model in states of comparable size: scaled by powers of two, without rounding."""
    linalg = optional("scipy.linalg", "reduced", "scipy")
    if not len(model.A):
        return model
    A, (scale, _) = linalg.matrix_balance(model.A, permute=False, separate=True)
    return replace(model, A=A, B=model.B / scale[:, None], C=model.C * scale)


def hankel_singular_values(model: LinearModel) -> np.ndarray:
    """Those of the stable part, largest first."""
    scaled = _scaled(model)
    return _balancing(scaled, _split(scaled, _decaying(scaled))[0])[0]


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
    if order == len(model.A):
        return model.A, model.B, model.C, 0.0
    rank = int((sigma > _LEAST * sigma.max(initial=0.0)).sum())  # states beyond it have no part in the response
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
    L = _gramian_root(linalg, part.A, part.B, model.step is not None)
    K = _gramian_root(linalg, part.A.T, part.C.T, model.step is not None)
    U, sigma, Vt = np.linalg.svd(K.T @ L)
    return sigma, K @ U, L @ Vt.T


def _gramian_root(linalg: Any, A: np.ndarray, B: np.ndarray, is_discrete: bool) -> np.ndarray:
    """L (k, k) with L Lᵀ = P, where A P + P Aᵀ + B Bᵀ = 0, or P = A P Aᵀ + B Bᵀ in discrete time.

    Hammarling's method: with the complex Schur form A = V T Vᴴ the columns of the triangular root follow from the last
    to the first, each with one pole λ, and B is changed by one dyad. P itself, whose small parts would drown in
    rounding, is never formed.
    """
    T, V = linalg.schur(A, output="complex")
    G, R = V.conj().T @ B, np.zeros_like(T)
    for k in range(len(T) - 1, -1, -1):
        size, pole = np.linalg.norm(G[k]), T[k, k]
        if size == 0.0:
            continue
        u = G[k].conj() / size
        along, T1, t = G[:k] @ u, T[:k, :k], T[:k, k]
        if is_discrete:
            rate = np.sqrt((1.0 - abs(pole)) * (1.0 + abs(pole)))
            R[k, k] = size / rate
            r = linalg.solve_triangular(np.eye(k) - pole.conj() * T1, t * R[k, k] * pole.conj() + rate * along)
            change = rate * (T1 @ r + t * R[k, k]) - (1.0 + pole) * along
        else:
            rate = np.sqrt(-2.0 * pole.real)
            R[k, k] = size / rate
            r = linalg.solve_triangular(T1 + pole.conj() * np.eye(k), -rate * along - t * R[k, k])
            change = -rate * r
        R[:k, k] = r
        G = G[:k] + np.outer(change, u.conj())
    whole = V @ R
    return np.asarray(np.linalg.qr(np.concatenate([whole.real, whole.imag], axis=1).T)[1]).T


# ---- modal


def _modal(model: LinearModel, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    ranked = _by_dominance(model)
    chosen, others = ranked[:order], ranked[order:]

    if not _fits(ranked, order):
        fitting = [k for k in range(1, len(ranked) + 1) if _fits(ranked, k)]
        near = [*[k for k in fitting if k < order][-1:], *[k for k in fitting if k > order][:1]]
        raise InputError(
            f"reduced: order {order} would split a pair of poles or poles that coincide; use "
            + (" or ".join(map(str, near)) or "method='balanced'")
        )
    dropped, kept = _split(model, lambda x: _is_dropped(x, chosen, others))
    if len(kept.A) != order:
        raise InputError(
            f"reduced: order {order} would split poles that rounding cannot tell apart; use another order, or "
            "method='balanced'"
        )
    return kept.A, kept.B, kept.C, _gain_bound(model, dropped)


def _is_dropped(x: complex, chosen: np.ndarray, others: np.ndarray) -> bool:
    """Whether a pole is nearer to others than to those that are chosen."""
    return bool(np.abs(others - x).min(initial=np.inf) < np.abs(chosen - x).min(initial=np.inf) - _SAME * abs(x))


def _fits(ranked: np.ndarray, order: int) -> bool:
    """Whether the first poles can be kept without splitting pairs: conjugates and poles that coincide stay together."""
    chosen, others = ranked[:order], ranked[order:]
    apart = np.abs(chosen[:, None] - others) > _SAME * np.abs(chosen[:, None])
    pairs = np.abs(chosen[:, None].conj() - others) > _SAME * np.abs(chosen[:, None])
    return bool((apart & pairs).all())


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
