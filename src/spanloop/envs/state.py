"""The state of a batch of environments, as rewards, observations and terminations read it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, UnsupportedError, listed, nearest
from spanloop.joints.kind import JointKind
from spanloop.model import Model
from spanloop.model.parts import Joint

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
        return _single(self.state.q[:, self.state.model.q_slice(self._joint().name)])

    @property
    def v(self) -> np.ndarray:
        """Rates (n,) of a joint, or (n, nv)."""
        return _single(self.state.v[:, self.state.model.v_slice(self._joint().name)])

    @property
    def cos(self) -> np.ndarray:
        """Cosine (n,) of a joint's angle, or (n, k) of those of its coordinates that are angles."""
        return _read_only(np.cos(self._angles()))

    @property
    def sin(self) -> np.ndarray:
        """Sine (n,) of a joint's angle, or (n, k) of those of its coordinates that are angles."""
        return _read_only(np.sin(self._angles()))

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

    def _joint(self) -> Joint:
        return joint_of(self.state.model, self.name, f"state[{self.name!r}]")

    def _angles(self) -> np.ndarray:
        joint = turning_joint(self.state.model, self.name, f"state[{self.name!r}]")
        return _single(self.state.q[:, self.state.model.q_slice(joint.name)][:, angles(joint.kind)])

    def _computed(self, function: str, *inputs: np.ndarray) -> np.ndarray:
        expect_frame(self.state.model, self.name, f"state[{self.name!r}]")
        return _read_only(self.state.compute(function, *inputs, frame=self.name))


def joint_of(model: Model, name: str, where: str) -> Joint:
    """The joint of this name; where: begins the message that refuses another one."""
    known = {j.name: j for j in model.joints}
    if name not in known:
        other = f"it is a frame or body, which has {', '.join(OF_FRAMES)}" if name in frames(model) else ""
        raise InputError(f"{where} is no joint; {other or nearest(name, known)}")
    return known[name]


def turning_joint(model: Model, name: str, where: str) -> Joint:
    """The same, of a joint with coordinates that are angles."""
    joint = joint_of(model, name, where)
    if not angles(joint.kind).any():
        turning = [j.name for j in model.joints if angles(j.kind).any()]
        raise InputError(
            f"{where} is a joint of kind {joint.kind.name!r}, of which no coordinate is an angle: it has q and v, but "
            f"no cos and sin. Joints that have them: {listed(map(repr, turning), 8)}"
        )
    return joint


def expect_frame(model: Model, name: str, where: str) -> None:
    """Refuse a name that is not that of a frame or body."""
    known = frames(model)
    if name not in known:
        is_joint = any(j.name == name for j in model.joints)
        other = f"it is a joint, which has {', '.join(OF_JOINTS)}" if is_joint else ""
        raise InputError(f"{where} is no frame or body; {other or nearest(name, known)}")


def frames(model: Model) -> list[str]:
    """Names of all frames and bodies."""
    return [*(f.name for f in model.frames), *model.body_number]


def angles(kind: JointKind) -> np.ndarray:
    """Which coordinates (nq,) of a joint are angles; none of quaternions and of modes of flexible bodies."""
    if kind.nq != kind.nv or kind.bends:
        return np.zeros(kind.nq, bool)
    return np.array([unit == "rad" for unit in kind.units], bool)


def _read_only(x: np.ndarray) -> np.ndarray:
    view = x.view()
    view.flags.writeable = False
    return view


def _single(x: np.ndarray) -> np.ndarray:
    return x[:, 0] if x.shape[1] == 1 else x
