"""Forward dynamics of closed loops: rows travel inward and are eliminated where they meet. O(n + rows) on loop chains.

docs/theory/elimination.md derives the method; numbers in parentheses are its equations. On scalars this is at once the
idea of Popov & Vereshchagin, of constrained articulated-body algorithms and of the Λ recursions of [Kreutz & Rodriguez
6.10] and [Rodriguez, Jain & Kreutz A.5]. The force of each closure row is a column K that travels inward along the two
paths of its closure. A joint that it passes adds to the rows' admittance; at the closest common ancestor the row is a
scalar equation for its force, and the loop becomes part of the articulated inertia. Rows that reach the world are
solved in one root system, together with the accelerations of the free bodies that they touch.

| symbol | shape | meaning | frame |
|---|---|---|---|
| ζ, z | | as in tree/link_motion | link |
| P, U, D, G, e, nu | | as in tree/articulated_body; e and nu are ε and ν of the page | link |
| a | Motion | acceleration beyond ζ | link |
| accelerations | by DoF | θ̈ of the joint | joint |
| own | PendingRows | rows that act on the link itself: K_r,i, and γ as l at one of the two links | link |
| pending | PendingRows | K, l, L of all rows that have arrived at the link (row_propagation) | link |
| coupled | scalar by row | σ of the couplings that hold the joint's rate | – |
| held | HeldRow | the row of a coupling without a source, which holds the joint: eliminated at the joint itself | – |
| shares | scalar by row, a DoF each | κ/D | – |
| f | scalar by row | force of the row | – |
| mask | scalar by row | 1 or 0 for a row that can be switched | – |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import B, FeedbackBias, VelocityBias, basis_of, rows
from spanloop.algorithms.closed.pivot_tolerance import PivotTolerance
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.closed.root_system import FreeBodies, FreeBody, root_system
from spanloop.algorithms.closed.row_propagation import PendingRows
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_motion import bias_acceleration, placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Field, Force, Motion, dof_acceleration, gain, power
from spanloop.math.vector3 import ZERO3, is_zero, negate, total
from spanloop.sweeps import Program, Values, at_once, inward, outward
from spanloop.sweeps.tested_pivots import PivotTest
from spanloop.types import Scalar


def forward_dynamics(
    mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False, with_forces: bool | str = False
) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration.

    feedback: with the input `gains` (2,), which pull an error e of a row back by gains[0] ė + gains[1] e.
    with_forces: the answer is (nv + n_rows,), with the forces of the rows in the axes of the closures' child frames;
    "any axes": in those in which the rows cost least, of either frame (closure_rows.basis_of).
    """
    redundancy = redundancy or Redundancy()
    ground = Field(ZERO3, origin=negate(mechanism.gravity))
    sizes = closure_kinematics.extra_inputs(mechanism) | ({"gains": 2} if feedback else {})
    needs_velocities = feedback or any(c.slides for c in mechanism.closures)
    tested = PivotTest(mechanism)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            *tested.sweeps,
            outward(bias_acceleration, field=ground),
            outward(joint_torque),
            *((outward(fly, V=Motion()),) if needs_velocities else ()),
            *closed_sweeps(
                mechanism, redundancy, FeedbackBias() if feedback else VelocityBias(with_forces is True), ground
            ),
        ),
        result=accelerations_and_forces(mechanism) if with_forces else joint_accelerations,
        shape=(mechanism.nv + (mechanism.n_rows if with_forces else 0),),
        regroup=True,
        loaded=loaded,
        demands=_demands(redundancy, tested),
        sizes=sizes,
        tests_pivots=True,
    )


def closed_sweeps(mechanism, redundancy: Redundancy, row_bias, ground: Field) -> tuple:
    """From links with ζ, z and torque to the accelerations of the joints.

    row_bias: the known acceleration along rows, a class of closure_rows.py; ground: ζ of the world.
    """
    ancestors = _common_ancestors(mechanism)
    return (
        at_once(_first_rows(redundancy, row_bias, ground)),
        inward(
            _articulate(ancestors, PivotTolerance(mechanism)),
            P=ArticulatedInertia(), z=Force(), rows=PendingRows(), free_bodies=FreeBodies(),
        ),
        at_once(root_system(mechanism, redundancy, ancestors)),
        outward(accelerate, begin=lambda world: Values(a=Motion(), f=world.f)),
    )  # fmt: skip


def joint_accelerations(m, here, world) -> list:
    """Accelerations (nv,) of all joints."""
    return [x for h in here for x in h.accelerations]


