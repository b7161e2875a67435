"""Every mechanism of the zoo as WebAssembly and as C, 1 s in steps of 1 ms from rest: the same bits at every step.

Motions of sl.simulate round otherwise (fused operations, vectors). Where a motion amplifies rounding, the bound is what
the motion makes of one unit in the last place that is added to its state now and then.
"""

from __future__ import annotations

import numpy as np
import pytest
from portable_code import WasmSteps, begin_with, needs_gcc, run_together, view

import spanloop as sl
from spanloop.exports.portable_motion import PortableMotion

STEP, STEPS = 1e-3, 1000
ARGUMENTS = {
    "chain": (6,),
    "tree": (3,),
    "star": (3,),
    "random_model": (3,),
    "n_four_bar": (4,),
    "arms_with_object": (2,),
}
LARGE = {"linkage_walker": 100}  # steps, of 134 000 operations each
CLOSURE = 2e-15  # m or rad
LOOSE = {"hexapod": 3e-10, "arms_with_linkage": 3e-12}  # they fall at 240 rad/s: one correction a step leaves more
AMPLIFIED = {"bricard", "delta", "arms_with_object"}
NOT_COMPARED = {"linkage_walker", "random_model", "arms_with_linkage", "hexapod"}  # whose rollouts compile long

pytestmark = [pytest.mark.slow, needs_gcc, pytest.mark.filterwarnings("ignore::spanloop.errors.SpanloopWarning")]


def motion_of(name: str) -> PortableMotion:
    arguments = ARGUMENTS.get(name, ())
    start = getattr(sl.zoo, f"{name}_start", lambda *_: None)(*arguments)
    return PortableMotion.of(getattr(sl.zoo, name)(*arguments), start, step=STEP, integrator="rk4", limits="ignore")


def moved(motion: PortableMotion, steps: WasmSteps, seed: int) -> np.ndarray:
    """Coordinates of a run in which every tenth state is moved by one unit in the last place."""
    rng, out = np.random.default_rng(seed), []
    begin_with(steps, motion.start, STEP)
    for k in range(STEPS + 1):
        out.append(view(steps, "q").copy())
        for x in (view(steps, "q"), view(steps, "v")) if k % 10 == 0 else ():
            x += np.spacing(np.abs(x)) * rng.choice([-1, 0, 1], len(x))
        view(steps, "t")[:] = k * STEP
        assert k == STEPS or steps.call("step") == 0
    return np.array(out)


@pytest.mark.parametrize("name", sl.zoo.names())
def test_wasm_and_c_are_equal_to_the_bit_at_every_step_with_loops_closed_and_follow_simulate(name):
    motion = motion_of(name)
    model, optimized = motion.problem.model, motion.schedule.operations < 6000  # optimized code keeps its bits
    rows, ended, wasm = run_together(motion, LARGE.get(name, STEPS), options=["-O2" if optimized else "-O0"])
    q = rows[:, : model.nq]
    assert not ended
    assert largest_error(model, q) <= LOOSE.get(name, CLOSURE)
    if name in NOT_COMPARED:
        return
    run = sl.simulate(model, motion.start["q"], step=STEP, duration=1.0, integrator="rk4", limits="ignore")
    bound = 20.0 * max(np.abs(moved(motion, wasm, seed) - q).max() for seed in (1, 2)) if name in AMPLIFIED else 1e-12
    assert np.abs(q - run.q).max() <= bound
    assert largest_error(model, q) <= 2.0 * largest_error(model, run.q) + 1e-15  # as far open as those of simulate


@pytest.mark.parametrize("name", ["four_bar", "three_pumas", "quadruped"])
def test_the_compact_schedule_of_pages_has_the_same_bits_in_c(name):
    model, start = getattr(sl.zoo, name)(), getattr(sl.zoo, f"{name}_start")()
    motion = PortableMotion.of(model, start, limits="ignore", compact=True, varied=("gravity.z",))
    rows, ended, _ = run_together(motion, 200, options=["-O0"])
    assert not ended
    assert largest_error(model, rows[:, : model.nq]) <= CLOSURE


def largest_error(model: sl.Model, q: np.ndarray) -> float:
    """Of any closure [m or rad]."""
    closed = bool(model.loops or model.couplings)
    return float(np.abs(sl.Dynamics(model).closure_error(q)).max()) if closed else 0.0
