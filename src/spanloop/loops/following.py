"""A motion of all joints from that of some: the others follow, sample by sample, where the loops leave no choice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spanloop.errors import InputError
from spanloop.loops.assembling import assemble
from spanloop.loops.independent import complete_acceleration, complete_velocity


def follow(robot, start, path: Mapping) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q (n, nq), v, a (n, nv) along a path {"joint": (positions, rates, accelerations)}, each (n,) or (n, nv of it).

    The joints named are independent and determine the others. start (nq,): a guess for the first sample, which
    chooses the assembly; every sample then starts from the one before.
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
    guess, out = np.array(start, dtype=float), []
    for k in range(counts.pop()):
        for name, motion in arrays.items():
            guess[model.q_slice(name)] = motion[0][k]
        guess = assemble(robot, guess, tuple(path))
        out.append(guess.copy())
    q = np.array(out)
    v = complete_velocity(robot, q, {name: _flat(motion[1]) for name, motion in arrays.items()})
    return q, v, complete_acceleration(robot, q, v, {name: _flat(motion[2]) for name, motion in arrays.items()})


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
