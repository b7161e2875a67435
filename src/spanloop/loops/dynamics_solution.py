"""The whole answer at a state: accelerations, torques, closure forces, reactions, and how good they are.

Closure forces follow from the accelerations: Jᵀ λ = M a + h − tau. Where rows are redundant there are many; the
shortest λ is given, forces times the length of their loop, and marked as not unique. `robot` is a Dynamics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms.closed import closure_kinematics
from spanloop.errors import in_one_line, listed
from spanloop.loops.arguments import loop_acceleration_rows, loop_wrenches, on_bodies
from spanloop.loops.batching import values
from spanloop.loops.closure_errors import rows_of
from spanloop.loops.constraint_rank import rank, singular_values, structures
from spanloop.loops.redundant_directions import direction_names, null_directions
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Transform
from spanloop.model import Model
from spanloop.model.parts import Loop
from spanloop.sweeps import walk
from spanloop.topology import Mechanism, mechanism

ByName = Mapping[str, ArrayLike]
Names = tuple[str, ...]

_LEFT = 1e-6  # of the accelerations, what may be left along a row; a misaligned axis leaves as much
_NOISE = 1e-9  # of the accelerations without loops: rounding

REDUNDANT = 1e-9  # singular values of Jᵀ below this share of the largest count as zero


@dataclass(frozen=True)
class Solution:
    """The result of robot.solve and robot.solve_inverse; print it.

    a (..., nv): accelerations. tau (..., nv): torques, with those that result at driven joints.

    loop_forces (..., 6) by loop name: [torque; force] on body b at the loop's child frame in world axes, including the
    forces along its DoF, given or driving; 0 for loops that are not active.

    rows (..., n_rows): the multipliers λ of the closure rows, in the axes of the loops' child frames; diagnose(q).rows
    has the rows' names. residual (...): the largest closure acceleration left.

    unique: by loop, whether its force is the only possible one; unique_rows (n_rows,): the same by row. A hinge that
    closes a planar loop is not unique as a whole, but its force in the plane is. undetermined: by name, the directions
    in which loop forces are not unique; of many states and in inverse dynamics, the rows that are not.

    status (...): "ok"; "singular" where the loops have less rank than usual; "contradictory" where the accelerations do
    not keep the loops closed (residual); "no answer".
    """

    a: np.ndarray
    tau: np.ndarray
    loop_forces: dict[str, np.ndarray] = field(default_factory=dict)
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0))
    residual: np.ndarray = field(default_factory=lambda: np.zeros(()))
    unique: dict[str, bool] = field(default_factory=dict)
    status: np.ndarray = field(default_factory=lambda: np.array("ok"))
    unique_rows: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    undetermined: Names = ()

    def __str__(self) -> str:
        return report(self)


def solve(
    robot: Any,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: ByName | None = None,
    active_loops: Collection[str] | None = None,
    loop_accelerations: ByName | None = None,
    loop_forces: ByName | None = None,
) -> Solution:
    """The Solution at one state or many; active_loops: a set of names, or None for all switchable ones."""
    model = robot.model
    options = {"active_loops": active_loops, "loop_accelerations": loop_accelerations, "loop_forces": loop_forces}
    a = robot.forward_dynamics(q, v, tau, forces=forces, **options)
    q, v, tau = (np.broadcast_to(np.asarray(x, float), (*a.shape[:-1], np.shape(x)[-1])) for x in (q, v, tau))
    carried = loop_wrenches(robot, q, loop_forces or {}, active_loops)
    loads = on_bodies(robot, q, carried, forces or {}) or None
    needed = times(robot.mass_matrix(q), a) + robot.bias(q, v, forces=loads)  # M a + h
    driven = _driven(model)
    right = np.where(driven, 0.0, needed - tau)
    J, closed = robot.closure_jacobian(q), _closed_rows(model, active_loops)
    lam, unique, residual = np.zeros(J.shape[:-1]), np.ones(J.shape[-2], bool), np.zeros(a.shape[:-1])
    if closed:
        free = (J * np.where(driven, 0.0, 1.0))[..., closed, :]
        lam[..., closed], unique[closed] = shortest(mechanism(model), free, right, closed)
        bias = _bias(robot, q, v, loop_accelerations)
        left = np.abs(times(J, a) + bias)[..., closed]
        residual = left.max(axis=-1)
    torque = np.where(driven, needed - times(np.swapaxes(J, -1, -2), lam), tau)
    status = _status(robot._with_active_loops(active_loops), q, a)
    if closed:
        alone_a = _unconstrained(robot.mass_matrix(q), np.where(driven, 0.0, tau - robot.bias(q, v, forces=loads)))
        status[(status == "ok") & _contradicted(mechanism(model), closed, left, bias, a, alone_a)] = "contradictory"
    closures = mechanism(model).closures
    by_name = {c.name: times(wrench_map(robot, c, q), lam[..., list(c.rows)]) for c in closures}
    by_name |= {name: by_name[name] + six for name, six in carried.items()}
    alone = {c.name: bool(unique[list(c.rows)].all()) for c in closures}
    open_ended = undetermined(model, unique, J * np.where(driven, 0.0, 1.0), closed)
    return Solution(a, torque, by_name, lam, residual, alone, status, unique, open_ended)


def undetermined(model: Model, unique: np.ndarray, J: np.ndarray | None = None, closed: Sequence[int] = ()) -> Names:
    """Names of the directions in which forces along rows are not unique: of one state with J (n_rows, nv) those with
    Jᵀ λ = 0 in the closed rows, else the rows that are not unique (n_rows,)."""
    if unique.all():
        return ()
    if J is None or J.ndim > 2 or not np.isfinite(J).all():
        return tuple(row.name for row, alone in zip(rows_of(model), unique, strict=True) if not alone)
    m = mechanism(model)
    lengths = np.array(m.row_lengths)
    J = J / lengths[:, None] * np.array(m.dof_lengths)
    open_rows = np.delete(np.eye(len(J)), list(closed), axis=1)  # of loops that are not active
    found = null_directions(model, np.concatenate([J, open_rows], axis=1), REDUNDANT * float(np.linalg.norm(J, 2)))
    return direction_names(model, found, lengths)


def with_idle(model: Model, fewer: Model, found: Solution) -> Solution:
    """A Solution of the model with fewer loops as one of the whole model: the others carry nothing."""
    rows = np.zeros((*found.tau.shape[:-1], mechanism(model).n_rows))
    closed = _closed_rows(model, {x.name for x in fewer.loops})
    rows[..., closed] = found.rows
    alone = np.ones(rows.shape[-1], bool)
    alone[closed] = found.unique_rows if len(found.unique_rows) else True
    loop_forces = {x.name: found.loop_forces.get(x.name, np.zeros((*found.tau.shape[:-1], 6))) for x in model.loops}
    unique = {x.name: found.unique.get(x.name, True) for x in model.loops}
    return replace(found, rows=rows, loop_forces=loop_forces, unique=unique, unique_rows=alone)


def _closed_rows(model: Model, active_loops: Collection[str] | None) -> list[int]:
    """Numbers of the rows that hold: all but those of loops and couplings that are switched off."""
    m = mechanism(model)
    off = () if active_loops is None else [name for name in m.switches if name not in active_loops]
    idle = {r for name in off for r in m.switches[name]}
    return [r for r in range(m.n_rows) if r not in idle]


def _bias(robot: Any, q: ArrayLike, v: ArrayLike, loop_accelerations: ByName | None) -> np.ndarray:
    """γ (..., n_rows), less the accelerations of driven loops: J a + γ = 0."""
    bias: np.ndarray = robot.closure_bias(q, v)
    rows = list(mechanism(robot.model).given_rows)
    if rows:
        bias[..., rows] -= loop_acceleration_rows(robot.model, loop_accelerations)
    return bias


class Reactions(dict[str, np.ndarray]):
    """Forces by name; `unique[name]` is False where redundant constraints leave them undetermined."""

    def __init__(self, forces: dict[str, np.ndarray], unique: dict[str, bool]):
        super().__init__(forces)
        self.unique = unique


def reactions(
    robot: Any,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: ByName | None = None,
    active_loops: Collection[str] | None = None,
    loop_accelerations: ByName | None = None,
    loop_forces: ByName | None = None,
) -> Reactions:
    """[torque; force] (..., 6) by name, in world axes.

    Of each joint on its child, at that body's origin; of each loop on its body b, at the loop's child frame.
    """
    found = solve(robot, q, v, tau, forces, active_loops, loop_accelerations, loop_forces)
    loads = _loads(robot, q, found, forces or {})
    kernel = robot.kernel("reactions", **({"forces": tuple(loads)} if loads else {}))
    shape = found.a.shape[:-1]
    arrays = [np.broadcast_to(x, (*shape, np.shape(x)[-1])) for x in (q, v)] + [found.a]
    if loads:
        arrays.append(np.concatenate([np.broadcast_to(x, (*shape, 6)) for x in loads.values()], axis=-1))
    six = kernel(*arrays)
    out = {j.name: six[..., i, :] for i, j in enumerate(robot.model.joints)}
    strained = {name for x in robot.model.loops if not found.unique[x.name] for name in _around(robot.model, x)}
    unique = {j.name: j.name not in strained for j in robot.model.joints} | found.unique
    return Reactions({**out, **found.loop_forces}, unique)


def _around(model: Model, loop: Loop) -> set[str]:
    """Names of the joints between a loop's two bodies: all that its force can load."""
    ways = []
    for body in (loop.a, loop.b):
        way, number = set(), model.body_number[body]
        while number:
            way.add(model.joints[number - 1].name)
            number = model.parents[number - 1]
        ways.append(way)
    return ways[0] ^ ways[1]


