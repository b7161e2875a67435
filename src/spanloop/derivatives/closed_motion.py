"""Closed motions to first order: how all joints follow when independent DoF move, and how derivatives follow them.

The states of a closed mechanism are those with e(q) = 0 and J(q) v = 0. A path q(s), v(s) through them has

    J dq = 0,    J dv + (∂J/∂q dq) v = 0,                              (1)

so that a change of the independent positions and one of the independent rates are, with v = T v_i,

    dq = T dq_i,    dv = T dv_i − R (∂J/∂q dq) v,                      (2)

where R answers errors of the rows by the dependent DoF alone. Driven loops keep the positions and rates that drive
them. All of dq, dv are joint rates and their changes, as v is; that of a quaternion is an angular velocity in the
body's axes.

| symbol | shape | meaning |
|---|---|---|
| T | (nv, n) | velocity map: v = T v_i, with J T = 0 |
| R | (nv, rows) | J R = 1 on the rows that are not redundant; zero for the independent DoF |

(∂J/∂q dq) v is not symmetric in dq and v where a joint has a quaternion: there the bias γ alone does not determine it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spanloop.derivatives.batched_directions import along_directions
from spanloop.errors import Reason, Refusal, UnsupportedError
from spanloop.loops.assembly.assembly import velocity_loops
from spanloop.loops.batching import Computed, Refusals, Robot, over_states, resolution, values
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.constraint_rank import RANK, Structure, by_assembly
from spanloop.loops.independent_dofs import Dofs, IndependentCoordinates, maps_of, resolved, structure_of
from spanloop.loops.motion_refusals import open_loops, opening_velocities
from spanloop.model import Model

_DIGITS = 0.25  # of the digits of a number: what derivatives must have left near a singular position
_SINGULAR = Refusal(
    Reason.SINGULAR_CLOSURE,
    "the loops are in a singular configuration: constraints that are independent elsewhere depend on each other, and "
    "the closed motions through this state have no unique tangent. See robot.diagnose(q)",
)


@dataclass(frozen=True, eq=False)
class ClosedDirections:
    """Directions of closed motions at states, one for each of n independent DoF.

    The state moves by (dq[:, k], dv[:, k]) when the position of DoF k moves and the independent rates stay, and by
    (0, dq[:, k]) when its rate changes.
    """

    dofs: IndependentCoordinates
    dq: np.ndarray  # (..., nv, n): of all joints, in joint rates; the velocity map T
    dv: np.ndarray  # (..., nv, n): of v


def closed_directions(
    robot: Robot, q: ArrayLike, v: ArrayLike, dofs: Dofs = None, name: str = "closed_directions"
) -> ClosedDirections:
    """Return the directions along closed motions at states q (..., nq), v (..., nv).

    dofs: independent DoF; robot.independent_coordinates() by default. name: of the calling function.

    StateError: a loop is open, v opens one, the position is singular, or the DoF do not determine the others there.
    UnsupportedError: a loop constrains velocities alone.
    """
    refuse_rolling(robot.model, name)
    chosen = resolved(robot, q, dofs, name)

    def compute(q: np.ndarray, v: np.ndarray) -> Computed:
        return directions_at(robot, q, v, chosen)

    sizes = {"q": (q, robot.model.nq), "v": (v, robot.model.nv)}
    dq, dv = over_states(name, robot, by_assembly(robot, compute), **sizes)
    return ClosedDirections(chosen, dq, dv)


def directions_at(robot: Robot, q: np.ndarray, v: np.ndarray, chosen: IndependentCoordinates) -> Computed:
    """dq, dv (n, nv, k) at states q (n, nq), v (n, nv) of one assembly, and the states that have none."""
    rows, J = structure_of(robot, q), values(robot, "closure_jacobian", q)
    T, backward, refusals = maps_of(rows, J, chosen)
    turned = np.einsum("nkrv,nv->nkr", closure_jacobian_changes(robot, q, T), v)
    dv = -np.einsum("nvr,nkr->nvk", backward, rows.scaled_errors(turned))  # (2)
    return (T, dv), refusals | no_tangent(robot, rows, J, q, v)


def closure_jacobian_changes(robot: Robot, q: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """∂J/∂q dq (n, k, n_rows, nv) of states q (n, nq) along directions (n, nv, k)."""
    m, (n, nv, k) = mechanism_of(robot.model), directions.shape
    if not m.n_rows or not n * k:
        return np.zeros((n, k, m.n_rows, nv))
    changes = along_directions(robot, "closure_jacobian", (q,), {"q": np.swapaxes(directions, 1, 2)})[0]
    return changes.reshape(n, k, m.n_rows, nv)


def no_tangent(robot: Robot, rows: Structure, J: np.ndarray, q: np.ndarray, v: np.ndarray) -> Refusals:
    """States q (n, nq), v (n, nv) with an open loop, an opening velocity, or at which the loops have lost rank.

    J (n, n_rows, nv) of these states.
    """
    lost = np.flatnonzero(_nearness(rows, J) == 0.0).tolist()
    return opening_velocities(robot, rows, J, v) | dict.fromkeys(lost, _SINGULAR) | open_loops(robot, q)


def lost_digits(robot: Robot, rows: Structure, J: np.ndarray, v: np.ndarray, a: np.ndarray) -> Refusals:
    """States at or so near a singular position that rounding of J spoils derivatives of accelerations a (n, nv).

    With σ the smallest singular value of J, as a share of the largest, rounding ε of J changes T by ε/σ and its
    derivative by ε/σ²; what depends on rates is changed by ε/σ³.
    """
    sigma, eps = _nearness(rows, J), resolution(robot)
    speed, size = (np.linalg.norm(x / rows.dof_lengths, axis=1) for x in (v, a))
    moving = np.divide(speed**2, speed**2 + size, out=np.zeros(len(J)), where=speed > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = eps / sigma**2 + moving * eps / sigma**3

    def refusal(k: int) -> Refusal:
        if sigma[k] == 0.0:
            return _SINGULAR
        return Refusal(
            Reason.SINGULAR_CLOSURE,
            f"the loops are too near a singular configuration (their smallest singular value is {sigma[k]:.2g} of the "
            f"largest): rounding would leave errors of some {error[k]:.1g} in derivatives. See robot.diagnose(q)",
        )

    return {int(k): refusal(int(k)) for k in np.flatnonzero(~(error <= eps**_DIGITS))}


def _nearness(rows: Structure, J: np.ndarray) -> np.ndarray:
    """The smallest singular value of the rows, as a share of the largest (n,): 0 where they have lost rank."""
    if not rows.rank:
        return np.ones(len(J))
    s = np.linalg.svd(rows.scaled(J), compute_uv=False)
    largest = s[:, 0]
    share = np.divide(s[:, rows.rank - 1], largest, out=np.zeros(len(J)), where=largest > 0.0)
    found: np.ndarray = np.where(share > RANK, share, 0.0)
    return found


def refuse_rolling(model: Model, function: str) -> None:
    """Raise UnsupportedError if a loop constrains velocities alone, and is not just driven."""
    driven = {x.name for x in model.loops if x.driven}
    names = [x for x in velocity_loops(model) if x not in driven]
    if names:
        raise UnsupportedError(
            f"{function}: loop {names[0]!r} has rows that constrain velocities alone (a general joint, a soft finger), "
            "so that positions move in more ways than rates, and no set of independent DoF describes both. Use "
            "coordinates='tree', whose columns may be combined along q changes of your choice; or close the loop by "
            "another kind of joint"
        )
