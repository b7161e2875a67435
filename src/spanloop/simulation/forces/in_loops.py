"""Forces along the freedoms that loops leave: a motor, a spring or friction in the cut joint. [Lilly & Orin, h_k]"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.loops.arguments import checked_loop_forces, loop_with_force, motion
from spanloop.math.vector3 import add, cross, dot, negate, product, subtract, times
from spanloop.model import Model
from spanloop.model.parts import WORLD, Loop
from spanloop.simulation.forces.at_frames import Acting, Force, position
from spanloop.simulation.forces.combined import together
from spanloop.types import Matrix3


def along_loops(model: Model, known: Mapping | Callable, active: Collection[str] | None = None) -> Force:
    """Forces on body b of loops and, reversed, on body a: {"loop": numbers}, one for each freedom of the loop, or a
    function (t, q, v) that returns that; as `known` of forward_dynamics.

    active: names of switchable loops that are closed; all of them if not told.
    """
    tell = known if callable(known) else _constant(model, known, active)
    pushes: dict[str, Callable[..., Force]] = {}

    def acting(t, q, v) -> Acting:
        found = tell(t, q, v)
        if not isinstance(found, Mapping):
            raise InputError(f"simulate: known returned a {type(found).__name__}; expected {{'loop': numbers}}")
        for name in found:
            if name not in pushes:
                pushes[name] = _push(model, loop_with_force(model, name, active, "simulate"))
        return together(*(pushes[name](numbers) for name, numbers in found.items()))(t, q, v)

    return acting


def _constant(model: Model, known: Mapping, active: Collection[str] | None) -> Callable:
    """{"loop": numbers} as a function that returns that."""
    fixed = {}
    for loop, numbers in checked_loop_forces(model, known, active, "simulate"):
        if numbers.ndim != 1:
            raise InputError(
                f"simulate: the force of loop {loop.name!r} has shape {numbers.shape}; expected {numbers.shape[-1:]}. "
                "For one that changes give a function (t, q, v) -> {'loop': numbers}"
            )
        fixed[loop.name] = tuple(float(x) for x in numbers)
    return lambda t, q, v: fixed


def _push(model: Model, loop: Loop) -> Callable[..., Force]:
    """Of numbers h the force φ (φᵀφ)⁻¹ h on body b at the loop's child frame, reversed on body a."""
    poses = {body: on_scalars(model, "pose", frame=body) for body in (loop.a, loop.b)}
    space = np.array([tuple(s) for s in motion(loop)], dtype=float)
    over = np.linalg.inv(space @ space.T).tolist()  # a constant: angles between axes are

    def push(h) -> Force:
        if not hasattr(h, "__len__") or len(h) != len(over):
            raise InputError(f"simulate: known gives {h!r} for {loop.name!r}; expected a list of {len(over)}")
        strengths = [dot(row, tuple(h)) for row in over]

        def acting(t, q, v) -> Acting:
            pose = poses[loop.b](q)
            columns = _columns(loop, _turn(pose), poses[loop.a](q))
            six = [dot(strengths, [column[k] for column in columns]) for k in range(6)]
            torque, force = (six[0], six[1], six[2]), (six[3], six[4], six[5])
            at = add(position(pose), times(_turn(pose), loop.placement_b.position))
            out: dict[Any, Sequence[Any]] = {}
            for body, turning, pull in ((loop.b, torque, force), (loop.a, negate(torque), negate(force))):
                if body != WORLD:
                    lever = subtract(at, position(poses[body](q)))
                    out[body] = [*add(turning, cross(lever, pull)), *pull]
            return out

        return acting

    return push


def _columns(loop: Loop, turn: Matrix3, pose_a) -> list[list]:
    """φ, column by column, in world axes; turn: of body b."""
    child = product(turn, loop.placement_b.rotation)
    columns = [[*times(child, s.angular), *times(child, s.linear)] for s in motion(loop)]
    if not loop.kind.constant_space:  # a universal joint: its first axis is fixed in the parent
        kind: Any = loop.kind
        columns[0][:3] = times(product(_turn(pose_a), loop.placement_a.rotation), kind.axis)
    return columns


def _turn(pose) -> Matrix3:
    return tuple(tuple(row[:3]) for row in pose[:3])  # type: ignore[return-value]
