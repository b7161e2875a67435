"""The contacts of a step, after the free motion of an integrator: one impulse solve, and what it changes.

    u = J v + W f,   0 ≤ u_n + e u_n⁻ ⊥ f_n ≥ 0,   friction in its cone, of maximum dissipation
    v⁺ = v + Y Jᵀ f,   q⁺ = q⁻ ⊕ h (½ v⁻ + ½ v + Y Jᵀ (w f))

v, q: after the free motion, loops closed in v; v⁻, q⁻: before the step. Points whose gap at q is not larger than CLOSED
are on. A point that was apart closes inside the step: where the parabola through its gaps before and after, with its
velocity after, is zero. u⁻ is its velocity there; it leaves with −e u⁻ and with what forces add in the rest of the
step, so that a ball in free fall bounces exactly, and no energy comes from points that turn. w is the share of the step
for which an impulse displaces: of a point that bounces, what is left of the step; of one that comes to rest, gap /
(h u_n), which lands it; of one that was closed, ½, as of a force that is constant during the step, so that resting and
sliding are exact, or the share of what strikes elsewhere and makes it react.
Gaps that are negative after that are taken back (overlaps.py).

A contact with a stiffness k and a damping c has r = 1/(h² k + h c) added to W_nn and r h k gap⁻ to u_n: a spring and a
damper, taken implicitly. gap⁻: at the start of the step.

The free motion is not quite free: joints carry the torques of the forces that contacts are expected to have, those of
the last step, of points that were closed before it. The solve finds the impulses beyond them. So springs and dampers of
light feet see velocities that feet have; without, a damper would act on the fall of a foot that the ground holds, and a
robot would stand too low by a share of the order of the step times the damper's rate.

A step without any point that is on changes nothing, to the bit; contact_arrays.py has what runs carry.

A point jams (Painlevé) that was closed before the step and slips, and whose friction presses it into the surface: no
force answers, or several do, and the solve finds an impulse that does not fall with the step.

Where impacts are located (simulation/events), a point that is armed, having been apart, is not on in a step: the step
ends where it closes, and contact_impact.py follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from spanloop.algorithms.contact.friction_cone import jam
from spanloop.compiler.lower import Block, For, Stage, When
from spanloop.compiler.lower.schedule import Item, Place, following
from spanloop.contacts.contact_arrays import CLOSED, UNSOLVED, WHY
from spanloop.contacts.contact_impact import ContactImpact
from spanloop.contacts.delassus import PREFIX, DelassusCalls, named
from spanloop.contacts.mechanics import ContactMechanics
from spanloop.contacts.overlaps import Overlaps
from spanloop.contacts.solver.rounds import FAILED, solver_calls
from spanloop.contacts.tunnel_guard import tunnel_calls
from spanloop.math.scalar import absolute, sqrt, where
from spanloop.math.vector3 import total

SLOW = 1e-9  # m/s: a point that is slower does not slip


class ContactStep:
    """Makes the calls. moved(q, delta) is q ⊕ delta, turned(q, v, to) is v of the same motion at coordinates `to`.

    between(q, v, end, v_end, h): coordinates after a step, by the mean of the velocities at its ends.
    """

    def __init__(
        self,
        stage: Stage,
        mechanics: ContactMechanics,
        moved: Callable,
        turned: Callable,
        between: Callable,
        armed: Place | None = None,
        bodies: Sequence[tuple[int, ...]] = (),
        ends_at_jams: bool = False,
    ):
        """armed: numbers (n) of points that are apart and watched, where impacts are located.

        bodies: for each point those that come and go and that it needs, places in the array `present`.
        """
        self.stage, self.moved, self.turned, self.between = stage, moved, turned, between
        self.armed, self.bodies, self.ends_at_jams = armed, bodies, ends_at_jams
        self.delassus = DelassusCalls(stage, mechanics)
        self.n, self.block = mechanics.n, mechanics.block
        size = self.n * self.block
        one = ("touching", "residual", "strike")
        sizes = {"b": size, "share": size, "change": size, "toward": 2 * self.n, "coefficients": 3 * self.n}
        numbers = ("soft", "approach", "free", "yielding")
        sizes |= dict.fromkeys(numbers, self.n) | dict.fromkeys(("v", "before"), mechanics.model.nv)
        for name, count in (sizes | dict.fromkeys(one, 1)).items():
            stage.array(PREFIX + name, count)

    def calls(self, q: str, v: str, before: str, landed: str, after: str) -> list[Item]:
        """From arrays q, v after the free motion to q⁺ in `landed` and v⁺ in `after`; before: v at its start."""
        d, call = self.delassus, self.stage.call
        gap, f, left, force, torques = map(following, named("gap", "f", "left", "force", "tau"))
        free = PREFIX + "free"
        for name in (f, left, gap, force, torques):
            self.stage.array(name, self.stage.sizes[name.removesuffix(".next")])
        self.stage.array(landed, self.stage.sizes[q])
        self.stage.array(after, self.stage.sizes[v])
        none, still = [0.0] * self.stage.sizes[f], [0.0] * self.stage.sizes[torques]
        stay = call(
            "stay", (q, v, free, PREFIX + "left"), (landed, after, gap, f, left, force, torques),
            lambda q, v, free, x: (q, v, free, none, x, none, still),
        )  # fmt: skip
        contact = [
            call("turn_back", ("q", before, q), (PREFIX + "before",), lambda q, v, to: (self.turned(q, v, to),)),
            *d.factor(q, v, PREFIX + "before", PREFIX + "v"),
            call("calm", (), (PREFIX + "strike",), lambda: ([-1.0],)),
            For("i", 0, self.n, (self._approach(),)),
            *d.matrix(),
            For("i", 0, self.n, (For("j", 0, self.n, (self._without_expected(),)),)),
            self._warm(f),
            *self._solve(f),
            For("i", 0, self.n, (self._jam(f),)),
            For("i", 0, self.n, (self._compare(f, force),)),
            *d.gather(PREFIX + "change"),
            d.to_joints(PREFIX + "dv"),
            self._change_velocity(v, after, left),
            For("i", 0, self.n, (self._share(f),)),
            *d.gather(PREFIX + "share"),
            d.to_joints(PREFIX + "dv"),
            *self._displace(q, before, landed, after),
            *Overlaps(d, self.moved, self.turned, landed, after, gap).calls(left),
            *self._watched(gap, f, free),
            *d.gather(force),
            d.to_torques(q, torques),
            self._fix(q, torques),
        ]
        fresh = call("no_jam", (), (WHY, self.stage.array(PREFIX + "number", 1)), lambda: ([0.0, 0.0], [0.0]))
        solved = [d.touch(q, free), self._close(CLOSED), stay, fresh, When(tuple(contact), PREFIX + "touching")]
        return [*solved, *tunnel_calls(d, "q", before, after, self.bodies)]

    def impact(self, q: str, v: str, event: str) -> list[Item]:
        """An impact at q where `event` is positive: v changes in place, p and lost are filled."""
        return ContactImpact(self.delassus, self._close, self._solve, self.bodies).calls(q, v, event)

    # ---- the problem

    def _close(self, near: float, event: str = "") -> Item:
        """Which points are on: gaps not larger than `near`, and those that are expected to push; whether some are."""
        gap = PREFIX + ("gap" if event else "free")
        waits = self.armed is not None and not event
        reads = [gap, *named("k", "force"), *([self.armed] if waits else [event] if event else [])]
        reads += ["present"] if any(self.bodies) else []

        def page(gap, k, expected, *others):
            on, some = [], -1.0
            for i, g in enumerate(gap):
                closed = ~(g > near)
                if not event:
                    closed = closed | (expected[self.block * i] > 0.0)
                if waits:
                    closed = closed & ~(others[0][i] > 0.5)
                if event:
                    closed = closed & (others[0][0] > 0.5) & ~(k[7 * i + 5] > 0.0)
                for body in self.bodies[i] if self.bodies else ():
                    closed = closed & (others[-1][body] > 0.5)
                on.append(where(closed, 1.0, 0.0))
                some = where(closed, 1.0, some)
            return on, [some]

        return self.stage.call("strike_at" if event else "closed", reads, named("on", "touching"), page)

    def _approach(self) -> Item:
        """b of a point: its velocity without impulses, with restitution or the force of a spring."""
        d = self.delassus

        def page(rows, moving, k, start, gap, on, last, strike, h, *velocities):
            V, before = velocities[: len(d.ways)], velocities[len(d.ways) :]
            u = [a - b for a, b in zip(d.along(rows, *V), moving, strict=True)]
            forced = u[0] - d.along(rows, *before)[0] + moving[0]  # by forces alone: a point that turns gains more
            e, resting, stiffness, damping = k[3:]
            closes = (start[0] > CLOSED) & ~(last[0] > 0.0)
            gained = 2.0 * (u[0] - (gap[0] - start[0]) / h[0])  # during the step, evenly
            left = where(closes, _share_left(u[0], gained, gap[0] / h[0]), 1.0)
            hit = u[0] - where(closes, left * forced, gained)
            leaves = e * hit + where(closes, hit - u[0], 0.0)  # where() subtracted: not fused in lanes, but alone
            bounce = where((hit < -resting) & (leaves < 0.0), leaves, 0.0)
            is_soft = stiffness > 0.0
            r = 1.0 / where(is_soft, h[0] * (h[0] * stiffness + damping), 1.0)
            spring = where(is_soft, r * (h[0] * (stiffness * start[0])), bounce)
            rests = _at_most_one(gap[0] / h[0] / where(u[0] < 0.0, u[0], -1.0))
            share = where(is_soft, 0.5, where(closes, where(bounce < 0.0, left, rests), -1.0))
            later = where(closes & (on[0] > 0.5) & (strike[0] < share), share, strike[0])
            b, soft = [u[0] + spring, *u[1:]], where(is_soft, r, 0.0)
            return b, [share], [soft], [0.0, 0.0], list(k[:3]), [0.0], [later]

        gaps = [Block(PREFIX + name, 1, (("i", 1),)) for name in ("gap", "free")]
        of_points, strike = [d.of_point(n) for n in ("rows", "moving", "k")], PREFIX + "strike"
        reads: list[Place] = [*of_points, *gaps, d.of_point("on"), self._pushed(), strike, "h"]
        reads += [d.of_link(name, w) for name in ("V", "V.before") for w in range(len(d.ways))]
        names = ("b", "approach", "soft", "toward", "coefficients", "yielding")
        writes: list[Place] = [*(d.of_point(n) for n in names), strike]
        return self.stage.call("approach", reads, writes, page)

    def _pushed(self) -> Block:
        """The normal impulse of point i in the last step: one that pushed was closed at its end."""
        return Block(PREFIX + "f", 1, (("i", self.block),))

    def _warm(self, f: str) -> Item:
        """The impulses of the last step, where points are on."""

        def page(last, on):
            return (
                [where(on[i] > 0.5, last[self.block * i + d], 0.0) for i in range(self.n) for d in range(self.block)],
            )

        return self.stage.call("warm", named("f", "on"), (f,), page)

    def _solve(self, f: str) -> list[Item]:
        """The impulses, from those that f has."""
        names = ("W", "b", "on", "coefficients", "toward", "soft", "residual")
        return solver_calls(self.stage, self.n, self.block, {n: PREFIX + n for n in names} | {"f": f})

    def _without_expected(self) -> Item:
        """b of point i without what the expected force of point j has changed; the sum of W_nn over all j that are on.

        W also has columns of points that are on in other runs alone.
        """
        own = self.delassus.of_point("b"), self.delassus.of_point("yielding")

        def page(W, force, on, h, b, sum_):
            B = self.block
            less = [h[0] * total([W[B * d + c] * force[c] for c in range(B)]) for d in range(B)]
            counted = where(on[0] > 0.5, absolute(W[0]), 0.0)
            return [x - y for x, y in zip(b, less, strict=True)], [sum_[0] + counted]

        others = self.delassus.of_point("force", "j"), self.delassus.of_point("on", "j")
        reads = (self.delassus.of_pair("i", "j"), *others, "h", *own)
        return self.stage.call("without_expected", reads, own, page)

    # ---- what it changes

    def _compare(self, f: str, force: str) -> Item:
        """The impulse beyond the expected one; the force to expect next of a point that was closed before the step.

        After a step in which something strikes or jams, the force expected before it is expected again: impulses do not
        last.
        """

        def page(f, start, last, expected, strike, why, h):
            stays = (f[0] > 0.0) & ((start[0] <= CLOSED) | (last[0] > 0.0))
            change = [x - h[0] * y for x, y in zip(f, expected, strict=True)]
            calm = (strike[0] < 0.0) & ~(why[1] > 0.5)
            lasts = [where(calm, x / h[0], y) for x, y in zip(f, expected, strict=True)]
            return change, [where(stays, x, 0.0) for x in lasts]

        d, places = self.delassus, ((PREFIX + "gap", 1), (f, self.block), (force, self.block))
        start, own, then = (Block(name, size, (("i", size),)) for name, size in places)
        reads = (own, start, self._pushed(), d.of_point("force"), PREFIX + "strike", WHY, "h")
        return self.stage.call("compare", reads, (d.of_point("change"), then), page)

    def _watched(self, gap: str, f: str, free: str) -> list[Item]:
        """Where impacts are located: gaps after the step, in `free`. A point that pushes is closed, if it hovers."""

        def page(gap, f, free, touching):
            pushes = [f[self.block * i] > 0.0 for i in range(self.n)]
            seen = [where(p & (g > 0.0), 0.0, g) for p, g in zip(pushes, gap, strict=True)]
            return ([where(touching[0] > 0.0, a, b) for a, b in zip(seen, free, strict=True)],)

        reads = (gap, f, free, PREFIX + "touching")
        return [] if self.armed is None else [self.stage.call("watched", reads, (free,), page)]

    def _jam(self, f: str) -> Item:
        """The number of a point that jams, plus 1, in `why`."""
        d = self.delassus

        def page(W, b, f, k, start, on, number, why):
            size = sqrt(b[1] * b[1] + b[2] * b[2])
            slips = size > SLOW
            slip = [x / where(slips, size, 1.0) for x in b[1:3]]
            rests = (on[0] > 0.5) & (start[0] <= CLOSED) & (f[0] > 0.0)
            return ([why[0], where(rests & slips & jam(W, k[0], slip), number[0] + 1.0, why[1])], [number[0] + 1.0])

        number = self.stage.array(PREFIX + "number", 1)
        start, impulse = Block(PREFIX + "gap", 1, (("i", 1),)), Block(f, self.block, (("i", self.block),))
        reads = (d.of_pair("i", "i"), d.of_point("b"), impulse, d.of_point("k"), start, d.of_point("on"), number)
        return self.stage.call("jam", (*reads, WHY), (WHY, number), page)

    def _change_velocity(self, v: str, after: str, left: str) -> Item:
        """v⁺; a step that is not solved fails."""

        def page(free, closed, dv, touching, residual, failed, left, why):
            touches, jams = touching[0] > 0.0, why[1] > 0.5
            worst = where(touches, residual[0], 0.0)
            fails = ~(worst < UNSOLVED) & (failed[0] > 0.0)
            fails = fails | (jams & touches) if self.ends_at_jams else fails
            v = [where(touches, a + b, c) for a, b, c in zip(closed, dv, free, strict=True)]
            v[0] = where(fails, math.nan, v[0])
            counted = where(jams & touches, left[2] + 1.0, left[2])
            return v, [where(left[0] < worst, worst, left[0]), left[1], counted], [worst, why[1]]

        reads = (v, *named("v", "dv", "touching", "residual"), FAILED, left, WHY)
        return self.stage.call("change", reads, (after, left, WHY), page)

    def _share(self, f: str) -> Item:
        """w f h of a point, of the impulse beyond the expected one; a point that stays closed comes down to gap 0."""

        def page(share, strike, start, f, change, yielding, h):
            stays = share[0] < 0.0
            share = where(stays, where(strike[0] < 0.0, 0.5, strike[0]), share[0])
            hovers = stays & (start[0] > 0.0) & (f[0] > 0.0)
            down = where(hovers, start[0], 0.0) / where(hovers, yielding[0], 1.0)
            out = [h[0] * (share * x) for x in change]
            return ([out[0] - down, *out[1:]],)

        d = self.delassus
        start, pushes = (Block(name, 1, (("i", size),)) for name, size in ((PREFIX + "gap", 1), (f, self.block)))
        reads = (
            d.of_point("approach"),
            PREFIX + "strike",
            start,
            pushes,
            d.of_point("change"),
            d.of_point("yielding"),
            "h",
        )
        return self.stage.call("share", reads, (d.of_point("share"),), page)

    def _displace(self, q: str, before: str, landed: str, after: str) -> list[Item]:
        """q⁺, by the mean of the velocities before and after, so that what rests does not creep.

        v⁺ of free bodies, which is in axes that turn with them, keeps its direction in the world.
        """

        def page(start, before, q, v, dq, h, touching):
            end = [a + (2.0 / h[0]) * b for a, b in zip(v, dq, strict=True)]
            there = self.between(start, before, q, end, h[0])
            return ([where(touching[0] > 0.0, a, b) for a, b in zip(there, q, strict=True)],)

        def turn(q, v, to, touching):
            return ([where(touching[0] > 0.0, a, b) for a, b in zip(self.turned(q, v, to), v, strict=True)],)

        call, touching = self.stage.call, PREFIX + "touching"
        move = call("displace", ("q", before, q, *named("v", "dv"), "h", touching), (landed,), page)
        return [move, call("turn", (q, after, landed, touching), (after,), turn)]

    def _fix(self, q: str, torques: str) -> Item:
        """Torques on free bodies, in axes that turn with them, as at neutral coordinates: fixed in the world.

        A driven joint has none: what acts on it is its acceleration.
        """
        model = self.delassus.mechanics.model
        neutral = list(model.neutral())
        driven = {k for j in model.joints if j.driven for k in range(model.nv)[model.v_slice(j.name)]}

        def page(q, tau):
            return ([0.0 if k in driven else x for k, x in enumerate(self.turned(q, tau, neutral))],)

        return self.stage.call("fix", (q, torques), (torques,), page)


def _share_left(u: Any, gained: Any, rate: Any) -> Any:
    """The share of a step that is left when a gap closes, from the velocity at its end and what it gained in the step.

    u s − ½ gained s² = gap / h = rate, which is not positive; 0 ≤ s ≤ 1.
    """
    square = u * u - 2.0 * (gained * rate)
    root = sqrt(where(square > 0.0, square, 0.0))
    down = where(u < 0.0, u, 0.0) - root
    return _at_most_one(where(down < 0.0, 2.0 * rate / where(down < 0.0, down, 1.0), 0.0))


def _at_most_one(share: Any) -> Any:
    return where(share > 1.0, 1.0, where(share > 0.0, share, 0.0))
