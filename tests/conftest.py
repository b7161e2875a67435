"""A session keeps its kernels in a new folder, so that no test meets what an earlier session compiled; of a test with
many cases the daily tier runs a few, and without --campaigns a campaign runs the part of its cases that it names."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import defaultdict

import pytest

DAILY_CASES = 1  # of each parametrised test; the others are marked slow

os.environ.setdefault("SPANLOOP_PROGRESS", "off")
_OWN = "PYTEST_XDIST_WORKER" not in os.environ  # workers share the folder of the session that started them
if _OWN:
    os.environ["SPANLOOP_CACHE"] = tempfile.mkdtemp(prefix="spanloop-tests-")


def pytest_unconfigure(config):
    if _OWN:
        shutil.rmtree(os.environ["SPANLOOP_CACHE"], ignore_errors=True)


def pytest_addoption(parser):
    parser.addoption("--campaigns", action="store_true", help="all cases of campaigns, such as those of many seeds")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark all but a few evenly spaced cases of every parametrised test as slow; leave out those of campaigns."""
    if not config.getoption("--campaigns"):
        _leave_out_campaigns(config, items)
    cases = defaultdict(list)
    for item in items:
        cases[item.path, getattr(item, "originalname", item.name)].append(item)
    for group in cases.values():
        kept = {k * (len(group) - 1) // max(DAILY_CASES - 1, 1) for k in range(DAILY_CASES)}
        for k, item in enumerate(group):
            if k not in kept:
                item.add_marker(pytest.mark.slow)


def _leave_out_campaigns(config, items):
    """Deselect all but `campaign(n)` evenly spaced cases of a test."""
    cases = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("campaign")
        if mark is not None:
            cases[item.path, item.originalname, mark.args[0]].append(item)
    gone = set()
    for (*_, n), group in cases.items():
        kept = {k * (len(group) - 1) // max(n - 1, 1) for k in range(n)}
        gone |= {id(item) for k, item in enumerate(group) if k not in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in gone])
    items[:] = [item for item in items if id(item) not in gone]
