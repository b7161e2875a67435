"""What a step of the adjoint takes beside the step itself: `python benchmarks/adjoints.py [case ... | tangents]`.

A step that records its state, and the step of its adjoint: operations, processor time of one thread in a batch (medians
and quartiles, interleaved), and seconds to compile. Derivatives are by q, v and the torques of every step; with "live"
also by all parameters. Goals: 4 times the operations, 5.5 times the time. With `tangents`, forward sensitivities along
eight directions stand in the place of the adjoint.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
from timing import calls, compare
from trees import pair

import spanloop as sl
from spanloop.compiler.lower.adjoint import adjoint
from spanloop.compiler.lower.schedule import Schedule
from spanloop.compiler.lower.tangent import tangent
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.simulation.integrators.integrator import schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem

H, BATCH, STEPS = 1e-3, 1024, 20


@dataclass
class Loop:
    """A compiled time loop with its arrays; what it began with is kept."""

    name: str
    schedule: Schedule
    state: np.ndarray
    constants: np.ndarray
    controls: np.ndarray

    def __post_init__(self):
        self.rollout = Rollout(f"{self.name} {time.time_ns()}", lambda: self.schedule)
        self.record = np.zeros((len(self.state), STEPS + 1, self.schedule.width(self.schedule.record)))
        start = time.process_time()
        self.go()
        self.first = time.process_time() - start  # s, to compile

    def go(self) -> np.ndarray:
        """The state after all steps."""
        state, why = self.state.copy(), np.zeros(len(self.state), np.uint8)
        given = state, self.constants, self.controls, why, Steps(0.0, H, 0, STEPS), self.record
        self.rollout.run(*given)
        assert not why.any(), (self.name, np.unique(why))
        return state


def loops(model, q, integrator: str, runs: int, **how) -> tuple[Loop, Loop]:
    """A run of a model from q, and its adjoint."""
    rng = np.random.default_rng(3)
    start = q + 0.02 * rng.normal(size=(runs, model.nq)) * (model.nq == model.nv)
    given = {"limits": "ignore", "tau": np.zeros(model.nv), "step": H, **how}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = Problem.of(sl.Dynamics(model), start, 0.1 * rng.normal(size=(runs, model.nv)), **given)
    problem = replace(problem, system=replace(problem.system, implicit=integrator == "implicit"))
    s = schedule(problem.system, problem.events, integrator, "float64")
    s = replace(s, record=s.state)
    state = problem.state(StateLayout.of(problem.system, problem.events, "float64"))
    u = 0.02 * rng.normal(size=(runs, STEPS, s.width(s.controls)))
    ahead = Loop("step", s, state, problem.constants, u)
    wrt = ("q", "v", "u", *(("p",) if "p" in s.constants else ()))
    of = ("q", "v.closed" if "v.closed" in s.sizes else "v")
    back = adjoint(s, wrt, of)
    parts = dict(_split(s, s.state, ahead.record[:, :-1])) | dict(_split(s, s.controls, u))
    t = np.broadcast_to(H * np.arange(STEPS)[None, :, None], (runs, STEPS, 1))
    parts |= {"time": t} | {n: rng.normal(size=(runs, STEPS, back.sizes[n])) for n in back.controls if n[:2] == "g."}
    rows = np.concatenate([parts[n] for n in back.controls], axis=-1)[:, ::-1]
    lam = rng.normal(size=(runs, back.width(back.state)))
    return ahead, Loop("derived", back, lam, problem.constants, np.ascontiguousarray(rows))


def _split(s: Schedule, names, rows: np.ndarray):
    ends = np.cumsum([s.sizes[n] for n in names])
    return zip(names, np.split(rows, ends[:-1], axis=-1), strict=True)


def sensitive(ahead: Loop) -> Loop:
    """The run with its forward sensitivities along eight directions of q and v."""
    s = ahead.schedule
    both = tangent(s, ("q", "v"), ("q", "v.closed" if "v.closed" in s.sizes else "v"), 8)
    state = np.random.default_rng(4).normal(size=(len(ahead.state), both.width(both.state)))
    state[:, : s.width(s.state)] = ahead.state
    return Loop("derived", both, state, ahead.constants, ahead.controls)


def report(label: str, model, q, integrator: str, forward: bool, **how) -> None:
    """One line of the table."""
    own = loops(model, q, integrator, BATCH, **how)
    own = (own[0], sensitive(own[0])) if forward else own
    found = compare({x.name: calls("go()", go=x.go) for x in own}, BATCH * STEPS, 15)
    step, back = (x.schedule.operations for x in own)
    cells = [f"{label}, {integrator}", str(step), f"{back} ({back / step:.2f} x)", found["step"].text()]
    cells += [f"{found['derived'].text()} ({found['derived'].median / found['step'].median:.2f} x)"]
    print("| " + " | ".join([*cells, *(f"{x.first:.1f}" for x in own)]) + " |", flush=True)


def cases():
    panda, anymal = pair("panda")[0], pair("anymal")[0]
    stewart, legs = sl.zoo.stewart(), sl.zoo.stewart_start()
    live = {"parameters": stewart.parameters().values}
    yield "Panda", panda, panda.neutral(), "rk4", {}
    yield "ANYmal", anymal, anymal.neutral(), "rk4", {}
    yield "Stewart projected", stewart, legs, "rk4", {}
    yield "Panda", panda, panda.neutral(), "midpoint", {}
    yield "Panda", panda, panda.neutral(), "implicit", {}
    yield "Stewart minimal", stewart, legs, "rk4", {"closures": "minimal"}
    yield "Panda live", panda, panda.neutral(), "rk4", {"parameters": panda.parameters().values}
    yield "Stewart projected, live", stewart, legs, "rk4", live


if __name__ == "__main__":
    print("| case | operations | derived | step [ns] | derived [ns] | compile [s] | derived [s] |")
    print("|---|---|---|---|---|---|---|")
    wanted = [x for x in sys.argv[1:] if x != "tangents"]
    forward = "tangents" in sys.argv
    for name, model, q, integrator, how in cases():
        if not wanted or any(w.lower() in f"{name}, {integrator}".lower() for w in wanted):
            report(name, model, q, integrator, forward, **how)
