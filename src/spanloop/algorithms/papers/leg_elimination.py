"""Unactuated rates eliminated leg by leg: rates and accelerations of all joints from those of the actuated ones.

[Saha, eq. 24-31]. In each leg t_e = Σ p̃ θ̇. The last unactuated rate is solved for (27a) and projected out (27b),
then the one before it, until only actuated ones are left: Φ_l t_e = Φ_l Σ p̃ θ̇. All legs together give t_e (29).

| here | Saha | meaning | frame |
|---|---|---|---|
| p | p̃ before projection | twist of the platform due to a joint's unit rate | platform |
| e, d | p̃_i, δ_i | the same without the span of the unactuated joints behind it, its square | platform |
| beta | – | acceleration of the platform while no rate of the leg changes | platform |
| Phi | Φ | Σ over the legs of Φ_l = 1 − Σ e eᵀ/δ | platform |

Departures: an actuator may be anywhere in its leg, and a leg may have several or none. Accelerations obey the same
equations with beta added; rates of closures' own freedoms are eliminated first and not kept. Angles and lengths are
mixed in pᵀp, as in the paper: the answer does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.algorithms.closed.paths import relative_pose
from spanloop.algorithms.papers.legs import Leg, Legs
from spanloop.math.scalar import reciprocal
from spanloop.math.small import ZERO3, add, cross, dot, negate, total
from spanloop.math.spatial import Field, Motion, Transform, combined, coriolis
from spanloop.sweeps import Values

TINY = 1e-12  # of a pivot's own size: what is less is a singular position


@dataclass
class Column:
    """A freedom of a leg."""

    freedom: int | None  # place in v; None: of the closure
    actuated: bool
    p: Motion
    e: Motion | None = None
    over: object = None  # 1/δ


@dataclass
class Eliminated:
    """A leg's columns, from the world outward, unactuated ones projected; beta; poses of the platform in its links."""

    columns: list[Column]
    beta: Motion
    seen: dict[int, Transform]

    def projected(self, x: Motion) -> Motion:
        """Φ_l x."""
        for c in self.columns:
            if c.e is not None:
                x = x - c.e * (c.over * _dot(c.e, x))
        return x

    def unactuated(self, t: Motion, known: dict) -> dict:
        """Rates of the leg's other freedoms while the platform has the twist t and the actuated ones these. (27a)"""
        rates, rest = {}, t
        for c in self.columns:
            if c.actuated:
                rest = rest - c.p * known[c.freedom]
        for c in self.columns:
            if c.e is not None:
                x = c.over * _dot(c.e, rest)
                rest = rest - c.p * x
                if c.freedom is not None:
                    rates[c.freedom] = x
        return rates


def fly(link, here, parent) -> Values:
    """Velocity of the link, and its acceleration while no joint's rate changes; gravity is one of the world."""
    R, p = here.X.rotation.T, here.X.translation
    relative = combined(here.S, here.v)
    carrier = R @ parent.field.omega
    motion = (
        Motion(R @ parent.field.alpha, R @ parent.field.at(p))
        + coriolis(carrier, relative)
        + link.kind.motion_space_rate(here.q, here.v)
    )
    field = Field(add(carrier, relative.angular), motion.angular, motion.linear)
    return Values(field=field, V=here.X.T @ parent.V + relative)


def eliminated(m, legs: Legs, here, still: Field) -> tuple[list[Eliminated], list]:
    """All legs, and pairs of which the first must be less."""
    out, demands = [], []
    for leg in legs.legs:
        one = _columns(m, legs, leg, here, still)
        for k in reversed(range(len(one.columns))):
            c = one.columns[k]
            if c.actuated:
                continue
            c.e = one.projected(c.p)
            square = _dot(c.e, c.e)
            c.over = reciprocal(square)
            demands.append((TINY * _dot(c.p, c.p), square))
        out.append(one)
    return out, demands


