"""Margins of grasps to their friction cones over a motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spanloop.algorithms.papers.kreutz_rodriguez.grasp_margin import FrictionCone
from spanloop.dynamics import Dynamics, grasp_forces
from spanloop.dynamics.grasp_forces import GraspMargins
from spanloop.trajectory.quantities import loaded, refuse_driven_loops
from spanloop.trajectory.topologies import is_uniform, joined, topologies

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def grasp_margins(run: Trajectory, cones: Mapping[str, FrictionCone]) -> GraspMargins:
    """Margins (..., n) of these loops under the torques and forces that acted; NaN where a loop is open."""
    if is_uniform(run):
        return _by_name(*_rows(run.robot, cones, run.acting, run.q, run.v, run.tau), cones)
    parts, unique = [], dict.fromkeys(cones, True)
    for t in topologies(run):
        found = np.full((len(t.q), len(cones), 7), np.nan)
        closed = {x.name for x in t.model.loops}
        here = {name: cone for name, cone in cones.items() if name in closed}
        if here:
            found[:, [k for k, name in enumerate(cones) if name in here]], alone = _rows(
                t.robot, here, t.forces, t.q, t.v, t.tau
            )
            unique |= {name: unique[name] and alone[name] for name in here}
        parts.append((t, found))
    return _by_name(joined(run, parts), unique, cones)


def _rows(
    robot: Dynamics, cones: Mapping[str, FrictionCone], forces: Mapping[str, np.ndarray], *state: np.ndarray
) -> tuple[np.ndarray, dict[str, bool]]:
    """Margin and wrench (..., n, loops, 7) at samples, and whether they are unique."""
    unique = dict.fromkeys(cones, True)

    def rows(
        q: np.ndarray, v: np.ndarray, tau: np.ndarray, forces: Mapping[str, np.ndarray] | None = None
    ) -> np.ndarray:
        found = grasp_forces.margins(robot, q, robot.solve(q, v, tau, forces=forces), cones)
        for name, alone in found.unique.items():
            unique[name] &= alone
        return np.stack([np.concatenate([found[n][..., None], found.wrenches[n]], axis=-1) for n in cones], axis=-2)

    refuse_driven_loops(robot.model, "grasp_margin")
    return loaded("grasp_margin", rows, forces, *state), unique


def _by_name(found: np.ndarray, unique: dict[str, bool], names: Mapping[str, FrictionCone]) -> GraspMargins:
    by_name = {name: found[..., k, :] for k, name in enumerate(names)}
    return GraspMargins({n: x[..., 0] for n, x in by_name.items()}, unique, {n: x[..., 1:] for n, x in by_name.items()})
