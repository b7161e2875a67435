"""Inverse dynamics of closed chains: the actuator torques that produce a motion, and the closure forces.

The motion takes needed = M a + h in the spanning tree. Actuators and closures supply it: S u + Jᵀ λ = needed, with S
the columns of the actuated DoF. With N the motions that the loops leave (J N = 0) the closures drop out:

    NᵀS u = Nᵀ needed

One u if the actuators match the mobility; the one of least u W u if there are more; none if what they leave of the
right side is not zero. Redundant rows of J change nothing here: only its null space counts.

| symbol | shape | meaning |
|---|---|---|
| N | (n, nv, nv) | motions left, orthonormal columns; the others are zero |
| Z | (n, m, m) | torques that only strain the loops: NᵀS Z = 0 |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.loops.arguments import (
    Actuators,
    actuators,
    external_forces,
    joined,
    loop_acceleration_rows,
    loop_wrenches,
    on_bodies,
    wanted_forces,
)
from spanloop.loops.batching import Refusals, over_states, resolution, values
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.constraint_rank import RANK, by_assembly, in_general
from spanloop.loops.dynamics_solution import REDUNDANT, Solution, shortest, times, undetermined, wrench_map
from spanloop.loops.independent_dofs import complete_acceleration, resolved, structure_of
from spanloop.loops.motion_refusals import (
    missing_actuators,
    open_loops,
    opening_accelerations,
    opening_velocities,
    singular_positions,
)
from spanloop.loops.subsystems import Stage, Subsystems, subsystems

_MADE = 1e-7  # of the torques: what may be left that the actuators do not supply


def inverse_dynamics(robot, q, v, a, **options) -> np.ndarray:
    """Torques tau (..., nv) of the actuators, 0 elsewhere; options as in `solve_inverse`."""
    return _answers(robot, q, v, a, "inverse_dynamics", **options)[1][0]


def solve_inverse(robot, q, v, a, **options) -> Solution:
    """The torques together with the closure forces; `robot` is a Dynamics."""
    task, (tau, lam, residual, wrenches), a = _answers(robot, q, v, a, "solve_inverse", with_forces=True, **options)
    closures = mechanism_of(robot.model).closures
    forces = {c.name: wrenches[..., 6 * k : 6 * k + 6] for k, c in enumerate(closures)}
    forces |= {name: forces[name] + six for name, six in task.carried.items()}
    unique = {c.name: bool(task.unique[list(c.rows)].all()) for c in closures}
    status = np.where(np.isfinite(tau).all(axis=-1), "ok", "no answer")
    return Solution(a, tau, forces, lam, residual, unique, status, task.unique, undetermined(robot.model, task.unique))


def _answers(
    robot,
    q,
    v,
    a,
    name: str,
    actuated: Sequence[str] | None = None,
    internal_forces: Mapping | None = None,
    weights=None,
    forces: Mapping | None = None,
    loop_accelerations: Mapping | None = None,
    loop_forces: Mapping | None = None,
    by_subsystems: bool = False,
    with_forces: bool = False,
):
    model = robot.model
    if by_subsystems and internal_forces:
        raise InputError(f"{name}: internal_forces need by_subsystems=False; subsystems are solved one after the other")
    chosen = actuators(model, actuated, weights)
    loops, wanted = wanted_forces(model, internal_forces)
    external_forces(model, name, forces or {})  # checks them
    carried = loop_wrenches(robot, q, loop_forces or {}, function=name)
    bodies, loads = external_forces(model, name, on_bodies(robot, q, carried, forces or {}))
    if loops and carried:
        wanted = wanted - joined([carried.get(x, np.zeros(6)) for x in loops])  # what the rows are to do of it
    rows = mechanism_of(model).given_rows
    driven = loop_acceleration_rows(model, loop_accelerations, name) if rows else np.zeros(0)
    a = _completed(robot, name, q, v, a, driven)
    task = _Task(robot, name, by_subsystems, chosen, loops, bodies, with_forces, carried)
    task.check_spare_actuators()
    inputs = {
        "q": (q, model.nq),
        "v": (v, model.nv),
        "a": (a, model.nv),
        "internal_forces": (wanted, 6 * len(loops)),
        "forces": (loads, 6 * len(bodies)),
        "loop_accelerations": (driven, len(rows)),
    }
    return task, over_states(name, robot, by_assembly(robot, task.compute), **inputs), np.asarray(a, dtype=float)


def _completed(robot, name: str, q, v, a, driven) -> np.ndarray:
    """Accelerations of all DoF: unchanged, or completed from {"joint": a} or from the independent ones (..., n)."""
    if isinstance(a, Mapping):
        return complete_acceleration(robot, q, v, a, driven=driven, name=name)
    if robot.model.loops and np.shape(a)[-1:] not in ((robot.model.nv,), ()):
        left = robot.model.nv - structure_of(robot, np.reshape(np.asarray(q, float), (-1, robot.model.nq))).rank
        if np.shape(a)[-1] == left:
            return complete_acceleration(robot, q, v, a, resolved(robot, q, None, name), driven, name)
    return a


@dataclass(eq=False)
class _Task:
    """Inverse dynamics of one robot with fixed options, for rows of states."""

    robot: Any  # a Dynamics
    name: str
    by_subsystems: bool
    actuators: Actuators
    loops: tuple[str, ...]  # whose internal forces are prescribed
    bodies: tuple[str, ...]  # with external forces
    with_forces: bool  # compute closure forces, too
    carried: dict[str, np.ndarray]  # [torque; force] by loop along its DoF
    unique: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def check_spare_actuators(self) -> None:
        usual = in_general(self.robot.model) if self.loops else None
        if usual is not None and len(self.actuators) <= self.robot.model.nv - usual.rank:
            raise InputError(
                f"{self.name}: internal_forces need more actuators than the motion: {len(self.actuators)} actuated DoF "
                f"for a mobility of {self.robot.model.nv - usual.rank}; leave out internal_forces="
            )

    def compute(self, q, v, a, internal, loads, loop_accelerations) -> tuple[tuple[np.ndarray, ...], Refusals]:
        robot, model = self.robot, self.robot.model
        rows = structure_of(robot, q)
        J, bias = values(robot, "closure_jacobian", q), values(robot, "closure_bias", q, v)
        bias[:, list(mechanism_of(model).given_rows)] -= loop_accelerations
        options = {"forces": self.bodies} if self.bodies else {}
        extra = (loads,) if self.bodies else ()
        needed = values(robot, "tree_inverse_dynamics", q, v, a, *extra, **options)
        still = values(robot, "bias", q, v, *extra, **options)
        N, lost = motions_left(rows.scaled(J), rows.rank)
        N = N * rows.dof_lengths[:, None]
        torque, Z, driven = least_torques(N, needed, self.actuators)
        if self.loops:
            torque += self._strained(q, J, needed, torque, Z, internal)
        tau = np.zeros_like(needed)
        tau[:, list(self.actuators.dofs)] = torque
        if self.by_subsystems:
            tau = in_stages(subsystems(robot, self.actuators.names), self.actuators, J, needed)
        rest = np.einsum("nvk,nv->nk", N, needed - tau)
        size = np.linalg.norm(needed, axis=1) + np.linalg.norm(still, axis=1)
        short = np.linalg.norm(rest, axis=1) > max(_MADE, 100.0 * resolution(robot)) * size
        refusals = {
            int(k): missing_actuators(robot, self.actuators, N[k], rest[k], driven[k]) for k in np.flatnonzero(short)
        }
        refusals |= opening_accelerations(robot, rows, J, a, bias) | opening_velocities(robot, rows, J, v)
        refusals |= singular_positions(robot, lost) | open_loops(robot, q)
        answers: tuple[np.ndarray, ...] = (tau,)
        if self.with_forces:
            lam, self.unique = shortest(mechanism_of(model), J, needed - tau)
            wrenches = [times(wrench_map(robot, c, q), lam[:, list(c.rows)]) for c in mechanism_of(model).closures]
            left = np.abs(times(J, a) + bias).max(axis=1, initial=0.0)
            answers += (lam, left, joined(wrenches) if wrenches else np.zeros((len(q), 0)))
        return answers, refusals

    def _strained(self, q, J, needed, torque, Z, internal) -> np.ndarray:
        """The change of u (n, m) along Z that brings the forces of the chosen loops nearest to those asked for."""
        robot, free = self.robot, list(self.actuators.dofs)
        chosen = [c for name in self.loops for c in mechanism_of(robot.model).closures if c.name == name]
        G = np.zeros((len(q), 6 * len(chosen), J.shape[1]))
        for k, c in enumerate(chosen):
            G[:, 6 * k : 6 * k + 6, list(c.rows)] = wrench_map(robot, c, q)
        forces = G @ np.linalg.pinv(np.swapaxes(J, 1, 2), rcond=REDUNDANT)  # (n, 6 loops, nv): of torques not supplied
        left = needed.copy()
        left[:, free] -= torque
        miss = internal - times(forces, left)
        return times(Z @ np.linalg.pinv(-forces[:, :, free] @ Z, rcond=REDUNDANT), miss)


# ---- linear algebra for rows of states: motions that the loops leave, least torques, stages


def motions_left(J: np.ndarray, usual: int) -> tuple[np.ndarray, np.ndarray]:
    """N (n, nv, nv) with J N = 0: orthonormal columns, the others zero; and at which states J has less than usual rank.

    J (n, rows, nv).
    """
    _, s, Vt = np.linalg.svd(J)
    counts = np.zeros(Vt.shape[:2], dtype=bool)
    counts[:, : s.shape[1]] = s > RANK * s.max(axis=1, initial=0.0, keepdims=True)
    return np.swapaxes(Vt * ~counts[:, :, None], 1, 2), counts.sum(axis=1) < usual


def least_torques(N: np.ndarray, needed: np.ndarray, by: Actuators) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u (n, m) with NᵀS u = Nᵀ needed and least Σ weight u²; Z (n, m, m) with NᵀS Z = 0; the rank of NᵀS.

    Where there is no such u it leaves the least rest.
    """
    scale = 1.0 / np.sqrt(by.weights / by.weights.min(initial=np.inf))
    B = np.swapaxes(N, 1, 2)[:, :, list(by.dofs)] * scale
    right = np.einsum("nvk,nv->nk", N, needed)
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    counts = s > RANK * largest_drive(N, s, scale)[:, None]
    inner = np.where(counts, np.einsum("nkr,nk->nr", U, right) / np.where(counts, s, 1.0), 0.0)
    taken = Vt * counts[:, :, None]
    Z = np.eye(len(by)) - np.swapaxes(taken, 1, 2) @ taken
    return scale * np.einsum("nrm,nr->nm", Vt, inner), scale[:, None] * Z, counts.sum(axis=1)


