"""Refusals of motions of closed mechanisms: open loops, singular configurations, opening rates, missing actuators.

Each function returns a Refusal for every state that it refuses.
"""

from __future__ import annotations

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import OPEN
from spanloop.errors import Reason, Refusal, listed
from spanloop.loops.arguments import Actuators, dof_names
from spanloop.loops.batching import Refusals, Robot, resolution
from spanloop.loops.closure_errors import errors, mechanism_of, relative_errors, rows_of, worst
from spanloop.loops.constraint_rank import RANK, Structure, in_general

_FITS = 1e-6  # of |J| |v|, or of the terms of J a + γ: what may be left of J v or J a + γ
_STILL = 1e-6  # [1/s]: slower mechanisms are compared as if they moved at this rate, since rounding opens loops too
_SHARE = 0.1  # of the largest entry: DoF with less have no part in a motion


def open_loops(robot: Robot, q: np.ndarray) -> Refusals:
    """States q (n, nq) at which a loop is open."""
    e, shares = errors(robot, q), relative_errors(robot, q)

    def refusal(k: int) -> Refusal:
        miss = worst(robot.model, e[k])
        sentence = f"{miss.what} is open by {miss.by()}. Close it first: q = robot.assemble(q)"
        return Refusal(Reason.OPEN_LOOP, sentence)

    return {int(k): refusal(int(k)) for k in np.flatnonzero(np.abs(shares).max(axis=1, initial=0.0) > OPEN)}


def singular_positions(robot, rank_is_lost: np.ndarray) -> Refusals:
    """States (n,) at which rows that are independent elsewhere are not, unless on_singular is "minimum_norm".

    robot: a Dynamics.
    """
    if robot.on_singular != "raise":
        return {}
    refusal = Refusal(
        Reason.SINGULAR_CLOSURE,
        "the loops are in a singular configuration: constraints that are independent elsewhere depend on each other, "
        "and torques are not determined. See robot.diagnose(q); on_singular='minimum_norm' gives one answer",
    )
    return {int(k): refusal for k in np.flatnonzero(rank_is_lost)}


def opening_velocities(robot: Robot, rows: Structure, J: np.ndarray, v: np.ndarray) -> Refusals:
    """States whose velocities v (n, nv) open a loop, J v ≠ 0, with J (n, n_rows, nv); driven loops may move."""
    still = set(mechanism_of(robot.model).velocity_rows)
    fixed = [r for r in rows.kept if r in still]
    left = np.zeros(J.shape[:2])
    left[:, fixed] = np.abs(np.einsum("nrv,nv->nr", J[:, fixed], v))
    most = (_STILL + np.linalg.norm(v / rows.dof_lengths, axis=1))[:, None] * rows.lengths

    def refusal(k: int) -> Refusal:
        name, size = _worst_row(robot, rows, left[k], "/s")
        return Refusal(
            Reason.OPENING_VELOCITY,
            f"the velocities v open {name!r} at {size}; J v must be 0. "
            "Take the nearest that keep the loops closed: q, v = robot.project(q, v)",
        )

    return {k: refusal(k) for k in _beyond(robot, left, most)}


def opening_accelerations(robot: Robot, rows: Structure, J: np.ndarray, a: np.ndarray, bias: np.ndarray) -> Refusals:
    """States whose accelerations a (n, nv) open a loop: J a + γ ≠ 0."""
    left = np.zeros_like(bias)
    left[:, rows.kept] = np.abs(np.einsum("nrv,nv->nr", J, a) + bias)[:, rows.kept]
    terms = np.abs(bias / rows.lengths).max(axis=1, initial=0.0)
    terms += np.abs(a / rows.dof_lengths).max(axis=1, initial=0.0)

    def refusal(k: int) -> Refusal:
        name, size = _worst_row(robot, rows, left[k], "/s²")
        return Refusal(
            Reason.OPENING_ACCELERATION,
            f"the accelerations would open {name!r} by {size}. "
            'Complete them: a = robot.complete_acceleration(q, v, {"joint": ...})',
        )

    return {k: refusal(k) for k in _beyond(robot, left, terms[:, None] * rows.lengths)}


def _beyond(robot: Robot, left: np.ndarray, most: np.ndarray) -> list[int]:
    """Numbers of the states with a row that is not zero, relative to `most`."""
    wrong = (left > max(_FITS, 1e3 * resolution(robot)) * most).any(axis=1)
    return [int(k) for k in np.flatnonzero(wrong)]


def _worst_row(robot: Robot, rows: Structure, left: np.ndarray, per: str) -> tuple[str, str]:
    """Name of the loop or coupling of the row that is farthest from zero, and by how much, with its unit."""
    row = int(np.argmax(left / rows.lengths))
    found = rows_of(robot.model)[row]
    owners = [x.name for x in robot.model.loops] + [x.name for x in robot.model.couplings]
    return owners[found.owner], f"{left[row]:.3g} {found.unit}{per}"


def missing_actuators(robot, actuators: Actuators, N: np.ndarray, rest: np.ndarray, driven: int) -> Refusal:
    """The DoF that no actuator drives; N (nv, n): motions left, rest (n,): of the torques that they need.

    driven: the number of independent motions that the actuators drive at this state.
    """
    motion = np.abs(N @ rest)
    order = [int(k) for k in np.argsort(-motion) if motion[k] > _SHARE * motion.max()]
    names = dof_names(robot.model)
    moving, who = listed([names[k] for k in order], 6), listed(actuators.names, 6)
    if driven < _driven_in_general(robot, actuators):
        return Refusal(
            Reason.UNDERACTUATED,
            f"the actuators ({who}) are in a singular configuration: here no torque of theirs acts on a motion of "
            f"{moving}, which this motion needs. Choose others: actuated=[...]",
        )
    return Refusal(
        Reason.UNDERACTUATED,
        f"the actuators ({who}) cannot produce this motion, or hold this load: none of them drives {moving}. "
        "Name more of them: actuated=[...]; or take a motion that torques produce: robot.forward_dynamics",
    )


def _driven_in_general(robot, actuators: Actuators) -> int:
    """The number of independent motions that the actuators drive in general; 0 if unknown."""
    usual = in_general(robot.model)
    if usual is None:
        return 0
    left = np.linalg.svd(usual.jacobian)[2][usual.rank :]
    s = np.linalg.svd(left[:, list(actuators.dofs)], compute_uv=False)
    return int(np.sum(s > RANK * s.max(initial=0.0)))
