"""The regressor of inverse dynamics beside Pinocchio's, in one process: `python benchmarks/regressors.py [robot ...]`.

Robots as in trees.py, bodies on fixed joints fused as Pinocchio does: both sides have ten columns a joint. Times are
medians (quartiles) of this run; both calls write into an array that exists. Talos differs by 6e-12: its file has
pi with twelve digits, which we read as pi.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import pinocchio as pin
from timing import calls, compare
from trees import FILES, pair, state

import spanloop as sl

BATCH = 512
ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)  # ours: m h xx xy xz yy yz zz; theirs: m h xx xy yy xz yz zz


def row(name: str) -> str:
    """One line of the table."""
    model, peer = pair(name)
    model = model.fuse()
    (q, v, a), (pq, pv, pa), order = state(model, peer)
    robot, data = sl.Dynamics(model), peer.createData()
    began = time.perf_counter()
    Y = robot.regressor(q, v, a)
    compiled = time.perf_counter() - began
    theirs = np.array(pin.computeJointTorqueRegressor(peer, data, pq, pv, pa))
    names = {"robot": robot, "q": q, "v": v, "a": a, "out": Y.copy(), "pin": pin, "peer": peer, "data": data}
    names |= {"pq": pq, "pv": pv, "pa": pa}
    one = compare(
        {
            "spanloop": calls("robot.regressor(q, v, a, out=out)", **names),
            "pinocchio": calls("pin.computeJointTorqueRegressor(peer, data, pq, pv, pa)", **names),
        }
    )
    rows = {k: np.tile(names[k], (BATCH, 1)) for k in "qva"} | {"out": np.empty((BATCH, *Y.shape)), "robot": robot}
    many = compare({"spanloop": calls("robot.regressor(q, v, a, out=out)", **rows)}, BATCH, samples=15)["spanloop"]
    ours, other = one["spanloop"], one["pinocchio"]
    operations = robot.kernel("regressor").operations.total
    return (
        f"| {name} | {operations} | {np.count_nonzero(Y)} of {Y.size} | {ours.text()} | {other.text()} | "
        f"{other.median / ours.median:.1f} | {many.text()} | {_difference(Y, theirs, model, peer, order):.0e} | "
        f"{compiled:.2f} |"
    )


def _difference(Y, theirs, model: sl.Model, peer: pin.Model, order) -> float:
    """Largest difference of entries, of the largest entry."""
    numbers = [peer.getJointId(j.name if j.kind.name != "free" else "root_joint") - 1 for j in model.joints]
    columns = np.array([10 * n + k for n in numbers for k in ORDER])
    mapped = np.stack([order.v_from(column) for column in theirs.T], axis=1)[:, columns]
    return float(np.abs(Y - mapped).max() / np.abs(mapped).max())


def main(names: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"Pinocchio {pin.__version__} (wheel, SSE2 code); ns, median (quartiles); batches of {BATCH} on one thread\n")
    print("| | operations | not zero | one call | Pinocchio | ratio | batch, a state | difference | first call [s] |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names or FILES:
        print(row(name))


if __name__ == "__main__":
    main(sys.argv[1:])
