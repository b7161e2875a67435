"""The examples in docstrings of models, edits, files, orders and the zoo run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import spanloop as sl

HOME = Path(sl.__file__).parent
WITH_EXAMPLES = [
    ".".join(("spanloop", *path.relative_to(HOME).with_suffix("").parts)).removesuffix(".__init__")
    for room in ("model", "zoo")
    for path in sorted((HOME / room).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
EDITS = [name for name, value in vars(sl.Model).items() if inspect.getmodule(value) != inspect.getmodule(sl.Model)
         and inspect.isfunction(value) and not name.startswith("_")]  # fmt: skip
PUBLIC = [sl.Model, sl.Model.save, sl.Builder, sl.Builder.build, sl.load, sl.from_dh, sl.MujocoOrder, sl.PinocchioOrder,
          sl.zoo, sl.zoo.names]  # fmt: skip


@pytest.mark.slow
def test_examples_of_models_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed = []
    for module in WITH_EXAMPLES:
        found = doctest.testmod(importlib.import_module(module), extraglobs={"sl": sl, "np": np})
        failed += [module] * (found.failed or not found.attempted)
    assert WITH_EXAMPLES
    assert not failed


def test_public_names_and_edits_have_an_example():
    assert len(EDITS) > 20
    for thing in (*PUBLIC, *(getattr(sl.Model, name) for name in EDITS)):
        assert ">>> " in inspect.getdoc(thing), thing
