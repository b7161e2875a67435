"""Findings on the events of a run: impacts that give energy, momentum that they lose, closures that pull."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spanloop.trajectory.audit.findings import NOT_JUDGED, NOT_WELL, WELL, Finding, verdict_on
from spanloop.trajectory.audit.impacts import Impacts, OneSided, impacts, one_sided, stops
from spanloop.trajectory.events import STOP

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_AT_REST = 1e-18  # J for a kilogram: nothing moves
_PULL = 1e-6  # of the largest force or impulse of a one-sided closure: it may pull by this much where it opens


def event_findings(run: Trajectory, energy: float, momentum: float, closure: float) -> Iterator[Finding]:
    """The findings on impacts and one-sided closures.

    Bounds: energy of an impact and momentum, relative to what is at stake; closure [rad, or of the loop's length].
    """
    found = impacts(run)
    if found is not None:
        yield _impacts(run, found, energy)
        if np.isfinite(found.momentum).any():
            yield _momentum(run, found, momentum)
    closures = one_sided(run)
    yield from _one_sided(closures, closure)
    impulses = [(x, x.impulse_pull, x.impulse) for x in (*closures, *stops(run))]
    if impulses:
        yield _pulling("impulses", "pull with impulses of up to", "N s", impulses)


def _impacts(run: Trajectory, found: Impacts, share: float) -> Finding:
    gain = found.after - found.before
    stake = max(float(found.before.max()), float(np.nanmax(run.energy[..., 0], initial=0.0)))
    bound = max(share * stake, _AT_REST * run.model.mass)
    own = np.where(_is_driven(run, found.rows), np.minimum(gain, 0.0), gain)
    value, k = float(own.max()), int(np.argmax(own))
    off = np.abs(gain + found.said)
    hits = int(np.sum((np.abs(gain) > bound) | (found.jump > bound)))
    total = f"{0.0 - gain.sum():.4g} J" if np.any(np.abs(gain) > bound) else "no energy"
    words = f"{hits} impact{'' if hits == 1 else 's'} take{'s' if hits == 1 else ''} {total}."
    words = words if hits else "No event changes a velocity."
    if value > bound:
        words += f" One adds {value:.2g} J{_when(run, found.rows[k])} (bound {bound:.2g} J)."
    elif hits:
        words += f" None adds energy (bound {bound:.2g} J)."
    if np.any(np.abs(found.brought) > bound):
        brought, taken = (float(x[x > 0.0].sum()) for x in (found.brought, -found.brought))
        words += f" Bodies that appear bring {brought:.4g} J, those that vanish take {taken:.4g} J along."
    verdict = verdict_on(value, bound, 0.0)
    if off.max() > 10.0 * bound:
        k, verdict, value = int(np.argmax(off)), NOT_WELL, max(value, float(off.max()))
        said = f"{found.said[k]:.6g} J, and it is {-gain[k]:.6g} J"
        words += f" The table says that the impact{_when(run, found.rows[k])} takes {said}."
    return Finding("impacts", value, bound, "J", verdict, words)


def _is_driven(run: Trajectory, rows: np.ndarray) -> np.ndarray:
    """Whether each row of the table is an impact in a model with surfaces that move: these may add energy."""
    moves = any(any(c.surface_velocity) for c in run.model.contacts)
    return np.array([moves and str(run.events.kind[k]) == "impact" for k in rows], bool)


def _momentum(run: Trajectory, found: Impacts, bound: float) -> Finding:
    k = int(np.nanargmax(found.momentum))
    value = float(found.momentum[k])
    words = (
        f"Impacts of bodies that nothing holds change their momentum by up to {value:.2g} of what they can carry"
        f"{_when(run, found.rows[k])} (bound {bound:.2g})."
    )
    return Finding("impact momentum", value, bound, "1", verdict_on(value, bound, 0.0), words)


def _one_sided(closures: list[OneSided], bound: float) -> Iterator[Finding]:
    if not closures:
        return
    worst = min(closures, key=lambda x: x.gap / x.length)
    value = max(0.0, -worst.gap / worst.length)
    words = f"One-sided closures overlap by up to {max(0.0, -worst.gap):.2g} {worst.unit}, in {worst.name!r} (bound "
    words += f"{bound * worst.length:.2g} {worst.unit})."
    yield Finding("gaps", value, bound, "rad, or of the loop's length", verdict_on(value, bound, 0.0), words)
    forces = [(x, x.pull, x.force) for x in closures]
    yield _pulling("pulls", "pull by up to", "N", forces)


def _pulling(name: str, verb: str, unit: str, found: list[tuple[OneSided, float, float]]) -> Finding:
    """The finding on the worst of closures, of each the pull and the largest force or impulse. unit: of N or N s."""
    worst, pull, largest = max(found, key=lambda x: x[1] / x[2] if x[2] else 0.0)
    share = pull / largest if largest else 0.0
    unit = unit if worst.unit == "m" else unit.replace("N", "N m")
    what = "Stops" if worst.name.endswith(STOP) else "One-sided closures"
    words = f"{what} {verb} {pull:.2g} {unit}, {worst.name!r} (bound {_PULL * largest:.2g} {unit}, "
    words += f"{_PULL:g} of the largest)."
    return Finding(name, share, _PULL, "1", verdict_on(share, _PULL, 0.0), words)


def worst_of(findings: Iterable[Iterable[Finding]], labels: Iterable[str] | None = None) -> list[Finding]:
    """For each name the finding that is farthest from well. labels: of the groups; they follow the sentences."""
    groups = list(findings)
    words = [""] * len(groups) if labels is None else list(labels)
    found: dict[str, list[Finding]] = {}
    for group, label in zip(groups, words, strict=True):
        for f in group:
            found.setdefault(f.name, []).append(replace(f, sentence=f"{f.sentence}{label}"))
    return [max(same, key=_badness) for same in found.values()]


def _badness(f: Finding) -> tuple[int, float]:
    share = f.value / f.bound if f.bound else f.value
    return [WELL, NOT_JUDGED, NOT_WELL].index(f.verdict), -np.inf if np.isnan(share) else share


def _when(run: Trajectory, row: int) -> str:
    which = f" of run {run.events.run[row]}" if run.batch else ""
    return f", at {run.events.time[row]:g} s{which}"
