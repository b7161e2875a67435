"""Ctrl-C and fork at any moment: no crash, no wait, no number that changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime import machine
from spanloop.compiler.runtime.machine import Helper, Slices
from spanloop.compiler.runtime.rollout import Steps

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


# ---- slices


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("count", "unit", "effort"), [(1, 4, 1.0), (1001, 4, 1e5), (64, 8, 1e9), (10**6, 8, 3000.0)])
def test_slices_cover_every_number_once_and_keep_units_together(count, unit, effort, threads):
    found = list(Slices(count, unit, effort, threads))
    assert found[0][0] == 0
    assert found[-1][1] == count
    assert all(a[1] == b[0] and a[1] % unit == 0 for a, b in pairwise(found))
    assert all((end - begin) / unit * effort <= max(machine.SLICE, effort) for begin, end in found)


@pytest.mark.parametrize("every", [1, 3, 10])
@pytest.mark.parametrize("longest", [1, 2, 7, 10, 25, 1000])
@pytest.mark.parametrize("count", [0, 1, 30, 60])
def test_stretches_of_steps_miss_no_sample(count, longest, every):
    parts = list(Steps(0.0, 1e-3, 0, count, every).stretches(longest))
    steps = [k for first, n in parts for k in range(first, first + n)]
    assert steps == list(range(count))
    assert max(n for _, n in parts) <= max(longest, 1)
    recorded = {k for first, n in parts if first % every == 0 for k in range(first, first + n + 1) if k % every == 0}
    assert recorded == set(range(0, count + 1, every))


@pytest.mark.parametrize("threads", [1, 3])
def test_slices_change_no_bit_of_a_batch(monkeypatch, threads):
    model = sl.zoo.four_bar()
    q, v = sl.zoo.four_bar_start(), np.zeros(model.nv)
    tau = np.linspace(0.0, 1.0, 1003)[:, None] * np.ones(model.nv)
    kernel = sl.compile(model, "forward_dynamics", threads=threads)
    whole = kernel(q, v, tau)
    monkeypatch.setattr(machine, "SLICE", 1000)
    assert kernel(q, v, tau).tobytes() == whole.tobytes()


@pytest.mark.parametrize("runs", [1, 37])
@pytest.mark.parametrize("sample", [1e-3, 0.02])
def test_slices_change_no_bit_of_a_motion(monkeypatch, runs, sample):
    model, q = sl.zoo.pendulum(2), np.linspace(0.1, 0.5, 2 * runs).reshape(runs, 2)
    how = {"duration": 0.1, "sample": sample, "integrator": sl.Integrator(threads=2), "limits": "ignore"}
    tau = np.linspace(0.0, 1.0, 200).reshape(100, 2)
    whole = sl.simulate(model, q, tau=tau, **how)
    monkeypatch.setattr(machine, "SLICE", 300)
    parts = sl.simulate(model, q, tau=tau, **how)
    assert parts.q.tobytes() == whole.q.tobytes()
    assert parts.tau.tobytes() == whole.tau.tobytes()
    assert parts.outcomes == whole.outcomes


# ---- interrupts


def test_helpers_have_ended_when_an_interrupt_comes_out():
    main, taken = threading.get_ident(), []
    slices = Slices(10_000, 1, machine.SLICE, threads=3)

    def work(own):
        for begin, _ in own:
            taken.append(begin)
            time.sleep(0.002)
            if threading.get_ident() == main and len(taken) > 6:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slices.share(work)
    seen = len(taken)
    time.sleep(0.02)
    assert len(taken) == seen < 100


def test_an_interrupt_while_helpers_are_awaited_does_not_leave_them_behind(monkeypatch):
    main, ended = threading.get_ident(), []
    slices = Slices(2, 1, machine.SLICE, threads=2)
    wait, interrupts = Helper.wait, [1, 1, 1]

    def interrupted(helper):
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        wait(helper)

    def work(own):
        while threading.get_ident() != main and interrupts:
            time.sleep(0.001)
        ended.append(list(own))

    monkeypatch.setattr(Helper, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        slices.share(work)
    assert len(ended) == 2
    assert slices.stopped


def test_an_error_on_a_helper_comes_out():
    main, failed = threading.get_ident(), threading.Event()

    def work(own):
        if threading.get_ident() != main:
            failed.set()
            raise MemoryError("no room")
        failed.wait(10.0)

    with pytest.raises(MemoryError, match="no room"):
        Slices(8, 1, machine.SLICE, threads=2).share(work)


def test_compiling_goes_on_after_an_interrupt(monkeypatch):
    wait, interrupts = Helper.wait, [1]

    def interrupted(helper):
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        wait(helper)

    monkeypatch.setenv("SPANLOOP_CACHE", "off")
    monkeypatch.setattr(Helper, "wait", interrupted)
    model, x = sl.zoo.pendulum(2), np.array([0.3, 0.1])
    with pytest.raises(KeyboardInterrupt):
        sl.compile(model, "bias")
    np.testing.assert_allclose(sl.compile(model, "bias")(x, x), sl.compile(model, "bias", target="python")(x, x))


BATCHES = """
import faulthandler, os, signal, threading, time, numpy as np, spanloop as sl
faulthandler.dump_traceback_later(50, exit=True)
model = sl.zoo.quadruped()
q, v = model.random_state(1)
kernel = sl.compile(model, "forward_dynamics", threads={threads})
expected = kernel(np.repeat(q[None], 2, 0), v, v)[:1]
def interrupt():
    for _ in range(4):
        time.sleep(0.15)
        os.kill(os.getpid(), signal.SIGINT)
