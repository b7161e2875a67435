"""How fast dampers, springs, friction and gains pull at joints: the stiffest one, and the step that it asks for."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.flexible.modes import Modal
from spanloop.kernels import KernelSpec
from spanloop.model import Model
from spanloop.simulation.events.endings import Stop, limits_of
from spanloop.simulation.system import SLIP, System

EXPLICIT = 2.0  # rate times step: above it explicit steps are unstable, or nearly so (RK4 at 2.78, Euler at 2)
STOP = 300.0  # rad/s, of a joint on a stop: the inertia that it moves, in the neutral position
SOFT = 0.5  # step times frequency of a stop, at most: a joint meets it between two steps
GAINS, LAW = "gains", "torques of the controller or the forces"  # causes
_FEW = 8  # runs with parameters of their own, each of which is examined
LOSSES, INERTIAS = ("damping", "stiffness"), ("mass", "armature", "inertia")  # names of parameters
_FAST = 1e9  # 1/s: a faster rate is that of a joint which moves no inertia
_SMALL = 1e-6  # rad or m, and their rates: a difference for slopes of torques
_RANK = 1e-9  # of the largest singular value of the closures' rows: a smaller one is none
_SINGULAR = 1e-12  # is added to M, scaled to ones on its diagonal: links without mass are very fast, not infinitely


@dataclass(frozen=True)
class Stiffest:
    """The fastest decay or oscillation that torques at joints cause, and the joint and cause that are its largest part.

    rate: [1/s], of the mechanism at its start. mode: its name, where the joint is the modes of a flexible body.
    """

    rate: float
    joint: str
    cause: str
    mode: str = ""

    def __str__(self) -> str:
        rate = f"of {self.rate:.2g}" if self.rate < _FAST else f"above {_FAST:g}"
        mode = f"mode {self.mode}, " if self.mode else ""
        return f"the {self.cause} of joint {self.joint!r} ({mode}a rate {rate} 1/s)"

    def advice(self, h: float, integrator: str) -> str:
        """Why steps of h [s] are too long, and what to do about it."""
        ask = "asks" if self.cause in ("damping", "spring", "friction") else "ask"
        found = f"{self} {ask} for steps below {EXPLICIT / self.rate:.1g} s with integrator={integrator!r}, not {h:g} s"
        if self.cause == LAW:
            return f"{found}. Take shorter steps, or sl.control.pd, whose gains integrator='implicit' takes implicitly"
        return f"{found}. Use integrator='implicit', which is stable at any step"


def stiffest(system: System, q: np.ndarray, parameters: np.ndarray | None = None) -> Stiffest | None:
    """The fastest decay or oscillation of a system at rest; None if nothing pulls at joints.

    That of closed loops is taken at q (nq,), that of trees in the neutral position, so that it is computed once.
    parameters: live ones, (n,) or (runs, n): the fastest of the runs counts, of many runs that of the extreme ones.
    """
    if parameters is None:
        return _stiffest(system, system.model, q)
    rows = _extreme(system.model.parameters().names, np.unique(np.atleast_2d(parameters), axis=0))
    found = [_stiffest(system, system.model.with_parameters(row), q) for row in rows]
    return max((x for x in found if x is not None), key=lambda x: x.rate, default=None)


def _extreme(names: Sequence[str], rows: np.ndarray) -> np.ndarray:
    """Those of many rows of parameters in which a loss is largest or an inertia smallest."""
    if len(rows) <= _FEW:
        return rows
    differ = [k for k in range(rows.shape[1]) if rows[:, k].min() < rows[:, k].max()]
    losses = {int(rows[:, k].argmax()) for k in differ if is_of(names[k], LOSSES)}
    inertias = {int(rows[:, k].argmin()) for k in differ if is_of(names[k], INERTIAS)}
    return rows[sorted(losses | inertias | {0})]


def is_of(name: str, words: tuple[str, ...]) -> bool:
    """Whether a parameter is one of these: "hinge.damping", "ball.stiffness.0", "link.inertia.xx"."""
    return any(part in words for part in name.split(".")[-2:])


def _stiffest(system: System, model: Model, q: np.ndarray) -> Stiffest | None:
    parts = causes(system, model)
    K, D = (np.sum([part[i] for part in parts.values()], axis=0) for i in (0, 1))
    if not (K.any() or D.any()):
        return None
    closed = system.has_loops and not (model.switches or any(x.driven for x in model.loops))
    rate, dof = _fastest(model, tuple(K), tuple(D), tuple(q) if closed else None)
    weights = {name: d[dof] + k[dof] / max(rate, 1e-9) for name, (k, d) in parts.items()}
    joint, mode = _joint(model, dof)
    return Stiffest(rate, joint, max(weights, key=weights.__getitem__), mode)


def _joint(model: Model, dof: int) -> tuple[str, str]:
    """The name of the joint that a DoF belongs to, and that of its mode if it is one of a flexible body."""
    j = next(j for j in model.joints if dof in range(model.nv)[model.v_slice(j.name)])
    return j.name, j.kind.mode_names[dof - model.v_slice(j.name).start] if isinstance(j.kind, Modal) else ""


@functools.lru_cache(maxsize=64)
def _fastest(model: Model, K: Sequence[float], D: Sequence[float], q: tuple[float, ...] | None) -> tuple[float, int]:
    """The largest eigenvalue [1/s] of stiffness K and damping D (nv), and the DoF that has the largest part in it.

    q (nq,): closed loops there; None for the tree in the neutral position.
    """
    at = np.array(model.neutral() if q is None else q)
    scale, C = _scaled(model, at)
    N = np.eye(model.nv) if q is None else _free_directions(model, at, scale)
    n = N.shape[1]
    if not n:
        return 0.0, 0
    k, d = np.array(K) * scale**2, np.array(D) * scale**2
    inverse = _inverse(N.T @ C @ N)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-inverse @ (N.T * k) @ N, -inverse @ (N.T * d) @ N]])
    values, vectors = np.linalg.eig(A)
    fastest = int(np.argmax(np.abs(values)))
    rate = float(np.abs(values[fastest]))
    return rate, int(np.argmax(np.abs(N @ vectors[n:, fastest]) ** 2 * (d + k / max(rate, 1e-9))))


def stops_at_limits(model: Model, h: float) -> tuple[Stop, ...]:
    """Stops at all limits of joints: critically damped with STOP [rad/s], or softer for steps of h [s]."""
    frequency, w = min(STOP, SOFT / h), mobility(model)
    return tuple(Stop(limit, dof, frequency**2 / w[dof], 2.0 * frequency / w[dof]) for limit, dof in limits_of(model))


@functools.lru_cache(maxsize=64)
def mobility(model: Model) -> tuple[float, ...]:
    """The diagonal (nv) of the inverse of the mass matrix in the neutral position, loops open [1/(kg m²) or 1/kg]."""
    scale, C = _scaled(model, np.array(model.neutral()))
    return tuple((scale**2 * np.abs(np.diag(_inverse(C)))).tolist())  # inertias of files may be negative


def causes(system: System, model: Model) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Stiffness and damping (nv each) by cause, at rest, with the numbers of this model."""
    own = System(model, system.applied)
    stiffness, damping = (np.array(x, float) for x in own.springs_and_dampers({}))
    zeros = np.zeros(model.nv)
    kp, kd = (np.array(x, float) for x in system.applied.gains() or (zeros, zeros))
    stops = np.zeros(len(zeros)), np.zeros(len(zeros))
    for stop in system.stops:
        stops[0][stop.dof], stops[1][stop.dof] = stop.stiffness, stop.damping
    return {
        "damping": (zeros, damping),
        "spring": (stiffness, zeros),
        "friction": (zeros, np.maximum(own.friction, 0.0) / SLIP),
        GAINS: (kp, kd),
        "stops": stops,
    }


