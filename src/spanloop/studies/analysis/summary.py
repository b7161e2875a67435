"""The summary of a study: outcomes, failures with their numbers, and statistics of every number that is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.studies.chunk import FAILED, OUTCOMES

if TYPE_CHECKING:
    import xarray

STATISTICS = ("mean", "deviation", "least", "5 %", "median", "95 %", "largest")
_SHOWN = 5  # failures that are printed
_WIDE = 30  # characters of a name


@dataclass(frozen=True)
class Summary:
    """Counts of outcomes, and statistics of every number that is kept.

    outcomes: how many runs ended so. numbers: {name: {statistic: value}} of runs whose number is finite, NaN where none
    is; counts: how many these are. failures: {run: reason}, the first ones.
    """

    runs: int
    outcomes: Mapping[str, int]
    numbers: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, int]
    units: Mapping[str, str]
    failures: Mapping[int, str]
    failed: int
    seed: str

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.runs} runs: " + ", ".join(f"{n} {name}" for name, n in self.outcomes.items())
        if self.failed:
            yield f"{self.failed} failed; study.rerun(number) simulates one alone:"
            yield from (f"  run {k} ({self.seed}): {reason}" for k, reason in self.failures.items())
        if self.numbers:
            yield f"{'':{_WIDE}}" + "".join(f"{name:>12}" for name in STATISTICS) + f"{'runs':>9}"
        for name, values in self.numbers.items():
            unit = f" [{self.units[name]}]" if self.units[name] else ""
            label = f"{name}{unit}"
            label = label if len(label) < _WIDE else f"{label[: _WIDE - 2]}…"
            numbers = "".join(f"{values[s]:12.5g}" for s in STATISTICS)
            yield f"{label:{_WIDE}}{numbers}{self.counts[name]:9d}"


def summary_of(data: xarray.Dataset, seed: str) -> Summary:
    """The summary of results."""
    outcome = data["outcome"].values
    counts = {name: int((outcome == name).sum()) for name in OUTCOMES}
    numbers, known, units = {}, {}, {}
    for name, variable in data.data_vars.items():
        if variable.dims != ("run",) or variable.dtype.kind != "f":
            continue
        x = variable.values[np.isfinite(variable.values)]
        known[str(name)], units[str(name)] = len(x), str(variable.attrs.get("units", ""))
        row: tuple[Any, ...] = (np.nan,) * len(STATISTICS)
        if len(x):
            quantiles = np.quantile(x, (0.05, 0.5, 0.95))
            row = (x.mean(), x.std(ddof=1) if len(x) > 1 else 0.0, x.min(), *quantiles, x.max())
        numbers[str(name)] = dict(zip(STATISTICS, map(float, row), strict=True))
    failed = np.flatnonzero(np.isin(outcome, FAILED))
    first = {int(data["run"].values[k]): str(data["reason"].values[k]) for k in failed[:_SHOWN]}
    present = {name: n for name, n in counts.items() if n}
    return Summary(len(outcome), present, numbers, known, units, first, len(failed), seed)
