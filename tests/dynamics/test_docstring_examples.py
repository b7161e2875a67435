"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

import spanloop as sl


@pytest.mark.parametrize("module", ["spanloop.dynamics.dynamics", "spanloop.papers", "spanloop.trajectory.trajectory"])
def test_examples_in_docstrings_run(module):
    found = doctest.testmod(importlib.import_module(module), extraglobs={"sl": sl, "np": np})
    assert found.attempted
    assert not found.failed
