"""`robot.inverse_kinematics`: states whose frames are where the targets say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms.tree.target_rows import METERS
from spanloop.compiler.runtime.arrays import converted
from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.errors import InputError, Reason, Refusal, StateError, listed, nearest
from spanloop.loops.assembly.assembly import Limits, assemble
from spanloop.loops.assembly.path_following import refuse_velocity_loops
from spanloop.loops.batching import Refusals, Robot, faulty_states, resolution
from spanloop.model import Model
from spanloop.model.user_input import by_name
from spanloop.reach.goal import Goal, goal_of
from spanloop.reach.nearest import Nearest
from spanloop.reach.prepared import Prepared, prepared
from spanloop.reach.residuals import CLOSED, Residual, is_closed, residuals
from spanloop.reach.result import Reach, Residuals
from spanloop.reach.search import Found, search
from spanloop.reach.starts import default_start, wrapped

FUNCTION = "inverse_kinematics"
TOLERANCE = 1e-9  # m and rad
_FAR = 100.0  # robots' sizes: targets farther away weigh less
_NEAR = 1e-9  # rad or m: this near to a limit is at it, for the report


def inverse_kinematics(
    robot: Robot,
    targets: Any,
    start: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    fixed: str | Sequence[str] = (),
    tolerance: float | None = None,
    restarts: int = 50,
    seed: int = 0,
) -> Reach:
    """As Dynamics.inverse_kinematics."""
    check_options(FUNCTION, tolerance, restarts, seed)
    task = Task.of(FUNCTION, robot, targets, start, fixed, tolerance)
    goal, count = task.goal, math.prod(task.goal.leading)
    good = np.array([k for k in range(count) if k not in task.refusals], dtype=int)
    start_rows = task.limits.within(task.start[good])
    numbers = goal.numbers[good]

    def again(rows: np.ndarray, attempt: np.ndarray) -> np.ndarray:
        return task.own.again(robot, numbers[rows], start_rows[rows], attempt, seed, count == 1)

    found = search(task.own.steps, task.constants(numbers, start_rows), start_rows, task.enough, restarts, again)
    if (robot.model.loops or robot.model.couplings) and not found.arrived.all():
        task.approach(found, good)
    q = wrapped(found.q, start_rows, task.own.hinges)
    closed, open_rows = task.close(q, start_rows)
    refusals = task.refusals | {int(good[k]): refusal for k, refusal in open_rows.items()}
    return task.result(Rows(good, q, closed, found.steps, found.restarts), refusals)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of states that were searched: their numbers in the batch, q (n, nq), whether loops are closed, effort."""

    number: np.ndarray
    q: np.ndarray
    closed: np.ndarray
    steps: np.ndarray
    restarts: np.ndarray


