"""Forward dynamics of closed loops: rows ride inward and are eliminated where they meet. O(n + rows) on loop chains.

On scalars this is at once the idea of Popov & Vereshchagin, of constrained articulated-body algorithms and of the Λ
recursions of [Kreutz & Rodriguez 6.10] and [Rodriguez, Jain & Kreutz A.5]. Each row r is a force column K carried
along its two paths. Passing a joint with motion s it adds to the rows' admittance; at the closest common ancestor
its force is known but for that link's acceleration, and the loop has become part of the articulated inertia. Rows
that reach the world are solved in one root system, together with the accelerations of free bodies that they touch.

| symbol | shape | meaning | frame |
|---|---|---|---|
| P, z, D, G | | as in tree/articulated_body | link |
| K | Force by row | what a unit force of the row does to the link with all it carries | link |
| L | scalar by two rows | admittance: acceleration along one row due to a unit force of the other | – |
| l | scalar by row | acceleration along the row at zero forces, as far as known | – |
| f | scalar by row | force of the row | – |
| κ | scalar | sᵀ K: the row's torque at the joint | joint |
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.algorithms.closed import closing
from spanloop.algorithms.closed.ordered import Factors, System, block_order
from spanloop.algorithms.closed.rows import basis_of, rows
from spanloop.algorithms.quantities.energy import fly
from spanloop.algorithms.tree.articulated_body import _beside, turn
from spanloop.algorithms.tree.placing import placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.scalar import reciprocal, where
from spanloop.math.small import ZERO3, is_zero, negate, total
from spanloop.math.spatial import Field, Force, Motion, power
from spanloop.sweeps import Program, Values, at_once, inward, outward

TINY = 1e-12  # a pivot below this share of the closure's own admittance counts as zero


class Pending(dict):
    """Rows on their way inward: K by row. With them travel L, l and L0, the admittance before any row was
    eliminated."""

    def __init__(self, K=(), l=(), L=(), L0=()):
        super().__init__(K)
        self.l, self.L, self.L0 = dict(l), dict(L), dict(L0)

    def __add__(self, other: Pending) -> Pending:
        out = Pending(self, self.l, self.L, self.L0)
        for r, k in other.items():
            out[r] = out[r] + k if r in out else k
        for mine, theirs in ((out.l, other.l), (out.L, other.L), (out.L0, other.L0)):
            for key, x in theirs.items():
                mine[key] = mine[key] + x if key in mine else x
        return out

    def without_wrenches(self) -> Pending:
        return Pending((), self.l, self.L, self.L0)

    def admittance(self, r: int, s: int):
        return self.L.get((min(r, s), max(r, s)), 0.0)

    def admit(self, r: int, s: int, value) -> None:
        if not is_zero(value):
            key = (min(r, s), max(r, s))
            self.L[key] = self.L[key] + value if key in self.L else value


@dataclass(frozen=True)
class Setting:
    """How a mechanism's closures are treated: found once, when a kernel is made."""

    dropped: frozenset[int] = frozenset()  # rows that are redundant at every configuration
    weak: frozenset[int] = frozenset()  # closures whose own admittance is deficient: after the free body
    strict: bool = False  # is a position refused at which rows that should be independent are not?


