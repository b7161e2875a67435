"""The rows of a closure at a state: a wrench on each of its two links, and what the velocities add.

Row r says  K_bᵀ a_b + K_aᵀ a_a + bias = 0  for what joints add to the accelerations of the two links, beyond what they
have when no joint accelerates (ζ in tree/drifting); its force f acts as K f on both.
The wrenches are equal and opposite with one line of action. They are written in the axes of one of the closure's
frames, the *basis*; on the other side they are turned by the rotation between the links (a rigid closure needs
none: its frames coincide).

Velocity terms: a row that is constant in frame A sees the relative velocity (ω_r, u) of B on A accelerate by [Δα −
ω_A×ω_r; Δa − 2ω_A×u]; constant in frame B, by [Δα − ω_B×ω_r; Δa − (ω_A + ω_B)×u], Δ being the difference of
classical accelerations at B's origin. On a closed loop (ω_r, u) lies in the closure's motion space: only those
parts are computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Field, Force, Motion, power
from spanloop.math.vector3 import ZERO3, add, cross, dot, subtract
from spanloop.topology.paths import point, relative_pose, rotation
from spanloop.types import Scalar

A, B, BOTH, LINK = "a", "b", "both", "link"


@dataclass(frozen=True)
class Row:
    """One constraint at a state."""

    number: int
    on_a: Force  # wrench on link a, at its origin in its axes
    on_b: Force
    bias: Scalar


def rows(mechanism, here, closure, basis: str, ground: Field) -> list[Row]:
    """All rows of a closure; `basis` is the frame in whose axes they are written (see `bases`)."""
    a, b = closure.a, closure.b
    turn_a, turn_b = a.transform().rotation, b.transform().rotation  # closure frame to link axes
    if basis == LINK:  # a ball: any axes will do, so those of link b
        into_b, space = Rotation(), _space(mechanism, here, closure)
        into_a = rotation(mechanism, here, b.link, a.link)
    elif basis == BOTH:
        into_a, into_b, space = turn_a, turn_b, _space(mechanism, here, closure)
    elif basis == A:
        into_a, into_b = turn_a, rotation(mechanism, here, a.link, b.link) @ turn_a
        space = _space(mechanism, here, closure)
    else:
        into_b, into_a = turn_b, rotation(mechanism, here, b.link, a.link) @ turn_b
        space = _space(mechanism, here, closure)
    at_a = point(mechanism, here, b.position, b.link, a.link) if closure.slides else a.position
    carrier, relative = _velocity(mechanism, here, closure, basis, into_a, into_b, at_a)
    rates = _space_rate(mechanism, here, closure, relative)
    out = []
    for number, w, rate in zip(closure.rows, space, rates, strict=True):
        force_b, force_a = w.turned(into_b), -w.turned(into_a)
        bias = rate + _drift(here, b.link, force_b, b.position, ground) + _drift(here, a.link, force_a, at_a, ground)
        bias = bias - power(_coriolis(carrier, relative, basis), w)
        out.append(Row(number, _at_origin(force_a, at_a), _at_origin(force_b, b.position), bias))
    return out


def basis_of(mechanism, closure, dropped) -> str:
    """The axes in which a closure's rows cost least.

    Rows were dropped by their number in the child's axes, so other axes may serve only where that means the same.
    """
    kind, link = closure.kind, closure.b.link
    gone = [closure.rows.index(r) for r in closure.rows if r in dropped]
    on_free = link >= 0 and mechanism.links[link].floats
    if kind.name == "spherical" and on_free and not gone and not closure.switchable:
        return LINK
    if not closure.turns:
        return BOTH
    if not kind.symmetric_space or on_free:
        return B
    return A if _even(closure, gone) else B


def _even(closure, gone: list[int]) -> bool:
    """Are the rows that are gone the same seen from the parent: about and along x just as y?"""
    space = closure.kind.constraint_space(closure.kind.neutral())
    lost = {tuple(space[k]).index(1.0) for k in gone if 1.0 in tuple(space[k])}
    return all((x in lost) == (x + 1 in lost) for x in (0, 3)) and len(lost) == len(gone)


def _space(mechanism, here, closure) -> tuple[Force, ...]:
    if not closure.kind.constant_space:
        return closure.kind.closure_space(relative_pose(mechanism, here, closure))
    return closure.kind.constraint_space(closure.kind.neutral())


def _space_rate(mechanism, here, closure, relative: Motion) -> tuple[Scalar, ...]:
    if not closure.kind.constant_space:
        return closure.kind.closure_space_rate(relative_pose(mechanism, here, closure), relative)
    return (0.0,) * len(closure.rows)


def _at_origin(f: Force, at) -> Force:
    """A wrench at a point of a link, seen at the link's origin."""
    return Force(add(f.angular, cross(at, f.linear)), f.linear)


def _drift(here, link: int, f: Force, at, ground: Field) -> Scalar:
    """The acceleration along a wrench at a point of a link when no joint accelerates."""
    field = ground if link < 0 else here[link].field
    return dot(f.linear, field.at(at)) + dot(f.angular, field.alpha)


def _velocity(mechanism, here, closure, basis: str, into_a: Rotation, into_b: Rotation, at_a):
    """Angular velocity of frame A, and the velocity of B relative to A as far as the closure leaves it free; basis
    axes."""
    if not (closure.turns or closure.slides) or closure.kind.name == "spherical":
        return ZERO3, Motion()
    a, b = closure.a, closure.b
    spin_a = here[a.link].field.omega if a.link >= 0 else ZERO3
    spin_b = here[b.link].field.omega if b.link >= 0 else ZERO3
    carrier = into_a.T @ spin_a
    turning = subtract(into_b.T @ spin_b, carrier) if closure.turns else ZERO3
    sliding = ZERO3
    if closure.slides:
        sliding = subtract(
            into_b.T @ _point_velocity(here, b.link, b.position), into_a.T @ _point_velocity(here, a.link, at_a)
        )
    free = [True] * 6
    if closure.kind.symmetric_space:
        space = [tuple(s) for s in closure.kind.motion_space(closure.kind.neutral())]
        free = [any(s[k] for s in space) for k in range(6)]
    angular = tuple(x if free[k] else 0.0 for k, x in enumerate(turning))
    linear = tuple(x if free[3 + k] else 0.0 for k, x in enumerate(sliding))
    return carrier, Motion(angular, linear)  # type: ignore[arg-type]


def _point_velocity(here, link: int, at):
    if link < 0:
        return ZERO3
    V = here[link].V
    return add(V.linear, cross(V.angular, at))


def _coriolis(carrier, relative: Motion, basis: str) -> Motion:
    twice = add(carrier, carrier)
    if basis == B:
        twice = add(twice, relative.angular)
    return Motion(cross(carrier, relative.angular), cross(twice, relative.linear))
