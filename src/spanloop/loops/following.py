"""A motion of all joints from that of some: the others follow, sample by sample, where the loops leave no choice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spanloop.errors import InputError, StateError
from spanloop.loops.assembling import assemble
from spanloop.loops.continuing import followed
from spanloop.loops.independent import complete_acceleration, complete_velocity


def follow(robot, start, path: Mapping) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q (n, nq), v, a (n, nv) along a path {"joint": (positions, rates, accelerations)}, each (n,) or (n, nv of it).

    The joints named are independent and determine the others. start (nq,): a guess for the first sample, which
    chooses the assembly; from there the joints go straight from sample to sample, and the others follow without a jump
    to another assembly, or the path is refused.
    """
    model = robot.model
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


def _next(robot, last: np.ndarray, at: Mapping, k: int) -> np.ndarray:
    """The closed state of sample k, from that of the sample before."""
    model = robot.model
    freedoms = [i for name in at for i in range(model.v_slice(name).start, model.v_slice(name).stop)]
    steps = [model.joint(name).kind.minus(x, last[model.q_slice(name)]) for name, x in at.items()]
    q, share = followed(robot, last, freedoms, np.concatenate([np.asarray(x, dtype=float) for x in steps]))
    if share < 1.0:
        raise StateError(
            f"follow: between samples {k - 1} and {k} the mechanism comes to a singular position, behind which the "
            f"other joints do not follow, or out of reach ({share:.0%} of the way could be taken). See "
            f"robot.diagnose(q) at sample {k - 1}; change the path, or name other joints"
        )
    for name, x in at.items():
        q[model.q_slice(name)] = x
    return q


def _arrays(robot, path: Mapping) -> dict[str, list[np.ndarray]]:
    """Positions, rates and accelerations (n, ...) by joint."""
    if not isinstance(path, Mapping) or not path:
        found = "names no joint" if isinstance(path, Mapping) else f"is a {type(path).__name__}"
        raise InputError(
            f"follow: path {found}; expected {{'joint': (positions, rates, accelerations)}} of joints that determine "
            "the others, say those of robot.independent()"
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
