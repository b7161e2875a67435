"""Terminal output: a filter for control characters, colours, JSON, and a progress bar."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

from spanloop.compiler.runtime.progress import silence
from spanloop.errors import printable

COLORS = {
    "well": "32",
    "not well": "31",
    "not judged": "33",
    "ok": "32",
    "advice": "33",
    "failed": "31",
    "strong": "1",
    "faint": "2",
}
_WIDTH = 24
_OURS = re.compile(r"(\033\[(?:0|" + "|".join(sorted(set(COLORS.values()))) + r")m)")


# advice in Python, and the option of the command line that does the same
_OVERLAP = "overlap = ... under [contacts] in the file of --run; --q sets the start"
_OPTIONS = (
    (re.compile(r"(?:sl\.load\(path, )?contacts=True\)?"), "--load-contacts all"),
    (re.compile(r"(?:sl\.load\(path, )?contacts='ground'\)?"), "--load-contacts ground"),
    (re.compile(r"(?:sl\.load\(\.\.\., )?repair=True(?:\)| \(--repair\)|, --repair)?"), "--repair"),
    (re.compile(r"\b(base|limits|integrator|contacts)='(\w+)'"), r"--\1 \2"),
    (re.compile(r"\bcontacts=sl\.contacts\.Settings\(overlap=\.\.\.\)"), _OVERLAP),
    (re.compile(r"\bon_jam='(\w+)'"), r"on_jam = '\1' under [contacts] in the file of --run"),
    (re.compile(r"\bcapture=True\b"), "capture=true"),  # keys of --event
    (re.compile(r"\bon_break='(\w+)'"), r"on_break=\1"),
    (re.compile(r"\broot=(?=')|\broot= "), "--root "),
    (re.compile(r"\bmodel\.with_joint\('([^']+)', (\w+)=\.\.\.\)"), r"--set '\1.\2=...'"),
)


def in_options(text: str) -> str:
    """The text with advice for the command line where it has some for Python: --limits stop for limits='stop'."""
    for pattern, option in _OPTIONS:
        text = pattern.sub(option, text)
    return text


class PrintableStream:
    """A text stream whose control characters are replaced by escapes: names from files cannot steer the terminal.

    Advice that names arguments of Python names options instead (`in_options`). Colours pass where the stream supports
    them. `unfiltered` is the stream itself, for progress bars.
    """

    def __init__(self, stream: TextIO):
        self.unfiltered = stream
        self._keeps_colors = supports_color(stream)

    def write(self, text: str) -> int:
        size, text = len(text), in_options(text)
        if self._keeps_colors:
            pieces = _OURS.split(text)  # every second piece is a colour
            self.unfiltered.write("".join(x if k % 2 else printable(x) for k, x in enumerate(pieces)))
        else:
            self.unfiltered.write(printable(text))
        return size

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


@contextlib.contextmanager
def printable_output() -> Iterator[None]:
    """Filter standard output and standard error; a character that the terminal lacks becomes a question mark."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = (PrintableStream(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def supports_color(stream: TextIO | None = None) -> bool:
    """Whether a stream shows colours: a terminal, unless NO_COLOR (no-color.org) is set or it is a dumb one."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def colored(text: str, color: str) -> str:
    """The text in a colour, if the terminal supports colours."""
    return f"\033[{COLORS[color]}m{text}\033[0m" if supports_color() else text


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def print_json(data: Any) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def number(x: float) -> float | None:
    """A number for JSON; None for infinity and NaN, which JSON lacks."""
    return float(x) if x == x and abs(x) != float("inf") else None


class ProgressBar:
    """A bar that grows with every stage, on a terminal only; it disappears at the end."""

    def __init__(self, count: int):
        self.count, self.done, self.began = count, 0, time.perf_counter()
        self.stream = getattr(sys.stderr, "unfiltered", sys.stderr)
        self.is_visible = self.stream.isatty()

    def begin(self, what: str) -> None:
        """Start the next stage."""
        if self.is_visible:
            full = _WIDTH * self.done // self.count
            bar = "█" * full + "░" * (_WIDTH - full)
            took = time.perf_counter() - self.began
            print(f"\r\033[K{bar} {took:4.1f} s  {what} ...", end="", file=self.stream, flush=True)
        self.done += 1

    def __enter__(self) -> ProgressBar:
        self._silence = silence()
        self._silence.__enter__()
        return self

    def __exit__(self, *_) -> None:
        self._silence.__exit__(None, None, None)
        if self.is_visible:
            print("\r\033[K", end="", file=self.stream, flush=True)
