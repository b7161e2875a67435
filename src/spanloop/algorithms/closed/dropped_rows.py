"""The test of the rows that a kernel leaves out as redundant: the accelerations found must keep them closed, too.

Rows that depend on the others in one assembly of a mechanism may be independent in another. There the accelerations
that follow from the kept rows leave  J_d a + γ_d ≠ 0  for a dropped row d, and the kernel refuses the state. Where this
vanishes the accelerations solve the whole system, with no force along the dropped rows.

What is left of a row is compared with the accelerations and squared rates of the joints, and with the accelerations
that gravity, torques and external forces cause without loops. A loop that has drifted open, or whose velocities open
it, leaves as much as that. Rows that vanish by structure (those out of the plane of
a planar loop) cost nothing: their residual is the number 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.vector3 import is_zero, total
from spanloop.sweeps import Program, walk

RESIDUAL = 1e-8  # that a dropped row may have, relative to the accelerations
SINGLE_RESIDUAL = 1e-3  # in single precision
_NOTHING = 1e-30  # rad²/s⁴: a mechanism on which nothing acts stays at rest
_TIMES = 30.0  # how many times the misalignment of axes, and what the loops are open by, is tolerated


def dropped_row_demands(mechanism, redundancy: Redundancy, inputs: Mapping[str, Sequence[Any]], a) -> list[tuple]:
    """Pairs, the first to be less: the squared residual of each dropped row, and its bound.

    inputs: of forward dynamics; a (nv,): its answer.
    """
    if not tested_rows(redundancy):
        return []
    *residuals, squared_error, squared_rate = walk(_rows(mechanism, redundancy, a), mechanism, inputs)
    found = [(r, x) for r, x in zip(tested_rows(redundancy), residuals, strict=True) if not is_zero(x)]
    if not found:
        return []
    share = max(SINGLE_RESIDUAL if mechanism.single else RESIDUAL, _TIMES * redundancy.misaligned)
    scale, speed = _squared_scale(mechanism, redundancy, inputs, a)
    tolerance = share * share * scale + _TIMES * _TIMES * (squared_error * scale + squared_rate * speed)
    lengths = mechanism.row_lengths
    return [(x * x, (lengths[r] * lengths[r]) * tolerance) for r, x in found]


def tested_rows(redundancy: Redundancy) -> list[int]:
    """Rows that carry no force although their closure is closed, always or with some of the closures active."""
    return sorted(redundancy.dropped | redundancy.idle)


def _rows(mechanism, redundancy: Redundancy, a) -> Program:
    """J a + γ of each dropped row, and the sums of the squares of all closure errors and of their rates J v."""
    rows, jacobian = tested_rows(redundancy), closure_kinematics.closure_jacobian(mechanism)

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


def _squared_scale(mechanism, redundancy: Redundancy, inputs, a) -> tuple[Any, Any]:
    """Σ of the squares of the accelerations at hand [rad²/s⁴], and of the rates; metres as shares of lengths."""
    m, squares, speeds = mechanism, [], []
    for link in m.links:
        q, v, tau = (tuple(inputs[name][s]) for name, s in (("q", link.q), ("v", link.v), ("tau", link.v)))
        passive = link.passive_torque(q, v)
        for k, number in enumerate(range(link.v.start, link.v.stop)):
            one = 1.0 / m.dof_lengths[number]
            rate, acceleration = v[k] * one, a[number] * one
            squares += [acceleration * acceleration, (rate * rate) * (rate * rate)]
            speeds.append(rate * rate)
            if not link.driven:
                torque = (tau[k] + passive[k]) * redundancy.yields[number]
                squares.append(torque * torque)
    gravity = total(x * x for x in m.gravity) * (1.0 / (m.length * m.length))
    masses = [x.inertia.mass for x in m.links if isinstance(x.inertia.mass, float) and x.inertia.mass > 0.0]
    lightest = min(masses, default=1.0)
    for k, f in enumerate(inputs.get("forces", ())):
        load = f * (1.0 / (lightest * m.length * (m.length if k % 6 < 3 else 1.0)))
        squares.append(load * load)
    return total([gravity, *squares]) + _NOTHING, total(speeds)
