"""Words on the screen: colours where a terminal shows them, data as JSON, a line that tells how far it has come."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any, TextIO

COLORS = {"well": "32", "not well": "31", "not judged": "33", "strong": "1", "faint": "2"}
_WIDTH = 24


def colored(stream: TextIO | None = None) -> bool:
    """Does this stream take colours? NO_COLOR (no-color.org) and a dumb terminal say no."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, color: str) -> str:
    """The text in a colour, where there are any."""
    return f"\033[{COLORS[color]}m{text}\033[0m" if colored() else text


def add_json(parser: argparse.ArgumentParser) -> None:
    """The word that asks for data instead of text."""
    parser.add_argument("--json", action="store_true", help="for programs: JSON")


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def number(x: float) -> float | None:
    """A number for JSON, which knows neither infinity nor NaN."""
    return float(x) if x == x and abs(x) != float("inf") else None


class Stages:
    """A bar that grows with every stage; seen on a terminal only, and gone when it is done."""

    def __init__(self, count: int):
        self.count, self.done, self.began = count, 0, time.perf_counter()
        self.seen = sys.stderr.isatty()

    def begin(self, what: str) -> None:
        """The next stage starts."""
        if self.seen:
            full = _WIDTH * self.done // self.count
            bar = "█" * full + "░" * (_WIDTH - full)
            took = time.perf_counter() - self.began
            print(f"\r\033[K{bar} {took:4.1f} s  {what} ...", end="", file=sys.stderr, flush=True)
        self.done += 1

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_) -> None:
        if self.seen:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