def largest_drive(N: np.ndarray, s: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """What the singular values s (n, k) of NᵀS scale are compared with (n,): at a dead centre all of them vanish, and
    the motions N (n, nv, m) are the measure."""
    least = scale.min(initial=1.0) * np.linalg.norm(N, axis=(1, 2))
    return np.maximum(s.max(axis=1, initial=0.0), least)


def in_stages(found: Subsystems, by: Actuators, J: np.ndarray, needed: np.ndarray) -> np.ndarray:
    """Torques (n, nv), subsystem by subsystem: each with the closure forces that those before it gave. [Saha, eq. 42]

    J (n, n_rows, nv).
    """
    tau, lam = np.zeros_like(needed), np.zeros(J.shape[:2])
    for stage in found.stages:
        left = needed - np.einsum("nrv,nr->nv", J, lam)
        u, x = _stage(stage, by, J[:, list(stage.rows)][:, :, list(stage.dofs)], left[:, list(stage.dofs)])
        tau[:, list(stage.actuated)], lam[:, list(stage.rows)] = u, x
    return tau


def _stage(stage: Stage, by: Actuators, J: np.ndarray, needed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torques and closure forces of one stage; of least weight where it is not determinate."""
    places = [stage.dofs.index(f) for f in stage.actuated]
    if stage.determinate:
        unit = np.broadcast_to(np.eye(len(stage.dofs))[:, places], (*needed.shape, len(places)))
        A = np.concatenate((unit, np.swapaxes(J, 1, 2)), axis=2)
        x = np.einsum("nuf,nf->nu", np.linalg.pinv(A, rcond=RANK), needed)
        return x[:, : len(places)], x[:, len(places) :]
    own = [by.dofs.index(f) for f in stage.actuated]
    part = Actuators(tuple(places), tuple(by.names[k] for k in own), by.weights[own])
    u = least_torques(motions_left(J, 0)[0], needed, part)[0]
    left = needed.copy()
    left[:, places] -= u
    return u, np.einsum("nrf,nf->nr", np.linalg.pinv(np.swapaxes(J, 1, 2), rcond=RANK), left)
