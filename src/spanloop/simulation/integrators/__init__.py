"""Ways to take a step, one file each: calls on named arrays, from q, v to q.next, v.next."""

from __future__ import annotations

from collections.abc import Callable

from spanloop.errors import InputError, nearest
from spanloop.simulation.integrators import euler, midpoint, runge_kutta

METHODS: dict[str, Callable] = {
    "rk4": runge_kutta.stages,
    "euler": euler.stages,
    "midpoint": midpoint.stages,
}
ORDER = {"rk4": 4, "euler": 1, "midpoint": 2}


def method(name: str) -> Callable:
    if name not in METHODS:
        raise InputError(f"method is {name!r}; {nearest(name, METHODS)}")
    return METHODS[name]
