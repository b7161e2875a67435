"""Resampling: a motion at other times.

Coordinates follow a cubic between neighbouring samples that has their q and v at both ends. Where coordinates are no
vector space (quaternions) it is drawn by de Casteljau's construction, with q ⊕ s (q' ⊖ q) in place of straight lines:

    b₀ = q₀    b₁ = q₀ ⊕ ⅓h v₀    b₂ = q₁ ⊕ −⅓h v₁    b₃ = q₁

Rates follow the cubic of v₀, a₀, v₁, a₁. Both err by O(h⁴) and are exact at samples. Torques and forces are joined by
straight lines, but for torques that are held.

Forces of contacts are those of the step that ends at the next sample. They jump, so that rates are joined by straight
lines where a contact pushes at one of both samples: there they err by O(h²), and where a point closes or opens by O(h).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.trajectory.events import NO_EVENTS
from spanloop.trajectory.quantities import accelerations_under, over_samples
from spanloop.trajectory.segment import CONTACT_ARRAYS, Segment
from spanloop.trajectory.selection import ends_between, events_of
from spanloop.trajectory.topologies import is_uniform, steady_runs, still_dofs

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_ROUNDING = 1e-9  # of the time between samples: this near to the first or last sample is at it


def at(run: Trajectory, times) -> Trajectory:
    """The run at these times [s], which must increase and lie within it."""
    wanted = _checked(run, times)
    changes = not np.isin(run.events.kind, ("end", "continued")).all()
    if run.batch and (changes or not is_uniform(run)) and len(run.segments) == 1:
        return _of_runs(run, wanted)
    if run.batch and changes:
        raise UnsupportedError(
            "at: the runs of this batch have events and go on with another model, each cut at its own times. Resample "
            "one of them: run[0].at(times)"
        )
    inside = np.clip(wanted, run.times[0], run.times[-1])
    starts = np.array([s.times[0] for s in run.segments])
    owner = np.searchsorted(starts, inside, "right") - 1  # at a change of topology: the segment that begins
    segments, parts = [], []
    for number, segment in enumerate(run.segments):
        mine = owner == number
        if mine.any():
            here, forces = _resampled(run.pieces[number], np.minimum(inside[mine], segment.times[-1]))
            segments.append(replace(here, times=wanted[mine], model=segment.model))
            parts.append(forces)
    none = [np.zeros((*run.batch, len(s), 6)) for s in segments]  # on a body that another segment's model has
    joined = {
        name: np.concatenate([p.get(name, x) for p, x in zip(parts, none, strict=True)], axis=-2)
        for name in run.forces or ()
    }
    ends = ends_between(run.ends, wanted[0], wanted[-1])
    chosen = tuple(segments)
    events = run.events if run.events is NO_EVENTS else events_of(run, chosen, wanted[0], wanted[-1])
    return run.changed(segments=chosen, forces=joined or None, ends=ends, events=events)


def _of_runs(run: Trajectory, wanted: np.ndarray) -> Trajectory:
    """A batch with events at these times: runs without any together, each of the others cut at its own."""
    whole = run.segments[0]
    flat = {name: x.reshape(-1, *x.shape[-2:]) for name, x in whole.arrays.items()}
    out = {name: np.full((len(x), len(wanted), x.shape[-1]), np.nan) for name, x in flat.items()}
    forces = {
        name: np.full((*run.batch, len(wanted), 6), np.nan).reshape(-1, len(wanted), 6) for name in run.forces or ()
    }
    for numbers, part in _parts(run):
        count = int(np.searchsorted(wanted, part.times[-1], "right"))
        if not count:
            continue
        found = at(part, wanted[:count])
        for name, x in out.items():
            x[numbers, :count] = found._joined(name)
        for name, six in forces.items():
            assert found.forces is not None
            six[numbers, :count] = found.forces[name]
    arrays: dict[str, Any] = {name: x.reshape(*run.batch, *x.shape[1:]) for name, x in out.items()}
    shaped = {name: six.reshape(*run.batch, len(wanted), 6) for name, six in forces.items()}
    held = whole.held and bool(np.isin(_within(whole.times, wanted), wanted).all())
    segment = replace(whole, times=wanted, held=held, **arrays)
    ends, events = ends_between(run.ends, wanted[0], wanted[-1]), run.events.between(wanted[0], wanted[-1])
    return run.changed(segments=(segment,), forces=shaped or None, ends=ends, events=events)


def _parts(run: Trajectory) -> Iterator[tuple[Any, Trajectory]]:
    """Numbers of runs, and these runs: those with events one by one, those without in groups of one topology."""
    events = run.events
    changing = np.unique(events.run[events.kind != "end"])
    for k in changing:
        yield int(k), run[tuple(int(i) for i in np.unravel_index(k, run.batch))]
    steady = np.setdiff1d(np.arange(len(run.outcomes)), changing)
    if len(steady):
        yield from steady_runs(run, steady)


def every(run: Trajectory, gap: float) -> Trajectory:
    """The run at its first time and every `gap` [s] after it."""
    if not 0.0 < gap < np.inf:
        raise InputError(f"every({gap:g}): the time between samples must be > 0")
    count = int(np.floor(run.duration / gap * (1.0 + 1e-12) + 1e-9)) + 1
    return at(run, np.minimum(run.times[0] + gap * np.arange(count), run.times[-1]))


def _checked(run: Trajectory, times) -> np.ndarray:
    wanted = np.atleast_1d(np.asarray(times))
    if wanted.ndim != 1 or not wanted.size or wanted.dtype.kind not in "fiu":
        raise InputError(f"at: times has shape {wanted.shape} and type {wanted.dtype}; expected numbers (n,)")
    wanted = wanted.astype(float)
    first, last = run.times[0], run.times[-1]
    slack = _ROUNDING * (last - first) / max(len(run) - 1, 1)
    outside = ~((wanted >= first - slack) & (wanted <= last + slack))
    if outside.any():
        raise InputError(
            f"at: time {wanted[outside][0]:g} s is outside the run, which lasts from {first:g} s to {last:g} s"
        )
    if not (np.diff(wanted) > 0.0).all():
        raise InputError("at: times must increase")
    return wanted


def _resampled(run: Trajectory, times: np.ndarray) -> tuple[Segment, dict[str, np.ndarray]]:
    """A run of one segment at times within it: the segment, and the forces."""
    segment = run.segments[0]
    before = np.clip(np.searchsorted(segment.times, times, "right") - 1, 0, max(len(segment) - 2, 0))
    after = np.minimum(before + 1, len(segment) - 1)
    h = np.where(after > before, segment.times[after] - segment.times[before], 1.0)[:, None]
    s = (times - segment.times[before])[:, None] / h
    nearest = np.where(s[:, 0] >= 1.0, after, before)
    exact = (segment.times[nearest] == times)[:, None]

    def mixed(samples: np.ndarray, made: np.ndarray) -> np.ndarray:
        return np.where(exact, samples[..., nearest, :], made)

    def straight(samples: np.ndarray, held: bool = False) -> np.ndarray:
        low, high = samples[..., before, :], samples[..., after, :]
        return mixed(samples, low if held else low + s * (high - low))

    forces = {name: straight(six) for name, six in (run.forces or {}).items()}
    tau = straight(segment.tau, segment.held)
    memory = None if segment.memory is None else straight(segment.memory)
    contacts: dict[str, Any] = {  # forces of the step in which a time lies, checks up to the sample before it
        name: mixed(x, x[..., after if name == "contact_forces" else before, :])
        for name in CONTACT_ARRAYS
        if (x := getattr(segment, name)) is not None
    }
    held = segment.held and bool(np.isin(_within(segment.times, times), times).all())
    if exact.all():
        q, v = segment.q[..., nearest, :], segment.v[..., nearest, :]
    else:
        q = mixed(segment.q, _coordinates(run, before, after, h, s))
        v = mixed(segment.v, _rates(run, before, after, h, s))
    return replace(segment, times=times, q=q, v=v, tau=tau, memory=memory, held=held, **contacts), forces


def _coordinates(run: Trajectory, before, after, h, s) -> np.ndarray:
    robot = run.robot

    def between(start, stop, part):
        return robot.integrate(start, part * robot.difference(start, stop))

    def curve(q0, v0, q1, v1, h, s):
        points = [q0, robot.integrate(q0, h / 3.0 * v0), robot.integrate(q1, -h / 3.0 * v1), q1]
        while len(points) > 1:
            points = [between(a, b, s) for a, b in pairwise(points)]
        return points[0]

    low, high = ((run.q[..., k, :], run.v[..., k, :]) for k in (before, after))
    return over_samples("at", curve, *low, *high, h, s)


def _rates(run: Trajectory, before, after, h, s) -> np.ndarray:
    low, high = run.v[..., before, :], run.v[..., after, :]
    start, stop = run.a[..., before, :], run.a[..., after, :]
    if run.segments[0].held:  # the interval ends under the torques with which it began
        forces = {name: six[..., after, :] for name, six in run.acting.items()}
        stop = accelerations_under(run.robot, run.q[..., after, :], high, run.tau[..., before, :], forces)
        stop[..., still_dofs(run.model, run.segments[0].absent)] = 0.0
    gap = high - low
    line = low + s * gap
    bend = s * (1.0 - s) * ((1.0 - s) * (h * start - gap) - s * (h * stop - gap))
    return np.where(np.isfinite(bend) & ~_is_pushed(run, before, after), line + bend, line)


def _is_pushed(run: Trajectory, before: np.ndarray, after: np.ndarray) -> Any:
    """Whether a contact pushes at one of both samples (..., k, 1), or may do so."""
    forces = run.segments[0].contact_forces
    if forces is None:
        return False
    pushed = (forces != 0.0).any(axis=-1, keepdims=True)
    return pushed[..., before, :] | pushed[..., after, :]


def _within(samples: np.ndarray, times: np.ndarray) -> np.ndarray:
    return samples[(samples > times[0]) & (samples < times[-1])]


# ---- rates of sampled values, by cubic splines


LEAST = 4  # samples that determine a cubic


def slopes(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """d/dt (n, m) at times (n,), n ≥ 4, of the cubic spline through values (n, m).

    The spline has two continuous derivatives; its third is continuous at the second and at the last but one time
    ("not a knot"), so that cubics are met exactly. The slopes err by O(h⁴), near the ends by O(h³).
    """
    h = np.diff(times)[:, None]
    rise = np.diff(values, axis=0) / h
    lower, middle, upper = np.zeros((3, len(times)))
    right = np.empty_like(values)
    lower[1:-1], middle[1:-1], upper[1:-1] = h[1:, 0], 2.0 * (h[1:, 0] + h[:-1, 0]), h[:-1, 0]
    right[1:-1] = 3.0 * (h[1:] * rise[:-1] + h[:-1] * rise[1:])
    middle[0], upper[0], right[0] = _end(h[0, 0], h[1, 0], rise[0], rise[1])
    middle[-1], lower[-1], right[-1] = _end(h[-1, 0], h[-2, 0], rise[-1], rise[-2])
    return _solved(lower, middle, upper, right)


def _end(near: float, next_: float, rise: np.ndarray, next_rise: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The row of an end: factors of its slope and its neighbour's, and the right side."""
    both = near + next_
    return next_, both, ((near + 2.0 * both) * next_ * rise + near**2 * next_rise) / both


def _solved(lower: np.ndarray, middle: np.ndarray, upper: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x (n, m) of a tridiagonal system; its pivots are positive."""
    pivot, x = middle.copy(), right.copy()
    for k in range(1, len(x)):
        factor = lower[k] / pivot[k - 1]
        pivot[k] -= factor * upper[k - 1]
        x[k] -= factor * x[k - 1]
    x[-1] /= pivot[-1]
    for k in range(len(x) - 2, -1, -1):
        x[k] = (x[k] - upper[k] * x[k + 1]) / pivot[k]
    return x
