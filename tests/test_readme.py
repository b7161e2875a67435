"""Every Python block of the README runs, in order, in an empty folder; its commands and links are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spanloop.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [p for p in sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")) if p.is_file()]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_python_block_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[number], f"README.md block {number}", "exec"), {"__name__": "__main__"})


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
