"""The impulse solve beside Pinocchio's ADMM (wheel `pin`, built for SSE2) on the same random contact problems.

    python benchmarks/contact_solver.py [problems]

One call from Python at a time, cold start, W and its operator made before: the median over problems of the least of
REPEATS calls that take turns. ADMM is asked for 1e-6, its default, and 1e-10. The residual is the natural one [m/s],
the largest over all problems. Batches: one call for BATCH problems, processor time, arrays as they are given.
Iterations are steps of Newton's method and sweeps, or of ADMM.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin

from spanloop.contacts.solver.problem import OneProblem, solve

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import contact_problems as made

made.FAMILIES["eight legs, 8 soles, 32"] = lambda r, N: made.legged(r, N, 8, 4)
FAMILIES = ("box, 4 points", "quadruped, 4", "box, 8 points", "quadruped, 4 soles, 16", "eight legs, 8 soles, 32")
MOTIONS = ("standing", "sliding", "falling")
REPEATS = 7
BATCH = 512
FRICTION = 0.8  # of all points, as of most benchmarks


class Admm:
    """Pinocchio's solver of problems with n points; its rows are t1, t2, n."""

    def __init__(self, n: int, friction: float):
        model = pin.Model()
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "body")
        self.n, self.models, self.datas = n, pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for _ in range(n):
            contact = pin.PointContactConstraintModel(model, joint)
            contact.setFriction(friction)
            self.models.append(pin.ConstraintModel(contact))
            self.datas.append(self.models[-1].createData())
        self.solver, self.settings = pin.ADMMConstraintSolver(3 * n), pin.ADMMSolverSettings()
        self.order = np.arange(3 * n).reshape(n, 3)[:, [1, 2, 0]].ravel()

    def solve(self, W: np.ndarray, b: np.ndarray, tolerance: float) -> tuple[float, int, np.ndarray]:
        """Seconds, iterations, impulses (n, 3)."""
        for kind in ("absolute", "relative"):
            for what in ("feasibility", "complementarity"):
                setattr(self.settings, f"{kind}_{what}_tol", tolerance)
        operator, g = pin.DelassusOperatorDense(np.asfortranarray(W[np.ix_(self.order, self.order)])), b[self.order]
        result = pin.ADMMSolverResult()
        start = time.perf_counter()
        self.solver.solve(operator, g, self.models, self.datas, self.settings, result)
        taken = time.perf_counter() - start
        f = np.asarray(result.retrieveConstraintImpulses()).reshape(self.n, 3)[:, [2, 0, 1]]
        return taken, result.iterations, f


class Ours:
    """One problem of n points at a time."""

    def __init__(self, n: int, friction: float):
        self.one = OneProblem(n)
        self.one.friction[:] = friction

    def solve(self, W: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray]:
        """Seconds, impulses (n, 3)."""
        one = self.one
        one.W[:], one.b[:], one.f[:] = W.reshape(one.W.shape), b.reshape(one.b.shape), 0.0
        start = time.perf_counter()
        one.solve()
        return time.perf_counter() - start, one.f.copy()


def row(family: str, motion: str, count: int) -> str:
    """A line of the table."""
    W, b, friction = made.problems(np.random.default_rng(8), family, motion, count)
    friction[:] = FRICTION
    n = friction.shape[1]
    ours, admm = Ours(n, FRICTION), Admm(n, FRICTION)
    times = np.full((3, count, REPEATS), np.inf)
    found = np.zeros((3, count, n, 3))
    turns = np.zeros((2, count))
    ours.solve(W[0], b[0]), admm.solve(W[0], b[0], 1e-6)
    for k in range(count):
        for r in range(REPEATS):
            times[0, k, r], found[0, k] = ours.solve(W[k], b[k])
            for j, tolerance in enumerate((1e-6, 1e-10)):
                times[1 + j, k, r], turns[j, k], found[1 + j, k] = admm.solve(W[k], b[k], tolerance)
    batch = []
    many = [np.resize(x, (BATCH, *x.shape[1:])) for x in (W, b, friction)]
    solve(*many)
    for _ in range(3):
        start = time.process_time()
        counted = solve(*many)
        batch.append((time.process_time() - start) / BATCH)
    micro = 1e6 * np.median(times.min(2), axis=1)
    left = [made.natural_residual(W, b, friction, f).max() for f in found]
    steps = f"{np.median(counted.steps):.0f} + {np.median(counted.sweeps):.0f}"
    return (
        f"{family:24s} {motion:9s} {micro[0]:7.1f} {left[0]:8.0e} {steps:>9s} {1e6 * min(batch):8.2f}   "
        f"{micro[1]:7.1f} {left[1]:8.0e} {np.median(turns[0]):5.0f}   {micro[2]:7.1f} {left[2]:8.0e} "
        f"{np.median(turns[1]):5.0f}   {micro[1] / micro[0]:5.1f}"
    )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    print(f"{count} problems each, µ = {FRICTION}; times [µs], residuals [m/s]; pin {pin.__version__}, SSE2")
    print(f"{'':34s} {'spanloop':>37s}    {'ADMM, 1e-6':>22s}   {'ADMM, 1e-10':>22s}   times")
    print(
        f"{'':34s} {'one':>7s} {'left':>8s} {'steps':>9s} {'batch':>8s}   "
        + 2 * f"{'one':>7s} {'left':>8s} {'iter':>5s}   "
        + "faster"
    )
    for family in FAMILIES:
        for motion in MOTIONS:
            print(row(family, motion, count), flush=True)
