"""The Python of the pages about files and edits runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spanloop import Model

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["edits.md"])
def test_the_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"__name__": "example"})


def test_the_page_of_edits_has_every_edit():
    page = (DOCS / "edits.md").read_text(encoding="utf-8")
    source = Path(__import__("inspect").getsourcefile(Model)).read_text(encoding="utf-8")
    methods = re.findall(r"return edit\.\w+\(self", source)
    names = [
        m.group(1)
        for m in re.finditer(r"    def (\w+)\((?:\n\s+)?self(?:(?!\n    def ).)*?return edit\.", source, re.S)
    ]
    assert len(names) == len(methods) > 15
    for name in names:
        assert f"model.{name}(" in page, name
