"""`spanloop bench`: measure the time of a call and of a step on this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from spanloop.cli.shared_arguments import add_model, initial_state, loading, model_of
from spanloop.cli.terminal import add_json, colored, print_json
from spanloop.compiler.runtime import machine
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopError, in_one_line
from spanloop.simulation.integrators import Integrator
from spanloop.simulation.simulate import simulate

EXAMPLES = (
    "spanloop bench zoo:three_pumas",
    "spanloop bench zoo:chain:7 --seconds 0.05 --json",
)
BATCH, ROUNDS, STEPS, RUNS = 4096, 7, 1000, 64
LEGEND = f"""
Medians (quartiles) of {ROUNDS} rounds. "a call" is one call from Python, input checks included;
"a state of a batch" is one of {BATCH} states; "a step" is an RK4 step with projection of the loops, one of {STEPS}
steps in one simulate() of one run or of {RUNS}."""


@dataclass(frozen=True)
class Cost:
    """Time of one call, state or step: median and quartiles [s], or the reason why it was not measured."""

    what: str
    median: float = 0.0
    low: float = 0.0
    high: float = 0.0
    why_not: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--seconds", type=float, default=0.3, help="duration of each measurement (0.3)")
    parser.add_argument("--threads", type=int, default=1, help="threads for batches, 0 for all cores (1)")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    if not 0.0 < chosen.seconds <= 60.0:
        raise InputError(f"--seconds is {chosen.seconds:g}; must be above 0 and at most 60")
    model = model_of(chosen.file, **loading(chosen))
    robot = Dynamics(model, threads=chosen.threads)
    q, v = initial_state(robot, chosen.file, {}, {})
    tau = np.zeros(model.nv)
    began = time.perf_counter()
    robot.forward_dynamics(q, v, tau)
    first = time.perf_counter() - began
    kernel = robot.kernel("forward_dynamics")
    source = "from the cache" if kernel.from_cache else "traced and compiled"
    costs = measured(robot, q, v, tau, chosen.seconds)
    if chosen.json:
        operations = asdict(kernel.operations)
        print_json(
            {
                "model": model.name,
                "nv": model.nv,
                "machine": _machine(),
                "first_call": {"seconds": first, "source": source},
                "operations": operations,
                "costs": [asdict(c) for c in costs],
            }
        )
        return 0
    name = in_one_line(model.name)
    print(colored(f"{name}: {model.n_bodies} bodies, {model.nv} DoF, {len(model.loops)} loops", "strong"))
    print(f"on {_machine()}; {chosen.threads or 'all'} thread(s) for batches")
    print(f"forward dynamics: {source} in {first:.3g} s; {kernel.operations}\n")
    width = max(len(c.what) for c in costs)
    for c in costs:
        found = c.why_not or f"{_time(c.median):>9}   ({_time(c.low)} to {_time(c.high)})"
        print(f"{c.what:<{width}}  {found}")
    print(LEGEND)
    return 0


def measured(robot: Dynamics, q: np.ndarray, v: np.ndarray, tau: np.ndarray, seconds: float) -> list[Cost]:
    """Measure calls, batches and steps; one that fails carries the reason."""
    many = [np.tile(x, (BATCH, 1)) for x in (q, v, tau)]
    wide = [np.tile(x, (RUNS, 1)) for x in (q, v)]
    through = Dynamics(robot.model, on_singular="minimum_norm")  # a random motion may pass a singular configuration

    def steps(q, v):
        end = 1e-3 * STEPS
        return lambda: simulate(
            through,
            q,
            v,
            duration=end,
            step=1e-3,
            sample=end,
            limits="ignore",
            integrator=Integrator(progress=False),
        )

    return [
        _cost("forward dynamics, a call", lambda: robot.forward_dynamics(q, v, tau), 1, seconds),
        _cost("inverse dynamics, a call", lambda: robot.inverse_dynamics(q, v, tau), 1, seconds),
        _cost("forward dynamics, a state of a batch", lambda: robot.forward_dynamics(*many), BATCH, seconds),
        _cost("inverse dynamics, a state of a batch", lambda: robot.inverse_dynamics(*many), BATCH, seconds),
        _cost("simulation, a step", steps(q, v), STEPS, seconds),
        _cost(f"simulation, a step of {RUNS} runs", steps(wide[0], wide[1]), RUNS * STEPS, seconds),
    ]


def _cost(what: str, call: Callable, share: int, seconds: float) -> Cost:
    """Time of call() divided by share."""
    try:
        call()
    except SpanloopError as error:
        return Cost(what, why_not=f"not measured: {str(error).partition(';')[0]}")
    began = time.perf_counter()
    call()
    count = max(1, int(seconds / ROUNDS / max(time.perf_counter() - began, 1e-9)))
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(count):
            call()
        rounds.append((time.perf_counter() - began) / count / share)
    low, median, high = np.quantile(rounds, (0.25, 0.5, 0.75))
    return Cost(what, float(median), float(low), float(high))


def _machine() -> str:
    return f"{machine.processor()}, {machine.lanes('double')} doubles per vector"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
