"""The impulse solve of contact points with circular friction cones, as loops over blocks of arrays.

    u = W f + b,   f = P(f − ρ u)    (algorithms/contact/friction_cone.py)

by Newton's method on Φ = f − P(f − ρ u), which is semismooth: the derivative A = 1 − D + D ρ (W + ε) is eliminated in
blocks without pivoting. ε stands in A alone: redundant points are no obstacle, their impulses change by the least, and
Φ is that of the true W. A step that does not lower |Φ/ρ| is halved, three times at most. Where Newton's method has not
ended after STEPS steps, Gauss-Seidel sweeps move on from there, more of them from round to round, and it begins again
with another ρ, every second time without halving. docs/decisions/0036 has the reasons and the figures.

It ends when no entry of Φ/ρ, the natural residual, is above the rounding of W f + b, or all are below TOLERANCE, or
four times this rounding, and the last step was not worth another. A run that has ended does not change. The arrays
are those of solver_arrays.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanloop.algorithms.contact.block_elimination import more_applied
from spanloop.algorithms.contact.friction_cone import (
    diagonal_scales,
    groups,
    largest,
    local_step,
    projection_and_derivative,
)
from spanloop.compiler.lower import For, Repeat, Stage, When
from spanloop.compiler.lower.schedule import Item
from spanloop.contacts.solver.newton_step import newton_step
from spanloop.contacts.solver.solver_arrays import PREFIX, SolverArrays
from spanloop.math.scalar import absolute, sqrt, where

TOLERANCE = 5e-13  # m/s: half of what is promised, 1e-12, which another order of sums may see
FINE = 1e-15  # m/s: where steps end even if the next one were better
STALLED = 0.0625  # share of the merit that a step leaves which is not worth another
REGULAR = 0.5  # ε beside the mean diagonal of W and the root of the numbers' rounding: 7e-9 in float64
STEPS, GROWTH = 10, 2  # steps of Newton's method in the first round, and how many more in each that follows
ROUNDS = 50
PATIENT = 8  # rounds after which sweeps go on where sweeps ended, not where Newton's method did
FACTORS = (1.0, 0.1, 10.0)  # of ρ, round after round
FIRST_SWEEPS, MOST_SWEEPS = 4.0, 512.0
SHORTEST = 0.125  # part of a step
TURNS = 4 * (STEPS + GROWTH * ROUNDS) * ROUNDS  # bound of the loop; rounds end it
USUAL = 3  # turns of a solve that begins with the impulses of the last step
FINITE = 1e30  # of the merit
FAILED = PREFIX + "failed"  # an array of one number: 1 where no answer was found, -1 elsewhere
COUNTS = ("steps", "swept")  # of Newton's method and of sweeps, in one solve
_START = {"merit": 0.0, "near": -1.0, "part": 1.0, "step": 0.0, "round": 0.0, "factor": FACTORS[0], "fresh": 1.0,
          "halving": 1.0, "left": 1.0, "newton": -1.0, "sweep": -1.0, "sweeps": FIRST_SWEEPS, "steps": 0.0,
          "swept": 0.0, "failed": -1.0}  # fmt: skip
_ONES = ("merit.trial", "worst", "size", "sweeping", "scale", "scale.moments", "count", "root", "rounding", "unit")


def solver_calls(stage: Stage, n: int, block: int, names: Mapping[str, str]) -> list[Item]:
    """The calls that solve n points; names: of the arrays W, b, on, soft, coefficients, toward, f, residual."""
    return _Solver(SolverArrays(stage, n, block, names)).calls()


class _Solver:
    """Makes the calls."""

    def __init__(self, arrays: SolverArrays):
        self.x, self.n, self.block = arrays, arrays.n, arrays.block
        arrays.declare((*_START, *_ONES))

    def calls(self) -> list[Item]:
        n = self.n
        turn: list[Item] = [
            self.x.call("begin_turn", (), ("merit.trial", "worst", "size"), lambda: ([0.0], [0.0], [0.0])),
            For("i", 0, n, (When((*self._velocity("trial"), self._measure()), self.x.of("on", "i")),)),
            self._decide(),
            For("i", 0, n, (self._accept(),)),
            When(tuple(newton_step(self.x)), PREFIX + "newton"),
            When(tuple(self._sweeps()), PREFIX + "sweep"),
            For("i", 0, n, (self._next_trial(),)),
        ]
        return [*self._prepare(), Repeat(tuple(turn), PREFIX + "left", TURNS, usual=USUAL)]

    # ---- before the first turn

    def _prepare(self) -> list[Item]:
        """Scales of points, the rounding of numbers, and the guess as first trial."""
        block, of = self.block, groups(self.block)
        sums = ("scale", "scale.moments", "count", "root", "rounding")
        begin = self.x.call(
            "begin", (), (*sums, "unit"), lambda: ([0.0], [0.0], [0.0], [0.0], [0.0], [1.0])
        )  # fmt: skip

        def point(W, soft, on, b, f, scale, moments, count, root, rounding):
            is_on = on[0] > 0.5
            w = [where(is_on, x, 1.0) for x in diagonal_scales(W, soft[0], block)]
            roots = [sqrt(x) for x in w]
            force = (w[0] + 2.0 * w[1]) / 3.0
            moment = 0.0 if block == 3 else (w[2] + 2.0 * w[3]) / 3.0
            sums = [s[0] + where(is_on, x, 0.0) for s, x in ((scale, force), (moments, moment), (count, 1.0))]
            tallest = where(is_on, largest(roots[0], roots[1]), 0.0)
            b_size = where(is_on, largest(*(x * (roots[0] / roots[g]) for x, g in zip(b, of, strict=True))), 0.0)
            start = [where(is_on, x, 0.0) for x in f]
            return (
                w, roots, start, start, [0.0] * block, [0.0] * block, [-1.0],
                *([x] for x in sums), [largest(root[0], tallest)], [largest(rounding[0], b_size)],
            )  # fmt: skip

        reads = (self.x.pair("W", "i", "i"), *self.x.each("i", "soft", "on", "b", "f"), *sums)
        writes = (*self.x.each("i", "w", "root.w", "f", "trial", "d", "phi", "presses"), *sums)

        def start(scale, moments, count, rounding, unit):
            many = where(count[0] > 0.5, count[0], 1.0)
            eps = absolute((unit[0] * (4.0 / 3.0) - unit[0]) * 3.0 - unit[0])  # 2⁻⁵² or 2⁻²³: 4/3 is rounded
            regular = REGULAR * sqrt(eps) / many
            eps = 4.0 * eps
            return (
                [regular * scale[0]], [regular * moments[0]], [eps * rounding[0]], [eps],
                *([x] for x in _START.values()), [FINITE],
            )  # fmt: skip

        reads_start = ("scale", "scale.moments", "count", "rounding", "unit")
        writes_start = ("scale", "scale.moments", "rounding", "unit", *_START, self.x.single("residual"))
        return [
            begin,
            For("i", 0, self.n, (self.x.call("point", reads, writes, point),)),
            self.x.call("start", reads_start, writes_start, start),
        ]

    # ---- the residual

    def _velocity(self, impulses: str) -> list[Item]:
        """u = b + W f of point i, without its softness."""
        block = self.block
        begin = self.x.call("velocity", (self.x.of("b", "i"),), ("u",), lambda b: (list(b),))
        reads = ("u", self.x.pair("W", "i", "j"), self.x.of(impulses, "j"))
        add = self.x.call("add_velocity", reads, ("u",), lambda u, W, f: (more_applied(u, W, f, block),))
        return [begin, For("j", 0, self.n, (When((add,), self.x.of("on", "j")),))]

    def _measure(self) -> Item:
        """Φ of point i at the trial, the derivative of P, and what it adds to merit and residual."""
        block, of = self.block, groups(self.block)

        def page(u, f, k, toward, soft, on, w, root, factor, merit, worst, size):
            is_on, c = on[0] > 0.5, factor[0]
            rho = [c / x for x in w]
            u = [u[0] + soft[0] * f[0], *u[1:]]
            a, *s = (f[e] - rho[of[e]] * u[e] for e in range(block))
            P, M = projection_and_derivative(a, s, k, toward, rho, block)
            phi = [where(is_on, x - y, 0.0) for x, y in zip(f, P, strict=True)]
            left = [x * (root[0] * root[g] if g > 1 else w[g]) for x, g in zip(phi, of, strict=True)]
            scale = where(c < 1.0, 1.0 / c, 1.0)  # Φ/ρ falls, Φ rises with ρ: this bounds Φ/ρ at a factor of 1
            added = sum(x * x for x in left)
            most = scale * largest(*left)
            sizes = sum(absolute(x) * root[g] for x, g in zip(f, of, strict=True))
            return (
                phi, [where(is_on, x, 0.0) for x in M], [where(is_on & (a > 0.0), 1.0, -1.0)],
                [merit[0] + added / (c * c)], [where(most <= worst[0], worst[0], most)],
                [size[0] + where(is_on, sizes, 0.0)],
            )  # fmt: skip

        points = self.x.each("i", "trial", "coefficients", "toward", "soft", "on", "w", "root.w")
        reads = ("u", *points, "factor", "merit.trial", "worst", "size")
        writes = (*self.x.each("i", "phi", "M", "presses"), "merit.trial", "worst", "size")
        return self.x.call("measure", reads, writes, page)

    def _decide(self) -> Item:
        """Whether the trial is the answer, is accepted, or its step is halved; and what comes next."""

        def page(trial, worst, size, merit, near, part, step, round_, fresh, halving, factor, root, rounding, unit,
                 left, residual, count, failed):  # fmt: skip
            goes_on, is_fresh = left[0] > 0.0, fresh[0] > 0.0
            bound = unit[0] * (root[0] * size[0]) + rounding[0]
            is_finite = trial[0] < FINITE
            is_fine = is_finite & (worst[0] <= where(0.25 * bound > FINE, 0.25 * bound, FINE))
            is_near = is_finite & (worst[0] <= where(bound > TOLERANCE, bound, TOLERANCE))
            was_near = near[0] > 0.0  # f, from which the trial came
            is_stalled = ~is_fresh & ~(trial[0] < STALLED * merit[0])
            ends = is_fine | (is_stalled & (was_near | is_near))
            last_chance = is_fresh & ((round_[0] > ROUNDS - 0.5) | ~is_finite)
            runs = goes_on & ~ends & ~last_chance
            halves = (halving[0] > 0.0) & (part[0] > SHORTEST) & ~is_fresh
            is_less = trial[0] < merit[0]
            goes_there = is_finite & (~halves | is_less)
            exhausted = goes_there & (step[0] > (STEPS - 0.5) + GROWTH * round_[0])
            lost = ~is_finite & ~(part[0] > SHORTEST)
            newton, sweep = runs & goes_there & ~exhausted, runs & (exhausted | lost)
            accepted = goes_on & (
                (runs & goes_there) | (ends & (is_fine | is_less | ~was_near)) | (last_chance & is_finite)
            )
            return (
                [where(runs, 1.0, -1.0)], [where(newton, 1.0, -1.0)], [where(sweep, 1.0, -1.0)],
                [where(accepted, 1.0, -1.0)], [where(newton, where(is_near, 1.0, -1.0), near[0])],
                [where(newton, trial[0], merit[0])],
                [where(newton | sweep, 1.0, 0.5 * part[0])],
                [where(newton, step[0] + 1.0, where(sweep, 0.0, step[0]))],
                [where(sweep, round_[0] + 1.0, round_[0])],
                [where(sweep, _following(factor[0]), factor[0])],
                [where(sweep, -halving[0], halving[0])],
                [where(accepted, worst[0], residual[0])],
                [where(newton, count[0] + 1.0, count[0])],
                [where(goes_on & last_chance & ~ends & ~is_near, 1.0, failed[0])],
            )  # fmt: skip

        reads = ("merit.trial", "worst", "size", "merit", "near", "part", "step", "round", "fresh", "halving", "factor",
                 "root", "rounding", "unit", "left", self.x.single("residual"), "steps", "failed")  # fmt: skip
        writes = ("left", "newton", "sweep", "fresh", "near", "merit", "part", "step", "round", "factor", "halving",
                  self.x.single("residual"), "steps", "failed")  # fmt: skip
        return self.x.call("decide", reads, writes, page)

    def _accept(self) -> Item:
        """f becomes the trial where it is accepted (`fresh`, until the next trial)."""

        def page(f, trial, accepted):
            return ([where(accepted[0] > 0.0, y, x) for x, y in zip(f, trial, strict=True)],)

        return self.x.call(
            "accept", (self.x.of("f", "i"), self.x.of("trial", "i"), "fresh"), (self.x.of("f", "i"),), page
        )

    # ---- sweeps, and the next trial

    def _sweeps(self) -> list[Item]:
        """Gauss-Seidel sweeps on f, and twice as many the next time."""
        block = self.block

        def start(sweep, sweeps, swept):
            most = where(2.0 * sweeps[0] < MOST_SWEEPS, 2.0 * sweeps[0], MOST_SWEEPS)
            asked = sweep[0] > 0.0
            count = where(asked, swept[0] + sweeps[0], swept[0])
            return [where(asked, sweeps[0], -1.0)], [where(asked, most, sweeps[0])], [count]

        def local(W, u, f, k, toward, soft, on, w, left):
            moves = (left[0] > 0.0) & (on[0] > 0.5)
            u = [u[0] + soft[0] * f[0], *u[1:]]
            new = local_step(W, u, f, k, toward, w, block)
            return ([where(moves, x, y) for x, y in zip(new, f, strict=True)],)

        def back(f, base, sweep, round_):
            returns = (sweep[0] > 0.0) & (round_[0] > PATIENT + 0.5)
            return ([where(returns, y, x) for x, y in zip(f, base, strict=True)],)

        def keep(f, base, sweep):
            return ([where(sweep[0] > 0.0, x, y) for x, y in zip(f, base, strict=True)],)

        own, base = self.x.of("f", "i"), self.x.of("base", "i")
        back_call = self.x.call("back", (own, base, "sweep", "round"), (own,), back)
        keep_call = self.x.call("keep", (own, base, "sweep"), (base,), keep)
        points = self.x.each("i", "f", "coefficients", "toward", "soft", "on", "w")
        reads = (self.x.pair("W", "i", "i"), "u", *points, "sweeping")
        step = self.x.call("local", reads, (self.x.of("f", "i"),), local)
        sweep = For("i", 0, self.n, (When((*self._velocity("f"), step), self.x.of("on", "i")),))
        count = self.x.call("swept", ("sweeping",), ("sweeping",), lambda x: ([x[0] - 1.0],))
        begin = self.x.call("sweeps", ("sweep", "sweeps", "swept"), ("sweeping", "sweeps", "swept"), start)
        again = Repeat((sweep, count), PREFIX + "sweeping", int(MOST_SWEEPS), usual=1)
        return [begin, For("i", 0, self.n, (back_call,)), again, For("i", 0, self.n, (keep_call,))]

    def _next_trial(self) -> Item:
        """f + α d; f itself after sweeps, which is accepted as it is."""

        def page(f, d, trial, part, sweep, left):
            swept = sweep[0] > 0.0
            d = [where(swept, 0.0, x) for x in d]
            new = [x + part[0] * y for x, y in zip(f, d, strict=True)]
            return d, [where(left[0] > 0.0, x, y) for x, y in zip(new, trial, strict=True)], [where(swept, 1.0, -1.0)]

        d, trial = self.x.of("d", "i"), self.x.of("trial", "i")
        return self.x.call(
            "next_trial", (self.x.of("f", "i"), d, trial, "part", "sweep", "left"), (d, trial, "fresh"), page
        )


def _following(factor: Any) -> Any:
    """The factor of ρ of the next round."""
    return where(factor > 5.0, FACTORS[0], where(factor > 0.5, FACTORS[1], FACTORS[2]))
