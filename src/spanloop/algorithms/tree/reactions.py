"""The force that every joint passes to its child body, all six components, for a motion that is known. O(n).

Newton-Euler as for inverse dynamics, on bodies as the user has them: none is fused, no inertia is moved, and of each
force nothing is projected away. Closure forces and others come in as external forces.
"""

from __future__ import annotations

from spanloop.algorithms.quantities.kinematics import poses
from spanloop.algorithms.tree.newton_euler import move
from spanloop.algorithms.tree.placing import placed
from spanloop.math.small import negate
from spanloop.math.spatial import Field, Force
from spanloop.sweeps import Program, Values, inward, outward


def reactions(mechanism, loaded=()) -> Program:
    """[torque; force] (n_joints, 6) on each joint's child, at its body's origin in world axes; for given q, v, a."""
    still = Field((0.0, 0.0, 0.0), origin=negate(mechanism.gravity))

    def result(m, here, world):
        return [x for h in here for x in h.f.turned(h.T.rotation)]

    return Program(
        "reactions",
        ("q", "v", "a") + (("forces",) if loaded else ()),
        (*placed(loaded), poses(), outward(move, field=still), inward(collect, f=Force())),
        result,
        (len(mechanism.links), 6),
        loaded=loaded,
        whole=True,
    )


def collect(link, here, arriving) -> tuple[Values, Values]:
    """The force through the joint: what the link takes and what it passes on."""
    f = here.f + arriving.f
    return Values(f=f), Values(f=here.X @ f)
