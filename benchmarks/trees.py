"""Tree mechanisms beside Pinocchio, in one process: `python benchmarks/trees.py [robot ...]`.

Robots: panda (fingers locked), anymal and talos (free base) from the wheel example-robot-data, chain16, chain64; no
losses on either side. Times are medians (quartiles) of this run; the `pin` wheel is built for SSE2, spanloop
compiles for the machine at hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pinocchio as pin
from timing import calls, compare

import spanloop as sl

ROBOTS = os.path.join(os.path.dirname(pin.__file__), "../../../../share/example-robot-data/robots")
FILES = {
    "panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", "free"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "free"),
}
BATCH = 4096
FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix")


def pair(name: str) -> tuple[sl.Model, pin.Model]:
    """The same robot here and there."""
    if name.startswith("chain"):
        model = sl.zoo.chain(int(name[5:]))
        return model, chain_for_pinocchio(model)
    path, base = FILES[name]
    path = os.path.join(ROBOTS, path)
    model = sl.load(path, base=base).without_losses()
    peer = pin.buildModelFromUrdf(path, *([pin.JointModelFreeFlyer()] if base == "free" else []))
    if name == "panda":
        fingers = ("panda_finger_joint1", "panda_finger_joint2")
        model = model.lock(*fingers)
        peer = pin.buildReducedModel(peer, [peer.getJointId(f) for f in fingers], pin.neutral(peer))
    peer.armature = np.zeros(peer.nv)
    return model, peer


def chain_for_pinocchio(model: sl.Model) -> pin.Model:
    peer, number = pin.Model(), {"world": 0}
    for body, joint in zip(model.bodies, model.joints, strict=True):
        axis = tuple(joint.kind.axis)
        aligned = {(1, 0, 0): pin.JointModelRX, (0, 1, 0): pin.JointModelRY, (0, 0, 1): pin.JointModelRZ}
        kind = aligned[axis]() if axis in aligned else pin.JointModelRevoluteUnaligned(np.array(axis))
        place = pin.SE3(np.array(joint.placement.rotation), np.array(joint.placement.position))
        number[joint.child] = peer.addJoint(number[joint.parent], kind, place, joint.name)
        i = body.inertia
        inertia = pin.Inertia(i.mass, np.array(i.center), np.array(i.matrix()))
        peer.appendBodyToJoint(number[joint.child], inertia, pin.SE3.Identity())
    return peer


def state(model: sl.Model, peer: pin.Model):
    """A state, torques or accelerations, in both orders."""
    q, v = model.random_state(7)
    x = np.random.default_rng(8).normal(size=model.nv)
    order = sl.PinocchioOrder(model, list(peer.names), list(peer.nqs))
    return (q, v, x), (order.q_to(q), order.v_to(v), order.v_to(x)), order


CALLS = {  # what is timed, word for word
    "forward_dynamics": ("robot.forward_dynamics(q, v, x, out=out)", "pin.aba(peer, data, pq, pv, px)"),
    "inverse_dynamics": ("robot.inverse_dynamics(q, v, x, out=out)", "pin.rnea(peer, data, pq, pv, px)"),
    "mass_matrix": ("robot.mass_matrix(q, out=out)", "pin.crba(peer, data, pq)"),
}


def single_calls(model, peer) -> dict[str, dict]:
    (q, v, x), (pq, pv, px), order = state(model, peer)
    names = {"robot": sl.Dynamics(model), "pin": pin, "peer": peer, "data": peer.createData()}
    names |= {"q": q, "v": v, "x": x, "pq": pq, "pv": pv, "px": px}
    out = {}
    for f, (ours, theirs) in CALLS.items():
        names["out"] = np.zeros((model.nv, model.nv) if f == "mass_matrix" else model.nv)
        mine, other = eval(ours, names), eval(theirs, names)
        if f == "mass_matrix":
            wrong = _matrix_difference(mine, other, order, model.nv)
        else:
            wrong = np.abs(order.v_to(mine) - other).max() / np.abs(other).max()
        timed = compare({"spanloop": calls(ours, **names), "pinocchio": calls(theirs, **names)})
        out[f] = {**timed, "difference": wrong}
    return out


def _matrix_difference(mine, upper, order, nv: int) -> float:
    """crba fills the upper triangle; compare columns M e_k in their order."""
    full = np.triu(upper) + np.triu(upper, 1).T
    columns = np.stack([order.v_to(mine @ order.v_from(e)) for e in np.eye(nv)], axis=1)
    return float(np.abs(columns - full).max() / np.abs(full).max())


def batches(model, peer) -> dict[str, dict]:
    (q, _, _), (pq, _, _), _ = state(model, peer)
    rng = np.random.default_rng(9)
    Q = np.tile(q, (BATCH, 1))
    V, X = rng.normal(size=(2, BATCH, model.nv))
    PQ = np.asfortranarray(np.tile(pq[:, None], (1, BATCH)))
    PV, PX, PA = (np.asfortranarray(y.T.copy()) for y in (V, X, X))
    out = {}
    for f, theirs in (("forward_dynamics", "abaInParallel"), ("inverse_dynamics", "rneaInParallel")):
        ours, others = {}, {}
        for n in (1, 2):
            robot = sl.Dynamics(model, threads=n)
            ours[f"spanloop {n}"] = calls(f"robot.{f}(Q, V, X, out=A)", robot=robot, Q=Q, V=V, X=X, A=X.copy())
            peers = {"pin": pin, "pool": pin.ModelPool(peer, n), "Q": PQ, "V": PV, "X": PX, "A": PA}
            others[f"pinocchio {n}"] = calls(f"pin.{theirs}({n}, pool, Q, V, X, A)", **peers)
        narrow = {k: y.astype(np.float32) for k, y in (("Q", Q), ("V", V), ("X", X), ("A", X))}
        ours["float32"] = calls(f"robot.{f}(Q, V, X, out=A)", robot=sl.Dynamics(model, dtype="float32"), **narrow)
        one = {k: {**ours, **others}[k] for k in ("spanloop 1", "pinocchio 1", "float32")}
        out[f] = compare(one, BATCH, samples=15, clock=time.perf_counter)
        # two threads each by itself: idle OpenMP threads of the peer would spin on the second core
        for two in ({"spanloop 2": ours["spanloop 2"]}, {"pinocchio 2": others["pinocchio 2"]}):
            out[f] |= compare(two, BATCH, samples=15, clock=time.perf_counter)
    return out


def live_parameters(model) -> dict:
    """Forward dynamics with the model's numbers baked in, and as an input."""
    (q, v), x = model.random_state(7), np.ones(model.nv)
    baked, live = (sl.compile(model, "forward_dynamics", parameters=p) for p in ("baked", "live"))
    names = {"baked": baked.call, "live": live.call, "p": model.parameters().values, "out": np.zeros(model.nv)}
    names |= {"q": q, "v": v, "x": x}
    rows = {k: np.tile(names[k], (BATCH, 1)) for k in ("q", "v", "x", "p", "out")} | {"baked": baked, "live": live}
    one = {"baked": "baked(q, v, x, out=out)", "live": "live(q, v, x, p, out=out)"}
    timed = compare({k: calls(t, **names) for k, t in one.items()})
    many = compare({k: calls(t, **rows) for k, t in one.items()}, BATCH, samples=15)
    return {"one": timed, "batch": many, "operations": (baked.operations, live.operations)}


