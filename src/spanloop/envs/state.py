"""The state of a batch of environments, as rewards, observations and terminations read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.envs.user_arguments import of_state
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.model import Model

OF_JOINTS, OF_FRAMES = ("q", "v", "cos", "sin"), ("position", "rotation", "pose", "velocity")


@dataclass(frozen=True)
class State:
    """The environments after a step, one row each: time (n,), q (n, nq), v (n, nv), action (n, k) and failed (n,).

    state["name"] has the quantities of a joint (q, v, cos, sin) or of a frame or body (position, rotation, pose,
    velocity), in the words of trajectories; compute("energy", state.q, state.v) is any function of sl.compile. action:
    that of the step, from −1 to 1, zero after a reset; failed: runs that cannot go on. parameters: live ones, (n, p) or
    (p,), packed as model.parameters(); None without any.

    All arrays are read-only: reward, terminate and observation share them. Copy what is to be changed.
    """

    _robot: Dynamics  # with the model's own numbers
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    action: np.ndarray
    failed: np.ndarray
    parameters: np.ndarray | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            x = getattr(self, field.name)
            if isinstance(x, np.ndarray):
                object.__setattr__(self, field.name, _read_only(x))

    def __len__(self) -> int:
        """How many environments there are."""
        return len(self.q)

    def __getitem__(self, name: str) -> StatePart:
        return StatePart(self, name)

    @property
    def model(self) -> Model:
        """The mechanism: its names and their places; its numbers are not those of live parameters."""
        return self._robot.model

    @property
    def robot(self) -> Dynamics:
        """The model's sl.Dynamics, whose methods take batches; refused where parameters are live, which it ignores."""
        if self.parameters is None:
            return self._robot
        raise UnsupportedError(
            "state.robot computes with the model's own numbers, but parameters are live. Use "
            "state.compute('energy', state.q, state.v), which has those of each environment, with any function of "
            "sl.compile; state.model has names and places"
        )

    def compute(self, function: str, *inputs: Any, **options: Any) -> np.ndarray:
        """A function of sl.compile in each environment, with its own parameters where they are live.

        function: its name, as "energy" or "jacobian". inputs: in its order, as state.q, state.v, with a row for each
        environment or one for all. options: those of sl.compile that the function takes, as frame="tool".

        >>> def reward(state): return -state.compute("energy", state.q, state.v).sum(axis=1)
        """
        if self.parameters is None:
            found: np.ndarray = self._robot.kernel(function, **options)(*inputs)
            return found
        kernel = self._robot.kernel(function, **{**options, "parameters": "live"})
        found = kernel(*inputs, self.parameters)
        return found


@dataclass(frozen=True)
class StatePart:
    """A joint, or a frame or body, of a batch of environments."""

    state: State
    name: str

    @property
    def q(self) -> np.ndarray:
        """Coordinates (n,) of a joint, or (n, nq) where it has several."""
        return _single(self.state.q[:, self.state.model.q_slice(self._joint())])

    @property
    def v(self) -> np.ndarray:
        """Rates (n,) of a joint, or (n, nv)."""
        return _single(self.state.v[:, self.state.model.v_slice(self._joint())])

    @property
    def cos(self) -> np.ndarray:
        """Cosine of a joint's coordinates."""
        return _read_only(np.cos(self.q))

    @property
    def sin(self) -> np.ndarray:
        """Sine of a joint's coordinates."""
        return _read_only(np.sin(self.q))

    @property
    def pose(self) -> np.ndarray:
        """Pose (n, 4, 4) of a frame or body in the world."""
        return self._computed("pose", self.state.q)

    @property
    def position(self) -> np.ndarray:
        """Position (n, 3) of the origin in the world [m]."""
        return self.pose[:, :3, 3]

    @property
    def rotation(self) -> np.ndarray:
        """Rotation matrix (n, 3, 3) of a frame or body in the world."""
        return self.pose[:, :3, :3]

    @property
    def velocity(self) -> np.ndarray:
        """[angular; linear] velocity (n, 6) of the origin in world axes [rad/s, m/s]."""
        return self._computed("frame_velocity", self.state.q, self.state.v)

    def _joint(self) -> str:
        known = [j.name for j in self.state.model.joints]
        if self.name not in known:
            raise InputError(f"state[{self.name!r}] is no joint; {nearest(self.name, known)}")
        return self.name

    def _computed(self, function: str, *inputs: np.ndarray) -> np.ndarray:
        known = frames(self.state.model)
        if self.name not in known:
            raise InputError(f"state[{self.name!r}] is no frame or body; {nearest(self.name, known)}")
        return _read_only(self.state.compute(function, *inputs, frame=self.name))


def frames(model: Model) -> list[str]:
    """Names of all frames and bodies."""
    return [*(f.name for f in model.frames), *model.body_number]


def observing(observation: Any, robot: Dynamics) -> Callable[[State], Any]:
    """The function that makes observations: the user's, or one of names; by default of all coordinates and rates."""
    if callable(observation):
        return of_state(observation, "observation")
    names = default_names(robot) if observation is None else observation
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not names or not all(isinstance(x, str) for x in names):
        raise InputError(f"observation is {observation!r}; expected names as 'joint.q', or a function of the state")
    return lambda state: named_columns(state, tuple(names))


def named_columns(state: State, names: tuple[str, ...]) -> np.ndarray:
    """Quantities "part.quantity" of all environments side by side, (n, width)."""
    n = len(state)
    return np.concatenate([_quantity(state, name).reshape(n, -1) for name in names], axis=1)


def _quantity(state: State, name: str) -> np.ndarray:
    part, _, quantity = name.rpartition(".")
    if quantity not in (*OF_JOINTS, *OF_FRAMES) or not part:
        raise InputError(
            f"observation {name!r} is no quantity; expected 'joint.{{{','.join(OF_JOINTS)}}}' or "
            f"'frame.{{{','.join(OF_FRAMES)}}}'"
        )
    found: Any = getattr(state[part], quantity)
    return np.asarray(found)


def default_names(robot: Dynamics) -> tuple[str, ...]:
    """All coordinates, angles that may turn all around as cosine and sine, then all velocities."""
    names: list[str] = []
    moving = [j for j in robot.model.joints if j.kind.nv]
    for j in moving:
        turns = j.kind.name == "revolute" and not (_is_finite(j.lower) and _is_finite(j.upper))
        names += [f"{j.name}.cos", f"{j.name}.sin"] if turns else [f"{j.name}.q"]
    return (*names, *(f"{j.name}.v" for j in moving))


def _is_finite(limit: tuple[float, ...] | None) -> bool:
    return limit is not None and bool(np.isfinite(limit).all())


def _read_only(x: np.ndarray) -> np.ndarray:
    view = x.view()
    view.flags.writeable = False
    return view


def _single(x: np.ndarray) -> np.ndarray:
    return x[:, 0] if x.shape[1] == 1 else x
