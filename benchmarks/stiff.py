"""Stiff joints beside MuJoCo: `python benchmarks/stiff.py [manipulator.xml]`.

The file is that of dm_control's suite (pip download dm_control): dampers of 2.4e5 1/s, which it steps by 1 ms. It is
simulated for 0.1 s from q inside the limits with all velocities 1, without contacts, limits and tendons, in both
libraries. A second table has Puma's arm with dampers at which h λ is below 1 at all steps, and a third closed loops.

error: largest difference of a coordinate from the reference at the end [rad or m]; the reference is SciPy's Radau to
1e-11 on our right-hand side. order: of the error, from the step before. alternates: the largest change of a velocity in
one step that turns at both of its ends, of joints with dampers, as a share of the largest speed.
Times are medians (quartiles) of processor time of one thread, variants interleaved, for one step of one run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from timing import calls, compare

import spanloop as sl
from spanloop.compiler.runtime.rollout import Steps
from spanloop.simulation.controllers import applied_forces
from spanloop.simulation.events.endings import events_of
from spanloop.simulation.initial_state import default_position
from spanloop.simulation.integrators.integrator import rollout
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.system import System

T, H, STEPS = 0.1, 1e-3, 200
PEERS = {
    "mujoco implicitfast": "mjINT_IMPLICITFAST",
    "mujoco implicit": "mjINT_IMPLICIT",
    "mujoco Euler": "mjINT_EULER",
}


def with_damping(model: sl.Model, damping: float) -> sl.Model:
    return replace(model, joints=tuple(replace(j, damping=(damping,) * j.kind.nv) for j in model.joints))


def ours(model: sl.Model, q, v, h: float, integrator: str) -> sl.Trajectory:
    return sl.simulate(model, q, v, duration=T, step=h, integrator=integrator, limits="ignore")


def reference(model: sl.Model, q, v) -> np.ndarray:
    exact = sl.Integrator("Radau", accuracy=1e-11)
    return sl.simulate(model, q, v, duration=T, sample=T, integrator=exact, limits="ignore").q[-1]


def alternation(v: np.ndarray, damped: np.ndarray) -> float:
    """The largest change of a velocity (steps, nv) that turns at both of its ends, as a share of the largest speed."""
    change = np.diff(v[:, damped], axis=0)
    turns = change[1:] * change[:-1] < 0.0
    middle = np.abs(change[1:-1]) * (turns[1:] & turns[:-1])
    return float(middle.max(initial=0.0) / np.abs(v).max())


def our_steps(model: sl.Model, q, v, integrator: str) -> Callable[[], None]:
    """STEPS compiled steps from q, v."""
    system, seen = System(model, applied_forces(model, None, model.nv)), events_of(model, False, None)
    layout, loop = StateLayout.of(system, seen, "float64"), rollout(system, seen, integrator)
    start = np.zeros((1, layout.width))
    start[:, layout.places["q"]], start[:, layout.places["v"]] = q, v
    constants, controls = np.zeros((1, 1)), np.zeros((1, 1, model.nv))

    def go() -> None:
        loop.run(start.copy(), constants, controls, np.zeros(1, np.uint8), Steps(0.0, H, 0, STEPS), None)

    return go


class Peer:
    """The file in MuJoCo without constraints, joints by name."""

    def __init__(self, path: str, model: sl.Model, q: np.ndarray, v: np.ndarray, integrator: str, h: float):
        import mujoco

        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_path(path)
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.model.opt.integrator, self.model.opt.timestep = getattr(mujoco.mjtIntegrator, integrator), h
        names = [j.name for j in model.joints if j.kind.nv]
        self.places = [self.model.jnt_qposadr[self.model.joint(name).id] for name in names]
        self.data = mujoco.MjData(self.model)
        self.data.qpos[self.places], self.data.qvel[self.places] = q, v
        self.start = self.data.qpos.copy(), self.data.qvel.copy()

    def run(self, h: float) -> tuple[np.ndarray, np.ndarray]:
        """q at the end, and v after every step."""
        rows = [self.data.qvel[self.places].copy()]
        for _ in range(round(T / h)):
            self.mujoco.mj_step(self.model, self.data)
            rows.append(self.data.qvel[self.places].copy())
        return self.data.qpos[self.places].copy(), np.array(rows)

    def go(self) -> None:
        self.data.qpos[:], self.data.qvel[:] = self.start
        self.mujoco.mj_step(self.model, self.data, STEPS)


def manipulator(path: str) -> None:
    model = sl.load(path)
    model = replace(model, loops=(), couplings=(), actuators=())
    q, v = default_position(model), np.ones(model.nv)
    damped = np.array([d > 0.0 for j in model.joints for d in j.damping])
    exact = reference(model, q, v)
    print(f"{model.name}: {model.nv} DoF, steps of 1 ms and halves of it")
    print(f"{'':22}{'h [ms]':>8}{'error':>10}{'order':>7}{'alternates':>12}")
    for name in ("implicit", *PEERS):
        before = None
        for h in (H, H / 2, H / 4, H / 8):
            if name in PEERS:
                end, rates = Peer(path, model, q, v, PEERS[name], h).run(h)
            else:
                run = ours(model, q, v, h, name)
                end, rates = run.q[-1], run.v
            before = row(name, h, float(np.abs(end - exact).max()), before, f"{alternation(rates, damped):12.1e}")
    run = ours(model, q, v, H, "rk4")
    print(f"{'rk4':22}{1e3 * H:8.3f}  {run.outcome}")
    print("\nns a step, one run")
    variants = {"implicit": our_steps(model, q, v, "implicit")}
    variants |= {name: Peer(path, model, q, v, flag, H).go for name, flag in PEERS.items()}
    times = compare({name: calls("go()", go=go) for name, go in variants.items()}, STEPS)
    for name, t in times.items():
        print(f"{name:22}{t.text():>20}")


def row(name: str, h: float, error: float, before: float | None, more: str) -> float:
    order = "" if before is None else f"{np.log2(before / error):.2f}"
    print(f"{name:22}{1e3 * h:8.3f}{error:10.1e}{order:>7}{more}")
    return error


def orders(title: str, model: sl.Model, q, v) -> None:
    exact = reference(model, q, v)
    print(f"\n{title}")
    print(f"{'':22}{'h [ms]':>8}{'error':>10}{'order':>7}{'open':>10}")
    before = None
    for h in (2e-3, 1e-3, 5e-4, 2.5e-4):
        run = ours(model, q, v, h, "implicit")
        left = "" if run.residual is None else f"{float(run.residual):10.0e}"
        before = row("implicit", h, float(np.abs(run.q[-1] - exact).max()), before, left)


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    if arguments:
        manipulator(arguments[0])
    arm = with_damping(sl.zoo.puma(), 0.05)
    orders("puma, dampers of 0.05 N m s", arm, np.array(arm.neutral()), np.ones(arm.nv))
    for damping in (1.0, 1e4):
        bar = with_damping(sl.zoo.four_bar(), damping)
        orders(f"four_bar, dampers of {damping:g} N m s", bar, sl.zoo.four_bar_start(), None)


if __name__ == "__main__":
    main(sys.argv[1:])
