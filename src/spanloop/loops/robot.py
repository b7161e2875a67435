"""What these functions ask of a robot: its model and its kernels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from spanloop.model import Model


class Robot(Protocol):
    """A model with compiled kernels by name; Dynamics is one."""

    model: Model

    def kernel(self, function: str, **options) -> Any: ...


def values(robot: Robot, function: str, *inputs: np.ndarray, **options) -> np.ndarray:
    """A kernel's answers for rows of states (n, ...), in double precision."""
    return np.asarray(robot.kernel(function, **options).evaluate(*inputs), dtype=float)


def resolution(robot: Robot) -> float:
    """The relative size of rounding errors in the robot's kernels."""
    return float(np.finfo(robot.kernel("closure_error").dtype).eps)
