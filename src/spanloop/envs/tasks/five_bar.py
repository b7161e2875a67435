"""The swing-up of a five-bar: two motors lift a closed loop of four bars from hanging to standing."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.envs.mechanism_env import MechanismEnv
from spanloop.envs.state import State
from spanloop.model import Model
from spanloop.simulation.simulate import robot_of
from spanloop.zoo import five_bar

BASE, DAMPING, TORQUE = 0.4, 0.5, 12.0  # m, N m s/rad, N m
HANGING = (-1.61968, -0.06809, -1.41893, -0.73782)  # rad: at rest without torques
TOP = 0.6149  # m: height of the centre of mass above the motors where the five-bar stands
# from q to the bars' angles to the horizontal: each far bar turns with its near one
_BARS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
_SPEED = 10.0  # rad/s that observations show as 1


def five_bar_swing_up(num_envs: int = 1, **options: Any) -> MechanismEnv:
    """A five-bar that hangs is to stand upright, by two motors that are too weak to lift it in one go.

    Action: both torques, up to 12 N m (16 N m hold it level). Observation (12): cosines and sines of the bars' angles
    to the horizontal, their rates over 10 rad/s. Reward: from 0 hanging to 1 standing, by the height of the centre,
    less with speed and torque. An episode has 5 s in 100 actions. options: those of MechanismEnv, in place of these.
    """

    def reward(state: State) -> np.ndarray:
        height = 0.5 * (1.0 + state.compute("center_of_mass", state.q)[:, 1] / TOP)
        still = np.exp(-0.02 * ((state.v @ _BARS) ** 2).sum(axis=1))
        found: np.ndarray = height * (0.7 + 0.3 * still) - 0.01 * (state.action**2).sum(axis=1)
        return found

    robot = robot_of(model())
    settings: dict[str, Any] = {
        "q": robot.assemble(HANGING),
        "actions": {"drive1": TORQUE, "drive2": TORQUE},
        "observation": _observed,
        "reward": reward,
        "reset": 0.05,
        "duration": 5.0,
        "step": 5e-3,
        "control_steps": 10,
    }
    return MechanismEnv(robot, num_envs, **settings | options)


def model() -> Model:
    """The five-bar of the zoo on a narrower base, with damping in its joints."""
    return five_bar(base=BASE).with_joint("*", damping=DAMPING)


def _observed(state: State) -> np.ndarray:
    angles = state.q @ _BARS
    return np.concatenate([np.cos(angles), np.sin(angles), state.v @ _BARS / _SPEED], axis=1)
