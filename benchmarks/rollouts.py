"""Motions beside MuJoCo, Pinocchio and Exudyn, in one process: `python benchmarks/rollouts.py [part ...]`.

Parts: trees (batches and one run of Panda with locked fingers and ANYmal with a free base beside `mujoco.rollout`),
stewart, four_bar, arms, peers (drift of closed mechanisms). RK4 with 1 ms everywhere. Times are medians (quartiles) of
this run, processor time of one thread, variants interleaved. For trees MuJoCo has contacts, limits and constraints off,
its inertias are not repaired, and its rollouts run on the calling thread without checks or allocations. Wheels of the
peers are built for older processors (Pinocchio: SSE2); spanloop compiles for the machine at hand. Exudyn takes part if
it is installed.
"""

from __future__ import annotations

import os
import platform
import sys
import time
import warnings
from dataclasses import replace

import exudyn_peer
import mujoco
import numpy as np
import pinocchio as pin
from rollout_peers import STIFF, OpenLoop, fed_back, soft
from timing import calls, compare
from trees import pair

import spanloop as sl
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.simulation.controllers import applied_forces
from spanloop.simulation.events.endings import events_of
from spanloop.simulation.integrators.integrator import schedule, schedule_key
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.system import System

H = 1e-3  # s
BATCH, STEPS = 4096, 20
PEER_BATCH = 256  # of MuJoCo, whose time a step does not depend on it
LONG = 1000  # steps of one run
SPRING = 750.0  # N/m in every leg of the Stewart platform: the kinetic energy then reaches 2.9 J


