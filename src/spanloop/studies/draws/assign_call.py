"""A call of a user's `assign`: what it reads, and what it returns as numbers of each run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spanloop.errors import InputError, SpanloopError, nearest

Assign = Callable[[dict[str, np.ndarray]], Mapping[str, Any]]
_REAL = "biufO"  # kinds of NumPy's types; objects may be numbers
_KINDS = {"c": "complex numbers", "U": "text", "S": "text"}


class Columns(dict[str, np.ndarray]):
    """Draws (n,) by name, as `assign` reads them."""

    def __missing__(self, name: str) -> np.ndarray:
        raise InputError(f"study: assign reads {name!r}, which does not vary; {nearest(str(name), self)}")


def called(assign: Assign, columns: Columns) -> Mapping[str, Any]:
    """What assign returns for these draws.

    Raises:
        InputError: it raises, or returns no numbers by name.
    """
    try:
        found = assign(columns)
    except SpanloopError:
        raise
    except Exception as error:  # whatever a user's function raises
        raise InputError(
            f"study: assign raised {type(error).__name__}: {str(error)[:200]}. It receives arrays (n,), a number for "
            "each run: write it in the arithmetic of NumPy, with np.where for choices and np.sin and the like"
        ) from error
    if not isinstance(found, Mapping) or not found:
        shown = "None" if found is None else repr(found) if isinstance(found, Mapping) else f"a {type(found).__name__}"
        raise InputError(f"study: assign returned {shown}; expected numbers by name, as {{'forearm.mass': 2.0 * m}}")
    return found


def numbers(name: str, value: Any, n: int) -> np.ndarray:
    """What assign returns by a name, as a number (n,) for each run."""
    try:
        given = np.asarray(value)
    except ValueError:
        given, found = None, "rows of different lengths"
    if given is not None:
        found = _KINDS.get(given.dtype.kind, f"a {type(value).__name__} of shape {given.shape}")
        if given.dtype.kind in _REAL:
            with contextlib.suppress(TypeError, ValueError):  # of objects, and of another shape
                return np.array(np.broadcast_to(given.astype(float), (n,)))
    raise InputError(f"study: assign returns {name!r} as {found}; expected real numbers ({n},), one for each run")
