"""Writes docs/singular.md: what forward dynamics returns at and near singular configurations.

python docs/tables/singular.py
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from dense_closures import ClosedReference  # noqa: E402
from singular_cases import CASES, DISTANCES, outcome  # noqa: E402

import spanloop as sl  # noqa: E402

BEGINNING = """# Behaviour at and near singular configurations

This page tabulates what `forward_dynamics` returns at a distance δ [rad] from a singular configuration, for one call and
for a row of a batch. An error is the largest difference from the solution of the dense equations in 50 digits at the same
numbers, relative to the largest acceleration. "refused" is a `StateError` from a single call; in a batch that row is NaN,
one warning counts such rows and explains the first, and other rows are unaffected. σ is the ratio of the smallest to the
largest singular value of the closure rows, without redundant rows. `docs/tables/singular.py` writes the page; the cases are those of
`tests/support/singular_cases.py`, and `tests/loops/test_singular_loops.py` checks them.

How to read it:

* If **no row is lost** (stretched five-bar, wrists), accelerations are unique at the singular configuration too, and the
  function returns them at every distance. With an arm at a wrist singularity the object must be eliminated together with
  the arms: the pivots of the arm alone vanish and are bounded below by 1e-8 of their scale. This bound and the rounding
  errors change the solution by about 1e-8; one refinement squares that error.
* If **a row is lost** (all links in a line), the accelerations near the configuration are unique but depend on a
  pivot of about δ². Method `elimination` refuses the state when that pivot is below 1e-12 of its scale, that is within
  about 1e-6 rad; it refuses arms that hold a free body (taut arms) from about 1e-4 rad, where the refinement no
  longer converges. At the configuration itself the mechanism can continue in more than one way, and no acceleration is
  unique. `dense`, the baseline, compares its pivots in the same way and refuses somewhat later or earlier. A simulation
  ends sooner, when the same ratio of pivot and scale (its `margin`) is below 1e-8, that is within about 1e-4 rad.
* Singular is what has less rank than the states beside it, in the **assembly** of the state at hand. A mechanism may have
  several: a plate on three parallel rods moves like a parallelogram with one row redundant, and turned it cannot move
  at all. Rows that are redundant near the neutral state are left out of a kernel and tested at every state. Where they matter, or
  where others become redundant, the rows are ranked again near this state, and a kernel for its assembly answers. If rows
  can be switched off, a state of another assembly is refused (`Reason.OTHER_ASSEMBLY`); `sl.compile(..., near=q)` makes a
  kernel for the assembly of q.
* Lengths are compared after division by the **characteristic length** of their loop, the median distance between
  neighbouring joints: kernels refuse a state as open where the root of the sum of the squares of all loops' errors
  exceeds 1e-3 (rad, or shares of this length), runs a start where one of these errors does.
* **Derivatives** along closed motions lose digits sooner than accelerations: with rounding ε of the rows they are off by ε/σ² at rest and ε/σ³ in motion. States at
  which this exceeds 1e-4 are refused ([gradients.md](gradients.md#closed-loops)).
* The mass matrix of the tree must be regular by itself, also where loops would determine the motion: a coupler without mass and
  inertia is refused (`Reason.SINGULAR_MASS`). `closures="minimal"` can simulate it where it supports the mechanism.
"""


def smallest(case) -> float:
    """The smallest singular value that counts, beside the largest."""
    reference = ClosedReference(case.model, case.q)
    s = np.linalg.svd(np.array(reference.closure_jacobian(), dtype=float), compute_uv=False)
    return s[min(len(s), rank(case)) - 1] / s[0]


def rank(case) -> int:
    """Independent rows in general."""
    return 2 if len(case.model.loops) == 1 else 12


def described(what: str, error: float) -> str:
    return "refused" if what == "refused" else f"{error:.0e}"


def in_batch(case) -> str:
    """The middle row of three, beside a single call."""
    kernel = sl.compile(case.model, "forward_dynamics")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        a = kernel(np.tile(case.q, (3, 1)), case.v, case.tau)[1]
    if not np.isfinite(a).all():
        return f"NaN, {len(heard)} warning"
    one = kernel(case.q, case.v, case.tau)
    return "equal" if np.array_equal(a, one) else f"differs by {np.abs(a - one).max() / np.abs(one).max():.0e}"


def table(case) -> str:
    lines = [
        f"## {case.name}: {case.what}\n",
        "| δ [rad] | σ | elimination | in a batch | dense |",
        "|---|---|---|---|---|",
    ]
    for distance in DISTANCES:
        state = case.at(distance)
        cells = [described(*outcome(state, method)) for method in ("elimination", "dense")]
        lines.append(f"| {distance:g} | {smallest(state):.0e} | {cells[0]} | {in_batch(state)} | {cells[1]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    text = "\n".join((BEGINNING, *(f"{table(case)}\n" for case in CASES)))
    (ROOT / "docs" / "singular.md").write_text(text, encoding="utf-8")
    print(text)
