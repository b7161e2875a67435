"""States without an answer: a single one raises, in a batch their rows are NaN and one warning names the first."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence

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
    first = int(min(refused))
    if not leading:
        raise StateError.of(function, explain(first))
    for rows in results:
        rows[list(refused)] = np.nan if rows.dtype.kind == "f" else -1
    index = tuple(int(i) for i in np.unravel_index(first, leading))
    states = "1 state has" if len(refused) == 1 else f"{len(refused)} states have"
    refusal = explain(first)
    message = (
        f"{function}: {states} no answer, of {np.prod(leading)}; their rows are NaN. "
        f"The first is state {index if len(index) > 1 else index[0]}: {refusal}"
    )
    warnings.warn(StateWarning(message, refusal), stacklevel=_depth_of_caller())


def _depth_of_caller() -> int:
    """How many frames up the first one outside this package is."""
    home = os.path.dirname(spanloop.__file__)
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(home):
        frame, depth = frame.f_back, depth + 1
    return depth
