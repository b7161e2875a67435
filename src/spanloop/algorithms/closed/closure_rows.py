"""The rows of a closure at a state: a wrench on each of its two links, and the known acceleration along it.

Row r holds  K_bᵀ a_b + K_aᵀ a_a + γ = 0  for the accelerations of its two links beyond ζ, those while no joint
accelerates (tree/link_motion.py); its force f acts as K f on both. [docs/theory/elimination.md, (2) and (4)]
The wrenches are equal and opposite with one line of action. They are written in the axes of one of the closure's
frames, the *basis*; on the other side they are turned by the rotation between the links (a rigid closure needs
none: its frames coincide).

Velocity terms: a row that is constant in frame A sees the relative velocity (ω_r, u) of B on A accelerate by [Δα −
ω_A×ω_r; Δa − 2ω_A×u]; constant in frame B, by [Δα − ω_B×ω_r; Δa − (ω_A + ω_B)×u], Δ being the difference of
classical accelerations at B's origin. On a closed loop (ω_r, u) lies in the closure's motion space: only those
parts are computed.

What else is known along a row is its *bias*: velocity terms alone (forward dynamics), feedback of the closure error, or
the error itself (corrections of position and velocity).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Field, Force, Motion, power
from spanloop.math.vector3 import ZERO3, add, cross, dot, negate, subtract, total
from spanloop.topology.tree_paths import point, relative_pose, rotation
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
    """All rows of a closure; basis: the frame in whose axes they are written (`basis_of`), ground: ζ of the world."""
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
    return A if not gone or (closure.keeps_axis and _even(closure, gone)) else B


def _even(closure, gone: list[int]) -> bool:
    """The rows that are gone are the same seen from the parent, whose z axis is the child's: about and along x just as
    y."""
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


# ---- what is known along a row


class VelocityBias:
    """Velocity terms alone: loops that are closed stay closed."""

    def __init__(self, uses_child_axes: bool = False):
        self.uses_child_axes = uses_child_axes  # rows are written in the axes of the child frame, as errors are

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return row.bias

    def of_gear(self, m, here, world, gear) -> Scalar:
        return 0.0


class FeedbackBias:
    """Velocity terms and negative feedback of the closure error: gains[0] ė + gains[1] e [Lilly & Orin, section 4]."""

    uses_child_axes = True

    def of_row(self, m, here, world, closure, row) -> Scalar:
        if row.number in m.given_rows:
            return row.bias
        error = closure.kind.closure_error(relative_pose(m, here, closure))[closure.rows.index(row.number)]
        pull = world.gains[0] * _row_rate(here, closure, row)
        return row.bias + pull + (0.0 if error is None else world.gains[1] * error)

    def of_gear(self, m, here, world, gear) -> Scalar:
        error = gear.along([here[i].q[0] for i, _ in gear.ends]) - gear.offset
        rate = gear.along([here[i].v[0] for i, _ in gear.ends])
        return world.gains[0] * rate + world.gains[1] * error


class PositionError:
    """The closure error, for every row an entry of the input `error` (24)."""

    uses_child_axes = True

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return 0.0 if row.number in m.given_rows else world.error[row.number]

    def of_gear(self, m, here, world, gear) -> Scalar:
        return world.error[gear.row]


class RowResidual:
    """What a solution leaves along the rows, for every row an entry of the input `error` (refinement.py)."""

    uses_child_axes = True

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return world.error[row.number]

    def of_gear(self, m, here, world, gear) -> Scalar:
        return world.error[gear.row]


class VelocityError:
    """Velocities along the rows, which closed loops do not have (24); `moving` holds the joints' rates."""

    uses_child_axes = False

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return 0.0 if row.number in m.given_rows else _row_rate(here, closure, row)

    def of_gear(self, m, here, world, gear) -> Scalar:
        return gear.along([here[i].moving[0] for i, _ in gear.ends])


class ImpactBias(VelocityError):
    """Velocities along the rows and, of rows that can be switched, the share `restitution` of them that is reversed."""

    uses_child_axes = True

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return _and_reversed(m, world, row.number, super().of_row(m, here, world, closure, row))

    def of_gear(self, m, here, world, gear) -> Scalar:
        return _and_reversed(m, world, gear.row, super().of_gear(m, here, world, gear))


def _and_reversed(m, world, r: int, rate: Scalar) -> Scalar:
    """A rate and the share of it that an impact reverses."""
    switched = m.switched_rows
    return rate + world.restitution[switched.index(r)] * rate if r in switched else rate


def _row_rate(here, closure, row) -> Scalar:
    """Velocity along a row."""
    ends = ((closure.a.link, row.on_a), (closure.b.link, row.on_b))
    return total(power(here[link].V, wrench) for link, wrench in ends if link >= 0)


@dataclass(frozen=True)
class KeptRows:
    """Which rows are left out, and the bias of the others."""

    dropped: frozenset[int] = frozenset()
    bias: VelocityBias | FeedbackBias = field(default_factory=VelocityBias)

    @staticmethod
    def of(redundancy: Redundancy, feedback: bool) -> KeptRows:
        """All rows but the redundant ones, with feedback of their errors or without."""
        return KeptRows(redundancy.dropped, FeedbackBias() if feedback else VelocityBias())

    def sizes(self, mechanism) -> dict[str, int]:
        """Inputs of the dynamics that belong to closures, and their sizes."""
        return closure_kinematics.extra_inputs(mechanism) | ({"gains": 2} if self.bias.uses_child_axes else {})

    def needs_velocities(self, mechanism) -> bool:
        """The rows depend on velocities of the links' origins."""
        return self.bias.uses_child_axes or any(c.slides for c in mechanism.closures)


def known_rows(m, here, world, closure, kept: KeptRows, child_axes: bool = False) -> Iterator[tuple[Row, Scalar]]:
    """The rows of a closure that are kept, each with γ: the acceleration of ζ and its bias along it, less a given one.

    child_axes: write them in the axes of the closure's child frame.
    """
    given = closure_kinematics.given_accelerations(m, world)
    own = child_axes or kept.bias.uses_child_axes
    for row in rows(m, here, closure, B if own else basis_of(m, closure, kept.dropped), Field(ZERO3)):
        if row.number in kept.dropped:
            continue
        known = kept.bias.of_row(m, here, world, closure, row) - given.get(row.number, 0.0)
        for link, wrench in ((closure.a.link, row.on_a), (closure.b.link, row.on_b)):
            zeta = here[link].zeta.motion if link >= 0 else Motion(linear=negate(m.gravity))
            known = known + power(zeta, wrench)
        yield row, known
