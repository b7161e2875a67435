"""Overlaps that a step leaves: taken back by the least impulses along the normals, which change no velocity.

    gap + W_nn s ≥ 0 ⊥ s ≥ 0,   q⁺ = q ⊕ Y J_nᵀ s

by Gauss-Seidel sweeps, in rounds, because normals turn while a point moves. Compliant contacts may overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spanloop.compiler.lower import Block, For, Repeat, When
from spanloop.compiler.lower.schedule import Item
from spanloop.contacts.delassus import PREFIX, DelassusCalls, named
from spanloop.math.scalar import absolute, where

DEEP = 1e-10  # m: a penetration that is taken back
PUSHED = 1e-14  # m: where taking back ends
SWEEPS = 200  # of taking back, at most
ROUNDS = 4


class Overlaps:
    """Makes the calls. landed, after: arrays of q⁺ and v⁺; gap: of the gaps there; moved, turned: as of ContactStep."""

    def __init__(self, delassus: DelassusCalls, moved: Callable, turned: Callable, landed: str, after: str, gap: str):
        self.delassus, self.stage, self.moved, self.turned = delassus, delassus.stage, moved, turned
        self.landed, self.after, self.gap, self.n = landed, after, gap, delassus.n
        for name in ("here", "push"):
            self.stage.array(PREFIX + name, self.n)
        for name in ("deep", "left.push", "sum", "worst"):
            self.stage.array(PREFIX + name, 1)

    def calls(self, left: str) -> list[Item]:
        """Gaps at q⁺, overlaps taken back, the largest one that remains in `left`."""
        rounds = Repeat((*self._take_back(), *self._retreat()), PREFIX + "deep", ROUNDS, usual=1)
        measured = [self.delassus.gaps(self.landed, PREFIX + "here"), self._keep_gaps()]
        return [*measured, When((rounds,), PREFIX + "deep"), self._count(left)]

    def _keep_gaps(self) -> Item:
        """Gaps after the step, of runs that touch; and whether one has to be taken back."""

        def page(here, gap, on, touching, k):
            now = [where(touching[0] > 0.0, a, b) for a, b in zip(here, gap, strict=True)]
            deep: Any = -1.0
            for i in range(self.n):
                hard = where(k[7 * i + 5] > 0.0, 0.0, on[i])
                deep = where((hard > 0.5) & (here[i] < -DEEP) & (touching[0] > 0.0), 1.0, deep)
            return now, [deep]

        reads = (*named("here"), self.gap, *named("on", "touching", "k"))
        return self.stage.call("keep_gaps", reads, (self.gap, PREFIX + "deep"), page)

    def _take_back(self) -> list[Item]:
        """The least impulses along the normals that open all gaps: Gauss-Seidel sweeps, then gathered on the links."""
        d, call = self.delassus, self.stage.call
        n, (push, here, on, deep, turn) = self.n, named("push", "here", "on", "deep", "left.push")
        start = call("unpushed", (), (push,), lambda: ([0.0] * n,))
        own, other = Block(push, 1, (("i", 1),)), Block(push, 1, (("j", 1),))
        begin = call("begin_row", (Block(here, 1, (("i", 1),)),), (PREFIX + "sum",), lambda x: (list(x),))
        add = call(
            "add_row", (d.of_pair("i", "j", 1), other, PREFIX + "sum"), (PREFIX + "sum",),
            lambda W, x, s: ([s[0] + W[0] * x[0]],),
        )  # fmt: skip

        def update(W, x, s, on, k, busy, worst):
            new = x[0] - s[0] / where(W[0] > 0.0, W[0], 1.0)
            new = where((on[0] > 0.5) & (new > 0.0) & ~(k[5] > 0.0), new, 0.0)
            change = absolute(new - x[0]) * W[0]
            goes_on = busy[0] > 0.0
            return [where(goes_on, new, x[0])], [where(worst[0] < change, change, worst[0])]

        sum_ = PREFIX + "sum"
        worst = PREFIX + "worst"
        reads = (d.of_pair("i", "i", 1), own, sum_, Block(on, 1, (("i", 1),)), d.of_point("k"), turn, worst)
        sweep = For("i", 0, n, (begin, For("j", 0, n, (add,)), call("update_row", reads, (own, worst), update)))
        fresh = call("sweep_begins", (), (worst,), lambda: ([0.0],))

        def judge(worst, busy):
            return ([where((busy[0] > 0.0) & (worst[0] > PUSHED), 1.0, -1.0)],)

        judged = call("sweep_ends", (worst, turn), (turn,), judge)
        busy = call("push_begins", (deep,), (turn,), lambda deep: (list(deep),))

        def along_normals(x):
            return ([y for p in x for y in (p, *([0.0] * (self.delassus.block - 1)))],)

        spread = call("along_normals", (push,), (PREFIX + "share",), along_normals)
        return [start, busy, Repeat((fresh, sweep, judged), turn, SWEEPS, usual=4), spread, *d.gather(PREFIX + "share")]

    def _retreat(self) -> list[Item]:
        """q⁺ after what is taken back, and its gaps; v⁺ keeps its direction in the world."""

        def page(q, v, dq, deep):
            to = self.moved(q, dq)
            pairs = (to, q), (self.turned(q, v, to), v)
            return tuple([where(deep[0] > 0.0, a, b) for a, b in zip(*pair, strict=True)] for pair in pairs)

        ends, d = (self.landed, self.after), self.delassus
        move = self.stage.call("retreat", (*ends, *named("dv", "deep")), ends, page)
        return [d.to_joints(PREFIX + "dv"), move, d.gaps(self.landed, PREFIX + "here"), self._keep_gaps()]

    def _count(self, left: str) -> Item:
        """The largest penetration so far of hard contacts."""

        def page(gap, on, k, touching, left):
            worst = left[1]
            for i in range(self.n):
                depth = where((on[i] > 0.5) & ~(k[7 * i + 5] > 0.0) & (touching[0] > 0.0), -gap[i], 0.0)
                worst = where(worst < depth, depth, worst)
            return ([left[0], worst, left[2]],)

        return self.stage.call("count", (self.gap, *named("on", "k", "touching"), left), (left,), page)
