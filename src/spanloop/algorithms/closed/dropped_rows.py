"""The test of the rows that a kernel leaves out as redundant: the accelerations found must keep them closed, too.

Rows that depend on the others in one assembly of a mechanism may be independent in another. There the accelerations
that follow from the kept rows leave  J_d a + γ_d ≠ 0  for a dropped row d, and the kernel refuses the state. Where this
vanishes the accelerations solve the whole system, with no force along the dropped rows.

What is left of a row is compared with the accelerations and squared rates of the joints, and with the accelerations
that gravity, torques and external forces cause without loops. A loop that has drifted open, or whose velocities open
it, leaves as much as that. Rows that vanish by structure (those out of the plane of
a planar loop) cost nothing: their residual is the number 0.

Where masses of links differ by more than UNEQUAL, the kept rows are tested in the same way: the light links lose digits
to the heavy ones, all methods show that loss as a residual of rows (forces balance to rounding), and a residual beyond
LOST_DIGITS of the accelerations, squared rates and gravity is refused. [docs/accuracy.md]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree.link_motion import placed
from spanloop.errors import Reason, Refusal
from spanloop.math.vector3 import is_zero, total
from spanloop.sweeps import Program, walk
from spanloop.sweeps.program import Demand

RESIDUAL = 1e-8  # that a dropped row may have, relative to the accelerations
SINGLE_RESIDUAL = 1e-3  # in single precision
UNEQUAL = 1e6  # ratio of the masses of two links beyond which all rows are tested
LOST_DIGITS = 1e-9  # that a kept row may leave of the accelerations then
_NOTHING = 1e-30  # rad²/s⁴: a mechanism on which nothing acts stays at rest
_TIMES = 30.0  # how many times the misalignment of axes, and what the loops are open by, is tolerated


UNEQUAL_MASSES = Refusal(
    Reason.ROUNDING,
    "masses of links differ by more than 1e6, and the light links lose too many digits to the heavy ones: the "
    "accelerations found open a loop. Give the light ones more mass, or lock their joints: model.lock(...)",
)


def dropped_row_demands(mechanism, redundancy: Redundancy, inputs: Mapping[str, Sequence[Any]], a) -> list[tuple]:
    """Pairs, the first to be less: the squared residual of each dropped row, and its bound.

    inputs: of forward dynamics; a (nv,): its answer.
    """
    if not tested_rows(redundancy):
        return []
    program = _rows(mechanism, tested_rows(redundancy), a)
    *residuals, squared_error, squared_rate = walk(program, mechanism, inputs)
    found = [(r, x) for r, x in zip(tested_rows(redundancy), residuals, strict=True) if not is_zero(x)]
    if not found:
        return []
    share = max(SINGLE_RESIDUAL if mechanism.single else RESIDUAL, _TIMES * redundancy.misaligned)
    scale, speed = _squared_scale(mechanism, redundancy, inputs, a)
    tolerance = share * share * scale + _TIMES * _TIMES * (squared_error * scale + squared_rate * speed)
    lengths = mechanism.row_lengths
    return [(x * x, (lengths[r] * lengths[r]) * tolerance) for r, x in found]


def kept_row_demands(mechanism, redundancy: Redundancy, inputs: Mapping[str, Sequence[Any]], a) -> list[Demand]:
    """The same of all other rows, for a mechanism of very unequal masses."""
    if mechanism.single:
        return []
    left_out = {*tested_rows(redundancy), *mechanism.given_rows}
    rows = [r for r in range(mechanism.n_rows) if r not in left_out]
    *residuals, squared_error, squared_rate = walk(_rows(mechanism, rows, a), mechanism, inputs)
    scale, speed = _squared_scale(mechanism, redundancy, inputs, a, with_torques=False)
    tolerance = LOST_DIGITS**2 * scale + _TIMES * _TIMES * (squared_error * scale + squared_rate * speed)
    squares = [(x * x, mechanism.row_lengths[r] ** 2) for r, x in zip(rows, residuals, strict=True) if not is_zero(x)]
    return [Demand.of(square, size * tolerance, UNEQUAL_MASSES) for square, size in squares]


def masses_differ(mechanism) -> bool:
    """Do masses of two links differ by more than UNEQUAL? The mechanism's inertias must not be regrouped."""
    masses = [x.inertia.mass for x in mechanism.links if x.inertia.mass > 0.0]
    return bool(masses) and max(masses) > UNEQUAL * min(masses)


def tested_rows(redundancy: Redundancy) -> list[int]:
    """Rows that carry no force although their closure is closed, always or with some of the closures active."""
    return sorted(redundancy.dropped | redundancy.idle)


def _rows(mechanism, rows: Sequence[int], a) -> Program:
    """J a + γ of each of these rows, and the sums of the squares of all closure errors and of their rates J v."""
    jacobian = closure_kinematics.closure_jacobian(mechanism)

    def result(m, here, world):
        flat, bias, n = jacobian.result(m, here, world), closure_kinematics.loop_bias(m, here), m.nv
        closed = closure_kinematics.closed_masks(m, world)
        residuals = [total([bias[r], *(flat[r * n + k] * x for k, x in enumerate(a))]) for r in rows]
        residuals = [x * closed[r] if r in closed else x for r, x in zip(rows, residuals, strict=True)]
        if all(map(is_zero, residuals)):
            return [*residuals, 0.0, 0.0]
        v, lengths = [x for h in here for x in h.v], m.row_lengths
        rates = [total(flat[r * n + k] * x for k, x in enumerate(v)) * (1.0 / lengths[r]) for r in rows]
        rates = [x * closed[r] if r in closed else x for r, x in zip(rows, rates, strict=True)]
        squared = total(closure_kinematics.squared_errors(m, here, world))
        return [*residuals, squared, total(x * x for x in rates)]

    sizes = {name: n for name, n in closure_kinematics.extra_inputs(mechanism).items() if name == "active"}
    return Program("dropped_rows", ("q", "v"), placed(()), result, (len(rows) + 2,), sizes=sizes)


def _squared_scale(mechanism, redundancy: Redundancy, inputs, a, with_torques: bool = True) -> tuple[Any, Any]:
    """Σ of the squares of the accelerations at hand [rad²/s⁴], and of the rates; metres as shares of lengths."""
    m, squares, speeds, yields = mechanism, [], [], redundancy.yields()
    for link in m.links:
        q, v, tau = (tuple(inputs[name][s]) for name, s in (("q", link.q), ("v", link.v), ("tau", link.v)))
        passive = link.passive_torque(q, v)
        for k, number in enumerate(range(link.v.start, link.v.stop)):
            one = 1.0 / m.dof_lengths[number]
            rate, acceleration = v[k] * one, a[number] * one
            squares += [acceleration * acceleration, (rate * rate) * (rate * rate)]
            speeds.append(rate * rate)
            if with_torques and not link.driven:
                torque = (tau[k] + passive[k]) * yields[number]
                squares.append(torque * torque)
    gravity = total(x * x for x in m.gravity) * (1.0 / (m.length * m.length))
    masses = [x.inertia.mass for x in m.links if isinstance(x.inertia.mass, float) and x.inertia.mass > 0.0]
    lightest = min(masses, default=1.0)
    for k, f in enumerate(inputs.get("forces", ()) if with_torques else ()):
        load = f * (1.0 / (lightest * m.length * (m.length if k % 6 < 3 else 1.0)))
        squares.append(load * load)
    return total([gravity, *squares]) + _NOTHING, total(speeds)
