"""Springs and dampers between two frames."""

from __future__ import annotations

from spanloop.errors import InputError
from spanloop.math.scalar import sqrt, where
from spanloop.math.small import dot, negate, scale, subtract
from spanloop.model import Model
from spanloop.simulation.forces.points import Acting, Force, Point, not_negative

SHORT = 1e-12  # m: a line shorter than this has no direction


def spring(model: Model, a: str, b: str, stiffness: float, rest: float = 0.0, damping: float = 0.0) -> Force:
    """A spring and damper between the origins of two frames (bodies, the world): pulls with k (length − rest) + c rate.

    stiffness [N/m], rest [m], damping [N s/m].
    """
    k, c = not_negative(stiffness, "spring: stiffness"), not_negative(damping, "spring: damping")
    length = not_negative(rest, "spring: rest")
    first, second = Point(model, a), Point(model, b)
    if first.body == second.body:
        raise InputError(f"spring: {a!r} and {b!r} are both on {first.body!r}; nothing moves between them")

    def tension(q, v, line):
        """Tension over length."""
        square = dot(line, line)
        flat = square < SHORT * SHORT
        over = where(flat, 0.0, 1.0) / where(flat, 1.0, square)  # 1/length²
        pull = k - (k * length) * sqrt(over) if length else k
        if not c:
            return pull
        rate = dot(line, subtract(second.velocity(q, v), first.velocity(q, v)))
        return pull + (c * rate) * over

    def acting(t, q, v) -> Acting:
        line = subtract(second.place(q), first.place(q))
        pull = scale(tension(q, v, line), line)
        return first.load(q, pull) | second.load(q, negate(pull))

    return acting


def damper(model: Model, a: str, b: str, damping: float) -> Force:
    """A damper between the origins of two frames: pulls with c times the rate of their distance; damping [N s/m]."""
    return spring(model, a, b, 0.0, 0.0, damping)
