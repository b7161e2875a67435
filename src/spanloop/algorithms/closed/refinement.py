"""Forward dynamics by elimination, refined: for states near a singular position, where pivots have lost digits.

Elimination solves for the forces of rows in J M⁻¹Jᵀ, whose condition is the square of that of J: an error of about
1e-16/pivot, with the pivot as a share of its scale. What the answer leaves in the equations of motion themselves,

    r = τ + Jᵀf − (M θ̈ + h),    e = J θ̈ + γ,

is computed from J, not from its square. It is the right-hand side of a correction with the same factors, after which
the error is about the root of what it was. Equations: docs/theory/elimination.md, (5), (24).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.algorithms.closed import closure_kinematics, elimination
from spanloop.algorithms.closed.closure_rows import RowResidual
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree import newton_euler
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Field, Force, Motion
from spanloop.math.vector3 import ZERO3, total
from spanloop.sweeps import Program, Values, outward, walk, walked

ROUNDS = 2
Inputs = Mapping[str, Sequence[Any]]


def refined_forward_dynamics(mechanism, inputs: Inputs, loaded, redundancy: Redundancy) -> tuple[list, list]:
    """a (nv,) and the forces of the rows (n_rows,), and pairs of which the first must be less."""
    m, n = mechanism, mechanism.nv
    program = elimination.forward_dynamics(m, loaded, redundancy, with_forces=True)
    numbers, demands = walked(program, m, inputs)
    for _ in range(ROUNDS):
        a, f = numbers[:n], numbers[n:]
        needed = walk(newton_euler.inverse_dynamics(m, loaded), m, {**inputs, "a": a})
        J, left = _rows_left(m, redundancy, inputs, a)
        torque = [
            0.0 if driven else t - x + total(J[r][k] * y for r, y in enumerate(f))
            for k, (t, x, driven) in enumerate(zip(inputs["tau"], needed, _driven(m), strict=True))
        ]
        right = {**inputs, "tau": torque, "error": left, "given": [0.0] * len(m.given_rows)}
        step = walk(_correction(m, redundancy), m, right)
        numbers = [x + y for x, y in zip(numbers, step, strict=True)]
    return numbers, demands


def _rows_left(m, redundancy: Redundancy, inputs: Inputs, a) -> tuple[list, list]:
    """J (n_rows, nv), 0 in rows that are dropped, and J a + γ less what is given (n_rows,)."""
    jacobian, n = closure_kinematics.closure_jacobian(m), m.nv

    def result(m, here, world):
        flat, bias = jacobian.result(m, here, world), closure_kinematics.loop_bias(m, here)
        given, masks = closure_kinematics.given_accelerations(m, world), closure_kinematics.masks(m, world)
        rows: list = []
        for r in range(m.n_rows):
            scale = 0.0 if r in redundancy.dropped else masks.get(r, 1.0)
            J = [scale * x for x in flat[r * n : (r + 1) * n]]
            rows += [*J, scale * total([bias[r] - given.get(r, 0.0), *(flat[r * n + k] * x for k, x in enumerate(a))])]
        return rows

    sizes = closure_kinematics.extra_inputs(m)
    flat = walk(Program("rows", ("q", "v"), placed(()), result, (m.n_rows, n + 1), sizes=sizes), m, inputs)
    rows = [flat[k : k + n + 1] for k in range(0, len(flat), n + 1)]
    return [row[:n] for row in rows], [row[n] for row in rows]


def _correction(mechanism, redundancy: Redundancy) -> Program:
    """Accelerations (nv,) and forces of rows (n_rows,) for torques `tau` and accelerations `error` along the rows."""
    sizes = {"error": mechanism.n_rows} | closure_kinematics.extra_inputs(mechanism)
    return Program(
        "correction",
        ("q", "tau", *sizes),
        (
            *placed(()),
            outward(_push),
            *elimination.closed_sweeps(mechanism, redundancy, RowResidual(), Field(ZERO3)),
        ),
        elimination.accelerations_and_forces(mechanism),
        (mechanism.nv + mechanism.n_rows,),
        sizes=sizes,
    )


def _push(link, here, parent) -> Values:
    """A link at rest on which torques act alone."""
    still = (0.0,) * link.kind.nv
    return Values(field=Field(ZERO3), V=Motion(), z=Force(), v=still, torque=here.tau)


def _driven(m) -> list[bool]:
    return [link.driven for link in m.links for _ in range(link.kind.nv)]
