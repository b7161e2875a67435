"""Closed mechanisms beside Pinocchio and MuJoCo, in one process: `python benchmarks/loops.py [mechanism ...] [growth]`.

Pinocchio has two solvers, the faster one counts: constraintDynamics with ProximalSettings, and lcaba. MuJoCo's loops
are soft: its accelerations are reported with their error. Times are medians (quartiles) of this run, on one core; the
`pin` wheel is built for SSE2, spanloop compiles for the machine at hand.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings

import mujoco
import numpy as np
import pinocchio as pin
from loop_peers import MUJOCO, PINOCCHIO, SOLVERS, Mujoco, Pinocchio
from timing import calls, compare

import spanloop as sl

BATCH = 4096
MECHANISMS = {  # name: function of the zoo, its arguments
    "four_bar": ("four_bar",),
    "five_bar": ("five_bar",),
    "stewart": ("stewart",),
    "arms2": ("arms_with_object", 2),
    "arms4": ("arms_with_object", 4),
    "arms8": ("arms_with_object", 8),
    "four_bars8": ("n_four_bar", 8),
    "four_bars32": ("n_four_bar", 32),
}
GROWTH = {"arms_with_object": (2, 4, 8, 16, 32), "n_four_bar": (2, 4, 8, 16, 32, 64)}


def mechanism(name: str, *arguments):
    """Model, q, v that keeps the loops closed, tau (none at free bodies)."""
    model = getattr(sl.zoo, name)(*arguments)
    q = getattr(sl.zoo, f"{name}_start")(*arguments)
    rng = np.random.default_rng(7)
    J = sl.compile(model, "closure_jacobian")(q)
    v, tau = rng.normal(size=(2, model.nv))
    for joint in model.joints:
        if joint.kind.name == "free":
            tau[model.v_slice(joint.name)] = 0.0
    return model, q, v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v), tau


def one_call(model, q, v, tau) -> dict:
    """Spreads by variant, differences of the peers' accelerations from ours."""
    robot, peer, other = sl.Dynamics(model), Pinocchio(model), Mujoco(model)
    a = np.zeros(model.nv)
    robot.forward_dynamics(q, v, tau, out=a)
    variants = {"spanloop": calls("robot.forward_dynamics(q, v, tau, out=a)", robot=robot, q=q, v=v, tau=tau, a=a)}
    wrong = {}
    for solver in SOLVERS:
        theirs = peer.names(solver, q, v, tau)
        found = peer.order.v_from(np.array(eval(PINOCCHIO, theirs)))
        wrong[solver] = float(np.abs(found - a).max() / np.abs(a).max())
        variants[solver] = calls(PINOCCHIO, **theirs)
    tree = sl.Dynamics(sl.Model(model.name, model.bodies, model.joints, gravity=model.gravity))
    soft = other.names(q, v, tau)
    wrong["mujoco"] = other.error(a, tree.forward_dynamics(q, v, tau))
    variants["mujoco"] = calls(MUJOCO, **soft)
    return {"times": compare(variants), "differences": wrong}


def batch(model, q, v, tau):
    """ns a state of one core, in double and single precision; every state has a velocity and torques of its own."""
    scale = np.random.default_rng(8).uniform(0.5, 1.5, (BATCH, 1))
    Q, V, T = np.tile(q, (BATCH, 1)), scale * v, scale * tau
    variants = {}
    for dtype in ("float64", "float32"):
        x = {"Q": Q.astype(dtype), "V": V.astype(dtype), "T": T.astype(dtype), "A": np.empty(V.shape, dtype)}
        variants[dtype] = calls(
            "robot.forward_dynamics(Q, V, T, out=A)", robot=sl.Dynamics(model, dtype=dtype, threads=1), **x
        )
    return compare(variants, BATCH, samples=15)


def compiling(model, q, v, tau) -> tuple[float, float, float]:
    """Seconds to a first answer: of one call, of a batch after it, and of one call found in the cache."""
    before = os.environ.get("SPANLOOP_CACHE")
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPANLOOP_CACHE"] = folder
        try:
            for state in ((q, v, tau), (np.tile(q, (8, 1)), v, tau), (q, v, tau)):
                start = time.perf_counter()
                sl.compile(model, "forward_dynamics")(*state)
                seconds.append(time.perf_counter() - start)
        finally:
            os.environ.pop("SPANLOOP_CACHE")
            if before is not None:
                os.environ["SPANLOOP_CACHE"] = before
    return seconds[0], seconds[1] - seconds[2], seconds[2]


