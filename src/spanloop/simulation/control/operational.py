"""Operational-space control: a frame follows a path, with the operational-space inertia [Khatib 1987].

| symbol | meaning |
|---|---|
| J, J̇ v | Jacobian of the controlled directions, and their acceleration when no joint accelerates |
| w | commanded acceleration: that of the path, and gains times the errors |
| Λ⁻¹ = J M⁻¹ Jᵀ | inverse of the inertia at the frame |
| a₀ | accelerations of the posture |

    F = Λ (w − J̇ v − J a₀),    tau = inverse dynamics of a₀ + M⁻¹ Jᵀ F

which is Khatib's law with M a₀ projected to the null space of the frame. At a singular configuration of the arm Λ⁻¹
has no inverse and the run ends there.

With loops the independent actuated DoF I take the place of all: with their response A to torques
(actuated_response.py), C = J A Iᵀ and B = I A Iᵀ, the inertia at the frame is Λ⁻¹ = C B⁻¹ Cᵀ, a₀ brings accelerations
of all joints along, and the torques are those of the accelerations I a₀ + Cᵀ F.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.math.vector3 import add, cross, dot, scale, transpose
from spanloop.model import Model
from spanloop.model.user_input import number, rotation
from spanloop.simulation.control.actuated_response import ActuatedMechanism, solve
from spanloop.simulation.control.motion_paths import Path, hold, path
from spanloop.simulation.control.targets import every_joint_controlled, goal, has_loops
from spanloop.simulation.controllers import Controller

WHO = "operational_space"


def operational_space(
    model: Model | Dynamics,
    frame: str,
    target: ArrayLike | Path | Callable[..., Any],
    kp: float,
    kd: float,
    *,
    axes: str = "xyz",
    orientation: ArrayLike | Callable[..., Any] | None = None,
    rotation_axes: str = "xyz",
    posture: ArrayLike | Mapping[str, Any] | None = None,
    posture_gains: tuple[float, float] | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    near: ArrayLike | None = None,
) -> Controller:
    """Operational-space control: a frame follows a path along axes of the world, and an orientation if one is given.

    Args:
        model: a tree with a torque at every joint, or a mechanism with loops.
        frame: name of a frame or body.
        target: a path, a function (t) -> (x, dx, ddx) or numbers [m], one for each letter of `axes`.
        kp: [1/s²].
        kd: [1/s].
        axes: some of "xyz".
        orientation: a rotation (3, 3), roll, pitch, yaw [rad], or control.turning(...); its error counts as the sine of
            the angle.
        rotation_axes: some of "xyz", the axes of the world about which the orientation is controlled: "z" for the yaw
            of a plane mechanism.
        posture: target of the joints in the null space of the frame, {"joint": target} or coordinates (nq).
        posture_gains: (kp, kd) of the posture; (0, kd) by default.
        weights: with loops, of the squares of the torques where there are more actuators than the motion needs,
            {"joint": weight} or one for each actuated DoF; 1 by default.
        near: with loops, a closed state q (nq,), for a mechanism of which none is found from neutral.

    Returns:
        A Controller for sl.simulate.

    Raises:
        InputError: there is no such frame, more directions are controlled than the actuated joints have degrees of
            freedom, or a number does not fit.
        UnsupportedError: a joint of a tree has no torque, or no joint of a mechanism with loops has one.

    Example:
        >>> arm, q = sl.zoo.puma(), [0.1, -0.8, 0.4, 0.2, 0.6, 0.0]
        >>> x, z = sl.Dynamics(arm).pose(q, "tool")[[0, 2], 3]
        >>> way = sl.control.quintic([x, z], [x + 0.01, z], duration=0.1)
        >>> law = sl.control.operational_space(arm, "tool", way, 400.0, 40.0, axes="xz")
        >>> run = sl.simulate(arm, q, duration=0.1, controller=law)
        >>> bool(abs(run["tool"].position[-1, 0] - x - 0.01) < 1e-4)
        True
    """
    model = model_of(model, WHO)
    name = model.frame(frame).name
    rows, aim = _directions(target, axes)
    turn = _orientation(orientation)
    turned = _rows(rotation_axes, "rotation_axes") if turn is not None else []
    words = [f"{name!r} about {'xyz'[r]}" for r in turned] + [f"{name!r} along {x}" for x in axes]
    count, torques = _closed(model, weights, near, words) if has_loops(model) else _tree(model, weights, words)
    chosen = turned + [3 + r for r in rows]  # rows of the Jacobian
    if len(chosen) > count:
        raise InputError(
            f"{WHO}: {len(chosen)} directions of {name!r} are to be controlled with {count} degrees of freedom; "
            f"name fewer axes, as axes='xz'{'' if turn is None else ', or rotation_axes=' + repr('z')}"
        )
    kp, kd = _not_negative(kp, "kp"), _not_negative(kd, "kd")
    k0, d0 = (0.0, kd) if posture_gains is None else (_not_negative(x, "posture_gains") for x in posture_gains)
    pose, jacobian, drift = (on_scalars(model, f, frame=name) for f in ("pose", "jacobian", "jacobian_bias"))
    rest = None if posture is None else goal(model, posture, f"{WHO}: posture")
    if rest is not None and rest.inputs:
        raise InputError(f"{WHO}: the posture reads inputs; expected numbers or functions of time")

    def commanded(t: Any, v: Any, u: Any, J: Any, T: Any) -> list[Any]:
        """The commanded acceleration of each controlled direction."""
        x, dx, ddx = aim(t, u)
        out = []
        for k, r in enumerate(rows):
            speed = dot(J[3 + r], v)
            out.append(ddx[k] + kp * (x[k] - T[r][3]) + kd * (dx[k] - speed))
        if turn is not None:
            wanted, omega, alpha = turn(t)
            error = _turn_between([row[:3] for row in T[:3]], wanted)
            out = [alpha[r] + kp * error[r] + kd * (omega[r] - dot(J[r], v)) for r in turned] + out
        return out

    def law(t: Any, q: Any, v: Any, u: Any) -> list[Any]:
        T, every, fall = pose(q), jacobian(q), drift(q, v)
        a0 = [-(d0 * x) for x in v]
        if rest is not None:
            e, rate, a = rest.miss(t, q, v, ())
            a0 = [x + k0 * y + d0 * z for x, y, z in zip(a, e, rate, strict=True)]
        w = commanded(t, v, u, every, T)
        return torques(q, v, [every[r] for r in chosen], a0, [x - fall[r] for x, r in zip(w, chosen, strict=True)])

    return _Frame(aim.inputs, law)


Law = Callable[[Any, Any, list[Any], list[Any], list[Any]], list[Any]]  # (q, v, J, a₀, w − J̇ v) -> torques (nv)


def _tree(model: Model, weights: Any, words: list[str]) -> tuple[int, Law]:
    """The number of degrees of freedom of a tree, and its torques."""
    every_joint_controlled(model, WHO)
    if weights is not None:
        raise InputError(f"{WHO}: weights are for mechanisms with loops; the torques of a tree are unique")
    admittance, inverse = on_scalars(model, "mass_matrix_inverse"), on_scalars(model, "inverse_dynamics")

    def torques(q: Any, v: Any, J: list[Any], a0: list[Any], wanted: list[Any]) -> list[Any]:
        inv = admittance(q)
        pushed = [[dot(row, j) for row in inv] for j in J]  # M⁻¹ Jᵀ, a column each
        less = [[dot(i, p) for p in pushed] for i in J]
        F = solve(less, [x - dot(j, a0) for x, j in zip(wanted, J, strict=True)], words, WHO)
        return inverse(q, v, [x + dot([p[i] for p in pushed], F) for i, x in enumerate(a0)])

    return model.nv, torques


def _closed(model: Model, weights: Any, near: Any, words: list[str]) -> tuple[int, Law]:
    """The number of independent actuated degrees of freedom of a mechanism with loops, and its torques."""
    mechanism = ActuatedMechanism(model, WHO, weights=weights, near=near)

    def torques(q: Any, v: Any, J: list[Any], a0: list[Any], wanted: list[Any]) -> list[Any]:
        response = mechanism.response(q, v)
        own = [a0[k] for k in mechanism.independent]
        brought, B = response.accelerations(own), response.inertia_inverse()
        C = [[dot(j, column) for column in response.columns] for j in J]
        held = [solve(B, row, response.names, WHO) for row in C]  # B⁻¹ Cᵀ, a column each
        less = [[dot(row, x) for x in held] for row in C]
        F = solve(less, [x - dot(j, brought) for x, j in zip(wanted, J, strict=True)], words, WHO)
        return response.torques([x + dot([row[i] for row in C], F) for i, x in enumerate(own)])

    return len(mechanism.independent), torques


class _Frame(Controller):
    def __init__(self, inputs: int, law: Callable[..., list[Any]]):
        self.inputs, self.law = inputs, law

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> list[Any]:
        return self.law(t, q, v, u)


def _directions(target: Any, axes: str) -> tuple[list[int], Path]:
    rows = _rows(axes, "axes")
    aim = target if isinstance(target, Path) else path(target) if callable(target) else hold(target)
    if aim.size != len(axes):
        raise InputError(f"{WHO}: the target has {aim.size} numbers; expected {len(axes)}, for the axes {axes!r}")
    return rows, aim


def _rows(axes: Any, what: str) -> list[int]:
    """The places of axes among "xyz"."""
    if not isinstance(axes, str) or not set(axes) <= set("xyz") or len(set(axes)) != len(axes):
        raise InputError(f"{WHO}: {what} is {axes!r}; expected some of 'xyz'")
    return ["xyz".index(x) for x in axes]


def _orientation(value: Any) -> Callable[..., Any] | None:
    if value is None:
        return None
    if callable(value):
        return cast("Callable[..., Any]", value)
    fixed = rotation(value, f"{WHO}: orientation")
    return lambda t: (fixed, (0.0,) * 3, (0.0,) * 3)


def _turn_between(R: Any, wanted: Any) -> Any:
    """sin θ times the axis of the rotation from R to the wanted one, in world axes: ½ Σ column × wanted column."""
    x, y, z = (cross(a, b) for a, b in zip(transpose(R), transpose(wanted), strict=True))
    return scale(0.5, add(x, add(y, z)))


def _not_negative(value: Any, what: str) -> float:
    x = number(value, f"{WHO}: {what}")
    if x < 0.0:
        raise InputError(f"{WHO}: {what} is {x:g}; must be >= 0")
    return x
