"""The audit of a motion: findings, each compared with a bound that it states."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest, printable
from spanloop.loops.assembly import SMALL
from spanloop.loops.closure_errors import mechanism_of, rows_of
from spanloop.loops.constraint_rank import structure
from spanloop.model.parts import Joint
from spanloop.trajectory import quantities, report
from spanloop.trajectory.audit import balances
from spanloop.trajectory.audit.balances import balance, highest

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

WELL, NOT_WELL, NOT_JUDGED = "well", "not well", "not judged"

_ENDS_WELL = ("finished", "event")

_SHOWN = 3  # limits that are named

_TILTS = 30.0  # by which a misalignment may exceed that of a few states


@dataclass(frozen=True)
class Finding:
    """One point of an audit: the worst value met, the bound for it, the verdict, and the matter in words."""

    name: str
    value: float
    bound: float
    unit: str
    verdict: str
    sentence: str


@dataclass(frozen=True, repr=False)
class Audit:
    """What was simulated, and the findings; print it, or ask audit["energy"].value."""

    headline: str
    findings: tuple[Finding, ...]

    @property
    def well(self) -> bool:
        """Whether no finding fails its bound."""
        return not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """Names of the findings that are not well."""
        return tuple(f.name for f in self.findings if f.verdict == NOT_WELL)

    def __getitem__(self, name: str) -> Finding:
        for f in self.findings:
            if f.name == name:
                return f
        raise InputError(f"the audit has no finding {name!r}; {nearest(name, [f.name for f in self.findings])}")

    def __repr__(self) -> str:
        return f"Audit({self._verdict()})"

    def __str__(self) -> str:
        return printable("\n".join([self.headline, *map(_line, self.findings), self._verdict()]))

    def _repr_html_(self) -> str:
        from spanloop.model.printout import heading, table

        marks = {WELL: "✓", NOT_WELL: "✗", NOT_JUDGED: "?"}
        rows = [(marks[f.verdict], f.name, f.verdict, f.sentence) for f in self.findings]
        what = self.headline.splitlines()[0]
        return heading(self._verdict(), what) + table(("", "point", "verdict", ""), rows)

    def _verdict(self) -> str:
        unknown = [f.name for f in self.findings if f.verdict == NOT_JUDGED]
        good = "What could be judged is well." if unknown else "All is well."
        sentence = f"Not well: {', '.join(self.faults)}." if self.faults else good
        return f"{sentence} Not judged: {', '.join(unknown)}." if unknown else sentence


def _line(f: Finding) -> str:
    head = f"  {f.verdict:<10}  {f.name:<16}  "
    return textwrap.fill(f.sentence, 120, initial_indent=head, subsequent_indent=" " * len(head))


@dataclass(frozen=True)
class Bounds:
    """Bounds of an audit, those of a run in float64; limit: rad or m beyond a limit that are rounding."""

    energy: float = 1e-6
    momentum: float = 1e-6
    closure: float = 1e-9
    velocity: float = 1e-8
    quaternion: float = 1e-9
    step: float = 1e-3
    limit: float = 1e-9


_FLOAT32 = Bounds(energy=1e-5, momentum=1e-5, closure=1e-5, velocity=1e-4, quaternion=1e-6, limit=1e-6)


_STOPPED = 0.02  # rad or m: how far stops at limits (limits="stop") may give way


def bounds_of(run: Trajectory) -> Bounds:
    """The bounds for the number type of a run, and its stops."""
    bounds = _FLOAT32 if run.settings.get("dtype") == "float32" else Bounds()
    return replace(bounds, limit=_STOPPED) if run.settings.get("limits") == "stop" else bounds


def audit(
    run: Trajectory,
    *,
    energy: float | None = None,
    momentum: float | None = None,
    closure: float | None = None,
    velocity: float | None = None,
    quaternion: float | None = None,
    step: float | None = None,
) -> Audit:
    """The findings on a run or batch.

    Bounds: energy and momentum relative to what is at stake in the motion; closure [rad, or of the loop's length],
    velocity [the same in a second] of closures; quaternion: off unit length; step: the errors of all steps together,
    as a share of the largest speed. By default those of the run's number type (bounds_of).
    """
    given = {"energy": energy, "momentum": momentum, "closure": closure, "velocity": velocity,
             "quaternion": quaternion, "step": step}  # fmt: skip
    b = replace(bounds_of(run), **{name: x for name, x in given.items() if x is not None})
    findings = [_outcome(run), *_steps(run, b.step), _energy(run, b.energy)]
    if balances.floats(run.model):
        findings += _momentum(run, b.momentum)
    if run.closure_error.shape[-1]:
        findings += [_closure(run, b.closure), _closure_velocity(run, b.velocity)]
    findings += [*_quaternions(run, b.quaternion), *_limits(run, b.limit)]
    return Audit(report.headline(run), tuple(map(_answered, findings)))


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
        yield Finding("steps", value, bound, "1", _verdict(value, bound, 0.0), sentence)


def _energy(run: Trajectory, bound: float) -> Finding:
    driven = [x.name for x in run.model.loops if x.driven]
    if driven:
        sentence = f"Loop {driven[0]!r} is driven; the work that this takes is not recorded."
        return Finding("energy", np.nan, bound, "J", NOT_JUDGED, sentence)
    found = balance(run)
    rounding = 1e-12 * highest(np.abs(run.energy).max(axis=-1))
    allowed = np.maximum(bound * found.scale, rounding)
    value, limit, doubt, where, k = _worst(run, found.error, found.doubt, allowed)
    stake = f"{bound:g} of what is at stake" if limit > rounding[k[:-1]] else "for rounding"
    against = f"(bound {limit:.2g} J, {stake})"
    if not found.work:
        sentence = f"Nothing does work; energy changes by up to {value:.2g} J{where} {against}."
        return Finding("energy", value, limit, "J", _verdict(value, limit, 0.0), sentence)
    did = ", ".join(f"{name} {x[k[:-1]]:.4g} J" for name, x in found.work.items())
    sentence = f"Work of {did}; energy differs from it by up to {value:.2g} J{where} {against}."
    return _doubted("energy", value, limit, doubt, "J", sentence)


def _momentum(run: Trajectory, bound: float) -> Iterator[Finding]:
    if not any(b.inertia.mass for b in run.model.bodies):
        sentence = "Nothing that moves has mass, hence none has momentum."
        yield Finding("linear momentum", np.nan, bound, "kg m/s", NOT_JUDGED, sentence)
        return
    for kind, unit, drift in zip(("angular", "linear"), ("kg m²/s", "kg m/s"), balances.drifts(run), strict=True):
        value, limit, doubt, where, _ = _worst(run, drift.error, drift.doubt, bound * drift.scale)
        sentence = (
            f"Nothing holds the mechanism; {kind} momentum changes without a cause by up to {value:.2g} {unit}{where} "
            f"(bound {limit:.2g} {unit}, {bound:g} of what the motion can carry)."
        )
        yield _doubted(f"{kind} momentum", value, limit, doubt, unit, sentence)


def _closure(run: Trajectory, bound: float) -> Finding:
    rows, unit = rows_of(run.model), "rad, or of the loop's length"
    lengths = np.array(mechanism_of(run.model).row_lengths)
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
        return Finding("closure", closed, bound, unit, _verdict(closed, bound, 0.0), sentence)
    worst = int(np.argmax(errors[k]))
    if most > value:
        sentence = f"Loops open by up to {most:.2g} ({unit}), between samples (bound {bound:.2g})."
    else:
        size, allowed = (f"{x * lengths[worst]:.2g} {rows[worst].unit}" for x in (value, bound))
        sentence = f"Loops open by up to {size}, in {rows[worst].name!r}{where} (bound {allowed})."
    return Finding("closure", most, bound, unit, _verdict(most, bound, 0.0), sentence)


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
    lengths = np.array(m.row_lengths)
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
    return Finding("closure velocity", value, bound, unit, _verdict(value, bound, 0.0), sentence)


def _quaternions(run: Trajectory, bound: float) -> Iterator[Finding]:
    off = []
    for j in run.model.joints:
        q = np.moveaxis(run.q[..., run.model.q_slice(j.name)], -1, 0)
        off += [np.abs(np.sqrt(sum(x * x for x in part)) - 1.0) for part in j.kind.unit_parts(tuple(q))]
    if off:
        value, where, _ = _largest(run, np.max(off, axis=0))
        sentence = f"Quaternions are off unit length by up to {value:.2g}{where} (bound {bound:.2g})."
        yield Finding("quaternions", value, bound, "1", _verdict(value, bound, 0.0), sentence)


def _limits(run: Trajectory, slack: float) -> Iterator[Finding]:
    if not limited(run):
        return
    found = sorted(exceeded(run, slack), key=lambda x: -x.by)
    if not found:
        stopped = f", and stops give way by less than {slack:g} rad or m" if slack >= _STOPPED else ""
        yield Finding("limits", 0.0, slack, "", WELL, f"All joints stay within their limits{stopped}.")
        return
    parts = [
        f"{x.joint!r} is beyond its {x.limit} by up to {x.by:.3g} {x.unit}{_when(run, x.sample)}"
        for x in found[:_SHOWN]
    ]
    more = f"; {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    bound = f"{slack:g}" if slack >= _STOPPED else "0"
    yield Finding("limits", found[0].by, slack, found[0].unit, NOT_WELL, "; ".join(parts) + more + f" (bound {bound}).")


def _doubted(name: str, value: float, bound: float, doubt: float, unit: str, sentence: str) -> Finding:
    verdict = _verdict(value, bound, doubt)
    if verdict == NOT_JUDGED:
        sentence += (
            f" The samples are too far apart to tell: the integral over them is uncertain by {doubt:.2g} {unit}."
        )
    return Finding(name, value, bound, unit, verdict, sentence)


def _verdict(value: float, bound: float, doubt: float) -> str:
    if value <= bound:
        return WELL
    return NOT_WELL if value > bound + doubt else NOT_JUDGED


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


# ---- joints beyond their limits


_TORQUES = {"rad": "N m", "m": "N"}


@dataclass(frozen=True)
class Excess:
    """A joint's farthest way beyond a limit: by how much, and in which sample (run..., time)."""

    joint: str
    limit: str  # "upper limit 1.5 rad"
    by: float
    unit: str
    sample: tuple[int, ...]


def exceeded(run: Trajectory, slack: float) -> list[Excess]:
    """All limits that were exceeded by more than the slack, the worst sample of each."""
    return [x for j in run.model.joints for x in _of(run, j) if x.by > slack]


def limited(run: Trajectory) -> bool:
    """Has any joint a limit?"""
    return any(_dof_limits(run, j) for j in run.model.joints)


def _of(run: Trajectory, joint: Joint) -> Iterator[Excess]:
    for beyond, bounds, name, units in _dof_limits(run, joint):
        for k, (bound, unit) in enumerate(zip(bounds, units, strict=True)):
            by = beyond[..., k]
            if np.isfinite(bound) and np.isfinite(by).any():
                worst = np.unravel_index(np.nanargmax(by), by.shape)
                sample = tuple(int(i) for i in worst)
                yield Excess(joint.name, f"{name} {bound:g} {unit}".rstrip(), float(by[worst]), unit, sample)


def _dof_limits(run: Trajectory, joint: Joint) -> list[tuple[np.ndarray, tuple[float, ...], str, tuple[str, ...]]]:
    """By how much (..., n, nv) a joint is beyond each of its limits, the limits, and what they are."""
    model, units = run.model, joint.kind.units
    v, tau = (x[..., model.v_slice(joint.name)] for x in (run.v, run.tau))
    rates = tuple(f"{u}/s" if u else "" for u in units)
    torques = tuple(_TORQUES.get(u, "") for u in units)
    out = []
    if joint.kind.nq == joint.kind.nv:
        q = run.q[..., model.q_slice(joint.name)]
        if joint.lower is not None:
            out.append((np.array(joint.lower) - q, joint.lower, "lower limit", units))
        if joint.upper is not None:
            out.append((q - np.array(joint.upper), joint.upper, "upper limit", units))
    if joint.speed is not None:
        out.append((np.abs(v) - np.array(joint.speed), joint.speed, "speed limit", rates))
    stopped = run.settings.get("limits") == "stop" and any((x[0] > 0.0).any() for x in out)
    if joint.effort is not None and not joint.driven and not stopped:  # a stop's torque is not the drive's
        out.append((np.abs(tau) - np.array(joint.effort), joint.effort, "effort limit", torques))
    return out
