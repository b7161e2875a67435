"""What a linear model does: poles, frequency response, motion in time, discrete time."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, SpanloopWarning
from spanloop.linear.optional_packages import optional
from spanloop.model.user_input import number

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel

_ROUNDING = 10.0 * np.finfo(float).eps
_LARGEST = 1e-3  # of the root of A's size: the largest error of a pole that is taken for rounding
_SINGULAR = 0.02 / np.finfo(float).eps  # condition of s − A at which rounding cannot tell s from a pole
_HIDDEN = 1e-9  # part of a response that counts as rounding
_POINTS = 64  # on a circle around a pole
_SAMPLES = 400
_MOST_SAMPLES = 20_000
_SIGNIFICANT = 1e-3  # of the largest part of a step response: modes that its times show


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
    inverse = _inverses(left)
    with np.errstate(invalid="ignore", over="ignore"):
        y = model.C[..., None, :, :] @ (inverse @ model.B[..., None, :, :]) + model.D[..., None, :, :]
        sizes = np.abs(s).reshape(-1, 1, 1) * np.eye(k) + np.abs(model.A)[..., None, :, :]
        condition = np.einsum("...ij,...ji->...i", np.abs(inverse), sizes).max(axis=-1, initial=0.0)
    is_known = np.isfinite(model.A).all(axis=(-2, -1))
    for *row, n in np.argwhere(~(condition < _SINGULAR) & is_known[..., None]):
        of = tuple(row)
        y[(*of, n)] = _at_pole(model.A[of], model.B[of], model.C[of], s.ravel()[n]) + model.D[of]
    y[~is_known] = np.nan
    return y if omega.ndim else y[..., 0, :, :]


def _inverses(left: np.ndarray) -> np.ndarray:
    """The inverses of matrices (..., k, k), NaN where they are singular."""
    try:
        return np.linalg.inv(left)
    except np.linalg.LinAlgError:
        pass
    out = np.full(left.shape, np.nan, dtype=complex)
    for k in np.ndindex(left.shape[:-2]):
        try:
            out[k] = np.linalg.inv(left[k])
        except np.linalg.LinAlgError:
            continue
    return out


def _at_pole(A: np.ndarray, B: np.ndarray, C: np.ndarray, s: complex) -> np.ndarray:
    """C (s − A)⁻¹ B (p, m) where s is a pole: inf in the entries that have it, the limit in the others.

    Around s lies a circle that encloses no other poles. The Laurent series there has no negative powers in an entry
    without the pole, and its mean is the limit.
    """
    distances = np.sort(np.abs(np.linalg.eigvals(A) - s))
    scale = max(float(distances[-1]), abs(s)) or 1.0
    steps = np.append(np.maximum(distances, 1e-6 * scale), 10.0 * scale)
    place = int(np.argmax(steps[1:] / steps[:-1]))
    radius = max(0.1 * steps[place + 1], np.sqrt(steps[place] * steps[place + 1]))
    turns = np.exp(2j * np.pi * np.arange(_POINTS) / _POINTS)
    x = np.linalg.inv((s + radius * turns)[:, None, None] * np.eye(len(A)) - A) @ B
    terms = np.fft.fft(C @ x, axis=0) / _POINTS
    size = (np.abs(C) @ np.abs(x)).max(axis=0)
    has_pole = np.abs(terms[_POINTS // 2 :]).max(axis=0) > _HIDDEN * size
    return np.where(has_pole, np.inf, terms[0])


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


def simulated(
    model: LinearModel, times: ArrayLike, u: ArrayLike | None, x: ArrayLike | None, caller: str = "simulate"
) -> np.ndarray:
    """The outputs (n, p) at equally spaced times, inputs constant between them."""
    t = _numbers(caller, "times", times)
    steps = np.diff(t) if t.ndim == 1 else np.zeros(0)
    if not len(steps) or not (steps > 0.0).all() or np.ptp(steps) > 1e-9 * max(abs(t[-1] - t[0]), 1e-300):
        raise InputError(
            f"{caller}: times have shape {t.shape}; expected two or more (n,), equally spaced and rising [s]"
        )
    if model.step is not None and abs(steps[0] - model.step) > 1e-9 * model.step:
        raise InputError(
            f"{caller}: times are {steps[0]:g} s apart; the model is in discrete time, with {model.step:g} s"
        )
    moved = model if model.step is not None else discrete(model, (t[-1] - t[0]) / (len(t) - 1))
    inputs = _inputs(caller, u, len(t), len(model.inputs))
    state = _states(caller, x, len(model.states))
    states = np.empty((len(t), len(model.states)))
    for k in range(len(t)):
        states[k] = state
        state = moved.A @ state + moved.B @ inputs[k]
    return states @ model.C.T + inputs @ model.D.T


def step_response(model: LinearModel, times: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and outputs (n, p, m) after each input steps to 1."""
    t = _usual_times(model) if times is None else _numbers("step_response", "times", times)
    columns = [simulated(model, t, row, None, "step_response") for row in np.eye(len(model.inputs))]
    return t, np.stack(columns, axis=-1) if columns else np.zeros((len(t), len(model.outputs), 0))


