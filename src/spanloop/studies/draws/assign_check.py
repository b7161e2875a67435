"""Whether a user's `assign` gives every run its own numbers, whatever the other runs of a call are, and every time.

Runs are computed in chunks of any size, again after a stop, and alone by rerun: numbers that are drawn inside assign,
or that depend on a mean over its rows, would differ each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.studies.draws.assign_call import Columns, called

if TYPE_CHECKING:
    from spanloop.studies.draws.variables import Target, Variables

_ROUNDING = 1e-9  # of the number: matrix products round by how many rows they have
_NOTHING = 1e-12  # of the median number: what is left of a sum that cancels


def refuse_unrepeatable(variables: Variables, rows: np.ndarray, whole: Mapping[Target, np.ndarray], first: int) -> None:
    """Raise InputError unless assign gives rows (n, k) the same numbers `whole` in other calls.

    The rows are given once more, in reverse order and parts of 1, 1, 2, 4, ... of them: a mean, an extreme or an order
    that changes the numbers of one run does so in a part. first: number of the first run, for the message.
    """
    if variables.assign is None:
        return
    for part in _parts(len(rows)):
        different = _first_difference(whole, variables.assigned(rows[part]), part)
        if different is None:
            continue
        again = _first_difference(whole, variables.assigned(rows), np.arange(len(rows)))
        when = "it is called with these runs in another order, or with some of them alone"
        if again is not None:
            different, when = again, "it is called again with the same draws"
        name, k, before, after = different
        raise InputError(
            f"study: assign returns {name!r} = {before:.9g} for run {first + k}, and {after:.9g} where {when}. The "
            "numbers of a run must follow from its own draws alone: give what is random as a variable in vary=, and "
            "take no mean or extreme over the runs"
        )


def _parts(n: int) -> Iterator[np.ndarray]:
    """Places of rows in parts of 1, 1, 2, 4, ..., the last row first."""
    end, size = n, 1
    while end > 0:
        begin = max(0, end - size)
        yield np.arange(begin, end)[::-1]
        size = max(1, n - begin)
        end = begin


def _first_difference(
    whole: Mapping[Target, np.ndarray], again: Mapping[Target, np.ndarray], part: np.ndarray
) -> tuple[str, int, float, float] | None:
    """Name, row and both numbers of the first row of a part whose number differs from that of the whole call."""
    for target in {**whole, **again}:
        before = whole[target][part] if target in whole else np.full(len(part), np.nan)
        after = again.get(target, np.full(len(part), np.nan))
        with np.errstate(invalid="ignore"):
            size = np.abs(before)
            same = (before == after) | (np.abs(after - before) <= _ROUNDING * size)
            if not same.all():
                same |= np.abs(after - before) <= _NOTHING * np.median(np.abs(whole.get(target, before)))
        same |= np.isnan(before) & np.isnan(after)
        if not same.all():
            k = int(np.argmin(same))
            return target.name, int(part[k]), float(before[k]), float(after[k])
    return None


def refuse_unread(variables: Variables, rows: np.ndarray) -> None:
    """Refuse names of the user that `assign` does not read, which change nothing. rows (n, k): some draws."""
    if variables.assign is None:
        return
    read: set[str] = set()

    class Reading(Columns):
        def __getitem__(self, name: str) -> Any:
            read.add(name)
            return super().__getitem__(name)

        def get(self, name: str, default: Any = None) -> Any:
            read.add(name)
            return super().get(name, default)

        def __iter__(self) -> Any:
            read.update(self.keys())
            return super().__iter__()

        def items(self) -> Any:
            read.update(self.keys())
            return super().items()

        def values(self) -> Any:
            read.update(self.keys())
            return super().values()

    called(variables.assign, Reading(zip(variables.names, rows.T.copy(), strict=True)))
    for name in variables.names:
        if name not in variables.known and name not in read:
            raise InputError(
                f"study: {name!r} is no quantity of the model, and assign does not read it; "
                f"{nearest(name, [*variables.known, *read])}"
            )
