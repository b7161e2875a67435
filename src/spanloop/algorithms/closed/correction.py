"""Bringing a state back to the closed loops by the change of least kinetic energy, with the factors of elimination.

    delta = −M⁻¹Jᵀ(J M⁻¹Jᵀ)⁺ e

is the acceleration of the mechanism at rest, without gravity and springs, whose rows have the bias e: the sweeps are
those of elimination. In one kernel with forward dynamics at the same q the factors are computed once.
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics, row_bias
from spanloop.algorithms.closed.elimination import closed_sweeps, joint_rates
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_poses import placed
from spanloop.math.spatial import Field, Force, Motion
from spanloop.math.vector3 import ZERO3
from spanloop.sweeps import Program, Values, outward


def position_correction(mechanism, redundancy: Redundancy | None = None) -> Program:
    """delta (nv,) that takes the closure errors `error` (n_rows,) away, to first order at q."""
    sizes = {"error": mechanism.n_rows} | _switches(mechanism)
    return _program("position_correction", ("q",), mechanism, redundancy, sizes, row_bias.Errors(), (outward(stand),))


def velocity_correction(mechanism, redundancy: Redundancy | None = None) -> Program:
    """delta (nv,) after which v + delta keeps the loops closed at q."""
    flying = (outward(fly, V=Motion()), outward(hold))
    return _program(
        "velocity_correction", ("q", "v"), mechanism, redundancy, _switches(mechanism), row_bias.Rates(), flying
    )


def _program(name, inputs, mechanism, redundancy, sizes, told, flying) -> Program:
    return Program(
        name,
        (*inputs, *sizes),
        (
            *placed(()),
            *flying,
            outward(rest),
            *closed_sweeps(mechanism, redundancy or Redundancy(), told, Field(ZERO3)),
        ),
        result=joint_rates,
        shape=(mechanism.nv,),
        regroup=True,
        sizes=sizes,
    )


def _switches(mechanism) -> dict[str, int]:
    return {name: size for name, size in closure_kinematics.extra_inputs(mechanism).items() if name == "active"}


def stand(link, here, parent) -> Values:
    """A link that does not move."""
    return Values(V=Motion())


def hold(link, here, parent) -> Values:
    """The joint's rates, kept for the gears."""
    return Values(moving=here.v)


def rest(link, here, parent) -> Values:
    """A link at rest that nothing pushes."""
    still = (0.0,) * link.kind.nv
    return Values(field=Field(ZERO3), z=Force(), v=still, tau=still, torque=still)