def measured(system: System, x: Mapping[str, Sequence[float]]) -> Stiffest | None:
    """The fastest decay or oscillation that torques of functions cause at the state x in floats, by differences.

    Gains that are known, stops and friction, which implicit steps take implicitly, are left out.
    """
    model, nv = system.model, system.model.nv
    pairs = zip(system.stiffness_and_damping(x), system.springs_and_dampers(x), strict=True)
    K, D = (np.subtract(own, known).astype(float) for known, own in pairs)
    D -= np.array(system.friction) / np.hypot(np.array(x["v"]), SLIP)
    for i in range(nv):
        slight, rate = _SMALL, _SMALL * (1.0 + abs(x["v"][i]))
        moved = [{**x, "q": system.moved(x["q"], _along(nv, i, way))} for way in (slight, -slight)]
        faster = [{**x, "v": [a + b for a, b in zip(x["v"], _along(nv, i, w), strict=True)]} for w in (rate, -rate)]
        for slopes, states, size in ((K, moved, slight), (D, faster, rate)):
            ahead, behind = (system.torques(state)[0][i] for state in states)
            slopes[i] += max(0.0, (behind - ahead) / (2.0 * size))
    K, D = (np.maximum(np.nan_to_num(y, posinf=0.0), 0.0) for y in (K, D))
    if not (K.any() or D.any()):
        return None
    rate, dof = _fastest(model, tuple(K), tuple(D), None)
    return Stiffest(rate, _joint(model, dof)[0], LAW)


def _along(n: int, i: int, size: float) -> list[float]:
    """n numbers, all zero but number i."""
    return [size if k == i else 0.0 for k in range(n)]


def _scaled(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """s (nv) and the matrix s M s + tiny at q, with ones on its diagonal."""
    spec = KernelSpec.of(model, "mass_matrix")
    M = np.array(spec.compute({"q": q.tolist()})[0], float).reshape(model.nv, model.nv)
    size = np.maximum(np.diag(M), _SINGULAR * max(np.diag(M).max(initial=0.0), 1e-30))
    scale = 1.0 / np.sqrt(size)
    return scale, scale[:, None] * M * scale + _SINGULAR * np.eye(model.nv)


def _inverse(C: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(C)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(C)


def _free_directions(model: Model, q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Columns (nv, n) that span the scaled velocities y, v = s y, that keep the loops closed."""
    rows = KernelSpec.of(model, "closure_jacobian").compute({"q": q.tolist()})[0]
    _, sizes, V = np.linalg.svd(np.array(rows, float).reshape(-1, model.nv) * scale)
    rank = int((sizes > _RANK * sizes.max(initial=0.0)).sum())
    return V[rank:].T