@dataclass(frozen=True, eq=False)
class Task:
    """Targets of one robot, its limits, and compiled steps towards them; start (n, nq)."""

    function: str
    robot: Robot
    goal: Goal
    own: Prepared
    fixed: tuple[str, ...]
    tolerance: float
    start: np.ndarray
    refusals: Refusals

    @staticmethod
    def of(
        function: str,
        robot: Robot,
        targets: Any,
        start: ArrayLike | Mapping[str, ArrayLike] | None,
        fixed: str | Sequence[str],
        tolerance: float | None,
        whole: bool = True,
    ) -> Task:
        """Arguments checked; whole: the start has the batch axes of the targets, else it is one state."""
        model = robot.model
        refuse_velocity_loops(model, function)
        given = _joints(model, (fixed,) if isinstance(fixed, str) else tuple(fixed))
        bends = tuple(j.name for j in model.joints if j.kind.bends and j.name not in given)
        names = (*given, *bends)  # nothing commands the modes of a flexible body: they stay as they are at the start
        if isinstance(start, Mapping):
            start = by_name(model, start, default_start(model), "q", function)
        q = np.zeros(model.nq) if start is None else converted(function, "start", model.nq, start, np.dtype(float))
        goal = goal_of(function, model, targets, q.shape[:-1] if whole else ())
        own = prepared(model, goal.kinds, names)
        q = own.start(robot) if start is None else q
        leading = goal.leading if whole else ()
        rows = np.broadcast_to(q, (*leading, model.nq)).reshape(math.prod(leading), model.nq)
        faults = faulty_states(robot, {"q": rows}) if start is not None else {}
        faults = {k: Refusal(x.reason, f"start: {x.sentence}") for k, x in faults.items()}
        refusals = {**goal.refusals, **_beyond_limits(model, names, rows), **faults}
        return Task(function, robot, goal, own, names, _tolerance(function, robot, own, tolerance), rows, refusals)

    @property
    def limits(self) -> Limits:
        """Of the joints that may move."""
        return self.own.limits

    @property
    def weights(self) -> list[float]:
        """Of squares in m² and rad²."""
        metres = self.own.length**-2
        return [w * (metres if unit == METERS else 1.0) for w, unit in self.goal.weights]

    @property
    def enough(self) -> float:
        """The sum of weighted squares below which every target is met."""
        return 0.25 * min(self.weights) * self.tolerance**2

    def constants(self, numbers: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Rows that steps take: numbers of the targets, weights, tolerances, joints of q (n, nq) that rest."""
        far = np.abs(numbers).max(axis=1, initial=1.0) / (_FAR * max(self.own.length, 1.0))
        weights = np.array(self.weights) / np.maximum(far, 1.0)[:, None] ** 2  # keeps costs within range
        tolerances = np.tile([0.5 * self.tolerance, 0.5 * CLOSED], (len(numbers), 1))
        return np.concatenate([numbers, weights, tolerances, q[:, self.own.steps.rest]], axis=1)

    def approach(self, found: Found, numbers: np.ndarray) -> None:
        """Replace q of rows that did not arrive by the nearest closed state that any of their records leads to."""
        rows = np.concatenate([k for k, _ in found.records])
        candidates = np.concatenate([q for _, q in found.records])
        left = ~found.arrived[rows]
        rows, candidates = rows[left], candidates[left]
        q, cost = Nearest(self.robot, self.goal, self.limits, self.weights).found(candidates, numbers[rows])
        worst_first = np.argsort(-cost, kind="stable")
        worst_first = worst_first[np.isfinite(cost[worst_first])]
        found.q[rows[worst_first]] = q[worst_first]

    def close(self, q: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, Refusals]:
        """Close the loops of states q (n, nq) that the search left open, in place; which are closed, why others not.

        Those that do not close are replaced by their start, closed.
        """
        closed, refusals = is_closed(self.robot, q), Refusals()
        for k in np.flatnonzero(~closed):
            for guess in (q[k], start[k]):
                try:
                    q[k] = assemble(self.robot, guess, self.fixed)
                    closed[k] = True  # as far as assemble can: it has a note where a file's rounding leaves more
                    refusals.pop(int(k), None)
                    break
                except StateError as error:
                    refusals[int(k)] = error.refusal
        return closed, refusals

    def result(self, rows: Rows, refusals: Refusals, stopped: str = "") -> Reach:
        """The result of all rows from those that were searched; what it claims is computed here, from the poses."""
        robot, leading, q = self.robot, self.goal.leading, rows.q
        found = residuals(robot, self.goal, q, rows.number)
        converged = rows.closed & (self.limits.within(q) == q).all(axis=1)
        for r in found.values():
            converged &= r.within(self.tolerance)
        at = np.zeros((len(q), robot.model.nv), bool)
        at[:, self.limits.in_v] = self._at_limits(q)

        def whole(some: np.ndarray, nothing: Any) -> np.ndarray:
            out = np.full((math.prod(leading), *some.shape[1:]), nothing, some.dtype)
            out[rows.number] = some
            out[list(refusals)] = nothing
            return out.reshape((*leading, *some.shape[1:]))

        counts = [whole(x, 0) for x in (converged, rows.steps, rows.restarts)]
        residual = Residuals((n, Residual(whole(r.distance, np.nan), whole(r.angle, np.nan))) for n, r in found.items())
        refuse_states(self.function, list(refusals), refusals.__getitem__, leading)
        plain = counts if leading else [x.item() for x in counts]
        names = self.own.dof_names
        return Reach(
            whole(q, np.nan), plain[0], residual, plain[1], plain[2], whole(at, False), names, self.function, stopped
        )

    def _at_limits(self, q: np.ndarray) -> np.ndarray:
        x = q[:, self.limits.in_q]
        at: np.ndarray = (x <= self.limits.lower + _NEAR) | (x >= self.limits.upper - _NEAR)
        return at


def _tolerance(function: str, robot: Robot, own: Prepared, given: float | None) -> float:
    """By default TOLERANCE, or what the robot's kernels resolve; less than that is refused."""
    floor = 100.0 * resolution(robot) * own.length
    if given is None:
        return max(TOLERANCE, floor)
    if given < floor:
        kind = robot.kernel("closure_error").dtype
        raise InputError(
            f"{function}: tolerance is {given:.3g}; in {kind} this robot's poses are known to {floor:.1e} [m, rad], "
            "the least that can be asked for"
        )
    return float(given)


def _beyond_limits(model: Model, fixed: Sequence[str], q: np.ndarray) -> Refusals:
    """The rows of q (n, nq) with a fixed joint beyond its limit: no state with that coordinate is inside the limits."""
    own = Limits(model)
    at = (own.within(q) != q).any(axis=1) if fixed else np.zeros(0, bool)
    found = {int(k): own.beyond(q[k], fixed) for k in np.flatnonzero(at)}
    return {
        k: Refusal(Reason.OTHER, f"fixed joints keep their coordinates, and {listed(x)}: start inside, or fix fewer")
        for k, x in found.items()
        if x
    }


def _joints(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    joints = [j.name for j in model.joints]
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{FUNCTION}: fixed holds {name!r}; expected names of joints")
        if name not in joints:
            whole = [x for x in joints if name.startswith((f"{x}[", f"{x}."))]
            what = f"expected the whole joint {whole[0]!r}, no single DoF" if whole else nearest(name, joints)
            raise InputError(f"{FUNCTION}: fixed names {name!r}, which is no joint of {model.name!r}; {what}")
    return tuple(names)


def check_options(function: str, tolerance: object, restarts: object, seed: object) -> None:
    """Refuse options that no search has."""
    number = isinstance(tolerance, int | float | np.integer | np.floating) and not isinstance(tolerance, bool)
    if tolerance is not None and not (number and 0.0 < tolerance < np.inf):  # type: ignore[operator]
        raise InputError(f"{function}: tolerance is {tolerance!r}; must be a positive number [m, rad]")
    for name, x in (("restarts", restarts), ("seed", seed)):
        if isinstance(x, bool) or not isinstance(x, int | np.integer) or x < 0:
            raise InputError(f"{function}: {name} is {x!r}; must be a whole number, 0 or more")
