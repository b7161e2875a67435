"""Parameters of the mechanism that every episode draws anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.envs.user_arguments import of_draws
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.parameters import impossible

_EXAMPLES = 64  # rows, at least


@dataclass(frozen=True)
class RandomParameters:
    """Live parameters by a user's function (random, n) -> (n, p), packed as model.parameters()."""

    model: Model
    draw: Callable[[np.random.Generator, int], Any]

    def __post_init__(self) -> None:
        of_draws(self.draw, "parameters")

    def usual(self, n: int) -> np.ndarray:
        """The model's own, (n, p)."""
        return np.tile(self.model.parameters().values, (n, 1))

    def examples(self, n: int) -> np.ndarray:
        """Those of some episodes (..., p), drawn n at a time beside the episodes: the integrator is chosen by them."""
        random = np.random.default_rng(0)
        return np.concatenate([self.drawn(random, n) for _ in range(-(-_EXAMPLES // n))])

    def drawn(self, random: np.random.Generator, n: int) -> np.ndarray:
        """Those of n episodes, (n, p), checked."""
        found, width = np.asarray(self.draw(random, n)), len(self.model.parameters().values)
        if found.dtype.kind not in "fiu" or found.shape != (n, width):
            raise InputError(
                f"parameters returned {found.dtype} of shape {found.shape}; expected numbers ({n}, {width}), packed as "
                "model.parameters()"
            )
        found = found.astype(float)
        if not np.isfinite(found).all():
            raise InputError("parameters returned a number that is not finite; every number must be")
        wrong = impossible(self.model, found)
        if wrong:
            raise InputError(f"parameters returned what no mechanism can have, in row {wrong[0]}: {wrong[1]}")
        return found
