"""The audit of a motion: findings, each compared with a bound that it states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spanloop.flexible.deformation import SLOPE
from spanloop.loops.assembly.assembly import SMALL
from spanloop.loops.closure_errors import mechanism_of, rows_of
from spanloop.loops.constraint_rank import structure
from spanloop.trajectory import quantities, report
from spanloop.trajectory.audit import balances
from spanloop.trajectory.audit.balances import balance, highest
from spanloop.trajectory.audit.contact_findings import acts, complementarity, contact_findings
from spanloop.trajectory.audit.event_findings import event_findings, worst_of
from spanloop.trajectory.audit.findings import NOT_JUDGED, NOT_WELL, WELL, Audit, Finding, doubted, verdict_on
from spanloop.trajectory.audit.flexible_findings import damped_modes, flexible_findings
from spanloop.trajectory.audit.joint_limits import GIVES_WAY, exceeded, has_spring, limited
from spanloop.trajectory.audit.undeclared_overlaps import overlap_finding
from spanloop.trajectory.contacts.contact_samples import Points, is_alike, number_type
from spanloop.trajectory.events import NO_EVENTS
from spanloop.trajectory.segment_models import row_lengths
from spanloop.trajectory.selection import first_runs
from spanloop.trajectory.topologies import by_model, has_same_joints, is_uniform, model_of

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_ENDS_WELL = ("finished", "event")

_SHOWN = 3  # limits that are named

_MOST_RUNS = 256  # of a batch with events that are judged
_MOST_POINTS = 2_000_000  # of contacts at all samples that are judged together
_MOST_MODELS = 8  # of these, where each run has parameters, and with them kernels, of its own

_TILTS = 30.0  # by which a misalignment may exceed that of a few states


@dataclass(frozen=True)
class Bounds:
    """Bounds of an audit, those of a run in float64; limit: rad or m beyond a limit that are rounding; impact: of the
    largest kinetic energy, by which an impact may add to it; residual [m/s] and penetration [m] of contacts; rounding:
    of the energy. Of flexible bodies: strain of a fibre; slope [rad]; truncation: strain energy in the last mode of a
    direction, of the body's; modes: energy of vibrations that steps do not resolve, of what is at stake."""

    energy: float = 1e-6
    momentum: float = 1e-6
    closure: float = 1e-9
    velocity: float = 1e-8
    quaternion: float = 1e-9
    step: float = 1e-3
    limit: float = 1e-9
    impact: float = 1e-10
    residual: float = 1e-9
    penetration: float = 1e-6
    rounding: float = 1e-12
    strain: float = 0.01
    slope: float = SLOPE
    truncation: float = 0.01
    modes: float = 1e-4


_FLOAT32 = Bounds(energy=1e-5, momentum=1e-5, closure=1e-5, velocity=1e-4, quaternion=1e-6, limit=1e-6, impact=1e-5,
                  residual=1e-4, penetration=1e-4, rounding=1e-7)  # fmt: skip


def bounds_of(run: Trajectory) -> Bounds:
    """The bounds for the number type of a run."""
    return _FLOAT32 if number_type(run) == "float32" else Bounds()


def audit(
    run: Trajectory,
    *,
    energy: float | None = None,
    momentum: float | None = None,
    closure: float | None = None,
    velocity: float | None = None,
    quaternion: float | None = None,
    step: float | None = None,
    residual: float | None = None,
    penetration: float | None = None,
    strain: float | None = None,
    slope: float | None = None,
    truncation: float | None = None,
    modes: float | None = None,
    meshes: bool = False,
) -> Audit:
    """The findings on a run or batch; meshes: also on shapes without a contact that overlap, which takes MuJoCo.

    Bounds: energy and momentum relative to what is at stake in the motion; closure [rad, or of the loop's length],
    velocity [the same in a second] of closures; quaternion: off unit length; step: the errors of all steps together,
    as a share of the largest speed; residual [m/s] and penetration [m] of contacts; strain, slope [rad], truncation and
    modes of flexible bodies (flexible_findings). By default those of the run's number type (bounds_of).
    """
    given = {"energy": energy, "momentum": momentum, "closure": closure, "velocity": velocity,
             "quaternion": quaternion, "step": step, "residual": residual, "penetration": penetration,
             "strain": strain, "slope": slope, "truncation": truncation, "modes": modes}  # fmt: skip
    b = replace(bounds_of(run), **{name: x for name, x in given.items() if x is not None})
    if run.batch and run.events is not NO_EVENTS and (len(run.events) or run.events.switches):
        found = _of_runs(run, b)
    elif run.batch and acts(run):
        found = _of_first_runs(run, b)
    else:
        found = _of_motion(run, b)
    findings = [_outcome(run), *_steps(run, b.step), *found, *(_overlaps(run) if meshes else ())]
    return Audit(report.headline(run), tuple(map(_answered, findings)))


