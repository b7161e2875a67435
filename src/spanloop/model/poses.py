"""Where bodies and frames of a model are, joint by joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spanloop.math.vector3 import IDENTITY3
from spanloop.model.parts import WORLD, Placement
from spanloop.model.snap import snap_rotation

if TYPE_CHECKING:
    from spanloop.model.model import Model


def poses(model: Model, q: Sequence[float]) -> dict[str, Placement]:
    """Pose of every body, and of the world, in the world at coordinates q (nq,)."""
    out = {WORLD: Placement()}
    for j in model.joints:  # parents come first
        x = j.kind.transform([float(c) for c in q[model.q_slice(j.name)]])
        out[j.child] = out[j.parent] @ j.placement @ Placement(x.rotation.matrix(), x.translation)
    return {name: Placement(_exact(p.rotation), p.position) for name, p in out.items()}


def neutral_poses(model: Model) -> dict[str, Placement]:
    """The same at neutral coordinates."""
    return poses(model, tuple(model.neutral().tolist()))


def pose(model: Model, q: Sequence[float], frame: str) -> Placement:
    """Pose of a frame or body in the world."""
    f = model.frame(frame)
    return poses(model, q)[f.body] @ f.placement


def _exact(rotation):
    return rotation if rotation == IDENTITY3 else snap_rotation(rotation)[0]
