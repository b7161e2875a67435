"""Semi-implicit Euler: the new velocity moves the coordinates. First order; symplectic on motions without losses."""

from __future__ import annotations

from spanloop.simulation.integrators.step_schedule import ScheduleBuilder


def step(s: ScheduleBuilder) -> None:
    """v⁺ = v + h a,  q⁺ = q ⊕ h v⁺."""
    s.accelerate("t", "q", s.velocity, "a1")

    def change(x):
        h = x["h"][0]
        dv = [h * a for a in x["a1"]]
        return [h * (a + b) for a, b in zip(x[s.velocity], dv, strict=True)], [0.0] * s.nv, dv

    s.advance("euler", (s.velocity, "a1", "h"), change)
