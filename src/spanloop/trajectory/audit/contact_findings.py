"""Findings on the contacts of a run: residuals, penetration, friction cones, uniqueness, jams, energy of impacts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import listed
from spanloop.trajectory.audit.findings import NOT_JUDGED, WELL, Finding, verdict_on
from spanloop.trajectory.contacts.contact_samples import ONE_STEP, ContactSamples, Points, number_type, robots
from spanloop.trajectory.contacts.contact_states import is_slipping
from spanloop.trajectory.contacts.contact_work import ContactWork
from spanloop.trajectory.quantities import over_samples

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_CONE = {"float64": 1e-9, "float32": 1e-5}  # of the largest normal force: a force may leave its cone by this much
_NAMED = 3  # contacts that are named
_AT_REST = 1e-18  # J for a kilogram: nothing moves


def acts(run: Trajectory) -> bool:
    """Whether the run has contacts that are not ignored."""
    return any(s.contact_forces is not None for s in run.segments)


def contact_findings(run: Trajectory, residual: float, penetration: float, energy: float) -> Iterator[Finding]:
    """The findings on contacts of a run whose segments have the contacts of its model.

    Bounds: residual [m/s] of the complementarity problem of any step, penetration [m], energy that an impact may add,
    relative to what is at stake.
    """
    if not acts(run):
        return
    found = run.contacts.samples
    yield complementarity(run, residual)
    yield _penetration(run, found, penetration)
    yield _cones(run, found)
    yield _uniqueness(run)
    yield _jams(run, found)
    yield from _impacts(run, energy)


def complementarity(run: Trajectory, bound: float) -> Finding:
    """The finding on the largest natural residual of any step."""
    value = _most(run, 0)
    words = (
        f"Contacts neither pull nor overlap, and friction opposes slip, to {value:.2g} m/s, the largest natural "
        f"residual of any step (bound {bound:.2g} m/s)."
    )
    return Finding("complementarity", value, bound, "m/s", verdict_on(value, bound, 0.0), words)


def _penetration(run: Trajectory, found: ContactSamples, bound: float) -> Finding:
    hard = found.points.stiffness == 0.0
    depth = np.where(hard & np.isfinite(found.gap), -found.gap, 0.0)
    at_samples, where = _largest(run, depth)
    value = max(at_samples, _most(run, 1), 0.0) + 0.0
    name = found.points.names[where[-1]]
    of = f", {name!r}{_when(run, where)}" if at_samples > 0.0 and value == at_samples else ""
    words = f"Surfaces overlap by up to {value:.2g} m{of} (bound {bound:.2g} m)."
    if not hard.all():
        words += f" Compliant contacts give way by up to {max(0.0, -_least(found.gap[..., ~hard])):.2g} m."
    return Finding("penetration", value, bound, "m", verdict_on(value, bound, 0.0), words)


def _cones(run: Trajectory, found: ContactSamples) -> Finding:
    p, f = found.points, np.nan_to_num(found.local)
    normal = f[..., 0]
    beyond = [-normal, np.linalg.norm(f[..., 1:3], axis=-1) - p.friction * normal]
    if p.size == 6:
        lengths = np.maximum(p.torsion, 1e-300), np.maximum(p.rolling, 1e-300)
        beyond += [np.abs(f[..., 3]) / lengths[0] - normal, np.linalg.norm(f[..., 4:], axis=-1) / lengths[1] - normal]
        beyond = [np.where(np.isfinite(x), x, 0.0) for x in beyond]
    most, bound = max(float(normal.max(initial=0.0)), 1e-300), _CONE[number_type(run)]
    value, where = _largest(run, np.max(beyond, axis=0) / most)
    value = max(value, 0.0)
    words = (
        f"Forces are in their friction cones, but for {value * most:.2g} N, {p.names[where[-1]]!r}{_when(run, where)} "
        f"(bound {bound * most:.2g} N, {bound:g} of the largest)."
        if value > 0.0
        else "All forces push, and are in their friction cones."
    )
    return Finding("cones", value, bound, "1", verdict_on(value, bound, 0.0), words)


def _uniqueness(run: Trajectory) -> Finding:
    shared = [name for name, contact in run.contacts.items() if not contact.unique.all()]
    motion = np.logical_not(run.contacts.motion_is_unique)
    words = "All forces of contacts are unique."
    if shared:
        words = (
            f"Forces of {_names(shared)} can be shared by their points in more than one way; what they do together is "
            "exact."
        )
    count = int(motion.sum())
    if count:
        first = tuple(int(i) for i in np.argwhere(motion)[0])
        words += (
            f" At {count} sample{'' if count == 1 else 's'} such points slip in different directions, and the motion "
            f"is one of several{_when(run, (*first, 0))}."
        )
    return Finding("uniqueness", float(count), 0.0, "samples", NOT_JUDGED if count else WELL, words)


def _jams(run: Trajectory, found: ContactSamples) -> Finding:
    value = _most(run, 2)
    if not value > 0.0:
        return Finding("jams", 0.0, 0.0, "steps", WELL, "No contact jams.")
    names = jammed(run, found)
    who = f": {_names(names)}" if names else ""
    words = (
        f"In {int(value)} step{'' if value == 1 else 's'} a contact jams{who}. Friction that opposes its slip presses "
        "it harder than it can be pushed (Painlevé); it stops by an impulse without an impact."
    )
    return Finding("jams", value, 0.0, "steps", verdict_on(value, 0.0, 0.0), words)


def jammed(run: Trajectory, found: ContactSamples) -> list[str]:
    """Names of the points that jam at samples: n · W (n − µ d) is not positive, d the direction of the slip."""
    p = found.points
    slips = is_slipping(found) | (np.nan_to_num(np.linalg.norm(found.tangential, axis=-1)) > 0.0) & (found.gap <= 0.0)
    some = slips.any(axis=-1)
    if not some.any():
        return []
    along = np.einsum("...ij,...j->...i", found.axes[..., 1:, :], found.tangential)
    unit = np.nan_to_num(along / np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-300))
    out, friction = np.zeros(slips.shape, bool), np.broadcast_to(p.friction, slips.shape)
    for robot, where in robots(run, some):
        W = over_samples("jams", functools.partial(_own_blocks, robot, p), run.q[where])
        push = W[..., 0, 0] - friction[where] * np.sum(W[..., 0, 1:3] * unit[where], axis=-1)
        out[where] = slips[where] & (push <= 0.0)
    return [p.names[k] for k in np.flatnonzero(out.reshape(-1, len(p)).any(axis=0))]


def _own_blocks(robot: Dynamics, p: Points, q: np.ndarray) -> np.ndarray:
    """The blocks (k, points, size, size) on the diagonal of W."""
    blocks = robot.delassus(q).reshape(len(q), len(p), p.size, len(p), p.size)
    return np.einsum("kpipj->kpij", blocks)


def _impacts(run: Trajectory, share: float) -> Iterator[Finding]:
    work = run.contacts.work
    if _has_gaps(run, work):
        words = "Samples are several steps apart: what impacts between them take is not recorded. Give sample= a step."
        yield Finding("contact impacts", np.nan, share, "J", NOT_JUDGED, words)
        return
    bound = max(share * float(np.nanmax(run.energy[..., 0], initial=0.0)), _AT_REST * run.model.mass)
    hits = int(work.hits.any(axis=-1).sum())
    if not hits and work.known.all():
        return
    p = run.contacts.samples.points
    lost = np.nansum(np.where(work.hits, -work.work, 0.0).reshape(-1, len(p)), axis=0)
    by_name = {name: float(lost[p.owner == k].sum()) for k, name in enumerate(p.contacts)}
    taken = [f"{name!r} {x:.4g} J" for name, x in _largest_first(by_name) if abs(x) > bound][:_NAMED]
    words = f"{'A step' if hits == 1 else f'{hits} steps'} with impacts of contacts take{'s' if hits == 1 else ''}"
    words += f" {sum(by_name.values()):.4g} J"
    words += f" ({', '.join(taken)})." if taken else "."
    words = words if hits else "Samples have no impact of a contact."
    excess = np.nan_to_num(work.gain - work.gain_doubt)
    k = tuple(int(i) for i in np.unravel_index(np.argmax(excess), excess.shape))
    value, doubt = max(float(np.nan_to_num(work.gain)[k]), 0.0), float(work.gain_doubt[k])
    if value > bound + doubt:
        words += f" One adds {value:.2g} J{_when(run, (*k, 0), 1)} (bound {bound:.2g} J)."
    elif hits:
        words += f" None adds energy (bound {bound:.2g} J)."
    verdict = verdict_on(value, bound, doubt)
    if verdict != WELL and value <= bound + doubt:
        words += f" Where inside its step it was is uncertain by {doubt:.2g} J."
    if not work.known.all():
        words += " There are steps whose forces are not recorded."
        verdict = NOT_JUDGED if verdict == WELL else verdict
    yield Finding("contact impacts", value, bound, "J", verdict, words)


def _has_gaps(run: Trajectory, work: ContactWork) -> bool:
    """Whether contacts may push between samples that are several steps apart."""
    is_long = np.diff(run.times) > ONE_STEP * run.step
    return bool((is_long & ~work.known).any())


def _largest_first(values: dict[str, float]) -> Iterable[tuple[str, float]]:
    return sorted(values.items(), key=lambda x: -abs(x[1]))


def _names(names: list[str]) -> str:
    return listed(map(repr, names), _NAMED)


def _most(run: Trajectory, column: int) -> float:
    """The largest of a column of the checks of all steps."""
    found = [s.contact_checks[..., column] for s in run.segments if s.contact_checks is not None]
    return float(max((np.nanmax(x, initial=0.0) for x in found), default=0.0))


def _largest(run: Trajectory, values: np.ndarray) -> tuple[float, tuple[int, ...]]:
    """The largest of (..., n, points) and its index."""
    k = tuple(int(i) for i in np.unravel_index(np.argmax(values), values.shape))
    return float(values[k]), k


def _least(values: np.ndarray) -> float:
    return float(np.nanmin(values, initial=0.0))


def _when(run: Trajectory, k: tuple[int, ...], later: int = 0) -> str:
    """Where a sample is in words; k: its index, and that of a point."""
    which = f" of run {k[:-2] if len(k) > 3 else k[0]}" if len(k) > 2 else ""
    return f", at {run.times[k[-2] + later]:g} s{which}"
