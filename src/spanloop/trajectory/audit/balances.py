"""Balances of energy and momentum: the work of joints, forces and dampers against the energy of the mechanism."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.joints import JointKind
from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.topology import mechanism
from spanloop.trajectory.audit.contact_findings import acts
from spanloop.trajectory.audit.quadrature import Integral, integral
from spanloop.trajectory.contacts.contact_samples import number_type
from spanloop.trajectory.contacts.contact_work import displacement_changes, impulses
from spanloop.trajectory.quantities import loaded, pose, twist
from spanloop.trajectory.topologies import carries_mass, is_uniform, joined, topologies, without_mass

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


_ROUNDED = {"float64": 1e-6, "float32": 0.1}  # of the impulses that contacts exchange, as momentum at stake
_SMOOTH = ("joints", "drives", "forces", "dampers")  # works but those of contacts
_NAMED = 4  # works of contacts with a name of their own


@dataclass(frozen=True, eq=False)
class Balance:
    """error (..., n) [J]: change of energy since the segment's first sample less the work done since; doubt (..., n):
    the quadrature's own error in it; work: (...,) by doer, over the whole run; scale (...): the energy at stake."""

    error: np.ndarray
    doubt: np.ndarray
    work: dict[str, np.ndarray]
    scale: np.ndarray


def balance(run: Trajectory) -> Balance:
    """The energy balance of every run."""
    energy = run.energy.sum(axis=-1)
    works = work(run)
    course, doubt = np.zeros((2, *energy.shape))
    for one in works.values():
        course, doubt = course + one.course, doubt + one.doubt
    if acts(run):
        doubt = doubt + _uncertain(run, works)
    kinetic, potential = run.energy[..., 0], run.energy[..., 1]
    scale = highest(kinetic) + highest(potential) + highest(-potential)
    total = {name: np.nansum(one.parts, axis=-1) for name, one in works.items()}
    return Balance(_since_segment(run, energy - course), doubt, total, scale)


def work(run: Trajectory) -> dict[str, Integral]:
    """∫ power dt over the intervals, by doer; those that do none are left out."""
    driven = np.array([j.driven for j in run.model.joints for _ in range(j.kind.nv)], dtype=bool)
    damping = np.array([d for link in mechanism(run.model).links for d in link.damping])  # that of motors included
    out = {}
    if _any(np.where(driven, 0.0, run.tau)):
        out["joints"] = _work_of_torques(run, np.flatnonzero(~driven))
    if driven.any() and _any(run.v[..., driven]):
        out["drives"] = integral(run, lambda r: np.sum((_resulting(r) * r.v)[..., driven], axis=-1))
    if any(_any(six) for six in (run.forces or {}).values()):
        out["forces"] = integral(run, lambda r: _power_of_forces(r))
    if damping.any():
        out["dampers"] = integral(run, lambda r: -np.sum(damping * r.v**2, axis=-1))
    return out | (_work_of_contacts(run) if acts(run) else {})


def _uncertain(run: Trajectory, works: Mapping[str, Integral]) -> np.ndarray:
    """What steps with contacts leave uncertain in the energy (..., n) [J], up to each sample: they are of first order.

    Half of the change of work from one interval to the next, and what the displacement of joints changes.
    """
    changes = displacement_changes(run)[..., 0]
    for name, one in works.items():
        parts = np.nan_to_num(one.parts) if name in _SMOOTH else np.zeros(changes.shape)
        changes[..., 1:] += 0.5 * np.abs(np.diff(parts, axis=-1))
        changes[..., :-1] += 0.5 * np.abs(np.diff(parts, axis=-1))
    changes = np.where(run.contacts.work.pushed, changes, 0.0)
    return np.concatenate([np.zeros((*run.batch, 1)), np.cumsum(changes, axis=-1)], axis=-1)


