"""What impulses on links change at once: velocities of all joints and of those links, loops closed. O(n), without M.

    Δv = Y Jᵀ p,   ΔV = J Y Jᵀ p,   Y = M⁻¹ − M⁻¹ Cᵀ (C M⁻¹ Cᵀ)⁺ C M⁻¹

p: impulses on links, J: velocities of those links from v, C: closure rows. It is the acceleration of the mechanism at
rest, without gravity and springs, under forces p: the sweeps are those of elimination, whose factors depend on q alone.
The columns of J Y Jᵀ between contacts are the Delassus matrix.
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.elimination import closed_sweeps, joint_accelerations
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.tree.link_motion import placed
from spanloop.algorithms.tree.newton_euler import project
from spanloop.math.spatial import Field, Force, Motion, combined
from spanloop.math.vector3 import ZERO3
from spanloop.sweeps import Program, Values, inward, outward
from spanloop.types import Scalar


def impulse_response(mechanism, frames: tuple[str, ...], redundancy: Redundancy | None = None) -> Program:
    """(Δv (nv,), ΔV (6 a link)) for impulses (6 a link) on the links that carry these frames, in order of their number.

    Impulses [N m s; N s] and ΔV [rad/s; m/s] are at the links' origins, in their axes.
    """
    links = carrying_links(mechanism, frames)
    active = {n: size for n, size in closure_kinematics.extra_inputs(mechanism).items() if n == "active"}
    sizes = active | {"impulse": 6 * len(links)}
    places = {i: tuple(range(6 * k, 6 * k + 6)) for k, i in enumerate(links)}

    def result(m, here, world) -> list:
        return joint_accelerations(m, here, world) + [x for i in links for x in here[i].a.six]

    return Program(
        "impulse_response",
        ("q", *sizes),
        (
            *placed(()),
            outward(struck),
            *closed_sweeps(mechanism, redundancy or Redundancy(), NoBias(), Field(ZERO3)),
        ),
        result,
        (mechanism.nv + 6 * len(links),),
        regroup=True,
        sizes=sizes,
        blocks={"impulse": [places.get(i, ()) for i in range(len(mechanism.links))]},
    )


def link_velocities(mechanism, frames: tuple[str, ...]) -> Program:
    """V (6 a link) of the links that carry these frames, at their origins in their axes, in order of their number."""
    links = carrying_links(mechanism, frames)

    def move(link, here, parent) -> Values:
        """V = φ* V₋ + S v."""
        return Values(V=here.X.T @ parent.V + combined(here.S, here.v))

    return Program(
        "link_velocities",
        ("q", "v"),
        (*placed(()), outward(move, V=Motion())),
        lambda m, here, world: [x for i in links for x in here[i].V.six],
        (6 * len(links),),
    )


def joint_impulses(mechanism, frames: tuple[str, ...]) -> Program:
    """Jᵀ p (nv,): what impulses (6 a link) on the links that carry these frames are at the joints, loops apart."""
    links = carrying_links(mechanism, frames)
    places = {i: tuple(range(6 * k, 6 * k + 6)) for k, i in enumerate(links)}

    def start(link, here, parent) -> Values:
        return Values(f=Force.of(here.impulse) if here.impulse else Force())

    return Program(
        "joint_impulses",
        ("q", "impulse"),
        (*placed(()), outward(start), inward(project, f=Force())),
        lambda m, here, world: [t for h in here for t in h.tau],
        (mechanism.nv,),
        sizes={"impulse": 6 * len(links)},
        blocks={"impulse": [places.get(i, ()) for i in range(len(mechanism.links))]},
    )


def carrying_links(mechanism, frames: tuple[str, ...]) -> list[int]:
    """Numbers of the moving links that carry these frames, each once."""
    return sorted({mechanism.anchors[name].link for name in frames} - {-1})


def struck(link, here, parent) -> Values:
    """A link at rest under the impulse on it."""
    still = (0.0,) * link.kind.nv
    z = -Force.of(here.impulse) if here.impulse else Force()
    return Values(V=Motion(), field=Field(ZERO3), z=z, v=still, tau=still, torque=still)


class NoBias:
    """Rows that stay closed: no known acceleration along them."""

    uses_child_axes = False

    def of_row(self, m, here, world, closure, row) -> Scalar:
        return 0.0

    def of_gear(self, m, here, world, gear) -> Scalar:
        return 0.0
