"""Forward dynamics of closed loops: rows ride inward and are eliminated where they meet. O(n + rows) on loop chains.

On scalars this is at once the idea of Popov & Vereshchagin, of constrained articulated-body algorithms and of the Λ
recursions of [Kreutz & Rodriguez 6.10] and [Rodriguez, Jain & Kreutz A.5]. Each row r is a force column K carried
along its two paths. Passing a joint with motion s it adds to the rows' admittance; at the closest common ancestor
its force is known but for that link's acceleration, and the loop has become part of the articulated inertia. Rows
that reach the world are solved in one root system, together with the accelerations of free bodies that they touch.

| symbol | shape | meaning | frame |
|---|---|---|---|
| ζ, z | | as in tree/drifting | link |
| P, D, G | | as in tree/articulated_body | link |
| a | Motion | acceleration beyond ζ | link |
| K, l, L | by row | as in pending | link |
| f | scalar by row | force of the row | – |
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed import row_bias as bias
from spanloop.algorithms.closed.closure_rows import B, basis_of, rows
from spanloop.algorithms.closed.pivot_tolerance import Guard
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.closed.root_system import rooted
from spanloop.algorithms.closed.row_propagation import Pending
from spanloop.algorithms.tree.bias_acceleration import bias_acceleration
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_poses import placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Field, Force, Motion, gain, joint_rate, power
from spanloop.math.vector3 import ZERO3, is_zero, negate, total
from spanloop.sweeps import Program, Values, at_once, inward, outward


def forward_dynamics(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration.

    feedback: with the input `gains` (2,), which pull an error e of a row back by gains[0] ė + gains[1] e.
    """
    redundancy = redundancy or Redundancy()
    ground = Field(ZERO3, origin=negate(mechanism.gravity))
    sizes = closure_kinematics.extra_inputs(mechanism) | ({"gains": 2} if feedback else {})
    flying = feedback or any(c.slides for c in mechanism.closures)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            outward(bias_acceleration, field=ground),
            outward(push),
            *((outward(fly, V=Motion()),) if flying else ()),
            *closed_sweeps(mechanism, redundancy, bias.FeedbackBias() if feedback else bias.MotionBias(), ground),
        ),
        result=joint_rates,
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=_demands(redundancy),
        sizes=sizes,
    )


def closed_sweeps(mechanism, redundancy: Redundancy, told, ground: Field) -> tuple:
    """From links with ζ, z and torque to what joints add to ζ: rows laid down, carried inward, solved.

    told: what the rows are told, one of `bias`; ground: ζ of the world.
    """
    meets = _meetings(mechanism)
    return (
        at_once(_opened(redundancy, told, ground)),
        inward(_articulate(meets, Guard(mechanism)), P=ArticulatedInertia(), z=Force(), rows=Pending(), kept=_Kept()),
        at_once(rooted(mechanism, redundancy, meets)),
        outward(accelerate, begin=lambda world: Values(a=Motion(), f=world.f)),
    )


def joint_rates(m, here, world) -> list:
    return [x for h in here for x in h.rates]


def push(link, here, parent) -> Values:
    """Torque at the joint, with that of its own damper and spring."""
    return Values(torque=tuple(t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True)))


def _demands(redundancy: Redundancy):
    def demands(m, here, world) -> list:
        """Pairs, the first to be less: how open the loops are, and no pivot nothing where it should not be."""
        far = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
        return far + ([x for h in here for x in h.thin] + list(world.thin) if redundancy.refuses_singular else [])

    return demands


def _meetings(mechanism) -> dict[int, int]:
    """The link at which each row is eliminated."""
    return {r: c.meets for c in mechanism.closures for r in c.rows} | {g.row: g.meets for g in mechanism.gears}


# ---- rows begin


