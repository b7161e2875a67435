"""Unactuated rates eliminated leg by leg: rates and accelerations of all joints from those of the actuated ones.

[Saha, eq. 24-31]. In each leg t_e = Σ p̃ θ̇. The last unactuated rate is solved for (27a) and projected out (27b),
then the one before it, until only actuated ones are left: Φ_l t_e = Φ_l Σ p̃ θ̇. All legs together give t_e (29).

| here | Saha | meaning | frame |
|---|---|---|---|
| p | p̃ before projection | twist of the platform due to a joint's unit rate | platform |
| e, d | p̃_i, δ_i | the same without the span of the unactuated joints behind it, its square | platform |
| beta | – | what the leg adds to the platform's motion by itself (`leg_bias` for accelerations) | platform |
| Phi | Φ | Σ over the legs of Φ_l = 1 − Σ e eᵀ/δ | platform |

Departures: an actuator may be anywhere in its leg, and a leg may have several or none. Accelerations, and steps that
close open loops, obey the same equations with beta added; rates of closures' own DoF are eliminated first and not
kept. Angles and lengths are mixed in pᵀp, as in the paper: but for rounding the answer does not depend on it. In small
and large mechanisms (ORDINARY) lengths are therefore counted in a length of the mechanism's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spanloop.algorithms.papers.saha.legs import Leg, Legs
from spanloop.algorithms.tree.link_motion import link_acceleration
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Field, Motion, Transform, combined, coriolis
from spanloop.math.symmetric import LDL, PIVOT_TOLERANCE
from spanloop.math.vector3 import ZERO3, cross, dot, negate, scale
from spanloop.sweeps import Values
from spanloop.topology.tree_paths import relative_pose

ORDINARY = 1e-2, 1e2  # m: characteristic lengths of mechanisms in which metres and radians are mixed as they are


@dataclass
class Column:
    """A degree of freedom of a leg."""

    dof: int | None  # place in v; None: of the closure
    actuated: bool
    p: Motion
    e: Motion | None = None
    inverse_square: object = None  # 1/δ


@dataclass
class Eliminated:
    """A leg's columns, from the world outward, unactuated ones projected; beta; poses of the platform in its links."""

    columns: list[Column]
    beta: Motion
    seen: dict[int, Transform]
    unit: float = 1.0  # m, of the lengths in p, e and beta

    def projected(self, x: Motion) -> Motion:
        """Φ_l x."""
        for c in self.columns:
            if c.e is not None:
                x = x - c.e * (c.inverse_square * _dot(c.e, x))
        return x

    def unactuated(self, t: Motion, known: dict) -> dict:
        """Rates of the leg's other DoF while the platform has the twist t and the actuated ones these. (27a)"""
        rates, rest = {}, t
        for c in self.columns:
            if c.actuated:
                rest = rest - c.p * known[c.dof]
        for c in self.columns:
            if c.e is not None:
                x = c.inverse_square * _dot(c.e, rest)
                rest = rest - c.p * x
                if c.dof is not None:
                    rates[c.dof] = x
        return rates


@dataclass(frozen=True)
class Joined:
    """How a closure joins the platform to a leg."""

    x: Transform  # pose of its child frame in its parent frame
    in_b: Transform  # pose of the platform in its child frame
    pose: Transform  # pose of the platform in the leg's last link
    sign: float  # -1 where the platform has the parent frame

    def seen(self, motion: Motion) -> Motion:
        """A motion of the child frame on the parent frame, as one of the platform on the leg."""
        return self.in_b.T @ (motion * self.sign)


def joined(m, legs: Legs, leg: Leg, here) -> Joined:
    """The leg's closure, as far open as it is."""
    c = m.closures[leg.closure]
    x, a, b = relative_pose(m, here, c), c.a.transform(), c.b.transform()
    if c.b.link == legs.platform:
        return Joined(x, b.inverse(), a @ x @ b.inverse(), 1.0)
    in_b = x.inverse() @ a.inverse()
    return Joined(x, in_b, b @ in_b, -1.0)


def length_unit(m) -> float:
    """The unit [m] in which twists are compared: 1 in mechanisms of ordinary size."""
    return 1.0 if ORDINARY[0] <= m.length <= ORDINARY[1] else float(m.length)


def eliminated(
    m, legs: Legs, here, beta: Callable[[Leg], Motion] = lambda leg: Motion(), unit: float | None = None
) -> tuple[list[Eliminated], list]:
    """All legs, and pairs of which the first must be less; unit [m]: of lengths in twists, by default length_unit."""
    out, demands = [], []
    unit = length_unit(m) if unit is None else unit
    for leg in legs.legs:
        one = _columns(m, legs, leg, here, beta(leg), unit)
        for k in reversed(range(len(one.columns))):
            c = one.columns[k]
            if c.actuated:
                continue
            c.e = one.projected(c.p)
            square = _dot(c.e, c.e)
            c.inverse_square = reciprocal(square)
            demands.append((PIVOT_TOLERANCE * _dot(c.p, c.p), square))
        out.append(one)
    return out, demands


