"""What all calls for one model and one set of targets share: limits, compiled steps, random states for restarts."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from dataclasses import dataclass, field

import numpy as np

from spanloop.algorithms.closed.reaching_step import Limit, Reaching
from spanloop.algorithms.tree.target_rows import ORIENTATION, POSE, UNITS, TargetKind
from spanloop.errors import SpanloopWarning, StateError
from spanloop.loops.arguments import dof_names
from spanloop.loops.assembly.assembly import Limits, assemble
from spanloop.loops.batching import Robot
from spanloop.loops.closure_errors import mechanism_of
from spanloop.model import Model
from spanloop.reach.compiled_steps import CompiledSteps
from spanloop.reach.residuals import features
from spanloop.reach.starts import default_start, kept, random_states, size_of, turning_freely
from spanloop.topology.tree_paths import path

LIBRARY = 256  # random states
_NEAREST = 8  # restarts that begin at the random states nearest to the targets; later ones anywhere
_FAR = 1e8  # stands for no limit
_SEEDS = 8  # whose random states are kept


@dataclass(frozen=True, eq=False)
class Prepared:
    """One model, kinds of targets and fixed joints; length [m]: the size of the robot."""

    model: Model
    kinds: tuple[TargetKind, ...]
    limits: Limits
    length: float
    steps: CompiledSteps
    kept: np.ndarray  # (nq,) coordinates that restarts leave as they are
    hinges: np.ndarray  # places in q of hinges that turn without end
    dof_names: tuple[str, ...]
    _libraries: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    _start: dict[str, np.ndarray] = field(default_factory=dict)

    def start(self, robot: Robot) -> np.ndarray:
        """Where a search begins if the caller does not say: inside the limits, with loops closed if they can be."""
        if "q" not in self._start:
            q = default_start(self.model)
            if self.model.loops:
                with contextlib.suppress(StateError), warnings.catch_warnings():
                    warnings.simplefilter("ignore", SpanloopWarning)
                    q = assemble(robot, q)
            self._start["q"] = q
        return self._start["q"]

    def library(self, robot: Robot, seed: int, single: bool) -> tuple[np.ndarray, np.ndarray]:
        """Random states (LIBRARY, nq) and their features; single: by the kernel of one state."""
        found = self._libraries.get(seed)
        if found is None:
            q = random_states(self.model, self.limits, default_start(self.model), LIBRARY, seed)
            rows = [q[k : k + 1] for k in range(len(q))] if single else [q]
            there = np.concatenate([features(robot, self.kinds, x) for x in rows]) * self._scale
            if len(self._libraries) >= _SEEDS:
                self._libraries.clear()
            found = self._libraries[seed] = q, there
        return found

    def again(
        self, robot: Robot, numbers: np.ndarray, start: np.ndarray, attempt: np.ndarray, seed: int, single: bool
    ) -> np.ndarray:
        """The next start (n, nq) of rows with target numbers (n, k) that began at start (n, nq); attempt: from 1 on.

        First the random states nearest to the targets, then the others.
        """
        q, there = self.library(robot, seed, single)
        chosen = attempt % LIBRARY
        for k in range(1, _NEAREST + 1):
            own = np.flatnonzero(attempt == k)
            if len(own):
                wanted = numbers[own] * self._scale
                distance = np.einsum("nk,nk->n", there, there) - 2.0 * wanted @ there.T
                chosen[own] = np.argpartition(distance, k - 1, axis=1)[:, k - 1]
        return np.where(self.kept, start, q[chosen])

    @functools.cached_property
    def _scale(self) -> np.ndarray:
        """By which numbers of targets are multiplied before they are compared: |ΔR|² is twice an angle's square."""
        units, out = {"m": 1.0 / self.length, "rad": 1.0}, []
        for t in self.kinds:
            out += [math.sqrt(0.5)] * 9 if t.kind in (POSE, ORIENTATION) else []
            out += [] if t.kind == ORIENTATION else [units[UNITS[t.kind][0]]] * 3
        return np.array(out)


def _concerned(model: Model, kinds: tuple[TargetKind, ...]) -> np.ndarray:
    """Coordinates (nq,) of joints on the way to a target, and of those in loops or couplings with them."""
    m = mechanism_of(model)
    if not all(t.frame for t in kinds):  # the centre of mass
        return np.ones(model.nq, dtype=bool)
    on = {i for t in kinds for i in path(m.parents, m.anchors[t.frame].link)}
    around = [set(path(m.parents, c.a.link)) ^ set(path(m.parents, c.b.link)) for c in m.closures]
    around += [{i for i, _ in g.ends} for g in m.gears]
    while joined := [x for x in around if x & on and not x <= on]:
        on = on.union(*joined)
    out = np.zeros(model.nq, dtype=bool)
    for link in m.links:
        out[link.q] = link.number in on
    return out


@functools.lru_cache(maxsize=64)
def prepared(model: Model, kinds: tuple[TargetKind, ...], fixed: tuple[str, ...]) -> Prepared:
    """Kept, so that machine code stays loaded."""
    x, length = Limits(model, fixed), size_of(model)
    bounds = [np.clip(b, -_FAR, _FAR).tolist() for b in (x.lower, x.upper)]
    limits = tuple(Limit(*row) for row in zip(x.in_v.tolist(), x.in_q.tolist(), *bounds, strict=True))
    task = Reaching(kinds, limits, frozenset(np.flatnonzero(x.fixed).tolist()), length)
    return Prepared(
        model,
        kinds,
        x,
        length,
        CompiledSteps(model, task),
        kept(model, x) | ~_concerned(model, kinds),
        turning_freely(model),
        tuple(dof_names(model)),
    )
