"""What inverse kinematics returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, listed, nearest
from spanloop.reach.residuals import Residual


class Residuals(dict[str, Residual]):
    """Residuals by name of the target."""

    def __missing__(self, name: object) -> Residual:
        raise InputError(f"residual: no target is called {name!r}; {nearest(str(name), self)}")


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
        """Names of the DoF that stand at a limit, of the row at an index of the batch if there is one."""
        place, leading = row if isinstance(row, tuple) else (row,), self.at_limits.shape[:-1]
        if len(place) != len(leading) or not all(-n <= i < n for i, n in zip(place, leading, strict=True)):
            expected = f"an index of the batch {leading}" if leading else "no row: the result is of a single target"
            raise InputError(f"limits: row is {row!r}; expected {expected}")
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
        return sizes(distance, angle)

    def _sentence(self, row: Any) -> str:
        left = [f"{name!r} by {sizes(r.distance[row], r.angle[row])}" for name, r in self.residual.items()]
        starts = int(np.asarray(self.restarts)[row]) + 1
        after = f"{int(np.asarray(self.iterations)[row])} iterations from {starts} start{'s' if starts > 1 else ''}"
        if np.asarray(self.converged)[row]:
            return f"reached in {after}; misses {listed(left)}"
        if not all(np.isfinite(r.distance[row]) for r in self.residual.values()):
            return "it has no state; the warning of the call says why"
        held = self.limits(row)
        at = f". At limits: {listed(map(repr, held), 6)}" if held else ". No joint is at a limit"
        return f"not reached: the nearest state found, in {after}, misses {listed(left)}{at}"


def sizes(distance: float, angle: float) -> str:
    """What is left, in words, without a part that is zero."""
    parts = [f"{float(x):.3g} {unit}" for x, unit in ((distance, "m"), (angle, "rad")) if x]
    return " and ".join(parts) or "0"
