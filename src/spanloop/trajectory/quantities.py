"""Quantities derived from samples: energies, momenta, closure errors, accelerations, reactions, poses of frames."""

from __future__ import annotations

import functools
import math
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, Refusal, StateWarning, UnsupportedError
from spanloop.loops.closure_errors import mechanism_of, rows_of
from spanloop.loops.dynamics_solution import Reactions, times, wrench_map
from spanloop.model import Model
from spanloop.topology import mechanism
from spanloop.trajectory.events import STOP, impulse_rows
from spanloop.trajectory.segment_models import robot_of
from spanloop.trajectory.topologies import (
    Topology,
    carries_mass,
    has_same_joints,
    is_uniform,
    joined,
    model_of,
    still_dofs,
    topologies,
)

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def of_bodies(run: Trajectory, function: str, *letters: str) -> np.ndarray:
    """A method of Dynamics at every sample that does not depend on loops: of_bodies(run, "energy", "q", "v").

    Bodies that are not there do not count; while none is there, what follows from a centre of mass is NaN.
    """
    if is_uniform(run):
        robot = run.robot
        return over_samples(function, getattr(robot, function), *(getattr(run, letter) for letter in letters))

    def one(t: Topology) -> np.ndarray:
        if function in _OF_CENTRE and t.absent and not carries_mass(t.model):
            return np.full((len(t.q), _OF_CENTRE[function]), np.nan)
        return over_samples(function, getattr(t.robot, function), *(getattr(t, letter) for letter in letters))

    return joined(run, [(t, one(t)) for t in topologies(run, loops=False)])


def strain_energy(run: Trajectory) -> dict[str, np.ndarray]:
    """Strain energy (..., n) of each flexible body by name; NaN where it is not in the model."""
    if has_same_joints(run):
        return run.robot.strain_energy(run.q)
    parts = [piece.strain_energy for piece in run.pieces]
    nothing = [np.full((*run.batch, len(piece)), np.nan) for piece in run.pieces]
    names = dict.fromkeys(name for part in parts for name in part)
    return {n: np.concatenate([p.get(n, no) for p, no in zip(parts, nothing, strict=True)], axis=-1) for n in names}


_OF_CENTRE = {"momentum": 6, "center_of_mass": 3}  # how many numbers they have; without mass there is no centre


def accelerations(run: Trajectory) -> np.ndarray:
    """a (..., n, nv) under the torques and forces that acted; bodies that are not there have none."""
    if is_uniform(run):
        return accelerations_under(run.robot, run.q, run.v, run.tau, run.acting)
    if not has_same_joints(run):
        raise InputError(
            'run.a: the segments of this run have models with different joints. Use run["joint"].a, which is NaN where '
            "there is no such joint"
        )
    found = []
    for t in topologies(run, most=None):
        a = accelerations_under(t.robot, t.q, t.v, t.tau, t.forces)
        a[:, still_dofs(t.model, t.absent)] = 0.0
        found.append((t, a))
    return joined(run, found)


def accelerations_under(robot: Dynamics, q, v, tau, forces: Mapping[str, np.ndarray]) -> np.ndarray:
    """a (..., n, nv) at samples, under these torques and forces (..., n, 6)."""
    refuse_driven_loops(robot.model, "accelerations")
    return loaded("accelerations", robot.forward_dynamics, forces, q, v, tau)


