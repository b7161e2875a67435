"""The test of the rows that a kernel drops as redundant: the accelerations found must keep them closed, too.

Rows that depend on the others in one assembly of a mechanism may be independent in another. There the accelerations
that follow from the kept rows leave  J_d a + γ_d ≠ 0  for a dropped row d, and the kernel refuses the state. Where this
vanishes the accelerations solve the whole system, with no force along the dropped rows.

What is left of a row is compared with the accelerations and squared rates of the joints, and with the accelerations
that gravity, torques and external forces cause without loops. Rows that vanish by structure (those out of the plane of
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
_NOTHING = 1e-30  # rad²/s⁴: a mechanism on which nothing acts stays at rest
_MISALIGNMENTS = 30.0  # how many times the misalignment of the dropped rows is tolerated


def dropped_row_demands(mechanism, redundancy: Redundancy, inputs: Mapping[str, Sequence[Any]], a) -> list[tuple]:
    """Pairs, the first to be less: the squared residual of each dropped row, and its bound.

    inputs: of forward dynamics; a (nv,): its answer.
    """
    if not redundancy.dropped:
        return []
    share = max(RESIDUAL, _MISALIGNMENTS * redundancy.misaligned)
    found = [(r, x) for r, x in zip(*_residuals(mechanism, redundancy, inputs, a), strict=True) if not is_zero(x)]
    if not found:
        return []
    lengths, scale = mechanism.row_lengths, _squared_scale(mechanism, redundancy, inputs, a)
    return [(x * x, (share * share * lengths[r] * lengths[r]) * scale) for r, x in found]


def _residuals(mechanism, redundancy: Redundancy, inputs, a) -> tuple[list[int], list]:
    """The numbers of the dropped rows, and J a + γ of each."""
    rows = sorted(redundancy.dropped)
    jacobian = closure_kinematics.closure_jacobian(mechanism)

    def residuals(m, here, world):
        flat, bias = jacobian.result(m, here, world), closure_kinematics.loop_bias(m, here)
        n = m.nv
        return [total([bias[r], *(flat[r * n + k] * x for k, x in enumerate(a))]) for r in rows]

    program = Program("dropped_rows", ("q", "v"), placed(()), residuals, (len(rows),))
    return rows, walk(program, mechanism, {name: inputs[name] for name in ("q", "v")})


def _squared_scale(mechanism, redundancy: Redundancy, inputs, a) -> Any:
    """Σ of the squares of the accelerations at hand [rad/s⁴, lengths as shares of the mechanism's]."""
    m, squares = mechanism, []
    for link in m.links:
        q, v, tau = (tuple(inputs[name][s]) for name, s in (("q", link.q), ("v", link.v), ("tau", link.v)))
        passive = link.passive_torque(q, v)
        for k, number in enumerate(range(link.v.start, link.v.stop)):
            one = 1.0 / m.dof_lengths[number]
            rate, acceleration = v[k] * one, a[number] * one
            squares += [acceleration * acceleration, (rate * rate) * (rate * rate)]
            if not link.driven:
                torque = (tau[k] + passive[k]) * redundancy.yields[number]
                squares.append(torque * torque)
    gravity = total(x * x for x in m.gravity) * (1.0 / (m.length * m.length))
    masses = [x.inertia.mass for x in m.links if isinstance(x.inertia.mass, float) and x.inertia.mass > 0.0]
    lightest = min(masses, default=1.0)
    for k, f in enumerate(inputs.get("forces", ())):
        load = f * (1.0 / (lightest * m.length * (m.length if k % 6 < 3 else 1.0)))
        squares.append(load * load)
    return total([gravity, *squares]) + _NOTHING
