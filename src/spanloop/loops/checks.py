"""Why a motion of a closed chain has no torques: a sentence for each state that has none. `robot` is a Dynamics."""

from __future__ import annotations

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import OPEN
from spanloop.errors import listed
from spanloop.loops.arguments import Actuators
from spanloop.loops.batching import Faults, resolution
from spanloop.loops.closure_errors import errors, rows_of, worst
from spanloop.loops.constraint_rank import RANK, Structure, in_general
from spanloop.loops.independent import dof_names
from spanloop.loops.solution import times

_FITS = 1e-6  # of the terms of J a + γ: what may be left of it
_SHARE = 0.1  # of the largest entry: DoF with less have no part in a motion


def opened(robot, q: np.ndarray) -> Faults:
    """States q (n, nq) at which a loop is open."""
    e = errors(robot, q)

    def why(k: int) -> str:
        miss = worst(robot.model, e[k])
        return f"{miss.what} is open by {miss.by()}. Close it first: q = robot.assemble(q)"

    return {int(k): why(int(k)) for k in np.flatnonzero(np.abs(e).max(axis=1, initial=0.0) > OPEN)}


def singular(robot, lost: np.ndarray) -> Faults:
    """States (n,) at which rows that are independent elsewhere are not, unless one answer is wanted there."""
    if robot.on_singular != "raise" or in_general(robot.model) is None:
        return {}
    why = (
        "the loops are in a singular position: constraints that are independent elsewhere depend on each other, "
        "and torques are not determined. See robot.diagnose(q); on_singular='minimum_norm' gives one answer"
    )
    return {int(k): why for k in np.flatnonzero(lost)}


def unfit(robot, rows: Structure, J: np.ndarray, a: np.ndarray, bias: np.ndarray) -> Faults:
    """States whose accelerations a (n, nv) would open a loop: J a + γ is not zero."""
    left = np.zeros_like(bias)
    left[:, rows.kept] = np.abs(times(J, a) + bias)[:, rows.kept]
    terms = np.abs(bias / rows.lengths).max(axis=1, initial=0.0) + np.abs(a).max(axis=1, initial=0.0)
    most = terms[:, None] * rows.lengths
    wrong = (left > max(_FITS, 1e3 * resolution(robot)) * most).any(axis=1)
    names = rows_of(robot.model)

    def why(k: int) -> str:
        row = int(np.argmax(left[k] / rows.lengths))
        owner = (*robot.model.loops, *robot.model.couplings)[names[row].owner].name
        return (
            f"the accelerations would open {owner!r} by {left[k, row]:.3g} {names[row].unit}/s². "
            'Complete them: a = robot.complete_acceleration(q, v, {"joint": ...})'
        )

    return {int(k): why(int(k)) for k in np.flatnonzero(wrong)}


def undriven(robot, actuators: Actuators, N: np.ndarray, rest: np.ndarray, driven: int) -> str:
    """Which DoF no actuator drives; N (nv, n): motions left, rest (n,): of the torques that they need."""
    motion = np.abs(N @ rest)
    order = [int(k) for k in np.argsort(-motion) if motion[k] > _SHARE * motion.max()]
    names = dof_names(robot.model)
    moving, who = listed([names[k] for k in order], 6), listed(actuators.names, 6)
    if driven < _usually_driven(robot, actuators):
        return (
            f"the actuators ({who}) are in a singular position: here no torque of theirs acts on a motion of {moving}, "
            "which this motion needs. Choose others: actuated=[...]"
        )
    return (
        f"the actuators ({who}) cannot make this motion: none of them drives {moving}. "
        "Name more of them: actuated=[...]; or take a motion that torques make: robot.forward_dynamics"
    )


def _usually_driven(robot, actuators: Actuators) -> int:
    """The number of independent motions that the actuators drive in general; 0 where that is not known."""
    usual = in_general(robot.model)
    if usual is None:
        return 0
    left = np.linalg.svd(usual.jacobian)[2][usual.rank :]
    s = np.linalg.svd(left[:, list(actuators.dofs)], compute_uv=False)
    return int(np.sum(s > RANK * s.max(initial=0.0)))