def _loads(robot: Any, q: ArrayLike, found: Solution, forces: ByName) -> dict[str, np.ndarray]:
    """All forces from outside the tree, by body, at body origins in world axes."""
    loads = on_bodies(robot, q, found.loop_forces, forces)
    order = [b.name for b in robot.model.bodies]
    return {name: loads[name] for name in sorted(loads, key=order.index)}


def wrench_map(robot: Any, closure: Any, q: ArrayLike) -> np.ndarray:
    """(..., 6, rows): times a closure's λ, its force on body b at its child frame in world axes."""
    loop = robot.model.loops[closure.number]
    child = robot.pose(q, loop.b)[..., :3, :3] @ np.array(loop.placement_b.rotation)
    turn = child @ np.array(closure.child_axes)
    space = np.swapaxes(_space(robot, closure, q), -1, -2)
    return np.concatenate([turn @ space[..., :3, :], turn @ space[..., 3:, :]], axis=-2)


def _space(robot: Any, closure: Any, q: ArrayLike) -> np.ndarray:
    """φᶜ (..., rows, 6) in the child's axes."""
    if closure.kind.constant_space:
        return np.reshape([tuple(w) for w in closure.kind.constraint_space(closure.kind.neutral())], (-1, 6))
    m = mechanism(robot.model)
    out = []
    for state in np.reshape(q, (-1, np.shape(q)[-1])):
        pose = walk(closure_kinematics.closure_poses(m, closure), m, {"q": state.tolist()})
        turn = tuple(tuple(pose[4 * k : 4 * k + 3]) for k in range(3))
        x = Transform(Rotation.full(turn), tuple(pose[3::4]))  # type: ignore[arg-type]
        out.append([tuple(w) for w in closure.kind.closure_space(x)])
    return np.reshape(out, (*np.shape(q)[:-1], len(closure.rows), 6))