def platform_twists(legs: list[Eliminated], columns: list[Motion]) -> tuple[list[Motion], list]:
    """Φ⁻¹ x for each x, with Φ = Σ Φ_l; and its pivots, each with what it must exceed. (29)"""
    units = [Motion.of([1.0 if j == k else 0.0 for j in range(6)]) for k in range(6)]
    sums = [_sum([leg.projected(u) for leg in legs]) for u in units]
    rows = [list(x) for x in sums]
    right = [list(x) for x in columns]
    demands = []
    for k in range(6):
        demands.append((TINY * len(legs), rows[k][k]))  # each Φ_l is at most 1
        over = reciprocal(rows[k][k])
        for i in range(k + 1, 6):
            gain = rows[i][k] * over
            for j in range(k + 1, 6):
                rows[i][j] = rows[i][j] - gain * rows[k][j]
            for b in right:
                b[i] = b[i] - gain * b[k]
    return [_back(rows, b) for b in right], demands


def rates_of(m, legs: Legs, parts: list[Eliminated], t: Motion, known: dict, drift: Motion | None = None) -> list:
    """Rates (nv) of all freedoms of the tree from the platform's twist and the actuated ones.

    drift: given for accelerations, the platform's own while its joint's rates do not change.
    """
    out = [0.0] * m.nv
    for f, x in known.items():
        out[f] = x
    for part in parts:
        rest = t if drift is None else t - part.beta
        for f, x in part.unactuated(rest, known).items():
            out[f] = x
    platform = m.links[legs.platform]
    if platform.floats:
        own = t if drift is None else t - drift
        for k, s in enumerate(platform.kind.motion_space(platform.kind.neutral())):
            out[platform.v.start + k] = _dot(s, own)
    return out


def _columns(m, legs: Legs, leg: Leg, here, still: Field) -> Eliminated:
    """The leg's freedoms as twists of the platform, not yet projected."""
    if leg.closure is None:
        pose, own, beta = Transform(), [], here[legs.platform].field.motion
    else:
        pose, own, beta = _through(m, legs, m.closures[leg.closure], leg, here, still)
    inward: list[Column] = []
    seen: dict[int, Transform] = {}
    for i in reversed(leg.links):
        seen[i] = pose
        start = m.links[i].v.start
        found = [Column(start + k, start + k in legs.actuated, pose.T @ s) for k, s in enumerate(here[i].S)]
        inward += reversed(found)
        pose = here[i].X @ pose
    return Eliminated([*reversed(inward), *(Column(None, False, s) for s in own)], beta, seen)


def _through(m, legs: Legs, c, leg: Leg, here, still: Field):
    """Pose of the platform in the leg's last link, the closure's freedoms, beta: all through the closure."""
    x, a, b = relative_pose(m, here, c), c.a.transform(), c.b.transform()
    child = c.b.link == legs.platform
    last = leg.links[-1] if leg.links else -1
    in_b = b.inverse() if child else x.inverse() @ a.inverse()  # pose of the platform in the closure's child frame
    pose = a @ x @ in_b if child else b @ in_b
    sign = 1.0 if child else -1.0
    field = here[last].field if last >= 0 else still
    omega = here[legs.platform].field.omega
    into_a, into_b = (a.rotation @ x.rotation).T, b.rotation.T
    spin = into_a @ (field.omega if child else omega)  # of frame A, in B's axes
    relative = _velocity(here, c.b, b) - x.T @ _velocity(here, c.a, a)
    if child:
        at, r = a.point(x.translation), b.translation
        moved = Motion(into_a @ field.alpha, into_a @ field.at(at))
    else:
        r = a.point(x.translation)
        moved = Motion(into_b @ field.alpha, into_b @ field.at(b.translation))
    beta = in_b.T @ (moved + coriolis(spin, relative) * sign)
    beta = beta + Motion(ZERO3, negate(cross(omega, cross(omega, r))))
    return pose, [in_b.T @ (s * sign) for s in c.kind.closure_motion(x)], beta


def _velocity(here, anchor, x: Transform) -> Motion:
    return Motion() if anchor.link < 0 else x.T @ here[anchor.link].V


def _back(rows, b) -> Motion:
    x = [0.0] * 6
    for k in reversed(range(6)):
        x[k] = reciprocal(rows[k][k]) * total([b[k], *(-(rows[k][j] * x[j]) for j in range(k + 1, 6))])
    return Motion.of(x)


def _sum(motions) -> Motion:
    out = Motion()
    for x in motions:
        out = out + x
    return out


def _dot(x, y):
    return dot(tuple(x), tuple(y))
