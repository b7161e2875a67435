"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.errors import InputError, nearest

REASONS = ("finished", "event", "limit", "singular", "open", "not_finite", "not_converged", "controller", "interrupted")


@dataclass(frozen=True)
class Outcome:
    """Why a run ended (one of REASONS), a sentence that says what happened, and the time [s] at which."""

    reason: str
    sentence: str
    time: float

    def __post_init__(self):
        if self.reason not in REASONS:
            raise InputError(f"the outcome's reason is {self.reason!r}; {nearest(self.reason, REASONS)}")
        object.__setattr__(self, "time", float(self.time))

    @property
    def finished(self) -> bool:
        """Did the run last as long as was asked for?"""
        return self.reason == "finished"

    def __str__(self) -> str:
        return self.sentence
