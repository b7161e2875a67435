"""Targets as users give them, checked: rows of numbers for kernels, names, weights, and rows that are refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.algorithms.tree import target_rows as rows_of
from spanloop.compiler.runtime.arrays import converted
from spanloop.errors import InputError, ModelError, Reason, Refusal
from spanloop.joints.kind import checked_axis
from spanloop.loops.batching import Refusals
from spanloop.model import Model
from spanloop.reach.target_kinds import CenterOfMass, Direction, Orientation, Pose, Position, Target

_ROTATION = 1e-5  # by how much R Rᵀ may miss 1: a matrix rounded to five digits stands for the nearest rotation
_FARTHEST = 1e12
_EXPECTED = (
    "{'frame': pose (..., 4, 4) or position (..., 3)}, or sl.targets.Pose, Position, Orientation, Direction, ..."
)


@dataclass(frozen=True, eq=False)
class Goal:
    """All targets of a call: for each its kind and name; rows of numbers (n, k) one target after the other."""

    kinds: tuple[rows_of.TargetKind, ...]
    names: tuple[str, ...]
    numbers: np.ndarray
    weights: tuple[tuple[float, str], ...]  # of groups of rows, and their units
    leading: tuple[int, ...]
    refusals: Refusals

    def parts(self) -> list[tuple[str, rows_of.TargetKind, np.ndarray]]:
        """Name, kind and numbers (n, size) of each target."""
        ends = np.cumsum([rows_of.SIZES[t.kind] for t in self.kinds])[:-1]
        return list(zip(self.names, self.kinds, np.split(self.numbers, ends, axis=1), strict=True))


def goal_of(function: str, model: Model, targets: Any, leading: tuple[int, ...] = ()) -> Goal:
    """The goal of an argument `targets`; leading: batch axes that others bring."""
    if isinstance(targets, Goal):  # checked before
        return targets
    listed = _listed(function, targets)
    names = _names(function, listed)
    read = [_read(function, model, name, t) for name, t in zip(names, listed, strict=True)]
    try:
        leading = np.broadcast_shapes(leading, *(x.shape[:-1] for _, x in read))
    except ValueError:
        shapes = ", ".join(f"{n!r} {x.shape[:-1]}" for n, (_, x) in zip(names, read, strict=True))
        raise InputError(
            f"{function}: batch axes do not fit together: targets {shapes}, start {leading}; the leading axes must be "
            "equal or 1"
        ) from None
    count, arrays = math.prod(leading), []
    refusals: Refusals = {}
    for name, (kind, x) in zip(names, read, strict=True):
        x = np.broadcast_to(x, (*leading, x.shape[-1])).reshape(count, x.shape[-1])
        x, refused = _checked_rows(name, kind, x)
        refusals |= {k: v for k, v in refused.items() if k not in refusals}
        arrays.append(x)
    weights = [w for name, t in zip(names, listed, strict=True) for w in _weights(function, name, t)]
    kinds = tuple(kind for kind, _ in read)
    return Goal(kinds, names, np.concatenate(arrays, axis=1), tuple(weights), leading, refusals)


def _listed(function: str, targets: Any) -> list[Target]:
    if isinstance(targets, Target):
        return [targets]
    if isinstance(targets, Mapping):
        found: list[Any] = [_from_mapping(function, frame, x) for frame, x in targets.items()]
    elif isinstance(targets, Sequence) and not isinstance(targets, str):
        found = list(targets)
    else:
        raise InputError(f"{function}: targets is a {type(targets).__name__}; expected {_EXPECTED}")
    if not found:
        raise InputError(f"{function}: targets is empty; expected {_EXPECTED}")
    for t in found:
        if not isinstance(t, Target):
            raise InputError(f"{function}: a target is a {type(t).__name__}; expected {_EXPECTED}")
    return found


def _from_mapping(function: str, frame: Any, x: Any) -> Target:
    if isinstance(x, Target):
        raise InputError(f"{function}: {frame!r} maps to a {type(x).__name__}; give such targets as a list")
    x = getattr(x, "homogeneous", x)  # an SE3 of Pinocchio
    shape = np.shape(x)
    if shape[-2:] == (3, 3) and _is_rotation(x):
        raise InputError(
            f"{function}: the target of {frame!r} is a rotation (3, 3); expected a pose (..., 4, 4) or a position "
            "(..., 3). For the rotation alone give sl.targets.Orientation; for three points sl.targets.Position"
        )
    if shape[-2:] == (4, 4):
        return Pose(frame, x)
    if shape[-1:] == (3,):
        return Position(frame, x)
    raise InputError(
        f"{function}: the target of {frame!r} has shape {shape}; expected a pose (..., 4, 4) or a position (..., 3)"
    )


def _is_rotation(x: Any) -> bool:
    r = np.asarray(x)
    return r.dtype.kind in "fiu" and bool(np.abs(r @ np.swapaxes(r, -1, -2) - np.eye(3)).max(initial=0.0) < _ROTATION)


def _names(function: str, targets: Sequence[Target]) -> tuple[str, ...]:
    """By default that of the frame; where a frame has several targets, with the kind."""
    own = [t.name or getattr(t, "frame", "") for t in targets]
    count = Counter(own)
    names = [
        n if count[n] == 1 or t.name else f"{n} {type(t).__name__.lower()}" for n, t in zip(own, targets, strict=True)
    ]
    for name, number in Counter(names).items():
        if number > 1:
            raise InputError(f"{function}: two targets are called {name!r}; give one of them a name=")
    return tuple(names)


def _read(function: str, model: Model, name: str, target: Target) -> tuple[rows_of.TargetKind, np.ndarray]:
    """The kind, and an array (..., numbers)."""
    if isinstance(target, CenterOfMass):
        return rows_of.TargetKind(rows_of.CENTER_OF_MASS), _vector(function, name, target.position)
    frame = model.frame(target.frame).name
    if isinstance(target, Position):
        return rows_of.TargetKind(rows_of.POSITION, frame), _vector(function, name, target.position)
    if isinstance(target, Direction):
        try:
            axis = checked_axis(target.axis, f"{function}: target {name!r}")
        except ModelError as error:
            raise InputError(str(error)) from None
        return rows_of.TargetKind(rows_of.DIRECTION, frame, axis), _vector(function, name, target.direction)
    if isinstance(target, Orientation):
        r = _matrices(function, name, target.rotation, 3)
        return rows_of.TargetKind(rows_of.ORIENTATION, frame), r.reshape(*r.shape[:-2], 9)
    x = _matrices(function, name, getattr(target.pose, "homogeneous", target.pose), 4)
    flat = [x[..., :3, :3].reshape(*x.shape[:-2], 9), x[..., :3, 3], x[..., 3, :]]
    return rows_of.TargetKind(rows_of.POSE, frame), np.concatenate(flat, axis=-1)


def _matrices(function: str, name: str, x: Any, size: int) -> np.ndarray:
    a = np.asarray(x)
    if a.ndim < 2 or a.shape[-2:] != (size, size) or a.dtype.kind not in "fiub":
        found = f"has shape {a.shape} and type {a.dtype}"
        raise InputError(f"{function}: the target of {name!r} {found}; expected numbers (..., {size}, {size})")
    return a.astype(float)


def _vector(function: str, name: str, x: Any) -> np.ndarray:
    return converted(function, f"the target of {name!r}", 3, x, np.dtype(float))


def _weights(function: str, name: str, target: Target) -> list[tuple[float, str]]:
    given = [target.weight]
    if isinstance(target, Pose):
        given.append(target.weight if target.orientation_weight is None else target.orientation_weight)
    for w in given:
        number = isinstance(w, int | float | np.integer | np.floating) and not isinstance(w, bool)
        if not (number and 1e-6 <= w <= 1e6):
            raise InputError(f"{function}: the weight of {name!r} is {w!r}; expected a number from 1e-6 to 1e6")
    units = (rows_of.RADIANS,) if isinstance(target, Direction | Orientation) else (rows_of.METERS, rows_of.RADIANS)
    return list(zip(map(float, given), units, strict=False))


# ---- rows of numbers


def _checked_rows(name: str, kind: rows_of.TargetKind, x: np.ndarray) -> tuple[np.ndarray, Refusals]:
    """The numbers that kernels take (n, size), and the rows without a meaning, which become zeros."""
    wrong = ~np.isfinite(x).all(axis=1)
    refusals = {int(k): _not_finite(name, x[k]) for k in np.flatnonzero(wrong)}
    far = ~wrong & (np.abs(x).max(axis=1, initial=0.0) > _FARTHEST)
    refusals |= {int(k): Refusal(Reason.OTHER, _too_far(name, x[k])) for k in np.flatnonzero(far)}
    wrong |= far
    x = np.where(wrong[:, None], 0.0, x)
    if kind.kind == rows_of.DIRECTION:
        length = np.linalg.norm(x, axis=1)
        none = (length < 1e-12) & ~wrong
        sentence = f"target {name!r}: the direction has length 0; expected a vector that points somewhere"
        refusals |= {int(k): Refusal(Reason.OTHER, sentence) for k in np.flatnonzero(none)}
        return x / np.where(length < 1e-12, 1.0, length)[:, None], refusals
    if kind.kind in (rows_of.POSE, rows_of.ORIENTATION):
        return _poses(name, x, wrong, refusals)
    return x, refusals


def _too_far(name: str, x: np.ndarray) -> str:
    return f"target {name!r} holds {x[np.argmax(np.abs(x))]:.3g}; every number must be within {_FARTHEST:.0e}"


def _not_finite(name: str, x: np.ndarray) -> Refusal:
    k = int(np.argmax(~np.isfinite(x)))
    return Refusal(Reason.NOT_FINITE, f"target {name!r} holds {x[k]}; every number must be finite")


def _poses(name: str, x: np.ndarray, wrong: np.ndarray, refusals: Refusals) -> tuple[np.ndarray, Refusals]:
    r, last = x[:, :9].reshape(-1, 3, 3), x[:, 12:]
    miss = np.abs(r @ np.swapaxes(r, 1, 2) - np.eye(3)).max(axis=(1, 2), initial=0.0)
    turned = np.zeros(len(x), bool)
    if last.shape[1]:
        turned = np.abs(last - (0.0, 0.0, 0.0, 1.0)).max(axis=1) > _ROTATION
    mirrored = np.linalg.det(r) < 0.0
    for k in np.flatnonzero(((miss > _ROTATION) | turned | mirrored) & ~wrong):
        if turned[k]:
            what = f"the last row of the pose is {last[k].tolist()}; expected [0, 0, 0, 1]. Is the matrix transposed?"
        elif miss[k] > _ROTATION:
            what = f"it holds no rotation: R Rᵀ misses the unit matrix by {miss[k]:.2g}; at most {_ROTATION:.0e}"
        else:
            what = "it holds a reflection (determinant −1), no rotation"
        refusals[int(k)] = Refusal(Reason.OTHER, f"target {name!r}: {what}")
    if (miss > 1e-14).any():  # the nearest rotation, by two Newton steps for the polar factor
        for _ in range(2):
            r = 1.5 * r - 0.5 * (r @ np.swapaxes(r, 1, 2) @ r)
    return np.concatenate([r.reshape(-1, 9), x[:, 9:12]], axis=1), refusals
