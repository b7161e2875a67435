"""Cost of forward dynamics of closed chains by every method: operations over the arms m and over their joints N.

Lilly & Orin state O(mN); Kreutz & Rodriguez O(n) + O(ℓ³) for ℓ arms with n joints in total; Rodriguez, Jain & Kreutz
linear growth in the joints, and the cube of the rows at worst. Here multiplications, additions and divisions are
counted on the plans of the kernels. Arms have generic Denavit-Hartenberg numbers (`sl.zoo.dh_arm`) and hold the object
in point contacts, three rows each.

    python 16_cost_of_closed_chains.py            # seconds
    python 16_cost_of_closed_chains.py --large    # up to 64 arms and 40 joints: some minutes

The page, with figures: docs/examples/16_cost_of_closed_chains.md
"""

import sys
from dataclasses import replace
from functools import cache

import numpy as np

import spanloop as sl
from spanloop.errors import UnsupportedError
from spanloop.kernels import operations
from spanloop.model import Placement

LARGE = "--large" in sys.argv
ARMS = (1, 3, 5, 7, 9, 16, 32, 64) if LARGE else (1, 3, 5, 7, 9)
JOINTS = (3, 6, 12, 24, 40) if LARGE else (3, 6, 12)
LINEAR = ("elimination", "simple_closed_chain", "closed_topology")
CUBIC = ("arms_on_object_1", "arms_on_object_2", "arms_on_object_3", "arms_on_object", "dense")
FEW = 32  # arms at most, for methods that grow faster


@cache
def arms(m, N):
    """m generic arms of N joints that hold one object in point contacts at generic points."""
    model = sl.zoo.arms_with_object(m, arm=sl.zoo.dh_arm(N), grasp="spherical")
    aside = [Placement(position=tuple(p)) for p in np.random.default_rng(m).uniform(0.01, 0.1, (m, 3))]
    pairs = zip(model.loops, aside, strict=True)
    return replace(model, loops=tuple(replace(x, placement_b=x.placement_b @ p) for x, p in pairs))


def cost(m, N, method):
    """Multiplications, additions and divisions of one call; nothing is compiled."""
    model = arms(m, N)
    if method == "parallel_legs":  # needs as many motors as the mobility: one less on each of three arms
        model = model.unactuate(*(f"arm{k}_joint2" for k in (1, 2, 3)))
    n = operations(model, "forward_dynamics", method)
    return n.multiplications + n.additions + n.divisions


def slope(found, start=0):
    """Slope of log(operations) over log(size), fitted from a size on."""
    sizes = [n for n in found if n >= start]
    return np.polyfit(np.log(sizes), np.log([found[n] for n in sizes]), 1)[0]


def table(title, sizes, found, start):
    print(f"\n{title}\n{'method':20}" + "".join(f"{n:>9}" for n in sizes) + f"    slope  from {start} on")
    for method, row in found.items():
        cells = "".join(f"{row.get(n, '-'):>9}" for n in sizes)
        print(f"{method:20}{cells}    {slope(row):5.2f}  {slope(row, start):9.2f}")


# ---- over the arms, six joints each

over_arms = {
    method: {m: cost(m, 6, method) for m in ARMS if method in LINEAR or m <= FEW} for method in (*LINEAR, *CUBIC)
}
table("operations over the number m of arms, N = 6", ARMS, over_arms, 3)
for method in LINEAR:
    assert slope(over_arms[method]) <= 1.05

# the cubic term is one factorisation: (3ℓ)³/6 multiplications and as many additions
for method in CUBIC[:3]:
    three, five, seven, nine = (over_arms[method][m] for m in (3, 5, 7, 9))
    cube = (nine - 3 * seven + 3 * five - three) / (6 * 2**3)
    print(f"{method}: {cube:.2f} ℓ³ operations; the rest grows more slowly")
    assert abs(cube - 9.0) < 0.5

# ---- over the joints, three arms; Saha's method applies too, if one joint of each arm has no motor

over_joints = {method: {N: cost(3, N, method) for N in JOINTS} for method in (*LINEAR, *CUBIC)}
over_joints["parallel_legs"] = {N: cost(3, N, "parallel_legs") for N in JOINTS if N <= 12}
table("operations over the joints N of each arm, m = 3", JOINTS, over_joints, 6)
for method in (*LINEAR, *CUBIC[:4]):
    more = np.diff(list(over_joints[method].values())) / np.diff(JOINTS)
    print(f"{method}: {more[-1] / 3:.0f} operations for each further joint of one arm")
    np.testing.assert_allclose(more, more[-1], rtol=1e-3)  # a line; it starts below 0, so slopes fall to 1 from above

# why the first table does not contain Saha's method
try:
    sl.compile(arms(4, 6), "forward_dynamics", method="parallel_legs")
except UnsupportedError as sentence:
    print(f"\n{sentence}")
