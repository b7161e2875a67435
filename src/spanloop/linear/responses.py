"""What a linear model does: poles, frequency response, motion in time, discrete time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError
from spanloop.linear.optional_packages import optional
from spanloop.model.user_input import number

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel

_ROUNDING = 10.0 * np.finfo(float).eps
_LARGEST = 1e-3  # of the root of A's size: the largest error of a pole that is taken for rounding
_SAMPLES = 400


def poles(model: LinearModel) -> np.ndarray:
    """The eigenvalues of A (..., k), by size; NaN for an operating point without an answer."""
    return spectrum(model)[0]


def spectrum(model: LinearModel) -> tuple[np.ndarray, np.ndarray]:
    """The poles (..., k), and by how much rounding may change the decay of each [1/s].

    An eigenvalue with the eigenvectors v and w (rows of the inverse) changes by ‖v‖ ‖w‖ times the rounding of A: by far
    more than others where poles coincide in a chain, as four zeros of a free body in gravity do.
    """
    A = np.where(np.isfinite(model.A), model.A, 0.0)
    values, right = np.linalg.eig(A)
    size = np.linalg.norm(A, axis=(-2, -1))[..., None]
    with np.errstate(all="ignore"):
        condition = np.linalg.norm(_inverse(right), axis=-1) * np.linalg.norm(right, axis=-2)
        errors = np.fmin(_ROUNDING * size * condition, _LARGEST * np.sqrt(size))
    if model.step is not None:
        errors = np.fmin(errors, _LARGEST) / model.step
    values = values.astype(complex)
    values[~np.isfinite(model.A).all(axis=(-2, -1))] = np.nan
    order = np.lexsort((values.imag, values.real, np.round(np.abs(values), 12)))
    return np.take_along_axis(values, order, axis=-1), np.take_along_axis(errors, order, axis=-1)


def _inverse(right: np.ndarray) -> np.ndarray:
    """The inverses of matrices (..., k, k), NaN where they are singular."""
    try:
        return np.linalg.inv(right)
    except np.linalg.LinAlgError:
        out = np.full(right.shape, np.nan, dtype=complex)
    for k in np.ndindex(right.shape[:-2]):
        if np.linalg.cond(right[k]) < 1.0 / np.finfo(float).eps:
            out[k] = np.linalg.inv(right[k])
    return out


def decay(model: LinearModel, values: np.ndarray) -> np.ndarray:
    """How fast the modes of poles (...) decay [1/s]: minus their real part; of a discrete model −log|z| / step."""
    if model.step is None:
        return -values.real
    with np.errstate(divide="ignore"):
        return -np.log(np.abs(values)) / model.step


def decays(model: LinearModel, values: np.ndarray) -> np.ndarray:
    """Whether modes of poles (n,) of one model decay by more than rounding."""
    return decay(model, values) > _error_of(model, values)


def grows(model: LinearModel, values: np.ndarray) -> np.ndarray:
    """Whether modes of poles (n,) of one model grow by more than rounding."""
    return decay(model, values) < -_error_of(model, values)


def _error_of(model: LinearModel, values: np.ndarray) -> np.ndarray:
    """What rounding may change in the decay of poles (n,): that of the nearest pole of the model."""
    known, errors = spectrum(model)
    if not len(known):
        return np.zeros(len(values))
    return errors[np.abs(np.asarray(values)[:, None] - known).argmin(axis=1)]


def rounded(model: LinearModel, values: np.ndarray) -> np.ndarray:
    """Poles (n,) of one model, with real and imaginary parts that are less than rounding as 0."""
    errors = 3.0 * _error_of(model, values) * (1.0 if model.step is None else model.step)
    real = np.where(np.abs(values.real) > errors, values.real, 0.0)
    return real + 1j * np.where(np.abs(values.imag) > errors, values.imag, 0.0)


def is_stable(model: LinearModel) -> np.ndarray:
    """Whether all modes decay by more than rounding (...)."""
    values, errors = spectrum(model)
    return np.asarray((decay(model, values) > errors).all(axis=-1))


# ---- frequency


def frequency_response(model: LinearModel, frequencies: ArrayLike) -> np.ndarray:
    """C (s − A)⁻¹ B + D (..., n, p, m), s = jω; (..., p, m) for one ω."""
    try:
        omega = np.asarray(frequencies, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"frequency_response: frequencies are {frequencies!r}; expected numbers [rad/s]") from None
    if omega.ndim > 1 or not np.isfinite(omega).all():
        raise InputError(
            f"frequency_response: frequencies have shape {omega.shape}; expected finite numbers (n,) [rad/s]"
        )
    s = 1j * omega if model.step is None else np.exp(1j * omega * model.step)
    k = model.A.shape[-1]
    left = s.reshape(-1, 1, 1) * np.eye(k) - model.A[..., None, :, :]
    right = np.broadcast_to(model.B[..., None, :, :], (*left.shape[:-1], model.B.shape[-1]))
    x = _solved(left, right)
    with np.errstate(invalid="ignore"):
        y = model.C[..., None, :, :] @ x + model.D[..., None, :, :]
    y[~np.isfinite(x).all(axis=(-2, -1))] = np.inf
    y[~np.isfinite(model.A).all(axis=(-2, -1))] = np.nan
    return y if omega.ndim else y[..., 0, :, :]


def _solved(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left⁻¹ right, inf where left is singular."""
    try:
        return np.linalg.solve(left, right)
    except np.linalg.LinAlgError:
        pass
    out = np.full(right.shape, np.inf, dtype=complex)
    for k in np.ndindex(left.shape[:-2]):
        try:
            out[k] = np.linalg.solve(left[k], right[k])
        except np.linalg.LinAlgError:
            continue
    return out


