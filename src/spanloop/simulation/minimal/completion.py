"""Minimal coordinates: what all joints do, from the actuated ones alone. [Saha, section 3]

The actuated positions and rates are what is integrated. Positions of the other joints are solved from predicted ones by
a fixed number of Newton steps, their rates are T times the actuated ones: both by `leg_completion.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.algorithms.papers.saha.legs import legs_of
from spanloop.errors import Reason, Refusal
from spanloop.kernels import KernelSpec
from spanloop.math.vector3 import dot, total
from spanloop.model import Model
from spanloop.topology import mechanism

METHOD = "parallel_legs"  # of forward dynamics
ROUNDS = 2  # Newton steps at every evaluation inside a step
NEAR = 1e-2  # a margin below this explains why a run has no next step


@dataclass(frozen=True)
class Completion:
    """Functions in the actuated coordinates of a model; ask(name) returns the spec of a function of the catalog."""

    model: Model
    ask: Callable[[str], KernelSpec]

    def position(self, given: Mapping[str, Sequence[Any]], q: Sequence[Any], error: Sequence[Any]) -> list:
        """The step (nv) of all joints that takes the closure errors away; the actuated ones rest."""
        return self._step.compute({**given, "q": q, "error": error})[0]

    def rates(self, given: Mapping[str, Sequence[Any]]) -> tuple[list, list]:
        """T, row by row (nv × n), and pairs of which the first must be less."""
        flat, pairs = self._rates.compute(given)
        n = len(self.actuated)
        return [flat[n * i : n * i + n] for i in range(self.model.nv)], pairs

    def velocity(self, T: Sequence[Sequence[Any]], v: Sequence[Any]) -> list:
        """v (nv) of all joints from the actuated ones."""
        theta = [v[f] for f in self.actuated]
        return [v[i] if i in self.actuated else dot(row, theta) for i, row in enumerate(T)]

    def margin(self, T: Sequence[Sequence[Any]]) -> Any:
        """1 where the others rest, 0 at a singular configuration, where they would have to be infinitely fast."""
        return len(self.actuated) / self.likeness(T, T)

    def refusal(self, T: Sequence[Sequence[float]]) -> Refusal | None:
        """Why a run ends here, if it is near a singular configuration; else None."""
        margin = self.margin(T)
        if margin > NEAR:
            return None
        return Refusal(
            Reason.SINGULAR_CLOSURE,
            f"the legs came to a singular configuration (margin {margin:.1e}), where the actuated joints do not "
            "determine the motion of the others. closures='project' goes on wherever the loops themselves are regular",
        )

    def likeness(self, before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> Any:
        """Positive where two T belong to neighbours on one side of a singular configuration, negative across it.

        There T has a pole, and changes its sign. Lengths count in units of the model's size.
        """
        found: Any = float(len(self.actuated))
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            if i not in self.actuated:
                for k, f in enumerate(self.actuated):
                    found = found + (self._sizes[f] / self._sizes[i]) ** 2 * (a[k] * b[k])
        return found

    def square(self, v: Sequence[Any]) -> Any:
        """The sum of the squares of rates (nv), lengths in units of the model's size."""
        return total(x * x * size**-2 for x, size in zip(v, self._sizes, strict=True))

    @cached_property
    def actuated(self) -> tuple[int, ...]:
        """Places of the actuated degrees of freedom in v."""
        return legs_of(mechanism(self.model)).actuated

    @cached_property
    def _sizes(self) -> list[float]:
        """The unit of each degree of freedom: a radian, or the model's size [m]."""
        placements = [x.placement for x in self.model.joints] + [x.placement for x in self.model.frames]
        size = max((float(np.linalg.norm(x.position)) for x in placements), default=0.0)
        units = [unit for joint in self.model.joints for unit in joint.kind.units]
        return [(size or 1.0) if unit == "m" else 1.0 for unit in units]

    @cached_property
    def _step(self) -> KernelSpec:
        return self.ask("position_completion")

    @cached_property
    def _rates(self) -> KernelSpec:
        return self.ask("actuated_rates")