def _usual_times(model: LinearModel) -> np.ndarray:
    """Until the slowest motion has decayed or grown to e⁵, with 18 samples or more in the fastest period.

    Modes that have little part in the response do not count.
    """
    if model.step is not None:
        return model.step * np.arange(_SAMPLES)
    values, errors = _in_steps(model)
    sizes, speed = np.abs(values), np.abs(values.real)
    swings = np.abs(values.imag)[np.abs(values.imag) > np.maximum(speed, errors)]
    speed, sizes = speed[speed > errors], sizes[sizes > errors]
    end = 5.0 / speed.min() if len(speed) else 4.0 * np.pi / sizes.min() if len(sizes) else 1.0
    count = max(_SAMPLES, int(np.ceil(end * swings.max(initial=0.0) / 0.35)) + 1)
    if count > _MOST_SAMPLES:
        shown = end * (_MOST_SAMPLES - 1) / (count - 1)
        warnings.warn(
            f"step_response: the slowest motion takes {end:.3g} s, the fastest period {2 * np.pi / swings.max():.3g} "
            f"s; {_MOST_SAMPLES} samples show the first {shown:.3g} s. Give times for more",
            SpanloopWarning,
            stacklevel=4,
        )
        end, count = shown, _MOST_SAMPLES
    return np.linspace(0.0, end, count)


def _in_steps(model: LinearModel) -> tuple[np.ndarray, np.ndarray]:
    """The poles (n,) that have a part in step responses, and what rounding may change in each."""
    values, errors = spectrum(model)
    known, right = np.linalg.eig(model.A)
    left = _inverse(right)
    if not len(values) or not np.isfinite(left).all():
        return values, errors
    parts = np.abs(model.C @ right)[:, :, None] * np.abs(left @ model.B)[None]  # outputs, modes, inputs
    parts = parts / np.maximum(np.abs(known), 1e-300)[None, :, None]
    counts = (parts > _SIGNIFICANT * parts.max(axis=1, keepdims=True, initial=0.0)).any(axis=(0, 2))
    if not counts.any():
        return values, errors
    chosen = np.abs(values[:, None] - known[counts]).min(axis=1) <= 1e-9 * np.abs(values)
    return values[chosen], errors[chosen]


def _numbers(caller: str, name: str, given: ArrayLike) -> np.ndarray:
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{caller}: {name} is {given!r}; expected numbers") from None
    if not np.isfinite(found).all():
        raise InputError(f"{caller}: {name} has numbers that are not finite; expected finite ones")
    return found


def _inputs(caller: str, given: ArrayLike | None, n: int, m: int) -> np.ndarray:
    """Inputs (n, m) from (n, m) or constants (m,); with one input a number or (n,) too."""
    found = np.zeros(m) if given is None else _numbers(caller, "u", given)
    if m == 1 and found.shape in ((), (n,)):
        found = found.reshape(-1, 1)
    elif found.shape not in ((n, m), (m,)):
        expected = f"({n}, {m}), or ({m},) of inputs that are constant"
        raise InputError(f"{caller}: u has shape {found.shape}; expected {expected}")
    return np.broadcast_to(found, (n, m))


def _states(caller: str, given: ArrayLike | None, k: int) -> np.ndarray:
    found = np.zeros(k) if given is None else _numbers(caller, "x", given)
    if found.shape != (k,):
        raise InputError(f"{caller}: x has shape {found.shape}; expected a number for each state ({k},)")
    return found.copy()
