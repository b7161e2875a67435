"""The progress bar of a study: runs done, rate, time left, failures so far."""

from __future__ import annotations

import sys
import time
from typing import Any

from spanloop.compiler.runtime import machine

_SILENCE = 1.0  # s before the bar is drawn
_PAUSE = 0.1  # s between two drawings
_WIDTH = 30


class Bar:
    """A line on stderr. done: runs that an earlier call finished."""

    def __init__(self, runs: int, done: int, wanted: bool | None):
        self.runs, self.done, self.first, self.failed = runs, done, done, 0
        self.wanted = machine.is_watched() if wanted is None else bool(wanted)
        self.began = self.last = time.perf_counter()
        self.shown = False

    def draw(self, more: int, failed: int) -> None:
        """Draw the bar after more runs, of which some failed, if it is time."""
        self.done, self.failed, now = self.done + more, self.failed + failed, time.perf_counter()
        if not self.wanted or now - self.began < _SILENCE or now - self.last < _PAUSE:
            return
        self.last, self.shown = now, True
        print(f"\r{self.text(now)}   ", end="", file=self._screen, flush=True)

    def text(self, now: float) -> str:
        """The line at this time [s]."""
        share = self.done / self.runs
        full = int(share * _WIDTH)
        rate = max(self.done - self.first, 1) / max(now - self.began, 1e-9)
        failed = f"  {self.failed} failed" if self.failed else ""
        bar = "█" * full + "░" * (_WIDTH - full)
        return f"{bar} {100 * share:3.0f} %  {rate:.3g} runs/s  {(self.runs - self.done) / rate:.0f} s left{failed}"

    def say(self, sentence: str) -> None:
        """Print a sentence where the bar would be drawn."""
        if self.wanted:
            print(sentence, file=sys.stderr, flush=True)

    def erase(self) -> None:
        """Erase the bar."""
        if self.shown:
            print("\r" + " " * 100 + "\r", end="", file=self._screen, flush=True)

    @property
    def _screen(self) -> Any:
        """Standard error; where the command line filters control characters, the stream behind the filter."""
        return getattr(sys.stderr, "unfiltered", sys.stderr)
