"""Which closure rows an event depends on: it may, where rows share a load in more than one way, read none of those."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import loop_wrenches
from spanloop.simulation.controllers import traced
from spanloop.simulation.events.conditions import condition_value, wrenches_read
from spanloop.simulation.events.switches import Switching, Watcher
from spanloop.simulation.events.watched_values import margin

_SIZES = (1.0, 30.0, 1e3)  # N or N m, of forces at which a value is compared
_SAME = 1e-9  # of the larger value: what rounding changes


def with_rows_read(switching: Switching, q: np.ndarray) -> Switching:
    """With the rows that each watcher reads; q (nq,): a state of the assembly."""
    return replace(switching, reads=tuple(_rows_read(switching, w, q) for w in switching.watchers))


def _rows_read(switching: Switching, w: Watcher, q: np.ndarray) -> frozenset[int]:
    if not w.needs_forces or w.kind == "pull":
        return frozenset()  # a one-sided row that pulls in one split of a load lets go; the others still carry it
    m = switching.mechanism
    rows = {c.name: c.rows for c in m.closures} | {g.name: (g.row,) for g in m.gears}
    names = (
        (w.name,)
        if w.kind == "grasp"
        else traced("a condition", lambda: wrenches_read(w, switching.model), [w.condition])
    )
    value = _value(switching, w, q)
    return frozenset(r for name in names for r in rows[name] if _depends(value, r, m.n_rows))


def _value(switching: Switching, w: Watcher, q: np.ndarray) -> Callable[[np.ndarray, float], float]:
    """The value of a watcher as a function of the forces (n_rows,) of rows, at rates of a size."""
    rates = np.random.default_rng(1).normal(size=switching.model.nv)

    def value(forces: np.ndarray, size: float) -> float:
        x: Mapping[str, Any] = {"t": [0.1 * size], "q": q.tolist(), "v": (size * rates).tolist()}
        wrenches = loop_wrenches(switching.mechanism, x["q"], forces.tolist())
        if w.kind == "grasp":
            return float(margin(w, switching.model, wrenches))
        return float(condition_value(w, switching.model, x, wrenches))

    return value


def _depends(value: Callable[[np.ndarray, float], float], row: int, n_rows: int) -> bool:
    """Whether a value changes with the force of a row, among forces of several sizes."""
    rng = np.random.default_rng(0)
    for size in _SIZES:
        others = size * rng.normal(size=n_rows)
        more = others.copy()
        more[row] += size
        first, second = value(others, size), value(more, size)
        if abs(second - first) > _SAME * max(abs(first), abs(second)):
            return True
    return False
