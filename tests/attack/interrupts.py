"""Attack with Ctrl-C: batches, motions and compilations, on one thread and on several.

A case is a process that repeats one action; at a random moment of each it gets SIGINT, now and then twice. It must come
back within two seconds, give up what it did or return what there is, and then give the same bits as before.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from tally import Tally, until
from victims import Victim

import spanloop as sl

INTERRUPTS = 6  # of a case
BOUND = 2.0  # s from the signal to the answer, on a processor of one's own
ACTIONS = ("batch", "large_batch", "motions", "long_motion", "compiling", "single_calls")
THREADS = (1, 2, 4)


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int) -> Tally:
    """One process and several interrupts."""
    rng = np.random.default_rng([seed, k])
    action, threads = str(rng.choice(ACTIONS)), int(rng.choice(THREADS))
    name = f"interrupts.case({seed}, {k}), {action} on {threads} threads"
    tally = Tally()
    with Victim(__file__, action, threads, int(rng.integers(2**31)), SPANLOOP_CACHE="off") as victim:
        word = victim.line()
        if word is None or not word.startswith("ready"):
            tally.fail(f"{name}: not ready ({word!r}): {victim.end()}")
            return tally
        lasts = float(word.split()[1])
        for _ in range(INTERRUPTS):
            trouble, hit, waited = _interrupted(victim, rng, min(lasts, 3.0))
            if trouble:
                tally.fail(f"{name}: {trouble}: {victim.end()}")
                return tally
            tally.count(right=1)
            tally.notes["interrupted"] += hit
            tally.notes["after at most 0.2 s"] += hit and waited <= 0.2
    return tally


def _interrupted(victim: Victim, rng: np.random.Generator, lasts: float) -> tuple[str, bool, float]:
    """What went wrong in one action, "" if nothing did; whether it was interrupted; seconds until the answer."""
    victim.tell("go")
    if victim.line() != "begin":
        return "does not begin", False, 0.0
    time.sleep(rng.uniform(0.0, lasts))
    began = time.monotonic()
    victim.process.send_signal(signal.SIGINT)
    if rng.random() < 0.3:
        time.sleep(rng.uniform(0.0, 0.005))
        victim.process.send_signal(signal.SIGINT)
    bound = BOUND * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    answer = victim.line(bound)
    waited = time.monotonic() - began
    if answer is None:
        return f"no answer within {bound:.1f} s (came after {_late(victim, began)})", True, waited
    if answer not in ("interrupted", "finished"):
        return f"answered {answer!r}", True, waited
    victim.tell("check")
    found = victim.line()
    return ("" if found == "same" else f"after the interrupt: {found!r}"), answer == "interrupted", waited


def _late(victim: Victim, began: float) -> str:
    word = victim.line()
    return f"{time.monotonic() - began:.1f} s: {word!r}"


# ---- the process that is interrupted


def live(action: str, threads: int, seed: int) -> None:
    """Repeat an action; after each, compare with what came out before the first."""
    np.seterr(all="ignore")
    act, check = globals()[f"_{action}"](threads, np.random.default_rng(seed))
    expected = check()
    lasts = 1.0
    if action != "long_motion":  # which lasts until it is interrupted
        for _ in range(2):
            began = time.monotonic()
            act()
            lasts = time.monotonic() - began
    print("ready", lasts, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while sys.stdin.readline():
        answer = _answer(act)
        print(answer, flush=True)
        sys.stdin.readline()
        print("same" if check() == expected else "other bits", flush=True)


def _answer(act: Callable[[], object]) -> str:
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print("begin", flush=True)
            act()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return "interrupted"
    time.sleep(0.01)  # a signal that came late is ignored
    return "finished"


def _batch(threads: int, rng: np.random.Generator, states: int = 200_000):
    model = (sl.zoo.puma, sl.zoo.quadruped, partial(sl.zoo.chain, 20))[rng.integers(3)]()
    q, v = model.random_state(int(rng.integers(1000)))
    robot = sl.Dynamics(model, threads=threads)
    many = np.repeat(q[None], states, axis=0)
    out = np.empty((states, model.nv)) if rng.random() < 0.5 else None
    tau = rng.normal(size=(500, model.nv))
    return (
        lambda: robot.forward_dynamics(many, v, tau[0], out=out),
        lambda: robot.forward_dynamics(many[:500], v, tau).tobytes(),
    )


def _large_batch(threads: int, rng: np.random.Generator):
    return _batch(threads, rng, states=1_500_000)


def _motions(threads: int, rng: np.random.Generator):
    model, runs = sl.zoo.four_bar(), int(rng.integers(2, 60))
    v = np.zeros((runs, model.nv))
    tau = rng.normal(size=(runs, 1, model.nv))
    integrator = sl.Integrator(threads=threads)

    def simulate(duration: float):
        how = {"duration": duration, "sample": 0.01, "integrator": integrator}
        return sl.simulate(model, sl.zoo.four_bar_start(), v, tau=tau, **how)

    expected = simulate(1.0)

    def act():
        run = simulate(50.0)
        n = min(run.q.shape[1], expected.q.shape[1])
        assert run.q[:, :n].tobytes() == expected.q[:, :n].tobytes()
        if any(o.reason == "interrupted" for o in run.outcomes):
            raise KeyboardInterrupt

    return act, lambda: simulate(0.1).q.tobytes()


def _long_motion(threads: int, rng: np.random.Generator):
    model = sl.zoo.puma()
    q, v = model.random_state(int(rng.integers(1000)))
    how = {"limits": "ignore", "integrator": sl.Integrator(threads=threads)}

    def act():
        run = sl.simulate(model, q, 0.0 * v, duration=2e4, sample=1e4, **how)
        if run.outcome.reason == "interrupted":
            raise KeyboardInterrupt

    return act, lambda: sl.simulate(model, q, 0.0 * v, duration=0.5, sample=0.25, **how).q.tobytes()


def _compiling(threads: int, rng: np.random.Generator):
    numbers = iter(range(int(rng.integers(10**6)), 10**9))

    def act():
        model = sl.zoo.chain(12, seed=next(numbers))
        q, v = model.random_state(1)
        robot = sl.Dynamics(model, threads=threads)
        robot.forward_dynamics(np.repeat(q[None], 100, axis=0), v, v)
        robot.mass_matrix(q)

    def check():
        model = sl.zoo.chain(3, seed=next(numbers))
        q, v = model.random_state(1)
        fast, slow = (sl.Dynamics(model, target=t) for t in ("cpu", "python"))
        many = fast.forward_dynamics(np.repeat(q[None], 10, axis=0), v, v)
        return np.allclose(many, slow.forward_dynamics(q, v, v), rtol=1e-9)

    return act, check


def _single_calls(threads: int, rng: np.random.Generator):
    model = sl.zoo.quadruped()
    q, v = model.random_state(int(rng.integers(1000)))
    robot = sl.Dynamics(model, chain_threads=threads)

    def act():
        for _ in range(100_000):
            robot.forward_dynamics(q, v, v)

    return act, lambda: robot.forward_dynamics(q, v, v).tobytes()


if __name__ == "__main__":
    live(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    os._exit(0)
