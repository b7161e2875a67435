"""Arrays of real numbers from what a user gives: no text, which NumPy would read as numbers, and nothing complex."""

from __future__ import annotations

from typing import Any

import numpy as np

_KINDS = "biufO"  # of NumPy's types; objects may be numbers


def real_numbers(given: Any) -> np.ndarray | None:
    """A copy as an array of floats; None where it is no array of real numbers."""
    try:
        found = np.asarray(given)
        return np.array(found, float) if found.dtype.kind in _KINDS else None
    except (TypeError, ValueError, OverflowError):  # objects, rows of different lengths, 10**400
        return None
