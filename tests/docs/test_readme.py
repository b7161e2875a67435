"""Every Python block of the README and of the pages in docs/ runs, in an empty folder; commands and links are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spanloop.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [p for p in sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")) if p.is_file()]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


CONTINUED = {"gradients.md", "grasps.md", "jax.md"}  # one example in several blocks, which test_pages.py runs together
NEEDING = {"torch.md"}  # pages for libraries that need not be installed, with a test of their own
PYTHON = {
    f"{page.relative_to(ROOT).as_posix()} block {k}": block
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page.name not in CONTINUED | NEEDING
    for k, block in enumerate(blocks("python", page.read_text(encoding="utf-8")))
}


@pytest.mark.parametrize("name", PYTHON)
def test_a_python_block_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(PYTHON[name], name, "exec"), {"__name__": "__main__"})


def test_the_builder_example_has_at_most_ten_lines():
    (building,) = [b for b in blocks("python") if "arm = sl.Builder(" in b]
    start = building.index("arm = sl.Builder")
    assert len(building[start : building.index("arm.build()")].splitlines()) <= 10


def test_the_two_commands_stand_there_word_for_word():
    shell = "".join(blocks("sh"))
    for command in ("pip install . && spanloop demo", "pip install '.[test]' && pytest"):
        assert command in shell.splitlines()


def test_the_commands_that_print_a_model_are_right(capsys):
    shell = "".join(blocks("sh"))
    for line in re.findall(r"^spanloop (info zoo:\S+)", shell, flags=re.MULTILINE):
        assert main(line.split()) == 0
    capsys.readouterr()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing
