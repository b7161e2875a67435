"""The shape that flexible bodies take at rest: modal coordinates in equilibrium with springs, weight and loads.

Some joints are held, the others are free: the modes, and with loops the joints that follow them. At rest

    Nᵀ r(q) = 0,    e(q) = 0,    r = K (q − rest) + w(q),

in which r (free DoF) is what torques would have to supply, e the closure errors and N spans the free velocities that
keep the loops closed. Newton's method solves both; the stiffness H = ∂r/∂q + ∂(Jᵀ λ)/∂q, of differences, contains
what axial loads add. An equilibrium is stable where Nᵀ H N is positive definite. With K and G = H − K it buckles at
the least factor s > 0 of the load at which Nᵀ (K + s G) N is singular.

| symbol | shape | meaning |
|---|---|---|
| r, w | free | torques that hold a position; those of weight and loads alone |
| J, e | rows × free, rows | closure Jacobian, closure errors |
| λ | rows | forces of the loops |
| H, N | free × free, free × k | stiffness, free directions |
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics.static_loads import at_body_origins
from spanloop.errors import InputError, Reason, Refusal, SpanloopWarning, nearest
from spanloop.flexible.deformation import SLOPE, largest_turn, more_pieces
from spanloop.loops.batching import Computed, over_states
from spanloop.model import Model
from spanloop.model.flexible_bodies.pieces import modal, mode_joints
from spanloop.model.flexible_bodies.stiffening_limits import judge_loads, judge_spin, loaded_bodies
from spanloop.model.poses import default_position
from spanloop.model.user_input import by_name

_ROUNDS = 30  # of Newton's method
_HALVINGS = 6  # of one of its steps
_RAMP = 8  # shares of the load, where it is too large for one go
_SMALL = 1e-6  # m or rad, for differences
_CLOSED = 1e-12  # of the forces, and m or rad of closures
_RANK = 1e-10  # of the largest singular value of the closures' rows


def static_deflection(
    robot: Any, q: Any, forces: Mapping[str, ArrayLike] | None, held: Sequence[str] | None, v: Any = None
) -> np.ndarray:
    """q (..., nq) with the flexible bodies in equilibrium; see Dynamics.static_deflection."""
    model = robot.model
    if not any(j.kind.bends for j in model.joints):
        raise InputError("static_deflection: the model has no flexible body; nothing bends")
    fixed = _held(model, held)
    if isinstance(q, Mapping):
        q = by_name(model, q, default_position(model), "q", "static_deflection")
        q = robot.assemble(q, fixed) if model.loops or model.couplings else q
    free = [k for j in model.joints if j.name not in fixed for k in range(model.nv)[model.v_slice(j.name)]]
    task = _Task(robot, np.array(free, dtype=int), forces or {}, _rates(model, v, free))

    def compute(rows: np.ndarray) -> Computed:
        found = [task.solved(row) for row in rows]
        refused = {k: task.refusal(share) for k, (_, share) in enumerate(found) if share < 1.0}
        return (np.array([x for x, _ in found]).reshape(rows.shape),), refused

    bent = over_states("static_deflection", robot, compute, q=(q, model.nq))[0]
    rows = bent.reshape(-1, model.nq)
    if task.v.any():
        judge_spin("static_deflection", robot, rows, np.broadcast_to(task.v, (len(rows), model.nv)))
    _warn_of_slopes(model, rows)
    good = rows[np.isfinite(rows).all(axis=1)]
    _warn_of_buckling(task, good)
    if loaded_bodies(model):
        for row in good:
            judge_loads("static_deflection", robot, row, task.v, task.holding(row), forces=task.loads(row))
    return bent


def _held(model: Model, held: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the joints that keep their positions."""
    rigid = [j.name for j in model.joints if j.kind.nv and not j.kind.bends]
    if held is not None:
        names = (held,) if isinstance(held, str) else tuple(held)
        for name in names:
            if name not in rigid:
                raise InputError(f"static_deflection: held names {name!r}; {nearest(str(name), rigid)}")
        return names
    if not (model.loops or model.couplings):
        return tuple(rigid)
    driven = [j.name for j in model.joints if j.kind.nv and not j.kind.bends and (j.driven or j.actuated)]
    if driven and len(driven) == len(rigid):
        raise InputError(
            "static_deflection: every joint of this closed mechanism is actuated, and all of them cannot be held while "
            f"its bodies bend. Name those that are, as held=[{rigid[0]!r}], or mark passive joints with actuated=False"
        )
    return tuple(driven)