class Compiled:
    """The compiled time loop alone: every state at every step is written, controls are read for every step."""

    def __init__(self, model, q, v, controls, dtype="float64", controller=None, every=1):
        n, steps, width = controls.shape
        system = System(model, applied_forces(model, controller, width))
        seen = events_of(model, False, None)
        layout = StateLayout.of(system, seen, dtype)
        self.rollout = Rollout(
            schedule_key(system, seen, "rk4", dtype), lambda: schedule(system, seen, "rk4", dtype), dtype
        )
        self.start = np.zeros((n, layout.width), dtype)
        self.start[:, layout.places["q"]], self.start[:, layout.places["v"]] = q, v
        if "loops" in layout:
            self.start[:, layout.places["loops"]] = (0.0, 1.0)
        self.state, self.why, self.places = self.start.copy(), np.zeros(n, np.uint8), layout.places
        self.controls, self.constants = np.ascontiguousarray(controls, dtype), np.zeros((1, 1), dtype)
        self.record = np.zeros((n, steps // every + 1, model.nq + model.nv), dtype)
        self.steps = Steps(0.0, H, 0, steps, every)

    def go(self) -> None:
        np.copyto(self.state, self.start)
        self.why[:] = 0
        self.rollout.run(self.state, self.constants, self.controls, self.why, self.steps, self.record)


def steered(model):
    """A controller whose inputs are the torques of the hinges, as a motor each in MuJoCo; free joints have none."""
    hinges = [j.name for j in model.joints if j.kind.name in ("revolute", "prismatic")]
    if len(hinges) == model.nv:
        return None, len(hinges)
    return (lambda t, q, v, u: dict(zip(hinges, u, strict=True))), len(hinges)


def inputs(model, n: int, steps: int):
    """States and torques of n runs, all different."""
    rng = np.random.default_rng(7)
    q, v = (np.array(x) for x in zip(*(model.random_state(k) for k in range(n)), strict=True))
    controller, width = steered(model)
    scale = 0.02 if controller is None else 2.0
    return q, 0.5 * v, scale * rng.normal(size=(n, steps, width)), controller


def simulated(model, q, v, controls, controller, dtype="float64"):
    given = {"tau": controls} if controller is None else {"controller": controller, "inputs": controls}
    steps = controls.shape[-2]
    return sl.simulate(
        model,
        q,
        v,
        duration=steps * H,
        step=H,
        limits="ignore",
        integrator=sl.Integrator(dtype=dtype, progress=False),
        **given,
    )


def same_motion(model, steps: int = 200) -> float:
    """The largest difference of any coordinate from MuJoCo's after so many steps."""
    q, v, u, controller = inputs(model, 8, steps)
    peer = OpenLoop(model, H)
    theirs, _ = peer.samples(peer.run(*peer.arrays(q, v, u)))
    ours = simulated(model, q, v, u, controller).q[:, 1:]
    return float(np.abs(sl.Dynamics(model).difference(ours[:, -1], theirs[:, -1])).max())


def batches(model) -> dict:
    """Seconds a step of one run in a batch."""
    q, v, u, controller = inputs(model, BATCH, STEPS)
    peer = OpenLoop(model, H)
    theirs = peer.arrays(q[:PEER_BATCH], v[:PEER_BATCH], u[:PEER_BATCH])
    variants = {"mujoco": calls("run(*x)", run=peer.run, x=theirs)}
    for dtype in ("float64", "float32"):
        kernel = Compiled(model, q, v, u, dtype, controller)
        kernel.go()
        variants[dtype] = calls("go()", go=kernel.go)
        names = {"simulated": simulated, "x": (model, q, v, u, controller), "dtype": dtype}
        variants[f"simulate {dtype}"] = calls("simulated(*x, dtype=dtype)", **names)
    return compare(variants, dict.fromkeys(variants, BATCH * STEPS) | {"mujoco": PEER_BATCH * STEPS}, samples=15)


def one_run(model) -> dict:
    """Seconds a step of one run of LONG steps."""
    q, v, u, controller = inputs(model, 1, LONG)
    peer, kernel = OpenLoop(model, H), Compiled(model, q, v, u, "float64", controller)
    kernel.go()
    names = {"simulated": simulated, "x": (model, q[0], v[0], u[0], controller)}
    variants = {
        "compiled": calls("go()", go=kernel.go),
        "simulate": calls("simulated(*x)", **names),
        "mujoco": calls("run(*x)", run=peer.run, x=peer.arrays(q, v, u)),
    }
    return compare(variants, LONG, samples=15)


def print_trees() -> None:
    models = {name: pair(name)[0] for name in ("panda", "anymal")}
    print(f"## {BATCH} runs of {STEPS} steps, ns a step: torques of every step in, states of every step out")
    print("| | spanloop | MuJoCo | ratio | float32 | ratio | sl.simulate | float32 |")
    print("|---|---|---|---|---|---|---|---|")
    for name, model in models.items():
        t = batches(model)
        double, single, peer = t["float64"], t["float32"], t["mujoco"]
        wrappers = [t[f"simulate {d}"].text() for d in ("float64", "float32")]
        print(
            f"| {name} | {double.text()} | {peer.text()} | {peer.median / double.median:.1f} | {single.text()} | "
            f"{peer.median / single.median:.1f} | {' | '.join(wrappers)} |"
        )
    print(f"\n## One run of {LONG} steps, ns a step")
    print("| | spanloop | sl.simulate | MuJoCo | ratio | ratio of sl.simulate | difference after 200 steps |")
    print("|---|---|---|---|---|---|---|")
    for name, model in models.items():
        t = one_run(model)
        peer = t["mujoco"].median
        cells = [t[k].text() for k in ("compiled", "simulate", "mujoco")]
        ratios = f"{peer / t['compiled'].median:.1f} | {peer / t['simulate'].median:.1f}"
        print(f"| {name} | {' | '.join(cells)} | {ratios} | {same_motion(model):.0e} |")
    print("\nBoth are of fourth order; a free base takes other stages there, hence its small difference.\n")


def sprung_stewart():
    """The platform on springs, unloaded at the start, where it is let go."""
    model, q = sl.zoo.stewart(), sl.zoo.stewart_start()
    joints = [
        replace(j, stiffness=(SPRING,), rest=tuple(q[model.q_slice(j.name)])) if j.kind.name == "prismatic" else j
        for j in model.joints
    ]
    return replace(model, joints=tuple(joints)), q


def drift(run) -> tuple[float, float]:
    """Largest closure error after any step; largest error of the energy."""
    e = run.energy.sum(axis=-1)
    return float(run.residual), float(np.abs(e - e[0]).max())


def real_time(model, q, seconds: float) -> tuple:
    """Seconds a second of motion takes: one run by the kernel and by sl.simulate, and each run of a batch."""
    steps, still = round(seconds / H), np.zeros(model.nv)
    quiet = np.zeros((1, 1, model.nv))
    one = Compiled(model, q[None], still[None], np.broadcast_to(quiet, (1, steps, model.nv)))
    scale = np.random.default_rng(8).normal(size=(BATCH, model.nv))
    Q = np.tile(q, (BATCH, 1))
    V = sl.Dynamics(model).project(Q, 0.1 * scale)[1]
    many = Compiled(model, Q, V, np.zeros((BATCH, STEPS, model.nv)))
    names = {"sl": sl, "model": model, "q": q, "T": seconds, "h": H}
    text = "sl.simulate(model, q, duration=T, step=h, limits='ignore', integrator=sl.Integrator(progress=False))"
    single = compare({"compiled": calls("go()", go=one.go), "simulate": calls(text, **names)}, samples=9)
    batch = compare({"batch": calls("go()", go=many.go)}, BATCH * STEPS, samples=9)["batch"]
    return single["compiled"].median / seconds, single["simulate"].median / seconds, batch.median / H


def print_stewart() -> None:
    model, q = sprung_stewart()
    run = sl.simulate(model, q, duration=10.0, step=H, integrator=sl.Integrator(progress=False))
    closure, energy = drift(run)
    kernel, whole, batch = real_time(model, q, 10.0)
    print(f"## Stewart platform on springs of {SPRING:g} N/m, let go, 10 s ({run.outcome})")
    print("| closure | energy error | of | one run, times real time | sl.simulate | summed over a batch |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {closure:.0e} m | {energy:.1e} J | {run.energy[:, 0].max():.2f} J | {1 / kernel:.0f} | {1 / whole:.0f} | "
        f"{1 / batch:.0f} |\n"
    )


def print_four_bar() -> None:
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    print("## Four-bar linkage, let go")
    print("| | step | closure | energy error | after 1/10 of it | at half the step it falls by | processor time |")
    print("|---|---|---|---|---|---|---|")
    for duration in (10.0, 1000.0):
        errors = []
        for h in (2.0 * H, H, 0.5 * H):
            began = time.thread_time()
            run = sl.simulate(
                model, q, duration=duration, step=h, sample=0.01, integrator=sl.Integrator(progress=False)
            )
            spent = time.thread_time() - began
            e = np.abs(run.energy.sum(axis=-1) - run.energy[0].sum())
            errors.append(e.max())
            early = e[: len(e) // 10].max()
            fall = f"{errors[-2] / errors[-1]:.0f}" if len(errors) > 1 else ""
            print(
                f"| {duration:g} s | {1e3 * h:g} ms | {float(run.residual):.0e} m | {errors[-1]:.1e} J | "
                f"{early:.1e} J | {fall} | {spent:.2f} s |"
            )
    print()


def print_arms() -> None:
    model, q = sl.zoo.arms_with_object(3), sl.zoo.arms_with_object_start(3)
    run = sl.simulate(model, q, duration=1.0, step=H, integrator=sl.Integrator(progress=False))
    closure, energy = drift(run)
    kernel, whole, batch = real_time(model, q, 1.0)
    print("## Three six-joint arms that hold an object, let go")
    print("| 1 s takes | by sl.simulate | of a batch | closure | energy error | of |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {1e3 * kernel:.1f} ms | {1e3 * whole:.1f} ms | {1e3 * batch:.2f} ms | {closure:.0e} | {energy:.1e} J | "
        f"{run.energy[:, 0].max():.0f} J |\n"
    )


def print_peers() -> None:
    print("## Drift over 10 s at 1 ms: closure [m], energy [J], processor time of a step [µs]")
    print("| | four-bar | | | Stewart on springs | | |")
    print("|---|---|---|---|---|---|---|")
    rows: dict[str, list[str]] = {}
    for model, q in ((sl.zoo.four_bar(), sl.zoo.four_bar_start()), sprung_stewart()):
        robot, still = sl.Dynamics(model), np.zeros(model.nv)
        for name, how in OURS.items():
            sl.simulate(model, q, duration=0.1, step=H, **how)
            began = time.thread_time()
            run = sl.simulate(model, q, duration=10.0, step=H, integrator=sl.Integrator(progress=False), **how)
            spent = time.thread_time() - began
            cells(rows, name, robot, run.q, run.v, spent / (10.0 / H))
        for name, move in PEERS.items():
            motion = move(model, q, still)
            cells(rows, name, robot, motion.q, motion.v, motion.step_time)
        if exudyn_peer.installed():
            d = exudyn_peer.trapezoidal(model, q, 10.0, H)
            rows.setdefault("Exudyn, trapezoidal index 2", []).extend(
                (f"{d.closure:.0e}", f"{d.energy:.0e}", f"{1e6 * d.step_time:.1f}")
            )
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(row)} |")
    print("\nPinocchio's steps are taken in Python; MuJoCo's 20 at a time. Exudyn's time has its sensors in it.\n")


OURS = {
    "spanloop, projected": {},
    "spanloop, feedback of 10 rad/s": {"closures": sl.Closures("feedback", gains=10.0)},
}
PEERS = {
    "MuJoCo RK4, default closures": lambda m, q, v: soft(m, q, v, 10.0, H),
    "MuJoCo RK4, stiff closures": lambda m, q, v: soft(m, q, v, 10.0, H, **STIFF),
    "Pinocchio, own RK4, feedback of 10 rad/s": lambda m, q, v: fed_back(m, q, v, 10.0, H, 10.0),
}


def cells(rows, name, robot, q, v, step_time) -> None:
    e = robot.energy(q, v).sum(axis=-1)
    closure = np.abs(robot.closure_error(q)).max()
    rows.setdefault(name, []).extend((f"{closure:.0e}", f"{np.abs(e - e[0]).max():.0e}", f"{1e6 * step_time:.1f}"))


PARTS = {
    "trees": print_trees,
    "stewart": print_stewart,
    "four_bar": print_four_bar,
    "arms": print_arms,
    "peers": print_peers,
}


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    print(
        f"spanloop {sl.__version__}, MuJoCo {mujoco.__version__}, Pinocchio {pin.__version__}; Python "
        f"{platform.python_version()}, NumPy {np.__version__}; {processor()}, load {os.getloadavg()[0]:.1f}; "
        "median (quartiles)\n"
    )
    for name in names or PARTS:
        PARTS[name]()


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            name = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{name}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main(sys.argv[1:])
