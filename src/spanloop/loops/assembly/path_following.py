"""Motions of all joints from those of independent ones, sample by sample, in one assembly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.errors import InputError, Reason, Refusal, StateError, UnsupportedError
from spanloop.loops.assembly.assembly import assemble, velocity_loops
from spanloop.loops.batching import Robot, resolution, values
from spanloop.loops.closure_errors import errors, mechanism_of, positional
from spanloop.loops.constraint_rank import RANK, Structure, rank, singular_values, structure
from spanloop.loops.independent_dofs import complete_acceleration, complete_velocity
from spanloop.model import Model


def follow(robot, start, path: Mapping) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q (n, nq), v, a (n, nv) along a path {"joint": (positions, rates, accelerations)}, each (n,) or (n, nv of it).

    The joints named are independent and determine the others. start (nq,): a guess for the first sample, which
    chooses the assembly; from there the joints go straight from sample to sample, and the others follow without a jump
    to another assembly, or the path is refused.
    """
    model = robot.model
    refuse_velocity_loops(model, "follow")
    arrays = _arrays(robot, path)
    counts = {len(x) for motion in arrays.values() for x in motion}
    if len(counts) != 1:
        found = ", ".join(map(str, sorted(counts)))
        raise InputError(
            f"follow: the joints' positions, rates and accelerations have {found} samples; expected one number for all"
        )
    if np.shape(start) != (model.nq,):
        raise InputError(f"follow: start has shape {np.shape(start)}; expected one state ({model.nq},)")
    guess = np.array(start, dtype=float)
    out: list[np.ndarray] = []
    for k in range(counts.pop()):
        at = {name: motion[0][k] for name, motion in arrays.items()}
        if not out:
            for name, x in at.items():
                guess[model.q_slice(name)] = x
            out.append(assemble(robot, guess, tuple(path)))
        else:
            out.append(_next(robot, out[-1], at, k))
    q = np.array(out)
    v = complete_velocity(robot, q, {name: _flat(motion[1]) for name, motion in arrays.items()})
    return q, v, complete_acceleration(robot, q, v, {name: _flat(motion[2]) for name, motion in arrays.items()})


def refuse_velocity_loops(model: Model, function: str) -> None:
    """Raise UnsupportedError if a loop constrains velocities alone: positions then depend on the way.

    function: of which name the error speaks.
    """
    names = velocity_loops(model)
    if names:
        raise UnsupportedError(
            f"{function}: loop {names[0]!r} has rows that constrain velocities alone (a general joint, a soft finger, "
            "a driven loop), and the positions of the other joints depend on the way that was taken. Integrate the "
            "motion: sl.simulate(...); or close the loop by another kind of joint"
        )


def _next(robot, last: np.ndarray, at: Mapping, k: int) -> np.ndarray:
    """The closed state of sample k, from that of the sample before."""
    model = robot.model
    dofs = [i for name in at for i in range(model.v_slice(name).start, model.v_slice(name).stop)]
    steps = [model.joint(name).kind.minus(x, last[model.q_slice(name)]) for name, x in at.items()]
    q, share = followed(robot, last, dofs, np.concatenate([np.asarray(x, dtype=float) for x in steps]))
    if share < 1.0:
        refusal = Refusal(
            Reason.BLOCKED_PATH,
            f"between samples {k - 1} and {k} the mechanism comes to a singular configuration, beyond which the other "
            f"joints do not follow, or out of reach ({share:.0%} of the way could be taken). See "
            f"robot.diagnose(q) at sample {k - 1}; change the path, or name other joints",
        )
        raise StateError.of("follow", refusal)
    for name, x in at.items():
        q[model.q_slice(name)] = x
    return q


def _arrays(robot, path: Mapping) -> dict[str, list[np.ndarray]]:
    """Positions, rates and accelerations (n, ...) by joint."""
    if not isinstance(path, Mapping) or not path:
        found = "names no joint" if isinstance(path, Mapping) else f"is a {type(path).__name__}"
        raise InputError(
            f"follow: path {found}; expected {{'joint': (positions, rates, accelerations)}} of joints that determine "
            "the others, say those of robot.independent_coordinates()"
        )
    for name, motion in path.items():
        if not hasattr(motion, "__len__") or len(motion) != 3:
            found = f"has {len(motion)} parts" if hasattr(motion, "__len__") else f"is {motion!r}"
            raise InputError(
                f"follow: the path of {name!r} {found}; expected (positions, rates, accelerations), each (n,)"
            )
    return {name: [_columns(robot.model, name, k, x) for k, x in enumerate(motion)] for name, motion in path.items()}