def accelerations_and_forces(mechanism):
    """Accelerations (nv,) of all joints, then forces (n_rows,) of all rows; 0 of those that are dropped."""
    ancestors = _common_ancestors(mechanism)

    def result(m, here, world) -> list:
        forces = [(world if ancestors[r] < 0 else here[ancestors[r]]).f.get(r, 0.0) for r in range(m.n_rows)]
        return joint_accelerations(m, here, world) + forces

    return result


def joint_torque(link, here, parent) -> Values:
    """Torque at the joint, with that of its own damper and spring."""
    return Values(torque=tuple(t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True)))


def _demands(redundancy: Redundancy, tested: PivotTest):
    def demands(m, here, world) -> list:
        """Pairs, the first to be less: how open the loops are, bounds of rows' pivots (19) and of some joints' D."""
        openness = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
        pivots = [x for h in here for x in h.pivot_bounds] + list(world.pivot_bounds)
        return openness + (pivots if redundancy.refuses_singular else []) + tested.pairs(m, here, world)

    return demands


def _common_ancestors(mechanism) -> dict[int, int]:
    """The link at which each row is eliminated: the closest common ancestor of the links that it joins.

    Where that bends, its modes move the ends of a loop on each other: then the link that carries it.
    """
    held = _held_rows(mechanism)
    gears = {g.row: g.link if g.row in held else g.meets for g in mechanism.gears}
    bending = {link.number: link.parent for link in mechanism.links if link.kind.bends}
    return {r: bending.get(c.meets, c.meets) for c in mechanism.closures for r in c.rows} | gears


def _held_rows(mechanism) -> dict[int, int]:
    """Rows of couplings that hold one joint, the first of each joint, and their links; driven joints have none."""
    rows: dict[int, int] = {}
    for g in mechanism.gears:
        if g.source < 0 and g.link not in rows.values() and not mechanism.links[g.link].driven:
            rows[g.row] = g.link
    return rows


class HeldRow(NamedTuple):
    """A row that holds a joint of one DoF: θ̈ = −γ where its mask m is 1.

    The joint then has the admittance (1 − m)/D and the acceleration (1 − m) ε/D − m γ; the row is eliminated before it
    leaves its link. Its force is m times what the joint lacks: −(ε − Uᵀa + Σ κ f + D γ) (12a).
    """

    row: int
    gamma: Scalar
    mask: Scalar


class HeldDof(NamedTuple):
    """What the force of a held row is made of: U, D, ε of its joint and κ of the rows that pass it."""

    held: HeldRow
    U: Force
    D: Scalar
    e: Scalar
    kappa: dict[int, Scalar]

    def force(self, a: Motion, f: Mapping[int, Scalar]) -> Scalar:
        """The force of the row; a: acceleration of the parent link beyond ζ, seen from the link."""
        needed = total(
            [self.e, -power(a, self.U), *(x * f[r] for r, x in self.kappa.items()), self.D * self.held.gamma]
        )
        return -(self.held.mask * needed)


# ---- rows begin


def _first_rows(redundancy: Redundancy, row_bias, ground: Field):
    def first_rows(mechanism, here, world) -> tuple[Values, Mapping[int, Values]]:
        """Every row at its two links: K, and l = γ at one of them (8)."""
        mask, given = (
            closure_kinematics.masks(mechanism, world),
            closure_kinematics.given_accelerations(mechanism, world),
        )
        own = [PendingRows() for _ in here]
        coupled: list[dict] = [{} for _ in here]
        for c in mechanism.closures:
            basis = B if row_bias.uses_child_axes else basis_of(mechanism, c, redundancy.dropped)
            for row in rows(mechanism, here, c, basis, ground):
                if row.number in redundancy.dropped:
                    continue
                gamma = row_bias.of_row(mechanism, here, world, c, row) - given.get(row.number, 0.0)
                for link, K in ((c.a.link, row.on_a), (c.b.link, row.on_b)):
                    if link >= 0:
                        own[link] = own[link] + PendingRows({row.number: K}, {row.number: gamma})
                        gamma = 0.0
        held, single = {}, _held_rows(mechanism)
        for g in mechanism.gears:
            gamma = row_bias.of_gear(mechanism, here, world, g)
            if g.row in single:
                held[g.link] = HeldRow(g.row, gamma, 0.0 if g.row in redundancy.dropped else mask.get(g.row, 1.0))
                continue
            for i, factor in g.ends:
                coupled[i][g.row] = factor  # σ (4)
            if not is_zero(gamma):
                own[g.link] = own[g.link] + PendingRows({}, {g.row: gamma})
        kept = {i: Values(own=own[i], coupled=coupled[i], held=held.get(i), mask=mask) for i in range(len(here))}
        return Values(mask=mask), kept

    return first_rows


# ---- inward


