"""A motion is the same to the last bit however it is computed: alone, in a batch, on threads, killed and continued."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import spanloop as sl

COUNT, STEPS = 21, 120


def runs(model, start=None, seed=4):
    """States (COUNT, ...) and torques for every step."""
    rng = np.random.default_rng(seed)
    if start is None:
        q, v = (np.array(x) for x in zip(*(model.random_state(k) for k in range(COUNT)), strict=True))
    else:
        q, v = sl.Dynamics(model).project(np.tile(start, (COUNT, 1)), rng.normal(size=(COUNT, model.nv)))
    return model, q, v, rng.normal(size=(COUNT, STEPS, model.nv))


CASES = {
    "puma": lambda: runs(sl.zoo.puma()),
    "quadruped": lambda: runs(sl.zoo.quadruped()),
    "four_bar": lambda: runs(sl.zoo.four_bar(), sl.zoo.four_bar_start()),
    "stewart": lambda: runs(sl.zoo.stewart(), sl.zoo.stewart_start()),
}
FULL = list(itertools.product(("rk4", "euler", "midpoint", "implicit"), ("float64", "float32")))
KINDS = [("puma", *x) for x in FULL] + [("four_bar", *x) for x in FULL]
KINDS += [pytest.param(name, *x, marks=pytest.mark.slow) for name in ("quadruped", "stewart") for x in FULL]


def same(a, b) -> None:
    np.testing.assert_array_equal(a.times, b.times)
    for name in ("q", "v", "tau"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert [str(o) for o in a.outcomes] == [str(o) for o in b.outcomes]


@pytest.mark.parametrize(("name", "integrator", "dtype"), KINDS)
def test_a_batch_gives_what_single_runs_give(name, integrator, dtype):
    model, q, v, tau = CASES[name]()
    single, threaded = (sl.Integrator(integrator, dtype=dtype, threads=n) for n in (1, 2))
    how = {"duration": STEPS * 1e-3, "limits": "ignore"}
    batch = sl.simulate(model, q, v, tau=tau, integrator=single, **how)
    same(sl.simulate(model, q, v, tau=tau, integrator=threaded, **how), batch)
    for k in (0, 7, COUNT - 1):  # first, end of a vector, in the last vector, which is not full
        same(sl.simulate(model, q[k], v[k], tau=tau[k], integrator=single, **how), batch[k])


def test_runs_that_stop_do_not_disturb_their_neighbours():
    """Every lane ends at a time of its own, some never."""
    model = sl.zoo.pendulum()
    q, v = np.linspace(0.2, 2.5, 19)[:, None], np.zeros((19, 1))
    how = {"duration": 1.0, "events": {"fast": lambda t, q, v: 4.0 + v[0]}}
    batch = sl.simulate(model, q, v, **how)
    assert {o.reason for o in batch.outcomes} == {"event", "finished"}
    for k in range(19):
        same(sl.simulate(model, q[k], v[k], **how), batch[k])


@pytest.mark.parametrize("wanted", [0.5, 0.4, -0.4])
def test_a_number_in_a_condition_counts(wanted):
    """Conditions that differ by a number alone are different conditions, whatever was compiled before."""
    run = sl.simulate(sl.zoo.pendulum(), [1.0], duration=2.0, events={"there": lambda t, q, v: q[0] - wanted})
    assert run.q[-1, 0] == pytest.approx(wanted, abs=1e-10)


def test_a_number_in_a_controller_counts():
    model = sl.zoo.pendulum()

    def first_acceleration(push):
        run = sl.simulate(model, [0.0], [0.0], duration=2e-3, controller=lambda t, q, v: [push - v[0]])
        return run.v[1, 0] / 1e-3

    assert first_acceleration(3.0) / first_acceleration(2.0) == pytest.approx(1.5, rel=1e-4)


RUN = """
import sys
import numpy as np
import spanloop as sl
import spanloop.simulation.checkpoint as checkpoint

checkpoint.SECONDS = 0.05
q = np.tile(sl.zoo.four_bar_start(), (12, 1))
v = sl.Dynamics(sl.zoo.four_bar()).complete_velocity(q, {"crank_hinge": np.linspace(0.0, 3.0, 12)[:, None]})
path = sys.argv[2] if len(sys.argv) > 2 else None
run = sl.simulate(sl.zoo.four_bar(), q, v, duration=200.0, sample=0.5, integrator=sl.Integrator(checkpoint=path))
np.savez(sys.argv[1], q=run.q, v=run.v, residual=run.residual)
"""


def steps_in(checkpoint):
    with np.load(checkpoint) as data:
        return int(data["done"])


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_numbers(tmp_path):
    kept, whole, continued = (tmp_path / name for name in ("run.checkpoint", "whole.npz", "continued.npz"))

    def start(*arguments):
        return subprocess.Popen([sys.executable, "-c", RUN, *map(str, arguments)], env=os.environ)

    assert start(whole).wait(120) == 0
    killed = start(continued, kept)
    deadline = time.monotonic() + 60.0
    while not kept.exists() or not steps_in(kept):
        assert killed.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(60) == -signal.SIGKILL
    assert not continued.exists()
    assert 0 < steps_in(kept) < 200_000
    assert start(continued, kept).wait(120) == 0
    assert not kept.exists()
    with np.load(whole) as a, np.load(continued) as b:
        for name in a.files:
            np.testing.assert_array_equal(a[name], b[name])
