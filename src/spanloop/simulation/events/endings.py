"""Events that end a run: values that are positive as long as it goes on, evaluated after every step."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from spanloop.compiler.lower import unrolled
from spanloop.errors import InputError
from spanloop.math.scalar import where
from spanloop.model import Model
from spanloop.simulation.controllers import Named, traced
from spanloop.simulation.traced_kernels import arguments, must_repeat, noted

FAR = 1e5  # a value that is watched is as good as this where it is larger


@dataclass(frozen=True)
class Limit:
    """An end of a joint's range."""

    joint: str
    place: int  # in q
    bound: float
    sign: float  # 1 for a lower, −1 for an upper bound

    def value(self, q) -> Any:
        return self.sign * (q[self.place] - self.bound)

    @property
    def word(self) -> str:
        return "lower" if self.sign > 0 else "upper"


@dataclass(frozen=True)
class Stop:
    """A spring and damper beyond an end of a joint's range, which push back and never pull."""

    limit: Limit
    dof: int  # in v
    stiffness: float
    damping: float

    def torque(self, q: Sequence[Any], v: Sequence[Any]) -> Any:
        """Torque at the joint."""
        depth = -self.limit.value(q)
        push = self.stiffness * depth - self.damping * (self.limit.sign * v[self.dof])
        return self.limit.sign * where(depth > 0.0, where(push > 0.0, push, 0.0), 0.0)

    def gains(self, q: Sequence[Any], v: Sequence[Any], h: Any) -> tuple[Any, Any]:
        """Stiffness and damping, 0 where the joint does not touch the stop within the time h [s]."""
        now, rate = self.limit.value(q), h * (self.limit.sign * v[self.dof])
        touches = where(rate < 0.0, now + rate, now) < 0.0
        return where(touches, self.stiffness, 0.0), where(touches, self.damping, 0.0)


@dataclass(frozen=True)
class Events:
    """Limits of joints and the user's conditions, in this order."""

    model: Model
    limits: tuple[Limit, ...] = ()
    conditions: tuple[tuple[str, Callable], ...] = ()

    def __len__(self) -> int:
        return len(self.limits) + len(self.conditions)

    def name(self, j: int) -> str:
        """The name of event j, a condition."""
        return self.conditions[j - len(self.limits)][0]

    def values(self, x: Mapping[str, Sequence[Any]]) -> list:
        """One number each on any scalar, positive while the run goes on."""
        out = [limit.value(x["q"]) for limit in self.limits]
        for name, condition in self.conditions:
            q, v = Named.by_joint(x["q"], self.model, False), Named.by_joint(x["v"], self.model, True)
            value = called(f"the event {name!r}", condition, x["t"][0], q, v)
            if isinstance(value, (bool, np.bool_, str)) or hasattr(value, "select") or hasattr(value, "__len__"):
                raise InputError(
                    f"the event {name!r} returned a {type(value).__name__}; expected one number that is "
                    "positive as long as the run goes on"
                )
            out.append(bounded(_constant(value, name) if isinstance(value, Real) else value))
        return out

    def key(self) -> str:
        """A hash of what is traced."""
        if not self.conditions:
            return repr(self.limits)
        sizes = (("t", 1), ("q", self.model.nq), ("v", self.model.nv))

        def compute(x: Any) -> Any:
            found = self.values(x)
            must_repeat(found, self.values(x))
            return found, (), ()

        functions = [function for _, function in self.conditions]
        plan = traced("an event", lambda: unrolled("events", sizes, (0,), compute), functions)
        return hashlib.sha256(f"{plan}{self.limits}".encode()).hexdigest()


def called(what: str, condition: Callable[..., Any], *given: Any) -> Any:
    """The value of a user's condition; what it raises says which one it is."""

    def value() -> Any:
        with noted(what):
            try:
                return condition(*given)
            except InputError as error:
                raise InputError(f"{what}: {error}") from error

    return traced(what, value, [condition])


def bounded(value: Any) -> Any:
    """A value that is watched, within what a state may hold: far from 0 its size does not matter."""
    if isinstance(value, float):
        return min(max(value, -FAR), FAR)
    return where(value > FAR, FAR, where(value < -FAR, -FAR, value))


def _constant(value: Real, name: str) -> float:
    """The value of an event that depends on nothing."""
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"the event {name!r} returned {number}; expected a finite number")
    return number


def limits_of(model: Model) -> Iterator[tuple[Limit, int]]:
    """Both ends of the range of every joint that has one, and the DoF that each belongs to."""
    for joint in model.joints:
        q, v = model.q_slice(joint.name), model.v_slice(joint.name)
        if joint.kind.nq != joint.kind.nv or joint.driven:
            continue
        for bounds, sign in ((joint.lower, 1.0), (joint.upper, -1.0)):
            for k, bound in enumerate(bounds or ()):
                if bound is not None and abs(bound) < 1e6:
                    yield Limit(joint.name, q.start + k, bound, sign), v.start + k


def events_of(model: Model, limits: bool, events) -> Events:
    """The events of a model's run; events: {"name": condition(t, q, v)} or one such function."""
    found = [limit for limit, _ in limits_of(model)] if limits else []
    if events is None:
        conditions: dict[str, Callable] = {}
    elif callable(events):
        conditions = {getattr(events, "__name__", "event"): events}
    elif isinstance(events, Mapping):
        conditions = dict(events)
    else:
        raise InputError(f"events is a {type(events).__name__}; expected a function (t, q, v) or {{'name': function}}")
    for name, condition in conditions.items():
        if not callable(condition):
            raise InputError(f"events[{name!r}] is a {type(condition).__name__}; expected a function (t, q, v)")
        arguments(condition, f"the event {name!r}")
    return Events(model, tuple(found), tuple(conditions.items()))
