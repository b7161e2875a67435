"""What a gradient is taken of: a loss of the last state, an integral over the run, or weights of its samples.

The integral is the trapezoidal rule on the grid of steps, with the inputs of each step at both of its ends:

    Σ h/2 (running(t_k, q_k, v_k, u_k) + running(t_k+1, q_k+1, v_k+1, u_k))

Sums are taken sample by sample, the last one first: how a run is cut into segments changes no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, Refusal, nearest
from spanloop.simulation.gradients.differentiated_run import DifferentiatedRun
from spanloop.simulation.gradients.traced_loss import TracedLoss


class Objective:
    """Values and derivatives at samples, added up from the last sample to the first.

    value (n,): so far; u: derivatives of the integral by inputs, (n, steps or 1, width); refused: why runs have none.
    """

    def __init__(self, run: DifferentiatedRun, loss: Any, running: Any):
        self.run, n = run, len(run.problem)
        if loss is None and running is None:
            raise InputError(f"{run.function}: neither loss nor running is given; expected a function of the state")
        is_weights = isinstance(loss, Mapping)
        model = run.problem.model
        self.weights = _weights(run, loss) if is_weights else {}
        self.loss = None if is_weights or loss is None else TracedLoss.final(loss, model)
        width = run.inputs.shape[2]
        self.running = None if running is None else TracedLoss.running(running, model, width)
        self.value = np.zeros(n)
        self.u = np.zeros((n, run.inputs.shape[1], width))
        self.refused: dict[int, Refusal] = {}

    def at(self, first: int, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add samples q (n, count, nq), v (n, count, nv) from number `first` on; the derivatives by them, alike."""
        samples = _Samples(first, q.astype(float), v.astype(float))
        steps = self.run.grid.steps
        if self.weights:
            self._add_weights(samples)
        if self.loss is not None and samples.last == steps:
            self._add(self.loss, samples.part(steps, steps), np.ones(1), None)
        if self.running is not None:
            self._add_running(self.running, samples)
        self.value = _summed(self.value, samples.values)
        return samples.of_q, samples.of_v

    def _add_weights(self, samples: _Samples) -> None:
        every = self.run.grid.every
        for k in range(-(-samples.first // every), samples.last // every + 1):
            part, own = samples.part(k * every, k * every), {n: w[:, k : k + 1] for n, w in self.weights.items()}
            for name, x, out in (("q", part.q, part.of_q), ("v", part.v, part.of_v)):
                if name in own:
                    out += own[name]
                    part.values[...] += (own[name] * x).sum(axis=-1)

    def _add_running(self, function: TracedLoss, samples: _Samples) -> None:
        steps, h = self.run.grid.steps, self.run.grid.h
        numbers = np.arange(samples.first, samples.last + 1)
        if not function.takes_inputs or self.run.inputs_are_constant:
            weight = np.where((numbers == 0) | (numbers == steps), 0.5 * h, h)
            self._add(function, samples, weight, np.zeros(1, int))
            return
        for before in (1, 0):  # the ends of the steps before, then the starts of the steps after
            first, last = max(samples.first, before), min(samples.last, steps - 1 + before)
            if first <= last:
                part = samples.part(first, last)
                self._add(function, part, np.full(last - first + 1, 0.5 * h), np.arange(first, last + 1) - before)

    def _add(self, function: TracedLoss, part: _Samples, weight: np.ndarray, steps: np.ndarray | None) -> None:
        """Add weight (count,) times a function at samples; steps: numbers of the inputs, one or one for each sample."""
        n, count = part.q.shape[:2]
        t = np.broadcast_to(self.run.times(part.first, count), (n, count))
        rows = np.zeros((1, 1, 0)) if steps is None else self.run.inputs[:, steps]
        u = np.broadcast_to(rows, (n, count, rows.shape[2]))
        found = function(*(np.reshape(x, (n * count, *x.shape[2:])) for x in (t, part.q, part.v, u)))
        shaped = {name: x.reshape(n, count, *x.shape[1:]) for name, x in found.items()}
        for run in np.flatnonzero(~np.isfinite(shaped["value"]).all(axis=1)):
            k = int(np.argmin(np.isfinite(shaped["value"][run])))
            self.refused[int(run)] = function.refusal(float(t[run, k]), part.q[run, k], part.v[run, k], u[run, k])
        part.values[...] += weight * shaped["value"]
        part.of_q[...] += weight[:, None] * shaped["q"]
        part.of_v[...] += weight[:, None] * shaped["v"]
        if "u" in shaped and steps is not None:
            rates = weight[:, None] * shaped["u"]
            if self.run.inputs_are_constant:
                self.u[:, 0] = _summed(self.u[:, 0], rates)
            else:
                self.u[:, steps] += rates


@dataclass(frozen=True)
class _Samples:
    """Samples from number `first` on: q, v, and what is found there."""

    first: int
    q: np.ndarray
    v: np.ndarray
    values: np.ndarray | Any = None
    of_q: np.ndarray | Any = None
    of_v: np.ndarray | Any = None

    def __post_init__(self) -> None:
        if self.values is None:
            object.__setattr__(self, "values", np.zeros(self.q.shape[:2]))
            object.__setattr__(self, "of_q", np.zeros(self.q.shape))
            object.__setattr__(self, "of_v", np.zeros(self.v.shape))

    @property
    def last(self) -> int:
        return self.first + self.q.shape[1] - 1

    def part(self, first: int, last: int) -> _Samples:
        """The samples of these numbers: views."""
        s = np.s_[:, first - self.first : last - self.first + 1]
        return _Samples(first, self.q[s], self.v[s], self.values[s], self.of_q[s], self.of_v[s])


def _summed(total: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """total (n, ...) plus rows (n, count, ...), one after the other from the last to the first."""
    found: np.ndarray = np.cumsum(np.concatenate([total[:, None], rows[:, ::-1]], axis=1), axis=1)[:, -1]
    return found


def _weights(run: DifferentiatedRun, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Weights (n, samples, size) of q and v at the samples of a run."""
    sizes = {"q": run.problem.model.nq, "v": run.problem.model.nv}
    out = {}
    for name, values in given.items():
        if name not in sizes:
            raise InputError(f"{run.function}: loss has weights of {name!r}; {nearest(str(name), sizes)}")
        shape = (*run.problem.batch, run.grid.samples, sizes[name])
        array = np.asarray(values)
        if array.dtype.kind not in "fiub" or array.shape[-2:] != shape[-2:]:
            raise InputError(
                f"{run.function}: loss[{name!r}] has shape {array.shape} of {array.dtype}; expected {shape}, a weight "
                f"for every number of run.{name}"
            )
        try:
            rows = np.broadcast_to(array, shape)
        except ValueError:
            raise InputError(f"{run.function}: loss[{name!r}] has shape {array.shape}; expected {shape}") from None
        if not np.isfinite(rows).all():
            raise InputError(f"{run.function}: loss[{name!r}] holds a number that is not finite; every number must be")
        out[name] = rows.reshape(-1, *shape[-2:]).astype(float)
    if not out:
        raise InputError(f"{run.function}: loss has no weights; expected {{'q': array, 'v': array}} or a function")
    return out
