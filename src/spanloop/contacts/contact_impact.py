"""An impact of contacts at one moment: impulses that change velocities alone.

    u⁺ = u + W p,   0 ≤ u⁺_n + e u_n ⊥ p_n ≥ 0,   friction in its cone

of all points that are closed there; e of those that close faster than their `resting`. p (n · block) are the impulses,
lost (n) is the energy that they take: −½ p · (u + u⁺) [J].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from spanloop.compiler.lower import Block, For, When
from spanloop.compiler.lower.schedule import Item
from spanloop.contacts.contact_arrays import UNSOLVED, WHY
from spanloop.contacts.delassus import PREFIX, DelassusCalls, named
from spanloop.contacts.solver.rounds import FAILED
from spanloop.math.scalar import where
from spanloop.math.vector3 import total

NEAR = 1e-8  # m: points that are no further apart take part


class ContactImpact:
    """Makes the calls. close(near, event), solve(impulses): calls of a ContactStep; bodies: as there."""

    def __init__(
        self,
        delassus: DelassusCalls,
        close: Callable[..., Item],
        solve: Callable[[str], list[Item]],
        bodies: Sequence[tuple[int, ...]] = (),
    ):
        self.delassus, self.stage, self.close, self.solve = delassus, delassus.stage, close, solve
        self.bodies = bodies
        self.n, self.block = delassus.n, delassus.block
        self.stage.array(PREFIX + "here", self.n)

    def calls(self, q: str, v: str, event: str) -> list[Item]:
        """An impact at q where `event` is positive: v changes in place, p and lost are filled."""
        d, p = self.delassus, self.stage.array(PREFIX + "p", self.n * self.block)
        lost = self.stage.array(PREFIX + "lost", self.n)
        none = self.stage.call("no_impact", (), (p, lost), lambda: ([0.0] * (self.n * self.block), [0.0] * self.n))
        contact = [
            *d.factor(q, v, v, PREFIX + "v"),
            For("i", 0, self.n, (self._strike(),)),
            *d.matrix(),
            *self.solve(p),
            *d.gather(p),
            d.to_joints(PREFIX + "dv"),
            d.to_links("V0"),
            For("i", 0, self.n, (self._lose(p, lost),)),
            self._rebound(v),
        ]
        seen = [none, d.touch(q, PREFIX + "here"), *self._gaps_at(event), self.close(NEAR, event)]
        return [*seen, When(tuple(contact), PREFIX + "touching")]

    def _gaps_at(self, event: str) -> list[Item]:
        """Gaps where an event is; those of other runs stay as they are, to the bit.

        Where a body that pushes has gone, no forces are expected any more.
        """

        def page(here, gap, event):
            return ([where(event[0] > 0.5, a, b) for a, b in zip(here, gap, strict=True)],)

        def forget(force, tau, present):
            gone: Any = 0.0
            for i, bodies in enumerate(self.bodies):
                for body in bodies:
                    gone = where((force[self.block * i] > 0.0) & ~(present[body] > 0.5), 1.0, gone)
            return tuple([where(gone > 0.5, 0.0, x) for x in array] for array in (force, tau))

        calls: list[Item] = [self.stage.call("gaps_at", (*named("here", "gap"), event), named("gap"), page)]
        if any(self.bodies):
            calls.append(self.stage.call("forget", (*named("force", "tau"), "present"), named("force", "tau"), forget))
        return calls

    def _strike(self) -> Item:
        """b of a point in an impact: its velocity, and the share of it that is reversed."""
        d = self.delassus

        def page(rows, moving, k, *V):
            u = [a - b for a, b in zip(d.along(rows, *V), moving, strict=True)]
            return [u[0] + k[3] * where(u[0] < -k[4], u[0], 0.0), *u[1:]], u, [0.0], [0.0, 0.0], list(k[:3])

        reads = [d.of_point(n) for n in ("rows", "moving", "k")] + [d.of_link("V", w) for w in range(len(d.ways))]
        self.stage.array(PREFIX + "u", self.n * self.block)
        writes = [d.of_point(n) for n in ("b", "u", "soft", "toward", "coefficients")]
        return self.stage.call("strike", reads, writes, page)

    def _lose(self, p: str, lost: str) -> Item:
        """The energy that a point takes: −½ p · (u + u⁺), u with the velocity of a surface that moves on its body."""
        d = self.delassus

        def page(rows, moving, u, p, on, *V):
            change = d.along(rows, *V)
            lost = total([-(f * (x + m + 0.5 * y)) for f, x, m, y in zip(p, u, moving, change, strict=True)])
            return ([where(on[0] > 0.5, lost, 0.0)],)

        impulse = Block(p, self.block, (("i", self.block),))
        reads = [d.of_point("rows"), d.of_point("moving"), d.of_point("u"), impulse, d.of_point("on")]
        reads += [d.of_link("V0", w) for w in range(len(d.ways))]
        return self.stage.call("lose", reads, (Block(lost, 1, (("i", 1),)),), page)

    def _rebound(self, v: str) -> Item:
        """v after an impact; one that is not solved leaves no number."""

        def page(v, closed, dv, touching, residual, failed, why):
            out = [where(touching[0] > 0.0, a + b, c) for a, b, c in zip(closed, dv, v, strict=True)]
            solved = (residual[0] < UNSOLVED) | ~(failed[0] > 0.0) | ~(touching[0] > 0.0)
            return [where(solved, out[0], math.nan), *out[1:]], [where(solved, why[0], residual[0]), why[1]]

        return self.stage.call("rebound", (v, *named("v", "dv", "touching", "residual"), FAILED, WHY), (v, WHY), page)