def loaded(name: str, compute, forces: Mapping[str, np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """compute(*arrays, forces=...) at every sample."""
    count = len(arrays)

    def with_forces(*rows):
        acting = dict(zip(forces, rows[count:], strict=True))
        return compute(*rows[:count], forces=acting) if acting else compute(*rows[:count])

    return over_samples(name, with_forces, *arrays, *forces.values())


def refuse_driven_loops(model: Model, what: str) -> None:
    """UnsupportedError if loops are driven: their accelerations are not recorded."""
    driven = [x.name for x in model.loops if x.driven]
    if driven:
        raise UnsupportedError(
            f"{what}: loop {driven[0]!r} is driven, and its accelerations are not recorded. Drive a joint instead"
        )


def closure_error(run: Trajectory) -> np.ndarray:
    """Errors (..., n, n_rows) of the model's closure rows; NaN in rows that are open."""
    return _of_rows(run, "closure_error", lambda robot, q, v: robot.closure_error(q))


def closure_rates(run: Trajectory) -> np.ndarray:
    """The rate (..., n, n_rows) at which each closure row opens [m/s or rad/s]; NaN in rows that are open."""

    def rates(robot: Dynamics, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.einsum("...rk,...k->...r", robot.closure_jacobian(q), v)

    return _of_rows(run, "velocity_residual", rates)


def _of_rows(run: Trajectory, name: str, compute: Callable[..., np.ndarray]) -> np.ndarray:
    """compute(robot, q, v) of closure rows at all samples; NaN in rows that are open."""
    if is_uniform(run):
        return over_samples(name, functools.partial(compute, run.robot), run.q, run.v)
    names = [row.name for row in rows_of(run.model)]
    out = np.full((*run.batch, len(run), len(names)), np.nan)
    for t in topologies(run, most=None):
        own = [row.name for row in rows_of(t.model)]
        here = [k for k, row in enumerate(own) if row in names]
        if here:
            found = np.full((len(t.q), len(names)), np.nan)
            values = over_samples(name, functools.partial(compute, t.robot), t.q, t.v)
            found[:, [names.index(own[k]) for k in here]] = values[:, here]
            out[t.where] = found
    return out


def closure_residual(run: Trajectory) -> np.ndarray:
    """The largest error (..., n) over the closure rows that constrain positions [m or rad]."""
    return _largest_closed(run, run.closure_error, mechanism(run.model).position_rows)


def velocity_residual(run: Trajectory) -> np.ndarray:
    """The largest rate (..., n) over the closure rows that constrain velocities [m/s or rad/s]."""
    return _largest_closed(run, closure_rates(run), mechanism(run.model).velocity_rows)


def _largest_closed(run: Trajectory, errors: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """The largest size over rows that are closed; NaN after a run's end alone."""
    if is_uniform(run):
        return largest(errors, rows)
    going = np.concatenate([np.isfinite(s.q).all(axis=-1) for s in run.segments], axis=-1)
    return np.where(going, largest(np.nan_to_num(errors), rows), np.nan)


def error_of(run: Trajectory, name: str) -> np.ndarray:
    """How far (..., n, rows) a loop or coupling is from closed, whether it is closed or not; a joint from its stop."""
    rows = [k for k, row in enumerate(impulse_rows(run.model)) if row.owner == name]
    if not rows and name.endswith(STOP):
        return _gap_to_limit(run, name.removesuffix(STOP))
    if is_uniform(run) or not has_same_joints(run):
        return run.closure_error[..., rows]
    found = over_samples("error", run.robot.closure_error, run.q)[..., rows]
    closed = run.closure_error[..., rows]  # a loop may be closed at a frame that it has captured
    return np.where(np.isnan(closed), found, closed)


def _gap_to_limit(run: Trajectory, joint: str) -> np.ndarray:
    """How far (..., n, 1) a joint is from the nearer of its limits."""
    j, q = run.model.joint(joint), run[joint].q[..., None]
    low, high = (np.inf if limit is None else sign * limit[0] for limit, sign in ((j.lower, -1.0), (j.upper, 1.0)))
    return np.minimum(q + low, high - q)


def row_forces(run: Trajectory, name: str) -> np.ndarray:
    """λ (..., n, rows) of a loop, coupling or stop at samples; 0 while it is open."""
    parts: list[tuple[Topology, np.ndarray]] = []
    count = 1
    for t in topologies(run):
        mine = [k for k, row in enumerate(impulse_rows(t.model)) if row.owner == name]
        count = max(count, len(mine))
        if mine:
            parts.append(
                (t, loaded("force", functools.partial(_multipliers, t.robot, mine), t.forces, t.q, t.v, t.tau))
            )
    out = np.zeros((*run.batch, len(run), count))
    for t, values in parts:
        out[t.where] = values
    return out


def _multipliers(
    robot: Dynamics, rows: list[int], *state: np.ndarray, forces: Mapping[str, np.ndarray] | None = None
) -> np.ndarray:
    return robot.solve(*state, forces=forces).rows[..., rows]


def is_closed(run: Trajectory, name: str) -> np.ndarray:
    """Whether (..., n) a loop, coupling or stop is closed at each sample."""
    out = []
    for s in run.segments:
        shape = (*run.batch, len(s))
        if name not in run.events.switches:
            closures = {row.owner for row in impulse_rows(model_of(run, s))}
            out.append(np.full(shape, name in closures))
        elif s.closed is not None:
            out.append(np.full(shape, name in s.closed))
        else:
            on = run.events.closed_at(s.times, s.v.reshape(-1, *s.v.shape[-2:]))
            out.append(on[..., run.events.switches.index(name)].reshape(shape))
    return np.concatenate(out, axis=-1)


def impulses(run: Trajectory, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Moments (k,) at which a loop, coupling or stop gave an impulse, and the impulses (k, 6) or (k,) of one run."""
    if run.batch:
        raise InputError(
            f'run["{name}"].impulse: the runs of a batch differ in their events. Use run[0]["{name}"].impulse, or '
            "run.events.impulse for all"
        )
    events = run.events
    rows = events.rows_named(name)
    given = [(moment[-1], events.impulse_in(moment)[rows]) for moment in events.moments()]
    last = [k for k, row in given if row.any()]
    found = np.array([row for _, row in given if row.any()]).reshape(len(last), len(rows))
    six = np.zeros((len(last), 6))
    for i, (k, row) in enumerate(zip(last, found, strict=True)):
        model = _holder(run, name, events.time[k])
        if model is None:  # a coupling or stop, of one row
            return events.time[last], found.sum(axis=-1)
        closure = next(c for c in mechanism_of(model).closures if c.name == name)
        six[i] = times(wrench_map(robot_of(model), closure, events.q[k, : model.nq]), row)
    return events.time[last], six if last or _holder(run, name, 0.0) else np.zeros(0)


def _holder(run: Trajectory, name: str, time: float) -> Model | None:
    """The model in which a loop is at a moment: after it, before it, or at any time; None if it is no loop."""
    k = bisect_left(run.segments, time, key=lambda s: float(s.times[0]))
    order = (*run.segments[k : k + 1], *run.segments[max(k - 1, 0) : k], *run.segments)
    models = chain((model_of(run, s) for s in order), [run.model])
    return next((m for m in models if any(x.name == name for x in m.loops)), None)


def largest(errors: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """The largest size over some of the last axis's entries; 0 where there are none."""
    chosen = np.abs(errors[..., list(rows)])
    return chosen.max(axis=-1, initial=0.0)


def twist(run: Trajectory, frame: str) -> np.ndarray:
    """[angular; linear] velocity (..., n, 6) of a frame's origin, in world axes."""

    def moving(robot: Dynamics, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.einsum("...rk,...k->...r", robot.jacobian(q, frame), v)

    return _of_frame(run, "velocity", frame, moving, (6,))


def pose(run: Trajectory, frame: str) -> np.ndarray:
    """Pose (..., n, 4, 4) of a frame in the world."""
    return _of_frame(run, "pose", frame, lambda robot, q, v: robot.pose(q, frame), (4, 4))


def _of_frame(
    run: Trajectory, name: str, frame: str, compute: Callable[..., np.ndarray], shape: tuple[int, ...]
) -> np.ndarray:
    """compute(robot, q, v) of a frame at all samples; NaN where there is no such frame."""
    if is_uniform(run):
        run.model.frame(frame)
        return over_samples(name, functools.partial(compute, run.robot), run.q, run.v)
    found = []
    for t in topologies(run, loops=False):
        here = has_frame(t.model, frame)
        values = over_samples(name, functools.partial(compute, t.robot), t.q, t.v) if here else None
        found.append((t, np.full((len(t.q), *shape), np.nan) if values is None else values))
    return joined(run, found)


def has_frame(model: Model, name: str) -> bool:
    """Whether the model has a frame or body of this name."""
    return name in model.body_number or any(f.name == name for f in model.frames)


def reactions(run: Trajectory) -> Reactions:
    """[torque; force] (..., n, 6) of every joint on its child and every loop on its body b, by name.

    Loops that are open carry nothing; joints that are not there have NaN.
    """
    if is_uniform(run):
        return _reactions(run.robot, run.acting, run.q, run.v, run.tau)
    found = [(t, _reactions(t.robot, t.forces, t.q, t.v, t.tau)) for t in topologies(run)]
    models = (run.model, *(t.model for t in topologies(run)))
    loops = {x.name for m in models for x in m.loops}
    joints = dict.fromkeys(j.name for m in models for j in m.joints)
    out, unique = {}, {}
    for name in (*joints, *dict.fromkeys(x.name for m in models for x in m.loops)):
        nothing = 0.0 if name in loops else np.nan
        out[name] = joined(run, [(t, r.get(name, np.full((len(t.q), 6), nothing))) for t, r in found])
        unique[name] = all(r.unique.get(name, True) for _, r in found)
    return Reactions(out, unique)


def _reactions(robot: Dynamics, forces: Mapping[str, np.ndarray], *state: np.ndarray) -> Reactions:
    names: list[str] = []
    unique: dict[str, bool] = {}

    def rows(*arrays, forces=None):
        found = robot.reactions(*arrays, forces=forces)
        names[:] = list(found)
        for name, alone in found.unique.items():
            unique[name] = unique.get(name, True) and alone
        return np.stack([found[name] for name in names], axis=-2)

    refuse_driven_loops(robot.model, "reactions")
    six = loaded("reactions", rows, forces, *state)
    return Reactions({name: six[..., k, :] for k, name in enumerate(names)}, unique)


# ---- functions of a state at every sample


ROWS = 8192  # states in one call, which bounds the memory of its result


def over_samples(name: str, compute: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """compute(*rows (k, size)) → (k, *shape) for all samples of arrays (..., n, size), as (..., n, *shape).

    Rows with NaN, after a run's end, stay NaN. Other samples without an answer are NaN, too, with one warning.
    """
    leading = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    n = math.prod(leading)
    rows = [np.broadcast_to(a, (*leading, a.shape[-1])).reshape(n, a.shape[-1]) for a in arrays]
    finite = np.flatnonzero(np.logical_and.reduce([np.isfinite(a).all(axis=1) for a in rows]))
    parts, refusals = [], list[Refusal]()
    for k in range(0, max(len(finite), 1), ROWS):
        part, refusal = _with_refusal(compute, *(a[finite[k : k + ROWS]] for a in rows))
        parts.append(part)
        refusals += [] if refusal is None else [refusal]
    found = np.concatenate(parts)
    out = np.full((len(rows[0]), *found.shape[1:]), np.nan)
    out[finite] = found
    if refusals:
        refused = finite[~np.isfinite(found.reshape(len(found), -1)).all(axis=1)]
        refuse_states(name, refused, lambda _: refusals[0], leading, out)
    return out.reshape(*leading, *found.shape[1:])


def _with_refusal(compute: Callable[..., np.ndarray], *rows: np.ndarray) -> tuple[np.ndarray, Refusal | None]:
    """compute(*rows), and why the first state without an answer has none; other warnings are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StateWarning)
        result = compute(*rows)
    refusals = [w.message.refusal for w in caught if isinstance(w.message, StateWarning)]
    for w in caught:
        if not isinstance(w.message, StateWarning):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return result, refusals[0] if refusals else None
