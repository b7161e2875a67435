"""Minimal coordinates beside projection: `python benchmarks/minimal.py [mechanism ...]`.

Operations of one RK4 step (all calls of the schedule), time of a step of the compiled loop in one run and in a batch of
1024, and by how much loops are open and energy has changed after 0.2 s of steps of 1 ms. Times are medians
(quartiles) of this run, processor time of one thread, variants interleaved.
"""

from __future__ import annotations

import sys

import numpy as np
from timing import Spread, calls, compare

import spanloop as sl
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.simulation.controllers import applied_forces
from spanloop.simulation.events.endings import events_of
from spanloop.simulation.integrators.integrator import schedule, schedule_key
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.system import System

MECHANISMS = {
    "four_bar": (sl.zoo.four_bar, sl.zoo.four_bar_start),
    "slider_crank": (sl.zoo.slider_crank, sl.zoo.slider_crank_start),
    "five_bar": (sl.zoo.five_bar, sl.zoo.five_bar_start),
    "bricard": (sl.zoo.bricard, sl.zoo.bricard_start),
    "stewart": (sl.zoo.stewart, sl.zoo.stewart_start),
}
WAYS = ("project", "minimal")
H, STEPS, BATCH = 1e-3, 200, 1024


class Loop:
    """The compiled time loop alone, from rest, without torques."""

    def __init__(self, model, q, closures: str, runs: int):
        system, seen = (
            System(model, applied_forces(model, None, model.nv), closures=closures),
            events_of(model, False, None),
        )
        layout = StateLayout.of(system, seen, "float64")
        self.schedule = schedule(system, seen, "rk4", "float64")
        self.rollout = Rollout(schedule_key(system, seen, "rk4", "float64"), lambda: self.schedule, "float64")
        self.start = np.zeros((runs, layout.width))
        self.start[:, layout.places["q"]], self.start[:, layout.places["loops"]] = q, (0.0, 1.0)
        self.state, self.why = self.start.copy(), np.zeros(runs, np.uint8)
        self.constants, self.controls = np.zeros((1, 1)), np.zeros((1, 1, model.nv))

    def go(self) -> None:
        np.copyto(self.state, self.start)
        self.why[:] = 0
        self.rollout.run(self.state, self.constants, self.controls, self.why, Steps(0.0, H, 0, STEPS), None)
        assert not self.why.any()

    def operations(self) -> tuple[int, int]:
        """Multiplications and additions of one step."""
        each = [c.plan.operations for c in self.schedule.calls()]
        return sum(x.multiplications for x in each), sum(x.additions for x in each)


def main(names: list[str]) -> None:
    print(f"{'':14}{'':9}{'mul':>8}{'add':>8}{'one run [us]':>20}{'batch [ns]':>26}{'open':>10}{'energy [J]':>12}")
    for name in names:
        make, start = MECHANISMS[name]
        model, q = make(), start()
        one = {way: Loop(model, q, way, 1) for way in WAYS}
        many = {way: Loop(model, q, way, BATCH) for way in WAYS}
        single, batch = (compare({w: calls("go()", go=x.go) for w, x in loops.items()}) for loops in (one, many))
        for way in WAYS:
            run = sl.simulate(model, q, duration=0.2, step=H, closures=way, limits="ignore")
            energy = run.energy.sum(axis=-1)
            change = float(np.abs(energy - energy[0]).max())
            mul, add = one[way].operations()
            alone, together = shown(single[way], 1e6 / STEPS), shown(batch[way], 1e9 / STEPS / BATCH)
            print(f"{name:14}{way:9}{mul:8}{add:8}{alone:>20}{together:>26}{float(run.residual):10.0e}{change:12.1e}")


def shown(t: Spread, scale: float) -> str:
    return f"{t.median * scale:.2f} ({t.low * scale:.2f}-{t.high * scale:.2f})"


if __name__ == "__main__":
    main(sys.argv[1:] or list(MECHANISMS))
