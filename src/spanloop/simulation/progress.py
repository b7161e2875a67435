"""A line that says how far a long simulation has come; only where someone is looking."""

from __future__ import annotations

import sys
import time

_SILENCE = 1.0  # s before the first word
_PAUSE = 0.1  # s between two words
_WIDTH = 30


class Bar:
    """Told after every stretch; writes to stderr."""

    def __init__(self, steps: int, h: float, runs: int, wanted: bool | None):
        self.steps, self.h, self.runs = steps, h, runs
        self.wanted = _watched() if wanted is None else bool(wanted)
        self.began = self.last = time.perf_counter()
        self.shown = False

    def tell(self, done: int) -> None:
        now = time.perf_counter()
        if not self.wanted or now - self.began < _SILENCE or now - self.last < _PAUSE:
            return
        self.last, self.shown = now, True
        share = done / self.steps
        full = int(share * _WIDTH)
        left = (now - self.began) * (1.0 - share) / max(share, 1e-9)
        pace = done * self.h * self.runs / (now - self.began)
        bar = "█" * full + "░" * (_WIDTH - full)
        text = f"\r{bar} {100 * share:3.0f} %  t = {done * self.h:.4g} s  {pace:.3g}× real time  {left:.0f} s left   "
        print(text, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown:
            print("\r" + " " * 100 + "\r", end="", file=sys.stderr, flush=True)


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