def forward_dynamics(mechanism, loaded=(), setting: Setting | None = None) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration."""
    return _program(mechanism, loaded, setting or Setting())


def _program(mechanism, loaded, setting: Setting) -> Program:
    still = negate(mechanism.gravity)
    sizes = closing.extra_inputs(mechanism)
    sliding = any(c.slides for c in mechanism.closures)
    articulate = _articulate(_meetings(mechanism), _Guard(mechanism))
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            outward(turn, field=Field(ZERO3)),
            *((outward(fly, V=Motion()),) if sliding else ()),
            at_once(_opened(setting, still)),
            inward(articulate, P=ArticulatedInertia(), z=Force(), rows=Pending(), kept=_Kept()),
            at_once(_rooted(mechanism, setting, still)),
            outward(accelerate, begin=lambda world: Values(a=Motion(linear=still), f=world.f)),
        ),
        result=lambda m, here, world: [x for h in here for x in h.rates],
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=_demands(setting),
        sizes=sizes,
    )


def _demands(setting: Setting):
    def demands(m, here, world) -> list:
        """Pairs, the first to be less: how open the loops are, and no pivot nothing where it should not be."""
        if not setting.strict:
            return closing.openness(m, here, world)
        pivots = [x for h in here for x in h.thin] + list(world.thin)
        return closing.openness(m, here, world) + pivots

    return demands


def _meetings(mechanism) -> dict[int, int]:
    """The link at which each row is eliminated."""
    return {r: c.meets for c in mechanism.closures for r in c.rows} | {g.row: g.meets for g in mechanism.gears}


# ---- rows begin


def _opened(setting: Setting, still):
    def open_rows(mechanism, here, world) -> Values:
        """Every row laid down at its two links (or at the world, whose acceleration is known)."""
        mask, given = closing.masks(mechanism, world), closing.given(mechanism, world)
        for h in here:
            h.own, h.geared, h.mask = Pending(), {}, mask
        ground = Motion(linear=still)
        for c in mechanism.closures:
            for row in rows(mechanism, here, c, basis_of(mechanism, c, setting.dropped)):
                if row.number not in setting.dropped:
                    _lay_down(here, row, c, ground, given.get(row.number, 0.0))
        for g in mechanism.gears:
            for link, share in ((g.link, 1.0), (g.source, -g.ratio)):
                here[link].geared[g.row] = share
        return Values(mask=mask)

    return open_rows


def _lay_down(here, row, closure, ground: Motion, given) -> None:
    """A row's wrenches at its links, its bias (less an acceleration that is given) beside one of them."""
    bias = row.bias - given
    ends = [(closure.a.link, row.on_a), (closure.b.link, row.on_b)]
    for link, wrench in ends:
        if link < 0:
            bias = bias + power(ground, wrench)
    for link, wrench in ends:
        if link >= 0:
            here[link].own = here[link].own + Pending({row.number: wrench}, {row.number: bias})
            bias = 0.0


# ---- inward


class _Kept(dict):
    """Free bodies whose accelerations stay unknowns of the root system."""

    def __add__(self, other):
        return _Kept({**self, **other})


def row_groups(mechanism) -> dict[int, tuple]:
    """Rows of one closure and one sort (moments, forces) belong together: their pivots share a scale."""
    return {r: (c.number, c.sort(k)) for c in mechanism.closures for k, r in enumerate(c.rows)}


class _Guard:
    """Reciprocals of pivots: a pivot that is nothing beside its closure's own admittance counts as zero."""

    def __init__(self, mechanism):
        self.group = row_groups(mechanism)

    def scale(self, r: int, L0: dict):
        key = self.group.get(r)
        return total(x for s, x in L0.items() if (s == r if key is None else self.group.get(s) == key))

    def zero(self, r: int, pivot, L0: dict, mask: dict):
        """1/pivot, or 0 where the pivot is nothing or the row is switched off."""
        over = guarded(pivot, self.scale(r, L0))
        return over * mask[r] if r in mask else over

    def thinness(self, r: int, pivot, L0: dict, mask: dict):
        """TINY of the scale, and the pivot that must be above it not to count as zero; a row switched off need not
        be."""
        least = TINY * self.scale(r, L0)
        return (least * mask[r] - (1.0 - mask[r]), pivot) if r in mask else (least, pivot)

    def clamp(self, r: int, pivot, L0: dict, mask: dict):
        """1/pivot, the pivot no less than TINY of the scale; 0 for a row that is switched off."""
        scale = self.scale(r, L0)
        least = TINY * scale if not is_zero(scale) else TINY
        over = 1.0 / (least if is_zero(pivot) else where(pivot > least, pivot, least))
        return over * mask[r] if r in mask else over


