"""What an event does to the state, and where it happens, with their derivatives.

| function | what |
|---|---|
| jump | (q, v, captured) before a row of the log → after it: bodies that come or go, frames, the impact |
| watched | values of the watchers at t, q, v, each positive until it fires |

Both are those of the run itself (events/changes.py, events/watched_values.py; the ends of events/endings.py), traced
once more. Pullbacks take weights of what is computed and return cotangents of what moves, arrays by name; pushes take
rates of what moves. Rows of weights and rates (n, size) are computed side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.derivative import directional, pullback
from spanloop.simulation.events.changes import Changes
from spanloop.simulation.events.switched_start import watch_key
from spanloop.simulation.events.watched_values import values_and_rates
from spanloop.simulation.gradients.derived_kernel import derived_kernel, rows_of
from spanloop.simulation.problem import Problem

Arrays = Mapping[str, np.ndarray]
_RATE, _WEIGHT = "d.", "w."


@dataclass(frozen=True)
class TracedMap:
    """A function of arrays by name, with derivatives by those that move.

    compute: {array: scalars} -> {array: scalars}; sizes: of what it reads; answers: of what it returns; moving: names
    of arrays that move.
    """

    name: str
    key: str
    sizes: Mapping[str, int]
    answers: Mapping[str, int]
    moving: Sequence[str]
    compute: Callable[[Mapping[str, Any]], Mapping[str, Sequence[Any]]]

    def __call__(self, given: Arrays) -> dict[str, np.ndarray]:
        """The answers at one state."""
        return self._called("", self._flat, {}, self.answers, given, {})

    def pull(self, given: Arrays, weights: Arrays) -> dict[str, np.ndarray]:
        """Cotangents (n, size) of what moves for weights (n, size) of answers; those not given are 0."""
        sizes = {_WEIGHT + n: size for n, size in self.answers.items()}

        def compute(x: Mapping[str, Any]) -> list[Any]:
            w = [y for n in self.answers for y in x[_WEIGHT + n]]
            return pullback(self._flat(x), w, [y for n in self.moving for y in x[n]])

        return self._called(".pull", compute, sizes, {n: self.sizes[n] for n in self.moving}, given, weights)

    def push(self, given: Arrays, rates: Arrays) -> dict[str, np.ndarray]:
        """Rates (n, size) of the answers for rates (n, size) of what moves; those not given are 0."""
        sizes = {_RATE + n: self.sizes[n] for n in self.moving}

        def compute(x: Mapping[str, Any]) -> list[Any]:
            moving, d = ([y for n in self.moving for y in x[p + n]] for p in ("", _RATE))
            return directional(self._flat(x), moving, d)

        return self._called(".push", compute, sizes, self.answers, given, rates)

    def _flat(self, x: Mapping[str, Any]) -> list[Any]:
        found = self.compute(x)
        return [y for n in self.answers for y in found[n]]

    def _called(
        self, suffix: str, compute: Callable, more: Mapping[str, int], answers: Mapping[str, int], given: Arrays,
        rows: Arrays,
    ) -> dict[str, np.ndarray]:  # fmt: skip
        sizes = {n: size for n, size in {**self.sizes, **more}.items() if size}
        count = len(next(iter(rows.values()))) if rows else 1
        values = {n: np.asarray(given[n], float) for n in sizes if n in self.sizes}
        values |= {n: np.asarray(rows.get(n[2:], np.zeros(size)), float) for n, size in more.items() if size}
        inputs = [np.ascontiguousarray(np.broadcast_to(values[n], (count, size))) for n, size in sizes.items()]
        absent = {n: () for n, size in {**self.sizes, **more}.items() if not size}

        def whole(x: Mapping[str, Any]) -> list[Any]:
            return compute({**absent, **x})

        width, name = sum(answers.values()), f"{self.name}{suffix} by {', '.join(self.moving)}"
        found = rows_of(derived_kernel(name, sizes, width, whole, self.key), *inputs) if width else np.zeros((count, 0))
        ends = np.cumsum(list(answers.values()))
        out = {n: found[:, e - k : e] for (n, k), e in zip(answers.items(), ends, strict=True)}
        return {n: x[0] for n, x in out.items()} if not rows else out


@dataclass(frozen=True)
class EventMaps:
    """The maps of a problem's events; moving: names of constants, beside those of the run's state, that move."""

    problem: Problem
    moving: tuple[str, ...] = ()

    @cached_property
    def jump(self) -> TracedMap:
        """From the state before a row of the log to that after it."""
        system = self.problem.system
        switching = system.switching
        assert switching is not None
        changes, watchers = Changes(system, switching), len(switching.watchers)
        own = {"fired": watchers, "on": len(switching.switches), "h.grid": 1}
        sizes = {**own, "q": system.model.nq, "v": system.model.nv, **self._sizes(system.parameters)}
        captured = {"captured": sizes["captured"]} if "captured" in sizes else {}

        def compute(x: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
            is_on = x["fired"][0] * 0.0 + 1.0  # a traced number, as in a run
            now = {**x, "event": [is_on], "turns": [0.0 * is_on], "ending": [0.0 * is_on], "armed": [0.0] * watchers}
            now |= changes.switched(now)
            if switching.switches:
                now |= changes.impact(now)
            if switching.switches and changes.lets_go:
                now |= changes.let_go(now)
                now |= changes.impact(now)
            return now

        answers = {"q": sizes["q"], "v": sizes["v"], **captured}
        moving = ["q", "v", *captured, *self.moving]
        return TracedMap("jump", watch_key(self.problem), sizes, answers, moving, compute)

    @cached_property
    def watched(self) -> TracedMap:
        """The values of all watchers, or of the ends of a run in which nothing changes."""
        system = self.problem.system
        switching = system.switching
        sizes = {"t": 1, "q": system.model.nq, "v": system.model.nv}
        if switching is None:
            values = self.problem.events.values
            count, key = len(self.problem.events), self.problem.events.key()
            return TracedMap("ends", key, sizes, {"g": count}, ["t", "q", "v"], lambda x: {"g": values(x)})

        def compute(x: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
            f = system.row_forces(x)[0] if switching.needs_forces else ()
            return {"g": values_and_rates(system, {**x, "f": f})[0]}

        sizes |= {"u": system.sizes["u"], "z": system.sizes["z"], **self._sizes(system.parameters)}
        changed = ["captured"] if "captured" in sizes else []
        moving = ["t", "q", "v", "u", *changed, *self.moving]
        return TracedMap("watched", watch_key(self.problem), sizes, {"g": len(switching.watchers)}, moving, compute)

    def _sizes(self, names: Sequence[str]) -> dict[str, int]:
        return {n: self.problem.system.sizes[n] for n in names}
