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
where that is off, γ ≥ 1/4 keeps the step A-stable.

| symbol | array | shape | meaning |
|---|---|---|---|
| γ h, γ h K, E | reach, pull, extra | nv | of this step |
| a1, a2 | a1, a2 | nv | accelerations of the stages |
| r | toward | nv | see above |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.math.scalar import sqrt
from spanloop.simulation.integrators.step_schedule import ScheduleBuilder
from spanloop.simulation.stiffness import mobility
from spanloop.simulation.system import SLIP, System


def step(s: ScheduleBuilder) -> None:
    """Two accelerations with the armature E; q⁺ = q ⊕ h (3 k1 + k2) / 2,  v⁺ = v + h (a1 + a2) / 2."""
    v = s.velocity

    def second(x):
        h = x["h"][0]
        first = _rates(x, v)
        v2 = [b + h * a for a, b in zip(x["a1"], x[v], strict=True)]
        q2 = s.system.moved(x["q"], [h * r for r in first])
        return q2, v2, [b - 2.0 * r for b, r in zip(v2, first, strict=True)], [x["t"][0] + h]

    def last(x):
        half = 0.5 * x["h"][0]
        rows = zip(_rates(x, v), x["toward"], x["reach"], x["a1"], x["a2"], strict=True)
        way = [half * (3.0 * k1 + (r + reach * (b - 2.0 * a))) for k1, r, reach, a, b in rows]
        return way, [0.0] * s.nv, [half * (a + b) for a, b in zip(x["a1"], x["a2"], strict=True)]

    if not s.begin:  # with closed loops it is done there
        reads = ("t", "h", "q", "v", "u", "z", *s.system.constants)
        writes = {"reach": s.nv, "pull": s.nv, "extra": s.nv, "still": s.nv}
        s.call("linearize", reads, writes, lambda x: (*linearized(s.system, x).values(), [0.0] * s.nv))
    s.accelerate("t", "q", v, "a1", v, "still")
    s.call("second", ("t", "h", "q", v, "a1", "reach"), {"q2": s.nq, "v2": s.nv, "toward": s.nv, "t2": 1}, second)
    s.accelerate("t2", "q2", "v2", "a2", "toward", "a1")
    s.advance("last", ("h", v, "a1", "a2", "reach", "toward"), last)


def linearized(system: System, x: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The arrays reach, pull and extra of a step from the state x."""
    h, out = x["h"][0], {"reach": [], "pull": [], "extra": []}  # type: ignore[var-annotated]
    K, D = system.stiffness_and_damping(x)
    for k, d, f, v, w in zip(K, D, system.friction, x["v"], mobility(system.model), strict=True):
        d = d + friction_damping(f, v, h * w) if f > 0.0 else d
        reach = 0.0 if _is_zero(k) and _is_zero(d) else h * implicitness(h * (w * d + sqrt(w * k)))
        out["reach"].append(reach)
        out["pull"].append(reach * k)
        out["extra"].append(reach * (d + reach * k))
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
    """The first entry of k1: v + γ h a1."""
    return [b + reach * a for a, b, reach in zip(x["a1"], x[v], x["reach"], strict=True)]


def _is_zero(x: Any) -> bool:
    return isinstance(x, int | float) and x == 0.0
