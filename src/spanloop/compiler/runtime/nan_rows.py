"""States without an answer: a single one raises, in a batch their rows are NaN and one warning names the first."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

import spanloop
from spanloop.errors import Refusal, StateError, StateWarning


def refuse_states(
    function: str,
    refused: Sequence[int] | np.ndarray,
    explain: Callable[[int], Refusal],
    leading: tuple[int, ...],
    *results: np.ndarray,
) -> None:
    """Raise StateError if the one state is refused; in a batch mark the rows of refused states and warn once.

    refused: numbers of the states. explain(k): why state k has no answer. leading: the batch axes, () for one state.
    results: arrays (n_states, ...), whose refused rows become NaN (−1 in arrays of integers).
    """
    if not len(refused):
        return
    if not leading:
        raise StateError.of(function, explain(int(min(refused))))
    for rows in results:
        rows[list(refused)] = np.nan if rows.dtype.kind == "f" else -1
    batch = Refused(leading, frozenset(int(k) for k in refused), explain)
    collected = _collected.get()
    if collected is None:
        _warn(function, [batch])
    else:
        collected.append(batch)


class OneWarning:
    """A context in which several kernels are called for one function: what they refuse in batches is one warning.

    A single state that a kernel refuses is refused in the function's name.
    """

    def __init__(self, function: str):
        """function: the name that the warning begins with."""
        self.function = function

    def __enter__(self) -> None:
        self._batches: list[Refused] = []
        outer = _collected.get()  # inside another such context that one warns
        self._token = _collected.set(self._batches if outer is None else outer)

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        _collected.reset(self._token)
        if self._batches and kind is None:
            _warn(self.function, self._batches)
        if _collected.get() is None and isinstance(error, StateError) and error.where not in ("", self.function):
            raise StateError.of(self.function, error.refusal) from None


@contextmanager
def kept_refusals() -> Iterator[list[Refused]]:
    """A context in which what kernels refuse in batches goes into the list that it gives, and nothing warns."""
    found: list[Refused] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


@dataclass(frozen=True)
class Refused:
    """The states that one call refused: their numbers in a batch with the axes `leading`."""

    leading: tuple[int, ...]
    numbers: frozenset[int]
    explain: Callable[[int], Refusal]

    def within(self, leading: tuple[int, ...]) -> np.ndarray:
        """The number here of each state of a batch with more axes, flat."""
        own = np.arange(np.prod(self.leading, dtype=int)).reshape(self.leading)
        return np.broadcast_to(own, leading).ravel()


_collected: ContextVar[list[Refused] | None] = ContextVar("collected", default=None)


def _warn(function: str, batches: list[Refused]) -> None:
    """One warning for all of these; the reason is that of the first call that refused the first state."""
    leading = np.broadcast_shapes(*(x.leading for x in batches))
    numbers = [x.within(leading) for x in batches]
    refused = np.logical_or.reduce([np.isin(n, list(x.numbers)) for n, x in zip(numbers, batches, strict=True)])
    count, first = int(refused.sum()), int(np.argmax(refused))
    refusal = next(x.explain(int(n[first])) for n, x in zip(numbers, batches, strict=True) if n[first] in x.numbers)
    index = tuple(int(i) for i in np.unravel_index(first, leading))
    place = index if len(index) > 1 else index[0]
    if count == 1:
        which = f"1 of {refused.size} states has no answer; its row is NaN. It is state {place}"
    else:
        which = f"{count} of {refused.size} states have no answer; their rows are NaN. The first is state {place}"
    warnings.warn(StateWarning(f"{function}: {which}: {refusal}", refusal), stacklevel=depth_of_caller())


def depth_of_caller() -> int:
    """How many frames up the first one outside this package is."""
    home = os.path.dirname(spanloop.__file__)
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(home):
        frame, depth = frame.f_back, depth + 1
    return depth
