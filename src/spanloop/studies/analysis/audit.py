"""The audit of a study: the runs whose numbers are farthest from the others, simulated again alone and audited.

A study does not judge the steps of its runs. One whose steps are too long for its motion mostly has numbers far from
those of the others, so that it is among the first that are audited.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError
from spanloop.studies.chunk import FAILED
from spanloop.trajectory import Trajectory
from spanloop.trajectory.audit.findings import Audit

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, repr=False)
class StudyAudit:
    """audits: {run: its audit}, the run with the most extreme numbers first; print it."""

    audits: Mapping[int, Audit]

    @property
    def well(self) -> bool:
        """Whether no finding of these runs fails its bound."""
        return all(audit.well for audit in self.audits.values())

    def __str__(self) -> str:
        return (
            "\n".join(f"run {k}: {audit}" for k, audit in self.audits.items())
            or "no run has finished that did not fail"
        )

    def __repr__(self) -> str:
        faults = {k: audit.faults for k, audit in self.audits.items() if not audit.well}
        return f"StudyAudit({len(self.audits)} runs; not well: {faults or 'none'})"


def audit_of(data: xarray.Dataset, kept: list[str], rerun: Callable[[int], Trajectory], runs: Any) -> StudyAudit:
    """Audits of so many runs; kept: names of the numbers that are kept."""
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < 1:
        raise InputError(f"study: audit(runs={runs!r}): expected a whole number of runs, 1 at least")
    return StudyAudit({k: rerun(k).audit() for k in extreme_runs(data, kept, int(runs))})


def extreme_runs(data: xarray.Dataset, kept: list[str], most: int) -> list[int]:
    """Numbers of the runs that are farthest from the median of a number, over its quartiles' distance."""
    sound = np.flatnonzero(~np.isin(data["outcome"].values, FAILED))
    if not len(sound):
        return []
    far = np.zeros(len(sound))
    for name in kept:
        x = data[name].values[sound].reshape(len(sound), -1)
        with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # a number that no run has
            low, middle, high = np.nanquantile(x, (0.25, 0.5, 0.75), axis=0)
            share = np.abs(x - middle) / (high - low)
        share = np.where(np.abs(x - middle) > 0, np.where(high > low, share, np.inf), 0.0)
        far = np.maximum(far, np.nan_to_num(share, nan=0.0, posinf=np.inf).max(axis=1, initial=0.0))
    order = sound[np.argsort(-far, kind="stable")][:most]
    return [int(k) for k in data["run"].values[order]]
