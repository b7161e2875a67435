"""The search: steps towards targets from one start after the other, for many rows at once.

Rows advance a few steps together; those that have arrived leave, those that are stuck begin anew, and the others go on.
A row is stuck at a minimum that is no solution when its step is short for what is left: near a solution a step is
about as long as the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spanloop.reach.compiled_steps import CompiledSteps

_TOGETHER, _FEW = 6, 48  # steps of all rows between two looks at them; few rows take more together
_MOST, _LONG = 40, 18  # steps from one start; after these a row that hardly moves has its loops as closed as they get
_SHORT = 0.1  # the square of a step over the weighted squares of what is left: smaller is stuck
_LEAST_SHARE = 1e-2  # of a step
_POLISH, _STILL = 400, 1e-24  # steps to the nearest state of a target out of reach; the square of a step that is none

_OPEN, _SHORT_OF_ALL = 1e-10, 1e-18  # squares of closure errors and of a step where a file's rounding keeps loops open

Restart = Callable[[np.ndarray, np.ndarray], np.ndarray]  # rows (n,), number of the start (n,) from 1 on: q (n, nq)


@dataclass(frozen=True, eq=False)
class Found:
    """The best state of each row: q (n, nq), whether it arrived, steps taken and restarts (n,).

    records: (rows (k,), q (k, nq)), the start and every state that was better than those before it. More restarts only
    add to them.
    """

    q: np.ndarray
    arrived: np.ndarray
    steps: np.ndarray
    restarts: np.ndarray
    records: list[tuple[np.ndarray, np.ndarray]]


def search(
    steps: CompiledSteps, constants: np.ndarray, start: np.ndarray, enough: float, restarts: int, again: Restart
) -> Found:
    """Search from start (n, nq), then from again(rows, number) for rows that are stuck; constants (n, width).

    enough: the weighted squares of what is left with which a row that no longer moves ends, whatever keeps its loops
    open (the rounding of a file): a caller judges it.
    """
    count = len(start)
    begun = [(np.arange(count), start.copy())]
    out = Found(start.copy(), np.zeros(count, bool), np.zeros(count, int), np.zeros(count, int), begun)
    best, active, rows, here = np.full(count, np.inf), np.arange(count), steps.begun(start), np.zeros(count, int)
    while len(active):
        together = _TOGETHER if len(active) > _FEW else _MOST // 2
        arrived, taken = _advanced(steps, rows, constants[active], together, count)
        out.steps[active] += taken
        here += taken
        here[(taken < together) & ~arrived] = _MOST  # numbers that are not finite: only another start helps
        still = _is_still(steps, rows, enough) & (here >= _LONG) & ~arrived
        for ended, name in ((arrived, "q"), (still, "start")):
            out.q[np.ix_(active[ended], steps.moving)] = steps.part(rows, name)[ended]
            out.arrived[active[ended]] = True
        left = ~(arrived | still)
        if not left.all():
            active, rows, here = active[left], rows[left], here[left]
        stuck = np.flatnonzero(_is_stuck(steps, rows) | (here >= _MOST))
        if not len(stuck):
            continue
        _keep_best(steps, rows[stuck], active[stuck], best, out)
        more = out.restarts[active[stuck]] < restarts
        anew = stuck[more]
        if len(anew):
            out.restarts[active[anew]] += 1
            rows[anew], here[anew] = steps.begun(again(active[anew], out.restarts[active[anew]])), 0
        if not more.all():
            stays = np.ones(len(active), bool)
            stays[stuck[~more]] = False
            active, rows, here = active[stays], rows[stays], here[stays]
    _polish(steps, constants, out)
    return out


def _is_stuck(steps: CompiledSteps, rows: np.ndarray) -> np.ndarray:
    cost, openness, size = steps.part(rows, "merit").T
    short = (size < _SHORT * cost) & (openness < 1e-6)
    return short | (steps.part(rows, "pace")[:, 1] < _LEAST_SHARE)


def _is_still(steps: CompiledSteps, rows: np.ndarray, enough: float) -> np.ndarray:
    cost, openness, size = steps.part(rows, "merit").T
    still: np.ndarray = (cost < enough) & (openness < _OPEN) & (size < _SHORT_OF_ALL)
    return still


def _keep_best(steps: CompiledSteps, rows: np.ndarray, numbers: np.ndarray, best: np.ndarray, out: Found) -> None:
    """Replace out.q where rows are better than what they found before; open loops count more than targets."""
    cost, openness, _ = steps.part(rows, "merit").T
    score = cost + 1e3 * openness
    better = score < best[numbers]
    best[numbers[better]] = score[better]
    out.q[np.ix_(numbers[better], steps.moving)] = steps.part(rows, "start")[better]
    out.records.append((numbers[better], out.q[numbers[better]]))


def _polish(steps: CompiledSteps, constants: np.ndarray, out: Found) -> None:
    """Take the rows that did not arrive on to the minimum that is nearest to their best state."""
    left = np.flatnonzero(~out.arrived)
    rows, done = steps.begun(out.q[left]), 0
    while len(left) and done < _POLISH:
        arrived, taken = _advanced(steps, rows, constants[left], _MOST, len(out.q))
        out.steps[left] += taken
        done += _MOST
        out.arrived[left[arrived]] = True
        found = np.where(arrived[:, None], steps.part(rows, "q"), steps.part(rows, "start"))
        out.q[np.ix_(left, steps.moving)] = found
        busy = ~arrived & (steps.part(rows, "merit")[:, 2] > _STILL) & (steps.part(rows, "pace")[:, 1] > 1e-9)
        left, rows = left[busy], rows[busy]


def _advanced(steps: CompiledSteps, rows: np.ndarray, constants: np.ndarray, count: int, whole: int):
    """As steps.advance; the last row of a batch of `whole` rows goes on in the code of batches."""
    if len(rows) == 1 and whole > 1:
        pair = np.repeat(rows, 2, axis=0)
        arrived, taken = steps.advance(pair, np.repeat(constants, 2, axis=0), count)
        rows[:] = pair[:1]
        return arrived[:1], taken[:1]
    return steps.advance(rows, np.ascontiguousarray(constants), count)