many, hits = np.repeat(q[None], 2_000_000, 0), 0
other = threading.Thread(target=interrupt)
other.start()
while True:
    try:
        if not other.is_alive():  # two signals may come out as one interrupt
            break
        kernel(many, v, v)
    except KeyboardInterrupt:
        hits += 1
assert hits
assert (kernel(many[:1000], v, v) == expected).all()
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_interrupts_of_large_batches_neither_crash_nor_wait(threads):
    subprocess.run([sys.executable, "-c", BATCHES.format(threads=threads)], check=True, timeout=60)


MONSTER = """
import numpy as np, spanloop as sl
print("begin", flush=True)
sl.compile(sl.zoo.chain(40, seed=1), "forward_dynamics", method="composite_body", lowering="unrolled")
"""


@pytest.mark.slow
def test_an_interrupt_ends_a_long_compilation_at_once():
    environment = {**os.environ, "SPANLOOP_CACHE": "off"}
    process = subprocess.Popen(
        [sys.executable, "-c", MONSTER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    process.stdout.readline()
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=5.0)
    assert process.returncode in (130, -signal.SIGINT)
    assert b"KeyboardInterrupt" in errors


# ---- forks

FORKS = """
import os, threading, time, numpy as np, spanloop as sl
model = sl.zoo.quadruped()
q, v = model.random_state(1)
many = np.repeat(q[None], 5000, 0)
robot = sl.Dynamics(model, threads=2)
def compile_all():
    robot.forward_dynamics(many, v, v)
    robot.mass_matrix(many)
other = threading.Thread(target=compile_all)
other.start()
children = []
for k in range(4):
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        robot.forward_dynamics(many, v, v)
        os._exit(0)
    children.append(child)
other.join()
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
"""


@needs_fork
@pytest.mark.slow
def test_a_fork_while_another_thread_compiles_leaves_a_child_that_works():
    environment = {**os.environ, "SPANLOOP_CACHE": "off"}
    subprocess.run([sys.executable, "-c", FORKS], check=True, timeout=60, env=environment)


PROCESSES = """
import multiprocessing, numpy as np, spanloop as sl

def answer(kernel):
    q, v = sl.zoo.quadruped().random_state(1)
    return kernel(np.repeat(q[None], 20_000, 0), v, v).tobytes()

if __name__ == "__main__":
    kernel = sl.compile(sl.zoo.quadruped(), "forward_dynamics", threads=2)
    expected = answer(kernel)
    for how in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(how).Pool(2) as pool:
            assert pool.map(answer, [kernel, kernel]) == [expected, expected], how
"""


@pytest.mark.slow
def test_kernels_with_threads_work_in_processes_of_every_kind(tmp_path):
    (tmp_path / "processes.py").write_text(PROCESSES)
    subprocess.run([sys.executable, tmp_path / "processes.py"], check=True, timeout=60)
