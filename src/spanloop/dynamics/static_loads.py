"""Loads at frames as forces at the origins of their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError
from spanloop.math.torch_duals import refuse_tangents


def at_body_origins(robot: Any, q: ArrayLike, forces: Mapping[str, ArrayLike], function: str) -> dict[str, np.ndarray]:
    """{"frame or body": [torque; force] (..., 6)} in world axes as {"body": the same at the body's origin}."""
    if not isinstance(forces, Mapping):
        raise InputError(f"{function}: forces is a {type(forces).__name__}; expected {{'frame or body': six numbers}}")
    model = robot.model
    out: dict[str, np.ndarray] = {}
    for name, given in forces.items():
        frame = model.frame(name)
        refuse_tangents(function, f"the force at {name!r}", given)
        try:
            six = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            six = np.zeros(0)
        if six.shape[-1:] != (6,):
            raise InputError(f"{function}: the force at {name!r} is {given!r}; expected [torque; force] (..., 6)")
        if frame.body == "world":
            raise InputError(f"{function}: {name!r} is fixed to the world, which takes every load")
        lever = robot.pose(q, name)[..., :3, 3] - robot.pose(q, frame.body)[..., :3, 3]
        moved = np.concatenate(np.broadcast_arrays(six[..., :3] + np.cross(lever, six[..., 3:]), six[..., 3:]), axis=-1)
        out[frame.body] = out[frame.body] + moved if frame.body in out else moved
    return out
