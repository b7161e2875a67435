"""Control of joints: proportional and derivative gains, explicit or linearly implicit; computed torque; gravity.

Of mechanisms with loops, laws give torques at the actuated joints alone (actuated_response.py).

The linearly implicit law takes the torque at the end of a step of length h, to first order:

    tau = Kp (q_d − q − h v − h² a) + Kd (v_d − v − h a),    targets at t + h.

The terms with a are an inertia of h² Kp + h Kd at the joints. So a follows from forward dynamics of the model with
that armature added, under the torque without them, and the torque from a: no matrix is formed, and it works
with loops and free bases. Semi-implicit Euler with this law is the linearly implicit Euler method for springs and
dampers: for large gains a joint is at its target after a step, where the explicit law has long become unstable. The
stable PD control of [Tan, Liu & Turk 2011] is the same without h² Kp. The law does not include external forces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.model import Model
from spanloop.model.user_input import number
from spanloop.simulation.control.actuated_response import ActuatedMechanism, warn_of_falling
from spanloop.simulation.control.motion_paths import Path
from spanloop.simulation.control.targets import Goal, controllable, every_joint_controlled, gains, goal, has_loops
from spanloop.simulation.controllers import Controller

_NONE = 1e-9  # of the largest torque of gravity: what counts as none


def pd(
    model: Model | Dynamics,
    kp: float | ArrayLike | Mapping[str, Any],
    kd: float | ArrayLike | Mapping[str, Any],
    target: ArrayLike | Path | Mapping[str, Any],
    *,
    gravity: bool = False,
    step: float | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    near: ArrayLike | None = None,
) -> Controller:
    """Proportional-derivative control: tau = kp (target − q) + kd (target's rate − v).

    Args:
        model: the mechanism.
        kp: stiffness [N m/rad or N/m]: one number for all actuated joints, {"joint": number}, or nv numbers.
        kd: damping [N m s/rad or N s/m], in the same forms.
        target: {"joint": number, numbers or path}, coordinates (nq), or a path of nq numbers; joints without a target
            get no torque.
        gravity: adds the torques that hold the mechanism against gravity, as control.gravity does.
        step: length of the simulation's steps [s]: the linearly implicit law, which is stable at any gains with any
            integrator. Without it sl.simulate takes stiff gains implicitly by itself (integrator="implicit").
        weights, near: of gravity=True, as of control.gravity.

    Returns:
        A Controller for sl.simulate.

    Raises:
        InputError: a joint has no such name or is not actuated, or a number does not fit.

    Example:
        >>> arm = sl.zoo.puma()
        >>> law = sl.control.pd(arm, kp=80.0, kd=8.0, target={"joint3": 0.3}, gravity=True)
        >>> run = sl.simulate(arm, duration=0.1, controller=law)
    """
    model = model_of(model, "pd")
    aim, stiffness, damping = goal(model, target, "pd"), gains(model, kp, "kp"), gains(model, kd, "kd")
    holding = _gravity(model, "pd", weights, near) if gravity else None
    if step is None:
        aimed = [j.name in aim.joints for j in model.joints for _ in range(j.kind.nv)]
        known = tuple([k if yes else 0.0 for k, yes in zip(row, aimed, strict=True)] for row in (stiffness, damping))
        return JointLaw(aim, _explicit(model, aim, stiffness, damping, holding), known, has_gains=True)
    h = number(step, "pd: step")
    if h <= 0.0:
        raise InputError(f"pd: step is {h:g} s; must be > 0")
    return JointLaw(aim, _implicit(model, aim, stiffness, damping, holding, h))


def computed_torque(
    model: Model | Dynamics,
    target: ArrayLike | Path | Mapping[str, Any],
    kp: float | ArrayLike | Mapping[str, Any],
    kd: float | ArrayLike | Mapping[str, Any],
    *,
    weights: ArrayLike | Mapping[str, float] | None = None,
    near: ArrayLike | None = None,
) -> Controller:
    """Computed torque: inverse dynamics of the acceleration a_d + kp (target − q) + kd (target's rate − v).

    Errors decay as e'' + kd e' + kp e = 0. With loops or couplings torques act at the actuated joints, and the other
    joints follow; robot.follow(start, {"joint": ...}) completes a motion of the actuated joints beforehand.

    Args:
        model: a tree with a torque at every joint, or a mechanism with loops.
        target: {"joint": number, numbers or path}, coordinates (nq), or a path of nq numbers: for every joint of a
            tree; with loops for actuated joints that determine the others. If more joints have a target, those of a set
            of independent ones count, and the others follow.
        kp: [1/s²]: one number for all actuated joints, {"joint": number}, or nv numbers.
        kd: [1/s], in the same forms.
        weights: with loops, of the squares of the torques where there are more actuators than the motion needs,
            {"joint": weight} or one for each actuated DoF; 1 by default.
        near: with loops, a closed state q (nq,), for a mechanism of which none is found from neutral.

    Returns:
        A Controller for sl.simulate.

    Raises:
        InputError: a joint has no target, or a number does not fit.
        UnsupportedError: a joint of a tree has no torque, or no joint of a mechanism with loops has one.

    Example:
        >>> arm = sl.zoo.puma()
        >>> way = sl.control.quintic([0.0] * 6, [0.2] * 6, duration=0.1)
        >>> run = sl.simulate(arm, duration=0.1, controller=sl.control.computed_torque(arm, way, kp=400.0, kd=40.0))
        >>> bool(np.abs(run.q[-1] - 0.2).max() < 1e-4)
        True
    """
    model = model_of(model, "computed_torque")
    if not has_loops(model):
        every_joint_controlled(model, "computed_torque")
    aim, k, d = goal(model, target, "computed_torque"), gains(model, kp, "kp"), gains(model, kd, "kd")
    inverse = _inverse(model, aim, weights, near)

    def law(t: Any, q: Any, v: Any, u: Any, change: Change = SAME) -> list[Any]:
        e, rate, a = change.moved(aim.miss(t, q, v, u))
        rows = zip(a, change.kp_times(k), e, change.kd_times(d), rate, strict=True)
        return inverse(q, v, [x + y * z + r * w for x, y, z, r, w in rows])

    return JointLaw(aim, law, has_gains=True)


def gravity(
    model: Model | Dynamics,
    *,
    weights: ArrayLike | Mapping[str, float] | None = None,
    near: ArrayLike | None = None,
) -> Controller:
    """Gravity compensation: the torques at the actuated joints that hold the mechanism against gravity.

    Args:
        model: a tree, or a mechanism with loops.
        weights: with loops, of the squares of the torques where there are more actuators than needed, {"joint":
            weight} or one for each actuated DoF; 1 by default.
        near: with loops, a closed state q (nq,), for a mechanism of which none is found from neutral.

    Returns:
        A Controller for sl.simulate.

    Raises:
        UnsupportedError: no joint of a mechanism with loops is actuated.

    Example:
        >>> arm = sl.zoo.puma()
        >>> run = sl.simulate(arm, duration=0.1, controller=sl.control.gravity(arm))
        >>> bool(np.abs(run.v).max() < 1e-9)
        True
    """
    model = model_of(model, "gravity")
    holding = _gravity(model, "gravity", weights, near)
    return JointLaw(Goal(model, ()), lambda t, q, v, u, change=SAME: holding(q))


@dataclass(frozen=True)
class Change:
    """A change of a law while it runs: factors of its gains, and offsets of its targets by DoF; all may be traced."""

    kp: Any = 1.0
    kd: Any = 1.0
    offsets: Mapping[int, Any] = field(default_factory=dict)

    def kp_times(self, gains: list[float]) -> list[Any]:
        """Stiffness (nv), changed."""
        return gains if self.kp is SAME.kp else [self.kp * x for x in gains]

    def kd_times(self, gains: list[float]) -> list[Any]:
        """Damping (nv), changed."""
        return gains if self.kd is SAME.kd else [self.kd * x for x in gains]

    def moved(self, miss: tuple[list[Any], list[Any], list[Any]]) -> tuple[list[Any], list[Any], list[Any]]:
        """The errors of a goal with moved targets."""
        e, rate, a = miss
        return [x + self.offsets[k] if k in self.offsets else x for k, x in enumerate(e)], rate, a


SAME = Change()


class JointLaw(Controller):
    """A law (t, q, v, u) -> torques (nv) that follows a goal; has_gains: it takes a Change of its gains."""

    def __init__(self, aim: Goal, law: Callable[..., list[Any]], gains: Any = None, has_gains: bool = False):
        self.aim, self.law, self.inputs, self._gains, self.has_gains = aim, law, aim.inputs, gains, has_gains

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> list[Any]:
        return self.law(t, q, v, u)

    def joint_gains(self) -> Any:
        return self._gains

    def joint_targets(self, t: Any) -> Any:
        if self._gains is None or not self.aim.moves:
            return None
        pairs = zip(self._gains, self.aim.at(t), strict=True)
        return tuple([k * x for k, x in zip(*rows, strict=True)] for rows in pairs)


def _inverse(model: Model, aim: Goal, weights: Any, near: Any) -> Callable[..., list[Any]]:
    """(q, v, accelerations (nv)) -> torques (nv); of a mechanism with loops the independent accelerations count."""
    if has_loops(model):
        mechanism = ActuatedMechanism(model, "computed_torque", aim.joints, weights, near)
        return lambda q, v, a: mechanism.response(q, v).torques([a[k] for k in mechanism.independent])
    _no_weights(weights, "computed_torque")
    for joint in model.joints:
        if joint.kind.nv and joint.name not in aim.joints:
            raise InputError(f"computed_torque: joint {joint.name!r} has no target; every joint needs one")
    return on_scalars(model, "inverse_dynamics")


def _gravity(model: Model, who: str, weights: Any, near: Any) -> Callable[[Any], list[Any]]:
    """q -> torques (nv), zero at joints without an actuator."""
    if has_loops(model):
        mechanism = ActuatedMechanism(model, who, weights=weights, near=near)
        return lambda q: mechanism.response_to_gravity(q).torques([0.0] * len(mechanism.independent))
    _no_weights(weights, who)
    torques = on_scalars(model, "gravity_torques")
    able = [j.name in controllable(model) for j in model.joints for _ in range(j.kind.nv)]
    driven = [j.driven for j in model.joints for _ in range(j.kind.nv)]
    if not all(able):
        pull = torques(model.random_state()[0].tolist())
        least = _NONE * max(map(abs, pull))
        warn_of_falling(model, who, [k for k, x in enumerate(pull) if not able[k] and not driven[k] and abs(x) > least])
    return lambda q: [x if yes else 0.0 for x, yes in zip(torques(q), able, strict=True)]


def _no_weights(weights: Any, who: str) -> None:
    if weights is not None:
        raise InputError(f"{who}: weights are for mechanisms with loops; the torques of a tree are unique")


def _explicit(
    model: Model, aim: Goal, stiffness: list[float], damping: list[float], gravity: Callable[[Any], list[Any]] | None
) -> Callable[..., list[Any]]:
    holding: Callable[[Any], list[Any]] = gravity or (lambda q: [0.0] * model.nv)

    def law(t: Any, q: Any, v: Any, u: Any, change: Change = SAME) -> list[Any]:
        e, rate, _ = change.moved(aim.miss(t, q, v, u))
        kp, kd = change.kp_times(stiffness), change.kd_times(damping)
        return [g + k * x + d * y for g, k, x, d, y in zip(holding(q), kp, e, kd, rate, strict=True)]

    return law


def _implicit(
    model: Model,
    aim: Goal,
    kp: list[float],
    kd: list[float],
    gravity: Callable[[Any], list[Any]] | None,
    h: float,
) -> Callable[..., list[Any]]:
    extra = [h * h * k + h * d for k, d in zip(kp, kd, strict=True)]
    joints = tuple(
        replace(j, armature=tuple(x + y for x, y in zip(j.armature, extra[model.v_slice(j.name)], strict=True)))
        for j in model.joints
    )
    accelerate = on_scalars(replace(model, joints=joints), "forward_dynamics")
    holding: Callable[[Any], list[Any]] = gravity or (lambda q: [0.0] * model.nv)

    def law(t: Any, q: Any, v: Any, u: Any, change: Change = SAME) -> list[Any]:
        ahead: list[Any] = []
        for j in model.joints:
            way = tuple(h * x for x in v[model.v_slice(j.name)])
            ahead += j.kind.plus(tuple(q[model.q_slice(j.name)]), way) if j.kind.nv else ()
        e, rate, _ = change.moved(aim.miss(t + h, ahead, v, u))
        tau = [g + k * x + d * y for g, k, x, d, y in zip(holding(q), kp, e, kd, rate, strict=True)]
        a = accelerate(q, v, tau)
        return [x - m * y for x, m, y in zip(tau, extra, a, strict=True)]

    return law