def operations(kernel) -> tuple[int, int, int]:
    n = kernel.operations
    return n.multiplications, n.additions, n.divisions


def print_mechanisms(names: list[str]) -> None:
    rows = {}
    for name in names:
        state = mechanism(*MECHANISMS[name])
        rows[name] = (
            one_call(*state),
            batch(*state),
            compiling(*state),
            operations(sl.compile(state[0], "forward_dynamics")),
        )
    print("| one call, ns | spanloop | proximal | lcaba | ratio to the faster | MuJoCo (soft) |")
    print("|---|---|---|---|---|---|")
    for name, (one, _, _, _) in rows.items():
        t = one["times"]
        faster = min(t["proximal"].median, t["lcaba"].median)
        cells = [t[k].text() for k in ("spanloop", "proximal", "lcaba")]
        print(f"| {name} | {' | '.join(cells)} | {faster / t['spanloop'].median:.1f} | {t['mujoco'].text()} |")
    print("\n| difference of the accelerations from spanloop's | proximal | lcaba | MuJoCo |")
    print("|---|---|---|---|")
    for name, (one, _, _, _) in rows.items():
        d = one["differences"]
        print(f"| {name} | {d['proximal']:.0e} | {d['lcaba']:.0e} | {100 * d['mujoco']:.1f} % |")
    print("\n| batch on one core, ns a state | spanloop | float32 | that peer, called in a loop | ratio |")
    print("|---|---|---|---|---|")
    for name, (one, many, _, _) in rows.items():
        faster = min((one["times"][k] for k in ("proximal", "lcaba")), key=lambda s: s.median)
        ratio = faster.median / many["float64"].median
        cells = [many["float64"].text(), many["float32"].text(), f"{faster.median * 1e9:.0f}", f"{ratio:.0f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| | mul/add/div | compile, one call [s] | batch code after it [s] | cached [ms] |")
    print("|---|---|---|---|---|")
    for name, (_, _, seconds, n) in rows.items():
        print(f"| {name} | {n[0]}/{n[1]}/{n[2]} | {seconds[0]:.2f} | {seconds[1]:.2f} | {seconds[2] * 1e3:.1f} |")


def print_growth(family: str, sizes) -> None:
    """Operations and time of one call as the mechanism grows, with the slope of their logarithms."""
    counts, times = [], []
    for n in sizes:
        model, q, v, tau = mechanism(family, n)
        kernel = sl.compile(model, "forward_dynamics")
        counts.append(sum(operations(kernel)))
        names = {"kernel": kernel.call, "q": q, "v": v, "tau": tau, "a": np.zeros(model.nv)}
        times.append(compare({"one": calls("kernel(q, v, tau, out=a)", **names)})["one"])
    print(f"\n| {family} | {' | '.join(map(str, sizes))} | slope |")
    print("|---" * (len(sizes) + 2) + "|")
    print(f"| operations | {' | '.join(map(str, counts))} | {slope(sizes, counts):.3f} |")
    medians = [t.median for t in times]
    print(f"| one call, ns | {' | '.join(f'{t * 1e9:.0f}' for t in medians)} | {slope(sizes, medians):.3f} |")


def slope(sizes, values) -> float:
    """Of the line that fits log(value) over log(size) best."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    print(
        f"Pinocchio {pin.__version__} (wheel, SSE2 code), MuJoCo {mujoco.__version__}, spanloop {sl.__version__}; "
        f"{BATCH} states a batch; median (quartiles)\n"
    )
    chosen = [n for n in names if n != "growth"] or ([] if names else list(MECHANISMS))
    if chosen:
        print_mechanisms(chosen)
    if not names or "growth" in names:
        for family, sizes in GROWTH.items():
            print_growth(family, sizes)


if __name__ == "__main__":
    main(sys.argv[1:])
