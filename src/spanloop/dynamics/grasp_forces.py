"""Forces of grasps at a state: margins to their friction cones, and torques that squeeze what is held.

| symbol | shape | meaning |
|---|---|---|
| J | (n, rows, nv) | closure Jacobian; Jᵀ λ are the joint torques of closure forces λ |
| A | (n, u, rows) | rows of Jᵀ of the u DoF without actuators, such as those of the object |
| C | (n, k, rows) | pressing forces of k loops: C λ |

Internal forces are those with A λ = 0: actuators alone balance them, by −Jᵀ λ, and nothing accelerates. A squeeze is
the shortest of them with C λ as wanted, forces times the length of their loop, as in loops/dynamics_solution.py. With
a floating object, A is the grasp matrix that sums contact forces at the object, eq. 2.9. [Kreutz & Rodriguez]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms.papers.kreutz_rodriguez.grasp_margin import GRASPS, FrictionCone, friction_cone
from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.errors import InputError, Reason, Refusal, nearest
from spanloop.loops.arguments import actuators, joined
from spanloop.loops.batching import Refusals, over_states, values
from spanloop.loops.closed_inverse import motions_left
from spanloop.loops.dynamics_solution import Solution, times
from spanloop.loops.motion_refusals import open_loops
from spanloop.model import Model
from spanloop.topology import mechanism

PerLoop = float | Mapping[str, float]
Normals = Sequence[float] | Mapping[str, Sequence[float]]

_REACHED = 1e-7  # of the wanted pressing forces: what may be missing
_UNIQUE = 1e-7  # of a pressing force, what a force that no torque changes may add
_Z = (0.0, 0.0, 1.0)


class GraspMargins(dict[str, np.ndarray]):
    """Pressing force to spare [N] by loop, negative where it is missing; print it.

    unique[loop] is False where redundant constraints leave the forces of this grasp, and so its margin, undetermined:
    the margin is then that of the shortest closure forces, as of robot.solve. wrenches[loop] (..., 6): [torque; force]
    on body b, at the loop's child frame in its axes.
    """

    def __init__(self, margins: dict[str, np.ndarray], unique: dict[str, bool], wrenches: dict[str, np.ndarray]):
        super().__init__(margins)
        self.unique, self.wrenches = unique, wrenches

    def __str__(self) -> str:
        return "\n".join(f"{name}: {_spare(x)}{'' if self.unique[name] else _SPLIT}" for name, x in self.items())


_SPLIT = " (not unique: of the shortest forces)"


def _spare(margin: np.ndarray) -> str:
    least = float(np.nanmin(margin)) if np.isfinite(margin).any() else np.nan
    many = f", least of {margin.size} states" if margin.ndim else ""
    return f"{abs(least):.4g} N of pressing force {'missing' if least < 0.0 else 'to spare'}{many}"


# ---- cones of loops


def cones(
    model: Model,
    friction: PerLoop,
    torsion: PerLoop | None,
    normal: Normals | None,
    loops: Iterable[str] | None,
    function: str,
) -> dict[str, FrictionCone]:
    """The cone of each grasp: of the loops named, of those that friction names, or of all that can be grasps."""
    known = {x.name: x for x in model.loops}
    chosen = _chosen(model, friction, loops, function)
    for argument, by_name in (("friction", friction), ("torsion", torsion), ("normal", normal)):
        for name in by_name if isinstance(by_name, Mapping) else ():
            if name not in known:
                raise InputError(f"{function}: {argument} names {name!r}, which is no loop; {nearest(name, known)}")
    return {
        name: friction_cone(
            known[name].kind,
            friction.get(name) if isinstance(friction, Mapping) else friction,
            torsion.get(name) if isinstance(torsion, Mapping) else torsion,
            (normal.get(name, _Z) if isinstance(normal, Mapping) else normal) if normal is not None else _Z,
            f"{function}: loop {name!r}",
        )
        for name in chosen
    }


def _chosen(model: Model, friction: PerLoop, loops: Iterable[str] | None, function: str) -> list[str]:
    known = [x.name for x in model.loops]
    if loops is None and isinstance(friction, Mapping):
        loops = list(friction)
    if loops is None:
        found = [x.name for x in model.loops if x.kind.name in GRASPS]
        if not found:
            raise InputError(f"{function}: model {model.name!r} has no grasp, a loop of kind {', '.join(GRASPS)}")
        return found
    names = [loops] if isinstance(loops, str) else list(loops)
    for name in names:
        if name not in known:
            raise InputError(f"{function}: loops names {name!r}, which is no loop; {nearest(name, known)}")
    return names


# ---- margins


def margins(robot: Any, q: ArrayLike, found: Solution, by_loop: Mapping[str, FrictionCone]) -> GraspMargins:
    """Margins (...) of grasps under the loop forces of a Solution; `robot` is a Dynamics."""
    wrenches = {name: in_child_axes(robot, name, q, found.loop_forces[name]) for name in by_loop}
    spare = {name: np.asarray(cone.margin(_six(wrenches[name])))[()] for name, cone in by_loop.items()}
    unique = {name: _is_unique(robot.model, name, cone, found) for name, cone in by_loop.items()}
    return GraspMargins(spare, unique, wrenches)


def in_child_axes(robot: Any, name: str, q: ArrayLike, wrench: np.ndarray) -> np.ndarray:
    """[torque; force] (..., 6) of world axes in the axes of a loop's child frame."""
    loop = next(x for x in robot.model.loops if x.name == name)
    turn = np.swapaxes(robot.pose(q, loop.b)[..., :3, :3] @ np.array(loop.placement_b.rotation), -1, -2)
    return np.concatenate([times(turn, wrench[..., :3]), times(turn, wrench[..., 3:])], axis=-1)


