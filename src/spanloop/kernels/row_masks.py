"""Masks of redundant rows for every set of loops that a run may close, kept for further runs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from spanloop.algorithms.closed.row_masks import row_masks as masks_of_sets
from spanloop.algorithms.closed.row_masks import undetermined_rows as undetermined_in_sets
from spanloop.errors import UnsupportedError
from spanloop.kernels.spec import compiled_closures, of_model
from spanloop.model import Model
from spanloop.topology import Mechanism, mechanism

MOST_SETS = 64
_GRID = 100.0  # coordinates of `near` are rounded to this part of a radian, or of a loop's length


def row_masks(
    model: Model,
    names: Sequence[str],
    *,
    closed: Collection[str] = (),
    near: Sequence[float] | np.ndarray | None = None,
    captures: Sequence[str] = (),
    sets: Sequence[Collection[str]] | None = None,
) -> np.ndarray:
    """Return masks (sets, switched rows) for the kernel's input `active`, a row for each set of closed loops.

    1 for every row that the set needs, -1 for a row of a closed loop that depends on others, 0 for rows of open loops.
    Columns are those of mechanism.switched_rows. The array is shared: it cannot be written to.

    Args:
        names: switchable loops and couplings that may be closed or open, in any combination. In row k of the answer
            names[i] is closed where bit i of k is 1.
        closed: switchable loops and couplings that are closed in every set; all others are open.
        near: a state q (nq,) of the assembly that the run is in; None: of those near the neutral state.
        captures: loops and couplings that capture the pose they find: any state closes them.
        sets: the sets themselves, each the closed ones of `names`, instead of all combinations; a row for each.

    Raises:
        UnsupportedError: these are more than 64 sets.
    """
    return _masks(model, *_question(model, names, closed, near, captures, sets))


def undetermined_rows(
    model: Model,
    names: Sequence[str],
    *,
    closed: Collection[str] = (),
    near: Sequence[float] | np.ndarray | None = None,
    captures: Sequence[str] = (),
    sets: Sequence[Collection[str]] | None = None,
) -> tuple[frozenset[int], ...]:
    """Return for each set of closed loops the rows whose forces are not determined; arguments as row_masks.

    They depend on rows of other loops, or on each other. Rows without any effect, as those out of the plane of a
    planar mechanism, do not count: no load acts along them.
    """
    return _undetermined(model, *_question(model, names, closed, near, captures, sets))


_Question = tuple[tuple[frozenset[str], ...], tuple[float, ...] | None, tuple[str, ...]]


def _question(model: Model, names: Sequence[str], closed: Collection[str], near, captures, sets) -> _Question:
    """Sets of closed loops, the state on a coarse grid, and those of the loops that capture."""
    chosen = combinations(names) if sets is None else [frozenset(x) for x in sets]
    if len(chosen) > MOST_SETS:
        _refuse(names, len(chosen))
    state = None if near is None else _rounded(mechanism(model), np.asarray(near, float))
    wanted = tuple(x | frozenset(closed) for x in chosen)
    return wanted, state, tuple(sorted(frozenset(chain.from_iterable(wanted)).intersection(captures)))


def combinations(names: Sequence[str]) -> list[frozenset[str]]:
    """All sets of these names: names[i] is in set k where bit i of k is 1."""
    if len(names) > MOST_SETS.bit_length() - 1:
        _refuse(names, 2 ** len(names))
    return [frozenset(x for i, x in enumerate(names) if k >> i & 1) for k in range(2 ** len(names))]


def _refuse(names: Sequence[str], count: int) -> None:
    raise UnsupportedError(
        f"{len(names)} loops and couplings ({', '.join(map(repr, names))}) make {count} sets of closed loops; a kernel "
        f"has the redundant rows of at most {MOST_SETS}. Switch at most {MOST_SETS.bit_length() - 1} of them in one "
        "run, and continue it with the others: run.continued(...)"
    )


@functools.lru_cache(maxsize=256)
def _masks(
    model: Model, sets: tuple[frozenset[str], ...], near: tuple[float, ...] | None, captures: tuple[str, ...]
) -> np.ndarray:
    from spanloop.compiler.runtime import machine

    state = None if near is None else np.array(near)
    with machine.reported(f"analysing the loops {of_model(model)}"):
        found = masks_of_sets(mechanism(model), sets, state, captures, compiled_closures(model))
    found.setflags(write=False)
    return found


@functools.lru_cache(maxsize=256)
def _undetermined(
    model: Model, sets: tuple[frozenset[str], ...], near: tuple[float, ...] | None, captures: tuple[str, ...]
) -> tuple[frozenset[int], ...]:
    state = None if near is None else np.array(near)
    return tuple(undetermined_in_sets(mechanism(model), sets, state, captures, compiled_closures(model)))


def _rounded(m: Mechanism, q: np.ndarray) -> tuple[float, ...]:
    """A state on a coarse grid, so that runs from neighbouring states share their masks."""
    out: list[float] = []
    for link in m.links:
        own, neutral, scale = tuple(map(float, q[link.q])), link.kind.neutral(), np.array(m.dof_lengths[link.v]) / _GRID
        with contextlib.suppress(UnsupportedError):  # poses of a general joint have no difference
            step = np.round(np.array(link.kind.minus(own, neutral)) / scale) * scale
            own = tuple(map(float, link.kind.plus(neutral, tuple(step.tolist()))))
        out += own
    return tuple(out)