def usual_frequencies(model: LinearModel, count: int = _SAMPLES) -> np.ndarray:
    """Frequencies (n,) [rad/s] from below the slowest to above the fastest pole, dense at lightly damped ones."""
    values = poles(model)
    if model.step is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(values) / model.step
    sizes = np.abs(values[np.isfinite(values)])
    sizes = sizes[sizes > 1e-6 * sizes.max(initial=0.0)]
    low, high = (0.1 * sizes.min(), 10.0 * sizes.max()) if len(sizes) else (0.01, 100.0)
    if model.step is not None:
        high = min(high, np.pi / model.step)
        low = min(low, 0.01 * high)
    peaks = [abs(x.imag) * (1.0 + 10.0**e * sign) for x in values for e in np.linspace(-4, -1, 10) for sign in (-1, 1)]
    omega = np.concatenate([np.geomspace(low, high, count), np.array(peaks)[np.isfinite(peaks)]])
    return np.unique(omega[(omega >= low) & (omega <= high)])


# ---- time


def discrete(model: LinearModel, step: float) -> LinearModel:
    """The model over steps with constant inputs: exp of [A B; 0 0] step."""
    h = number(step, "discrete: step")
    if model.step is not None:
        raise InputError(f"discrete: the model is in discrete time already, with steps of {model.step:g} s")
    if h <= 0.0:
        raise InputError(f"discrete: step is {step!r}; expected a time > 0 [s]")
    linalg = optional("scipy.linalg", "discrete", "scipy")
    k, m = model.B.shape[-2:]
    forced = np.concatenate([model.B, model.drift[..., None]], axis=-1)
    whole = np.zeros((*model.batch, k + m + 1, k + m + 1))
    whole[..., :k, :] = np.concatenate([model.A, forced], axis=-1)
    grown = np.empty_like(whole)
    for row in np.ndindex(model.batch):
        grown[row] = linalg.expm(h * whole[row]) if np.isfinite(whole[row]).all() else np.nan
    parts: dict[str, Any] = {"A": grown[..., :k, :k], "B": grown[..., :k, k : k + m], "drift": grown[..., :k, k + m]}
    return replace(model, **parts, step=h)


def simulated(model: LinearModel, times: ArrayLike, u: ArrayLike | None, x: ArrayLike | None) -> np.ndarray:
    """The outputs (n, p) at equally spaced times, inputs constant between them."""
    t = np.asarray(times, dtype=float)
    steps = np.diff(t) if t.ndim == 1 else np.zeros(0)
    if not len(steps) or not (steps > 0.0).all() or np.ptp(steps) > 1e-9 * max(abs(t[-1] - t[0]), 1e-300):
        raise InputError(
            f"simulate: times have shape {t.shape}; expected two or more (n,), equally spaced and rising [s]"
        )
    if model.step is not None and abs(steps[0] - model.step) > 1e-9 * model.step:
        raise InputError(
            f"simulate: times are {steps[0]:g} s apart; the model is in discrete time, with {model.step:g} s"
        )
    moved = model if model.step is not None else discrete(model, (t[-1] - t[0]) / (len(t) - 1))
    inputs = _shaped("u", u, (len(t), len(model.inputs)))
    state = _shaped("x", x, (len(model.states),)).copy()
    states = np.empty((len(t), len(model.states)))
    for k in range(len(t)):
        states[k] = state
        state = moved.A @ state + moved.B @ inputs[k]
    return states @ model.C.T + inputs @ model.D.T


def step_response(model: LinearModel, times: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and outputs (n, p, m) after each input steps to 1."""
    t = _usual_times(model) if times is None else np.asarray(times, dtype=float)
    columns = [simulated(model, t, row, None) for row in np.eye(len(model.inputs))]
    return t, np.stack(columns, axis=-1) if columns else np.zeros((len(t), len(model.outputs), 0))


def _usual_times(model: LinearModel) -> np.ndarray:
    """Until the slowest motion has decayed or grown to e⁵, for at least a few periods of the slowest oscillation."""
    if model.step is not None:
        return model.step * np.arange(_SAMPLES)
    values, errors = spectrum(model)
    sizes, speed = np.abs(values), np.abs(values.real)
    speed, sizes = speed[speed > errors], sizes[sizes > errors]
    end = 5.0 / speed.min() if len(speed) else 4.0 * np.pi / sizes.min() if len(sizes) else 1.0
    return np.linspace(0.0, end, _SAMPLES)


def _shaped(name: str, given: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    found = np.zeros(shape) if given is None else np.asarray(given, dtype=float)
    try:
        return np.broadcast_to(found, shape)
    except ValueError:
        raise InputError(f"simulate: {name} has shape {found.shape}; expected {shape}") from None
