"""Fills the example pages: runs their scripts, writes what they print into the pages, draws their pictures.

python docs/examples/make.py           # all pages
python docs/examples/make.py 09 15     # some

A page is written by hand but for the blocks behind `<!-- printed by SCRIPT -->` and the files in pictures/.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "support")]

from drawing import PICTURES  # noqa: E402
from drawing.style import LOOK, write  # noqa: E402
from matplotlib import rc_context  # noqa: E402
from printed import blocks, pages, run  # noqa: E402


def fill(page: Path) -> None:
    """Run the page's scripts; the last one's numbers are drawn."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in blocks(text):
            lines, left = run(block)
            text = text.replace(block.whole, block.filled(lines))
    page.write_text(text, encoding="utf-8")
    with rc_context(LOOK):
        drawn = PICTURES[page.stem](left)
    for path in write(drawn, HERE / "pictures"):
        print(f"{page.name}: {path.name}, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    for page in pages():
        if not sys.argv[1:] or page.name[:2] in sys.argv[1:]:
            fill(page)