def _articulate(ancestors: Mapping[int, int], tolerance: PivotTolerance):
    def articulate(link, here, arriving) -> tuple[Values, Values]:
        """Articulated inertia with its loops: eliminates the rows that meet here, then the joint's DoFs."""
        P = here.inertia.articulated() + arriving.P  # (8)
        z = here.z + arriving.z
        pending = here.own + arriving.rows
        eliminated, bounds = [], []
        for r in [r for r in sorted(pending.K) if ancestors[r] == link.number]:
            bounds.append(tolerance.bound(r, pending.admittance(r, r), pending.L0, here.mask))
            pending, row = pending.without(r, tolerance, here.mask)
            P = P.less(row.K * -row.inverse_pivot, row.K)  # P + K Kᵀ/L (15)
            z = z + row.K * (row.inverse_pivot * row.l)  # z + K l/L (15)
            eliminated.append(row)
        if link.floats and pending.K:  # (16)
            kept = Values(
                dofs=(), shares=(), eliminated=eliminated, pivot_bounds=bounds, pivots=(), is_free=True, stopped=None
            )
            body = FreeBodies({link.number: FreeBody(P, z, pending.K)})
            rest = pending.without_wrenches()
            return kept, Values(P=ArticulatedInertia(), z=Force(), rows=rest, free_bodies=body)
        dofs, shares, pivots, stopped = [], [], [], None
        # a driven joint has no free column; couplings join joints with one DoF, which is the first
        for k, (s, tau, armature) in enumerate(zip(link.free(here.S), here.torque, link.armature, strict=False)):
            U = P @ s
            pivots.append(power(s, U) + armature)  # D (9)
            G, inverse_pivot = gain(U, pivots[-1])  # G = U/D, 1/D (9)
            e = tau - power(s, z)  # ε (9)
            if here.held is not None:
                stopped = HeldDof(here.held, U, pivots[-1], e, pending.kappa(s, here.coupled))
                G, inverse_pivot = G * (1.0 - here.held.mask), inverse_pivot * (1.0 - here.held.mask)
                pending, share, z, nu = _past_held(pending, here, stopped, s, G, inverse_pivot, z)
                dofs.append((s, G, nu))
                shares.append(share)
                P = P.less(G, U)
                continue
            pending, share = pending.past_dof(s, G, e, inverse_pivot, here.coupled if k == 0 else {})
            dofs.append((s, G, e * inverse_pivot))  # ν (9)
            shares.append(share)
            P = P.less(G, U)  # (10)
            z = z + G * e  # (10)
        for r, sigma in here.coupled.items() if link.driven else ():
            pending = pending.with_acceleration(r, sigma * here.tau[0])  # (12)
        kept = Values(
            dofs=dofs,
            shares=shares,
            eliminated=eliminated,
            pivot_bounds=bounds,
            pivots=pivots,
            is_free=False,
            stopped=stopped,
        )
        inboard = Values(P=P.carried(here.X), z=here.X @ z, rows=pending.moved(here.X))  # (13)
        return kept, Values(**vars(inboard), free_bodies=arriving.free_bodies)

    return articulate


def _past_held(pending: PendingRows, here, stopped: HeldDof, s: Motion, G: Force, inverse_pivot: Scalar, z: Force):
    """The rows, their shares, z and ν beyond a joint with a held row, of admittance (1 − m)/D: G and inverse_pivot."""
    nu = stopped.e * inverse_pivot - stopped.held.mask * stopped.held.gamma
    pending, share = pending.past_dof(s, G, 0.0, inverse_pivot, here.coupled)
    for r, x in stopped.kappa.items():
        pending = pending.with_acceleration(r, x * nu)
    return pending, share, z + stopped.U * nu, nu


# ---- outward


def accelerate(link, here, parent) -> Values:
    """Accelerations of the joint, of the link beyond ζ, and the forces of the rows that met here."""
    f = dict(parent.f)
    if here.is_free:  # its parent is the world, with a = 0
        a, accelerations = here.free_acceleration, tuple(here.free_acceleration)
    else:
        a, found = here.X.T @ parent.a, []
        for (s, G, nu), share in reversed(tuple(zip(here.dofs, here.shares, strict=True))):
            acceleration = dof_acceleration(total([nu, *(x * f[r] for r, x in share.items())]), G, s, a)  # (9)
            a = a + s * acceleration  # (1)
            found.append(acceleration)
        accelerations = tuple(reversed(found)) if here.dofs else here.tau
    if here.stopped is not None:
        f[here.stopped.held.row] = here.stopped.force(here.X.T @ parent.a, parent.f)
    for r, K, l, inverse_pivot, others in reversed(here.eliminated):
        f[r] = -(inverse_pivot * total([l, power(a, K), *(x * f[t] for t, x in others.items())]))  # (14)
    return Values(a=a, f=f, accelerations=accelerations)
