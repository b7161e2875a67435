"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

import spanloop as sl

MODULES = [
    "spanloop.algorithms.closed.model_operators",
    "spanloop.dynamics.dynamics",
    "spanloop.dynamics.quantities",
    "spanloop.math.scalar",
    "spanloop.papers",
    "spanloop.simulation.control.joint_space",
    "spanloop.simulation.control.motion_paths",
    "spanloop.simulation.control.operational",
    "spanloop.simulation.controllers",
    "spanloop.simulation.forces.at_frames",
    "spanloop.simulation.forces.at_joints",
    "spanloop.simulation.forces.in_loops",
    "spanloop.simulation.integrators.integrator",
    "spanloop.simulation.simulate",
    "spanloop.simulation.system",
    "spanloop.trajectory.files.storage",
    "spanloop.trajectory.trajectory",
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module):
    found = doctest.testmod(importlib.import_module(module), extraglobs={"sl": sl, "np": np})
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize("room", [sl.control, sl.forces])
def test_every_public_function_has_an_example_and_nothing_else_is_listed(room):
    assert dir(room) == sorted(room.__all__)
    assert all(">>>" in getattr(room, name).__doc__ for name in room.__all__ if name != "Path")
