"""Contact problems without a mechanism: W, b and friction are given, impulses return."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from spanloop.compiler.lower import Schedule, Stage
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.contacts.solver.rounds import COUNTS, solver_calls
from spanloop.contacts.solver.solver_arrays import PREFIX
from spanloop.errors import InputError
from spanloop.kernels import source_hash

_ONCE = Steps(0.0, 1.0, 0, 1)


class Impulses(NamedTuple):
    """What a solve returns."""

    f: np.ndarray  # (..., n, block): impulses [N s, N m s] along n, t1, t2 (and moments about them)
    residual: np.ndarray  # (...,): largest natural residual [m/s]
    steps: np.ndarray  # (...,): of Newton's method
    sweeps: np.ndarray  # (...,): of Gauss-Seidel, where Newton's method needed help


def _sizes(n: int, block: int) -> dict[str, int]:
    """Arrays that are given, in the order of a row."""
    size = n * block
    return {"W": size * size, "b": size, "on": n, "soft": n, "coefficients": 3 * n, "toward": 2 * n}


@cache
def _rollout(n: int, block: int, dtype: str) -> Rollout:
    """One solve of n points as a step."""

    def schedule() -> Schedule:
        given = _sizes(n, block)
        stage = Stage({**given, "f": n * block, "residual": 1, "t": 1, "h": 1})
        calls = tuple(solver_calls(stage, n, block, {name: name for name in (*given, "f", "residual")}))
        state = ("f", "residual", *(PREFIX + x for x in COUNTS))
        return Schedule("contact_problem", stage.sizes, state, tuple(given), (), (), (), calls, in_place=state)

    return Rollout(f"contact problem {n} {block} {source_hash()}", schedule, dtype=dtype, label="of contacts")


def solve(W, b, friction, f0=None, *, on=None, soft=None, toward=None, dtype: str = "float64") -> Impulses:
    """The impulses f of contact problems u = W f + b with circular friction cones.

    0 ≤ u_n ⊥ f_n ≥ 0, |f_t| ≤ µ f_n, and f_t opposes u_t where the point slips.

    Args:
        W: (..., n·block, n·block) Delassus matrices [1/kg], symmetric and positive semidefinite.
        b: (..., n·block) velocities without impulses [m/s]; of a point along n, t1, t2, and with torsion and rolling
            the angular velocities about them [rad/s] (block 6).
        friction: (..., n) µ, or (..., n, 3) with torsion and rolling [m].
        f0: (..., n, block) a guess; redundant impulses stay as near to it as they can. By default 0.
        on: (..., n) 0 for points that take no part. soft: (..., n) added to W_nn [1/kg]. toward: (..., n, 2) the
            direction of a slip that is known, zeros for others.

    Returns:
        Impulses. A problem that is not solved has its residual, above 1e-12 m/s and the rounding of W f + b.

    Raises:
        InputError: shapes do not fit.
    """
    W, b, friction = (np.asarray(x, dtype) for x in (W, b, friction))
    n, block = _points(W, b, friction)
    lead, size = b.shape[:-1], n * block
    runs = int(np.prod(lead, dtype=int))

    def rows(x, default: float, width: int) -> np.ndarray:
        if x is None:
            return np.full((runs, width), default, dtype)
        return np.broadcast_to(np.asarray(x, dtype), (*lead, *np.shape(x)[len(lead) :])).reshape(runs, width)

    k = friction if friction.ndim > b.ndim else np.stack([friction, *(np.zeros_like(friction),) * 2], -1)
    blocks = W.reshape(runs, n, block, n, block).swapaxes(2, 3).reshape(runs, -1)
    points = (rows(on, 1.0, n), rows(soft, 0.0, n), rows(k, 0.0, 3 * n), rows(toward, 0.0, 2 * n))
    constants = np.concatenate((blocks, b.reshape(runs, -1), *points), axis=1)
    state = np.zeros((runs, size + 3), dtype)
    state[:, :size] = rows(f0, 0.0, size)
    _rollout(n, block, dtype).run(state, constants, np.zeros((1, 1, 0), dtype), np.zeros(runs, np.uint8), _ONCE)
    return Impulses(state[:, :size].reshape(*lead, n, block), *(state[:, size + k].reshape(lead) for k in range(3)))


class OneProblem:
    """A problem of n points that is solved again and again, in arrays of its own: a call has little overhead.

    Fill W (n, 3, n, 3), b (n, 3), friction (n,) and f (n, 3), the guess, then `solve()` puts the impulses in f and
    returns the residual [m/s].
    """

    def __init__(self, n: int):
        given, size = _sizes(n, 3), 3 * n
        row, state = np.zeros((1, sum(given.values()))), np.zeros((1, size + 3))
        ends = np.cumsum(list(given.values()))
        parts = {name: row[0, end - count : end] for (name, count), end in zip(given.items(), ends, strict=True)}
        parts["on"][:] = 1.0
        self.W = parts["W"].reshape(n, n, 3, 3).swapaxes(1, 2)
        self.b, self.friction = parts["b"].reshape(n, 3), parts["coefficients"].reshape(n, 3)[:, 0]
        self.f, self._residual = state[0, :size].reshape(n, 3), state[0, size:]
        self._step = _rollout(n, 3, "float64").bound_step(state, row)

    def solve(self) -> float:
        """Impulses in f, from those that are there on; the largest natural residual [m/s]."""
        self._step()
        return float(self._residual[0])


def _points(W: np.ndarray, b: np.ndarray, friction: np.ndarray) -> tuple[int, int]:
    """How many points, and the size of a block."""
    has_moments = friction.ndim > b.ndim
    n = (friction.shape[-2] if has_moments else friction.shape[-1]) if friction.ndim else 0
    block = b.shape[-1] // max(n, 1) if b.ndim else 0
    if W.shape != (*b.shape, *b.shape[-1:]) or block not in (3, 6) or n * block != b.shape[-1]:
        raise InputError(
            f"contact problem: W is {W.shape}, b {b.shape}, friction {friction.shape}; expected (..., m, m), (..., m) "
            "and (..., n) with m = 3 n, or m = 6 n with torsion and rolling"
        )
    return n, block
