"""From the bodies that the user names to the arrays that kernels take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spanloop.errors import InputError
from spanloop.loops.actuating import forces_in_order
from spanloop.model import Model


def loads(model: Model, function: str, forces: Mapping) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the bodies with forces from outside, in the model's order, and the forces (..., 6 n)."""
    if not isinstance(forces, Mapping):
        raise InputError(f"{function}: forces is a {type(forces).__name__}; expected {{'body': array (..., 6)}}")
    known = [b.name for b in model.bodies]
    return forces_in_order(forces, known, f"{function}: forces", "a body", f"{function}: the force on")
