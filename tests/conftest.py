"""A session keeps its kernels in a new folder, so that no test meets what an earlier session compiled."""

from __future__ import annotations

import os
import shutil
import tempfile

_OWN = "PYTEST_XDIST_WORKER" not in os.environ  # workers share the folder of the session that started them
if _OWN:
    os.environ["SPANLOOP_CACHE"] = tempfile.mkdtemp(prefix="spanloop-tests-")


def pytest_unconfigure(config):
    if _OWN:
        shutil.rmtree(os.environ["SPANLOOP_CACHE"], ignore_errors=True)
