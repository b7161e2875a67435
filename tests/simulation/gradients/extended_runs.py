"""Runs in extended precision: the calls of a step on np.longdouble, for central differences of whole runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from extended import evaluate

from spanloop.compiler.lower import Call, Repeat, Schedule
from spanloop.compiler.lower.schedule import Item, following

TURNS = 60  # of a repetition: to the last digit


def after(schedule: Schedule, given: Mapping[str, np.ndarray], h: float, steps: int) -> dict[str, np.ndarray]:
    """All arrays (n, size) of runs after so many steps, with what a sample shows there.

    given: the state (n, size), constants (n, size) and controls (n, steps, size). Time starts at 0.
    """
    x = {name: np.asarray(array, np.longdouble) for name, array in given.items()}
    n, rows = len(x["q"]), {name: x[name] for name in schedule.controls}
    x |= {name: np.zeros((n, 0), np.longdouble) for name, size in schedule.sizes.items() if size == 0}
    x["h"] = np.full((n, 1), h, np.longdouble)
    for k in range(steps + 1):
        x |= {name: row[:, min(k, steps - 1)] for name, row in rows.items()}
        x["t"] = k * x["h"]
        for item in schedule.begin:
            _take(schedule, item, x)
        if k < steps:
            for item in schedule.advance:
                _take(schedule, item, x)
            x |= {name: x[following(name)] for name in schedule.state}
    return x


def _take(schedule: Schedule, item: Item, x: dict[str, np.ndarray]) -> None:
    if isinstance(item, Call):
        found, at = evaluate(item.plan, *(x[n] for n in item.reads)), 0
        for name in item.writes:
            x[name] = found[:, at : at + schedule.sizes[name]]
            at += schedule.sizes[name]
        return
    assert isinstance(item, Repeat)
    for _ in range(TURNS):
        x[item.left] = np.ones_like(x[item.left])  # beyond the tolerance of a run
        for inner in item.calls:
            _take(schedule, inner, x)