def _columns(model, name: str, part: int, x) -> np.ndarray:
    """Samples (n, nq or nv of the joint)."""
    kind = model.joint(name).kind
    size = kind.nv if part else kind.nq
    x = np.asarray(x, dtype=float)
    x = x[:, None] if x.ndim == 1 and size == 1 else x
    if x.ndim != 2 or x.shape[1] != size:
        what = ("positions", "rates", "accelerations")[part]
        raise InputError(f"follow: the {what} of {name!r} have shape {x.shape}; expected (n, {size})")
    return x


def _flat(x: np.ndarray) -> np.ndarray:
    return x[:, 0] if x.shape[1] == 1 else x


# ---- closed states along a straight way of some joints, without a jump to another assembly
#
# The way is taken in parts. In each, the dependent DoF first move along their rates, then Newton steps close the
# loops. A part counts if every Newton step is at most half of the one before, and if the dependent columns J_d of the
# Jacobian changed by less than half of themselves: ‖J_d⁺ (J_d' − J_d)‖ < ½. J_d then has no zero determinant on the
# straight line between the two, and the assembly is the same. Otherwise the part is halved. Towards a singular
# configuration the parts become shorter without end; the way stops there.


_HALF = 0.5

_SHORTEST = 1e-7  # of the way: shorter parts are not tried

_NEWTON = 12  # steps

_PARTS = 400


@dataclass(frozen=True, eq=False)
class Way:
    """From q (nq,), closed, by `step` (n,) of the DoF named."""

    robot: Robot
    dofs: tuple[int, ...]

    def followed(self, q: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, float]:
        """The closed state reached (nq,), and the share of the way up to it: 1 where all of it could be taken."""
        rows = structure(self.robot, q)
        J, share, part = self._jacobian(rows, q), 0.0, 1.0
        if self._lost(rows, J):
            return q, 0.0
        for _ in range(_PARTS):
            part = min(part, 1.0 - share)
            found = self._tried(rows, q, J, part * step)
            if found is None:
                part *= _HALF
                if part < _SHORTEST:
                    break
                continue
            (q, J), share, part = found, share + part, 2.0 * part
            if share >= 1.0:
                return q, 1.0
        return q, share

    def _tried(self, rows: Structure, q, J, step) -> tuple[np.ndarray, np.ndarray] | None:
        """The state after one part and its Jacobian; None if it cannot be trusted."""
        free, rest = list(self.dofs), self._rest
        backward = np.linalg.pinv(J[:, rest], rcond=RANK)
        delta = np.zeros(J.shape[1])
        delta[free] = step / rows.dof_lengths[free]
        delta[rest] = -backward @ (J[:, free] @ delta[free])
        reached = self._moved(q, delta * rows.dof_lengths)
        tolerance = max(1e-12, 100.0 * resolution(self.robot))
        before = np.inf
        for _ in range(_NEWTON):
            error, here = self._error(reached), self._jacobian(rows, reached)
            if not (np.isfinite(error).all() and np.linalg.norm(backward @ (here - J)[:, rest], 2) < _HALF):
                return None
            if np.abs(error / mechanism_of(self.robot.model).row_lengths).max(initial=0.0) <= tolerance:
                return reached, here
            correction = np.zeros(J.shape[1])
            correction[rest] = -np.linalg.lstsq(here[:, rest], rows.scaled_errors(error), rcond=RANK)[0]
            size = float(np.linalg.norm(correction))
            if size > _HALF * before:
                return None
            before, reached = size, self._moved(reached, correction * rows.dof_lengths)
        return None

    @property
    def _rest(self) -> list[int]:
        return [k for k in range(self.robot.model.nv) if k not in self.dofs]

    def _lost(self, rows: Structure, J: np.ndarray) -> bool:
        """Whether the rank of the dependent columns is less than that of all columns in general."""
        constrains = positional(self.robot.model)[rows.kept]
        usual = rank(singular_values(rows.jacobian * constrains[:, None]))
        return int(np.sum(singular_values(J[:, self._rest]) > RANK * np.linalg.norm(J))) < usual

    def _jacobian(self, rows: Structure, q: np.ndarray) -> np.ndarray:
        """(rows, nv), scaled; rows that constrain velocities only are 0."""
        constrains = positional(self.robot.model)
        return rows.scaled(np.where(constrains[:, None], values(self.robot, "closure_jacobian", q[None])[0], 0.0))

    def _error(self, q: np.ndarray) -> np.ndarray:
        return np.where(positional(self.robot.model), errors(self.robot, q[None])[0], 0.0)

    def _moved(self, q: np.ndarray, delta: np.ndarray) -> np.ndarray:
        return values(self.robot, "integrate", q[None], delta[None])[0]


def followed(robot: Robot, q: np.ndarray, dofs: Sequence[int], step: np.ndarray) -> tuple[np.ndarray, float]:
    """From a closed state q (nq,) by `step` (n,) of independent DoF: the state reached, the share of the way."""
    return Way(robot, tuple(dofs)).followed(q, step)
