"""MujocoOrder: coordinates, velocities, accelerations and forces in MuJoCo's order, and back. MuJoCo is not imported.

| kind      | here                                            | MuJoCo                                              |
|-----------|-------------------------------------------------|-----------------------------------------------------|
| free      | q (w, x, y, z, px, py, pz) in the joint's frame | qpos (px, py, pz, w, x, y, z) in the world          |
|           | v (ω, u), both in the body's axes               | qvel (u in the world's axes, ω in the body's)       |
| spherical | q (w, x, y, z), v = ω in the body's axes        | the same                                            |
| others    | one number                                      | the same                                            |
| force     | [torque; force] at the body's origin            | xfrc_applied: [force; torque] at the centre of mass |

A free body's frame is the joint's, which is at the body's place in the file: our neutral q is MuJoCo's qpos0. Hence
velocities, accelerations and forces of free joints can only be converted together with their q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import UnsupportedError
from spanloop.model.model import Model
from spanloop.model.orders import matched_joints, rows_of
from spanloop.model.parts import WORLD, Joint

KINDS = ("free", "ball", "slide", "hinge")  # MuJoCo's mjtJoint, by number
_SAME = ("revolute", "prismatic", "spherical")


def body_names(theirs: Any) -> list[str]:
    """Names of a MuJoCo model's bodies, the world first; one without a name is 'body' and its number."""
    return _unique([theirs.body(i).name or (f"body{i}" if i else WORLD) for i in range(theirs.nbody)])


def joint_names(theirs: Any) -> list[str]:
    """Names of a MuJoCo model's joints; one without a name is called by its body and kind."""
    bodies, names = body_names(theirs), []
    for i in range(theirs.njnt):
        body = int(theirs.jnt_bodyid[i])
        number = i - int(theirs.body_jntadr[body]) + 1
        several = str(number) if theirs.body_jntnum[body] > 1 else ""
        names.append(theirs.joint(i).name or f"{bodies[body]}_{KINDS[int(theirs.jnt_type[i])]}{several}")
    return _unique(names)


def _unique(names: list[str]) -> list[str]:
    """The names, with _ behind those that repeat an earlier one."""
    seen: set[str] = set()
    for k, name in enumerate(names):
        while name in seen:
            name += "_"
        seen.add(name)
        names[k] = name
    return names


@dataclass(frozen=True)
class _Place:
    """Positions of a joint's numbers in our q and v and in MuJoCo's."""

    joint: Joint
    q: slice
    v: slice
    their_q: slice
    their_v: slice

    @property
    def free(self) -> bool:
        return self.joint.kind.name == "free"


