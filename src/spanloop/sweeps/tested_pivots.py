"""Pivots that a program tests, because the mass matrix may be singular, or lose its digits, at their joints.

The pivot D of a degree of freedom (DoF) is what its diagonal entry of the mass matrix M keeps when all DoF outboard
give way. Accelerations have a relative error up to 1e-14 M/D, and 1e-13 M/D where M itself is factored. D is at
least what the link's own inertia contributes. Where that exceeds the tolerance times all that the joint can ever carry,
no state needs a test, and a kernel has none: so it is for ordinary bodies. At the other links (without mass, thin, or
light for what they carry) D must exceed the tolerance times M's entry, and the rounding in the link's own inertia.

| symbol | shape | meaning | frame |
|---|---|---|---|
| composite | RigidInertia | the link with everything it carries | link |
| least_pivots | by DoF | what the pivots of the joint must exceed; empty if they need no test | joint |
| pivots | by DoF | D, kept by the program's own sweeps in the order in which they eliminate the joint's DoF | joint |
| pivot_gains | by DoF | the gains of these, kept too where the first DoF comes first | link |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import hypot, isnan, sqrt
from typing import Any, NamedTuple

import numpy as np

from spanloop.errors import Reason, Refusal
from spanloop.math.inertia import RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Motion, power
from spanloop.math.vector3 import dot, total, trace
from spanloop.sweeps.program import Sweep, Values, inward
from spanloop.topology import Mechanism
from spanloop.topology.mechanism import Link
from spanloop.types import Scalar

IN_SWEEPS = 2e-5  # least D/M where joints give way one after the other: an error of 1e-9
IN_MATRIX = 2e-4  # ... where the mass matrix is factored
_FLEXIBLE = 1e-3  # by which it is smaller at modes and at what carries them, where errors are 2e-16 M/D at most: 1e-8
_COARSE = 1e-4  # by which the least D/M is smaller in runs, whose steps have larger errors: one of 1e-5
_SINGLE = 10.0  # by which the least D/M is larger in single precision: an error of 5e-3
_ROUNDING = 1e-14  # in a link's own inertia, relative to its mass and the trace of its second moment
_LONG = 10  # links; what a longer chain carries grows with the cube of its length, but no error does
_BEYOND = 10.0  # how far beyond their limits joints may slide
_ALL = (
    "; if they move no inertia either, mend all at once: model.with_joint('*', armature=...), or load the file with "
    "repair=True, which gives bodies without mass an inertia"
)
_TURNS = [(2.0 * np.pi * k / 16,) * 2 for k in range(16)]  # at which a motion space that is not constant is examined


class PivotTest:
    """The pivots of a mechanism that are tested: the sweep that a program needs for it, and its demands.

    tolerance: the least D/M. noise: by the number of a link, rounding in its own inertia for each DoF of its joint.
    """

    def __init__(self, mechanism: Mechanism, tolerance: float = IN_SWEEPS):
        links = mechanism.links
        precision = (_SINGLE if mechanism.single else 1.0) * (_COARSE if mechanism.coarse else 1.0)
        self.tolerance = tolerance * precision * min(1.0, (_LONG / max(1, _depth(links))) ** 3)
        soft = _carrying_modes(links)
        self.tolerances = [self.tolerance * (_FLEXIBLE if i in soft else 1.0) for i in range(len(links))]
        self.noise: Mapping[int, tuple[Scalar, ...]] = {i: _noise(links[i]) for i in _doubtful(links, self.tolerances)}

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """The sweep that keeps `least_pivots`, to follow those that keep X and S; none if nothing is tested."""
        return (inward(self.weigh, composite=RigidInertia()),) if self.noise else ()

    @property
    def demands(self) -> Callable[..., list] | None:
        """The demands of the program, whose links keep `pivots`; None if nothing is tested."""
        return self.pairs if self.noise else None

    def weigh(self, link, here, arriving) -> tuple[Values, Values]:
        """The least pivots of the joint: the tolerance times its entries Sᵀ I S + armature of M's diagonal."""
        composite = here.inertia + arriving.composite
        tested = zip(link.free(here.S), link.armature, self.noise.get(link.number, ()), strict=False)
        tolerance = self.tolerances[link.number]
        least = tuple(tolerance * (power(s, composite @ s) + r) + noise for s, r, noise in tested)
        return Values(least_pivots=least), Values(composite=composite.carried(here.X))

    def pairs(self, m, here, world) -> list:
        """Pairs of the least pivot and the pivot, of which the first must be less."""
        return [pair for i in self.noise for pair in zip(here[i].least_pivots, _pivots(here[i]), strict=False)]

    def refusal(self, mechanism: Mechanism, pairs: Sequence[tuple[float, float]]) -> Refusal | None:
        """Names the joint whose pivot is smallest for what it carries; None where all pivots are large enough."""
        numbers = [i for i, noise in self.noise.items() for _ in noise]
        small = [_Small(d, x, i) for i, (x, d) in zip(numbers, pairs, strict=True) if not x < d]
        if not small:
            return None
        pivot, least, i = min(small, key=_Small.order)
        found, others = 0.0 if isnan(pivot) else pivot, len({x.number for x in small}) - 1
        joint, body = mechanism.links[i].name, next(name for name, a in mechanism.anchors.items() if a.link == i)
        other = ". Loops do not make up for it; runs with closures='minimal' (legs on a platform) need no inertia here"
        return Refusal(
            Reason.SINGULAR_MASS,
            f"joint {joint!r} (body {body!r}): the mass matrix is singular at this position, or too near it: when the "
            f"joints outboard of {joint!r} give way, it moves no inertia (its pivot is {found:.3g}; expected more than "
            f"{least:.3g}). Give body {body!r} mass and inertia, give the joint armature: "
            f"model.with_joint({joint!r}, armature=...), or lock it: model.lock({joint!r})"
            + _fewer_modes(mechanism, i)
            + (f". {others} more joint{'s' * (others > 1)} cannot be solved for with it{_ALL}" if others else "")
            + (other if mechanism.closures else ""),
        )