STARTER = """
import sys, time, pickle, warnings
warnings.simplefilter("ignore")
import numpy as np, spanloop as sl
import spanloop.kernels, spanloop.compiler.runtime.kernel
model = pickle.load(open(sys.argv[1], "rb"))
q, v = model.random_state(7); x = v.copy()
start = time.perf_counter()
k = sl.compile(model, sys.argv[2])
k(*((q, v, x)[: len(k.inputs)]))
print(time.perf_counter() - start)
"""


def starts(model) -> dict[str, tuple[float, float]]:
    """Seconds from sl.compile to the first result in a new process: empty cache, then cached."""
    import pickle

    out = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pickle")
        with open(path, "wb") as file:
            pickle.dump(model, file)
        for f in FUNCTIONS:
            fresh, cached = [], []
            for k in range(5):
                environment = {**os.environ, "SPANLOOP_CACHE": os.path.join(folder, f"cache{f}{k}")}
                for seen in (fresh, cached):
                    done = subprocess.run(
                        [sys.executable, "-c", STARTER, path, f],
                        env=environment,
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                    seen.append(float(done.stdout))
            out[f] = (float(np.median(fresh)), float(np.median(cached)))
    return out


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    print(
        f"Pinocchio {pin.__version__} (wheel, SSE2 code); spanloop {sl.__version__}; {BATCH} states a batch; "
        "ns, median (quartiles)\n"
    )
    for name in names or [*FILES, "chain16", "chain64"]:
        model, peer = pair(name)
        print(f"## {name}: {model.nv} freedoms")
        print("| | mul/add/div | one call | Pinocchio | ratio | difference | compile [s] | cached start [ms] |")
        print("|---|---|---|---|---|---|---|---|")
        begin = starts(model)
        for f, row in single_calls(model, peer).items():
            n = sl.compile(model, f).operations
            ours, theirs = row["spanloop"], row["pinocchio"]
            print(
                f"| {f} | {n.multiplications}/{n.additions}/{n.divisions} | {ours.text()} | {theirs.text()} | "
                f"{theirs.median / ours.median:.1f} | {row['difference']:.0e} | "
                f"{begin[f][0]:.3f} | {begin[f][1] * 1e3:.1f} |"
            )
        print(
            "\n| batch, ns a state (wall) | spanloop | float32 | Pinocchio | ratio | 2 threads | Pinocchio, 2 threads |"
        )
        print("|---|---|---|---|---|---|---|")
        for f, row in batches(model, peer).items():
            one, two, theirs, theirs2 = (row[k] for k in ("spanloop 1", "spanloop 2", "pinocchio 1", "pinocchio 2"))
            print(
                f"| {f} | {one.text()} | {row['float32'].text()} | {theirs.text()} | "
                f"{theirs.median / one.median:.1f} | "
                f"{two.text()} | {theirs2.text()} |"
            )
        live = live_parameters(model)
        n = live["operations"]
        print(
            f"\nParameters baked / live: one call {live['one']['baked'].text()} / {live['one']['live'].text()}, "
            f"batch with a set each {live['batch']['baked'].text()} / {live['batch']['live'].text()} ns, "
            f"{n[0].multiplications + n[0].additions} / {n[1].multiplications + n[1].additions} operations\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
