"""Packages that are not needed by spanloop itself, imported where a user asks for what they do."""

from __future__ import annotations

import importlib
from typing import Any

from spanloop.errors import UnsupportedError


def optional(module: str, function: str, package: str) -> Any:
    """The module; UnsupportedError names the package if it is not installed. function: what needs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UnsupportedError(
            f"{function} needs {package}, which is not installed; try: pip install {package}"
        ) from None
