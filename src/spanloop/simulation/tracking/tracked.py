"""Statistics of quantities over the steps of a run, carried in its row of state: no samples are kept for them.

A step adds the quantity at its start. `final` adds the state after the last step, which no step begins with.

| statistic | numbers carried |
|---|---|
| largest, smallest | the value so far |
| time_of_largest, time_of_smallest | the value, and the time of it |
| mean | the integral by left rectangles, made one by trapezoids in the end |

In single precision the integral of a long run would stop to grow: what its sums lose is carried beside it, in an array
of its own (`rests`), and added to the next term [Kahan 1965].
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.lower import unrolled
from spanloop.math.scalar import where
from spanloop.simulation.controllers import traced
from spanloop.simulation.system import System
from spanloop.simulation.traced_kernels import kernel, must_repeat
from spanloop.simulation.tracking.quantities import Quantity

CARRIED = {"largest": 1, "smallest": 1, "time_of_largest": 2, "time_of_smallest": 2, "mean": 1}
_BEFORE = 1e36  # the size of an extreme before the first step; single precision holds it
_LOST = 1e35  # the size of an integral that had a value which is not finite


@dataclass(frozen=True)
class Tracked:
    """Pairs (statistic, quantity), in the order of the numbers that are carried."""

    items: tuple[tuple[str, Quantity], ...]

    @property
    def width(self) -> int:
        """Numbers carried."""
        return sum(CARRIED[statistic] for statistic, _ in self.items)

    @cached_property
    def integrals(self) -> tuple[int, ...]:
        """Places of the numbers carried that are sums."""
        places, at = list[int](), 0
        for statistic, _ in self.items:
            if statistic == "mean":
                places.append(at)
            at += CARRIED[statistic]
        return tuple(places)

    @cached_property
    def start(self) -> np.ndarray:
        """What is carried before the first step."""
        first = {"largest": [-_BEFORE], "smallest": [_BEFORE], "mean": [0.0]}
        first |= {f"time_of_{name}": [*first[name], 0.0] for name in ("largest", "smallest")}
        return np.array([x for statistic, _ in self.items for x in first[statistic]])

    def key(self, system: System) -> str:
        """A hash of what is traced; system: without what is tracked."""
        sizes = inputs(system)

        def compute(x: Any) -> Any:
            found = [q.value(system, x) for _, q in self.items]
            must_repeat(
                found, [q.value(system, x) if q.written else y for y, (_, q) in zip(found, self.items, strict=True)]
            )
            return found, (), ()

        plan = traced("a quantity", lambda: unrolled("tracked", tuple(sizes.items()), (0,), compute))
        return hashlib.sha256(f"{plan}{[s for s, _ in self.items]}".encode()).hexdigest()

    def next(self, system: System, x: Mapping[str, Sequence[Any]]) -> list[Any]:
        """What is carried after a step that begins at the arrays x; on any scalar."""
        return self.summed(x["tracked"], self.terms(system, x))

    def terms(self, system: System, x: Mapping[str, Sequence[Any]]) -> list[Any]:
        """The same with the terms that a step adds in the places of integrals."""
        out, at, carried = [], 0, x["tracked"]
        known: dict[int, Any] = {}
        for statistic, item in self.items:
            if id(item) not in known:
                known[id(item)] = item.value(system, x)
            value, size = known[id(item)], CARRIED[statistic]
            out += _carried(statistic, value, x["t"][0], x["h"][0], carried[at : at + size])
            at += size
        return out

    def summed(self, carried: Sequence[Any], terms: Sequence[Any]) -> list[Any]:
        """What is carried after a step from what was before it and the terms."""
        out = list(terms)
        for k in self.integrals:
            total = carried[k] + terms[k]
            out[k] = where(total < _LOST, where(total > -_LOST, total, 2.0 * _LOST), 2.0 * _LOST)
        return out

    def with_rests(self, terms: Sequence[Any], rests: Sequence[Any]) -> list[Any]:
        """The terms, with what the sums of the step before lost."""
        out = list(terms)
        for k, rest in zip(self.integrals, rests, strict=True):
            out[k] = out[k] + rest
        return out

    def rests(self, before: Sequence[Any], terms: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        """What the sums of a step lose; nothing of an integral that has no value."""
        places = self.integrals
        return [where(after[k] < _LOST, terms[k] - (after[k] - before[k]), 0.0) for k in places]

    def final(
        self, carried: np.ndarray, spans: np.ndarray, times: np.ndarray, values: Sequence[np.ndarray], step: float
    ) -> list[np.ndarray]:
        """The statistics (n,) of each item from what was carried (n, width).

        times (n, 3): of the start, of the last whole step's end, and of the end. values: at these times, (n, 3) for
        each item. spans (n,): how long the runs are. step: length of a step [s].
        """
        out, at = [], 0
        for (statistic, _), seen in zip(self.items, values, strict=True):
            part = carried[:, at : at + CARRIED[statistic]].astype(float)
            at += CARRIED[statistic]
            out.append(_finished(statistic, part, spans, times, seen, step))
        return out


def inputs(system: System) -> dict[str, int]:
    """Names and sizes of the arrays that quantities read."""
    names = ("t", "q", "v", "u", "z", *system.parameters)
    return {name: system.sizes[name] for name in names}


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Quantities of a system at rows of states, compiled once."""

    system: System
    items: tuple[Quantity, ...]

    @cached_property
    def _kernel(self) -> Any:
        key = Tracked(tuple(("largest", item) for item in self.items)).key(self.system)

        def compute(x: Mapping[str, Sequence[Any]]) -> tuple[list[Any], tuple[()]]:
            return [item.value(self.system, x) for item in self.items], ()

        return kernel("quantities", inputs(self.system), len(self.items), compute, key)

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Values (n, items) at rows of the arrays that quantities read; NaN where a row is not finite."""
        n = len(arrays["q"])
        sizes = inputs(self.system)
        rows = [np.ascontiguousarray(np.broadcast_to(arrays[name], (n, size)), float) for name, size in sizes.items()]
        well = np.logical_and.reduce([np.isfinite(x).all(axis=1) for x in rows])
        out = np.full((n, len(self.items)), np.nan)
        if well.any():
            out[well] = self._kernel.evaluate(*(rows if well.all() else (x[well] for x in rows)))
        bad = np.flatnonzero(well & np.isnan(out).any(axis=1))
        if len(bad) and len(self.items) > 1:  # a kernel has no answer where one of its numbers is none
            given = {name: x[bad] for name, x in zip(sizes, rows, strict=True)}
            out[bad] = np.column_stack([alone(given) for alone in self._alone])
        return out

    @cached_property
    def _alone(self) -> tuple[Evaluator, ...]:
        return tuple(Evaluator(self.system, (item,)) for item in self.items)


def _carried(statistic: str, value: Any, t: Any, h: Any, before: Sequence[Any]) -> list[Any]:
    """The next numbers of one extreme, which a value that is not a number does not change; the term of an integral."""
    if statistic == "mean":
        return [value * h]
    further = value > before[0] if statistic.endswith("largest") else value < before[0]
    bounded = where(value < _BEFORE, where(value > -_BEFORE, value, before[0]), before[0])
    first = where(further, bounded, before[0])
    return [first, where(further, t, before[1])] if statistic.startswith("time") else [first]


def _finished(
    statistic: str, carried: np.ndarray, spans: np.ndarray, times: np.ndarray, seen: np.ndarray, step: float
) -> np.ndarray:
    """One statistic (n,) of whole runs; seen, times (n, 3)."""
    if statistic == "mean":
        whole = carried[:, 0] + 0.5 * step * (seen[:, 1] - seen[:, 0]) * (times[:, 1] > times[:, 0])
        rest = 0.5 * (times[:, 2] - times[:, 1]) * (seen[:, 1] + seen[:, 2])
        rest = np.where(times[:, 2] > times[:, 1], rest, 0.0)
        mean = np.where(spans > 0.0, (whole + rest) / np.where(spans > 0.0, spans, 1.0), seen[:, 0])
        return np.where(np.abs(carried[:, 0]) < _LOST, mean, np.nan)
    sign = 1.0 if statistic.endswith("largest") else -1.0
    values = np.column_stack([sign * carried[:, 0], sign * seen])
    values = np.where(np.isfinite(values) & (np.abs(values) < 0.99 * _BEFORE), values, -np.inf)
    best = values.argmax(axis=1)
    rows = np.arange(len(best))
    lost = ~np.isfinite(values[rows, best])
    if statistic.startswith("time"):
        found = np.column_stack([carried[:, 1], times])[rows, best]
    else:
        found = sign * values[rows, best]
    return np.where(lost, np.nan, found)