def _work_of_contacts(run: Trajectory) -> dict[str, Integral]:
    """Work of friction and of impacts by contact, those that do most; of the others together."""
    found, p = run.contacts.work, run.contacts.samples.points
    every: dict[str, Integral] = {}
    for k, name in enumerate(p.contacts):
        mine = p.owner == k
        hits = found.hits[..., mine]
        rubs = "friction of" if np.any(p.friction[..., mine] > 0.0) else "contact"
        for word, chosen in ((rubs, ~hits), ("impacts of", hits)):
            parts = np.where(chosen, found.work[..., mine], 0.0).sum(axis=-1)
            misses = np.where(chosen, found.doubt[..., mine], 0.0).sum(axis=-1)
            if _any(parts) or _any(misses):
                every[f"{word} {name!r}"] = Integral(parts, misses)
    order = sorted(every, key=lambda name: -float(np.nansum(np.abs(every[name].parts))))
    if len(order) > _NAMED:
        rest = [every.pop(name) for name in order[_NAMED:]]
        every["other contacts"] = Integral(
            np.sum([x.parts for x in rest], axis=0), np.sum([x.misses for x in rest], axis=0)
        )
    return every


def highest(values: np.ndarray) -> np.ndarray:
    """The highest over samples (..., n) that are numbers; NaN where none is."""
    top = np.where(np.isnan(values), -np.inf, values).max(axis=-1)
    return np.where(np.isinf(top), np.nan, top)


