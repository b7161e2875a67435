"""How much Python code something runs: a measure of its work that does not depend on the machine and its load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def lines_run(act: Callable[[], Any]) -> int:
    """The number of lines that `act` runs, those of every turn of a loop counted."""
    count = 0

    def line(frame, event, _):
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(lambda frame, event, _: line)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
