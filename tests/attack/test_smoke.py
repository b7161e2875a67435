"""Every attack runs for a few seconds and finds nothing; `run.py` is the whole campaign."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import run

pytestmark = pytest.mark.slow
SECONDS = 4.0


@pytest.mark.parametrize("name", run.attacks())
def test_an_attack_of_a_few_seconds_finds_nothing(name):
    tally = __import__(name).attack(0, time.monotonic() + SECONDS)
    assert tally.tried == tally.right + tally.refused + tally.wrong
    assert tally.right > 0
    assert not tally.failures, "\n".join(tally.failures)
