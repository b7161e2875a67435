"""How strongly each variable of a study acts on a number that is kept.

Rank correlations [Spearman 1904] need any random design; first-order and total Sobol' indices, the shares of the
variance that a variable has alone and with all others, need blocks A, B, AB of design="saltelli" [Saltelli 2010], and
are computed by scipy.stats.sobol_indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.studies.draws.designs import Design

if TYPE_CHECKING:
    import xarray

_FEW = 3  # runs that a correlation needs at least


@dataclass(frozen=True)
class Sensitivity:
    """Of one quantity: rank correlations by variable; Sobol' indices first and total, None without a Saltelli design.

    runs: how many were used; those whose number is not finite are left out (whole blocks for Sobol' indices).
    """

    quantity: str
    ranks: Mapping[str, float]
    first: Mapping[str, float] | None
    total: Mapping[str, float] | None
    runs: int

    def __str__(self) -> str:
        head = f"{self.quantity}, {self.runs} runs"
        lines = [f"{head:30}{'rank':>10}" + (f"{'first':>10}{'total':>10}" if self.first else "")]
        for name in sorted(self.ranks, key=lambda n: -abs(self.ranks[n])):
            more = f"{self.first[name]:10.3f}{self.total[name]:10.3f}" if self.first and self.total else ""
            lines.append(f"{name:30}{self.ranks[name]:10.3f}{more}")
        return "\n".join(lines)


def sensitivity_of(data: xarray.Dataset, names: Sequence[str], quantity: str, design: Design) -> Sensitivity:
    """The sensitivity of a number that is kept, from results."""
    y = numbers_of(data, quantity)
    well = np.isfinite(y)
    used = well
    if design.kind == "saltelli":  # blocks A and B are plain samples
        used = well & (data["run"].values % (len(names) + 2) < 2)
    if used.sum() < _FEW:
        raise InputError(f"study: {quantity!r} is a number in {int(used.sum())} runs; a correlation needs {_FEW}")
    ranks = {name: _rank_correlation(data[name].values[used], y[used]) for name in names}
    first, total = _sobol(data, names, y, design) if design.kind == "saltelli" else (None, None)
    return Sensitivity(quantity, ranks, first, total, int(used.sum()))


def numbers_of(data: xarray.Dataset, name: str) -> np.ndarray:
    """A number (runs,) of results by name."""
    known = [str(n) for n, x in data.data_vars.items() if x.dims == ("run",) and x.dtype.kind == "f"]
    if name not in known:
        raise InputError(f"study: there is no number {name!r} in the results; {nearest(name, known)}")
    return np.asarray(data[name].values, float)


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's coefficient; NaN where one of both does not change."""
    a, b = _ranks(x), _ranks(y)
    if a.std() == 0.0 or b.std() == 0.0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(x: np.ndarray) -> np.ndarray:
    """Ranks (n,), those of equal numbers their mean."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found: np.ndarray = (ends - 0.5 * (counts - 1))[inverse]
    return found


def _sobol(
    data: xarray.Dataset, names: Sequence[str], y: np.ndarray, design: Design
) -> tuple[dict[str, float], dict[str, float]]:
    try:
        from scipy.stats import sobol_indices
    except ImportError:
        raise UnsupportedError("Sobol' indices need SciPy 1.11; pip install scipy") from None
    k = len(names)
    table = np.full(design.runs, np.nan)
    table[data["run"].values] = y
    blocks = table.reshape(-1, k + 2)
    blocks = blocks[np.isfinite(blocks).all(axis=1)]
    if len(blocks) < _FEW:
        raise InputError(f"study: {len(blocks)} blocks of {k + 2} runs have finite numbers; Sobol' indices need {_FEW}")
    parts: dict[str, Any] = {"f_A": blocks[None, :, 0], "f_B": blocks[None, :, 1], "f_AB": blocks.T[2:, None]}
    count = 1 << (len(blocks).bit_length() - 1)  # SciPy takes powers of two
    parts = {name: x[..., :count] for name, x in parts.items()}
    found = sobol_indices(func=parts, n=count)
    first, total = np.ravel(found.first_order), np.ravel(found.total_order)
    return dict(zip(names, map(float, first), strict=True)), dict(zip(names, map(float, total), strict=True))
