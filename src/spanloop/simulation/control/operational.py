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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.math.symmetric import solve
from spanloop.math.vector3 import add, cross, dot, scale, transpose
from spanloop.model import Model
from spanloop.model.user_input import number, rotation
from spanloop.simulation.control.motion_paths import Path, hold, path
from spanloop.simulation.control.targets import every_joint_controlled, goal, no_loops
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
    posture: ArrayLike | Mapping[str, Any] | None = None,
    posture_gains: tuple[float, float] | None = None,
) -> Controller:
    """Operational-space control: a frame follows a path along axes of the world, and an orientation if one is given.

    Args:
        model: a tree with a torque at every joint.
        frame: name of a frame or body.
        target: a path, a function (t) -> (x, dx, ddx) or numbers [m], one for each letter of `axes`.
        kp: [1/s²].
        kd: [1/s].
        axes: some of "xyz".
        orientation: a rotation (3, 3), roll, pitch, yaw [rad], or control.turning(...); its error counts as the sine of
            the angle.
        posture: target of the joints in the null space of the frame, {"joint": target} or coordinates (nq).
        posture_gains: (kp, kd) of the posture; (0, kd) by default.

    Returns:
        A Controller for sl.simulate.

    Raises:
        InputError: there is no such frame, more directions are controlled than the model has degrees of freedom, or a
            number does not fit.
        UnsupportedError: the model has loops, or a joint without a torque.

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
    no_loops(model, WHO)
    every_joint_controlled(model, WHO)
    name = model.frame(frame).name
    rows, aim = _directions(target, axes)
    turn = _orientation(orientation)
    chosen = ([] if turn is None else [0, 1, 2]) + [3 + r for r in rows]  # rows of the Jacobian
    if len(chosen) > model.nv:
        raise InputError(
            f"{WHO}: {len(chosen)} directions of {name!r} are to be controlled with {model.nv} degrees of freedom; "
            "name fewer axes, as axes='xz'"
        )
    kp, kd = _not_negative(kp, "kp"), _not_negative(kd, "kd")
    k0, d0 = (0.0, kd) if posture_gains is None else (_not_negative(x, "posture_gains") for x in posture_gains)
    pose, jacobian, drift = (on_scalars(model, f, frame=name) for f in ("pose", "jacobian", "jacobian_bias"))
    admittance, inverse = on_scalars(model, "mass_matrix_inverse"), on_scalars(model, "inverse_dynamics")
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
            speeds = [dot(J[r], v) for r in range(3)]
            out = [alpha[r] + kp * error[r] + kd * (omega[r] - speeds[r]) for r in range(3)] + out
        return out

    def law(t: Any, q: Any, v: Any, u: Any) -> list[Any]:
        T, every, fall, inv = pose(q), jacobian(q), drift(q, v), admittance(q)
        J = [every[r] for r in chosen]
        a0 = [-(d0 * x) for x in v]
        if rest is not None:
            e, rate, a = rest.miss(t, q, v, ())
            a0 = [x + k0 * y + d0 * z for x, y, z in zip(a, e, rate, strict=True)]
        pushed = [[dot(row, j) for row in inv] for j in J]  # M⁻¹ Jᵀ, a column each
        less = [[dot(i, p) for p in pushed] for i in J]
        w = commanded(t, v, u, every, T)
        F = solve(less, [x - fall[r] - dot(j, a0) for x, r, j in zip(w, chosen, J, strict=True)])
        return inverse(q, v, [x + dot([p[i] for p in pushed], F) for i, x in enumerate(a0)])

    return _Frame(aim.inputs, law)


class _Frame(Controller):
    def __init__(self, inputs: int, law: Callable[..., list[Any]]):
        self.inputs, self.law = inputs, law

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> list[Any]:
        return self.law(t, q, v, u)


def _directions(target: Any, axes: str) -> tuple[list[int], Path]:
    if not isinstance(axes, str) or not set(axes) <= set("xyz") or len(set(axes)) != len(axes):
        raise InputError(f"{WHO}: axes is {axes!r}; expected some of 'xyz'")
    aim = target if isinstance(target, Path) else path(target) if callable(target) else hold(target)
    if aim.size != len(axes):
        raise InputError(f"{WHO}: the target has {aim.size} numbers; expected {len(axes)}, for the axes {axes!r}")
    return ["xyz".index(x) for x in axes], aim


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
