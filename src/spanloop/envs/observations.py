"""Observations of environments: a user's function of the state, quantities by name, or all coordinates and rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spanloop.envs.state import OF_FRAMES, OF_JOINTS, State, angles, expect_frame, joint_of, turning_joint
from spanloop.envs.user_arguments import of_state
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.parts import Joint


def observing(observation: Any, model: Model) -> Callable[[State], Any]:
    """The function that makes observations: the user's, or one of names; by default of all coordinates and rates."""
    if callable(observation):
        return of_state(observation, "observation")
    if observation is None:
        return every_coordinate
    is_list = isinstance(observation, Sequence) and not isinstance(observation, str)
    if not is_list or not observation or not all(isinstance(x, str) for x in observation):
        raise InputError(f"observation is {observation!r}; expected names as 'joint.q', or a function of the state")
    pairs = [_part_and_quantity(model, name) for name in observation]
    return lambda state: _side_by_side(state, [getattr(state[part], quantity) for part, quantity in pairs])


def every_coordinate(state: State) -> np.ndarray:
    """All coordinates joint by joint, then all rates (n, k).

    Angles without both limits are there as cosines and sines, then the other coordinates of the joint; those of screws
    also as they are, since a screw shifts as it turns.
    """
    model, parts = state.model, []
    for joint in model.joints:
        q, turning = state.q[:, model.q_slice(joint.name)], _unbounded_angles(joint)
        others = ~turning | (joint.kind.name == "helical")
        parts += [np.cos(q[:, turning]), np.sin(q[:, turning]), q[:, others]]
    return _side_by_side(state, [*parts, state.v])


def _unbounded_angles(joint: Joint) -> np.ndarray:
    """Which coordinates (nq,) are angles that no two limits bound."""
    found = angles(joint.kind)
    if not found.any() or joint.lower is None or joint.upper is None:
        return found
    is_bounded: np.ndarray = np.isfinite(joint.lower) & np.isfinite(joint.upper)  # each coordinate by its own limits
    return found & ~is_bounded


def _part_and_quantity(model: Model, name: str) -> tuple[str, str]:
    """The part of a name "part.quantity", and the quantity, which it must have."""
    part, _, quantity = name.rpartition(".")
    if quantity not in (*OF_JOINTS, *OF_FRAMES) or not part:
        raise InputError(
            f"observation {name!r} is no quantity; expected 'joint.{{{','.join(OF_JOINTS)}}}' or "
            f"'frame.{{{','.join(OF_FRAMES)}}}'"
        )
    where = f"observation {name!r}: {part!r}"
    if quantity in OF_FRAMES:
        expect_frame(model, part, where)
    elif quantity in ("cos", "sin"):
        turning_joint(model, part, where)
    else:
        joint_of(model, part, where)
    return part, quantity


def _side_by_side(state: State, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays (n, ...) as columns of one, (n, k)."""
    n = len(state)
    return np.concatenate([x.reshape(n, int(np.prod(x.shape[1:]))) for x in parts], axis=1)
