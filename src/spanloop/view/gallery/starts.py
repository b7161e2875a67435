"""How the mechanisms of the gallery begin: a state from which something moves, and what drives it.

A mechanism that would only fall is carried by a motor, by springs and dampers, or along a course; each can be grabbed
and pulled. Damping at passive joints lets motions calm down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import cos, pi, sin
from typing import Any

import numpy as np

from spanloop import zoo
from spanloop.dynamics import Dynamics
from spanloop.math import quaternion
from spanloop.model import Model
from spanloop.model.contacts.shapes import Sphere
from spanloop.simulation import control
from spanloop.simulation.control.periodic_motion import lead
from spanloop.simulation.initial_state import completed_rates

Course = Callable[[float], Mapping[str, list[float]]]


@dataclass(frozen=True)
class Start:
    """A mechanism as its page begins: coordinates q (nq,), rates v (nv,), and options of its motion."""

    model: Model
    q: np.ndarray
    v: np.ndarray | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


# ---- ways to begin


def _turning(model: Model, q: np.ndarray, rates: Mapping[str, float], **options: Any) -> Start:
    """From coordinates q with the rates of some joints; those of the others follow from the loops."""
    return Start(model, q, completed_rates(Dynamics(model), q, rates), options)


def _driven(model: Model, q: np.ndarray, joint: str, speed: float, strength: float, step: float = 1e-3) -> Start:
    """A motor at a joint, whose torque falls with its speed: strength [N m s/rad] times what is missing to `speed`."""

    def motor(t: Any, q: Any, v: Any) -> dict[str, Any]:
        return {joint: strength * (speed - v[joint])}

    return Start(model, q, options={"controller": motor, "step": step})


def _led(model: Model, q: np.ndarray, course: Course, period: float, stiffness: float, damping: float) -> Start:
    """Carried along a periodic course of one joint by torques, springs and dampers at the actuated joints."""
    led = lead(Dynamics(model), q, course, period, stiffness=stiffness, damping=damping)
    return Start(model, led.q, led.v, {"controller": led.control})


def _around(joint: str, q: np.ndarray, period: float, sway: tuple[float, float, float], turn: float) -> Course:
    """A free body that circles about a place by `sway` [m] and leans by `turn` [rad]."""

    def course(t: float) -> dict[str, list[float]]:
        w = 2.0 * pi * t / period
        e = quaternion.exponential((turn * sin(w), turn * cos(w), 0.0))
        offset = (sway[0] * cos(w), sway[1] * sin(w), sway[2] * sin(2.0 * w))
        return {joint: [*map(float, e), *(float(a + b) for a, b in zip(q[4:7], offset, strict=True))]}

    return course


def _swaying(model: Model, q: np.ndarray, amplitude: float, kp: float, kd: float) -> Start:
    """An arm whose joints sway about a posture, held by springs and dampers, and against gravity."""
    size = amplitude * np.sin(1.0 + 2.0 * np.arange(model.nv))
    target = control.sine(q, size, 0.2)
    law = control.pd(model, kp, kd, target, gravity=True)
    return Start(model, q, options={"controller": law})


# ---- the mechanisms


def pendulum() -> Start:
    parameters = ["rod3.mass", "hinge2.position.z", "hinge3.position.z"]
    model = zoo.pendulum(3).with_joint("*", damping=0.02)
    return Start(model, np.array([2.0, 0.4, 0.3]), options={"parameters": parameters})


def chain() -> Start:
    return Start(zoo.chain(6).with_joint("*", damping=0.005), np.full(6, 0.3))


def tree() -> Start:
    return Start(zoo.tree(12).with_joint("*", damping=0.05), np.full(12, 0.2))


def star() -> Start:
    model = zoo.star(5).with_gravity((0.0, 0.0, 0.0))
    v = np.zeros(model.nv)
    v[0:3], v[6::3] = (0.3, 0.2, 1.5), 1.0
    return Start(model, model.neutral(), v)


def dh_arm() -> Start:
    return Start(zoo.dh_arm(6).with_joint("*", damping=0.05), np.full(6, 0.4))


def puma() -> Start:
    q = np.array([0.3, -0.9, 0.4, 0.2, 0.5, 0.0])
    return _swaying(zoo.puma(), q, 0.5, 300.0, 60.0)


def stanford() -> Start:
    q = np.array([0.2, 1.2, 0.1, 0.3, 0.6, 0.0])
    return _swaying(zoo.stanford(), q, 0.3, 80.0, 12.0)


def quadruped() -> Start:
    model, q = zoo.quadruped(), zoo.quadruped_start(height=0.36)
    for leg in ("fl", "fr", "hl", "hr"):
        model = model.with_contact(leg, (f"{leg}_foot", Sphere(0.02)), "ground", friction=0.8)
    aim = {}
    for joint in model.actuated:
        bend = {"pitch": 0.2, "knee": -0.4}.get(joint.rpartition("_")[2], 0.0)
        aim[joint] = control.sine([q[model.q_slice(joint).start]], [bend], 0.5)
    return Start(model, q, options={"controller": control.pd(model, 200.0, 8.0, aim)})


def random_model() -> Start:
    model = zoo.random_model(4, 7, ("revolute", "spherical", "universal"), free=False).with_joint("*", damping=0.2)
    return Start(model, model.neutral())


def four_bar() -> Start:
    lengths = {"coupler_hinge.position.x": (0.6, 1.3), "rocker_hinge.position.x": (1.6, 2.4)}  # crank, ground
    return _turning(zoo.four_bar(), zoo.four_bar_start(), {"crank_hinge": 4.0}, parameters=lengths)


def slider_crank() -> Start:
    lengths = {"crank_pin.position.x": (0.05, 0.15), "slide.position.z": (-0.1, 0.1)}  # crank, offset
    return _turning(zoo.slider_crank(), zoo.slider_crank_start(), {"crank_hinge": 9.0}, parameters=lengths)


def five_bar() -> Start:
    return Start(zoo.five_bar().with_joint("*", damping=0.05), zoo.five_bar_start())


def n_four_bar() -> Start:
    return Start(zoo.n_four_bar(4).with_joint("*", damping=0.05), zoo.n_four_bar_start(4))


def andrews() -> Start:
    return _driven(zoo.andrews(), zoo.andrews_start(), "beta", 6.0, 1e-3)


def bricard() -> Start:
    model, q = zoo.bricard(), zoo.bricard_start(angle=1.1)  # it stays away from the positions where it may branch
    aim = {"hinge1": control.sine([1.1], [0.6], 0.3)}
    return Start(model, q, options={"controller": control.pd(model, 40.0, 4.0, aim)})


def stewart() -> Start:
    model, q = zoo.stewart(), zoo.stewart_start(position=(0.0, 0.0, 1.2), turn=(0.0, 0.0, 0.0))
    return _led(model, q, _around("floating", q, 4.0, (0.15, 0.15, 0.08), 0.15), 4.0, 4000.0, 300.0)


def delta() -> Start:
    model, q = zoo.delta(), zoo.delta_start(position=(0.0, 0.0, -0.6))
    return _led(model, q, _around("floating", q, 3.0, (0.12, 0.12, 0.05), 0.0), 3.0, 60.0, 4.0)


def arms_with_object() -> Start:
    posture = (0.0, 0.2, -0.1, 0.3, 0.7, 0.0)
    model, q = zoo.arms_with_object(3, posture=posture), zoo.arms_with_object_start(3, posture=posture)
    return _led(model, q, _around("floating", q, 4.0, (0.04, 0.04, 0.03), 0.05), 4.0, 400.0, 60.0)


def three_pumas() -> Start:
    return _led(zoo.three_pumas(), zoo.three_pumas_start(), zoo.three_pumas_path, 6.0, 400.0, 60.0)


def linkage_leg() -> Start:
    model, q = zoo.linkage_leg(), zoo.linkage_leg_start()
    sway = {"knee": (0.0, 0.4, 0.0), "left_motor": (0.0, 0.3, 0.0), "right_motor": (0.0, 0.3, 1.2)}
    aim = {j: control.sine([q[model.q_slice(j).start]], [a], 0.5, phase) for j, (_, a, phase) in sway.items()}
    return Start(model, q, options={"controller": control.pd(model, 60.0, 4.0, aim)})


def linkage_walker() -> Start:
    model = zoo.linkage_walker()
    for k in range(1, 9):
        model = model.with_contact(f"leg{k}_foot", f"leg{k}_foot", "ground", friction=0.8)
    return _driven(model, zoo.linkage_walker_start(), "crank1", 5.0, 5.0, step=2e-3)


def hexapod() -> Start:
    q = zoo.hexapod_start(position=(0.0, 0.0, 0.12), turn=(0.0, 0.0, 0.0))
    return _led(zoo.hexapod(), q, _around("floating", q, 3.0, (0.03, 0.03, 0.02), 0.12), 3.0, 40.0, 2.0)


def carpet_scraper() -> Start:
    return _driven(zoo.carpet_scraper(), zoo.carpet_scraper_start(), "crank_hinge", 3.0, 20.0)


def flyball_governor() -> Start:
    model = zoo.flyball_governor(stiffness=60.0, damping=1.0)
    masses = ["right_ball.mass", "left_ball.mass", "sleeve.mass", "sleeve_slide.stiffness"]
    rates = {"spindle_hinge": 9.0, "sleeve_slide": 0.0}
    return _turning(model, zoo.flyball_governor_start(), rates, parameters=masses)


def arms_with_linkage() -> Start:
    model, q = zoo.arms_with_linkage(), zoo.arms_with_linkage_start()
    sway = {"arm1_turn": 0.1, "arm1_shoulder": 0.1, "arm2_roll": 0.3}
    aim = {j: control.sine([q[model.q_slice(j).start]], [sway.get(j, 0.0)], 0.3) for j in model.actuated}
    return Start(model, q, options={"controller": control.pd(model, 300.0, 30.0, aim, gravity=True, near=q)})
