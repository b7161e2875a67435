"""The smallest versions of libraries that spanloop works with; those of the extras in pyproject.toml."""

from __future__ import annotations

import re

LEAST = {"torch": ("PyTorch", "2.6"), "jax": ("JAX", "0.6.2"), "gymnasium": ("Gymnasium", "1.1")}  # by package


def too_old(package: str, found: str) -> str | None:
    """What is wrong with this version of a package: "needs PyTorch 2.6 or later; found 1.13; ..."; None if nothing."""
    if package not in LEAST:
        return None
    name, least = LEAST[package]
    if not (numbers := _numbers(found)) or numbers >= _numbers(least):
        return None
    return f"needs {name} {least} or later; found {found}; try: pip install -U {package}"


def _numbers(version: str) -> tuple[int, ...]:
    """2.6.0+cpu → (2, 6, 0)."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