def platform_twists(legs: list[Eliminated], columns: list[Motion]) -> tuple[list[Motion], list]:
    """Φ⁻¹ x for each x, with Φ = Σ Φ_l; and its pivots, each with what it must exceed. (29)"""
    units = [Motion.of([1.0 if j == k else 0.0 for j in range(6)]) for k in range(6)]
    sums = [_sum([leg.projected(u) for leg in legs]) for u in units]
    factors = LDL([tuple(x) for x in sums])  # Φ is symmetric
    demands = [(PIVOT_TOLERANCE * len(legs), pivot) for pivot in factors.pivots]  # each Φ_l is at most 1
    return [Motion.of(factors.solve(tuple(x))) for x in columns], demands


def unit_rates(m, legs: Legs, parts: list[Eliminated]) -> tuple[list, list]:
    """T (nv × n): rates of all joints for unit actuated rates; and the pivots on the way."""
    own = {c.dof: (part, c) for part in parts for c in part.columns if c.actuated}
    pushed = [own[f][0].projected(own[f][1].p) for f in legs.actuated]  # Φ_l A_e1 p
    twists, pivots = platform_twists(parts, pushed)
    columns = []
    for j, t in enumerate(twists):
        known = {f: 1.0 if k == j else 0.0 for k, f in enumerate(legs.actuated)}
        columns.append(rates_of(m, legs, parts, t, known))
    return [[column[i] for column in columns] for i in range(m.nv)], pivots


def joint_response(m, legs: Legs, parts: list[Eliminated], bias: Motion) -> tuple[list, list]:
    """What all joints (nv) do in response to the legs' beta while the actuated ones rest; and the pivots on the way.

    Accelerations where beta is one, changes of position where it is a closure error: both obey the rates' equations.
    """
    (t,), pivots = platform_twists(parts, [_sum([part.projected(part.beta) for part in parts])])
    return rates_of(m, legs, parts, t, dict.fromkeys(legs.actuated, 0.0), bias), pivots


def rates_of(m, legs: Legs, parts: list[Eliminated], t: Motion, known: dict, bias: Motion | None = None) -> list:
    """Rates (nv) of all DoF of the tree from the platform's twist and the actuated ones.

    bias: given where legs have a beta, the platform's own motion while its joint's rates do not change.
    """
    out = [0.0] * m.nv
    for f, x in known.items():
        out[f] = x
    unit = parts[0].unit
    for part in parts:
        rest = t if bias is None else t - part.beta
        for f, x in part.unactuated(rest, known).items():
            out[f] = x
    platform = m.links[legs.platform]
    if platform.floats:
        own = _in_unit(t, 1.0 / unit) if bias is None else _in_unit(t, 1.0 / unit) - bias
        for k, s in enumerate(platform.kind.motion_space(platform.kind.neutral())):
            out[platform.v.start + k] = _dot(s, own)
    return out


def _in_unit(x: Motion, unit: float) -> Motion:
    """A twist with its lengths in another unit."""
    return x if unit == 1.0 else Motion(x.angular, scale(1.0 / unit, x.linear))


def _columns(m, legs: Legs, leg: Leg, here, beta: Motion, unit: float) -> Eliminated:
    """The leg's DoF as twists of the platform, not yet projected."""
    pose, own = Transform(), []
    if leg.closure is not None:
        joint = joined(m, legs, leg, here)
        pose, own = joint.pose, [joint.seen(s) for s in m.closures[leg.closure].kind.closure_motion(joint.x)]
    inward: list[Column] = []
    seen: dict[int, Transform] = {}
    for i in reversed(leg.links):
        seen[i] = pose
        start = m.links[i].v.start
        twists = [_in_unit(pose.T @ s, unit) for s in here[i].S]
        found = [Column(start + k, start + k in legs.actuated, p) for k, p in enumerate(twists)]
        inward += reversed(found)
        pose = here[i].X @ pose
    closing = [Column(None, False, _in_unit(s, unit)) for s in own]
    return Eliminated([*reversed(inward), *closing], _in_unit(beta, unit), seen, unit)


def _sum(motions) -> Motion:
    out = Motion()
    for x in motions:
        out = out + x
    return out


def _dot(x, y):
    return dot(tuple(x), tuple(y))


# ---- beta of accelerations: what the platform does while no joint's rate changes, seen through each leg. [Saha, 25]


def velocity_terms(link, here, parent) -> Values:
    """Velocity of the link, and its acceleration while no joint's rate changes; gravity is one of the world."""
    V = here.X.T @ parent.V + combined(here.S, here.v)
    return Values(field=link_acceleration(link, here, parent.field, here.v), V=V)


def leg_bias(m, legs: Legs, leg: Leg, here, still: Field) -> Motion:
    """beta of a leg: the platform's acceleration if the leg alone moved it and no rate of the leg changed."""
    if leg.closure is None:
        return here[legs.platform].field.motion
    c, joint = m.closures[leg.closure], joined(m, legs, leg, here)
    x, a, b, child = joint.x, c.a.transform(), c.b.transform(), joint.sign > 0.0
    field = here[leg.links[-1]].field if leg.links else still
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
    beta = joint.in_b.T @ (moved + coriolis(spin, relative) * joint.sign)
    return beta + Motion(ZERO3, negate(cross(omega, cross(omega, r))))


def _velocity(here, anchor, x: Transform) -> Motion:
    return Motion() if anchor.link < 0 else x.T @ here[anchor.link].V
