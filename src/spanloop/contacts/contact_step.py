"""The contacts of a step, after the free motion of an integrator: one impulse solve, and what it changes.

    u = J v + W f,   0 ≤ u_n + e u_n⁻ ⊥ f_n ≥ 0,   friction in its cone, of maximum dissipation
    v⁺ = v + Y Jᵀ f,   q⁺ = q ⊕ h Y Jᵀ (w f)

v, q: after the free motion, loops closed in v. Points whose gap is not larger than NEAR at q are on. A point that was
apart closes in the step: where the parabola through its gaps before and after, with its velocity after, is zero. u⁻ is
its velocity there; it leaves with −e u⁻ and what free motion adds in the rest of the step, so that a ball in free fall
bounces exactly. w is the share of the step for which an impulse displaces: of a point that bounces, what is left of the
step; of one that comes to rest, gap / (h u_n), which lands it; of one that was closed, ½ of what it had in the last
step, as of a constant force, so that resting and sliding are exact, and for the rest that of what strikes elsewhere.
Gaps that are negative after that are taken back by the least impulses along the normals, which change no velocity.

A contact with a stiffness k and a damping c has r = 1/(h² k + h c) added to W_nn and r h k gap⁻ to u_n: a spring and a
damper, taken implicitly. gap⁻: at the start of the step.

Arrays of the state, beside those of delassus.py and solver.py: f (n · block), gap (n), left (3): the largest residual
[m/s], the largest penetration at the end of a step [m], the number of steps with a jam. k (n · 7) are coefficients,
in the order of COEFFICIENTS. A step without any point that is on changes nothing, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spanloop.algorithms.contact.points import ContactPoints
from spanloop.compiler.lower import Block, For, Repeat, Stage, When
from spanloop.compiler.lower.schedule import Item, following
from spanloop.contacts.delassus import PREFIX, DelassusCalls, named
from spanloop.contacts.mechanics import ContactMechanics
from spanloop.contacts.solver import solver_calls
from spanloop.math.scalar import absolute, sqrt, where

COEFFICIENTS = ("friction", "torsion", "rolling", "restitution", "resting", "stiffness", "damping")  # of a point
DEEP = 1e-10  # m: a penetration that is taken back
NEAR = 1e-9  # m: a point with a smaller gap is on: bodies that fall together touch as they did
PUSHED = 1e-14  # m: where taking back ends
SWEEPS = 200  # of taking back, at most
UNSOLVED = 1e-9  # m/s: a step whose contacts are not solved to this fails


def coefficients(points: ContactPoints) -> np.ndarray:
    """The coefficients (n · 7) of all points; a stiffness of 0 stands for a hard contact."""
    three = np.reshape(points.coefficients, (points.n, 3))
    soft = [0.0 if k is None else k for k in points.stiffness]
    return np.column_stack([three, points.restitution, points.resting, soft, points.damping]).ravel()


def state_sizes(points: ContactPoints) -> dict[str, int]:
    """What a run with contacts carries from step to step."""
    return dict(zip(named("f", "gap", "left"), (points.n * points.B, points.n, 3), strict=True))


class ContactStep:
    """Makes the calls. moved(q, delta) is q ⊕ delta, turned(q, v, to) is v of the same motion at coordinates `to`."""

    def __init__(self, stage: Stage, mechanics: ContactMechanics, moved: Callable, turned: Callable):
        self.stage, self.moved, self.turned = stage, moved, turned
        self.delassus = DelassusCalls(stage, mechanics)
        self.n, self.block = mechanics.n, mechanics.block
        size = self.n * self.block
        one = ("touching", "residual", "deep", "left.push", "sum", "strike")
        sizes = {"b": size, "share": size, "soft": self.n, "toward": 2 * self.n, "coefficients": 3 * self.n}
        sizes |= {"approach": self.n, "here": self.n, "push": self.n, "v": mechanics.model.nv}
        for name, count in (sizes | dict.fromkeys(one, 1)).items():
            stage.array(PREFIX + name, count)

    def calls(self, q: str, v: str, before: str, landed: str, after: str) -> list[Item]:
        """From arrays q, v after the free motion to q⁺ in `landed` and v⁺ in `after`; before: v at its start."""
        d, call = self.delassus, self.stage.call
        gap, on, touching = named("gap", "on", "touching")
        gap = following(gap)
        f, left = map(following, named("f", "left"))
        for name in (f, left, gap):
            self.stage.array(name, self.stage.sizes[name.removesuffix(".next")])
        self.stage.array(landed, self.stage.sizes[q])
        self.stage.array(after, self.stage.sizes[v])
        n_f = self.stage.sizes[f]
        stay = call("stay", (q, v, PREFIX + "left"), (landed, after, f, left), lambda q, v, x: (q, v, [0.0] * n_f, x))
        contact = [
            *d.factor(q, v, before, PREFIX + "v"),
            call("calm", (), (PREFIX + "strike",), lambda: ([-1.0],)),
            For("i", 0, self.n, (self._approach(gap),)),
            *d.matrix(),
            *self._solve(f),
            *d.gather(f),
            d.to_joints(PREFIX + "dv"),
            self._change_velocity(v, after, left),
            For("i", 0, self.n, (self._share(f),)),
            *d.gather(PREFIX + "share"),
            d.to_joints(PREFIX + "dv"),
            *self._displace(q, landed, after),
            d.gaps(landed, PREFIX + "here"),
            self._keep_gaps(gap),
            When((*self._take_back(), *self._retreat(landed, gap)), PREFIX + "deep"),
            self._count(gap, left),
        ]
        return [
            d.touch(q, gap),
            call("closed", (gap,), (on, touching), self._closed),
            stay,
            When(tuple(contact), touching),
        ]

    # ---- the problem

    def _closed(self, gap: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        on = [where(g > NEAR, 0.0, 1.0) for g in gap]
        least = gap[0]
        for g in gap[1:]:
            least = where(g < least, g, least)
        return on, [where(least > NEAR, -1.0, 1.0)]

    def _approach(self, gap: str) -> Item:
        """b of a point: its velocity without impulses, with restitution or the force of a spring."""
        d = self.delassus
        ways = range(len(d.ways))

        def page(rows, moving, k, start, gap, on, strike, h, *V):
            u = [a - b for a, b in zip(d.along(rows, *V), moving, strict=True)]
            e, resting, stiffness, damping = k[3:]
            mean, closes = (gap[0] - start[0]) / h[0], start[0] > NEAR
            gained = 2.0 * (u[0] - mean)  # during the step, evenly
            left = where(closes, _share_left(u[0], gained, gap[0] / h[0]), 1.0)
            hit = u[0] - left * gained
            leaves = e * hit - where(closes, left * gained, 0.0)
            bounce = where((hit < -resting) & (leaves < 0.0), leaves, 0.0)
            is_soft = stiffness > 0.0
            r = 1.0 / where(is_soft, h[0] * (h[0] * stiffness + damping), 1.0)
            spring = where(is_soft, r * (h[0] * (stiffness * start[0])), bounce)
            rests = _at_most_one(gap[0] / h[0] / where(u[0] < 0.0, u[0], -1.0))
            share = where(is_soft, 0.5, where(closes, where(bounce < 0.0, left, rests), -1.0))
            strikes = closes & (on[0] > 0.5) & (strike[0] < share)
            strike = where(strikes, share, strike[0])
            return [u[0] + spring, *u[1:]], [share], [where(is_soft, r, 0.0)], [0.0, 0.0], list(k[:3]), [strike]

        gaps = [Block(name, 1, (("i", 1),)) for name in (PREFIX + "gap", gap)]
        strike = PREFIX + "strike"
        reads = [d.of_point("rows"), d.of_point("moving"), d.of_point("k"), *gaps, d.of_point("on"), strike, "h"]
        reads += [d.of_link("V", w) for w in ways]
        writes = [*(d.of_point(n) for n in ("b", "approach", "soft", "toward", "coefficients")), strike]
        return self.stage.call("approach", reads, writes, page)

    def _solve(self, f: str) -> list[Item]:
        """The impulses, from those of the last step on."""

        def page(last, on):
            return (
                [where(on[i] > 0.5, last[self.block * i + d], 0.0) for i in range(self.n) for d in range(self.block)],
            )

        warm = self.stage.call("warm", named("f", "on"), (f,), page)
        names = dict(zip(("W", "b", "on", "coefficients", "toward", "soft", "residual"),
                         named("W", "b", "on", "coefficients", "toward", "soft", "residual"), strict=True))  # fmt: skip
        return [warm, *solver_calls(self.stage, self.n, self.block, {**names, "f": f})]

    # ---- what it changes

    def _change_velocity(self, v: str, after: str, left: str) -> Item:
        """v⁺; a step that is not solved fails."""

        def page(free, closed, dv, touching, residual, left):
            solved = residual[0] < UNSOLVED
            v = [where(touching[0] > 0.0, a + b, c) for a, b, c in zip(closed, dv, free, strict=True)]
            v[0] = where(solved, v[0], where(touching[0] > 0.0, math.nan, v[0]))
            worst = where(touching[0] > 0.0, residual[0], 0.0)
            return v, [where(left[0] < worst, worst, left[0]), *left[1:]]

        reads = (v, *named("v", "dv", "touching", "residual"), left)
        return self.stage.call("change", reads, (after, left), page)

    def _share(self, f: str) -> Item:
        """w f h of a point; of one that was closed by its share of forces and its share of impulses."""

        def page(share, strike, last, f, h):
            steady = where(last[0] < f[0], last[0], f[0]) / where(f[0] > 0.0, f[0], 1.0)
            reacts = where(strike[0] < 0.0, 0.5, strike[0])
            w = where(share[0] < 0.0, reacts + steady * (0.5 - reacts), share[0])
            return ([h[0] * (w * x) for x in f],)

        last, impulse = (Block(name, self.block, (("i", self.block),)) for name in (PREFIX + "f", f))
        reads = (self.delassus.of_point("approach"), PREFIX + "strike", last, impulse, "h")
        return self.stage.call("share", reads, (self.delassus.of_point("share"),), page)

    def _displace(self, q: str, landed: str, after: str) -> list[Item]:
        """q⁺; v⁺ of free bodies, which is in axes that turn with them, keeps its direction in the world."""

        def page(q, dq, touching):
            return ([where(touching[0] > 0.0, a, b) for a, b in zip(self.moved(q, dq), q, strict=True)],)

        def turn(q, v, to, touching):
            return ([where(touching[0] > 0.0, a, b) for a, b in zip(self.turned(q, v, to), v, strict=True)],)

        call, touching = self.stage.call, PREFIX + "touching"
        move = call("displace", (q, PREFIX + "dv", touching), (landed,), page)
        return [move, call("turn", (q, after, landed, touching), (after,), turn)]

    def _keep_gaps(self, gap: str) -> Item:
        """Gaps after the step, of runs that touch; and whether one has to be taken back."""

        def page(here, gap, on, touching, k):
            now = [where(touching[0] > 0.0, a, b) for a, b in zip(here, gap, strict=True)]
            deep: Any = -1.0
            for i in range(self.n):
                hard = where(k[7 * i + 5] > 0.0, 0.0, on[i])
                deep = where((hard > 0.5) & (here[i] < -DEEP) & (touching[0] > 0.0), 1.0, deep)
            return now, [deep]

        reads = (*named("here"), gap, *named("on", "touching", "k"))
        return self.stage.call("keep_gaps", reads, (gap, PREFIX + "deep"), page)

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
        worst = self.stage.array(PREFIX + "worst", 1)
        reads = (d.of_pair("i", "i", 1), own, sum_, Block(on, 1, (("i", 1),)), d.of_point("k"), turn, worst)
        sweep = For("i", 0, n, (begin, For("j", 0, n, (add,)), call("update_row", reads, (own, worst), update)))
        fresh = call("sweep_begins", (), (worst,), lambda: ([0.0],))

        def judge(worst, busy):
            return ([where((busy[0] > 0.0) & (worst[0] > PUSHED), 1.0, -1.0)],)

        judged = call("sweep_ends", (worst, turn), (turn,), judge)
        busy = call("push_begins", (deep,), (turn,), lambda deep: (list(deep),))

        def along_normals(x):
            return ([y for p in x for y in (p, *([0.0] * (self.block - 1)))],)

        spread = call("along_normals", (push,), (PREFIX + "share",), along_normals)
        return [start, busy, Repeat((fresh, sweep, judged), turn, SWEEPS), spread, *d.gather(PREFIX + "share")]

    def _retreat(self, landed: str, gap: str) -> list[Item]:
        """q⁺ after what is taken back, and its gaps."""

        def page(q, dq, deep):
            return ([where(deep[0] > 0.0, a, b) for a, b in zip(self.moved(q, dq), q, strict=True)],)

        move = self.stage.call("retreat", (landed, *named("dv", "deep")), (landed,), page)
        d = self.delassus
        return [d.to_joints(PREFIX + "dv"), move, d.gaps(landed, PREFIX + "here"), self._keep_gaps(gap)]

    def _count(self, gap: str, left: str) -> Item:
        """The largest penetration so far of hard contacts."""

        def page(gap, on, k, touching, left):
            worst = left[1]
            for i in range(self.n):
                depth = where((on[i] > 0.5) & ~(k[7 * i + 5] > 0.0) & (touching[0] > 0.0), -gap[i], 0.0)
                worst = where(worst < depth, depth, worst)
            return ([left[0], worst, left[2]],)

        return self.stage.call("count", (gap, *named("on", "k", "touching"), left), (left,), page)


def _share_left(u: Any, gained: Any, rate: Any) -> Any:
    """The share of a step that is left when a gap closes, from the velocity at its end and what it gained in the step.

    u s − ½ gained s² = gap / h = rate, which is not positive; 0 ≤ s ≤ 1.
    """
    square = u * u - 2.0 * (gained * rate)
    root = sqrt(where(square > 0.0, square, 0.0))
    down = where(u < 0.0, u, 0.0) - root
    share = where(down < 0.0, 2.0 * rate / where(down < 0.0, down, 1.0), 0.0)
    return _at_most_one(share)


def _at_most_one(share: Any) -> Any:
    return where(share > 1.0, 1.0, where(share > 0.0, share, 0.0))
