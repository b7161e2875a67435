"""Squeeze: torques that add an internal force to grasps and change no motion, on any scalar.

| symbol | shape | meaning |
|---|---|---|
| K | (k, rows) | what closure forces λ must do: nothing at DoF without actuators, press the named loops |
| r | (k) | 0 for the former, the pressing forces for the latter |

    λ = Kᵀ (K Kᵀ)⁻¹ r,    tau = −Jᵀ λ at the actuators

The shortest λ, forces times the length of their loop: the torques of robot.squeeze_torques. Rows of K that depend on
others near the state that the law is made for are left out: two fingers that press against each other have one force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.dynamics.grasp_forces import Normals, cones, pressing_rows
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError, SpanloopError, UnsupportedError
from spanloop.kernels import on_scalars
from spanloop.loops.arguments import checked_active_loops, dofs_called
from spanloop.math.scalar import where
from spanloop.math.vector3 import dot
from spanloop.model import Model
from spanloop.model.user_input import number
from spanloop.simulation.control.actuated_response import solve
from spanloop.simulation.control.motion_paths import Path
from spanloop.simulation.control.targets import controllable
from spanloop.simulation.controllers import Controller
from spanloop.topology import mechanism

WHO = "squeeze"
_DEPENDS = 1e-7  # of a row's length: what may be left of it beside the others where it depends on them
_ASIDE = 0.03  # rad or m from the state that is given, so that no row depends on others by chance
_TIMES = (0.0, 0.3, 1.0)  # s, at which forces of time are compared
_AGREE = 1e-6  # of the largest force

Force = Callable[[Any, Sequence[Any]], Any]  # (t, u) -> N


def squeeze(
    model: Model | Dynamics,
    pressing: Mapping[str, float | Path | Callable[[Any], Any]],
    *,
    normal: Normals | None = None,
    active_loops: Iterable[str] | None = None,
    near: ArrayLike | None = None,
) -> Controller:
    """Squeeze what grasps hold: adds pressing forces at the named loops and changes no motion.

    Args:
        model: the mechanism; its grasps are loops.
        pressing: {"loop": force [N]} that is added along the normal on body b: a number, a function of t, or a path of
            one number, control.given(1) for inputs. The other forces follow from the balance, the least of them.
        normal: (3,) or {"loop": (3,)} in the axes of the loop's child frame, into body b; z by default.
        active_loops: the switchable loops that are closed while it squeezes; all of them by default.
        near: a state q (nq,) with these loops closed; by default one that robot.assemble finds.

    Returns:
        A Controller for sl.simulate; control.together adds it to others. Its torques are those of
        robot.squeeze_torques, and 0 while one of these loops is open: what is not held cannot be squeezed. The frames
        of the loops are the model's; where an event captures others, a squeeze may move what is held.

    Raises:
        InputError: a name is no loop, or the contacts cannot balance these forces.

    Example:
        >>> model, start = sl.zoo.arms_with_object(2, grasp="spherical"), sl.zoo.arms_with_object_start(2)
        >>> law = sl.control.squeeze(model, {"holding1": 20.0}, normal=(1, 0, 0), near=start)
        >>> free, squeezed = (sl.simulate(model, start, duration=0.01, controller=c) for c in (None, law))
        >>> bool(np.abs(free.q - squeezed.q).max() < 1e-9)
        True
    """
    whole = model_of(model, WHO)
    held, model = _closed_loops(whole, active_loops)
    if not isinstance(pressing, Mapping) or not pressing:
        raise InputError(f"{WHO}: pressing is {pressing!r}; expected {{'loop': force [N]}}")
    by_loop = cones(model, 1.0, np.inf, normal, list(pressing), WHO)
    forces, inputs = _forces(pressing)
    able = [k for name in controllable(model) for k in dofs_called(model, name)]
    driven = {k for j in model.joints if j.driven for k in dofs_called(model, j.name)}
    idle = [k for k in range(model.nv) if k not in able and k not in driven]
    lengths, dof_lengths = mechanism(model).row_lengths, mechanism(model).dof_lengths
    C = [[x / s for x, s in zip(row, lengths, strict=True)] for row in pressing_rows(model, by_loop).tolist()]
    jacobian = on_scalars(model, "closure_jacobian")

    def rows(q: Any) -> tuple[list[list[Any]], list[list[Any]]]:
        """J of λ in shares of lengths (rows, nv), and all rows of K."""
        J = [[x * (1.0 / s) for x in row] for row, s in zip(jacobian(q), lengths, strict=True)]
        return J, [[row[k] * dof_lengths[k] for row in J] for k in idle] + C

    beside = np.array(rows(_closed(model, near).tolist())[1], dtype=float)
    kept = _independent(beside)
    _check_balance(list(by_loop), forces, inputs, beside, kept)
    names = [f"DoF {k}" for k in idle] + [f"loop {name!r}" for name in by_loop]

    def law(t: Any, q: Any, u: Sequence[Any]) -> list[Any]:
        J, K = rows(q)
        wanted = [0.0] * len(idle) + [f(t, u) for f in forces]
        chosen = [K[k] for k in kept]
        share = solve(
            [[dot(x, y) for y in chosen] for x in chosen], [wanted[k] for k in kept], [names[k] for k in kept], WHO
        )
        lam = [dot([row[i] for row in chosen], share) for i in range(len(J))]
        closed = _are_closed(q, held)
        return [where(closed, -dot([row[k] for row in J], lam), 0.0) if k in able else 0.0 for k in range(model.nv)]

    return _Squeeze(inputs, law)


class _Squeeze(Controller):
    def __init__(self, inputs: int, law: Callable[..., list[Any]]):
        self.inputs, self.law = inputs, law

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> list[Any]:
        return self.law(t, q, u)


def _forces(pressing: Mapping[str, Any]) -> tuple[list[Force], int]:
    """Pressing forces as functions of t and of the inputs u, and how many inputs they read."""
    out: list[Force] = []
    inputs = 0
    for name, x in pressing.items():
        if isinstance(x, Path):
            if x.size != 1:
                raise InputError(f"{WHO}: the path of loop {name!r} has {x.size} numbers; expected 1, a force")
            out.append(_of_path(x, slice(inputs, inputs + x.inputs)))
            inputs += x.inputs
        elif callable(x):
            out.append(_of_time(x))
        else:
            out.append(_constant(number(x, f"{WHO}: the force of loop {name!r}")))
    return out, inputs


def _of_path(way: Path, mine: slice) -> Force:
    return lambda t, u: way(t, u[mine])[0][0]


def _of_time(function: Callable[[Any], Any]) -> Force:
    return lambda t, u: function(t)


def _constant(force: float) -> Force:
    return lambda t, u: force


def _closed_loops(model: Model, active_loops: Iterable[str] | None) -> tuple[tuple[int, ...], Model]:
    """Places among the switched rows of the loops and couplings that are closed, and the model without the others."""
    names, m = checked_active_loops(model, active_loops, WHO), mechanism(model)
    held = tuple(m.switched_rows.index(r) for name, rows in m.switches.items() if name in names for r in rows)
    for kind, parts in (("loop", model.loops), ("coupling", model.couplings)):
        opened = [x.name for x in parts if x.switchable and x.name not in names]
        model = model.remove(opened, kind=kind) if opened else model
    return held, model


def _are_closed(q: Any, places: Sequence[int]) -> Any:
    """Whether the loops of these switched rows are closed, as the simulation whose q this is knows; yes elsewhere."""
    known: Mapping[str, Sequence[Any]] = getattr(q, "closures", {})
    active, least = known.get("active", ()), 1.0
    for k in places if len(active) else ():
        square = active[k] * active[k]
        least = where(square < least, square, least)
    return least > 0.5


# ---- rows that are independent, and forces that balance, near a closed state


def _closed(model: Model, near: Any) -> np.ndarray:
    """A closed state beside the one given, or beside the first that is found."""
    robot = Dynamics(model)
    try:
        first = robot.assemble(model.neutral()) if near is None else np.array(near, dtype=float)
    except SpanloopError as error:
        raise InputError(
            f"{WHO}: no closed state of model {model.name!r} was found from neutral ({error}); give one: near=q"
        ) from None
    try:
        return robot.assemble(robot.integrate(first, np.random.default_rng(0).uniform(-_ASIDE, _ASIDE, model.nv)))
    except SpanloopError:  # it is alone
        return first


def _independent(K: np.ndarray) -> list[int]:
    """Numbers of independent rows, the first of those that depend on each other."""
    basis: list[np.ndarray] = []
    kept = []
    for k, row in enumerate(K):
        left = row
        for e in 2 * basis:
            left = left - (e @ left) * e
        size = float(np.linalg.norm(left))
        if size > _DEPENDS * max(float(np.linalg.norm(row)), _DEPENDS):
            kept.append(k)
            basis.append(left / size)
    return kept


def _check_balance(names: list[str], forces: list[Force], inputs: int, K: np.ndarray, kept: list[int]) -> None:
    """Refuse forces at loops whose rows were left out that differ from what the balance makes of the others."""
    idle = len(K) - len(forces)
    if not set(range(idle, len(K))) - set(kept):
        return
    if inputs:
        raise UnsupportedError(
            f"{WHO}: the pressing forces of {', '.join(map(repr, names))} depend on each other; with inputs, name as "
            "few loops as there are independent forces"
        )
    for t in _TIMES:
        wanted = np.concatenate([np.zeros(idle), [float(f(t, ())) for f in forces]])
        found = (K @ np.linalg.pinv(K[kept]) @ wanted[kept])[idle:]
        if np.abs(found - wanted[idle:]).max() > _AGREE * np.abs(wanted).max():
            asked, made = (
                ", ".join(f"{name!r} with {x:.4g} N" for name, x in zip(names, y, strict=True))
                for y in (wanted[idle:], found)
            )
            raise InputError(
                f"{WHO}: no internal force presses {asked} at t = {t:g} s: the balance gives {made}. Name fewer loops, "
                "the others follow"
            )
