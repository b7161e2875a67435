"""Forces along a loop's own degrees of freedom: a motor, a spring or friction in the cut joint. [Lilly & Orin, h_k]"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.loops.arguments import checked_loop_forces, loop_with_force, motion
from spanloop.math.vector3 import add, cross, dot, negate, product, subtract, times
from spanloop.model import Model
from spanloop.model.parts import WORLD, Loop
from spanloop.simulation.forces.at_frames import Acting, Force, position, together, with_inputs, without_inputs
from spanloop.simulation.traced_kernels import takes_inputs
from spanloop.types import Matrix3


def along_loops(
    model: Model | Dynamics,
    loop_forces: Mapping[str, ArrayLike] | Callable[..., Mapping[str, Any]],
    active_loops: Collection[str] | None = None,
) -> Force:
    """Forces on body b of loops and, reversed, on body a, along the loops' own degrees of freedom.

    Args:
        model: the mechanism.
        loop_forces: {"loop": numbers}, one for each degree of freedom of the loop [N m or N], or a function (t, q, v)
            or (t, q, v, u), u the inputs, that returns that; as in forward_dynamics.
        active_loops: names of the switchable loops that are closed; all of them by default.

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: there is no such loop, or its numbers are not as many as its degrees of freedom.

    Example:
        >>> model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
        >>> run = sl.simulate(model, q, duration=0.1, forces=sl.forces.along_loops(model, {"closing": [1.3]}))
    """
    model = model_of(model, "along_loops")
    given = loop_forces if callable(loop_forces) else _constant(model, loop_forces, active_loops)
    pushes: dict[str, Callable[..., Force]] = {}

    def acting(t: Any, q: Any, v: Any, *u: Any) -> Acting:
        found = given(t, q, v, *u)
        if not isinstance(found, Mapping):
            raise InputError(f"simulate: loop_forces returned a {type(found).__name__}; expected {{'loop': numbers}}")
        for name in found:
            if name not in pushes:
                pushes[name] = _push(model, loop_with_force(model, name, active_loops, "simulate"))
        return together(*(pushes[name](numbers) for name, numbers in found.items()))(t, q, v)

    return with_inputs(acting) if takes_inputs(given) else without_inputs(acting)


def _constant(
    model: Model, loop_forces: Mapping[str, Any], active: Collection[str] | None
) -> Callable[..., Mapping[str, Any]]:
    """{"loop": numbers} as a function that returns that."""
    fixed = {}
    for loop, numbers in checked_loop_forces(model, loop_forces, active, "simulate"):
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
    inverse = np.linalg.inv(space @ space.T).tolist()  # constant, as the angles between axes are

    def push(h: Any) -> Force:
        if not hasattr(h, "__len__") or len(h) != len(inverse):
            raise InputError(f"simulate: loop_forces gives {h!r} for {loop.name!r}; expected a list of {len(inverse)}")
        strengths = [dot(row, tuple(h)) for row in inverse]

        def acting(t: Any, q: Any, v: Any) -> Acting:
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


def _columns(loop: Loop, turn: Matrix3, pose_a: Any) -> list[list[Any]]:
    """φ, column by column, in world axes; turn: of body b."""
    child = product(turn, loop.placement_b.rotation)
    columns = [[*times(child, s.angular), *times(child, s.linear)] for s in motion(loop)]
    if not loop.kind.constant_space:  # a universal joint: its first axis is fixed in the parent
        kind: Any = loop.kind
        columns[0][:3] = times(product(_turn(pose_a), loop.placement_a.rotation), kind.axis)
    return columns


def _turn(pose: Any) -> Matrix3:
    return tuple(tuple(row[:3]) for row in pose[:3])  # type: ignore[return-value]