def guarded(pivot, scale):
    """1/pivot, or 0 where the pivot is nothing beside the scale."""
    if is_zero(pivot):
        return 0.0
    ok = pivot > TINY * scale
    return where(ok, 1.0, 0.0) / where(ok, pivot, 1.0)


def _articulate(meets: dict[int, int], guard: _Guard):
    def articulate(link, here, arriving) -> tuple[Values, Values]:
        """Articulated inertia with its loops: rows that meet here, then the joint's freedoms, are eliminated."""
        P = link.inertia.articulated() + arriving.P
        z = here.z + arriving.z
        pending = here.own + arriving.rows
        met, thin = [], []
        for r in [r for r in sorted(pending) if meets[r] == link.number]:
            K, l = pending.pop(r), pending.l.pop(r, 0.0)
            over = guard.zero(r, pending.admittance(r, r), pending.L0, here.mask)
            thin.append(guard.thinness(r, pending.admittance(r, r), pending.L0, here.mask))
            others = {s: x for s in pending if not is_zero(x := pending.admittance(r, s))}
            for s, x in others.items():
                gain = x * over
                for t in (t for t in others if t <= s):
                    pending.admit(s, t, -(gain * others[t]))
                pending[s] = pending[s] - K * gain
                pending.l[s] = pending.l.get(s, 0.0) - gain * l
            P = P.less(K * -over, K)  # P + K Kᵀ/L
            z = z + K * (over * l)
            met.append((r, K, l, over, others))
        if link.floats and pending:
            kept = Values(eliminated=(), met=tuple(met), thin=thin, shares=(), held=True)
            mine = _Kept({link.number: (P, z, dict(pending))})
            return kept, Values(P=ArticulatedInertia(), z=Force(), rows=pending.without_wrenches(), kept=mine)
        torque = tuple(t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True))
        eliminated, shares = [], []
        for k, (s, t, armature) in enumerate(zip(link.free(here.S), torque, link.armature, strict=False)):
            U = P @ s
            over = reciprocal(power(s, U) + armature)
            G = U * over
            e = t - power(s, z)
            kappa = {r: power(s, K) for r, K in pending.items()}
            for r, share in here.geared.items():
                kappa[r] = kappa.get(r, 0.0) + (share if k == 0 else 0.0)
                pending.setdefault(r, Force())
            kappa = {r: x for r, x in kappa.items() if not is_zero(x)}
            for r, x in kappa.items():
                gain = x * over
                for q in (q for q in kappa if q <= r):
                    pending.admit(r, q, gain * kappa[q])
                pending.L0[r] = pending.L0.get(r, 0.0) + gain * x
                pending[r] = pending[r] - G * x
                pending.l[r] = pending.l.get(r, 0.0) + gain * e
            eliminated.append((s, G, e * over))
            shares.append({r: x * over for r, x in kappa.items()})
            P = P.less(G, U)
            z = z + G * e
        for r, share in here.geared.items() if link.driven else ():
            pending.setdefault(r, Force())
            pending.l[r] = pending.l.get(r, 0.0) + share * here.tau[0]  # a driven joint leads its gear
        z = z + P @ here.c
        for r, K in pending.items():
            pending.l[r] = pending.l.get(r, 0.0) + power(here.c, K)
        moved = Pending({r: here.X @ K for r, K in pending.items()}, pending.l, pending.L, pending.L0)
        kept = Values(eliminated=tuple(eliminated), met=tuple(met), thin=thin, shares=tuple(shares), held=False)
        return kept, Values(P=P.carried(here.X), z=here.X @ z, rows=moved, kept=_Kept(arriving.kept))

    return articulate


# ---- the root system


