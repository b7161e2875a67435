"""How many warps of a GPU compute a state: one thread a state, or several warps to 32 states (render/gpu/warps.py).

Small batches leave most of the GPU idle with one warp: there the division is best that is done first. Large batches
fill it anyway. There one warp is faster, but for two kinds of mechanisms whose values a thread cannot hold; the bounds
are between those that were measured on an H200 (decision 44).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spanloop.compiler.lower import Part, Plan
from spanloop.compiler.lower.exchange import Exchange, exchange
from spanloop.compiler.lower.spilling import spills
from spanloop.compiler.render.gpu.entry import WARP
from spanloop.compiler.render.gpu.threads import BUDGET, SHARED, Layout
from spanloop.compiler.render.gpu.warps import fits

MOST = 4  # warps of a state
WORTH = 0.85  # of the operations one after the other that a division may take at most
NEAR = 1.02  # times the shortest division, up to which one with fewer warps is taken
EVEN = 0.67  # of them up to which two warps pay in large batches as well (float64)
SOME, MANY = 2, 6  # times the budget of registers, values held at a time: between them in float64, above in float32
AT_ONCE = 8  # warps that run on a multiprocessor with all the registers that a thread can have


@dataclass(frozen=True)
class WarpChoice:
    """Warps of a state in small and in large batches.

    is_straight: whether the plan is one run of instructions, and not loops or pieces, which are not divided.
    """

    small: int = 1
    large: int = 1
    is_straight: bool = True

    def of_batch(self, n: int, multiprocessors: int) -> int:
        """For n states; a batch is small if all its warps run at once."""
        return self.small if n * self.small <= AT_ONCE * WARP * multiprocessors else self.large


def warp_choice(plan: Plan, parts: Sequence[Part], real: str, layout: Layout, shared: int = SHARED) -> WarpChoice:
    """The choice for a plan; shared: bytes of shared memory that a block may have."""
    divided = [x for x in (exchange(plan, parts, w) for w in range(2, MOST + 1)) if x is not None]
    divided = [x for x in divided if fits(x, real, layout, shared=shared)]
    shortest = min((x.length for x in divided), default=math.inf)
    if shortest > WORTH * len(plan.nodes):
        return WarpChoice()
    small = next(x.workers for x in divided if x.length <= NEAR * shortest)
    large = next((2 for x in divided if x.workers == 2 and _pays(x, real)), 1)
    return WarpChoice(small, large)


def _pays(two: Exchange, real: str) -> bool:
    whole = len(two.plan.nodes)
    crowd = spills(two.plan, whole, 0).peak / BUDGET[real]
    if real == "float":
        return crowd > MANY
    return SOME < crowd <= MANY and two.length <= EVEN * whole
