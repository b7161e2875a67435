"""One system of a closed topology by itself: steps A to C, and step E, as programs of their own.

[Rodriguez, Jain & Kreutz, section 3]. Neither depends on the constraints or on the other system. A new object compiles
its own two programs, and those of the arms stay; a new set of constraints between the same points compiles step D alone
(constraint_step.py). sl.ClosedTopology combines them.

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| points | C_k | names of frames | points of closure | |
| T | – | Transform by link | pose | world |
| V, lam, zeta | V, α̂ᶠ, – | Motion by link | velocity, free acceleration beyond ζ, ζ | link |
| omega | Ω | six Motions by two links | closure_admittance.py | links |
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.algorithms.papers.lilly_orin.general_joints import SIX
from spanloop.algorithms.papers.rodriguez_jain_kreutz.closed_topology import free_accelerations
from spanloop.algorithms.papers.rodriguez_jain_kreutz.closure_admittance import point_admittances
from spanloop.algorithms.papers.rodriguez_jain_kreutz.filter_sweeps import (
    ADMITTANCES,
    FACTORS,
    GAINS,
    MassFactors,
)
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.kinematics import poses
from spanloop.algorithms.tree.link_motion import bias_sweep, placed
from spanloop.math.spatial import Field, Force, Motion, Transform
from spanloop.math.vector3 import add, total
from spanloop.sweeps import Program, Values, at_once, outward
from spanloop.sweeps.tested_pivots import PivotTest


def free_response(mechanism, points: Sequence[str], loaded=()) -> Program:
    """Steps A to C, for given q (nq,), v (nv,), tau (nv,).

    In turn: β̇ᶠ (nv,); of each point its pose (3, 4), velocity (6,) and free acceleration (6,), which is classical;
    Λ (6k, 6k): accelerations of the k points due to forces at them. [angular; linear], world axes.
    """
    k = len(points)

    def result(m, here, world) -> list:
        joints = [h.tau if k.driven else h.free_accelerations for k, h in zip(m.links, here, strict=True)]
        out = [x for joint in joints for x in joint]
        for name in points:
            out += _point_motion(m, here, name)
        links = {m.anchors[name].link for name in points}
        omega = point_admittances(m, here, links)
        blocks = [[_block(m, here, omega, a, b) for b in points] for a in points]
        for row in blocks:
            out += [block[i][j] for i in range(6) for block in row for j in range(6)]
        return out

    tested = PivotTest(mechanism)
    return Program(
        "free_response",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        (
            *placed(loaded),
            *tested.sweeps,
            bias_sweep(mechanism),
            outward(fly, V=Motion()),
            *FACTORS,
            at_once(free_accelerations),
            ADMITTANCES,
            poses(),
        ),
        result,
        (mechanism.nv + 24 * k + 36 * k * k,),
        regroup=True,
        loaded=loaded,
        demands=tested.demands,
    )


def forced_response(mechanism, points: Sequence[str]) -> Program:
    """Step E: β̇ᵟ (nv,) for given q (nq,) and forces `push` (6k,) at the points, world axes."""

    def forced_accelerations(m, here, world) -> Values:
        """β̇ᵟ: a filter takes the forces at the points, seen at their links, as loads; driven joints do not yield."""
        loads: dict[int, Force] = {}
        for n, name in enumerate(points):
            anchor = m.anchors[name]
            if anchor.link >= 0:
                f = Force.of(world.push[6 * n : 6 * n + 6]).turned(here[anchor.link].T.rotation.T)
                loads[anchor.link] = loads.get(anchor.link, Force()) - Transform(translation=anchor.position) @ f
        factors = MassFactors(m, here)
        found = factors.response(factors.residuals(force=loads)).accelerations
        own = [(0.0,) * k.kind.nv if k.driven else x for k, x in zip(m.links, found, strict=True)]
        return Values(accelerations=own)

    sizes = {"push": 6 * len(points)}
    tested = PivotTest(mechanism)
    return Program(
        "forced_response",
        ("q", "push"),
        (
            *placed(()),
            *tested.sweeps,
            poses(),
            GAINS,
            at_once(forced_accelerations),
        ),
        lambda m, here, world: [x for joint in world.accelerations for x in joint],
        (mechanism.nv,),
        regroup=True,
        sizes=sizes,
        demands=tested.demands,
    )


def _point_motion(m, here, name: str) -> list:
    """Pose, velocity and free acceleration of a point; gravity taken out again."""
    anchor = m.anchors[name]
    if anchor.link < 0:
        own = anchor.transform()
        R, p = own.rotation.matrix(), own.translation
        return [*R[0], p[0], *R[1], p[1], *R[2], p[2], *(0.0,) * 12]
    h = here[anchor.link]
    at = h.T @ anchor.transform()
    R, p = at.rotation.matrix(), at.translation
    V = Transform(translation=anchor.position).T @ h.V
    whole = Field(h.field.omega, add(h.zeta.alpha, h.lam.angular), add(h.zeta.origin, h.lam.linear))
    a = Motion(whole.alpha, whole.at(anchor.position)).turned(h.T.rotation)
    falling = add(a.linear, m.gravity)
    return [*R[0], p[0], *R[1], p[1], *R[2], p[2], *V.turned(h.T.rotation), *a.angular, *falling]


def _block(m, here, omega: dict, a: str, b: str) -> list[list]:
    """Λ between two points, 6 × 6, world axes."""
    one, other = m.anchors[a], m.anchors[b]
    if (one.link, other.link) not in omega:
        return [[0.0] * 6 for _ in range(6)]
    columns = omega[one.link, other.link]
    R, Q = here[one.link].T.rotation, here[other.link].T.rotation
    out = []
    for unit in SIX:
        f = Transform(translation=other.position) @ unit.turned(Q.T)
        moved = Motion.of([total(c * x for c, x in zip(row, f, strict=True)) for row in zip(*columns, strict=True)])
        out.append(tuple((Transform(translation=one.position).T @ moved).turned(R)))
    return [list(row) for row in zip(*out, strict=True)]
