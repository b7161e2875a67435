"""Implicit steps for stiff joints: dampers, springs, friction and linear gains are taken implicitly. Second order.

The W-method of two stages [Verwer, Spee, Blom & Hundsdorfer 1999] of w' = F(w), w = (q, v):

    (1 − h A) k1 = F(w),    (1 − h A) k2 = F(w + h k1) − 2 k1,    w⁺ = w + h (3 k1 + k2) / 2.

It has order two for any A. Ours contains the torques −K dq − D v at the joints alone (System.stiffness_and_damping and
`friction_damping`), with one γ for each degree of freedom (DoF). Then no matrix is formed: with the armature
E = γ h D + γ² h² K added to M,

    (M + E) a1 = tau(w) − γ h K v − bias(w)                       k1 = (v + γ h a1, a1)
    (M + E) a2 = tau(w2) − γ h K r + 2 E a1 − bias(w2)            k2 = (r + γ h (a2 − 2 a1), a2 − 2 a1)

in which w2 = w + h k1 and r is its velocity less twice the first entry of k1. Both are forward dynamics, of loops as of
trees: a closure's rows do not contain E. Where A is exact, a mode that decays at the rate u / h is multiplied by

    R(u) = 1 − 2 m u + (u + u²/2) m²,    m = 1 / (1 + γ u).

γ = 1 ± √½, the usual choice, makes R vanish for u → ∞; with the minus sign R changes its sign (velocities alternate),
with the plus sign errors are large. γ(u) of `implicitness` makes it 1 / (1 + u + u²/2 + u³/6): never negative,
L-stable, third order for one damped joint. u is the DoF's own rate in the neutral position (stiffness.mobility);
where that is off, γ ≥ 1/4 keeps the step A-stable. A DoF on which nothing pulls has γ = 0, so that its stages are
explicit; live parameters decide it by their numbers, as those of the model do. With loops all DoF have the γ of the
fastest: with several, the rates in k1 would open the loops by h v in one step.

Targets that move. A gain pulls at Kp x(t) + Kd x'(t), which K and D know nothing of. So w is taken relative to the
parabola c(t) through Kp x / K at the ends and in the middle of the step. That leaves the equations as they are, with

    push = γ h K c' + E c″ + γ h f',    f = Kd x' − D c',

added to the torques of the first stage and subtracted from those of the second, a1 − c″ in the place of a1 in k1,
r − h c″ in that of r, and h² c″/2 added to the position of w2 [non-autonomous W-methods, Hairer & Wanner IV.7].

| symbol | array | shape | meaning |
|---|---|---|---|
| γ h, γ h K, E | ahead, pull, extra | nv | of this step |
| c″, push | bend, push | nv | of targets that move |
| a1, a2 | a1, a2 | nv | accelerations of the stages |
| r | toward | nv | see above |
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.math.scalar import sqrt, where
from spanloop.math.vector3 import total
from spanloop.simulation.integrators.step_schedule import ScheduleBuilder
from spanloop.simulation.stiffness import mobility
from spanloop.simulation.system import SLIP, System, larger


def step(s: ScheduleBuilder) -> None:
    """Two accelerations with the armature E; q⁺ = q ⊕ h (3 k1 + k2) / 2,  v⁺ = v + h (a1 + a2) / 2."""
    v, follows = s.velocity, s.system.applied.follows
    extras = ("bend", "push") if follows else ()

    def second(x):
        h = x["h"][0]
        first = _rates(x, v)
        v2 = [b + h * a for a, b in zip(x["a1"], x[v], strict=True)]
        bends = [h * p for p in _bends(x)]
        q2 = s.system.moved(x["q"], [h * (r + 0.5 * p) for r, p in zip(first, bends, strict=True)])
        toward = [b - 2.0 * r - p for b, r, p in zip(v2, first, bends, strict=True)]
        return q2, v2, toward, [x["t"][0] + h], *([[-y for y in x["push"]]] if follows else ())

    def last(x):
        h = x["h"][0]
        rows = zip(_rates(x, v), x["toward"], x["ahead"], x["a1"], x["a2"], _bends(x), strict=True)
        way = [0.5 * h * (3.0 * k1 + (r + h * p + g * (b - 2.0 * a + p))) for k1, r, g, a, b, p in rows]
        return way, [0.0] * s.nv, [0.5 * h * (a + b) for a, b in zip(x["a1"], x["a2"], strict=True)]

    if not s.begin:  # with closed loops it is done there
        reads = ("t", "h", "q", "v", "u", "z", *s.system.constants)
        writes = dict.fromkeys((*s.system.linear_arrays, "still"), s.nv)
        s.call("linearize", reads, writes, lambda x: (*linearized(s.system, x).values(), [0.0] * s.nv))
    s.accelerate("t", "q", v, "a1", v, "still", *extras[1:])
    sizes = {"q2": s.nq, "v2": s.nv, "toward": s.nv, "t2": 1} | ({"pushback": s.nv} if follows else {})
    s.call("second", ("t", "h", "q", v, "a1", "ahead", *extras), sizes, second)
    s.accelerate("t2", "q2", "v2", "a2", "toward", "a1", *(["pushback"] if follows else []))
    s.advance("last", ("h", v, "a1", "a2", "ahead", "toward", *extras[:1]), last)


def linearized(system: System, x: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The arrays ahead, pull and extra of a step from the state x; bend and push, too, where targets move."""
    h = x["h"][0]
    K, D = (list(row) for row in system.stiffness_and_damping(x))
    w = mobility(system.model)
    for i, f in enumerate(system.friction):
        D[i] = D[i] + friction_damping(f, x["v"][i], h * w[i]) if f > 0.0 else D[i]
    rates = [_rate(h, m, k, d) for m, k, d in zip(w, K, D, strict=True)]
    if system.has_loops:  # one for all: else the stages would open the loops
        rates = [functools.reduce(larger, rates)] * len(rates)
    ahead = [where(yes, h * implicitness(u), 0.0) for u, yes in zip(rates, _acting(system, x, K, D), strict=True)]
    pull = [g * k for g, k in zip(ahead, K, strict=True)]
    extra = [g * (d + g * k) for g, k, d in zip(ahead, K, D, strict=True)]
    out = {"ahead": ahead, "pull": pull, "extra": extra}
    return out | _following(system, x, K, D, out) if system.applied.follows else out


