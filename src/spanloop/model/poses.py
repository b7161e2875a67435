"""Poses of bodies and frames in the world, joint by joint, and the position at which a model starts by default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.math.vector3 import IDENTITY3
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.parts import WORLD, Joint, Placement
from spanloop.types import Floats33

if TYPE_CHECKING:
    from spanloop.model.model import Model

# body -> the body that it is part of, and its pose there
Hosts = dict[str, tuple[str, Placement]]

ROOM = 0.01  # of a joint's range, and rad or m at most: how far inside its limits a joint starts by default


def poses(model: Model, q: Sequence[float] | np.ndarray) -> dict[str, Placement]:
    """Poses of all bodies, and of the world, in the world at coordinates q (nq,)."""
    out = {WORLD: Placement()}
    for j in model.joints:  # parents come first
        out[j.child] = out[j.parent] @ j.placement @ _moved(model, j, q)
    return {name: Placement(_exact(p.rotation), p.position) for name, p in out.items()}


def neutral_poses(model: Model) -> dict[str, Placement]:
    """Poses of all bodies, and of the world, at neutral coordinates."""
    return poses(model, model.neutral())


def hosts_of(joints: Iterable[Joint]) -> Hosts:
    """For every body the one that fixed joints make it part of, and its pose there; itself if its joint moves.

    joints: parents first, as model.joints.
    """
    hosts: Hosts = {WORLD: (WORLD, Placement())}
    for j in joints:
        host, placement = hosts[j.parent]
        moves = j.kind.nv or j.kind.rides
        hosts[j.child] = (j.child, Placement()) if moves else (host, placement @ j.placement)
    return hosts


def pose(model: Model, q: Sequence[float] | np.ndarray, name: str) -> Placement:
    """Pose of a frame or body in the world at coordinates q (nq,)."""
    frame = model.frame(name)
    out, body = frame.placement, frame.body
    while body != WORLD:
        joint = model.joints[model.body_number[body] - 1]
        out = joint.placement @ _moved(model, joint, q) @ out
        body = joint.parent
    return Placement(snap_rotation(out.rotation)[0], out.position)


def default_position(model: Model) -> np.ndarray:
    """Return the neutral position (nq,), with joints at or beyond a limit moved inside; loops may be open there."""
    q = np.array(model.neutral())
    for joint in model.joints:
        s, none = model.q_slice(joint.name), (None,) * joint.kind.nv
        if joint.kind.nq == joint.kind.nv:
            bounds = zip(q[s], joint.lower or none, joint.upper or none, strict=True)
            q[s] = [_inside(x, low, high) for x, low, high in bounds]
    return q


def _inside(x: float, low: float | None, high: float | None) -> float:
    """The coordinate nearest to x that is within its limits, with a little room where x is at or beyond one."""
    low, high = (-np.inf if low is None else low), (np.inf if high is None else high)
    room = min(ROOM * (high - low), ROOM)
    if x <= low:
        return low + room
    return high - room if x >= high else x


def _moved(model: Model, joint: Joint, q: Sequence[float] | np.ndarray) -> Placement:
    """The joint's child frame in the joint's frame."""
    x = joint.kind.seat(_coordinates(model, joint, q), _modes_below(model, joint, q))
    return Placement(x.rotation.matrix(), x.translation)


def _modes_below(model: Model, joint: Joint, q: Sequence[float] | np.ndarray) -> list[float]:
    """The modal coordinates of the flexible body on which a node rides; none for other joints."""
    if not joint.kind.rides:
        return []
    return _coordinates(model, model.joints[model.body_number[joint.parent] - 1], q)


def _coordinates(model: Model, joint: Joint, q: Sequence[float] | np.ndarray) -> list[float]:
    return [float(c) for c in q[model.q_slice(joint.name)]]


def _exact(rotation: Floats33) -> Floats33:
    return rotation if rotation == IDENTITY3 else snap_rotation(rotation)[0]
