"""Actions of environments: numbers from −1 to 1, as torques at joints or as inputs of a controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.envs.user_arguments import timeless
from spanloop.errors import InputError, Reason, Refusal, StateError, listed, nearest
from spanloop.loops.arguments import dof_names
from spanloop.model import Model


@dataclass(frozen=True)
class Actions:
    """Names (k,) of actions and what −1 and 1 stand for: low and high (k,) [N m, N, or units of a controller's input].

    places: degrees of freedom at which the torques act; None where a controller reads the inputs.
    """

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    width: int  # of the inputs of a step
    places: tuple[int, ...] | None = None

    @staticmethod
    def of(model: Model, actions: Any, controller: Callable[..., Any] | None) -> Actions:
        """The actions of an environment's arguments, checked."""
        if controller is not None:
            return _inputs(actions)
        return _torques(model, actions)

    def __len__(self) -> int:
        """How many numbers an action has."""
        return len(self.names)

    def checked(self, actions: Any, n: int, where: str = "step") -> np.ndarray:
        """Actions (n, k) from −1 to 1, clipped to that; one that is not finite is refused. where: begins a message."""
        found = as_numpy(where, "actions", actions, f"({n}, {len(self)})")
        if found.dtype.kind not in "fiu" or found.shape != (n, len(self)):
            what = f"shape {found.shape}" if found.dtype.kind in "fiu" else f"entries of type {found.dtype}"
            raise InputError(
                f"{where}: actions have {what}; expected numbers ({n}, {len(self)}): {', '.join(self.names)} of every "
                "environment, from -1 to 1"
            )
        found = found.astype(float)
        if not np.isfinite(found).all():
            k, j = map(int, np.argwhere(~np.isfinite(found))[0])
            words = f"action {self.names[j]!r} of environment {k} is {found[k, j]}; every number must be finite"
            raise StateError.of(where, Refusal(Reason.NOT_FINITE, words))
        return np.clip(found, -1.0, 1.0)

    def inputs(self, actions: np.ndarray) -> np.ndarray:
        """The inputs (n, width) of the steps for actions (n, k) from −1 to 1."""
        values = self.low + 0.5 * (actions + 1.0) * (self.high - self.low)
        if self.places is None:
            return values
        u = np.zeros((len(actions), self.width))
        u[:, self.places] = values
        return u

    def acting(self, controller: Any, forces: Any) -> dict[str, Any]:
        """What acts in the steps, as arguments of sl.simulate; nothing of it reads the time."""
        blank = np.zeros(self.width)
        given: dict[str, Any] = {"tau": blank}
        if controller is not None:
            law, _ = timeless(controller, "controller", (3,))
            given = {"controller": lambda t, q, v, u: law(q, v, u), "inputs": blank}
        if forces is not None:
            push, count = timeless(forces, "forces", (2, 3))
            given["forces"] = (lambda t, q, v, u: push(q, v, u)) if count == 3 else (lambda t, q, v: push(q, v))
        return given


def _torques(model: Model, actions: Any) -> Actions:
    """Torques at actuated joints; by default at all of them, within their efforts."""
    dofs = list(dof_names(model))
    names = list(actions) if isinstance(actions, Mapping | Sequence) and not isinstance(actions, str) else actions
    if names is None:
        names = [d for j in model.actuated for d in dofs[model.v_slice(j)]]
    if isinstance(names, str) or not isinstance(names, list) or not names:
        raise InputError(
            f"actions is {actions!r}; expected {{'joint': largest torque}}, or names of actuated joints with an effort"
        )
    places, pairs = [], []
    for name in names:
        if name not in dofs:
            raise InputError(f"actions: {name!r} is no degree of freedom; {_near(model, name, dofs)}")
        if names.count(name) > 1:
            raise InputError(f"actions: {name!r} is there twice; a degree of freedom has one action")
        places.append(dofs.index(name))
        given = actions[name] if isinstance(actions, Mapping) else _effort(model, dofs.index(name))
        if given is None:
            raise InputError(
                f"actions: joint {name!r} has no effort, and so no largest torque; give one: "
                f"actions={{{name!r}: 10.0}} [N m or N]"
            )
        pairs.append(_pair(name, given))
    low, high = np.array(pairs).T
    return Actions(tuple(names), low, high, model.nv, tuple(places))


def _near(model: Model, name: Any, dofs: list[str]) -> str:
    """What to write instead: all degrees of freedom of a joint of that name, or the nearest one."""
    joint = next((j for j in model.joints if j.name == name), None)
    if joint is None:
        return nearest(str(name), dofs)
    own = dofs[model.v_slice(joint.name)]
    return f"those of joint {name!r} are {listed(map(repr, own))}" if own else f"joint {name!r} has none"


def _inputs(actions: Any) -> Actions:
    if not isinstance(actions, Mapping) or not actions:
        raise InputError(
            f"actions is {actions!r}; with a controller (q, v, u) expected {{'name': (low, high)}}, one for each "
            "number of u in order"
        )
    low, high = np.array([_pair(name, pair) for name, pair in actions.items()]).T
    return Actions(tuple(map(str, actions)), low, high, len(actions))


def _pair(name: str, given: Any) -> tuple[float, float]:
    """(low, high) from a pair, or from one number x as (−x, x)."""
    try:
        low, high = (-float(given), float(given)) if np.ndim(given) == 0 else map(float, given)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InputError(f"actions[{name!r}] is {given!r}; expected a positive number, or (low, high)")
    return low, high


def _effort(model: Model, dof: int) -> float | None:
    """The largest torque of a degree of freedom, None where it has no bound."""
    for j in model.joints:
        numbers = range(model.nv)[model.v_slice(j.name)]
        if dof in numbers and j.effort is not None:
            found = j.effort[numbers.index(dof)]
            return found if np.isfinite(found) else None
    return None
