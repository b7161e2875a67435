"""What takes long is reported on standard error, where somebody watches: what it is, and then how long it took."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

from spanloop.errors import in_one_line

PATIENCE = 0.5  # s before a line is printed
_busy = threading.Lock()  # one line at a time: what happens inside a report, or on another thread, is not reported


class Report:
    """A context. If it lasts longer than PATIENCE, "compiling X ..." is printed, and behind it the time it took."""

    def __init__(self, what: str):
        self.what = in_one_line(what)
        self._printing, self._is_printed, self._is_over = threading.Lock(), False, False

    def __enter__(self) -> Report:
        self._began = time.perf_counter()
        self._is_ours = _busy.acquire(blocking=False)
        if self._is_ours:
            self._timer = threading.Timer(PATIENCE, self._begin)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _begin(self) -> None:
        with self._printing:
            if not self._is_over:
                self._is_printed = True
                _print(f"{self.what} ...")

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if not self._is_ours:
            return
        with self._printing:
            self._is_over = True
            self._timer.cancel()
            if self._is_printed:
                took = time.perf_counter() - self._began
                _print(f" {took:.1f} s\n" if error is None else f" stopped after {took:.1f} s\n")
        _busy.release()


@contextlib.contextmanager
def silence():
    """A context in which nothing is reported: something else is drawn on the screen."""
    is_ours = _busy.acquire(blocking=False)
    try:
        yield
    finally:
        if is_ours:
            _busy.release()


def _print(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody reads any more
        print(text, end="", file=sys.stderr, flush=True)
