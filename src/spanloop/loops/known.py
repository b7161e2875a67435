"""Forces that are known along a loop's own freedoms: a motor, spring or friction in the cut joint. [Lilly & Orin,
h_k]"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from spanloop.algorithms.papers import grasp_rates
from spanloop.errors import InputError, StateError, nearest
from spanloop.math.spatial import Motion
from spanloop.model import Model
from spanloop.model.parts import Loop


def known_forces(
    robot, q, known: Mapping, forces: Mapping, active: Collection[str] | None = None, name: str = "forward_dynamics"
) -> dict[str, np.ndarray]:
    """External forces by body with those along loops' freedoms added; `robot` is a Dynamics."""
    robot.loads(name, forces)  # says what is wrong with them
    return on_bodies(robot, q, known_wrenches(robot, q, known, active, name), forces)


def known_wrenches(
    robot, q, known: Mapping, active: Collection[str] | None = None, name: str = "forward_dynamics"
) -> dict[str, np.ndarray]:
    """[torque; force] (..., 6) by loop, on body b at the loop's child frame in world axes: φ (φᵀφ)⁻¹ h.

    It does the power h · rate. active: switchable loops that are closed now; all of them if None.
    """
    found = {}
    for loop, values in checked(robot.model, known, active, name):
        turn = robot.pose(q, loop.b)[..., :3, :3] @ np.array(loop.placement_b.rotation)
        six = np.einsum("...kn,...n->...k", np.linalg.pinv(_motion_space(robot, loop, q, turn)), values)
        parts = [np.einsum("...ij,...j->...i", turn, six[..., k : k + 3]) for k in (0, 3)]
        found[loop.name] = np.concatenate(parts, axis=-1)
    return found


def checked(model: Model, known: Mapping, active: Collection[str] | None, name: str) -> list[tuple[Loop, np.ndarray]]:
    """Loops, all of them closed, each with its numbers (..., n)."""
    if not isinstance(known, Mapping):
        raise InputError(f"{name}: known is a {type(known).__name__}; expected {{'loop': forces (..., n)}}")
    return [(loop := pushed(model, which, active, name), _numbers(loop, x, name)) for which, x in known.items()]


def pushed(model: Model, which: str, active: Collection[str] | None, name: str) -> Loop:
    """The loop of this name, if a force can act along its freedoms."""
    loops = {x.name: x for x in model.loops}
    if which not in loops:
        raise InputError(f"{name}: known names {which!r}, which is not a loop; {nearest(which, loops)}")
    loop = loops[which]
    if loop.switchable and active is not None and which not in active:
        raise InputError(
            f"{name}: known names {which!r}, which is not active: an open loop carries no force. Leave it out of "
            "known=, or name it in active="
        )
    if not motion(loop):
        raise InputError(
            f"{name}: known names {which!r}, a {loop.kind.name} joint, which has no freedoms of its own for a force "
            "to act along. Use forces={'body': [torque; force]}"
        )
    return loop


def on_bodies(robot, q, wrenches: Mapping[str, np.ndarray], forces: Mapping) -> dict[str, np.ndarray]:
    """Forces by body, at body origins in world axes: those from outside, and those of loops on their two bodies."""
    out = {name: np.asarray(six, float) for name, six in forces.items()}
    for loop in robot.model.loops:
        if loop.name not in wrenches:
            continue
        wrench, pose = wrenches[loop.name], robot.pose(q, loop.b)
        at = pose[..., :3, 3] + pose[..., :3, :3] @ np.array(loop.placement_b.position)
        for body, sign in ((loop.b, 1.0), (loop.a, -1.0)):
            if body != "world":
                lever = at - robot.pose(q, body)[..., :3, 3]
                torque = wrench[..., :3] + np.cross(lever, wrench[..., 3:])
                six = sign * np.concatenate([torque, wrench[..., 3:]], axis=-1)
                out[body] = out[body] + six if body in out else six
    return out


def motion(loop: Loop) -> tuple[Motion, ...]:
    """φ of a loop where its joint is neutral, in the child's axes; of a soft finger its two columns of rolling."""
    kind = loop.kind
    return kind.motion_space(kind.neutral()) if kind.carries else grasp_rates.motion(kind, kind.closing_pose())


def _numbers(loop: Loop, values, name: str) -> np.ndarray:
    n, shape = len(motion(loop)), np.shape(values)
    if shape[-1:] != (n,):
        raise InputError(f"{name}: the known force of {loop.name!r} has shape {shape}; expected (..., {n})")
    numbers = np.asarray(values, float)
    if numbers.ndim == 1 and not np.isfinite(numbers).all():
        k = int(np.argmax(~np.isfinite(numbers)))
        raise StateError(f"{name}: known[{loop.name!r}][{k}] is {numbers[k]}; every number must be finite")
    return numbers


def _motion_space(robot, loop: Loop, q, turn: np.ndarray) -> np.ndarray:
    """φᵀ (..., n, 6) in the child's axes; turn: the child frame's axes in the world."""
    if loop.kind.constant_space:
        return np.array([tuple(s) for s in motion(loop)])
    kind: Any = loop.kind  # a universal joint: its first axis is fixed in the parent
    first = robot.pose(q, loop.a)[..., :3, :3] @ np.array(loop.placement_a.rotation) @ np.array(kind.axis)
    space = np.zeros((*first.shape[:-1], 2, 6))
    space[..., 0, :3] = np.einsum("...ji,...j->...i", turn, first)
    space[..., 1, :3] = kind.second_axis
    return space