def _fewer_modes(mechanism: Mechanism, i: int) -> str:
    """Advice where a flexible body stands on the joint: its modes can take nearly all of its inertia."""
    found = [link.name.removesuffix(".modes") for link in mechanism.links if link.parent == i and link.kind.bends]
    return (
        f". Flexible body {found[0]!r} needs fewer modes: with many of them its root keeps no inertia" if found else ""
    )


class _Small(NamedTuple):
    """A pivot that is too small, what it must exceed, and the number of its link."""

    pivot: float
    least: float
    number: int

    def order(self) -> tuple[bool, float, int]:
        """Those that are numbers come first, the smallest before others: a pivot of zero makes those inboard NaN."""
        ratio = self.pivot / self.least if self.least and not isnan(self.pivot) else 0.0
        return isnan(self.pivot), ratio, -self.number


def _pivots(here: Values) -> Sequence[Scalar]:
    """The pivot that each DoF of a joint would have as the last of them, where the gains are known.

    With the block B = L diag(D) Lᵀ of the joint, in which L_jk = s_jᵀ G_k, that is 1/(B⁻¹)_kk.
    """
    D, G = here.pivots, getattr(here, "pivot_gains", ())
    n = len(D)
    if n < 2 or len(G) < n:
        return D
    unit = [[float(i == k) for k in range(n)] for i in range(n)]  # becomes L⁻¹
    for i in range(n):
        for k in range(i):
            unit[i][k] = -total(power(here.S[i], G[j]) * unit[j][k] for j in range(k, i))
    over = [reciprocal(d) for d in D]
    return [reciprocal(total(over[i] * (unit[i][k] * unit[i][k]) for i in range(k, n))) for k in range(n)]


def _carrying_modes(links: Sequence[Link]) -> set[int]:
    """Numbers of the links that bend, and of all inboard of them."""
    found: set[int] = set()
    for i in reversed(range(len(links))):
        if links[i].kind.bends or i in found:
            found |= {i, links[i].parent}
    return found


