"""PinocchioOrder: coordinates, velocities and forces in Pinocchio's order, and back. Pinocchio is not imported.

| kind      | here                                     | Pinocchio                                       |
|-----------|------------------------------------------|-------------------------------------------------|
| free      | q (w, x, y, z, px, py, pz), v (ω, u)     | q (px, py, pz, x, y, z, w), v (u, ω)            |
| spherical | q (w, x, y, z)                           | q (x, y, z, w)                                  |
| planar    | q (angle, x, y), v (ω, ux, uy)           | q (x, y, cos, sin), v (ux, uy, ω)               |
| revolute  | q (angle)                                | without limits q (cos, sin)                     |
| force     | [torque; force]                          | [force; torque]                                 |

All other kinds are equal; a planar joint must have the z axis as normal. The order of joints may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, UnsupportedError
from spanloop.model.model import Model
from spanloop.model.orders import matched_joints, rows_of
from spanloop.model.parts import Joint

_UNIVERSE = "universe"
_FLOATING = {"root_joint": "root"}  # Pinocchio's name of a floating base -> ours


@dataclass(frozen=True)
class _Order:
    """The order of one kind's coordinates and velocities in Pinocchio."""

    nq: int
    q_to: Callable[[np.ndarray], np.ndarray]
    q_from: Callable[[np.ndarray], np.ndarray]
    v_to: tuple[int, ...]  # entry k of Pinocchio's v is our entry v_to[k]


