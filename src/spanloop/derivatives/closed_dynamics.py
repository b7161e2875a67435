"""Derivatives of the accelerations of closed mechanisms: along closed motions, or of the function as it is computed.

| function | columns | meaning |
|---|---|---|
| along_closed_motions | n positions, n rates, nv torques | changes of a along closed motions; every method agrees |
| as_computed | nv positions, nv rates, nv torques | of forward_dynamics; off the loops it depends on the method |

Each column is a direction (dq, dv, dtau) of the JVP kernel of forward dynamics; all of all states are one batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from spanloop.derivatives.batched_directions import along_directions
from spanloop.derivatives.closed_motion import directions_at, refuse_rolling
from spanloop.loops.arguments import external_forces
from spanloop.loops.batching import Computed, Robot, over_states
from spanloop.loops.constraint_rank import by_assembly
from spanloop.loops.independent_dofs import Dofs, IndependentCoordinates, resolved

_CHANGING = ("q", "v", "tau")


@dataclass(frozen=True, eq=False)
class ClosedDerivatives:
    """Derivatives of accelerations along closed motions, by n independent positions and rates, and by all torques.

    Each has a row for every DoF (nv); `independent` has those of the independent DoF alone.
    """

    dofs: IndependentCoordinates  # the n independent DoF: names, and places in v
    da: np.ndarray  # (..., nv, 2 n + nv): da_dq, da_dv and da_dtau side by side
    dq: np.ndarray  # (..., nv, n): how all joints move with the independent ones, in joint rates
    dv: np.ndarray  # (..., nv, n): how v changes with the independent positions, their rates held

    @property
    def da_dq(self) -> np.ndarray:
        """(..., nv, n): by independent positions, with the independent rates and all torques held."""
        return self.da[..., : len(self.dofs)]

    @property
    def da_dv(self) -> np.ndarray:
        """(..., nv, n): by independent rates."""
        return self.da[..., len(self.dofs) : 2 * len(self.dofs)]

    @property
    def da_dtau(self) -> np.ndarray:
        """(..., nv, nv): by the torques of all joints; of a driven joint by its acceleration."""
        return self.da[..., 2 * len(self.dofs) :]

    @property
    def independent(self) -> ClosedDerivatives:
        """The same with the rows of the independent DoF alone: da_dq, da_dv (..., n, n), da_dtau (..., n, nv)."""
        return replace(self, da=self.da[..., list(self.dofs.dofs), :])


def along_closed_motions(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None = None,
    loop_inputs: tuple[np.ndarray, ...] = (),
    dofs: Dofs = None,
    name: str = "derivatives",
) -> ClosedDerivatives:
    """Return the derivatives of a (..., nv) along closed motions, at states q (..., nq), v and tau (..., nv).

    forces: {"body": (..., 6)}, held in world axes. loop_inputs: the kernel's, for switchable and for driven loops.
    dofs: independent DoF; robot.independent_coordinates() by default. name: of the calling function.
    """
    refuse_rolling(robot.model, name)
    chosen = resolved(robot, q, dofs, name)
    nv, n = robot.model.nv, len(chosen)
    loaded, sizes = _inputs(robot, q, v, tau, forces, loop_inputs, name)

    def compute(*inputs: np.ndarray) -> Computed:
        (T, dv), refusals = directions_at(robot, inputs[0], inputs[1], chosen)
        tangents = {x: np.zeros((len(T), 2 * n + nv, nv)) for x in _CHANGING}
        tangents["q"][:, :n] = np.swapaxes(T, 1, 2)
        tangents["v"][:, :n] = np.swapaxes(dv, 1, 2)
        tangents["v"][:, n : 2 * n] = np.swapaxes(T, 1, 2)
        tangents["tau"][:, 2 * n :] = np.eye(nv)
        da, unanswered = along_directions(robot, "forward_dynamics", inputs, tangents, **loaded)
        return (np.swapaxes(da, 1, 2), T, dv), unanswered | refusals

    return ClosedDerivatives(chosen, *over_states(name, robot, by_assembly(robot, compute), **sizes))


def as_computed(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None = None,
    loop_inputs: tuple[np.ndarray, ...] = (),
    name: str = "derivatives",
) -> np.ndarray:
    """Return the derivatives (..., nv, 3 nv) of forward_dynamics by all positions, rates and torques.

    They mean something in combinations along closed motions only. Arguments as of along_closed_motions.
    """
    nv = robot.model.nv
    loaded, sizes = _inputs(robot, q, v, tau, forces, loop_inputs, name)
    unit = np.eye(3 * nv).reshape(3 * nv, 3, nv)

    def compute(*inputs: np.ndarray) -> Computed:
        tangents = {x: np.broadcast_to(unit[:, k], (len(inputs[0]), 3 * nv, nv)) for k, x in enumerate(_CHANGING)}
        da, unanswered = along_directions(robot, "forward_dynamics", inputs, tangents, **loaded)
        return (np.swapaxes(da, 1, 2),), unanswered

    return over_states(name, robot, compute, **sizes)[0]


def _inputs(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None,
    loop_inputs: tuple[np.ndarray, ...],
    name: str,
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[ArrayLike, int]]]:
    """Options of the kernel of forward dynamics, and its inputs with their sizes, in order."""
    model = robot.model
    bodies, rows = external_forces(model, name, forces or {})
    sizes: dict[str, tuple[ArrayLike, int]] = {"q": (q, model.nq), "v": (v, model.nv), "tau": (tau, model.nv)}
    if bodies:
        sizes["forces"] = (rows, 6 * len(bodies))
    for k, x in enumerate(loop_inputs):
        sizes["loop_accelerations" if k == len(loop_inputs) - 1 else "active_loops"] = (x, x.shape[-1])
    return ({"forces": bodies} if bodies else {}), sizes
