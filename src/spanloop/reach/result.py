"""What inverse kinematics returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import listed
from spanloop.reach.residuals import Residual


@dataclass(frozen=True, eq=False)
class Reach:
    """States that reach targets, or come nearest to them; arrays have the batch axes of the targets first.

    q (..., nq): coordinates. converged (...): all targets are met to the tolerance, recomputed from the poses, within
    limits and with loops closed. residual: {"target": .distance (...) [m], .angle (...) [rad]}. iterations, restarts
    (...): steps in all, and starts after the first. at_limits (..., nv): DoF that stand at a limit. stopped: why a path
    ends before its last sample; empty otherwise.
    """

    q: np.ndarray
    converged: Any  # bool for a single target, else an array
    residual: Mapping[str, Residual]
    iterations: Any
    restarts: Any
    at_limits: np.ndarray
    dof_names: tuple[str, ...]
    function: str = "inverse_kinematics"
    stopped: str = ""

    @property
    def reachable(self) -> Any:
        """As `converged`: False says that no search from any start met all targets."""
        return self.converged

    def limits(self, row: Any = ()) -> tuple[str, ...]:
        """Names of the DoF that stand at a limit, of the row at an index of the batch."""
        return tuple(name for name, at in zip(self.dof_names, self.at_limits[row], strict=True) if at)

    def __str__(self) -> str:
        if np.ndim(self.converged) == 0:
            return f"{self.function}: {self._sentence(())}"
        met, count = int(np.sum(self.converged)), int(np.size(self.converged))
        text = f"{self.function}: {met} of {count} states reach their targets"
        if self.stopped:
            return f"{text}. {self.stopped}"
        if met == count:
            return f"{text}; the largest residual is {self._largest()}"
        score = np.where(self.converged, -np.inf, sum(r.distance + r.angle for r in self.residual.values()))
        score = np.where(np.isfinite(score) | self.converged, score, -1.0)
        worst = np.unravel_index(int(np.argmax(score)), np.shape(self.converged))
        place = tuple(int(i) for i in worst)
        return f"{text}. The worst is {place if len(place) > 1 else place[0]}: {self._sentence(place)}"

    def _largest(self) -> str:
        distance = max(float(np.max(r.distance, initial=0.0)) for r in self.residual.values())
        angle = max(float(np.max(r.angle, initial=0.0)) for r in self.residual.values())
        return _sizes(distance, angle)

    def _sentence(self, row: Any) -> str:
        left = [f"{name!r} by {_sizes(r.distance[row], r.angle[row])}" for name, r in self.residual.items()]
        starts = int(np.asarray(self.restarts)[row]) + 1
        after = f"{int(np.asarray(self.iterations)[row])} iterations from {starts} start{'s' if starts > 1 else ''}"
        if np.asarray(self.converged)[row]:
            return f"reached in {after}; misses {listed(left)}"
        held = self.limits(row)
        at = f". At limits: {listed(map(repr, held), 6)}" if held else ". No joint is at a limit"
        return f"not reached: the nearest state found, in {after}, misses {listed(left)}{at}"


def _sizes(distance: float, angle: float) -> str:
    sizes = [f"{float(x):.3g} {unit}" for x, unit in ((distance, "m"), (angle, "rad")) if x]
    return " and ".join(sizes) or "0"
