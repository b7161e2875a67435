"""What closure rows are told beside the accelerations of their links: nothing but the velocities' share, feedback of
their errors, or an error that is to be taken away.

Every class answers for a row of a closure and for a gear; the acceleration along it that the forces must undo.
"""

from __future__ import annotations

from spanloop.math.small import total
from spanloop.math.spatial import power
from spanloop.topology.paths import relative_pose
from spanloop.types import Scalar


class Motion:
    """The velocities' share alone: loops that are closed stay closed."""

    child_axes = False  # must rows be written in the axes in which errors are told?

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return row.bias

    def of_gear(self, m, here, world, gear) -> Scalar:
        return 0.0


class Feedback:
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
