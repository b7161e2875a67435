"""Control of joints: proportional and derivative gains, explicit or linearly implicit; computed torque; gravity.

The linearly implicit law asks for the torque at the end of a step of length h, to first order:

    tau = Kp (q_d − q − h v − h² a) + Kd (v_d − v − h a),    targets at t + h.

The terms with a are an inertia of h² Kp + h Kd at the joints. So a follows from forward dynamics of the model with
that armature added, under the torque without them, and the torque from a: no matrix is formed, and loops and free bases
are like other mechanisms. Semi-implicit Euler with this law is the linearly implicit Euler method for springs and
dampers: for large gains a joint is at its target after a step, where the explicit law has long become unstable. The
stable PD control of [Tan, Liu & Turk 2011] is the same without h² Kp. External forces are not known to the law.
"""

from __future__ import annotations

from dataclasses import replace

from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.model import Model
from spanloop.model.user_input import number
from spanloop.simulation.control.targets import Goal, controllable, every_joint_controlled, gains, goal, no_loops
from spanloop.simulation.controllers import Controller


def pd(model: Model, kp, kd, target, *, gravity: bool = False, step: float | None = None) -> Controller:
    """tau = kp (target − q) + kd (target's rate − v), with the torque that holds against gravity if that is asked for.

    kp [N m/rad, N/m], kd [N m s/rad]: one number for all actuated joints, {"joint": number}, or nv numbers. target:
    {"joint": number, numbers or path}, coordinates (nq), or a path of nq numbers; joints without a target are left
    alone. step [s]: the linearly implicit law for steps of this length (see the file's head), stable at any gains.
    """
    aim, stiffness, damping = goal(model, target, "pd"), gains(model, kp, "kp"), gains(model, kd, "kd")
    if gravity:
        no_loops(model, "gravity compensation")
    if step is None:
        return _Law(aim, _explicit(model, aim, stiffness, damping, gravity))
    h = number(step, "pd: step")
    if h <= 0.0:
        raise InputError(f"pd: step is {h:g} s; must be > 0")
    return _Law(aim, _implicit(model, aim, stiffness, damping, gravity, h))


def computed_torque(model: Model, target, kp, kd) -> Controller:
    """tau = inverse dynamics of the acceleration a_d + kp (target − q) + kd (target's rate − v).

    kp [1/s²], kd [1/s]: errors decay as e'' + kd e' + kp e = 0. Every joint needs a target and a torque; trees only.
    """
    no_loops(model, "computed_torque")
    every_joint_controlled(model, "computed_torque")
    aim, k, d = goal(model, target, "computed_torque"), gains(model, kp, "kp"), gains(model, kd, "kd")
    for joint in model.joints:
        if joint.kind.nv and joint.name not in aim.joints:
            raise InputError(f"computed_torque: joint {joint.name!r} has no target; every joint needs one")
    inverse = on_scalars(model, "inverse_dynamics")

    def law(t, q, v, u):
        e, rate, a = aim.miss(t, q, v, u)
        return inverse(q, v, [x + y * z + r * w for x, y, z, r, w in zip(a, k, e, d, rate, strict=True)])

    return _Law(aim, law)


def gravity(model: Model) -> Controller:
    """The torques that hold a tree against gravity, at its actuated joints."""
    no_loops(model, "gravity compensation")
    holding = _gravity(model)
    return _Law(Goal(model, ()), lambda t, q, v, u: holding(q))


class _Law(Controller):
    """A law (t, q, v, u) -> torques (nv) that follows a goal."""

    def __init__(self, aim: Goal, law):
        self.aim, self.law, self.inputs = aim, law, aim.inputs

    def torques(self, t, q, v, u, z):
        return self.law(t, q, v, u)


def _gravity(model: Model):
    """q -> torques (nv), zero at joints that have none of their own."""
    held = on_scalars(model, "gravity_torques")
    able = [j.name in controllable(model) for j in model.joints for _ in range(j.kind.nv)]
    return lambda q: [x if yes else 0.0 for x, yes in zip(held(q), able, strict=True)]


def _explicit(model: Model, aim: Goal, kp: list[float], kd: list[float], held: bool):
    holding = _gravity(model) if held else lambda q: [0.0] * model.nv

    def law(t, q, v, u):
        e, rate, _ = aim.miss(t, q, v, u)
        return [g + k * x + d * y for g, k, x, d, y in zip(holding(q), kp, e, kd, rate, strict=True)]

    return law


def _implicit(model: Model, aim: Goal, kp: list[float], kd: list[float], held: bool, h: float):
    extra = [h * h * k + h * d for k, d in zip(kp, kd, strict=True)]
    joints = tuple(
        replace(j, armature=tuple(x + y for x, y in zip(j.armature, extra[model.v_slice(j.name)], strict=True)))
        for j in model.joints
    )
    accelerate = on_scalars(replace(model, joints=joints), "forward_dynamics")
    holding = _gravity(model) if held else lambda q: [0.0] * model.nv

    def law(t, q, v, u):
        ahead: list = []
        for j in model.joints:
            way = tuple(h * x for x in v[model.v_slice(j.name)])
            ahead += j.kind.plus(tuple(q[model.q_slice(j.name)]), way) if j.kind.nv else ()
        e, rate, _ = aim.miss(t + h, ahead, v, u)
        tau = [g + k * x + d * y for g, k, x, d, y in zip(holding(q), kp, e, kd, rate, strict=True)]
        a = accelerate(q, v, tau)
        return [x - m * y for x, m, y in zip(tau, extra, a, strict=True)]

    return law