def _overlaps(run: Trajectory) -> list[Finding]:
    """The finding on shapes that overlap without a contact; the worst where pieces or runs have models of their own."""
    if run.batch and run.parameters is not None:
        indices = list(np.ndindex(run.batch))[:_MOST_MODELS]
        return worst_of([_overlaps(run[i]) for i in indices])
    pieces = [run] if has_same_joints(run) else run.pieces
    return worst_of([[overlap_finding(piece)] for piece in pieces])


def _of_motion(run: Trajectory, b: Bounds) -> list[Finding]:
    """The findings on the motion of one run, or of a batch without events."""
    if not has_same_joints(run) or not is_alike(run):
        return worst_of([*(_of_motion(piece, b) for piece in run.pieces), _events(run, b)])
    views = [run] if is_uniform(run) else by_model(run)
    findings = [_energy(run, b), *_events(run, b)]
    findings += worst_of(_momentum(view, b.momentum) for view in views if balances.floats(view))
    closed = [view for view in views if view.closure_error.shape[-1]]
    findings += worst_of((_closure(view, b.closure), _closure_velocity(view, b.velocity)) for view in closed)
    findings += contact_findings(run, b.residual, b.penetration, b.impact)
    findings += worst_of(flexible_findings(view, b.strain, b.slope, b.truncation, b.modes) for view in views)
    return [*findings, *_quaternions(run, b.quaternion), *_limits(run, b.limit)]


def _events(run: Trajectory, b: Bounds) -> list[Finding]:
    return [] if run.events is NO_EVENTS else list(event_findings(run, b.impact, b.momentum, b.closure))


def _of_runs(run: Trajectory, b: Bounds) -> list[Finding]:
    """The worst of the runs of a batch with events, each cut at its own."""
    count, most = len(run.outcomes), _MOST_RUNS if run.parameters is None else _MOST_MODELS
    chosen = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
    indices = [tuple(int(i) for i in np.unravel_index(k, run.batch)) for k in chosen]
    labels = [f" This is run {i if len(i) > 1 else i[0]}." for i in indices]
    found = worst_of([_of_motion(run[i], b) for i in indices], labels)
    whole = {} if run.parameters is not None else {f.name: f for f in _of_impacts(run, b)}
    judged = f" Judged in {len(chosen)} of {count} runs." if len(chosen) < count else ""
    return [whole.get(f.name) or replace(f, sentence=f.sentence + judged) for f in found]