def wrenches_of_rows(model: Model, name: str) -> tuple[list[int], np.ndarray]:
    """Numbers of a grasp's rows, and (6, rows): times their λ, [torque; force] on body b in the child frame's axes."""
    closure = next(c for c in mechanism(model).closures if c.name == name)
    return list(closure.rows), np.array([tuple(closure.child_row(k)) for k in range(len(closure.rows))]).T


def _is_unique(model: Model, name: str, cone: FrictionCone, found: Solution) -> bool:
    """Whether all rows that the cone depends on have one force."""
    rows, six = wrenches_of_rows(model, name)
    read = np.abs(six[3:]).max(axis=0) > 0.0
    if np.isfinite(cone.torsion):
        read |= np.abs(np.array(cone.normal) @ six[:3]) > 0.0
    return bool(np.all(found.unique_rows[rows] | ~read))


def _six(wrench: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.moveaxis(wrench, -1, 0))


# ---- squeezing


@dataclass(frozen=True)
class Squeeze:
    """Torques (..., nv) at the actuators, and the change of loop forces (..., 6) that they bring, in child axes."""

    tau: np.ndarray
    wrenches: dict[str, np.ndarray]


def squeeze(
    robot: Any,
    q: ArrayLike,
    pressing: Mapping[str, ArrayLike],
    normal: Normals | None,
    actuated: Sequence[str] | None,
    function: str,
) -> Squeeze:
    """The internal force that presses the named loops; `robot` is a Dynamics with these loops closed."""
    model = robot.model
    names, wanted = _pressing(model, pressing, function)
    by_loop = cones(model, 1.0, np.inf, normal, names, function)
    able = actuators(model, actuated, None, function).dofs
    m = mechanism(model)
    lengths, dof_lengths = np.array(m.row_lengths), np.array(m.dof_lengths)
    driven = np.array([j.driven for j in model.joints for _ in range(j.kind.nv)], dtype=bool)
    idle = [k for k in range(model.nv) if k not in able and not driven[k]]
    C = pressing_rows(model, by_loop)

    def compute(states: np.ndarray, wanted: np.ndarray) -> tuple[tuple[np.ndarray, ...], Refusals]:
        J = values(robot, "closure_jacobian", states)
        columns = np.swapaxes(J / lengths[:, None] * dof_lengths, 1, 2)  # λ as shares of lengths
        columns[:, driven] = 0.0
        N, _ = motions_left(columns[:, idle], 0)
        y = times(np.linalg.pinv(C / lengths @ N, rcond=1e-9), wanted)
        lam = times(N, y) / lengths
        lost, _ = motions_left(columns, 0)  # closure forces that balance each other: no torque changes them
        refusals = _unreached(names, wanted, lam @ C.T) | _not_unique(names, C / lengths @ lost, C / lengths)
        tau = -times(np.swapaxes(J, 1, 2), lam)
        tau[:, [k for k in range(model.nv) if k not in able or driven[k]]] = 0.0
        return (tau, lam), refusals | open_loops(robot, states)

    tau, lam = over_states(function, robot, compute, q=(q, model.nq), squeeze=(wanted, len(names)))
    found = {x.name: wrenches_of_rows(model, x.name) for x in model.loops if x.kind.name in GRASPS}
    return Squeeze(tau, {name: lam[..., rows] @ six.T for name, (rows, six) in found.items()})


def pressing_rows(model: Model, by_loop: Mapping[str, FrictionCone]) -> np.ndarray:
    """C (k, rows): times the closure forces λ, the pressing forces of k loops."""
    C = np.zeros((len(by_loop), mechanism(model).n_rows))
    for k, (name, cone) in enumerate(by_loop.items()):
        rows, six = wrenches_of_rows(model, name)
        C[k, rows] = np.array(cone.normal) @ six[3:]
    return C


