"""Whether a user's `assign` gives every run its own numbers, whatever the other runs of a call are, and every time.

Runs are computed in chunks of any size, again after a stop, and alone by rerun: numbers that are drawn inside assign,
or that depend on a mean over its rows, would differ each time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spanloop.errors import InputError
from spanloop.studies.draws.variables import Target, Variables

_ROUNDING = 1e-9  # of the number: matrix products round by how many rows they have


def refuse_unrepeatable(variables: Variables, rows: np.ndarray) -> None:
    """Raise InputError unless assign gives the same numbers again, and for parts of the rows (n, k) alone."""
    if variables.assign is None:
        return
    n = len(rows)
    whole = variables.assigned(rows)
    _compare(whole, variables.assigned(rows), np.arange(n), "it is called again with the same draws")
    for part in (np.arange(n // 2, n), np.arange(n)[::-1], np.array([n - 1])):
        if n > 1:
            words = "it is called with these runs in another order, or with some of them alone"
            _compare(whole, variables.assigned(rows[part]), part, words)


def _compare(
    whole: Mapping[Target, np.ndarray], again: Mapping[Target, np.ndarray], part: np.ndarray, when: str
) -> None:
    """Compare the numbers of all rows with those that these of them got in another call."""
    for target in {**whole, **again}:
        before, after = (x.get(target, np.full(n, np.nan)) for x, n in ((whole, part.max() + 1), (again, len(part))))
        before = before[part]
        with np.errstate(invalid="ignore"):
            same = (before == after) | (np.abs(after - before) <= _ROUNDING * np.abs(before))
        same |= np.isnan(before) & np.isnan(after)
        if not same.all():
            k = int(np.argmin(same))
            raise InputError(
                f"study: assign returns {target.name!r} = {before[k]:.9g} for run {part[k]}, and {after[k]:.9g} where "
                f"{when}. The numbers of a run must follow from its own draws alone: give what is random as a variable "
                "in vary=, and take no mean over the runs"
            )
