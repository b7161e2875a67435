"""Counts of an attack: how many cases were tried, how many answers were right, refused or wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

KEPT = 200  # failures that a tally remembers; `wrong` counts all


@dataclass
class Tally:
    """Cases tried, answers that were right, refusals that were right, and all that were wrong.

    failures: one line for each kind of failure seen, with the seed and the case that repeats it.
    notes: further counts by name, such as mechanisms.
    """

    tried: int = 0
    right: int = 0
    refused: int = 0
    wrong: int = 0
    failures: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.tried + other.tried,
            self.right + other.right,
            self.refused + other.refused,
            self.wrong + other.wrong,
            (self.failures + other.failures)[:KEPT],
            self.notes + other.notes,
        )

    def count(self, right: int = 0, refused: int = 0) -> None:
        """Add cases that went well."""
        self.tried += right + refused
        self.right += right
        self.refused += refused

    def fail(self, sentence: str, cases: int = 1) -> None:
        """Add cases that went wrong; the sentence says the seed and the case that repeats one of them."""
        self.tried += cases
        self.wrong += cases
        if len(self.failures) < KEPT:
            self.failures.append(sentence)


def until(case: Callable[[int, int], Tally], seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline, a time of time.monotonic()."""
    tally, k = Tally(), 0
    while time.monotonic() < deadline:
        tally += case(seed, k)
        k += 1
    return tally