def _of_first_runs(run: Trajectory, b: Bounds) -> list[Finding]:
    """The findings on the first runs of a batch with contacts, whose points take memory; residuals of all."""
    points = max(len(Points.of(model_of(run, s))) for s in run.segments)
    most = max(1, _MOST_POINTS // (len(run) * points))
    chosen = first_runs(run, min(most, _MOST_RUNS))
    if chosen is run:
        return _of_motion(run, b)
    judged = f" Judged in the first {len(chosen.outcomes)} of {len(run.outcomes)} runs."
    found = [replace(f, sentence=f.sentence + judged) for f in _of_motion(chosen, b)]
    return [complementarity(run, b.residual) if f.name == "complementarity" else f for f in found]


def _of_impacts(run: Trajectory, b: Bounds) -> list[Finding]:
    """The findings on impacts of all runs of a batch, which need no samples."""
    return list(event_findings(run.changed(events=replace(run.events, one_sided=())), b.impact, b.momentum, b.closure))


def _answered(f: Finding) -> Finding:
    """The finding; one whose value and bound are no numbers says so."""
    unknown = f.verdict == NOT_JUDGED and np.isnan(f.value) and (np.isnan(f.bound) or f.name == "closure velocity")
    return replace(f, sentence="No sample has numbers to judge by.") if unknown else f


def _outcome(run: Trajectory) -> Finding:
    early = sum(o.reason not in _ENDS_WELL for o in run.outcomes)
    return Finding("outcome", float(early), 0.0, "runs", WELL if not early else NOT_WELL, report.ending(run))


def _steps(run: Trajectory, bound: float) -> Iterator[Finding]:
    value = run.settings.get("step_error")
    if isinstance(value, float):
        sentence = (
            f"The errors of all steps add up to about {value:.2g} of the largest speed, as a few that are repeated in "
            f"halves show (bound {bound:.2g})."
        )
        yield Finding("steps", value, bound, "1", verdict_on(value, bound, 0.0), sentence)


def _energy(run: Trajectory, b: Bounds) -> Finding:
    bound = b.energy
    driven = [x.name for x in run.model.loops if x.driven]
    if driven:
        sentence = f"Loop {driven[0]!r} is driven; the work that this takes is not recorded."
        return Finding("energy", np.nan, bound, "J", NOT_JUDGED, sentence)
    course = balance(run)
    rounding = b.rounding * highest(np.abs(run.energy).max(axis=-1))
    allowed = np.maximum(bound * course.scale, rounding)
    value, limit, doubt, where, k = _worst(run, course.error, course.doubt, allowed)
    stake = f"{bound:g} of what is at stake" if limit > rounding[k[:-1]] else "for rounding"
    against = f"(bound {limit:.2g} J, {stake})"
    if not course.work:
        sentence = f"Nothing does work; energy changes by up to {value:.2g} J{where} {against}."
        verdict = verdict_on(value, limit, 0.0)
        return Finding("energy", value, limit, "J", verdict, sentence + damped_modes(run) * (verdict == NOT_WELL))
    did = ", ".join(f"{name} {x[k[:-1]]:.4g} J" for name, x in course.work.items())
    sentence = f"Work of {did}; energy differs from it by up to {value:.2g} J{where} {against}."
    found = doubted("energy", value, limit, doubt, "J", sentence, *_why(run))
    return replace(found, sentence=found.sentence + damped_modes(run)) if found.verdict == NOT_WELL else found


def _why(run: Trajectory) -> tuple[str, ...]:
    """Why balances are uncertain, if not for the distance of samples."""
    return ("Contacts are solved once a step, and a shorter one tells more: the balance is uncertain",) * acts(run)


def _momentum(run: Trajectory, bound: float) -> Iterator[Finding]:
    if not any(b.inertia.mass for b in run.model.bodies):
        sentence = "Nothing that moves has mass, hence none has momentum."
        yield Finding("linear momentum", np.nan, bound, "kg m/s", NOT_JUDGED, sentence)
        return
    held = "Contacts alone hold the mechanism;" if acts(run) else "Nothing holds the mechanism;"
    for kind, unit, drift in zip(("angular", "linear"), ("kg m²/s", "kg m/s"), balances.drifts(run), strict=True):
        value, limit, doubt, where, _ = _worst(run, drift.error, drift.doubt, bound * drift.scale)
        sentence = (
            f"{held} {kind} momentum differs from what acts on it by up to {value:.2g} {unit}{where} "
            f"(bound {limit:.2g} {unit}, {bound:g} of what the motion can carry)."
        )
        yield doubted(f"{kind} momentum", value, limit, doubt, unit, sentence, *_why(run))


def _closure(run: Trajectory, bound: float) -> Finding:
    rows, unit = rows_of(run.model), "rad, or of the loop's length"
    lengths = row_lengths(run.model)
    errors = np.abs(run.closure_error) / lengths * [r.positional for r in rows]
    value, where, k = _largest(run, errors.max(axis=-1))
    most = _of_all_steps(run, value)
    fit = _misfit(run, errors) if most > bound else None
    if fit is not None and most <= fit.allowed:
        closed, where, k = _largest(run, errors[..., fit.kept].max(axis=-1, initial=0.0))
        worst = fit.kept[int(np.argmax(errors[k][fit.kept]))]
        sentence = (
            f"Loops open by up to {closed * lengths[worst]:.2g} {rows[worst].unit}, in {rows[worst].name!r}{where} "
            f"(bound {bound * lengths[worst]:.2g} {rows[worst].unit}). Redundant rows, which no joint closes, stay "
            f"open by up to {most:.2g} ({unit}): the model's own numbers."
        )
        return Finding("closure", closed, bound, unit, verdict_on(closed, bound, 0.0), sentence)
    worst = int(np.argmax(errors[k]))
    if most > value:
        sentence = f"Loops open by up to {most:.2g} ({unit}), between samples (bound {bound:.2g})."
    else:
        size, allowed = (f"{x * lengths[worst]:.2g} {rows[worst].unit}" for x in (value, bound))
        sentence = f"Loops open by up to {size}, in {rows[worst].name!r}{where} (bound {allowed})."
    return Finding("closure", most, bound, unit, verdict_on(most, bound, 0.0), sentence)


def _of_all_steps(run: Trajectory, value: float) -> float:
    """The largest closure error after any step, if that is more than the value at samples."""
    if run.residual is None or not np.isfinite(run.residual).any():
        return value
    return max(value, float(np.nanmax(run.residual)))


@dataclass(frozen=True, eq=False)
class _Misfit:
    """How far the numbers of a model let the redundant rows of its loops open."""

    kept: np.ndarray  # numbers of the other rows
    allowed: float  # rad, or of the loop's length
    allowed_rate: float  # the same in a second, for velocities of size 1


def _misfit(run: Trajectory, errors: np.ndarray) -> _Misfit | None:
    """The misfit of a run with errors (..., n, n_rows) of its rows; None where no row is redundant."""
    finite = np.isfinite(run.q).all(axis=-1)
    if not finite.any():
        return None
    found = structure(run.robot, run.q[finite][0])
    if not (found.general and found.redundant):
        return None
    start = float(np.nanmax(errors[..., :1, list(found.redundant)], initial=0.0))
    tilt = _TILTS * found.misaligned
    return _Misfit(found.kept, min(2.0 * start + tilt, SMALL), min(_TILTS * start + tilt, SMALL))


def _closure_velocity(run: Trajectory, bound: float) -> Finding:
    m, unit = mechanism_of(run.model), "rad/s, or of the loop's length in a second"
    kept = list(m.velocity_rows)
    lengths = row_lengths(run.model)
    shares = np.abs(quantities.closure_rates(run)) / lengths
    value, where, k = _largest(run, shares[..., kept].max(axis=-1, initial=0.0))
    fit = _misfit(run, shares) if value > bound else None
    speed = float(np.nan_to_num(highest(np.linalg.norm(run.v / m.dof_lengths, axis=-1).ravel())))
    if fit is not None and value <= fit.allowed_rate * speed:
        kept = [r for r in kept if r in fit.kept]  # the others open as the model's own numbers have it
        value, where, k = _largest(run, shares[..., kept].max(axis=-1, initial=0.0))
    worst = kept[int(np.argmax(shares[k][kept]))] if kept else 0
    row = f"{rows_of(run.model)[worst].unit}/s"
    size = f"{value * lengths[worst]:.2g} {row}" if kept else f"0 {row}"
    sentence = f"Loops open at a rate of up to {size}{where} (bound {bound * lengths[worst]:.2g} {row})."
    return Finding("closure velocity", value, bound, unit, verdict_on(value, bound, 0.0), sentence)


def _quaternions(run: Trajectory, bound: float) -> Iterator[Finding]:
    off = []
    for j in run.model.joints:
        q = np.moveaxis(run.q[..., run.model.q_slice(j.name)], -1, 0)
        off += [np.abs(np.sqrt(sum(x * x for x in part)) - 1.0) for part in j.kind.unit_parts(tuple(q))]
    if off:
        value, where, _ = _largest(run, np.max(off, axis=0))
        sentence = f"Quaternions are off unit length by up to {value:.2g}{where} (bound {bound:.2g})."
        yield Finding("quaternions", value, bound, "1", verdict_on(value, bound, 0.0), sentence)


def _limits(run: Trajectory, slack: float) -> Iterator[Finding]:
    if not limited(run):
        return
    found = sorted(exceeded(run, slack), key=lambda x: -x.by)
    springs = any(has_spring(run, j) for j in run.model.joints)
    if not found:
        stopped = f", and stops give way by less than {GIVES_WAY:g} rad or m" if springs else ""
        yield Finding(
            "limits", 0.0, GIVES_WAY if springs else slack, "", WELL, f"All joints stay within their limits{stopped}."
        )
        return
    parts = [
        f"{x.joint!r} is beyond its {x.limit} by up to {x.by:.3g} {x.unit}{_when(run, x.sample)}"
        for x in found[:_SHOWN]
    ]
    more = f"; {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    worst = GIVES_WAY if has_spring(run, run.model.joint(found[0].joint)) else slack
    bound = f"{worst:g}" if worst == GIVES_WAY else "0"
    yield Finding("limits", found[0].by, worst, found[0].unit, NOT_WELL, "; ".join(parts) + more + f" (bound {bound}).")


def _worst(run: Trajectory, error, doubt, allowed) -> tuple[float, float, float, str, tuple[int, ...]]:
    """Error, bound and doubt of the sample that is farthest beyond its run's bound, where it is, and its index.

    Beyond doubt, if any is; else the largest error against its bound.
    """
    allowed = np.broadcast_to(np.asarray(allowed)[..., None], error.shape)
    unit = np.where(allowed > 0.0, allowed, np.finfo(float).tiny)
    sure, where, k = _largest(run, (np.abs(error) - doubt) / unit)
    if not sure > 1.0:
        _, where, k = _largest(run, np.abs(error) / unit)
    return float(np.abs(error[k])), float(allowed[k]), float(doubt[k]), where, k


def _largest(run: Trajectory, values: np.ndarray) -> tuple[float, str, tuple[int, ...]]:
    """The largest of (..., n), where it is in words, and its index; NaN if there is no number at all."""
    finite = np.where(np.isnan(values), -np.inf, values)
    k = tuple(int(i) for i in np.unravel_index(np.argmax(finite), values.shape))
    return float(values[k]), _when(run, k), k


def _when(run: Trajectory, k: tuple[int, ...]) -> str:
    which = f" of run {k[:-1] if len(k) > 2 else k[0]}" if len(k) > 1 else ""
    return f", at {run.times[k[-1]]:g} s{which}"