def _resulting(run: Trajectory) -> np.ndarray:
    """Torques (..., n, nv), with those that result at driven joints."""

    def torques(robot: Dynamics, *state: np.ndarray, forces: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        return robot.solve(*state, forces=forces).tau

    def of(robot: Dynamics, forces: Mapping[str, np.ndarray], *state: np.ndarray) -> np.ndarray:
        return loaded("work of drives", functools.partial(torques, robot), forces, *state)

    if is_uniform(run):
        return of(run.robot, run.acting, run.q, run.v, run.tau)
    return joined(run, [(t, of(t.robot, t.forces, t.q, t.v, t.tau)) for t in topologies(run)])


def _power_of_forces(run: Trajectory) -> np.ndarray:
    power = np.zeros(run.q.shape[:-1])
    for body, six in (run.forces or {}).items():
        power = power + np.sum(six * twist(run, body), axis=-1)
    return power


def _work_of_torques(run: Trajectory, dofs: np.ndarray) -> Integral:
    """∫ tau · v dt; the work of a constant torque follows exactly from its coordinate, where it has one."""
    way_of = _coordinates(run.model) if all(s.held for s in run.segments) else {}
    others = [k for k in dofs if k not in way_of]
    total = integral(run, lambda r: np.sum((r.tau * r.v)[..., others], axis=-1))
    exact = [k for k in dofs if k in way_of]
    way = np.diff(run.q[..., [way_of[k] for k in exact]], axis=-2)
    return Integral(total.parts + np.sum(run.tau[..., :-1, :][..., exact] * way, axis=-1), total.misses)


def _coordinates(model: Model) -> dict[int, int]:
    """DoF to coordinate, where a coordinate's rate is that DoF."""
    out: dict[int, int] = {}
    for j in model.joints:
        if type(j.kind).plus is JointKind.plus and j.kind.nq == j.kind.nv:
            start, first = model.v_slice(j.name).start, model.q_slice(j.name).start
            out |= {start + k: first + k for k in range(j.kind.nv)}
    return out


def _since_segment(run: Trajectory, course: np.ndarray) -> np.ndarray:
    """A course (..., n) less its value at the first sample of each segment."""
    starts = np.cumsum([0, *map(len, run.segments)])[:-1]
    return course - np.repeat(course[..., starts], [len(s) for s in run.segments], axis=-1)


def _any(values: np.ndarray) -> bool:
    return bool(np.any(np.nan_to_num(values)))


# ---- momentum of a floating mechanism: only gravity and external forces change it


@dataclass(frozen=True, eq=False)
class Drift:
    """error (..., n): size of what momentum changed without a cause; doubt (..., n): the quadrature's own error in it;
    scale (...): the momentum that the motion's kinetic energy could carry."""

    error: np.ndarray
    doubt: np.ndarray
    scale: np.ndarray


def floats(run: Trajectory) -> bool:
    """Whether the mechanism floats: joints to the world are free, without springs, dampers and drives.

    A run of one topology; where none of its bodies is there, nothing floats.
    """
    model, absent = run.model, run.segments[0].absent
    if absent and not carries_mass(without_mass(model, absent)):
        return False
    roots = [j for j in model.joints if j.parent == WORLD]
    loose = all(j.kind.name == "free" and not (j.driven or any(j.damping) or any(j.stiffness)) for j in roots)
    return bool(roots) and loose and not any(WORLD in (x.a, x.b) for x in model.loops)


def drifts(run: Trajectory) -> tuple[Drift, Drift]:
    """Angular momentum about the centre of mass, and linear momentum."""
    pushed = _any(_from_outside(run))
    touched = impulses(run) if acts(run) else None
    mass, kinetic = without_mass(run.model, run.segments[0].absent).mass, highest(run.energy[..., 0])
    weight = mass * np.array(run.model.gravity)
    scales = np.sqrt(2.0 * kinetic * _turning_inertia(run)), np.sqrt(2.0 * kinetic * mass)
    if touched is not None:  # what contacts exchange has rounding, also where nothing moves
        rounded = _ROUNDED[number_type(run)] * touched.exchanged
        scales = scales[0] + rounded[..., 0], scales[1] + rounded[..., 1]
    out = []
    for half, scale in zip((slice(0, 3), slice(3, 6)), scales, strict=True):
        course = run.momentum[..., half] - run.momentum[..., :1, half]
        if half.start:
            course = course - (run.times - run.times[0])[:, None] * weight
        doubt = np.zeros(course.shape[:-1])
        for k in range(3 if pushed else 0):
            impulse = integral(run, lambda r, k=half.start + k: _from_outside(r)[..., k])  # type: ignore[misc]
            course[..., k] -= impulse.course
            doubt += impulse.doubt
        for k in range(3 if touched is not None else 0):
            assert touched is not None
            impulse = Integral(touched.parts[..., half.start + k], touched.doubt[..., half.start + k])
            course[..., k] -= impulse.course
            doubt += impulse.doubt
        course = np.stack([_since_segment(run, course[..., k]) for k in range(3)], axis=-1)
        out.append(Drift(np.linalg.norm(course, axis=-1), doubt, scale))
    return out[0], out[1]


def _from_outside(run: Trajectory) -> np.ndarray:
    """[moment about the centre of mass; force] (..., n, 6) of all that acts from outside but gravity, world axes."""
    total = np.zeros((*run.q.shape[:-1], 6))
    acting: list[tuple[str, np.ndarray]] = list((run.forces or {}).items())
    for j in run.model.joints:
        tau = run.tau[..., run.model.v_slice(j.name)]
        if j.parent == WORLD and _any(tau):
            turn = pose(run, j.child)[..., :3, :3]  # a free joint's torque and force are in the child's axes
            acting.append((j.child, np.einsum("...ij,...hj->...hi", turn, _halves(tau)).reshape(tau.shape)))
    for body, six in acting:
        lever = pose(run, body)[..., :3, 3] - run.center_of_mass
        total += np.concatenate([six[..., :3] + np.cross(lever, six[..., 3:]), six[..., 3:]], axis=-1)
    return total


def _halves(six: np.ndarray) -> np.ndarray:
    return six.reshape(*six.shape[:-1], 2, 3)


def _turning_inertia(run: Trajectory) -> float:
    """About the inertia [kg m²] against turning as a whole: of the first state, at the origins of the root bodies."""
    first = run.q[np.isfinite(run.q).all(axis=-1)][0]
    inertia = np.diag(run.robot.mass_matrix(first))
    roots = [run.model.v_slice(j.name).start for j in run.model.joints if j.parent == WORLD]
    return float(sum(inertia[k : k + 3].sum() for k in roots))
