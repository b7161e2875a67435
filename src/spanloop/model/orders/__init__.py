"""Orders of other libraries: converters of states, and the checks they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, nearest
from spanloop.model.model import Model
from spanloop.model.parts import Joint


def matched_joints(model: Model, names: Sequence[str], library: str) -> list[Joint]:
    """Our joints in the library's order; every moving joint must be there once, and no other."""
    ours = {j.name: j for j in model.joints if j.kind.nv}
    for name in names:
        if name not in ours:
            raise InputError(
                f"{library}'s joint {name!r} is no moving joint of model {model.name!r}; {nearest(name, ours)}"
            )
    missing = [name for name in ours if name not in names]
    if missing:
        raise InputError(
            f"joint {missing[0]!r} of model {model.name!r} is not among {library}'s; {nearest(missing[0], names)}"
        )
    if len(set(names)) < len(names):
        raise InputError(f"{library}'s joint names repeat; expected each once")
    return [ours[name] for name in names]


def rows_of(value: ArrayLike, n: int, what: str) -> np.ndarray:
    """The value as an array (..., n) of floats."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 0 or array.shape[-1] != n:
        raise InputError(f"{what} has shape {array.shape}; expected (..., {n})")
    return array
