"""Integrals over time from samples, with an honest estimate of their own error.

Over each interval the cubic through the four nearest samples is integrated. The doubt is the difference to the same
rule on every second sample: about fifteen times the error where the integrand is smooth, and large where it is not.
Where torques are held the motion has kinks at samples: there Gauss's rule of two points inside each interval is used,
with the states there from the motion's own polynomial, and the doubt is the difference to the rule above.

Where two rules differ by more than 5 % of an interval, samples do not resolve the integrand (a stiff joint decays
between two of them): then the doubt is all that the interval could contribute, the larger of its ends times its length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spanloop.errors import UnsupportedError

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_RESOLVED = 0.05  # of what an interval could contribute: two rules differ by less where samples resolve the integrand
_WILD = 10.0  # of the largest integrand at any sample
_GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)


class Integral(NamedTuple):
    """Integrals over the intervals between samples, (..., n − 1), and the difference of another rule for each."""

    parts: np.ndarray
    misses: np.ndarray

    @property
    def course(self) -> np.ndarray:
        """The integral from the first sample to each, (..., n)."""
        return _summed(self.parts)

    @property
    def doubt(self) -> np.ndarray:
        """How wrong it may be, (..., n)."""
        return np.maximum.accumulate(np.abs(_summed(self.misses)), axis=-1)


def integral(run: Trajectory, integrand: Callable[[Trajectory], np.ndarray]) -> Integral:
    """∫ integrand dt over the intervals; integrand(run) gives (..., n) at its samples. Between two segments it is 0."""
    f = integrand(run)
    parts, misses = np.zeros((2, *f.shape[:-1], len(run) - 1))
    begin = 0
    for s in run.segments:
        inside = slice(begin, begin + len(s) - 1)
        parts[..., inside], misses[..., inside] = _up_to_ends(s.times, f[..., begin : begin + len(s)])
        begin += len(s)
    if any(s.held for s in run.segments):
        parts, misses = _inside(run, integrand, parts, misses, f)
    return Integral(parts, misses)


def _inside(run: Trajectory, integrand, parts, misses, at_samples) -> tuple[np.ndarray, np.ndarray]:
    """Gauss's rule in the intervals in which torques are held; no sample takes part, where they jump."""
    held = np.concatenate([np.append(np.full(len(s) - 1, s.held), False) for s in run.segments])[:-1]
    if not held.any():
        return parts, misses
    start, h = run.times[:-1][held], np.diff(run.times)[held]
    inside = (start[:, None] + h[:, None] * _GAUSS).ravel()
    if not (np.diff(inside) > 0.0).all():  # between two events there is no time
        return parts, misses
    try:
        f = integrand(run.at(inside))
    except UnsupportedError:  # coordinates without differences have no states in between
        return parts, misses
    gauss, plain = 0.5 * h * (f[..., 0::2] + f[..., 1::2]), parts[..., held]
    most = h * np.nanmax(np.abs(at_samples), axis=-1, keepdims=True, initial=0.0)
    wild = np.abs(gauss) > _WILD * most  # the polynomial swings far out where a stiff joint decays
    misses[..., held] = np.where(wild, misses[..., held], gauss - plain)
    parts[..., held] = np.where(wild, plain, gauss)
    return parts, misses


def _honest(misses: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The differences of two rules (..., n), or the most that an interval can contribute where it is not resolved."""
    unresolved = np.abs(misses) > _RESOLVED * most
    return np.where(unresolved, np.copysign(np.maximum(np.abs(misses), most), misses), misses)


def _up_to_ends(times: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of f (..., n) may be NaN from some sample on; rows of equal length are integrated together."""
    rows = f.reshape(-1, f.shape[-1])
    parts, misses = np.full((2, len(rows), len(times) - 1), np.nan)
    finite = np.isfinite(rows)
    lengths = np.where(finite.all(axis=1), len(times), np.argmin(finite, axis=1))
    for n in np.unique(lengths[lengths > 1]):
        mine = lengths == n
        parts[mine, : n - 1], misses[mine, : n - 1] = _rule(times[:n], rows[mine, :n])
    shape = (*f.shape[:-1], len(times) - 1)
    return parts.reshape(shape), misses.reshape(shape)


def _rule(times: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fine = _cubic(times, rows)
    if len(times) < 5:  # too few to leave out every second one
        straight = 0.5 * (rows[:, 1:] + rows[:, :-1]) * np.diff(times)
        return fine, fine - straight if len(times) > 2 else np.diff(times) * np.abs(rows).sum(axis=1, keepdims=True)
    pairs = (len(times) - 1) // 2
    coarse = _cubic(times[: 2 * pairs + 1 : 2], rows[:, : 2 * pairs + 1 : 2])
    miss = 0.5 * (fine[:, : 2 * pairs].reshape(len(rows), pairs, 2).sum(axis=-1) - coarse)
    misses = np.repeat(miss, 2, axis=1)
    misses = np.concatenate([misses, misses[:, -1:]], axis=1)[:, : len(times) - 1]
    return fine, _honest(misses, np.diff(times) * np.maximum(np.abs(rows[:, 1:]), np.abs(rows[:, :-1])))


def _cubic(times: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Integrals (r, n − 1) of the polynomials through the four nearest samples (through all, if there are fewer)."""
    n = len(times)
    size = min(n, 4)
    first = np.clip(np.arange(n - 1) - 1, 0, n - size)
    near = first[:, None] + np.arange(size)
    h = np.diff(times)
    x = (times[near] - times[:-1, None]) / h[:, None]  # the interval is [0, 1]
    powers = x[:, None, :] ** np.arange(size)[:, None]
    moments = np.broadcast_to(1.0 / (1.0 + np.arange(size)), (n - 1, size))
    weights = np.linalg.solve(powers, moments[..., None])[..., 0]
    return h * np.einsum("ik,rik->ri", weights, rows[:, near])


def _summed(parts: np.ndarray) -> np.ndarray:
    """Sums up to each sample, beginning with 0."""
    return np.concatenate([np.zeros((*parts.shape[:-1], 1)), np.cumsum(parts, axis=-1)], axis=-1)
