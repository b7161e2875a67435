"""The Python of the page about PyTorch runs as it stands, where PyTorch is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"


def test_the_examples_of_the_page_run_one_after_the_other():
    pytest.importorskip("torch")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {"__name__": "example"})
