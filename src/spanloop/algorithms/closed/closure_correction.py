"""The change of a state that closes its loops and has the least kinetic energy, with the factors of elimination.

    Δ = −M⁻¹Jᵀ(J M⁻¹Jᵀ)⁺ e        (24) of docs/theory/elimination.md; `delta` in the code

is the acceleration of the mechanism at rest, without gravity and springs, whose rows have the bias e: the sweeps are
those of elimination. In one kernel with forward dynamics at the same q the factors are computed once.

With the bias (1 + restitution) u along the rows, u = J v, the same change is an impact: rows that close stop their
rates, or reverse a share of them. The forces of the rows are then impulses.
"""

from __future__ import annotations

from dataclasses import replace

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import ImpactBias, PositionError, VelocityError
from spanloop.algorithms.closed.elimination import accelerations_and_forces, closed_sweeps, joint_accelerations
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Field, Force, Motion
from spanloop.math.vector3 import ZERO3
from spanloop.sweeps import Program, Values, outward


def position_correction(mechanism, redundancy: Redundancy | None = None) -> Program:
    """delta (nv,) that takes the closure errors `error` (n_rows,) away, to first order at q."""
    sizes = {"error": mechanism.n_rows} | _switches(mechanism)
    return _program("position_correction", ("q",), mechanism, redundancy, sizes, PositionError(), (outward(stand),))


def velocity_correction(mechanism, redundancy: Redundancy | None = None) -> Program:
    """delta (nv,) after which v + delta keeps the loops closed at q.

    Its demands are the pivots of all constraint rows, each with its bound (19), where redundant rows are known.
    """
    found = _program(
        "velocity_correction", ("q", "v"), mechanism, redundancy, _switches(mechanism), VelocityError(), _MOVING
    )
    return replace(found, demands=pivots) if redundancy and redundancy.refuses_singular else found


def impact(mechanism, redundancy: Redundancy | None = None) -> Program:
    """What closing rows does to velocities at once: (delta (nv,), impulses (n_rows,), u (n_rows,)).

    delta = v⁺ − v with J v⁺ = −restitution u along the closed rows, u = J v. Impulses λ [N m s or N s], M delta = Jᵀ λ,
    act on body b in the axes of the closures' child frames; 0 for rows that are dropped or switched off. The kinetic
    energy lost is −½ Σ λ (u + u⁺). Rows with a given acceleration keep their rate.

    restitution: an input, one number for each switched row, in the order of mechanism.switched_rows. Demands are those
    of velocity_correction.
    """
    sizes = _switches(mechanism)
    if sizes:
        sizes["restitution"] = sizes["active"]
    correction = velocity_correction(mechanism, redundancy)
    found = _program("impact", ("q", "v"), mechanism, redundancy, sizes, ImpactBias(), _MOVING)
    changes = accelerations_and_forces(mechanism)

    def result(m, here, world) -> list:
        return changes(m, here, world) + closure_kinematics.row_rates(m, here)

    return replace(found, result=result, shape=(mechanism.nv + 2 * mechanism.n_rows,), demands=correction.demands)


def pivots(m, here, world) -> list:
    """Pairs (bound, pivot) of all constraint rows (19)."""
    return [x for h in here for x in h.pivot_bounds] + list(world.pivot_bounds)


def _program(name, inputs, mechanism, redundancy, sizes, row_bias, moving) -> Program:
    return Program(
        name,
        (*inputs, *sizes),
        (
            *placed(()),
            *moving,
            outward(rest),
            *closed_sweeps(mechanism, redundancy or Redundancy(), row_bias, Field(ZERO3)),
        ),
        result=joint_accelerations,
        shape=(mechanism.nv,),
        regroup=True,
        sizes=sizes,
    )


def _switches(mechanism) -> dict[str, int]:
    return {name: size for name, size in closure_kinematics.extra_inputs(mechanism).items() if name == "active"}


def stand(link, here, parent) -> Values:
    """A link that does not move."""
    return Values(V=Motion())


def keep_rates(link, here, parent) -> Values:
    """The joint's rates, kept for the couplings."""
    return Values(moving=here.v)


def rest(link, here, parent) -> Values:
    """A link at rest that nothing pushes."""
    still = (0.0,) * link.kind.nv
    return Values(field=Field(ZERO3), z=Force(), v=still, tau=still, torque=still)


_MOVING = (outward(fly, V=Motion()), outward(keep_rates))
