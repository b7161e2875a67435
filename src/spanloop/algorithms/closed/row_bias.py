"""What closure rows are told beside the accelerations of their links: nothing but the velocities' share, feedback of
their errors, or an error that is to be taken away.

Every class answers for a row of a closure and for a gear; the acceleration along it that the forces must undo.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import B, Row, basis_of, rows
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.math.spatial import Field, Motion, power
from spanloop.math.vector3 import ZERO3, negate, total
from spanloop.topology.paths import relative_pose
from spanloop.types import Scalar


class MotionBias:
    """The velocities' share alone: loops that are closed stay closed."""

    child_axes = False  # must rows be written in the axes in which errors are told?

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return row.bias

    def of_gear(self, m, here, world, gear) -> Scalar:
        return 0.0


class FeedbackBias:
    """Negative feedback of the error and its rate: gains[0] ė + gains[1] e [Lilly & Orin, section 5]."""

    child_axes = True

    def of_row(self, m, here, world, closure, row) -> Scalar:
        if row.number in m.given_rows:
            return row.bias
        error = closure.kind.closure_error(relative_pose(m, here, closure))[closure.rows.index(row.number)]
        pull = world.gains[0] * _row_rate(here, closure, row)
        return row.bias + pull + (0.0 if error is None else world.gains[1] * error)

    def of_gear(self, m, here, world, gear) -> Scalar:
        error = here[gear.link].q[0] - gear.ratio * here[gear.source].q[0] - gear.offset
        rate = here[gear.link].v[0] - gear.ratio * here[gear.source].v[0]
        return world.gains[0] * rate + world.gains[1] * error


class Errors:
    """Errors of position, given for every row as the input `error`."""

    child_axes = True

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return 0.0 if row.number in m.given_rows else world.error[row.number]

    def of_gear(self, m, here, world, gear) -> Scalar:
        return world.error[gear.row]


class Rates:
    """Velocities along the rows, which closed loops do not have; `moving` holds the joints' rates."""

    child_axes = False

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return 0.0 if row.number in m.given_rows else _row_rate(here, closure, row)

    def of_gear(self, m, here, world, gear) -> Scalar:
        return here[gear.link].moving[0] - gear.ratio * here[gear.source].moving[0]


def _row_rate(here, closure, row) -> Scalar:
    """Velocity along a row."""
    ends = ((closure.a.link, row.on_a), (closure.b.link, row.on_b))
    return total(power(here[link].V, wrench) for link, wrench in ends if link >= 0)


# ---- Rows of closures with all that is known of the acceleration along them, beside ζ of drifting.py.


@dataclass(frozen=True)
class Telling:
    """Which rows are left out, and what the others are told: velocities' share alone, or feedback of their errors."""

    dropped: frozenset[int] = frozenset()
    told: MotionBias | FeedbackBias = field(default_factory=MotionBias)

    @staticmethod
    def of(redundancy: Redundancy, feedback: bool) -> Telling:
        return Telling(redundancy.dropped, FeedbackBias() if feedback else MotionBias())

    def sizes(self, mechanism) -> dict[str, int]:
        """Inputs of the dynamics that belong to closures."""
        return closure_kinematics.extra_inputs(mechanism) | ({"gains": 2} if self.told.child_axes else {})

    def needs_velocities(self, mechanism) -> bool:
        return self.told.child_axes or any(c.slides for c in mechanism.closures)


def known_rows(m, here, world, closure, telling: Telling, child_axes: bool = False) -> Iterator[tuple[Row, Scalar]]:
    """A closure's rows, each with γ: what ζ and the velocities do along it, less what is given.

    With λ, the accelerations of its two links beyond ζ, the row says K_aᵀ λ_a + K_bᵀ λ_b + γ = 0.
    child_axes: must they be written in the axes of the closure's child frame?
    """
    given = closure_kinematics.given(m, world)
    own = child_axes or telling.told.child_axes
    for row in rows(m, here, closure, B if own else basis_of(m, closure, telling.dropped), Field(ZERO3)):
        if row.number in telling.dropped:
            continue
        known = telling.told.of_row(m, here, world, closure, row) - given.get(row.number, 0.0)
        for link, wrench in ((closure.a.link, row.on_a), (closure.b.link, row.on_b)):
            drift = here[link].zeta.motion if link >= 0 else Motion(linear=negate(m.gravity))
            known = known + power(drift, wrench)
        yield row, known