def _taken(*order: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda q: q[..., list(order)]


def _planar_to(q: np.ndarray) -> np.ndarray:
    return np.stack((q[..., 1], q[..., 2], np.cos(q[..., 0]), np.sin(q[..., 0])), axis=-1)


def _planar_from(q: np.ndarray) -> np.ndarray:
    return np.stack((np.arctan2(q[..., 3], q[..., 2]), q[..., 0], q[..., 1]), axis=-1)


def _circle_to(q: np.ndarray) -> np.ndarray:
    return np.concatenate((np.cos(q), np.sin(q)), axis=-1)


def _circle_from(q: np.ndarray) -> np.ndarray:
    angle: np.ndarray = np.arctan2(q[..., 1:], q[..., :1])
    return angle


_CONTINUOUS = _Order(2, _circle_to, _circle_from, (0,))
_ORDERS = {
    "free": _Order(7, _taken(4, 5, 6, 1, 2, 3, 0), _taken(6, 3, 4, 5, 0, 1, 2), (3, 4, 5, 0, 1, 2)),
    "spherical": _Order(4, _taken(1, 2, 3, 0), _taken(3, 0, 1, 2), (0, 1, 2)),
    "planar": _Order(4, _planar_to, _planar_from, (1, 2, 0)),
}


class PinocchioOrder:
    """Converts states of a model to and from the order of a Pinocchio model.

    model: a model without general joints
    names: the pinocchio.Model, or list(pinocchio_model.names), the first of which is "universe"
    nqs: with names, list(pinocchio_model.nqs), needed where a revolute joint without limits has two coordinates
        (cos, sin) there

    Arrays may have any batch axes in front. Raises InputError where the joints of the two differ, UnsupportedError
    for a joint of a kind that Pinocchio does not have.

    With Pinocchio, order.v_from(pinocchio.aba(theirs, data, order.q_to(q), order.v_to(v), order.v_to(tau))) are our
    accelerations, theirs being the pinocchio.Model.

    >>> block = sl.Builder("block").body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
    >>> model = block.free("root", "world", "block").build()
    >>> order = sl.PinocchioOrder(model, ["universe", "root"])  # or theirs in the place of the names
    >>> order.q_to([1, 0, 0, 0, 0.1, 0.2, 0.3])
    array([0.1, 0.2, 0.3, 0. , 0. , 0. , 1. ])
    """

    def __init__(self, model: Model, names: Any, nqs: Sequence[int] | None = None) -> None:
        names, nqs = _names(names, nqs)
        self._pairs: list[tuple[_Order, slice, slice, slice, slice]] = []
        iq = iv = 0
        joints = _matched(model, names)
        for joint, size in zip(joints, _sizes(names, nqs), strict=True):
            order = _order(joint, size)
            nv = joint.kind.nv
            ours = (model.q_slice(joint.name), model.v_slice(joint.name))
            self._pairs.append((order, *ours, slice(iq, iq + order.nq), slice(iv, iv + nv)))
            iq, iv = iq + order.nq, iv + nv
        self.nq, self.nv, self._nq, self._nv = iq, iv, model.nq, model.nv

    def q_to(self, q: ArrayLike) -> np.ndarray:
        """Return Pinocchio's q (..., nq) of our q (..., model.nq)."""
        ours = rows_of(q, self._nq, "q")
        out = np.empty((*ours.shape[:-1], self.nq))
        for order, here, _, there, _ in self._pairs:
            out[..., there] = order.q_to(ours[..., here])
        return out

    def q_from(self, q: ArrayLike) -> np.ndarray:
        """Return our q (..., model.nq) of Pinocchio's q (..., nq)."""
        theirs = rows_of(q, self.nq, "q")
        out = np.empty((*theirs.shape[:-1], self._nq))
        for order, here, _, there, _ in self._pairs:
            out[..., here] = order.q_from(theirs[..., there])
        return out

    def v_to(self, v: ArrayLike) -> np.ndarray:
        """Return Pinocchio's v, a or tau (..., nv) of ours (..., nv)."""
        theirs: np.ndarray = rows_of(v, self.nv, "v")[..., self._v_indices()]
        return theirs

    def v_from(self, v: ArrayLike) -> np.ndarray:
        """Return our v, a or tau (..., nv) of Pinocchio's (..., nv)."""
        theirs = rows_of(v, self.nv, "v")
        out: np.ndarray = np.empty_like(theirs)
        out[..., self._v_indices()] = theirs
        return out

    def _v_indices(self) -> list[int]:
        """For each entry of Pinocchio's v, the number of ours."""
        return [here.start + k for order, _, here, _, _ in self._pairs for k in order.v_to]

    @staticmethod
    def force_to(force: ArrayLike) -> np.ndarray:
        """Return Pinocchio's [force; torque] (..., 6) of our [torque; force] (..., 6)."""
        ours = rows_of(force, 6, "force")
        return np.concatenate((ours[..., 3:], ours[..., :3]), axis=-1)

    @staticmethod
    def force_from(force: ArrayLike) -> np.ndarray:
        """Return our [torque; force] (..., 6) of Pinocchio's [force; torque] (..., 6)."""
        return PinocchioOrder.force_to(force)


def _names(theirs: Any, nqs: Sequence[int] | None) -> tuple[list[str], Sequence[int] | None]:
    """Names of the joints, and the numbers of their coordinates, of a pinocchio.Model or of the names."""
    if hasattr(theirs, "names") and hasattr(theirs, "nqs"):
        return list(theirs.names), list(theirs.nqs) if nqs is None else nqs
    if isinstance(theirs, str) or not hasattr(theirs, "__iter__"):
        raise InputError(
            f"PinocchioOrder: names is a {type(theirs).__name__}; expected the pinocchio.Model, or list(its.names)"
        )
    return list(theirs), nqs


def _matched(model: Model, names: Sequence[str]) -> list[Joint]:
    """Our joints in Pinocchio's order, its floating base under our name."""
    ours = {j.name for j in model.joints if j.kind.nv}
    names = [name for name in names if name != _UNIVERSE]
    names = [_FLOATING[n] if n not in ours and _FLOATING.get(n) in ours else n for n in names]
    return matched_joints(model, names, "Pinocchio")


def _sizes(names: Sequence[str], nqs: Sequence[int] | None) -> list[int | None]:
    """Number of coordinates of each of Pinocchio's joints but the universe; None where it was not given."""
    if nqs is not None and len(nqs) != len(names):
        raise InputError(f"nqs has {len(nqs)} entries for {len(names)} names; expected one each")
    given = nqs if nqs is not None else [None] * len(names)
    return [n for name, n in zip(names, given, strict=True) if name != _UNIVERSE]


def _order(joint: Joint, nq: int | None) -> _Order:
    """The order of a joint that has nq coordinates in Pinocchio (None: as many as its kind usually has)."""
    kind: Any = joint.kind
    if kind.name == "revolute" and nq == 2:
        return _CONTINUOUS
    if kind.name in ("general", "modal"):
        raise UnsupportedError(f"joint {joint.name!r}: Pinocchio has no {kind.name} joint")
    if kind.name == "planar" and kind.axis != (0.0, 0.0, 1.0):
        raise UnsupportedError(
            f"joint {joint.name!r}: Pinocchio's planar joint has the z axis as normal, here it is {kind.axis}"
        )
    same = _taken(*range(kind.nq))
    order = _ORDERS.get(kind.name) or _Order(kind.nq, same, same, tuple(range(kind.nv)))
    if nq is not None and nq != order.nq:
        raise InputError(
            f"joint {joint.name!r}: Pinocchio has {nq} coordinates for it; a {kind.name} joint has {order.nq} there"
        )
    return order