class MujocoOrder:
    """Converts states of a model to and from MuJoCo's order and axes.

    model: with free, spherical, revolute and prismatic joints only
    theirs: the mujoco.MjModel, or the names of its joints in their order

    Arrays may have any batch axes in front. Raises InputError where the joints of the two differ, UnsupportedError
    for a joint of a kind that MuJoCo does not have.

    With MuJoCo, data.qpos, data.qvel = order.q_to(q), order.v_to(q, v) sets the state q, v.

    >>> block = sl.Builder("block").body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
    >>> model = block.free("root", "world", "block").build()
    >>> order = sl.MujocoOrder(model, ["root"])  # or the MjModel in the place of the names
    >>> order.q_to([1, 0, 0, 0, 0.1, 0.2, 0.3])
    array([0.1, 0.2, 0.3, 1. , 0. , 0. , 0. ])
    """

    def __init__(self, model: Model, theirs: Any) -> None:
        names = list(theirs) if isinstance(theirs, Sequence) else joint_names(theirs)
        self._places: list[_Place] = []
        iq = iv = 0
        for joint in _matched(model, names):
            nq, nv = joint.kind.nq, joint.kind.nv
            ours = (model.q_slice(joint.name), model.v_slice(joint.name))
            self._places.append(_Place(joint, *ours, slice(iq, iq + nq), slice(iv, iv + nv)))
            iq, iv = iq + nq, iv + nv
        self.nq, self.nv = iq, iv

    def q_to(self, q: ArrayLike) -> np.ndarray:
        """Return MuJoCo's qpos (..., nq) of our q (..., nq)."""
        ours = rows_of(q, self.nq, "q")
        out: np.ndarray = np.empty_like(ours)
        for p in self._places:
            x = ours[..., p.q]
            if p.free:
                turn, at = _frame(p.joint)
                x = np.concatenate((at + x[..., 4:] @ _matrix(turn).T, _times(turn, x[..., :4])), axis=-1)
            out[..., p.their_q] = x
        return out

    def q_from(self, q: ArrayLike) -> np.ndarray:
        """Return our q (..., nq) of MuJoCo's qpos (..., nq)."""
        theirs = rows_of(q, self.nq, "qpos")
        out: np.ndarray = np.empty_like(theirs)
        for p in self._places:
            x = theirs[..., p.their_q]
            if p.free:
                turn, at = _frame(p.joint)
                back = _times(turn * (1.0, -1.0, -1.0, -1.0), x[..., 3:])
                x = np.concatenate((back, (x[..., :3] - at) @ _matrix(turn)), axis=-1)
            out[..., p.q] = x
        return out

    def v_to(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Return MuJoCo's qvel (..., nv) of our v (..., nv) at our q."""
        return self._converted(q, v, "v", to=True)

    def v_from(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Return our v (..., nv) at our q of MuJoCo's qvel (..., nv)."""
        return self._converted(q, v, "qvel", to=False)

    def tau_to(self, q: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """Return MuJoCo's generalised force (qfrc_applied, qfrc_bias, ...) of our tau (..., nv) at our q."""
        return self._converted(q, tau, "tau", to=True)

    def tau_from(self, q: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """Return our tau (..., nv) at our q of MuJoCo's generalised force (..., nv)."""
        return self._converted(q, tau, "tau", to=False)

    def a_to(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Return MuJoCo's qacc (..., nv) of our a (..., nv) at our q and v.

        MuJoCo's acceleration of a free body is the rate of its velocity in world axes.
        """
        rates, ours = rows_of(v, self.nv, "v"), rows_of(a, self.nv, "a")
        return self._converted(
            q, ours + self._turning(rates, np.broadcast_shapes(rates.shape, ours.shape)), "a", to=True
        )

    def a_from(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Return our a (..., nv) at our q and v of MuJoCo's qacc (..., nv)."""
        out = self._converted(q, a, "qacc", to=False)
        rates = rows_of(v, self.nv, "v")
        ours: np.ndarray = out - self._turning(rates, np.broadcast_shapes(rates.shape, out.shape))
        return ours

    def mass_matrix_to(self, q: ArrayLike, M: ArrayLike) -> np.ndarray:
        """Return MuJoCo's full mass matrix (..., nv, nv) of ours at our q."""
        rows = self._converted(np.asarray(q, dtype=float)[..., None, :], rows_of(M, self.nv, "M"), "M", to=True)
        both = self._converted(np.asarray(q, dtype=float)[..., None, :], np.swapaxes(rows, -1, -2), "M", to=True)
        return np.swapaxes(both, -1, -2)

    @staticmethod
    def force_to(force: ArrayLike, arm: ArrayLike = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Return MuJoCo's xfrc_applied (..., 6) of our force on a body.

        force: [torque; force] (..., 6) at the body's origin, world axes. MuJoCo has [force; torque] at the centre of
        mass; arm: (..., 3) from the origin to there (xipos − xpos) [m].
        """
        ours = rows_of(force, 6, "force")
        torque, push = ours[..., :3], ours[..., 3:]
        moved = torque - np.cross(np.broadcast_to(rows_of(arm, 3, "arm"), push.shape), push)
        return np.concatenate((push, moved), axis=-1)

    @staticmethod
    def force_from(force: ArrayLike, arm: ArrayLike = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Return [torque; force] (..., 6) at the body's origin of MuJoCo's xfrc_applied; arm: see force_to."""
        theirs = rows_of(force, 6, "xfrc")
        push, torque = theirs[..., :3], theirs[..., 3:]
        moved = torque + np.cross(np.broadcast_to(rows_of(arm, 3, "arm"), push.shape), push)
        return np.concatenate((moved, push), axis=-1)

    def _converted(self, q: ArrayLike, v: ArrayLike, what: str, *, to: bool) -> np.ndarray:
        """Entries in the other order; the linear part of a free joint is turned between body and world."""
        values, at = rows_of(v, self.nv, what), rows_of(q, self.nq, "q")
        shape = (*np.broadcast_shapes(at.shape[:-1], values.shape[:-1]), self.nv)
        values, out = np.broadcast_to(values, shape), np.empty(shape)
        for p in self._places:
            here, there = (p.v, p.their_v) if to else (p.their_v, p.v)
            x = values[..., here]
            if p.free:
                R = _matrix(_times(_frame(p.joint)[0], at[..., p.q][..., :4]))
                if to:
                    x = np.concatenate((np.einsum("...ij,...j->...i", R, x[..., 3:]), x[..., :3]), axis=-1)
                else:
                    x = np.concatenate((x[..., 3:], np.einsum("...ji,...j->...i", R, x[..., :3])), axis=-1)
            out[..., there] = x
        return out

    def _turning(self, v: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """ω × u of every free joint, in its linear entries: by that much dv/dt differs between the axes."""
        out = np.zeros(shape)
        for p in self._places:
            if p.free:
                x = v[..., p.v]
                linear = slice(p.v.start + 3, p.v.stop)
                out[..., linear] = np.cross(x[..., :3], x[..., 3:])
        return out


def _matched(model: Model, names: Sequence[str]) -> list[Joint]:
    """Our joints in MuJoCo's order, all of kinds that it has."""
    joints = matched_joints(model, names, "MuJoCo")
    for joint in joints:
        kind = joint.kind.name
        if kind not in _SAME and not (kind == "free" and joint.parent == WORLD):
            where = " inside a tree" if kind == "free" else ""
            raise UnsupportedError(f"joint {joint.name!r}: MuJoCo has no {kind} joint{where}")
    return joints


def _frame(joint: Joint) -> tuple[np.ndarray, np.ndarray]:
    """Quaternion and position of a joint's placement."""
    R = np.array(joint.placement.rotation)
    K = np.zeros((4, 4))  # its eigenvector of the largest eigenvalue is the quaternion
    K[0, 0] = np.trace(R)
    K[0, 1:] = K[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    e = np.linalg.eigh(K)[1][:, -1]
    return np.where(np.abs(e) < 1e-15, 0.0, e * np.sign(e[np.abs(e).argmax()])), np.array(joint.placement.position)


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of quaternions (..., 4)."""
    scalar = a[..., :1] * b[..., :1] - (a[..., 1:] * b[..., 1:]).sum(axis=-1, keepdims=True)
    vector = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])
    return np.concatenate((scalar, vector), axis=-1)


def _matrix(e: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) of unit quaternions."""
    w, x, y, z = np.moveaxis(e, -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
