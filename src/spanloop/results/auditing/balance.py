"""Energy in and out: what joints, forces and dampers did, against what the mechanism has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.joints import JointKind
from spanloop.model import Model
from spanloop.results.auditing.quadrature import Integral, integral
from spanloop.results.quantities import loaded, twist
from spanloop.topology import mechanism

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory


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
    return out


def highest(values: np.ndarray) -> np.ndarray:
    """The highest over samples (..., n) that are numbers; NaN where none is."""
    top = np.where(np.isnan(values), -np.inf, values).max(axis=-1)
    return np.where(np.isinf(top), np.nan, top)


def _resulting(run: Trajectory) -> np.ndarray:
    """Torques (..., n, nv), with those that result at driven joints."""

    def torques(*state, forces=None):
        return run.robot.solve(*state, forces=forces).tau

    return loaded("work of drives", torques, run.forces or {}, run.q, run.v, run.tau)


def _power_of_forces(run: Trajectory) -> np.ndarray:
    power = np.zeros(run.q.shape[:-1])
    for body, six in (run.forces or {}).items():
        power = power + np.sum(six * twist(run, body), axis=-1)
    return power


def _work_of_torques(run: Trajectory, freedoms: np.ndarray) -> Integral:
    """∫ tau · v dt; a torque that is held does its work along the way of its coordinate, exactly, where it has one."""
    way_of = _coordinates(run.model) if all(s.held for s in run.segments) else {}
    others = [k for k in freedoms if k not in way_of]
    total = integral(run, lambda r: np.sum((r.tau * r.v)[..., others], axis=-1))
    exact = [k for k in freedoms if k in way_of]
    way = np.diff(run.q[..., [way_of[k] for k in exact]], axis=-2)
    return Integral(total.parts + np.sum(run.tau[..., :-1, :][..., exact] * way, axis=-1), total.misses)


def _coordinates(model: Model) -> dict[int, int]:
    """Freedom to coordinate, where a coordinate's rate is that freedom."""
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
