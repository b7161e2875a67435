"""Two runs, one of which continues the other, as one Trajectory: segments with models of their own, one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spanloop.simulation.continuation.closing_impact import Impact
from spanloop.simulation.continuation.joined_events import joined_events
from spanloop.trajectory import Segment, Trajectory


def joined(
    first: Trajectory,
    closed: Sequence[frozenset[str]],
    later: Trajectory,
    goes_on: np.ndarray,
    hit: Impact,
    words: str,
) -> Trajectory:
    """One Trajectory; goes_on (n,): the runs that `later` continues; the others have ended before it.

    closed: names of the loops and couplings that are closed at the end of each of them.
    hit: what closing loops did to the states between both. words: what was carried over.
    """
    alive = goes_on.reshape(first.batch)
    begins = _with_ends(first, float(later.times[0]))
    own = [*_own(first, begins), *(_left_out(s, alive) for s in _own(later, later.segments))]
    ends = None if later.ends is None else _left_out(later.ends, alive, later.ends.times)
    outcomes = [b if on else a for a, b, on in zip(first.outcomes, later.outcomes, goes_on, strict=True)]
    counts = [sum(map(len, x)) for x in (begins, later.segments)]
    return Trajectory(
        later.model,
        tuple(own),
        tuple(outcomes),
        _settings(first.settings, later.settings, words),
        forces=_forces(first, later, counts, alive),
        ends=ends,
        residual=_residual(first, later, alive),
        events=joined_events(first, closed, later, goes_on, hit),
        earlier=(*first.earlier, first.settings),
    )


def _own(run: Trajectory, segments: tuple[Segment, ...]) -> list[Segment]:
    """Segments that know their models, and where no events tell, that nothing opens or closes in them."""
    still = None if run.batch and (run.events.switches or run.events.points) else ()
    return [replace(s, model=s.model or run.model, closed=still if s.closed is None else s.closed) for s in segments]


def _with_ends(run: Trajectory, time: float) -> tuple[Segment, ...]:
    """The segments of a batch up to the time at which its runs end, with the located ends as last sample."""
    last = run.segments[-1]
    if run.ends is None or not time > last.times[-1]:
        return run.segments
    there = run.ends.times == time

    def longer(x: np.ndarray, end: np.ndarray) -> np.ndarray:
        return np.concatenate([x, np.where(there[..., None, None], end, np.nan)], axis=-2)

    joined: dict[str, Any] = {name: longer(x, getattr(run.ends, name)) for name, x in last.arrays.items()}
    return (*run.segments[:-1], replace(last, times=np.append(last.times, time), **joined))


def _left_out(s: Segment, alive: np.ndarray, times: np.ndarray | None = None) -> Segment:
    """A segment with NaN in the runs that ended before it."""
    if alive.all():
        return s
    found = s.mapped(lambda x: np.where(alive[..., None, None], x, np.nan))
    return found if times is None else replace(found, times=np.where(alive, times, np.nan))


def _settings(first: Mapping[str, Any], later: Mapping[str, Any], words: str) -> dict[str, Any]:
    """The settings of the later run; errors of steps add up."""
    errors = [x["step_error"] for x in (first, later) if "step_error" in x]
    return {**later, "continued": words} | ({"step_error": sum(errors)} if errors else {})


def _forces(first: Trajectory, later: Trajectory, counts: list[int], alive: np.ndarray) -> dict[str, np.ndarray] | None:
    """Forces (..., n, 6) by body, zero where one run has none on it."""
    pairs = [run.forces or {} for run in (first, later)]
    out = {}
    for name in dict.fromkeys([*pairs[0], *pairs[1]]):
        parts = [x.get(name, np.zeros((*first.batch, n, 6))) for x, n in zip(pairs, counts, strict=True)]
        missing = counts[0] - parts[0].shape[-2]  # the located ends
        parts[0] = np.concatenate([parts[0], parts[0][..., -1:, :].repeat(missing, axis=-2)], axis=-2)
        parts[1] = np.where(alive[..., None, None], parts[1], np.nan)
        out[name] = np.concatenate(parts, axis=-2)
    return out or None


def _residual(first: Trajectory, later: Trajectory, alive: np.ndarray) -> np.ndarray | None:
    """The largest closure errors (...) of both."""
    found = [x for x in (first.residual, later.residual) if x is not None]
    if later.residual is not None:
        found[-1] = np.where(alive, later.residual, 0.0)
    return np.max(found, axis=0) if found else None
