"""The linkage walker on hard ground: 24 loops, eight feet, one motor."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop import zoo
from spanloop.envs.mechanism_env import MechanismEnv
from spanloop.envs.state import State
from spanloop.model import Model
from spanloop.simulation.simulate import robot_of

TORQUE, FRICTION = 15.0, 0.8  # N m of the crankshaft's motor; of the feet
UPRIGHT, WANTED = 0.5, 0.5  # z of the trunk's vertical axis below which it has fallen; m/s
_EFFORT = 0.02  # of the reward, at full torque


def linkage_walker(num_envs: int = 1, **options: Any) -> MechanismEnv:
    """Eight of Theo Jansen's legs on one crankshaft are to walk forward at half a metre a second.

    Action: the torque of the crankshaft, up to 15 N m. Observation (14): height of the trunk, the parts along x and y
    of its axes forward and up (4), its velocity [angular; linear] (6), cosine and sine of the crank, its rate over
    10 rad/s, without the place on the ground. Reward: 1 at 0.5 m/s forward, less beside it and for torque. The episode
    ends where the trunk falls over ("fell"), and after 5 s in 250 actions. options: those of MechanismEnv, in place of
    these.
    """
    settings: dict[str, Any] = {
        "q": zoo.linkage_walker_start(massless_rods=True),
        "actions": {"crank1": TORQUE},
        "observation": _observed,
        "reward": _reward,
        "terminate": lambda state: {"fell": state["trunk"].rotation[:, 2, 2] < UPRIGHT},
        "reset": _starts,
        "duration": 5.0,
        "step": 2e-3,
        "control_steps": 10,
    }
    return MechanismEnv(robot_of(model()), num_envs, **settings | options)


def model() -> Model:
    """The linkage walker of the zoo with massless rods, its feet points on the ground."""
    found = zoo.linkage_walker(massless_rods=True)
    for k in range(1, 9):
        found = found.with_contact(f"leg{k}_foot", f"leg{k}_foot", "ground", friction=FRICTION)
    return found


def _starts(random: np.random.Generator, n: int) -> np.ndarray:
    """Level on the ground, at any angle of the crankshaft."""
    angles = random.uniform(0.0, 2.0 * np.pi, n)
    return np.array([zoo.linkage_walker_start(massless_rods=True, angle=float(x)) for x in angles])


def _observed(state: State) -> np.ndarray:
    trunk, crank = state["trunk"], state["crank1"]
    pose = trunk.pose
    angle = np.stack([crank.cos, crank.sin, 0.1 * crank.v], axis=1)
    return np.concatenate([pose[:, 2:3, 3], pose[:, :2, 0], pose[:, :2, 2], trunk.velocity, angle], axis=1)


def _reward(state: State) -> np.ndarray:
    ahead = state["trunk"].velocity[:, 3]
    found: np.ndarray = 1.0 - np.minimum(np.abs(ahead - WANTED) / WANTED, 2.0) - _EFFORT * state.action[:, 0] ** 2
    return found
