"""The implicit midpoint rule: second order, keeps quadratic invariants, for long runs.

The acceleration at the middle of the step is found by repetition. A run has converged when a round changes the
velocity by less than TOLERANCE of itself; one that has not after MOST rounds ends with the reason not_converged.
Repetition converges while the step times the fastest frequency is below 2: stiff springs are for `implicit`.
"""

from __future__ import annotations

from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import total
from spanloop.simulation.integrators.step_schedule import ScheduleBuilder

TOLERANCE = {"float64": 1e-12, "float32": 2e-6}
MOST = 60


def step(s: ScheduleBuilder) -> None:
    """a = acceleration at (q ⊕ h/2 v_m, v_m), v_m = v + h/2 a;  v⁺ = v + h a,  q⁺ = q ⊕ h v_m."""
    v = s.velocity

    def begin(x):
        return list(x["a1"]), [1.0], [x["t"][0] + 0.5 * x["h"][0]]

    def middle(x):
        half = 0.5 * x["h"][0]
        v_m = [b + half * a for a, b in zip(x["a"], x[v], strict=True)]
        return s.system.moved(x["q"], [half * b for b in v_m]), v_m

    def compare(x):
        busy = ~(x["unsettled"][0] < 0.0)  # so that what is not a number is not done
        change = total(absolute(new - old) for old, new in zip(x["a"], x["a.new"], strict=True))
        size = total(absolute(rate) for rate in x[v])
        left = x["h"][0] * change - TOLERANCE[s.dtype] * (1.0 + size)
        a = [where(busy, new, old) for old, new in zip(x["a"], x["a.new"], strict=True)]
        return a, [where(busy, left, -1.0)]

    def change(x):
        h = x["h"][0]
        half = [(0.5 * h) * (b + (0.5 * h) * a) for a, b in zip(x["a"], x[v], strict=True)]
        return half, half, [h * a for a in x["a"]]

    s.accelerate("t", "q", v, "a1")
    s.call("begin", ("a1", "t", "h"), {"a": s.nv, "unsettled": 1, "t.mid": 1}, begin)
    with s.repeat("unsettled", MOST):
        s.call("middle", ("q", v, "a", "h"), {"q.mid": s.nq, "v.mid": s.nv}, middle)
        s.accelerate("t.mid", "q.mid", "v.mid", "a.new")
        s.call("compare", ("a", "a.new", v, "unsettled", "h"), {"a": s.nv, "unsettled": 1}, compare)
    s.advance("advance", (v, "a", "h"), change)
