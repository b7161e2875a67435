"""The Python of the pages about edits, simulation and control runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spanloop import Model
from spanloop.model import edits

DOCS = Path(__file__).parents[2] / "docs"


SLOW = [
    pytest.param(page, marks=pytest.mark.slow)
    for page in ("simulation.md", "events.md", "control.md", "contacts.md", "live.md")
]


@pytest.mark.parametrize("page", ["edits.md", *SLOW])
def test_the_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"__name__": "example"})


@pytest.mark.slow
@pytest.mark.parametrize("page", ["grasps.md", "gradients.md", "jax.md"])
def test_the_examples_of_a_page_that_continue_each_other_run(page):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "example"})


def test_the_page_of_edits_has_every_edit():
    page = (DOCS / "edits.md").read_text(encoding="utf-8")
    assert all(getattr(Model, name) is getattr(edits, name) for name in edits.__all__)
    for name in edits.__all__:
        assert f"model.{name}(" in page, name
