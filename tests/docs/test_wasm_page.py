"""The Python and the JavaScript of the page about WebAssembly run as they stand."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from es_runtime import NODE, needs_node

PAGE = (Path(__file__).parents[2] / "docs" / "wasm.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)
    assert found
    return found


def run_python() -> None:
    pytest.importorskip("wasmtime")
    for block in blocks("python"):
        exec(compile(block, "wasm.md", "exec"), {"__name__": "example"})


@pytest.mark.slow
def test_the_examples_in_python_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python()
    assert (tmp_path / "four_bar.mjs").exists()


@pytest.mark.slow
@needs_node
def test_the_examples_in_javascript_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python()
    for block in blocks("js"):
        script = tmp_path / "script.mjs"
        script.write_text(block)
        done = subprocess.run([str(NODE), script.name], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout
