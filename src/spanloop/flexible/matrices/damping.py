"""Damping of the modes of a body from ratios of their critical damping with the root held."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.matrices.real_numbers import real_numbers


def modal_damping(damping: Any, body: FiniteElementBody, owner: str) -> np.ndarray:
    """2 ζ k/ω of each mode (n,), from ratios of critical damping: one, or one each."""
    damping = real_numbers(damping, f"{owner}: damping")
    try:
        ratios = np.asarray(damping)
        ratios = ratios.astype(float) if ratios.dtype.kind in "fiu" else np.array(np.nan)
    except (TypeError, ValueError):
        ratios = np.array(np.nan)
    if ratios.ndim > 1 or not np.isfinite(ratios).all() or (ratios < 0.0).any() or (ratios > 1e3).any():
        raise InputError(f"{owner}: damping is {damping!r}; expected ratios of critical damping, 0 to 1000")
    if ratios.ndim == 1 and len(ratios) != body.n:
        raise InputError(f"{owner}: damping has {len(ratios)} numbers; expected one, or {body.n}: one for each mode")
    return np.asarray(2.0 * ratios * body.stiffness / body.frequencies * np.ones(body.n))
