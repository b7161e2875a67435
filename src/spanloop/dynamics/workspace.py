"""The workspace of a frame: where it is at states drawn inside the joint limits, with loops closed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, SpanloopWarning, StateError, listed
from spanloop.loops.assembly.assembly import Limits
from spanloop.loops.batching import values
from spanloop.loops.independent_dofs import structure_of
from spanloop.reach.starts import default_start, random_states

_MOST = 1_000_000  # samples
_STEPS = 12  # of each attempt to close loops from a neighbour
_FEW = 0.05  # of the states: fewer that remain are worth a warning
_FIRST, _GROWTH = 16, 2  # states of the first round, and how many times more each round has


@dataclass(frozen=True, eq=False)
class Workspace:
    """Positions of a frame at states inside the joint limits: robot.workspace(...)."""

    robot: Any  # the Dynamics
    frame: str
    points: np.ndarray  # (n, 3) in the world [m]
    q: np.ndarray  # (n, nq) the states
    tried: int  # states that were drawn; those whose loops do not close are left out

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"Workspace({self.frame!r}, {len(self)} points of {self.tried} states)"

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest coordinates (3,) of all points [m]; NaN without any."""
        if not len(self):
            return np.full(3, np.nan), np.full(3, np.nan)
        return self.points.min(axis=0), self.points.max(axis=0)


def workspace(
    robot: Any, frame: str, samples: int, seed: int, start: ArrayLike | None, fixed: str | Sequence[str]
) -> Workspace:
    """Arguments as of Dynamics.workspace."""
    model, name = robot.model, robot.model.frame(frame).name
    if not isinstance(samples, int | np.integer) or isinstance(samples, bool) or not 0 < samples <= _MOST:
        raise InputError(f"workspace: samples is {samples!r}; expected a whole number from 1 to {_MOST}")
    given = (fixed,) if isinstance(fixed, str) else tuple(fixed)
    bends = (j.name for j in model.joints if j.kind.bends and j.name not in given)
    names = (*given, *bends)  # flexible bodies stay as they are at the start
    limits = Limits(model, names, are_kept=True)
    base = _start(robot, start)
    drawn = random_states(model, limits, base, int(samples), seed)
    q = _closed(robot, base, drawn, names) if model.loops or model.couplings else drawn
    return Workspace(robot, name, robot.pose(q, name)[:, :3, 3], q, int(samples))


def _start(robot: Any, start: ArrayLike | None) -> np.ndarray:
    """q (nq,) from which joints move: closed, inside the limits."""
    guess = default_start(robot.model) if start is None else np.asarray(start, dtype=float)
    if guess.shape != (robot.model.nq,):
        raise InputError(f"workspace: start has shape {guess.shape}; expected ({robot.model.nq},)")
    if not (robot.model.loops or robot.model.couplings):
        return guess
    try:
        return robot.assemble(guess)
    except StateError as error:
        raise StateError.of(f"workspace: start: {error.where or 'assemble'}", error.refusal) from None


def _closed(robot: Any, base: np.ndarray, drawn: np.ndarray, fixed: tuple[str, ...]) -> np.ndarray:
    """States (n, nq) with closed loops, in which independent joints are where they were drawn.

    From base outward, each from its nearest neighbour among those found, so that the assembly stays the same; those
    that lie beyond a position where the independent joints do not determine the others are left out.
    """
    names, own, dofs = _independent(robot, base)
    scale = np.maximum(np.ptp(drawn[:, own], axis=0), 1e-9)
    order = np.argsort(np.linalg.norm((drawn[:, own] - base[own]) / scale, axis=1))
    known, round_size, open_states = base[None], _FIRST, 0
    while len(order):
        now, order = order[:round_size], order[round_size:]
        wanted = drawn[now][:, own]
        distances = np.linalg.norm((wanted[:, None] - known[None, :, own]) / scale, axis=2)
        guess = known[np.argmin(distances, axis=1)].copy()
        guess[:, own] = wanted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpanloopWarning)  # of states that cannot be closed
            found = robot.assemble(np.concatenate([base[None], guess]), [*names, *fixed], max_steps=_STEPS)[1:]
        found = found[np.isfinite(found).all(axis=1)]
        open_states += len(now) - len(found)
        known = np.concatenate([known, found[_side(robot, found, dofs) == _side(robot, base[None], dofs)]])
        round_size *= _GROWTH
    if len(known) - 1 < _FEW * len(drawn):
        _warn_of_few(len(known) - 1, len(drawn), open_states, names)
    return known[1:]


def _warn_of_few(found: int, tried: int, open_states: int, independent: list[str]) -> None:
    warnings.warn(
        f"workspace: {found} of {tried} states remain: the loops of {open_states} do not close inside the limits, and "
        f"{tried - open_states - found} lie beyond a singular position of {listed(map(repr, independent), 6)}, which "
        "are drawn. Give limits within which the loops close, model.with_joint(name, limits=...), another start, or "
        "fewer fixed joints",
        SpanloopWarning,
        stacklevel=5,
    )


def _independent(robot: Any, base: np.ndarray) -> tuple[list[str], list[int], list[int]]:
    """Joints whose DoF are all independent, their places in q, and all independent DoF; actuated ones if possible."""
    model, dofs = robot.model, robot.independent_coordinates(base).dofs
    names: list[str] = []
    places: list[int] = []
    for joint in model.joints:
        s, v = model.q_slice(joint.name), model.v_slice(joint.name)
        if joint.kind.nv and set(range(v.start, v.stop)) <= set(dofs):
            names.append(joint.name)
            places += range(s.start, s.stop)
    return names, places, list(dofs)


def _side(robot: Any, q: np.ndarray, dofs: list[int]) -> np.ndarray:
    """The sign (n,) of the determinant of the rows for the dependent DoF: it changes where these lose their hold."""
    if not len(q):
        return np.zeros(0)
    rows = structure_of(robot, q)
    J = np.delete(rows.scaled(values(robot, "closure_jacobian", q)), dofs, axis=2)
    return np.linalg.slogdet(J)[0] if J.shape[1] == J.shape[2] else np.zeros(len(q))