def _doubtful(links: Sequence[Link], tolerances: Sequence[float]) -> list[int]:
    """Numbers of the links whose pivots may be too small at some state; all, if parameters are live."""
    free = [i for i, link in enumerate(links) if not link.driven and link.kind.nv]
    if not all(isinstance(x, float) for link in links for x in _numbers(link)):
        return free
    carried = _carried(links)
    nodes = {i: [(links[j].kind, *carried[j]) for j in range(len(links)) if links[j].parent == i] for i in free}
    out = []
    for i in free:
        columns, armature = _columns(links[i])[0], links[i].armature
        felt = _felt_by_modes(links[i], nodes[i]) if links[i].kind.bends else [_felt(s, *carried[i]) for s in columns]
        least = [tolerances[i] * (x + r) for x, r in zip(felt, armature, strict=True)]
        if not all(own > x for own, x in zip(_own_pivots(links[i]), least, strict=True)):
            out.append(i)
    return out


def _depth(links: Sequence[Link]) -> int:
    """The number of links in the longest chain from the world."""
    depths = [0] * len(links)
    for i, link in enumerate(links):
        depths[i] = (not link.kind.rides) + (depths[link.parent] if link.parent >= 0 else 0)
    return max(depths, default=0)


def _numbers(link: Link) -> Iterator[Any]:
    """The numbers of a link that may be live."""
    yield from (link.inertia.mass, *link.inertia.first, *link.placement.translation, *link.armature)
    yield from (x for row in link.inertia.second for x in row)


def _columns(link: Link) -> list[tuple[Motion, ...]]:
    """The motion space of the joint, at several positions unless it is constant."""
    kind = link.kind
    return [kind.motion_space(q) for q in ([kind.neutral()] if kind.constant_space else _TURNS)]


def _noise(link: Link) -> tuple[Scalar, ...]:
    inertia = link.inertia
    return tuple(_ROUNDING * _felt(s, inertia.mass, trace(inertia.second)) for s in _columns(link)[0])


def _felt(s: Motion, mass: Scalar, moment: Scalar) -> Scalar:
    """A bound of sᵀ M s for a body of this mass whose second moment has the trace `moment`."""
    turning, sliding = dot(s.angular, s.angular), dot(s.linear, s.linear)
    if not turning:  # the moment may be infinite
        return sliding * mass
    return (2.0 if sliding else 1.0) * (turning * moment + sliding * mass)


def _felt_by_modes(link: Link, nodes: Sequence[tuple[Any, float, float]]) -> list[float]:
    """Bounds of the mass that each mode of a flexible body moves, with what its nodes carry: kind, mass and moment."""
    found = [float(power(s, link.inertia @ s)) for s in _columns(link)[0]]
    for kind, mass, moment in nodes:
        moved = zip(kind.shape.translations, kind.shape.rotations, strict=True)
        found = [x + _felt(Motion(turn, slide), mass, moment) for x, (slide, turn) in zip(found, moved, strict=True)]
    return found


def _own_pivots(link: Link) -> list[float]:
    """The least that each pivot can be: what the link's own inertia gives it while all other DoF of the joint yield."""
    least = np.full(link.kind.nv, np.inf)
    for columns in _columns(link):
        block = np.diag(np.array(link.armature, dtype=float))
        block += [[power(s, link.inertia @ t) for t in columns] for s in columns]
        size = np.sqrt(np.maximum(np.diag(block), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(block / np.outer(size, size))
        if values[0] < 1e-12:
            return [0.0] * link.kind.nv
        least = np.minimum(least, size**2 / (vectors**2 / values).sum(axis=1))
    return least.tolist()


def _carried(links: Sequence[Link]) -> list[tuple[float, float]]:
    """For each link mass, and a bound for the trace of the second moment about its origin, of all that it carries."""
    masses = [float(link.inertia.mass) for link in links]
    moments = [max(0.0, float(trace(link.inertia.second))) for link in links]
    for i in reversed(range(len(links))):
        link = links[i]
        if link.parent >= 0:
            distance = hypot(*link.placement.translation) + _BEYOND * link.reach
            masses[link.parent] += masses[i]
            moments[link.parent] += (sqrt(moments[i]) + sqrt(masses[i]) * distance) ** 2
    return list(zip(masses, moments, strict=True))
