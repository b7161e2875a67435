"""Actuators of a model: from commanded torques to torques at the joints.

A command passes delay, lag, bounds and friction, in this order:

    motor's torque  m = command / gear, delay and lag in memory; clipped to its bounds at the motor's speed gear · v
    at the joint    gear m − s (|gear| friction + (1 − efficiency) |gear m|),    s = v / √(v² + SLIP²)

s being a smooth sign of v. Rotor inertia and damping are in the equations of motion (model/motors.py). Memory is
constant during a step: motors with a lag or a delay hold their torque from step to step, as drives with a sampled
command.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.errors import InputError, SpanloopWarning, nearest
from spanloop.math.scalar import absolute, sqrt, where
from spanloop.model import Model
from spanloop.model.motors import KIND, SETTINGS, driven_dof, is_motor
from spanloop.model.parts import Actuator
from spanloop.simulation.controllers import Controller
from spanloop.simulation.system import SLIP
from spanloop.simulation.time_loop import STEP

MOST = 1000  # steps of delay


def actuation(model: Model, step: float | None = None) -> Controller | None:
    """The model's actuators as one element; None if it has none. step [s]: that of the simulation, for delays."""
    free = [a for a in model.actuators if not model.joint(a.joint).driven]
    motors = [a for a in free if _simulated(a)]
    others = [a for a in free if not _simulated(a)]
    if others:
        kind = dict(others[0].settings).get("kind", KIND)
        more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
        warnings.warn(
            f"simulate: actuator {others[0].name!r}{more}, a {kind!r}, has a law that simulation does not know; "
            "torques act at its joint as they are commanded. Write its law as a controller (sl.control)",
            SpanloopWarning,
            stacklevel=4,
        )
    tick = step if isinstance(step, (int, float)) and step > 0.0 else STEP
    made = [_motor(model, a, tick) for a in motors]
    places = [m.place for m in made]
    shared = [m.joint for m in made if places.count(m.place) > 1]
    if shared:
        more = f" (and {len(set(shared)) - 1} more joints)" if len(set(shared)) > 1 else ""
        warnings.warn(
            f"simulate: several actuators drive joint {shared[0]!r}{more}, and a command cannot be shared among them; "
            "torques act there as they are commanded, without bounds and losses of the motors. Keep one: model.remove",
            SpanloopWarning,
            stacklevel=4,
        )
    made = [m for m in made if places.count(m.place) == 1]
    return _Actuation(tuple(made), tick) if made else None


def _simulated(actuator: Actuator) -> bool:
    return is_motor(actuator) and "dynamics" not in dict(actuator.settings)


def _motor(model: Model, actuator: Actuator, step: float) -> _Motor:
    """A motor from its settings."""
    given = dict(actuator.settings)
    for name in given:
        if name not in SETTINGS:
            raise InputError(
                f"simulate: actuator {actuator.name!r}: there is no setting {name!r}; {nearest(name, SETTINGS)}"
            )
    joint = model.joint(actuator.joint)
    lower, upper = _bounds(given)
    if lower is not None and upper is not None and lower > upper:
        raise InputError(
            f"simulate: actuator {actuator.name!r}: its bounds exclude each other: a torque of at least {lower:g} and "
            f"at most {upper:g} N m"
        )
    return _Motor(
        joint.name,
        model.v_slice(joint.name).start + driven_dof(actuator, joint),
        float(given.get("gear", 1.0)),
        lower,
        upper,
        float(given.get("stall_torque", given.get("max_torque", 0.0))),
        float(given.get("max_speed", 0.0)),
        float(given.get("friction", 0.0)),
        1.0 - float(given.get("efficiency", 1.0)),
        float(given.get("lag", 0.0)),
        _slots(actuator.name, float(given.get("delay", 0.0)), step),
    )


