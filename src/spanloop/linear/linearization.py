"""Linear models of mechanisms about an operating point.

The states are the displacements δ (n) of the independent DoF from the motion through the operating point, in joint
rates, and the changes of their rates η (n). Along closed motions (derivatives/closed_motion.py) all joints move by
dq = T δ and v changes by dv = T η + V δ, so that

    δ̇ = η − [v, T δ]_i,        η̇ = (∂a/∂q dq + ∂a/∂v dv + ∂a/∂tau dtau)_i,                                    (1)

where i selects the independent DoF and [v, d] is the bracket of joint rates (`JointKind.bracket`): 0, but where a
joint whose axes turn with it, as a quaternion's, moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import converted, leading_shape
from spanloop.derivatives.closed_dynamics import along_closed_motions
from spanloop.errors import listed
from spanloop.linear.input_columns import Input, input_columns, left_out, named_inputs
from spanloop.linear.linear_model import LinearModel
from spanloop.linear.operating_point import (
    OperatingPoint,
    checked_tolerance,
    holding_torques,
    is_equilibrium,
    without_rounding,
)
from spanloop.linear.output_rows import Output, output_rows
from spanloop.loops.arguments import actuators
from spanloop.loops.independent_dofs import Dofs, IndependentCoordinates, resolved
from spanloop.model import Model
from spanloop.model.flexible_bodies.stiffening_limits import judge_loads, judge_spin


def linearize(
    robot: Any,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike | None,
    inputs: str | Sequence[str] | None,
    outputs: Output | Sequence[Output] | None,
    dofs: Dofs,
    forces: Mapping[str, ArrayLike] | None,
    loop_inputs: tuple[np.ndarray, ...],
    tolerance: float,
) -> LinearModel:
    """The linear model of a Dynamics at states q (..., nq), v (..., nv) under torques tau (..., nv)."""
    model, allowed = robot.model, checked_tolerance("linearize", tolerance)
    chosen = resolved(robot, q, dofs, "linearize")
    acting = named_inputs(model, inputs)
    places = sorted({*actuators(model, None, None).dofs, *(x.dof for x in acting if x.dof is not None)})
    state = _states(model, q, v, tau)
    if tau is None:
        moves = np.asarray(state[1].any(axis=-1))
        held = np.where(moves[..., None], 0.0, holding_torques(robot, state[0], chosen, places, forces))
        state = _states(model, q, v, held)
    judge_spin("linearize", robot, state[0], state[1])
    found = _linearized(robot, state, chosen, acting, outputs, forces, loop_inputs, allowed)
    judge_loads("linearize", robot, *state, forces=forces)
    return found


def _linearized(
    robot: Any,
    state: tuple[np.ndarray, ...],
    chosen: IndependentCoordinates,
    acting: Sequence[Input],
    outputs: Output | Sequence[Output] | None,
    forces: Mapping[str, ArrayLike] | None,
    loop_inputs: tuple[np.ndarray, ...],
    tolerance: float,
) -> LinearModel:
    model, (q, v, tau) = robot.model, state
    found = along_closed_motions(robot, q, v, tau, forces, loop_inputs, chosen, "linearize")
    a = np.asarray(robot.forward_dynamics(q, v, tau, forces=forces), dtype=float)
    da_du, torques = input_columns(robot, q, acting, found.da_dtau)
    C, D, shown = output_rows(robot, (q, v, tau, a), found, da_du, torques, forces, outputs)
    i, n = list(chosen.dofs), len(chosen)
    zero = np.zeros((*a.shape[:-1], n, len(acting)))
    bad = ~np.isfinite(found.da).all(axis=(-2, -1))
    turning = _turning(model, v, found.dq)
    units = [u for j in model.joints for u in j.kind.units]
    mass = _inertia(robot, q, found.dq)
    rest = without_rounding(a, found.da_dtau, tau)
    A = _joined([[0.0 - turning[..., i, :], np.eye(n)], [found.da_dq[..., i, :], found.da_dv[..., i, :]]])
    B, drift = np.concatenate([zero, da_du[..., i, :]], axis=-2), np.concatenate([v[..., i], a[..., i]], axis=-1)
    A[bad], B[bad], drift[bad] = np.nan, np.nan, np.nan
    return LinearModel(
        A=A,
        B=B,
        C=C,
        D=D,
        states=(*chosen.names, *(f"{name}.v" for name in chosen.names)),
        inputs=tuple(x.name for x in acting),
        outputs=tuple(x.name for x in shown),
        state_units=(*(units[k] for k in i), *(f"{units[k]}/s" for k in i)),
        input_units=tuple(x.unit for x in acting),
        output_units=tuple(x.unit for x in shown),
        drift=drift,
        point=OperatingPoint(
            model, q, v, tau, a, is_equilibrium(model, v, rest, chosen.dofs, (found.dq, mass, found.da_dq), tolerance),
            chosen.dofs, tuple(-1 if x.dof is None else x.dof for x in acting),
        ),
        mass=mass,
        name=model.name,
        notes=_notes(model),
    )  # fmt: skip


def _states(model: Model, q: ArrayLike, v: ArrayLike | None, tau: ArrayLike | None) -> tuple[np.ndarray, ...]:
    """q, v and, if it is given, tau with common batch axes; v = 0 by default."""
    given = {"q": (q, model.nq), "v": (np.zeros(model.nv) if v is None else v, model.nv), "tau": (tau, model.nv)}
    arrays = {k: converted("linearize", k, size, x, np.dtype(float)) for k, (x, size) in given.items() if x is not None}
    leading = leading_shape("linearize", list(arrays), list(arrays.values()))
    return tuple(np.broadcast_to(x, (*leading, x.shape[-1])) for x in arrays.values())


def _turning(model: Model, v: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """[v, d] (..., nv, n) for the columns d of dq (..., nv, n)."""
    out = np.zeros_like(dq)
    for joint in model.joints if v.any() else ():
        s = model.v_slice(joint.name)
        rates = [v[..., k, None] for k in range(s.start, s.stop)]
        for k, x in enumerate(joint.kind.bracket(rates, [dq[..., k, :] for k in range(s.start, s.stop)])):
            out[..., s.start + k, :] = x
    return out


def _inertia(robot: Any, q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """The inertia Tᵀ M T (..., n, n) of the independent DoF."""
    M = np.asarray(robot.mass_matrix(q), dtype=float)
    found = np.swapaxes(T, -1, -2) @ M @ T
    return 0.5 * (found + np.swapaxes(found, -1, -2))


def _joined(blocks: list[list[np.ndarray]]) -> np.ndarray:
    """A matrix (..., k, k) of blocks with batch axes, some without."""
    leading = np.broadcast_shapes(*(x.shape[:-2] for row in blocks for x in row))
    full = [[np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in row] for row in blocks]
    return np.concatenate([np.concatenate(row, axis=-1) for row in full], axis=-2)


def _notes(model: Model) -> tuple[str, ...]:
    """What acts in simulations and has no part in a linear model."""
    rough = [j.name for j in model.joints if any(j.friction)]
    notes = [f"Coulomb friction of {listed(rough, 4)} is not linear and left out"] if rough else []
    motors = [f"{a.name} ({', '.join(x)})" for a in model.actuators if (x := left_out(model, a))]
    if motors:
        notes.append(f"torques act as commanded; left out of actuators: {listed(motors, 4)}")
    return (*notes, *(["contacts are left out"] if model.contacts else []))
