"""Designs: where in the unit cube the runs of a study are. A run's place depends on its number and the seed
alone, in a Latin hypercube also on how many runs there are.

| design | places |
|---|---|
| random | independent: Philox, counter = number of the run [Salmon 2011] |
| latin | one run in each of n slices of every axis: a permutation an axis [McKay 1979] |
| sobol | scrambled Sobol sequence of scipy.stats.qmc |
| saltelli | blocks of k + 2 runs, A, B and A with one column of B each, for Sobol' indices [Saltelli 2010] |
| grid | every combination of levels, the last variable fastest |
| table | rows that are given |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.studies.draws.distributions import Distribution

DESIGNS = ("random", "latin", "sobol", "saltelli", "grid")
_WORDS = 4  # numbers that Philox makes of one counter
_MOST = 10**9  # runs: all draws are checked before the first, 10⁸ of them in seconds


@dataclass(frozen=True, eq=False)
class Design:
    """The draws of a study: rows(first, end) has the numbers of these runs."""

    kind: str
    runs: int
    seed: int
    distributions: tuple[Distribution, ...]
    table: np.ndarray | None = None  # (runs, k), of kind "table"

    @property
    def width(self) -> int:
        """How many numbers vary."""
        return len(self.distributions) if self.table is None else self.table.shape[1]

    def rows(self, first: int, end: int) -> np.ndarray:
        """The numbers (end − first, k) of runs first .. end − 1."""
        if self.table is not None:
            return self.table[first:end]
        if self.kind == "grid":
            places = np.unravel_index(np.arange(first, end), self.levels)
            columns = [np.array(d.values)[k] for d, k in zip(self.distributions, places, strict=True)]  # type: ignore[attr-defined]
        else:
            places_in_cube = self.cube(first, end)
            columns = [d.value(places_in_cube[:, k]) for k, d in enumerate(self.distributions)]
        return np.column_stack(columns) if columns else np.empty((end - first, 0))

    def cube(self, first: int, end: int) -> np.ndarray:
        """Places (end − first, k) of these runs in the unit cube."""
        if self.kind == "random":
            return uniform(self.seed, first, end, self.width)
        if self.kind == "latin":
            inside = uniform(self.seed, first, end, self.width)
            return (self._permutations[first:end] + inside) / self.runs
        if self.kind == "sobol":
            return self._sobol(self.width, first, end)
        k = self.width
        block = k + 2
        low, high = first // block, -(-end // block)
        both = self._sobol(2 * k, low, high)
        a, b = both[:, :k], both[:, k:]
        rows = np.repeat(a[:, None], block, axis=1)
        rows[:, 1] = b
        for j in range(k):
            rows[:, 2 + j, j] = b[:, j]
        return rows.reshape(-1, k)[first - low * block : end - low * block]

    @property
    def levels(self) -> tuple[int, ...]:
        """The shape of a grid."""
        return tuple(len(d.values) for d in self.distributions)  # type: ignore[attr-defined]

    @cached_property
    def _permutations(self) -> np.ndarray:
        columns = [
            np.random.Generator(np.random.Philox(key=[self.seed, k + 1])).permutation(self.runs)
            for k in range(self.width)
        ]
        return np.column_stack(columns).astype(np.int32 if self.runs < 2**31 else np.int64)

    def _sobol(self, width: int, first: int, end: int) -> np.ndarray:
        try:
            from scipy.stats import qmc
        except ImportError:
            raise UnsupportedError(f"design={self.kind!r} needs SciPy; pip install scipy") from None
        engine: Any = qmc.Sobol(width, scramble=True, seed=np.random.default_rng(self.seed))
        if first:
            engine.fast_forward(first)
            return np.asarray(engine.random(end - first))
        one = engine.random(1)  # the first call warns of numbers that are no powers of two
        return np.concatenate([one, engine.random(end - 1)]) if end > 1 else np.asarray(one)


def uniform(seed: int, first: int, end: int, width: int) -> np.ndarray:
    """Numbers (end − first, width) of the unit interval; row k depends on the seed and first + k alone."""
    counters = -(-max(width, 1) // _WORDS)
    generator = np.random.Generator(np.random.Philox(key=[seed, 0], counter=[first * counters, 0, 0, 0]))
    return generator.random((end - first, counters * _WORDS))[:, :width]


def design_of(kind: Any, runs: Any, seed: Any, distributions: Sequence[Distribution], names: Sequence[str]) -> Design:
    """The design of sl.Study's arguments, checked."""
    if kind not in DESIGNS:
        raise InputError(f"study: design is {kind!r}; expected one of {', '.join(map(repr, DESIGNS))}, or give table=")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**63:
        raise InputError(f"study: seed is {seed!r}; expected a whole number from 0 to 2^63 - 1")
    own = tuple(distributions)
    if kind == "grid":
        for name, d in zip(names, own, strict=True):
            if not hasattr(d, "values"):
                raise InputError(
                    f"study: {name!r} is {d}; a grid has levels. Use sl.studies.Levels(low, high, count) or Choice"
                )
        sizes: list[int] = [len(d.values) for d in own]  # type: ignore[attr-defined]
        size = math.prod(sizes)
        if size > _MOST:
            raise InputError(f"study: the grid has {size} points; a study has at most {_MOST} runs. Use fewer levels")
        if runs is not None and runs != size:
            raise InputError(f"study: runs is {runs}, and the grid has {size} points; leave runs out")
        return Design("grid", size, int(seed), own)
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < 1:
        raise InputError(f"study: runs is {runs!r}; expected a whole number, at least 1")
    if runs > _MOST:
        raise InputError(
            f"study: runs is {runs}; a study has at most {_MOST}. Make several studies, each with a seed and a store"
        )
    block = len(own) + 2
    if kind == "saltelli" and runs % block:
        raise InputError(
            f"study: runs is {runs}; design='saltelli' of {len(own)} variables has blocks of {block} runs. "
            f"Try runs={block} * {max(1, round(int(runs) / block))}"
        )
    return Design(str(kind), int(runs), int(seed), own)
