"""Manipulability: how fast a frame moves per rate of the actuated joints, in every direction. [Yoshikawa 1985]

Rates of the actuated joints of length 1 move the frame along an ellipsoid. With T the velocities that the loops leave,
v = T v_i, and T_a its rows of the actuated joints, these rates are v_i = (T_aᵀ T_a)^(−1/2) x, |x| = 1, and the
semi-axes of the ellipsoid are the singular values of J T (T_aᵀ T_a)^(−1/2); of a tree, of the columns of J.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, Reason, Refusal, nearest
from spanloop.loops.arguments import actuators
from spanloop.loops.batching import Computed, Refusals, Robot, over_states, values
from spanloop.loops.constraint_rank import by_assembly
from spanloop.loops.independent_dofs import IndependentCoordinates, maps, resolved
from spanloop.loops.motion_refusals import open_loops

_IDLE = 1e-12  # of the largest eigenvalue: motions in which the actuated joints stand still
_STILL = 1e-9  # of the frame's motions: what it may move in those
_PARTS = {"angular": 0, "linear": 3}  # the first row of the Jacobian


@dataclass(frozen=True, eq=False)
class Manipulability:
    """The velocity ellipsoid of a frame for unit rates of the actuated joints, with batch axes first.

    Lengths are in m/s (linear) or rad/s (angular) per unit of the joints' rates [rad/s, m/s].
    """

    frame: str
    part: str  # "linear" or "angular"
    axes: str  # axes of the world, k of them
    lengths: np.ndarray  # (..., k): semi-axes, the longest first
    directions: np.ndarray  # (..., k, k): unit vectors along them, as columns, in `axes`

    @property
    def measure(self) -> np.ndarray:
        """Yoshikawa's measure √det(J Jᵀ) (...,): the product of the semi-axes, 0 at a singular configuration."""
        return np.prod(self.lengths, axis=-1)

    @property
    def condition(self) -> np.ndarray:
        """The longest over the shortest semi-axis (...,): 1 for a sphere, inf at a singular configuration."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.lengths[..., 0] / self.lengths[..., -1]

    @property
    def force_lengths(self) -> np.ndarray:
        """Semi-axes (..., k) of the force ellipsoid along the same directions: forces per unit torque."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.lengths


def manipulability(
    robot: Robot, q: ArrayLike, frame: str, part: str, axes: str, actuated: Sequence[str] | None
) -> Manipulability:
    """The velocity ellipsoid of a frame; arguments as of Dynamics.manipulability."""
    model, name = robot.model, robot.model.frame(frame).name
    if part not in _PARTS:
        raise InputError(f"manipulability: part is {part!r}; {nearest(part, _PARTS)}")
    if not isinstance(axes, str) or not axes or not set(axes) <= set("xyz") or len(set(axes)) != len(axes):
        raise InputError(f"manipulability: axes is {axes!r}; expected some of 'xyz'")
    rows = [_PARTS[part] + "xyz".index(x) for x in axes]
    dofs = list(actuators(model, actuated, None).dofs)
    if not dofs:
        raise InputError(f"manipulability: model {model.name!r} has no actuated joint; name some: actuated=[...]")
    closed = bool(model.loops or model.couplings)
    chosen = resolved(robot, q, None, "manipulability") if closed else None

    def compute(q: np.ndarray) -> Computed:
        J = values(robot, "jacobian", q, frame=name, expressed_in="world")[:, rows]
        E, refusals = (J[:, :, dofs], {}) if chosen is None else _by_actuators(robot, q, J, dofs, chosen, name)
        finite = np.where(np.isfinite(E), E, 0.0)
        U, s, _ = np.linalg.svd(finite)
        lengths = np.zeros((len(q), len(rows)))
        lengths[:, : s.shape[1]] = s
        return (lengths, U), refusals

    found = over_states("manipulability", robot, by_assembly(robot, compute), q=(q, model.nq))
    return Manipulability(name, part, axes, *found)


def _by_actuators(
    robot: Robot, q: np.ndarray, J: np.ndarray, dofs: list[int], chosen: IndependentCoordinates, frame: str
) -> tuple[np.ndarray, Refusals]:
    """J T (T_aᵀ T_a)^(−1/2), and the states at which the frame moves while all actuated joints stand still."""
    T, _, refusals = maps(robot, q, chosen)
    own = T[:, dofs]
    w, U = np.linalg.eigh(np.swapaxes(own, 1, 2) @ own)
    counts = w > _IDLE * w.max(axis=1, initial=0.0, keepdims=True)
    scaled = U * np.where(counts, 1.0 / np.sqrt(np.where(counts, w, 1.0)), 0.0)[:, None, :]
    moved = J @ T
    idle = np.linalg.norm(moved @ (U * ~counts[:, None, :]), axis=(1, 2))
    loose = idle > _STILL * np.linalg.norm(moved, axis=(1, 2))
    words = f"{frame!r} moves while all actuated joints stand still: its manipulability has no bound"
    refusals |= {int(k): Refusal(Reason.UNDERACTUATED, words) for k in np.flatnonzero(loose)}
    return moved @ scaled, refusals | open_loops(robot, q)