def _rates(model: Model, v: Any, free: Sequence[int]) -> np.ndarray:
    """Rates (nv,) of a steady motion; those of the free DoF are 0."""
    if v is None:
        return np.zeros(model.nv)
    if model.loops or model.couplings:
        raise InputError("static_deflection: v is of trees alone; a closed mechanism in motion has no steady shape")
    found = by_name(model, v, np.zeros(model.nv), "v", "static_deflection") if isinstance(v, Mapping) else v
    try:
        out = np.array(found, dtype=float)
    except (TypeError, ValueError):
        out = np.array(np.nan)
    if out.shape != (model.nv,) or not np.isfinite(out).all():
        raise InputError(f"static_deflection: v is {v!r:.60}; expected {model.nv} finite rates, or rates by joint")
    if out[list(free)].any():
        raise InputError(
            "static_deflection: v has rates of modes or of joints that are not held; a steady shape has none"
        )
    return out


@dataclass(frozen=True)
class _Task:
    """The equilibrium of one robot's free DoF under given loads."""

    robot: Any
    free: np.ndarray
    forces: Mapping[str, ArrayLike]
    v: np.ndarray

    def solved(self, q: np.ndarray) -> tuple[np.ndarray, float]:
        """q (nq,) in equilibrium, and the share of the load at which it is: 1, or less where none was found."""
        found, well = self._newton(q, 1.0)
        if well:
            return found, 1.0
        reached = 0.0
        for share in np.arange(1, _RAMP + 1) / _RAMP:
            found, well = self._newton(q, float(share))
            if not well:
                return q, reached
            q, reached = found, float(share)
        return q, 1.0

    def _newton(self, q: np.ndarray, share: float) -> tuple[np.ndarray, bool]:
        size = np.inf
        for _ in range(_ROUNDS):
            r, e, J = self.balance(q, share)
            N, back = _directions(J)
            force = np.linalg.lstsq(J.T, -r, rcond=_RANK)[0] if len(e) else np.zeros(0)
            scale = max(1e-12, float(np.abs(self.springs(q)).max(initial=0.0)))
            size = float(np.abs(N.T @ r).max(initial=0.0))
            if size <= _CLOSED * scale and np.abs(e).max(initial=0.0) <= _CLOSED:
                return q, True
            H = self.stiffness(q, share, force)
            closing = -back @ e if len(e) else np.zeros(len(r))
            step = closing + N @ np.linalg.lstsq(N.T @ H @ N, -N.T @ (r + H @ closing), rcond=None)[0]
            q, better = self._stepped(q, step, share, size)
            if not better and not np.abs(e).max(initial=0.0) > _CLOSED:
                return q, bool(size <= 1e3 * _CLOSED * scale)
        return q, False

    def _stepped(self, q: np.ndarray, step: np.ndarray, share: float, size: float) -> tuple[np.ndarray, bool]:
        """q moved along a step that is halved until the forces out of balance fall, and whether they do."""
        for k in range(_HALVINGS):
            tried = self._moved(q, step * 0.5**k)
            r, _, J = self.balance(tried, share)
            if np.isfinite(r).all() and np.abs(_directions(J)[0].T @ r).max(initial=0.0) < size:
                return tried, True
        return (self._moved(q, step), False) if len(self.balance(q, share)[1]) else (q, False)

    def _moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        delta = np.zeros((*step.shape[:-1], self.robot.model.nv))
        delta[..., self.free] = step
        moved: np.ndarray = self.robot.integrate(q, delta)
        return moved

    def balance(self, q: np.ndarray, share: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """r, e and J at states q (..., nq) under a share of the load."""
        r = self._torques(q, share)
        if not (self.robot.model.loops or self.robot.model.couplings):
            return r, np.zeros((*q.shape[:-1], 0)), np.zeros((*q.shape[:-1], 0, len(self.free)))
        return r, self.robot.closure_error(q), self.robot.closure_jacobian(q)[..., self.free]

    def _torques(self, q: np.ndarray, share: float) -> np.ndarray:
        v = np.sqrt(share) * self.v * np.ones((*q.shape[:-1], 1)) if q.ndim > 1 else np.sqrt(share) * self.v
        loads = at_body_origins(self.robot, q, self.forces, "static_deflection")
        acting = {name: share * six for name, six in loads.items()} or None
        weight = (1.0 - share) * self.robot.gravity_torques(q) if share < 1.0 else 0.0
        found: np.ndarray = (self.robot.bias(q, v, forces=acting) - weight)[..., self.free]
        return found

    def loads(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """The loads at the origins of their bodies."""
        return at_body_origins(self.robot, q, self.forces, "static_deflection")

    def holding(self, q: np.ndarray) -> np.ndarray:
        """Torques (nv,) that hold an equilibrium: of loops and held joints; 0 at free ones."""
        model = self.robot.model
        r = self.robot.bias(q, self.v, forces=self.loads(q) or None)
        if not (model.loops or model.couplings):
            return np.asarray(r)
        J = self.robot.closure_jacobian(q)
        force = np.linalg.lstsq(J[:, self.free].T, -r[self.free], rcond=_RANK)[0]
        held = r + J.T @ force
        held[self.free] = 0.0
        return np.asarray(held)

    def springs(self, q: np.ndarray) -> np.ndarray:
        """What springs alone supply at the free DoF, or what weight does, if that is more."""
        weight = self.robot.gravity_torques(q)[self.free]
        own = self._torques(q, 0.0)
        return np.concatenate([own, weight])

    def stiffness(self, q: np.ndarray, share: float, force: np.ndarray) -> np.ndarray:
        """H (free, free) of springs, a share of the load and the forces of loops, symmetric."""
        n = len(self.free)
        moved = self._moved(q, _SMALL * np.concatenate([np.eye(n), -np.eye(n)]))
        r, _, J = self.balance(moved, share)
        r = r + np.einsum("...rk,r->...k", J, force)
        H = (r[:n] - r[n:]).T / (2.0 * _SMALL)
        return np.asarray(0.5 * (H + H.T))

    def buckling(self, q: np.ndarray) -> tuple[float, np.ndarray] | None:
        """The factor of the load at which the bodies buckle and the motion (free,); None where q is stable."""
        r, _, J = self.balance(q)
        N, _ = _directions(J)
        force = np.linalg.lstsq(J.T, -r, rcond=_RANK)[0] if len(J) else np.zeros(0)
        K, H = (N.T @ self.stiffness(q, s, s * force) @ N for s in (0.0, 1.0))
        scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(K)), 1e-30))
        K, H = (scale[:, None] * x * scale for x in (K, H))
        values, vectors = np.linalg.eigh(H)
        if not len(values) or values[0] > 0.0:
            return None
        least = np.linalg.eigvalsh(K)[0]
        factors = 1.0 / -np.linalg.eigvals(np.linalg.solve(K, H - K)).real if least > 1e-9 else np.array([np.nan])
        positive = factors[factors > 0.0]
        return float(positive.min()) if len(positive) else np.nan, N @ (scale * vectors[:, 0])

    def refusal(self, share: float) -> Refusal:
        return Refusal(
            Reason.NO_EQUILIBRIUM,
            f"no equilibrium of the flexible bodies was found; with {share:.3g} of weight and loads there is one. They "
            "are too soft for the load, or bend farther than modes can follow: take stiffer bodies, pieces= of "
            "sl.flexible.beam, or start the search at another q. A body that loops hold at both ends cannot bend "
            "without 'extension' among its modes=",
        )


