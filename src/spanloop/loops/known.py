"""Forces that are known along a loop's own freedoms: a motor, spring or friction in the cut joint. [Lilly & Orin,
h_k]"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spanloop.errors import InputError, nearest


def known_forces(robot, q, known: Mapping, forces: Mapping) -> dict[str, np.ndarray]:
    """External forces by body with those along loops' freedoms added; `robot` is a Dynamics."""
    out = {name: np.asarray(six, float) for name, six in forces.items()}
    loops = {x.name: x for x in robot.model.loops}
    for name, values in known.items():
        if name not in loops:
            raise InputError(f"forward_dynamics: known names {name!r}, which is not a loop; {nearest(name, loops)}")
        loop = loops[name]
        if np.shape(values)[-1:] != (loop.kind.nv,):
            raise InputError(
                f"forward_dynamics: the known force of {name!r} has shape {np.shape(values)}; "
                f"expected (..., {loop.kind.nv})"
            )
        wrench, at = _wrench(robot, loop, q, np.asarray(values, float))
        for body, sign in ((loop.b, 1.0), (loop.a, -1.0)):
            if body != "world":
                lever = at - robot.pose(q, body)[..., :3, 3]
                torque = wrench[..., :3] + np.cross(lever, wrench[..., 3:])
                six = sign * np.concatenate([torque, wrench[..., 3:]], axis=-1)
                out[body] = out[body] + six if body in out else six
    return out


def _wrench(robot, loop, q, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The force on body b in world axes, and where it acts: φ (φᵀφ)⁻¹ h, which does the power h · rate."""
    pose = robot.pose(q, loop.b)
    turn = pose[..., :3, :3] @ np.array(loop.placement_b.rotation)
    at = pose[..., :3, 3] + pose[..., :3, :3] @ np.array(loop.placement_b.position)
    six = np.einsum("...kn,...n->...k", np.linalg.pinv(_motion_space(robot, loop, q, turn)), values)
    parts = [np.einsum("...ij,...j->...i", turn, six[..., k : k + 3]) for k in (0, 3)]
    return np.concatenate(parts, axis=-1), at


def _motion_space(robot, loop, q, turn: np.ndarray) -> np.ndarray:
    """φᵀ (..., n, 6) in the child's axes; turn: the child frame's axes in the world."""
    if loop.kind.constant_space:
        return np.array([tuple(s) for s in loop.kind.motion_space(loop.kind.neutral())]).reshape(-1, 6)
    first = robot.pose(q, loop.a)[..., :3, :3] @ np.array(loop.placement_a.rotation) @ np.array(loop.kind.axis)
    space = np.zeros((*first.shape[:-1], 2, 6))  # a universal joint: its first axis is fixed in the parent
    space[..., 0, :3] = np.einsum("...ji,...j->...i", turn, first)
    space[..., 1, :3] = loop.kind.second_axis
    return space
