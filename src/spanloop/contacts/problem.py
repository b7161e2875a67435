"""One contact problem, or many of one size, without a mechanism: W, b and friction are given, impulses return."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from spanloop.compiler.lower import Schedule, Stage
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.contacts.solver import COUNTS, PREFIX, solver_calls
from spanloop.errors import InputError

_GIVEN = ("W", "b", "on", "soft", "coefficients", "toward")
_ONCE = Steps(0.0, 1.0, 0, 1)


class Impulses(NamedTuple):
    """What a solve returns."""

    f: np.ndarray  # (..., n, block): impulses [N s, N m s] along n, t1, t2 (and moments about them)
    residual: np.ndarray  # (...,): largest natural residual [m/s]
    steps: np.ndarray  # (...,): of Newton's method
    sweeps: np.ndarray  # (...,): of Gauss-Seidel, where Newton's method needed help


def problem_schedule(n: int, block: int) -> Schedule:
    """One solve of n points as a step."""
    size = n * block
    sizes = dict(zip(_GIVEN, (size * size, size, n, n, 3 * n, 2 * n), strict=True)) | {"f": size, "residual": 1}
    stage = Stage({**sizes, "t": 1, "h": 1})
    calls = solver_calls(stage, n, block, {name: name for name in sizes})
    state = ("f", "residual", *(PREFIX + x for x in COUNTS))
    return Schedule("contact_problem", stage.sizes, state, _GIVEN, (), (), (), tuple(calls), in_place=state)


@cache
def _rollout(n: int, block: int, dtype: str) -> Rollout:
    return Rollout(f"contact problem {n} {block}", lambda: problem_schedule(n, block), dtype=dtype, label="of contacts")


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
        Impulses (f, residual). A problem that is not solved has its residual, above the tolerance of 1e-12 m/s.

    Raises:
        InputError: shapes do not fit.
    """
    W, b, friction = np.asarray(W, dtype), np.asarray(b, dtype), np.asarray(friction, dtype)
    n, block = _sizes(W, b, friction)
    lead = b.shape[:-1]
    runs = int(np.prod(lead, dtype=int))
    k = (
        friction
        if friction.ndim > b.ndim
        else np.stack([friction, np.zeros_like(friction), np.zeros_like(friction)], -1)
    )

    def rows(x, default: float, width: int) -> np.ndarray:
        if x is None:
            return np.full((runs, width), default, dtype)
        return np.broadcast_to(np.asarray(x, dtype).reshape(-1, width), (runs, width))

    blocks = W.reshape(runs, n, block, n, block).swapaxes(2, 3).reshape(runs, -1)
    given = (blocks, b.reshape(runs, -1), rows(on, 1.0, n), rows(soft, 0.0, n), rows(k, 0.0, 3 * n))
    constants = np.concatenate((*given, rows(toward, 0.0, 2 * n)), axis=1)
    size = n * block
    state = np.zeros((runs, size + 3), dtype)
    state[:, :size] = rows(f0, 0.0, size)
    why = np.zeros(runs, np.uint8)
    _rollout(n, block, dtype).run(state, constants, np.zeros((1, 1, 0), dtype), why, _ONCE)
    return Impulses(state[:, :size].reshape(*lead, n, block), *(state[:, size + k].reshape(lead) for k in range(3)))


def _sizes(W: np.ndarray, b: np.ndarray, friction: np.ndarray) -> tuple[int, int]:
    """How many points, and the size of a block."""
    has_moments = friction.ndim > b.ndim
    n = friction.shape[-2] if has_moments else friction.shape[-1]
    block = b.shape[-1] // max(n, 1)
    if W.shape != (*b.shape, b.shape[-1]) or block not in (3, 6) or n * block != b.shape[-1]:
        raise InputError(
            f"contact problem: W is {W.shape}, b {b.shape}, friction {friction.shape}; expected (..., m, m), (..., m) "
            "and (..., n) with m = 3 n, or m = 6 n with torsion and rolling"
        )
    return n, block
