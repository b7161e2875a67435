"""The numbered examples run as they stand, and print what their pages in docs/examples say."""

from __future__ import annotations

import re
import shutil
import sys

import pytest
from printed import FOLDER, ROOT, Block, blocks, differences, pages, run, same_line, same_number

EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
PAGES = pages()
NEED_A_COMPILER = ("37_embedded_controller",)
SHORTER = {"38_learn_swing_up": ("--steps", "8192")}  # options of those that would take minutes
WRITTEN = [pytest.param(p, b, id=p.stem) for p in PAGES for b in blocks(p.read_text(encoding="utf-8"))]
LARGE = [pytest.param(*x.values, id=x.id, marks=pytest.mark.campaign(0)) for x in WRITTEN if x.values[1].options]
SMALL = [x for x in WRITTEN if not x.values[1].options]
ALONE = [p for p in EXAMPLES if p not in {x.values[1].script for x in SMALL}]


@pytest.mark.slow
@pytest.mark.parametrize("path", ALONE, ids=lambda p: p.stem)
def test_the_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(Block(path, SHORTER.get(path.stem, ()), "", ""))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), SMALL + LARGE)
def test_the_page_contains_what_its_example_prints(page, block, tmp_path, monkeypatch):
    """And its pictures are those that can be drawn from what the example leaves behind."""
    if page.stem in NEED_A_COMPILER and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("no C compiler on this machine")
    monkeypatch.chdir(tmp_path)
    lines, left = run(block)
    assert not differences(block.lines, lines), "run docs/examples/make.py"
    monkeypatch.syspath_prepend(str(FOLDER))
    from drawing import PICTURES

    shown = set(re.findall(r"\]\(pictures/(\w+)\.svg\)", page.read_text(encoding="utf-8")))
    assert set(PICTURES[page.stem](left)) == shown


def test_examples_are_numbered_from_1_without_gaps():
    assert [int(p.name[:2]) for p in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_names_its_example_and_what_is_not_settled(page):
    text = page.read_text(encoding="utf-8")
    assert {b.script.stem for b in blocks(text)} == {page.stem}
    assert f"(../../examples/{page.stem}.py)" in text
    assert "## What the text does not settle" in text
    assert f"({page.name})" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_pictures_are_shown_and_small():
    written = "".join(p.read_text(encoding="utf-8") for p in PAGES)
    pictures = sorted((FOLDER / "pictures").iterdir())
    assert all(f"(pictures/{p.name})" in written for p in pictures)
    assert sum(p.stat().st_size for p in pictures) < 70e3 * len(pictures)


# ---- how lines are compared


def test_numbers_are_the_same_as_far_as_they_are_printed():
    assert same_number("1.367", "1.368")
    assert not same_number("1.367", "1.369")
    assert same_number("-0.000", "0.000")
    assert same_number("0.2", "0.201")  # a digit that numpy leaves out
    assert not same_number("25849", "25850")


def test_errors_may_be_smaller_but_hardly_larger():
    assert same_number("2e-13", "5e-16")
    assert same_number("2e-13", "1e-11")
    assert not same_number("2e-13", "3e-11")
    assert not same_number("7.5e-05", "2.3e-04")
    assert not same_number("3e-10", "2e-09")
    assert same_number("0e+00", "1e-16")


def test_words_must_be_equal():
    assert same_line("feet carry [9.28 9.06] N", "feet carry [ 9.28  9.061] N")
    assert not same_line("drive1: 3.170 N m", "drive2: 3.170 N m")
    assert not same_line("closed to 4e-16 m", "closed to 4e-16 rad")
    assert differences("a 1\nb 2\n", "a 1\n")
    assert not differences("a 1\n", "a 1\n")


def test_a_script_gets_its_options_and_leaves_none_behind(tmp_path):
    script = tmp_path / "one.py"
    script.write_text("import sys\nx = sys.argv[1:]\nprint(x)\n")
    kept = list(sys.argv)
    lines, left = run(Block(script, ("--large",), "", ""))
    assert (lines, left["x"], sys.argv) == ("['--large']\n", ["--large"], kept)
