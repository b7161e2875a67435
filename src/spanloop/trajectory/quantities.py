"""Quantities derived from samples: energies, momenta, closure errors, accelerations, reactions, poses of frames."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.dynamics import Dynamics
from spanloop.errors import Refusal, StateWarning, UnsupportedError
from spanloop.loops.dynamics_solution import Reactions
from spanloop.model import Model
from spanloop.topology import mechanism

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def quantity(run: Trajectory, function: str, *letters: str) -> np.ndarray:
    """A method of Dynamics at every sample: quantity(run, "energy", "q", "v")."""
    return over_samples(function, getattr(run.robot, function), *(getattr(run, letter) for letter in letters))


def accelerations(run: Trajectory) -> np.ndarray:
    """a (..., n, nv) under the torques and forces that acted."""
    return accelerations_under(run.robot, run.q, run.v, run.tau, run.forces or {})


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


def closure_residual(run: Trajectory) -> np.ndarray:
    """The largest error (..., n) over the closure rows that constrain positions [m or rad]."""
    return largest(run.closure_error, mechanism(run.model).position_rows)


def velocity_residual(run: Trajectory) -> np.ndarray:
    """The largest rate (..., n) over the closure rows that constrain velocities [m/s or rad/s]."""
    return largest(closure_rates(run), mechanism(run.model).velocity_rows)


def closure_rates(run: Trajectory) -> np.ndarray:
    """The rate (..., n, n_rows) at which each closure row opens [m/s or rad/s]."""

    def rates(q, v):
        return np.einsum("...rk,...k->...r", run.robot.closure_jacobian(q), v)

    return over_samples("velocity_residual", rates, run.q, run.v)


def largest(errors: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """The largest size over some of the last axis's entries; 0 where there are none."""
    chosen = np.abs(errors[..., list(rows)])
    return chosen.max(axis=-1, initial=0.0)


def twist(run: Trajectory, frame: str) -> np.ndarray:
    """[angular; linear] velocity (..., n, 6) of a frame's origin, in world axes."""
    run.model.frame(frame)

    def moving(q, v):
        return np.einsum("...rk,...k->...r", run.robot.jacobian(q, frame), v)

    return over_samples("velocity", moving, run.q, run.v)


def pose(run: Trajectory, frame: str) -> np.ndarray:
    """Pose (..., n, 4, 4) of a frame in the world."""
    return over_samples("pose", lambda q: run.robot.pose(q, frame), run.q)


def reactions(run: Trajectory) -> Reactions:
    """[torque; force] (..., n, 6) of every joint on its child and every loop on its body b, by name."""
    names: list[str] = []
    unique: dict[str, bool] = {}

    def rows(*arrays, forces=None):
        found = run.robot.reactions(*arrays, forces=forces)
        names[:] = list(found)
        for name, alone in found.unique.items():
            unique[name] = unique.get(name, True) and alone
        return np.stack([found[name] for name in names], axis=-2)

    refuse_driven_loops(run.model, "reactions")
    six = loaded("reactions", rows, run.forces or {}, run.q, run.v, run.tau)
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
