"""Libraries that are older than spanloop needs are refused with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from spanloop.bridges.versions import LEAST, too_old
from spanloop.cli import doctor

HOME = Path(__file__).parents[2]


def test_the_smallest_versions_are_those_of_the_extras():
    extras = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, (_, least) in LEAST.items():
        wanted = {x for needs in extras.values() for x in needs if x.startswith(package)}
        assert wanted == {f"{package}>={least}"}


@pytest.mark.parametrize("found", ["1.13.1+cpu", "2.5", "2.5.9.dev1"])
def test_a_version_that_is_too_old_is_named_with_the_one_that_is_needed(found):
    assert too_old("torch", found) == f"needs PyTorch 2.6 or later; found {found}; try: pip install -U torch"


@pytest.mark.parametrize("found", ["2.6", "2.6.0a0+git", "2.10.1", "3", "unknown version"])
def test_a_version_that_is_new_enough_or_unknown_is_not_refused(found):
    assert too_old("torch", found) is None


OLD = """
import importlib.metadata, importlib.util, sys, types
for name in ("torch", "jax"):
    sys.modules[name] = types.SimpleNamespace(__version__="0.4.38", __spec__=None)
find, version = importlib.util.find_spec, importlib.metadata.version
importlib.util.find_spec = lambda name, *rest: name if name == "gymnasium" else find(name, *rest)
importlib.metadata.version = lambda name: "0.29.1" if name == "gymnasium" else version(name)
import spanloop as sl
for use in ("import spanloop.torch", "import spanloop.jax", "sl.envs.five_bar_swing_up(2)"):
    try:
        exec(use)
    except ImportError as error:
        print(error)
"""


def test_the_import_of_a_library_that_is_too_old_ends_with_the_sentence():
    environment = {**os.environ, "PYTHONPATH": str(HOME / "src")}
    done = subprocess.run([sys.executable, "-c", OLD], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == [
        "spanloop.torch needs PyTorch 2.6 or later; found 0.4.38; try: pip install -U torch",
        "spanloop.jax needs JAX 0.6.2 or later; found 0.4.38; try: pip install -U jax",
        "sl.envs needs Gymnasium 1.1 or later; found 0.29.1; try: pip install -U gymnasium",
    ], done.stderr


def test_doctor_does_not_call_a_library_that_is_too_old_well(monkeypatch):
    versions = {"torch": "1.13", "jax": "0.6.2"}
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: sys.modules[doctor.__name__].__spec__)
    monkeypatch.setattr(doctor, "_version", lambda package: versions.get(package, "9"))
    found = {check.name: check for check in doctor.all_checks()}
    assert found["torch"].verdict == doctor.ADVICE
    assert found["torch"].message.startswith("needs PyTorch 2.6 or later; found 1.13; try: pip install -U torch; ")
    assert found["jax"].verdict == doctor.WELL