def shortest(
    m: Mechanism, J: np.ndarray, right: np.ndarray, rows: Sequence[int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The shortest λ with Jᵀ λ = right, and for each row whether every such λ agrees on it (at all states).

    J (..., rows, nv): of all rows of the mechanism, or of those numbered. Lengths are shares of characteristic ones.
    """
    lengths = np.array(m.row_lengths)[slice(None) if rows is None else list(rows)]
    dof_lengths = np.array(m.dof_lengths)
    J, right = J / lengths[:, None] * dof_lengths, right * dof_lengths
    lam = np.full(J.shape[:-1], np.nan)
    unique = np.ones(J.shape[-2], bool)
    for index in np.ndindex(*J.shape[:-2]):
        if not np.isfinite(right[index]).all():
            continue
        u, s, vt = np.linalg.svd(J[index].T, full_matrices=False)
        keep = s > REDUNDANT * s.max(initial=0.0)
        lam[index] = vt[keep].T @ ((u.T @ right[index])[keep] / s[keep])
        unique &= np.abs(np.sum(vt[keep] ** 2, axis=0) - 1.0) < 1e-9
    return lam / lengths, unique


def _status(robot: Any, q: np.ndarray, a: np.ndarray) -> np.ndarray:
    """A word for each state: "ok", "singular" where the loops have less rank than their assembly has, "no answer"."""
    word = np.full(a.shape[:-1], "ok", dtype="<U13")
    answered = np.isfinite(a).all(axis=-1)
    states = q[answered]
    if len(states) and mechanism(robot.model).n_rows:
        J = values(robot, "closure_jacobian", states)
        found, number = structures(robot, states)
        word[answered] = [
            "singular" if rank(singular_values(found[n].scaled(x))) < found[n].rank else "ok"
            for n, x in zip(number, J, strict=True)
        ]
    word[~answered] = "no answer"
    return word


def _unconstrained(M: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """The accelerations (..., nv) of the tree without its loops: the size of what acts on it."""
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(M).all(axis=(-1, -2)) & np.isfinite(torque).all(axis=-1)
    found = np.zeros_like(torque)
    for index in zip(*np.nonzero(usable), strict=True) if usable.ndim else ([()] if usable else []):
        found[index] = np.linalg.lstsq(M[index], torque[index], rcond=None)[0]
    return found


def _contradicted(m: Mechanism, rows: Sequence[int], left, bias, a, alone) -> np.ndarray:
    """At which states the closure accelerations left (..., rows) are more than rounding leaves."""
    lengths, dof_lengths = np.array(m.row_lengths)[list(rows)], np.array(m.dof_lengths)
    largest = np.abs(a / dof_lengths).max(axis=-1) + np.abs(bias[..., rows] / lengths).max(axis=-1)
    noise = np.abs(alone / dof_lengths).max(axis=-1)
    contradicted: np.ndarray = (left / lengths).max(axis=-1) > _LEFT * largest + _NOISE * noise
    return contradicted


def _driven(model: Model) -> np.ndarray:
    return np.array([j.driven for j in model.joints for _ in range(j.kind.nv)], dtype=bool)


def times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Matrices (..., i, j) times vectors (..., j)."""
    product: np.ndarray = np.einsum("...ij,...j->...i", matrix, vector)
    return product


# ---- the printout of a Solution


NOT_UNIQUE = " (not unique: the shortest)"


def report(solution: Solution) -> str:
    """A line for each part of a single state's answer; of many states, how they came out."""
    if solution.a.ndim > 1:
        return _many(solution)
    lines = [f"a    {_numbers(solution.a)}", f"tau  {_numbers(solution.tau)}"]
    for name, six in solution.loop_forces.items():
        alone = "" if solution.unique.get(name, True) else NOT_UNIQUE
        lines.append(f"{in_one_line(name)}: torque {_numbers(six[:3])} N m, force {_numbers(six[3:])} N{alone}")
    left = f", closure acceleration left {float(solution.residual):.1e}" if solution.loop_forces else ""
    return "\n".join([*lines, *_undetermined(solution), f"status: {solution.status}{left}"])


def _many(solution: Solution) -> str:
    words, counts = np.unique(solution.status, return_counts=True)
    lines = [
        f"{solution.status.size} states {solution.status.shape}, {solution.a.shape[-1]} DoF: "
        + ", ".join(f"{n} {word}" for word, n in zip(words, counts, strict=True))
    ]
    for name, six in solution.loop_forces.items():
        sizes = [np.linalg.norm(six[..., k : k + 3], axis=-1) for k in (0, 3)]
        torque, force = (np.nanmax(x) if np.isfinite(x).any() else np.nan for x in sizes)
        alone = "" if solution.unique.get(name, True) else NOT_UNIQUE
        lines.append(f"{in_one_line(name)}: torques up to {torque:.4g} N m, forces up to {force:.4g} N{alone}")
    return "\n".join([*lines, *_undetermined(solution)])


def _undetermined(solution: Solution) -> list[str]:
    return [in_one_line(f"not unique: {listed(solution.undetermined, 12)}")] if solution.undetermined else []


def _numbers(x: np.ndarray) -> str:
    return np.array2string(np.asarray(x), precision=5, suppress_small=True, max_line_width=200, threshold=40)
