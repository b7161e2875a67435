"""How a mechanism with loops answers its actuators, on any scalar: which torques give which accelerations.

| symbol | shape | meaning |
|---|---|---|
| a_f | (nv) | accelerations without torques of the actuators |
| S | (nv, m) | columns of the actuated DoF |
| I | (n, nv) | rows of the actuated DoF that determine the motion |
| A | (nv, nv) | accelerations per torque, loops kept closed; symmetric |

    I A S u = a_I − I a_f,    with least Σ weight u² where there are more actuators than the motion needs

Both come from forward dynamics: a_f at q and v; A Iᵀ at rest, without gravity and springs, for unit torques. Its
factors depend on q alone, so that all columns share them when they are traced, with each other and with the forward
dynamics of the simulation itself. These are the torques of robot.inverse_dynamics(q, v, {"joint": acceleration, ...}).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spanloop.compiler.runtime.nan_rows import depth_of_caller
from spanloop.dynamics import Dynamics
from spanloop.errors import (
    InputError,
    Reason,
    Refusal,
    SpanloopError,
    SpanloopWarning,
    StateError,
    UnsupportedError,
    listed,
)
from spanloop.kernels import on_scalars
from spanloop.kernels.on_scalars import closed_loops
from spanloop.loops.arguments import actuators, dof_names
from spanloop.loops.constraint_rank import in_general
from spanloop.math.scalar import where
from spanloop.math.symmetric import LDL
from spanloop.math.vector3 import dot, is_zero
from spanloop.model import Model
from spanloop.simulation.control.targets import controllable

_HELD = 1e-6  # of the largest acceleration in free fall: what counts as none
_ASIDE = 0.1  # from the neutral position, where gravity may be in balance
_SINGULAR = 1e-12  # of the diagonal: a pivot that is not larger has no inverse


def solve(m: Sequence[Sequence[Any]], b: Sequence[Any], names: Sequence[str], who: str) -> list[Any]:
    """x with m x = b, m positive definite. Where m is singular x is NaN when traced, and a StateError on floats.

    names: what each row accelerates, for the errors; who: the calling function.
    """
    traced = any(not isinstance(x, int | float) for row in (*m, b) for x in row)

    def inverse(k: int, pivot: Any) -> Any:
        if traced and is_zero(pivot):
            raise InputError(f"{who}: the actuated joints cannot move {names[k]}; leave it out")
        if traced:
            return where(pivot > _SINGULAR * m[k][k], 1.0, math.nan) / pivot
        if not pivot > _SINGULAR * m[k][k]:
            words = f"the actuated joints cannot accelerate {names[k]} at this state: a singular configuration"
            raise StateError.of(who, Refusal(Reason.UNDERACTUATED, words))
        return 1.0 / pivot

    return LDL(m, inverse).solve(b)


@dataclass(frozen=True)
class Response:
    """Accelerations of one state: without torques, and per unit torque of the independent actuators."""

    free: Sequence[Any]  # (nv)
    columns: Sequence[Sequence[Any]]  # A Iᵀ, n columns of nv
    actuated: tuple[int, ...]  # places in v, m of them
    independent: tuple[int, ...]  # those of them that determine the motion, n of them
    weights: tuple[float, ...]  # of the squares of the torques, m of them
    names: tuple[str, ...]  # of the independent DoF
    who: str  # the law that asks

    def torques(self, accelerations: Sequence[Any]) -> list[Any]:
        """tau (nv) that gives these accelerations (n) to the independent DoF."""
        missing = [a - self.free[k] for a, k in zip(accelerations, self.independent, strict=True)]
        if len(self.actuated) == len(self.independent):
            u: Sequence[Any] = solve(self.inertia_inverse(), missing, self.names, self.who)
        else:
            rows = [[column[k] for k in self.actuated] for column in self.columns]  # I A S
            cheap = [[x * (1.0 / w) for x, w in zip(row, self.weights, strict=True)] for row in rows]
            share = solve([[dot(x, y) for y in rows] for x in cheap], missing, self.names, self.who)
            u = [dot([row[j] for row in cheap], share) for j in range(len(self.actuated))]
        tau: list[Any] = [0.0] * len(self.free)
        for k, x in zip(self.actuated, u, strict=True):
            tau[k] = x
        return tau

    def inertia_inverse(self) -> list[list[Any]]:
        """I A Iᵀ (n, n): accelerations of the independent DoF per torque there."""
        return [[column[k] for column in self.columns] for k in self.independent]

    def accelerations(self, independent: Sequence[Any]) -> list[Any]:
        """a (nv) that these accelerations (n) of the independent DoF bring with them."""
        missing = [a - self.free[k] for a, k in zip(independent, self.independent, strict=True)]
        u = solve(self.inertia_inverse(), missing, self.names, self.who)
        return [x + dot([column[i] for column in self.columns], u) for i, x in enumerate(self.free)]


class ActuatedMechanism:
    """A mechanism with loops and its actuators.

    targets: the joints whose motion is given, all of them if None; near: a closed state q (nq,) of the assembly.
    """

    def __init__(
        self, model: Model, who: str, targets: Collection[str] | None = None, weights: Any = None, near: Any = None
    ):
        able = controllable(model)
        if not able:
            raise UnsupportedError(f"{who}: model {model.name!r} has no actuated joint; model.actuate(...) makes some")
        chosen = actuators(model, able, weights)
        self.actuated, self.weights = chosen.dofs, tuple(map(float, chosen.weights))
        self.independent, free = _independent(model, who, able, able if targets is None else targets, near)
        names = dof_names(model)
        self._names, self._who = tuple(repr(names[k]) for k in self.independent), who
        springless = replace(model, joints=tuple(replace(j, stiffness=(0.0,) * j.kind.nv) for j in model.joints))
        self._nv, self._closures = model.nv, closed_loops(model)
        light = springless.with_gravity((0.0, 0.0, 0.0))
        place = None if near is None else tuple(map(float, near))
        self._moving, self._heavy, self._light = (
            on_scalars(m, "forward_dynamics", near=place) for m in (model, _without_joint_springs(model), light)
        )
        if free:
            warn_of_falling(model, who, self._falling(model, free, near))

    def _falling(self, model: Model, free: Sequence[int], near: Any) -> list[int]:
        """Those of the DoF that no actuator moves which gravity accelerates while the actuated ones are held."""
        try:
            aside = [x for j in model.joints for x in j.kind.plus(j.kind.neutral(), (_ASIDE,) * j.kind.nv)]
            q = Dynamics(model).assemble(aside if near is None else near)
            response = self.response_to_gravity(q.tolist())
            a = response.accelerations([0.0] * len(self.independent))
        except SpanloopError:  # it is not known
            return list(free)
        least = _HELD * max(map(abs, response.free))
        return [k for k in free if abs(a[k]) > least]

    def response(self, q: Any, v: Any) -> Response:
        """At a state."""
        return self._around(q, self._moving(q, v, [0.0] * self._nv))

    def response_to_gravity(self, q: Any) -> Response:
        """At rest, as if there were no springs at joints; flexible bodies have theirs."""
        zero = [0.0] * self._nv
        return self._around(q, self._heavy(q, zero, zero))

    def _around(self, q: Any, free: Sequence[Any]) -> Response:
        zero = [0.0] * self._nv
        units = ([1.0 if i == k else 0.0 for i in range(self._nv)] for k in self.independent)
        columns = [self._light(q, zero, unit, *self._closures.values()) for unit in units]
        if "active" in self._closures:
            free = [x + self._open(q) for x in free]
        return Response(free, columns, self.actuated, self.independent, self.weights, self._names, self._who)

    def _open(self, q: Any) -> Any:
        """0 where all switchable loops are closed, for which the law is made; NaN elsewhere, an error on floats."""
        known: Mapping[str, Sequence[Any]] = getattr(q, "closures", {})
        found: Any = 0.0
        for x in known.get("active", ()):
            if isinstance(x, int | float) and not x * x > 0.5:
                words = "a switchable loop is open, and the law is made for closed loops. Make it of model.remove(loop)"
                raise StateError.of(self._who, Refusal(Reason.OPEN_LOOP, words, "a switchable loop is open"))
            found = where(x * x > 0.5, found, math.nan)
        return found


def _without_joint_springs(model: Model) -> Model:
    """The model without springs at joints, which a law of gravity leaves alone; flexible bodies stay as stiff."""
    joints = (j if j.kind.bends else replace(j, stiffness=(0.0,) * j.kind.nv) for j in model.joints)
    return replace(model, joints=tuple(joints))


def warn_of_falling(model: Model, who: str, dofs: Sequence[int]) -> None:
    """Warn of DoF, places in v, that a law cannot hold against gravity; a free base is known to fall.

    Modes of flexible bodies are held by their stiffness.
    """
    free = {k for j in model.joints if j.kind.name == "free" or j.kind.bends for k in _places(model, j.name)}
    names = [dof_names(model)[k] for k in dofs if k not in free]
    if names:
        warnings.warn(
            f"{who}: no actuator holds {listed(map(repr, names), 4)} of model {model.name!r} against gravity, which "
            "moves it under this law. model.actuate(...) makes joints that can be controlled",
            SpanloopWarning,
            stacklevel=depth_of_caller(),
        )


def _independent(
    model: Model, who: str, able: Sequence[str], targets: Collection[str], near: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Places in v of the actuated DoF that determine the motion, each with a target; and of DoF that none moves."""
    robot = Dynamics(model)
    if near is None and in_general(model) is None:
        raise InputError(
            f"{who}: no closed state of model {model.name!r} was found from neutral; give one: near=q, as "
            "robot.assemble(guess) returns it"
        )
    places = {k for name in able for k in _places(model, name)}
    if set(able) <= set(targets):
        return _divided(robot.independent_coordinates(near).dofs, places)
    named: list[str] = []
    for joint in (name for name in able if name in targets):
        try:
            robot.independent_coordinates(near, [*named, joint])
        except InputError:  # it follows from those before
            continue
        named.append(joint)
    found, free = _divided(robot.independent_coordinates(near, named).dofs, places)
    for name in able:
        if name not in named and set(_places(model, name)) & set(found):
            raise InputError(
                f"{who}: joint {name!r} has no target, and it does not follow from those that have one "
                f"({', '.join(map(repr, named))}); give it one"
            )
    return found, free


def _divided(dofs: Sequence[int], places: Collection[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The DoF at these places, and the others."""
    return tuple(k for k in dofs if k in places), tuple(k for k in dofs if k not in places)


def _places(model: Model, joint: str) -> range:
    s = model.v_slice(joint)
    return range(s.start, s.stop)
