"""Users' conditions of events: their values on any scalar, checked, and the forces that they read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.compiler.traced_arrays import TracedArray
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.simulation.controllers import Named
from spanloop.simulation.events.endings import called

if TYPE_CHECKING:
    from spanloop.simulation.events.switches import Watcher


class Wrenches(dict[str, Any]):
    """Wrenches by name, as conditions read them: arrays of six numbers, one number of a coupling; it notes which."""

    def __init__(self, values: Mapping[str, Sequence[Any]]):
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise InputError(f"f[{name!r}]: there is no loop or coupling of this name; {nearest(name, list(self))}")
        self.read.add(name)
        numbers = super().__getitem__(name)
        return TracedArray.of(numbers) if len(numbers) > 1 else numbers[0]


def wrenches_read(w: Watcher, model: Model) -> frozenset[str]:
    """Names of the loops and couplings whose forces a condition reads."""
    from spanloop.compiler.lower import traced_inputs

    parts = {loop.name: 6 for loop in model.loops} | {coupling.name: 1 for coupling in model.couplings}
    x = traced_inputs((("t", 1), ("q", model.nq), ("v", model.nv), *parts.items()))
    wrenches = Wrenches({name: x[name] for name in parts})
    condition_value(w, model, x, wrenches)
    return frozenset(wrenches.read)


def condition_value(w: Watcher, model: Model, x: Mapping[str, Sequence[Any]], wrenches: Mapping[str, Any]) -> Any:
    """The value of a user's condition, checked to be one number; wrenches: lists of numbers, or such as are noted."""
    f = wrenches if isinstance(wrenches, Wrenches) else Wrenches(wrenches)
    q, v = Named.by_joint(x["q"], model, False), Named.by_joint(x["v"], model, True)
    assert w.condition is not None
    given = (x["t"][0], q, v, f) if w.takes_forces else (x["t"][0], q, v)
    value = called(f"the condition of {w.kind} {w.name!r}", w.condition, *given)
    if isinstance(value, (bool, np.bool_, str)) or hasattr(value, "select") or hasattr(value, "__len__"):
        raise InputError(
            f"the condition of {w.kind} {w.name!r} returned a {type(value).__name__}; expected one number that is "
            "positive until it happens"
        )
    if isinstance(value, Real) and not math.isfinite(value):
        raise InputError(f"the condition of {w.kind} {w.name!r} returned {value}; expected a finite number")
    return float(value) if isinstance(value, Real) else value
