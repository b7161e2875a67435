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

from spanloop.algorithms.papers.legs import NotLegs, legs_of
from spanloop.compiling import Question
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, StateError, UnsupportedError
from spanloop.loops.measuring import errors
from spanloop.math.small import dot
from spanloop.model import Model
from spanloop.topology import mechanism

METHOD = "parallel_legs"  # of forward dynamics
ROUNDS = 2  # Newton steps at every evaluation inside a step
_MOST = 20  # Newton steps at the start of a run, unless
_CLOSED = 1e-13  # is left [m or rad]
_ENOUGH = 1e-9  # must not be left after them


@dataclass(frozen=True)
class Completion:
    """Questions in the actuated coordinates of a model; ask(name) makes a question of the catalog."""

    model: Model
    ask: Callable[[str], Question]

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

    def likeness(self, before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> Any:
        """Positive where two T belong to neighbours on one side of a singular position, negative across it.

        There T has a pole, and changes its sign. Lengths count in units of the model's size.
        """
        found: Any = float(len(self.actuated))
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            if i not in self.actuated:
                for k, f in enumerate(self.actuated):
                    found = found + (self._sizes[f] / self._sizes[i]) ** 2 * (a[k] * b[k])
        return found

    @cached_property
    def actuated(self) -> tuple[int, ...]:
        """Freedoms (places in v)."""
        return legs_of(mechanism(self.model)).actuated

    @cached_property
    def _sizes(self) -> list[float]:
        """What counts as much in each freedom: a radian, or the model's size [m]."""
        placements = [x.placement for x in self.model.joints] + [x.placement for x in self.model.frames]
        size = max((float(np.linalg.norm(x.position)) for x in placements), default=0.0)
        units = [unit for joint in self.model.joints for unit in joint.kind.units]
        return [(size or 1.0) if unit == "m" else 1.0 for unit in units]

    @cached_property
    def _step(self) -> Question:
        return self.ask("position_completion")

    @cached_property
    def _rates(self) -> Question:
        return self.ask("actuated_rates")


def refuse(robot: Dynamics, dynamics: str | None, on_singular: str) -> None:
    """A sentence for what cannot be simulated in minimal coordinates."""
    if dynamics not in (None, METHOD):
        raise InputError(
            f"closures='minimal' is computed by dynamics={METHOD!r}; dynamics is {dynamics!r}. "
            "Leave it out, or use closures='project'"
        )
    if on_singular != "raise":
        raise InputError(
            f"on_singular={on_singular!r} has no meaning with closures='minimal': at a singular position the actuated "
            "joints do not determine the motion. Use closures='project'"
        )
    try:
        Question.of(robot.model, "position_completion", None, "baked", (), None, None, True).signature()
    except NotLegs as error:
        raise UnsupportedError(
            f"closures='minimal' is for legs on one platform: {error.why}. Use closures='project'"
        ) from None


def completed(robot: Dynamics, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows q (n, nq), v (n, nv) with the loops closed, the actuated joints as they are."""
    step, rates = robot.kernel("position_completion"), robot.kernel("actuated_rates")
    for _ in range(_MOST):
        error = errors(robot, q)
        if np.abs(error).max(initial=0.0) < _CLOSED:
            break
        q = robot.integrate(q, _answered(step, q, error))
    else:
        left = np.abs(errors(robot, q)).max(axis=1)
        if not left.max() < _ENOUGH:
            raise StateError(
                f"simulate: run {int(np.argmax(left))} starts where the loops do not close with the actuated joints as "
                f"they are: {left.max():.3g} m or rad is left. Close them first: q = robot.assemble(q)"
            )
    T, actuated = _answered(rates, q), list(legs_of(mechanism(robot.model)).actuated)
    out = np.einsum("kij,kj->ki", T, v[:, actuated])
    out[:, actuated] = v[:, actuated]
    return q, out


def _answered(kernel, *rows: np.ndarray) -> np.ndarray:
    """The kernel's answers at rows, or a sentence for the first row that has none."""
    out = np.empty((len(rows[0]), *kernel.shape))
    for k in range(len(out)):
        try:
            out[k] = kernel(*(x[k] for x in rows))
        except StateError as error:
            which = f"run {k}: " if len(out) > 1 else ""
            raise StateError(f"simulate: {which}{error}") from None
    return out
