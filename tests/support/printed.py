"""What example pages say their scripts print, and whether a script prints that now.

A page holds blocks of printed lines behind `<!-- printed by SCRIPT OPTIONS -->`; docs/examples/make.py fills them.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "examples"
BLOCK = re.compile(r"<!-- printed by (\S+\.py)((?: \S+)*) -->\n```text\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A script, its options, the lines that the page has, and the text from the mark to the fence's end."""

    script: Path
    options: tuple[str, ...]
    lines: str
    whole: str

    def filled(self, lines: str) -> str:
        return self.whole.replace(f"```text\n{self.lines}```", f"```text\n{lines}```")


def pages() -> list[Path]:
    return sorted(FOLDER.glob("[0-9]*.md"))


def blocks(text: str) -> list[Block]:
    found = BLOCK.finditer(text)
    return [Block(ROOT / "examples" / m[1], tuple(m[2].split()), m[3], m[0]) for m in found]


def run(block: Block) -> tuple[str, dict]:
    """What the script prints, without empty lines around it, and what it leaves behind."""
    kept, sys.argv = sys.argv, [str(block.script), *block.options]
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            left = runpy.run_path(str(block.script), run_name="__main__")
    finally:
        sys.argv = kept
    return out.getvalue().strip("\n") + "\n", left


def differences(page: str, now: str) -> list[str]:
    """Lines that say something else. Words must be equal, numbers as near as their digits tell."""
    pairs = zip_longest(page.splitlines(), now.splitlines(), fillvalue="")
    return [f"page: {old}\nnow:  {new}" for old, new in pairs if not same_line(old, new)]


def same_line(old: str, new: str) -> bool:
    words = [["".join(part.split()) for part in NUMBER.split(line)] for line in (old, new)]
    numbers = [NUMBER.findall(line) for line in (old, new)]
    return words[0] == words[1] and all(same_number(a, b) for a, b in zip(*numbers, strict=True))


def same_number(old: str, new: str) -> bool:
    """Integers must be equal; decimals may differ by one in the last place, as processors round differently.

    An error, which is written with an exponent, may be smaller, or larger: three times, or a hundred times as long as
    it is rounding and stays below 1e-9.
    """
    x, y = float(old), float(new)
    if "e" in old + new:
        return y <= max(3.0 * x, min(100.0 * x, 1e-9), 1e-14)
    places = max(len(n.partition(".")[2]) for n in (old, new))
    return abs(x - y) <= (1.001 * 10.0**-places if "." in old or "." in new else 0.0)