def _acting(system: System, x: Mapping[str, Sequence[Any]], K: Sequence[Any], D: Sequence[Any]) -> list[Any]:
    """Where (nv) a step is implicit: a truth, or a condition of live springs and dampers, whose numbers are not known.

    Gains, stops and friction count whatever their state; with loops all DoF are implicit if one is.
    """
    stops = {stop.dof for stop in system.stops}
    gains = zip(*system.applied.linear_gains(x), system.friction, strict=True)
    sure = [i in stops or f > 0.0 or not (_is_zero(k) and _is_zero(d)) for i, (k, d, f) in enumerate(gains)]
    if system.has_loops:
        return [any(sure) or total(k + d for k, d in zip(K, D, strict=True)) > 0.0] * len(sure)
    return [yes or k + d > 0.0 for yes, k, d in zip(sure, K, D, strict=True)]


def _following(system: System, x: Mapping[str, Sequence[Any]], K: Any, D: Any, known: Any) -> dict[str, list[Any]]:
    """The arrays bend and push of targets that move."""
    t, h = x["t"][0], x["h"][0]
    (c0, d0), (c1, _), (c2, d2) = (system.applied.target_pull(x, at) for at in (t, t + 0.5 * h, t + h))
    out: dict[str, list[Any]] = {"bend": [], "push": []}
    rows = zip(c0, c1, c2, d0, d2, K, D, known["ahead"], known["pull"], known["extra"], strict=True)
    for a, b, c, before, after, k, d, ahead, pull, extra in rows:
        share = 0.0 if _is_zero(k) else where(k > 0.0, 1.0, 0.0) / where(k > 0.0, k, 1.0)
        rate = share * (4.0 * (b - a) - (c - a)) / h
        bend = share * (4.0 * ((a - b) + (c - b))) / (h * h)
        out["bend"].append(bend)
        out["push"].append(pull * rate + extra * bend + ahead * ((after - before) / h - d * bend))
    return out


def implicitness(u: Any) -> Any:
    """γ(u), from 0.789 at u = 0 to 1 + √½ at infinity: R = 1 / (1 + u + u²/2 + u³/6)."""
    s = sqrt((1.0 + u) / (12.0 + u * (12.0 + u * (6.0 + 2.0 * u))))
    return (0.5 + s) / (1.0 - u * s)


def friction_damping(strength: float, v: Any, hw: Any) -> Any:
    """D of friction f = strength · v / s, s = √(v² + SLIP²): its slope where the joint slides, f / v where it stops.

    hw: h times the mobility. A joint stops where friction would turn its velocity within the step, hw strength / s > 1;
    there the slope, almost zero, would let it swing back and forth.
    """
    s = sqrt(v * v + SLIP * SLIP)
    secant, slope = strength / s, strength * (SLIP * SLIP) / (s * s * s)
    stops = (2.0 * hw * secant) * (2.0 * hw * secant)
    share = stops * stops / (1.0 + stops * stops)
    return slope + share * (secant - slope)


def _rates(x: Mapping[str, Sequence[Any]], v: str) -> list[Any]:
    """The first entry of k1: v + γ h (a1 − c″)."""
    return [b + g * (a - p) for a, b, g, p in zip(x["a1"], x[v], x["ahead"], _bends(x), strict=True)]


def _bends(x: Mapping[str, Sequence[Any]]) -> Sequence[Any]:
    """c″ (nv) of targets that move, else zeros."""
    return x["bend"] if "bend" in x else [0.0] * len(x["ahead"])


def _rate(h: Any, m: float, k: Any, d: Any) -> Any:
    """u of one DoF: h times the rate at which it decays or oscillates."""
    return 0.0 if _is_zero(k) and _is_zero(d) else h * (m * d + _root(m * k))


def _root(x: Any) -> Any:
    """√x of x ≥ 0, with the derivative 0 at 0: a live stiffness of 0 has one."""
    if isinstance(x, int | float):
        return sqrt(x)
    return where(x > 0.0, sqrt(where(x > 0.0, x, 1.0)), 0.0)


def _is_zero(x: Any) -> bool:
    return isinstance(x, int | float) and x == 0.0
