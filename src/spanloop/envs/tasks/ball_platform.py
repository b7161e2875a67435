"""A Stewart platform that keeps a ball from rolling off: contact on a moving plane above six closed loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.contacts import Plane, Sphere
from spanloop.envs.mechanism_env import MechanismEnv
from spanloop.envs.state import State
from spanloop.model import Model
from spanloop.model.builder import Builder
from spanloop.simulation.simulate import robot_of
from spanloop.zoo import stewart, stewart_start

RADIUS, MASS, FRICTION = 0.08, 0.5, 0.6  # m, kg, of the ball
TOP, EDGE = 0.03, 0.5  # m: of the platform's surface above its frame; how far from the middle the ball may roll
HEIGHT = 1.2  # m, of the level platform
STROKE, STIFFNESS, DAMPING, WEIGHT = 0.08, 6000.0, 500.0, 28.7  # m, N/m, N s/m, N: of each leg's position controller
SLIDES = tuple(f"slide{i}" for i in range(1, 7))


def stewart_balance(num_envs: int = 1, **options: Any) -> MechanismEnv:
    """A ball rolls on a Stewart platform and is to come to rest in its middle.

    Action: the lengths to which controllers move the six legs, up to 8 cm from the middle. Observation (16): place and
    velocity of the ball in the platform's axes (x, y), lengths of the legs beside the middle, their rates. Reward: 1 at
    rest in the middle, less with distance, speed and action. The episode ends where the ball is 0.5 m from the middle
    ("ball_lost"), and after 5 s in 250 actions. options: those of MechanismEnv, in place of these.
    """
    robot = robot_of(model())
    length = float(start()[robot.model.q_slice(SLIDES[0])][0])

    def legs(q: Any, v: Any, u: Any) -> dict[str, Any]:
        return {
            name: WEIGHT + STIFFNESS * (length + u[k] - q[name]) - DAMPING * v[name] for k, name in enumerate(SLIDES)
        }

    def observed(state: State) -> np.ndarray:
        lengths = np.stack([state[name].q - length for name in SLIDES], axis=1)
        rates = np.stack([state[name].v for name in SLIDES], axis=1)
        return np.concatenate([*_ball(state), 10.0 * lengths, rates], axis=1)

    settings: dict[str, Any] = {
        "q": start(),
        "actions": dict.fromkeys(SLIDES, STROKE),
        "controller": legs,
        "observation": observed,
        "reward": _reward,
        "terminate": lambda state: {"ball_lost": np.hypot(*_ball(state)[0].T) > EDGE},
        "reset": _starts,
        "duration": 5.0,
        "step": 2e-3,
        "control_steps": 10,
    }
    return MechanismEnv(robot, num_envs, **settings | options)


def model() -> Model:
    """The Stewart platform of the zoo, and a ball that touches its upper side."""
    b = Builder("ball").body("ball", MASS, inertia=[0.4 * MASS * RADIUS**2] * 3, geometry=[Sphere(RADIUS)])
    both = stewart().attach(b.free("flight", "world", "ball").build())
    return both.with_contact("ball", "ball", ("platform", Plane(position=(0.0, 0.0, TOP))), friction=FRICTION)


def start() -> np.ndarray:
    """Coordinates (32,) with the ball in the middle of the level platform."""
    legs = stewart_start(position=(0.0, 0.0, HEIGHT), turn=(0.0, 0.0, 0.0))
    return np.array([*legs, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, HEIGHT + TOP + RADIUS])


def _starts(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The platform level and at rest, the ball somewhere on it and rolling slowly."""
    q, places = np.tile(start(), (n, 1)), random.uniform(-0.25, 0.25, (n, 2))
    q[:, -3:-1] = places
    v, along = np.zeros((n, q.shape[1] - 2)), random.uniform(-0.2, 0.2, (n, 2))  # two quaternions in q
    v[:, -3:-1] = along
    v[:, -6], v[:, -5] = -along[:, 1] / RADIUS, along[:, 0] / RADIUS
    return q, v


def _ball(state: State) -> tuple[np.ndarray, np.ndarray]:
    """Place and velocity (n, 2) of the ball's centre from the platform's frame, in its axes."""
    table, ball = state["platform"], state["ball"]
    pose, twist = table.pose, table.velocity
    apart = ball.position - pose[:, :3, 3]
    relative = ball.velocity[:, 3:] - twist[:, 3:] - np.cross(twist[:, :3], apart)
    across = pose[:, :3, :2]
    return np.einsum("nik,ni->nk", across, apart), np.einsum("nik,ni->nk", across, relative)


def _reward(state: State) -> np.ndarray:
    place, speed = ((x**2).sum(axis=1) for x in _ball(state))
    found: np.ndarray = 1.0 - place / EDGE**2 - 0.2 * np.minimum(speed, 4.0) - 0.02 * (state.action**2).mean(axis=1)
    return found