def _rooted(mechanism, setting: Setting, still):
    guard, meets = _Guard(mechanism), _meetings(mechanism)
    block_of = {r: ("closure", c.number) for c in mechanism.closures for r in c.rows}

    def solve_root(_, here, world) -> Values:
        """Forces of the rows that reached the world and accelerations of the free bodies they touch."""
        pending = world.rows
        for r, K in pending.items():
            pending.l[r] = pending.l[r] + power(Motion(linear=still), K)
        system = System()
        blocks: dict[tuple, list] = {}
        open_rows = [r for r in pending.l if meets[r] < 0]
        for r in open_rows:
            blocks.setdefault(block_of.get(r, ("gear", r)), []).append(r)
            system.right[r] = -pending.l[r]
            for s in open_rows:
                if s <= r:
                    system.add(r, s, pending.admittance(r, s))
        for i, body in world.kept.items():
            blocks["body", i] = _bordered(system, mechanism.links[i], here[i], body, still)
        thin: list = []
        if not blocks:
            return Values(f={}, thin=thin)
        x = _solved(system, blocks, setting, _Masked(guard, pending.L0, world.mask), thin)
        for i in world.kept:
            here[i].root = Motion.of([x[i, k] for k in range(6)])
        return Values(f={r: x[r] for r in open_rows}, thin=thin)

    return solve_root


def _bordered(system: System, link, here, body, still) -> list:
    """Rows −P a + K f = z − tau of a free body."""
    P, z, wrenches = body
    base = here.X.T @ Motion(linear=still) + here.c  # its acceleration when its joint has none
    torque = tuple(t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True))
    rows, six = P.rows(), tuple(base)
    for k in range(6):
        for j in range(k + 1):
            system.add((link.number, k), (link.number, j), -(rows[k][j] + (link.armature[k] if j == k else 0.0)))
        system.right[link.number, k] = tuple(z)[k] - torque[k] - link.armature[k] * six[k]
        for r, K in wrenches.items():
            system.add((link.number, k), r, tuple(K)[k])
    return [(link.number, k) for k in (3, 4, 5, 0, 1, 2)]


@dataclass(frozen=True)
class _Masked:
    """A guard with the numbers of one state."""

    guard: _Guard
    L0: dict
    mask: dict

    def __call__(self, method: str, r: int, pivot):
        return getattr(self.guard, method)(r, pivot, self.L0, self.mask)


def _solved(system: System, blocks: dict, setting: Setting, guard: _Masked, thin: list) -> dict:
    order, names = block_order(blocks, system, lambda b: b[0] == "closure" and b[1] in setting.weak)
    waiting = {b for b in names if b[0] == "body"}
    early: set = set()  # rows eliminated while a free body is still to come
    for b in names:
        waiting.discard(b)
        if waiting and b[0] != "body":
            early.update(blocks[b])

    def over(x, pivot):
        if isinstance(x, tuple):
            return reciprocal(pivot)
        if x in early:
            return guard("clamp", x, pivot)
        thin.append(guard("thinness", x, pivot))
        return guard("zero", x, pivot)

    factors = Factors(system, order, over)
    x = factors.solve(system.right)
    if early:  # one refinement takes back what the clamped pivots added
        missed = system.times(x)
        step = factors.solve({n: b - missed.get(n, 0.0) for n, b in system.right.items()})
        x = {n: t + step[n] for n, t in x.items()}
    return x


# ---- outward


def accelerate(link, here, parent) -> Values:
    """Accelerations of the link and its joint, and the forces of the rows that met at the link."""
    f = dict(parent.f)
    base = here.X.T @ parent.a + here.c
    if here.held:
        a = here.root
        rates = tuple(a - base)
    else:
        a, found = base, []
        for (s, G, nu), share in reversed(tuple(zip(here.eliminated, here.shares, strict=True))):
            push = total([nu, *(x * f[r] for r, x in share.items())])
            rate = (push - power(a, _beside(G, s))) - power(a, s)
            a = a + s * rate
            found.append(rate)
        rates = tuple(reversed(found)) if here.eliminated else here.tau
    for r, K, l, over, others in reversed(here.met):
        f[r] = -(over * total([l, power(a, K), *(x * f[s] for s, x in others.items())]))
    return Values(a=a, f=f, rates=rates)
