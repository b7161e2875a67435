"""The classical Runge-Kutta step of fourth order, on joints whose coordinates are not a vector space as well.

Rotations are moved by exponentials of combinations of stage velocities [Celledoni, Marthinsen & Owren 2003]: no
commutators, fourth order on any Lie group. For joints that turn about or slide along one axis it is the classical step.
"""

from __future__ import annotations

from spanloop.simulation.integrators.step_schedule import ScheduleBuilder


def step(s: ScheduleBuilder) -> None:
    """Four accelerations; q⁺ and v⁺ from their sums."""
    v = s.velocity

    def second(x):
        half = 0.5 * x["h"][0]
        return s.system.moved(x["q"], _times(half, x[v])), _plus(x[v], half, x["a1"]), [x["t"][0] + half]

    def third(x):
        half = 0.5 * x["h"][0]
        return s.system.moved(x["q"], _times(half, x["v2"])), _plus(x[v], half, x["a2"])

    def fourth(x):
        h = x["h"][0]
        way = [h * c - (0.5 * h) * a for c, a in zip(x["v3"], x[v], strict=True)]
        middle = [b + c for b, c in zip(x["v2"], x["v3"], strict=True)]
        rates = [a + 2.0 * (b + c) for a, b, c in zip(x["a1"], x["a2"], x["a3"], strict=True)]
        return s.system.moved(x["q2"], way), _plus(x[v], h, x["a3"]), [x["t"][0] + h], middle, rates

    def last(x):
        k = x["h"][0] / 12.0
        rows = [(a, 2.0 * m, d) for a, m, d in zip(x[v], x["v.middle"], x["v4"], strict=True)]
        first = [k * (3.0 * a + m - d) for a, m, d in rows]
        second = [k * (m - a + 3.0 * d) for a, m, d in rows]
        return first, second, [(2.0 * k) * (a + d) for a, d in zip(x["a.sum"], x["a4"], strict=True)]

    s.accelerate("t", "q", v, "a1")
    s.call("second", ("t", "h", "q", v, "a1"), {"q2": s.nq, "v2": s.nv, "t2": 1}, second)
    s.accelerate("t2", "q2", "v2", "a2")
    s.call("third", ("h", "q", v, "v2", "a2"), {"q3": s.nq, "v3": s.nv}, third)
    s.accelerate("t2", "q3", "v3", "a3")
    sums = {"v.middle": s.nv, "a.sum": s.nv}  # so that few arrays are carried through the fourth acceleration
    reads = ("t", "h", "q2", v, "v2", "v3", "a1", "a2", "a3")
    s.call("fourth", reads, {"q4": s.nq, "v4": s.nv, "t4": 1} | sums, fourth)
    s.accelerate("t4", "q4", "v4", "a4")
    s.advance("last", ("h", v, "v.middle", "v4", "a.sum", "a4"), last)


def _times(k, x) -> list:
    return [k * a for a in x]


def _plus(x, k, y) -> list:
    return [a + k * b for a, b in zip(x, y, strict=True)]
