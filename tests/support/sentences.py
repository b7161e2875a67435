"""Errors in tests: what was said, literally."""

from __future__ import annotations

import re

import pytest


def says(error: type[Exception], text: str):
    """pytest.raises for an error whose sentence contains the text."""
    return pytest.raises(error, match=re.escape(text))
