"""The linkage walker on the ground beside MuJoCo with soft loops: how much faster than real time, and loop errors.

python benchmarks/contacts_walker.py

53 bodies, 24 loops, 8 feet (sl.zoo.linkage_walker), 4 s of walking from rest, friction 0.8. Processor time of one
thread in a stretch of 2 s after the first 2 s; the smallest of five, variants interleaved. The factor is simulated time
over it. Loops: the largest error of any row [rad or m], of MuJoCo at 20 samples.
"""

from __future__ import annotations

import time
import warnings

import mujoco
import numpy as np
from contact_peers import STIFF, Run, on_ground

import spanloop as sl

FEET, FRICTION = [f"leg{k}_foot" for k in range(1, 9)], 0.8
SPEED, STRENGTH = 5.0, 5.0  # of the motor: rad/s, N m s/rad
RADIUS = 1e-3  # m, of MuJoCo's feet


def motor(t, q, v):
    return {"crank1": STRENGTH * (SPEED * np.minimum(2.0 * t, 1.0) - v["crank1"])}


def ours(massless: bool, h: float):
    model = sl.zoo.linkage_walker(massless_rods=massless)
    for foot in FEET:
        model = model.with_contact(foot, foot, "ground", friction=FRICTION)
    q = sl.zoo.linkage_walker_start(massless_rods=massless)

    def run() -> tuple[float, float, float]:
        spent = []
        for duration in (2.0, 4.0):
            began = time.thread_time()
            found = sl.simulate(model, q, duration=duration, step=h, controller=motor, sample=0.2)
            spent.append(time.thread_time() - began)
        return spent[1] - spent[0], found.residual, found.q[-1, 4]

    return run


def theirs(h: float, **settings):
    model = sl.zoo.linkage_walker()
    peer = Run(model, on_ground(model, dict.fromkeys(FEET, RADIUS), FRICTION, h, elliptic=True, **settings))
    m, d, robot = peer.model, peer.data, sl.Dynamics(model)
    crank = m.joint("crank1").dofadr[0]
    # a motor whose torque falls with its speed is a damper and a torque
    m.dof_damping[crank] = STRENGTH

    def run() -> tuple[float, float, float]:
        peer.set(sl.zoo.linkage_walker_start(clearance=RADIUS), np.zeros(model.nv))
        spent, worst, part = 0.0, 0.0, round(0.02 / h)
        for k in range(200):
            d.qfrc_applied[crank] = STRENGTH * SPEED * min(2.0 * k * 0.02, 1.0)
            began = time.thread_time()
            mujoco.mj_step(m, d, part)
            spent += (time.thread_time() - began) * (k >= 100)
            if k % 10 == 9:
                worst = max(worst, float(np.abs(robot.closure_error(peer.state()[0])).max()))
        return spent, worst, peer.state()[0][4]

    return run


def main() -> None:
    warnings.simplefilter("ignore", sl.SpanloopWarning)
    variants = {
        "spanloop, 2 ms": ours(False, 2e-3),
        "spanloop, 1 ms": ours(False, 1e-3),
        "spanloop, massless rods, 2 ms": ours(True, 2e-3),
        "spanloop, massless rods, 1 ms": ours(True, 1e-3),
        "MuJoCo implicitfast, 2 ms": theirs(2e-3, integrator="implicitfast"),
        "MuJoCo implicitfast, stiff loops, 1 ms": theirs(1e-3, integrator="implicitfast", loops=STIFF),
    }
    seen = {name: [] for name in variants}
    for run in variants.values():
        run()
    for _ in range(5):
        for name, run in variants.items():
            seen[name].append(run())
    print("| | times real time | loops open by | way in 4 s [m] |")
    print("|---|---|---|---|")
    for name, rows in seen.items():
        spent, worst, way = min(x[0] for x in rows), rows[-1][1], rows[-1][2]
        print(f"| {name} | {2.0 / spent:.0f} | {worst:.0e} | {way:.3f} |")


if __name__ == "__main__":
    main()
