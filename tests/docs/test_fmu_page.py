"""The Python of the page about FMUs runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fmu_instances import needs_compiler

PAGE = Path(__file__).parents[2] / "docs" / "fmu.md"


@needs_compiler
@pytest.mark.slow
def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "fmu.md", "exec"), {"__name__": "example"})
