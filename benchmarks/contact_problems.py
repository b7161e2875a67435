"""A campaign of random contact problems: how many are solved, how well, and how many steps it takes.

    python benchmarks/contact_problems.py [problems, 100000 by default] [seed]

Families of 1 to 16 points (tests/support/contact_problems.py): boxes, legs, stacks with masses up to 1:10000, points
twice, dense matrices; standing, falling, sliding, random; µ from 0.1 to 1.5, some 0; some with restitution. A problem
is solved if its natural residual, computed here from W, b and f, is at most 1e-12 m/s, or what rounding makes of
W f + b where that is more. All others are listed with what is left.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from spanloop.contacts.solver.problem import solve

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import contact_problems as made

BOUND = 1e-12  # m/s


def main(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    each = -(-count // (len(made.FAMILIES) * len(made.MOTIONS)))
    print(f"{each} problems of each kind, seed {seed}")
    print(
        f"{'':34s} {'not solved':>10s} {'above 1e-12':>11s} {'largest':>9s}   "
        "steps 50 %, 99 %, most   swept  most  µs each"
    )
    unsolved, above, steps, swept = [], 0, [], []
    for family in made.FAMILIES:
        for motion in made.MOTIONS:
            W, b, friction = made.problems(rng, family, motion, each)
            solve(W[:2], b[:2], friction[:2])
            start = time.process_time()
            found = solve(W, b, friction)
            taken = time.process_time() - start
            left = made.natural_residual(W, b, friction, found.f)
            solved = left <= np.maximum(BOUND, made.rounding(W, b, found.f))
            unsolved += [(family, motion, k, left[k], found.residual[k]) for k in np.flatnonzero(~solved)]
            above += int((left > BOUND).sum())
            steps.append(found.steps)
            swept.append(found.sweeps)
            middle, high = np.percentile(found.steps, [50, 99])
            print(
                f"{family:24s} {motion:9s} {(~solved).sum():10d} {(left > BOUND).sum():11d} "
                f"{left[solved].max():9.0e}   "
                f"{middle:10.0f} {high:5.0f} {found.steps.max():5.0f}   {100 * (found.sweeps > 0).mean():4.1f} % "
                f"{found.sweeps.max():6.0f} {1e6 * taken / each:8.1f}",
                flush=True,
            )
    s, w = np.concatenate(steps), np.concatenate(swept)
    print(
        f"{len(s)} problems: {len(unsolved)} not solved, {above} above {BOUND:g} m/s (by rounding or not solved); "
        f"steps {np.median(s):.0f} (median), {np.percentile(s, 99):.0f} (99 %), {s.max():.0f} (most); "
        f"{100 * (w > 0).mean():.1f} % with sweeps"
    )
    for family, motion, k, measured, reported in unsolved:
        print(f"  not solved: {family}, {motion}, number {k}: {measured:.1e} m/s is left, {reported:.1e} reported")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