def _opened(redundancy: Redundancy, told, ground: Field):
    def open_rows(mechanism, here, world) -> Values:
        """Every row laid down at its two links (or at the world, whose acceleration is known)."""
        mask, given = closure_kinematics.masks(mechanism, world), closure_kinematics.given(mechanism, world)
        for h in here:
            h.own, h.geared, h.mask = Pending(), {}, mask
        for c in mechanism.closures:
            basis = B if told.child_axes else basis_of(mechanism, c, redundancy.dropped)
            for row in rows(mechanism, here, c, basis, ground):
                if row.number not in redundancy.dropped:
                    known = told.of_row(mechanism, here, world, c, row) - given.get(row.number, 0.0)
                    _lay_down(here, row, c, known)
        for g in mechanism.gears:
            for link, share in ((g.link, 1.0), (g.source, -g.ratio)):
                here[link].geared[g.row] = share
            known = told.of_gear(mechanism, here, world, g)
            if not is_zero(known):
                here[g.link].own = here[g.link].own + Pending((), {g.row: known})
        return Values(mask=mask)

    return open_rows


def _lay_down(here, row, closure, bias) -> None:
    """A row's wrenches at its links, its bias beside one of them."""
    for link, wrench in ((closure.a.link, row.on_a), (closure.b.link, row.on_b)):
        if link >= 0:
            here[link].own = here[link].own + Pending({row.number: wrench}, {row.number: bias})
            bias = 0.0


# ---- inward


class _Kept(dict):
    """Free bodies whose accelerations stay unknowns of the root system."""

    def __add__(self, other):
        return _Kept({**self, **other})


def _articulate(meets: dict[int, int], guard: Guard):
    def articulate(link, here, arriving) -> tuple[Values, Values]:
        """Articulated inertia with its loops: rows that meet here, then the joint's freedoms, are eliminated."""
        P = link.inertia.articulated() + arriving.P
        z = here.z + arriving.z
        pending = here.own + arriving.rows
        met, thin = [], []
        for r in [r for r in sorted(pending) if meets[r] == link.number]:
            thin.append(guard.bound(r, pending.admittance(r, r), pending.L0, here.mask))
            row = pending.meet(r, guard, here.mask)
            P = P.less(row.K * -row.over, row.K)  # P + K Kᵀ/L: the loop is part of the inertia
            z = z + row.K * (row.over * row.l)
            met.append(row)
        if link.floats and pending:  # its acceleration stays an unknown of the root system
            kept = Values(eliminated=(), met=met, thin=thin, shares=(), held=True)
            mine = _Kept({link.number: (P, z, dict(pending))})
            return kept, Values(P=ArticulatedInertia(), z=Force(), rows=pending.without_wrenches(), kept=mine)
        eliminated, shares = [], []
        for k, (s, t, armature) in enumerate(zip(link.free(here.S), here.torque, link.armature, strict=False)):
            U = P @ s
            G, over = gain(U, power(s, U) + armature)  # U D⁻¹, D⁻¹
            e = t - power(s, z)
            eliminated.append((s, G, e * over))
            shares.append(pending.pass_freedom(s, G, e, over, here.geared if k == 0 else {}))
            P = P.less(G, U)
            z = z + G * e
        for r, share in here.geared.items() if link.driven else ():
            pending.lead(r, share * here.tau[0])  # a driven joint leads its gear
        kept = Values(eliminated=eliminated, met=met, thin=thin, shares=shares, held=False)
        rows = pending.moved(here.X)
        return kept, Values(P=P.carried(here.X), z=here.X @ z, rows=rows, kept=_Kept(arriving.kept))

    return articulate


# ---- outward


def accelerate(link, here, parent) -> Values:
    """What the joints add to the link's ζ, the joint's own acceleration, and forces of the rows that met here."""
    f = dict(parent.f)
    if here.held:  # on the world, which adds nothing
        a = here.root
        rates = tuple(a)
    else:
        a, found = here.X.T @ parent.a, []
        for (s, G, nu), share in reversed(tuple(zip(here.eliminated, here.shares, strict=True))):
            push = total([nu, *(x * f[r] for r, x in share.items())])
            rate = joint_rate(push, G, s, a)
            a = a + s * rate
            found.append(rate)
        rates = tuple(reversed(found)) if here.eliminated else here.tau
    for r, K, l, over, others in reversed(here.met):
        f[r] = -(over * total([l, power(a, K), *(x * f[s] for s, x in others.items())]))
    return Values(a=a, f=f, rates=rates)
