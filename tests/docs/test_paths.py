"""Every file and folder of the repository that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "spanloop"
HISTORY = ("CHANGELOG.md", "renames.md")  # they name what is gone
PAGES = sorted(p for p in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if p.name not in HISTORY)
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?<![\w/.:-])((?:[\w-]+/)*[\w-]+\.(?:py|js|css|bib))(?![\w.(])")
FOLDER = re.compile(r"(?<![\w/.:-])((?:\.?[\w-]+/)+)(?![\w.*(])")
OTHERS = {"freejoint/", "four_bar.py", "examples/NN_name.py"}  # an MJCF element, a script of the reader's, a pattern


def lines(text: str) -> list[str]:
    """The lines of a page outside its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()


def paths(line: str) -> list[str]:
    """Files and folders between backticks."""
    return [found for code in CODE.findall(line) for pattern in (FILE, FOLDER) for found in pattern.findall(code)]


def missing(line: str, page: Path) -> list[str]:
    """Paths that exist neither in the repository, in the package or beside the page, nor in a folder named before.

    A file's name without a folder may be anywhere in the package.
    """
    bases, gone = [ROOT, PACKAGE, page.parent], []
    for path in paths(line):
        found = next((base / path for base in bases if (base / path).exists()), None)
        if found is not None and found.is_dir():
            bases.append(found)
        elif found is None and path not in OTHERS and ("/" in path or not any(PACKAGE.rglob(path))):
            gone.append(path)
    return gone


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_path_on_a_page_exists(page):
    gone = [path for line in lines(page.read_text(encoding="utf-8")) for path in missing(line, page)]
    assert not gone, ", ".join(gone)


def test_a_path_that_is_gone_is_noticed():
    page = ROOT / "README.md"
    assert (
        missing(
            "`model/model.py`, [x](y.py), `docs/decisions/`, `cache.folder()` and, in `trajectory/`, `audit/`", page
        )
        == []
    )
    assert missing("`model/nowhere.py` and `audit/`", page) == ["model/nowhere.py", "audit/"]