def _bounds(given: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The closest bounds of the motor's torque."""
    ranges = [given[name] for name in ("force_range",) if name in given]
    if "max_torque" in given:
        ranges.append((-given["max_torque"], given["max_torque"]))
    if "control_range" in given:
        ranges.append(sorted(given.get("gain", 1.0) * x for x in given["control_range"]))
    if not ranges:
        return None, None
    return max(float(low) for low, _ in ranges), min(float(high) for _, high in ranges)


def _slots(name: str, delay: float, step: float) -> int:
    """Whole steps of a delay."""
    count = round(delay / step)
    if count > MOST:
        raise InputError(
            f"simulate: actuator {name!r}: its delay of {delay:g} s is {count} steps of {step:g} s; at most {MOST}. "
            "Take longer steps"
        )
    if abs(count * step - delay) > 1e-9 * max(delay, step):
        warnings.warn(
            f"simulate: actuator {name!r}: its delay of {delay:g} s is taken as {count} steps of {step:g} s, "
            f"{count * step:g} s",
            SpanloopWarning,
            stacklevel=5,
        )
    return count


@dataclass(frozen=True)
class _Motor:
    """One motor; its memory: the command of this tick and those before, the newest first; then the lagging torque."""

    joint: str
    place: int  # in tau
    gear: float = 1.0
    lower: float | None = None
    upper: float | None = None
    stall: float = 0.0
    top_speed: float = 0.0  # 0 for none
    friction: float = 0.0
    loss: float = 0.0
    lag: float = 0.0
    slots: int = 0

    @property
    def line(self) -> int:
        """Memory of the delay."""
        return self.slots + 1 if self.slots else 0

    @property
    def memory(self) -> int:
        return self.line + (1 if self.lag else 0)

    def torque(self, v, command, z: Sequence[Any]):
        """At the joint."""
        m = z[-1] if self.memory else command * (1.0 / self.gear)
        m = self._clipped(m, self.gear * v)
        out = self.gear * m
        if not (self.friction or self.loss):
            return out
        against = abs(self.gear) * self.friction + self.loss * absolute(out)
        return out - against * (v / sqrt(v * v + SLIP * SLIP))

    def passes(self, v, command):
        """1 where a change of the command changes the torque within a step; 0 where it is clipped, or waits."""
        m = command * (1.0 / self.gear)
        return 0.0 if self.memory else where(absolute(self._clipped(m, self.gear * v) - m) > 0.0, 0.0, 1.0)

    def update(self, h, command, z: Sequence[Any], begins, ends) -> list:
        """Memory after a step at whose start the delay's clock struck (begins), or at whose end it does (ends)."""
        m = command * (1.0 / self.gear)
        out: list = []
        if self.slots:
            first = where(begins, m, z[0])
            shifted = [first, *z[1 : self.slots]]
            out += [first, *(where(ends, new, old) for new, old in zip(shifted, z[1 : self.line], strict=True))]
            m = z[self.slots]
        if self.lag:
            x = h * (1.0 / self.lag)
            kept = 1.0 / (1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0)))))  # exp(−x) to fourth order
            out.append(m + kept * (z[self.line] - m))
        return out

    def _clipped(self, m, speed):
        lower, upper = self.lower, self.upper
        if self.top_speed:
            ratio = speed * (1.0 / self.top_speed)
            upper = _smaller(_positive(self.stall * (1.0 - ratio)), upper)
            lower = -_smaller(_positive(self.stall * (1.0 + ratio)), None if lower is None else -lower)
        if upper is not None:
            m = where(m > upper, upper, m)
        return m if lower is None else where(m < lower, lower, m)


class _Actuation(Controller):
    """All motors; memory: a clock for delays, if there are any, then that of each motor."""

    def __init__(self, motors: tuple[_Motor, ...], tick: float):
        self.motors, self.tick = motors, tick
        self.clock = 1 if any(m.slots for m in motors) else 0
        self.memory = self.clock + sum(m.memory for m in motors)

    def torques(self, t, q, v, u, z):
        tau = list(u)
        for m, own in self._shares(z):
            tau[m.place] = m.torque(v[m.place], u[m.place], own)
        return tau

    def passed(self, v, u) -> list:
        """By DoF 1 where a change of the command u changes the torque within a step, 0 elsewhere."""
        out: list = [1.0] * len(u)
        for m in self.motors:
            out[m.place] = m.passes(v[m.place], u[m.place])
        return out

    def update(self, t, h, q, v, u, z):
        """The clock counts from tick to tick; where steps are shorter than a tick, commands wait for the next one."""
        out: list = []
        begins = ends = None
        if self.clock:
            begins, later = z[0] < 0.5 * h, z[0] + h
            ends = later > self.tick - 0.5 * h
            out.append(where(ends, later - self.tick, later))
        for m, own in self._shares(z):
            out += m.update(h, u[m.place], own, begins, ends)
        return out

    def _shares(self, z):
        at = self.clock
        for m in self.motors:
            yield m, z[at : at + m.memory]
            at += m.memory


def _positive(x):
    return where(x > 0.0, x, 0.0)


def _smaller(x, bound: float | None):
    return x if bound is None else where(x > bound, bound, x)