def _directions(J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Free directions N (free, k), and the pseudo-inverse (free, rows) of the rows."""
    if not len(J):
        return np.eye(J.shape[1]), np.zeros((J.shape[1], 0))
    U, sizes, V = np.linalg.svd(J)
    rank = int((sizes > _RANK * sizes.max(initial=0.0)).sum())
    return V[rank:].T, (V[:rank].T / sizes[:rank]) @ U[:, :rank].T


def _warn_of_slopes(model: Model, rows: np.ndarray) -> None:
    """Warn of the body that bends farthest, if that is farther than its shapes follow."""
    turns = {
        name: max(float(np.nan_to_num(largest_turn(modal(j), rows[:, model.q_slice(j.name)])).max()) for j in joints)
        for name, joints in mode_joints(model).items()
    }
    name, turn = max(turns.items(), key=lambda pair: pair[1])
    if turn > SLOPE:
        warnings.warn(
            f"static_deflection: {name!r} bends by up to {turn:.2g} rad against the root of a piece; shapes of second "
            f"order follow up to about {SLOPE:g} rad. {more_pieces(modal(mode_joints(model)[name][0]))}",
            SpanloopWarning,
            stacklevel=4,
        )


def _warn_of_buckling(task: _Task, rows: np.ndarray) -> None:
    """Warn of the first equilibrium that is not stable."""
    model = task.robot.model
    for q in rows:
        found = task.buckling(q)
        if found is None:
            continue
        factor, motion = found
        dof = int(task.free[np.argmax(np.abs(motion))])
        j = next(j for j in model.joints if dof in range(model.nv)[model.v_slice(j.name)])
        mode = f", mode {modal(j).mode_names[dof - model.v_slice(j.name).start]}" if j.kind.bends else ""
        at = f"it buckles at {factor:.3g} of the load" if np.isfinite(factor) else "it moves away from it"
        warnings.warn(
            f"static_deflection: the equilibrium is not stable: {at} ({j.name!r}{mode}). A run that starts there "
            "leaves it at the slightest push. Take a stiffer body, or start from a shape that is slightly bent",
            SpanloopWarning,
            stacklevel=4,
        )
        return
