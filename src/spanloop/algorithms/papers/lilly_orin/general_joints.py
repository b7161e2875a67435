"""General joints at a state: motion space, constraint space, and what is known across them. [Lilly & Orin, section 2]

A joint of the tree, taken in its own direction or against it, and a closure look alike. Accelerations are those
beyond ζ, the acceleration of a body while no free joint accelerates (tree/link_motion.py). The paper's ζ₀ᵏ is another
quantity and is written with its indices: velocity terms between the reference member's origin and the tip of chain k.

| here | Lilly & Orin | shape | meaning | frame |
|---|---|---|---|---|
| s, dofs | φ | Motion by DoF | motion space: of the link on the next body toward the support | joint |
| c | – | Motion | relative acceleration while the DoFs have none | joint |
| near | – | Transform | pose of the link in the joint's frame | joint |
| far | – | Transform | pose of the joint's frame in the next body | body |
| K, B | −φᶜ, X₀ᵀφᶜ | Force by row | what a unit force of a tip's row does to its link, to the other end | link, other |
| gamma | φᶜᵀζ₀ᵏ − αᶜ | by row | known relative acceleration along the row; ours with ζ of both ends | – |
| drive, known | φ h | Force | known force of a tip | link |
| own_z | b₀ − g₀ | Force by body | force that ζ takes, less external and known ones | link |
| own_K | – | Force by row | K or B of the rows that act on the body | link |

Row by row (30) reads  Kᵀ a_link + Bᵀ a_other + gamma = 0.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import KeptRows, known_rows
from spanloop.algorithms.papers.lilly_orin.chains import JOINT, Body, Chains, Hop, Tip
from spanloop.joints.kind import EX, EY, EZ
from spanloop.math.scalar import factor_of_armature
from spanloop.math.spatial import Force, Motion, Transform, dual_basis
from spanloop.math.vector3 import is_zero
from spanloop.sweeps import Sum, Values
from spanloop.topology.tree_paths import relative_pose
from spanloop.types import Scalar

SIX = (Force(EX), Force(EY), Force(EZ), Force(linear=EX), Force(linear=EY), Force(linear=EZ))


class Carrier(NamedTuple):
    """The general joint of a hop; DoFs as (s, torque, armature)."""

    near: Transform
    dofs: tuple[tuple[Motion, Scalar, Scalar], ...]
    c: Motion
    far: Transform


@dataclass(frozen=True)
class Constraint:
    """A row of a tip: its force h acts as K h on the chain's link and as B h on the reference member.

    Of a loop inside a chain: as B h on the other link.
    """

    key: Any
    kind: str  # "moment" or "force"
    K: Force
    B: Force
    gamma: Scalar
    compliance: Scalar = 0.0  # 1 for a row of a rotor
    mask: Scalar = 1.0  # 0 where a closure is switched off
    link: int = -1
    other: int = -1  # the reference member, or the other link of a loop inside a chain
    inner: bool = False  # of a loop inside a chain
    number: int = 0  # among the rows of all tips

    @property
    def ends(self) -> tuple[tuple[int, Force], tuple[int, Force]]:
        """The two links that the row joins, and what its unit force does to each."""
        return (self.link, self.K), (self.other, self.B)


def joints_at_state(chains: Chains, kept: KeptRows):
    """The step that gives steps 1 to 4 what Table 1 has as given: φ, φᶜ, h, αᶜ, X₀, ζ₀ᵏ of all joints, b₀, g₀."""

    def given(m, here, world) -> Values:
        """Bodies with the joints that carry them and the rows that act on them; rows of each group, and its DoFs."""
        z = {i: h.f for i, h in enumerate(here)}  # of bias_sweep: M ζ + b, b₀ − g₀ of the reference member among them
        by_group: dict[int, list[Constraint]] = {n: [] for n in sorted({t.group for t in chains.tips})}
        for t in chains.tips:
            rows, on_link, on_other = tip(m, here, world, t, kept)
            by_group[t.group] += [replace(row, link=t.link, other=t.other, inner=t.inner) for row in rows]
            for link, known in ((t.other, on_other), (t.link, on_link)):
                if link not in chains.support:
                    z[link] = z[link] - known  # (33): φ h
        numbers = itertools.count()
        tip_rows = {
            group: [replace(row, number=next(numbers)) for row in sorted(rows, key=lambda row: not row.inner)]
            for group, rows in by_group.items()
            if rows
        }
        K: dict[int, dict[int, Force]] = {}
        for row in (row for rows in tip_rows.values() for row in rows):
            for link, wrench in row.ends:
                K.setdefault(link, {})[row.number] = wrench
        bodies = [_body(m, here, world, body, z, K, kept) for body in chains.links]
        dofs: dict[int, int] = {}
        for body, values in zip(chains.links, bodies, strict=True):
            if body.hop:
                dofs[body.hop.group] = dofs.get(body.hop.group, 0) + len(values.joint.dofs)
        return Values(bodies=bodies, tip_rows=[(rows, dofs.get(group, 0)) for group, rows in tip_rows.items()])

    return given


def _body(m, here, world, body: Body, z: dict, K: dict, kept: KeptRows) -> Values:
    """A body before it is swept; the reference member has no joint of its own."""
    link = m.links[body.number]
    own = Values(inertia=link.inertia.articulated(), own_z=z[body.number], own_K=Sum(K.get(body.number, {})))
    if body.hop is None:
        return own
    given_accelerations = here[body.hop.edge.number].tau if body.hop.edge.kind == JOINT else ()
    return Values(**vars(own), joint=carrier(m, here, world, body.hop, kept), given_accelerations=given_accelerations)


def carrier(m, here, world, hop: Hop, kept: KeptRows) -> Carrier:
    """The general joint that carries a link of a chain; rows of a closure that are dropped become DoFs."""
    if hop.edge.kind == JOINT:
        i = hop.edge.number
        link, h = m.links[i], here[i]
        columns = link.free(h.S)
        if i == hop.link:
            return Carrier(Transform(), _dofs(link, h, columns), Motion(), h.X)
        back = tuple(-s for s in columns)
        return Carrier(h.X.inverse(), _dofs(link, h, back), Motion(), Transform())
    closure = m.closures[hop.edge.number]
    x = relative_pose(m, here, closure)
    on_a, on_b = closure.a.transform() @ x, closure.b.transform()  # poses of the child frame
    dofs, c = list(closure_motion(closure, x)), Motion()
    columns = [Motion.of(tuple(w)) for w in dual_basis(closure.kind.closure_space(x))]
    known = {row.number: gamma for row, gamma in known_rows(m, here, world, closure, kept, True)}
    for r, column in zip(closure.rows, columns, strict=True):
        if r in kept.dropped:
            dofs.append(column)
        else:
            c = c - column * known[r]  # φᶜᵀ c = −γ
    if hop.link == closure.b.link:
        return Carrier(on_b.inverse(), tuple((s, 0.0, 0.0) for s in dofs), c, on_a)
    return Carrier(on_a.inverse(), tuple((-s, 0.0, 0.0) for s in dofs), -c, on_b)


def _dofs(link, h, columns):
    """(s, torque, armature) of each DoF; none of a driven joint, which has no free column."""
    torque = link.passive_torque(h.q, h.v)
    return tuple((s, t + p, r) for s, t, p, r in zip(columns, h.tau, torque, link.armature, strict=False))


def closure_motion(closure, x: Transform) -> tuple[Motion, ...]:
    """Motion space of a closure, in its child frame; none where all six directions are fixed or given."""
    return () if len(closure.rows) == 6 else closure.kind.closure_motion(x)


def tip(m, here, world, t: Tip, kept: KeptRows) -> tuple[list[Constraint], Force, Force]:
    """Rows of a tip, and the known force (φ h of eq. 33) on its link and at its other end.

    Of a closure there is none here: its h comes with the external forces.
    """
    if t.edge.kind == JOINT:
        return _tip_of_joint(m, here, t)
    closure, masks = m.closures[t.edge.number], closure_kinematics.masks(m, world)
    out = []
    for k, (row, gamma) in enumerate(known_rows(m, here, world, closure, kept)):
        K, B = (row.on_a, row.on_b) if t.link == closure.a.link else (row.on_b, row.on_a)
        kind = closure.row_kind(closure.rows.index(row.number))
        out.append(Constraint((closure.number, k), kind, K, B, gamma, mask=masks.get(row.number, 1.0)))
    return out, Force(), Force()


def _tip_of_joint(m, here, t: Tip) -> tuple[list[Constraint], Force, Force]:
    """A joint of the tree as a tip: its torque is known (a hip of a legged machine), rotors are rows that yield."""
    i = t.edge.number
    link, h = m.links[i], here[i]
    measures = dual_basis(link.free(h.S))  # none of a driven joint, whose torques are left over
    torque = [x + p for x, p in zip(h.tau, link.passive_torque(h.q, h.v), strict=True)]
    drive = Force()
    for w, x in zip(measures, torque, strict=False):
        drive = drive + w * x
    rigid = [(w, 0.0) for w in (SIX if link.driven else link.kind.constraint_space(h.q))]
    rotors = [(w * factor_of_armature(r), 1.0) for w, r in zip(measures, link.armature, strict=False) if not is_zero(r)]
    out = []
    for k, (w, compliance) in enumerate(rigid + rotors):
        on_child, on_parent = w, -(h.X @ w)
        K, B = (on_parent, on_child) if t.link == link.parent else (on_child, on_parent)
        kind = "moment" if all(map(is_zero, w.linear)) else "force"
        out.append(Constraint((link.name, k), kind, K, B, 0.0, compliance))
    on_child, on_parent = drive, -(h.X @ drive)
    return (out, on_parent, on_child) if t.link == link.parent else (out, on_child, on_parent)
