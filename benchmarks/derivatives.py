"""Derivatives of the dynamics of trees beside Pinocchio: `python benchmarks/derivatives.py [robot ...]`.

All of ∂a/∂(q, v, tau) and of ∂tau/∂(q, v, a), one state a call and batches on one core. Robots as in trees.py: panda,
anymal, talos, chain12, chain24, chain48, chain100. Calls of both sides alternate; processor time of this thread,
medians (quartiles). The `pin` wheel is built for SSE2, spanloop compiles for the machine at hand. Pinocchio has no
batches of derivatives: the ratio of batches is to its single call, whose answer stays in the cache.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings

import numpy as np
import pinocchio as pin
from timing import calls, compare
from trees import pair, state

import spanloop as sl

NAMES = ("panda", "anymal", "talos", "chain12", "chain24", "chain48", "chain100")
CALLS = {  # what is timed, word for word
    "derivatives": "pin.computeABADerivatives(peer, data, pq, pv, px)",
    "inverse_dynamics_derivatives": "pin.computeRNEADerivatives(peer, data, pq, pv, px)",
}


def compiled(function: str, model: sl.Model, inputs, rows) -> tuple[sl.Dynamics, float, float]:
    """A robot, and processor seconds until its first answers, of one state and of a batch; nothing is cached."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPANLOOP_CACHE"] = folder
        robot, start = sl.Dynamics(model), time.process_time()
        getattr(robot, function)(*inputs)
        one = time.process_time()
        getattr(robot, function)(*rows)
    return robot, one - start, time.process_time() - one


def row(function: str, model: sl.Model, peer: pin.Model) -> str:
    """One line of the table."""
    (q, v, x), (pq, pv, px), order = state(model, peer)
    many = max(64, min(1024, 2_000_000 // model.nv**2))
    rows = [np.tile(y, (many, 1)) for y in (q, v, x)]
    robot, one_s, batch_s = compiled(function, model, (q, v, x), rows)
    names = {"robot": robot, "q": q, "v": v, "x": x, "out": np.empty((model.nv, 3 * model.nv))}
    names |= {"pin": pin, "peer": peer, "data": peer.createData(), "pq": pq, "pv": pv, "px": px}
    ours = calls(f"robot.{function}(q, v, x, out=out)", **names)
    wide = dict(
        zip(("robot", "Q", "V", "X", "OUT"), (robot, *rows, np.empty((many, *names["out"].shape))), strict=True)
    )
    batch = calls(f"robot.{function}(Q, V, X, out=OUT)", **wide)
    timed = compare(
        {"one": ours, "pin": calls(CALLS[function], **names), "batch": batch},
        {"one": 1, "pin": 1, "batch": many},
        sample_s=0.01,
    )
    difference = _difference(names["out"], eval(CALLS[function], names), order, model.nv)
    one, theirs, each = (timed[k] for k in ("one", "pin", "batch"))
    return (
        f"| {function} | {one.text()} | {theirs.text()} | {theirs.median / one.median:.1f} | {each.text()} | "
        f"{theirs.median / each.median:.1f} | {difference:.0e} | {one_s:.1f} + {batch_s:.1f} |"
    )


def _difference(ours: np.ndarray, theirs, order, nv: int) -> float:
    """Largest difference of a matrix, beside its largest number; both in Pinocchio's order."""
    turn = np.stack([order.v_to(e) for e in np.eye(nv)], axis=1)  # a permutation
    third = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
    pairs = zip(np.split(ours, 3, axis=1), (*theirs[:2], third), strict=True)
    return max(float(np.abs(turn @ a @ turn.T - b).max() / np.abs(b).max()) for a, b in pairs)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    print(f"Pinocchio {pin.__version__} (wheel, SSE2 code); spanloop {sl.__version__}; ns, median (quartiles)\n")
    for name in names or NAMES:
        model, peer = pair(name)
        print(f"## {name}: {model.nv} DoF\n")
        print("| | one call | Pinocchio | ratio | batch, a state | ratio | difference | compile one + batch [s] |")
        print("|---|---|---|---|---|---|---|---|")
        for function in CALLS:
            print(row(function, model, peer), flush=True)
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