def _pressing(model: Model, pressing: Mapping[str, ArrayLike], function: str) -> tuple[list[str], np.ndarray]:
    if not isinstance(pressing, Mapping) or not pressing:
        raise InputError(f"{function}: the squeeze is {pressing!r}; expected {{'loop': pressing force [N]}}")
    known = [x.name for x in model.loops]
    for name in pressing:
        if name not in known:
            raise InputError(f"{function}: the squeeze names {name!r}, which is no closed loop; {nearest(name, known)}")
    return list(pressing), joined([np.asarray(x, dtype=float)[..., None] for x in pressing.values()])


def _unreached(names: Sequence[str], wanted: np.ndarray, found: np.ndarray) -> Refusals:
    """States at which no internal force presses as wanted (n, k)."""

    def refusal(k: int) -> Refusal:
        asked, near = (
            ", ".join(f"{name!r} with {x:.4g} N" for name, x in zip(names, rows[k], strict=True))
            for rows in (wanted, found)
        )
        return Refusal(
            Reason.UNDERACTUATED,
            f"no internal force presses {asked}: what the contacts and the actuators can balance is {near}. Name fewer "
            "loops, the others follow; or actuate more joints",
        )

    miss = np.abs(found - wanted).max(axis=1) > _REACHED * np.abs(wanted).max(axis=1)
    return {int(k): refusal(int(k)) for k in np.flatnonzero(miss)}


def _not_unique(names: Sequence[str], lost: np.ndarray, rows: np.ndarray) -> Refusals:
    """States at which a pressing force has a part that no torque changes: lost (n, k, rows), of rows (k, rows)."""
    shares = np.abs(lost).max(axis=2) / np.linalg.norm(rows, axis=1)

    def refusal(k: int) -> Refusal:
        return Refusal(
            Reason.UNDETERMINED,
            f"the pressing force of {names[int(np.argmax(shares[k]))]!r} is not unique: redundant constraints carry "
            "forces that no torque changes. robot.diagnose(q) lists them; grasps with fewer rows have none",
        )

    return {int(k): refusal(int(k)) for k in np.flatnonzero((shares > _UNIQUE).any(axis=1))}


def least_share(
    wrenches: Mapping[str, np.ndarray],
    change: Mapping[str, np.ndarray],
    by_loop: Mapping[str, FrictionCone],
    margin: float,
    function: str,
) -> np.ndarray:
    """The least s >= 0 (...) at which all margins under wrenches + s change reach `margin`; refused where none does."""
    ends = np.array(
        [
            np.vectorize(_interval, signature="(),(),(k),(k)->(),()")(a - margin, b, c, d)
            for name, cone in by_loop.items()
            for (a, c), (b, d) in [(_parts(cone, wrenches[name]), _parts(cone, change[name]))]
        ]
    )
    lower, upper = ends[:, 0].max(axis=0), ends[:, 1].min(axis=0)
    found: np.ndarray = np.ravel(lower)
    finite = np.ravel(np.isfinite(sum(x.sum(axis=-1) for x in wrenches.values())))  # others are refused already
    none = np.flatnonzero(finite & ~np.ravel(lower <= upper))
    refuse_states(function, none, lambda _: _TOO_WEAK, lower.shape, found)
    return found.reshape(lower.shape)[()]


_TOO_WEAK = Refusal(
    Reason.UNDERACTUATED,
    "no multiple of this squeeze keeps all grasps in their friction cones. Squeeze other loops, or change the torques",
)


def _parts(cone: FrictionCone, wrench: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pressing force (...), and (..., 4) whose length it must exceed: f_t/µ, m_n/γ."""
    n = np.array(cone.normal)
    press = wrench[..., 3:] @ n
    spin = wrench[..., :3] @ n / cone.torsion
    return press, np.concatenate([(wrench[..., 3:] - press[..., None] * n) / cone.friction, spin[..., None]], axis=-1)


def _interval(a: float, b: float, c: np.ndarray, d: np.ndarray) -> tuple[float, float]:
    """Ends of the interval of s >= 0 with a + b s >= |c + d s|: a line in a cone; (inf, −inf) where there is none."""

    def inside(s: float) -> bool:
        return bool(a + b * s >= np.linalg.norm(c + d * s))

    squares = b * b - d @ d, a * b - c @ d, a * a - c @ c  # A s² + 2 B s + C, 0 at the ends
    cuts = [0.0, *sorted(s for s in _roots(*map(float, squares)) if s > 0.0), math.inf]
    kept = [(x, y) for x, y in pairwise(cuts) if inside(0.5 * (x + y) if y < math.inf else 2.0 * x + 1.0)]
    if not kept:
        return (0.0, 0.0) if inside(0.0) else (math.inf, -math.inf)
    return kept[0][0], kept[-1][1]


def _roots(A: float, B: float, C: float) -> list[float]:
    """Real s with A s² + 2 B s + C = 0."""
    if B * B < A * C:
        return []
    larger = -(B + math.copysign(math.sqrt(B * B - A * C), B))  # without cancellation
    return [x / y for x, y in ((larger, A), (C, larger)) if y != 0.0]
