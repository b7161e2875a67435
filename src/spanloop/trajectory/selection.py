"""Selection of runs of a batch, and of samples in time."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.trajectory.events import NO_EVENTS, EventTable
from spanloop.trajectory.segment import Segment

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

Forces = dict[str, np.ndarray] | None


def picked(run: Trajectory, index: tuple[int, ...]) -> Trajectory:
    """One run of a batch, up to its end, or a smaller batch."""
    if not run.batch:
        raise InputError(f"run[{_text(index)}]: this is one run, not a batch; names give parts, slices take samples")
    if len(index) > len(run.batch):
        raise InputError(
            f"run[{_text(index)}]: the batch has shape {run.batch}; expected {len(run.batch)} numbers at most"
        )
    for k, size in zip(index, run.batch, strict=False):
        if not -size <= k < size:
            raise InputError(f"run[{_text(index)}]: the batch has shape {run.batch}; there is no run {k} of {size}")
    numbers = np.arange(math.prod(run.batch)).reshape(run.batch)[index]
    return run.changed(
        segments=tuple(s.run(index) for s in run.segments),
        outcomes=tuple(run.outcomes[k] for k in np.ravel(numbers)),
        forces={name: six[index] for name, six in run.forces.items()} if run.forces else None,
        ends=None if run.ends is None else replace(run.ends.run(index), times=run.ends.times[index]),
        residual=None if run.residual is None else run.residual[index],
        events=run.events if run.events is NO_EVENTS else run.events.picked(np.ravel(numbers)),
        **_own_model(run, index),
    )


def _own_model(run: Trajectory, index: tuple[int, ...]) -> dict[str, Any]:
    """The parameters and surfaces of a smaller batch; of one run the model that has them."""
    own = {"parameters": run.parameters, "surfaces": run.surfaces}
    if all(x is None for x in own.values()) or len(index) < len(run.batch):
        return {name: None if x is None else x[index] for name, x in own.items()}
    model = run.model if run.parameters is None else run.model.with_parameters(run.parameters[index])
    model = model if run.surfaces is None else with_surfaces(model, run.surfaces[index])
    return {"model": model, "parameters": None, "surfaces": None}


def with_surfaces(model: Model, surfaces: np.ndarray) -> Model:
    """The model with friction and restitution (contacts, 2) of its contacts."""
    pairs = zip(model.contacts, surfaces.tolist(), strict=True)
    contacts = tuple(replace(c, friction=mu, restitution=e) for c, (mu, e) in pairs)
    return model if contacts == model.contacts else replace(model, contacts=contacts)


def first_runs(run: Trajectory, count: int) -> Trajectory:
    """The first runs of a batch along its first axis, about so many; all if there are no more."""
    rows = max(1, count * run.batch[0] // len(run.outcomes))
    if rows >= run.batch[0]:
        return run
    share = len(run.outcomes) // run.batch[0] * rows

    def first(x: np.ndarray | None) -> np.ndarray | None:
        return None if x is None else x[:rows]

    return run.changed(
        segments=tuple(s.mapped(lambda x: x[:rows]) for s in run.segments),
        outcomes=run.outcomes[:share],
        forces={name: six[:rows] for name, six in run.forces.items()} if run.forces else None,
        ends=None if run.ends is None else replace(run.ends.mapped(lambda x: x[:rows]), times=run.ends.times[:rows]),
        events=run.events if run.events is NO_EVENTS else run.events.picked(np.arange(share)),
        **{name: first(getattr(run, name)) for name in ("residual", "parameters", "surfaces")},
    )


def piece(run: Trajectory, number: int) -> Trajectory:
    """One segment as a run with its own model; it has no events inside."""
    s, begin = run.segments[number], sum(map(len, run.segments[:number]))
    forces = {name: six[..., begin : begin + len(s), :] for name, six in run.forces.items()} if run.forces else None
    own = run.model if s.model is None else s.model
    return run.changed(model=own, segments=(replace(s, model=None),), forces=forces, ends=None, events=NO_EVENTS)


def settled(segments: tuple[Segment, ...], ends: Segment | None, forces: Forces) -> tuple[tuple[Segment, ...], Forces]:
    """One run without the rows after its end, and with its located end as last sample."""
    filled = np.concatenate([~np.isnan(s.q).all(axis=-1) for s in segments]) if segments[0].q.shape[-1] else None
    if filled is not None and not filled[-1]:
        count = int(np.flatnonzero(filled)[-1]) + 1 if filled.any() else 1
        segments = cut(segments, range(count))
        forces = {name: six[:count] for name, six in forces.items()} if forces else None
    if ends is not None and ends.times > segments[-1].times[-1]:
        segments = (*segments[:-1], _longer(segments[-1], ends))
        forces = {name: np.concatenate([six, six[-1:]]) for name, six in forces.items()} if forces else None
    return segments, forces


def sampled(run: Trajectory, which: slice) -> Trajectory:
    """The samples of a slice; a located end stays with the sample before it."""
    if which.step is not None and operator.index(which.step) < 1:
        raise InputError(f"the slice has step {which.step}; time runs forward: expected 1 or more")
    kept = range(len(run))[which]
    if not kept:
        raise InputError(f"run[{_text((which,))}] has no samples; there are {len(run)}")
    after = np.nextafter(run.times[kept.stop], -math.inf) if kept.stop < len(run) else math.inf
    return _shortened(run, kept, run.times[kept.start], after)


def between(run: Trajectory, start: float, stop: float) -> Trajectory:
    """The samples from time start to time stop [s], both included."""
    if not start <= stop:
        raise InputError(f"between({start:g}, {stop:g}): the second time must not be before the first")
    times = run.times
    first, last = np.searchsorted(times, start, "left"), np.searchsorted(times, stop, "right")
    if first == last:
        raise InputError(
            f"between({start:g}, {stop:g}): no sample lies there; samples run from {times[0]:g} s to {times[-1]:g} s. "
            "Try run.at(times)"
        )
    return _shortened(run, range(int(first), int(last)), start, stop)


def cut(segments: tuple[Segment, ...], kept: range) -> tuple[Segment, ...]:
    """The segments with the kept samples, counted through all of them; empty ones left out."""
    out, offset = [], 0
    for s in segments:
        low = max(0, -(-(offset - kept.start) // kept.step))
        high = max(0, -(-(offset + len(s) - kept.start) // kept.step))
        here = kept[low:high]
        if here:
            out.append(s.samples(slice(here.start - offset, here.stop - offset, here.step)))
        offset += len(s)
    return tuple(out)


def ends_between(ends: Segment | None, start: float, stop: float) -> Segment | None:
    """The located ends from time start to time stop, the others NaN."""
    if ends is None:
        return None
    stays = (ends.times >= start) & (ends.times <= stop)
    chosen = ends.mapped(lambda x: np.where(stays[..., None, None], x, np.nan))
    return replace(chosen, times=np.where(stays, ends.times, np.nan))


def _shortened(run: Trajectory, kept: range, start: float, stop: float) -> Trajectory:
    which = slice(kept.start, kept.stop, kept.step)
    forces = {name: six[..., which, :] for name, six in run.forces.items()} if run.forces else None
    segments = cut(run.segments, kept)
    events = run.events if run.events is NO_EVENTS else events_of(run, segments, start, stop)
    ends = ends_between(run.ends, start, stop)
    return run.changed(segments=segments, forces=forces, ends=ends, events=events)


def events_of(run: Trajectory, segments: tuple[Segment, ...], start: float, stop: float) -> EventTable:
    """The events of the samples kept; of one run those that lie within them, which has samples before and after."""
    if run.batch:
        return run.events.between(start, stop)
    first, last = segments[0].times[0], segments[-1].times[-1]
    doubled = [a.times[-1] for a, b in pairwise(segments) if a.times[-1] == b.times[0]]
    t, ends = run.events.time, run.events.kind == "end"
    kept = ((t > first) & (t < last)) | np.isin(t, doubled) | (ends & (t >= first) & (t <= last))
    return run.events.kept(kept, (t <= first) & ~kept)


def _longer(segment: Segment, end: Segment) -> Segment:
    arrays: dict[str, Any] = {
        name: np.concatenate([many, getattr(end, name)], axis=-2) for name, many in segment.arrays.items()
    }
    return replace(segment, times=np.append(segment.times, end.times), **arrays)


def _text(index: tuple) -> str:
    def one(k) -> str:
        if not isinstance(k, slice):
            return str(k)
        ends = ["" if x is None else str(x) for x in (k.start, k.stop)]
        return ":".join(ends + ([] if k.step is None else [str(k.step)]))

    return ", ".join(map(one, index))
