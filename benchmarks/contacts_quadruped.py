"""A quadruped on four feet beside MuJoCo: time of a step, creep and penetration of the feet.

python benchmarks/contacts_quadruped.py

The quadruped of the zoo (18 DoF, 20 kg) has springs and dampers in its joints and balls for feet, friction 0.8; both
programs get the same bodies, joints and springs. Steps of 1 ms. Time: processor time of a step of one run on one
thread, medians (quartiles) of this run, variants interleaved; standing, after it settled, and in the air. spanloop runs
RUNS of them in vector lanes, from poses that differ by 0.01 rad; one run alone is timed, too. MuJoCo has no lanes: its
mj_step runs one after the other. Accuracy: on a slope of 10°, where friction of 0.18 would hold it: the fastest foot
over a second, after ten to settle, and the deepest one in millimetres.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import cos, radians, sin

import mujoco
import numpy as np
from contact_peers import Run, on_ground
from timing import calls, compare

import spanloop as sl

LEGS, RADIUS, FRICTION, H = ("fl", "fr", "hl", "hr"), 0.02, 0.8, 1e-3
RUNS, STEPS = 2048, 200
SETTLED = 1.0  # s
SLOPE = radians(10.0)
STIFFNESS, DAMPING = 200.0, 4.0  # N m/rad, N m s/rad
INTEGRATORS = ("rk4", "implicit", "euler")
PEERS = {
    "MuJoCo Euler": {"integrator": "Euler"},
    "MuJoCo implicitfast": {"integrator": "implicitfast"},
    "MuJoCo implicitfast, elliptic, impratio 100": {"integrator": "implicitfast", "elliptic": True, "impratio": 100.0},
    "MuJoCo implicitfast, recipe, noslip 20": {
        "integrator": "implicitfast", "elliptic": True, "impratio": 100.0, "noslip": 20, "tolerance": 1e-14
    },
}  # fmt: skip


def quadruped() -> tuple[sl.Model, np.ndarray]:
    """On springs; and its standing pose."""
    model, q = sl.zoo.quadruped(), sl.zoo.quadruped_start(foot=RADIUS)
    for joint in model.joints[1:]:
        rest = float(q[model.q_slice(joint.name)][0])
        model = model.with_joint(joint.name, stiffness=STIFFNESS, damping=DAMPING, rest=rest)
    return model, q


def with_feet(model: sl.Model) -> sl.Model:
    for leg in LEGS:
        shape = sl.contacts.Sphere(RADIUS)
        model = model.with_contact(leg, (f"{leg}_foot", shape), "ground", friction=FRICTION)
    return model


def starts(model: sl.Model, q: np.ndarray) -> np.ndarray:
    """Poses (RUNS, nq) near a standing one, lowest feet on the ground."""
    rng = np.random.default_rng(17)
    out = np.tile(q, (RUNS, 1))
    out[:, 7:] += 0.01 * rng.normal(size=(RUNS, 12))
    robot = sl.Dynamics(model)
    out[:, 6] += RADIUS - np.min([robot.pose(out, f"{leg}_foot")[:, 2, 3] for leg in LEGS], axis=0)
    return out


def times(model: sl.Model, q: np.ndarray) -> dict[str, dict[str, str]]:
    """Microseconds of a step: standing, in the air, and standing alone."""
    touching, Q = with_feet(model), starts(model, q)
    variants, work = {}, {}

    def simulated(name, states, velocities, steps, integrator):
        chosen = sl.Integrator(integrator, threads=1, progress=False)
        options = {"duration": steps * H, "step": H, "sample": steps * H, "limits": "ignore", "integrator": chosen}
        variants[name] = calls(
            "simulate(m, q, v, **o)", simulate=sl.simulate, m=touching, q=states, v=velocities, o=options
        )
        work[name] = steps * (len(states) if states.ndim > 1 else 1)

    for integrator in INTEGRATORS:
        settled = sl.simulate(touching, Q, duration=SETTLED, step=H, sample=SETTLED, integrator=integrator)
        q_s, v_s = settled.q[:, -1], settled.v[:, -1]
        simulated(f"spanloop {integrator}|standing", q_s, v_s, STEPS, integrator)
        simulated(f"spanloop {integrator}|alone", q_s[0], v_s[0], 50 * STEPS, integrator)
        simulated(f"spanloop {integrator}|air", Q + [0, 0, 0, 0, 0, 0, 5.0, *[0] * 12], 0.0 * v_s, STEPS, integrator)
    for name, settings in PEERS.items():
        for where, height in (("alone", 0.0), ("air", 1e4)):
            peer = Run(
                model, on_ground(model, dict.fromkeys((f"{x}_foot" for x in LEGS), RADIUS), FRICTION, H, **settings)
            )
            peer.set(q + [0, 0, 0, 0, 0, 0, height, *[0] * 12], np.zeros(model.nv))
            mujoco.mj_step(peer.model, peer.data, round(SETTLED / H))
            variants[f"{name}|{where}"] = calls(
                "step(m, d, steps)", step=mujoco.mj_step, m=peer.model, d=peer.data, steps=100
            )
            work[f"{name}|{where}"] = 100
    found = compare(variants, work, samples=9, sample_s=0.02)
    out: dict[str, dict[str, str]] = {}
    for key, spread in found.items():
        name, _, where = key.partition("|")
        out.setdefault(name, {})[where] = f"{1e6 * spread.median:.2f} ({1e6 * spread.low:.2f}-{1e6 * spread.high:.2f})"
    return out


def slope(model: sl.Model) -> sl.Model:
    return replace(model, gravity=(9.81 * sin(SLOPE), 0.0, -9.81 * cos(SLOPE)))


def accuracy(places: np.ndarray) -> str:
    """Of feet (times over a second, 4, 3) [m]: speed of the fastest, depth of the deepest."""
    creep = np.linalg.norm(places[-1, :, :2] - places[0, :, :2], axis=-1).max()
    return f"{creep:.1e} | {1e3 * max(RADIUS - places[..., 2].min(), 0.0):.1e}"


def ours(model: sl.Model, q: np.ndarray, integrator: str) -> str:
    run = sl.simulate(with_feet(slope(model)), q, duration=11.0, step=H, sample=0.01, integrator=integrator)
    last = run.q[run.times > 10.0 - 1e-9]
    robot = sl.Dynamics(model)
    return accuracy(np.stack([robot.pose(last, f"{leg}_foot")[:, :3, 3] for leg in LEGS], axis=1))


def theirs(model: sl.Model, q: np.ndarray, settings: dict) -> str:
    tilted = slope(model)
    peer = Run(tilted, on_ground(tilted, dict.fromkeys((f"{x}_foot" for x in LEGS), RADIUS), FRICTION, H, **settings))
    peer.set(q, np.zeros(model.nv))
    mujoco.mj_step(peer.model, peer.data, 10000)
    seen = []
    for _ in range(101):
        mujoco.mj_forward(peer.model, peer.data)
        seen.append([peer.data.geom(f"{leg}_foot").xpos.copy() for leg in LEGS])
        mujoco.mj_step(peer.model, peer.data, 10)
    return accuracy(np.array(seen))


def main() -> None:
    warnings.simplefilter("ignore", sl.SpanloopWarning)
    model, q = quadruped()
    found = times(model, q)
    print(f"{RUNS} runs of {STEPS} steps; µs a step, median (quartiles)")
    print("| | standing, in lanes | standing, one run | in the air | creep on 10° [m/s] | depth [mm] |")
    print("|---|---|---|---|---|---|")
    for name, t in found.items():
        kind = name.removeprefix("spanloop ")
        numbers = ours(model, q, kind) if kind in INTEGRATORS else theirs(model, q, PEERS[name])
        print(f"| {name} | {t.get('standing', '–')} | {t['alone']} | {t['air']} | {numbers} |")


if __name__ == "__main__":
    main()
