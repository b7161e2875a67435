"""What contacts need of a mechanism, as functions on scalars: gaps and rows, velocities of links, their response.

Every function takes the arrays of one state by name: q (nq), v (nv) and those of `given` (live parameters, active rows,
captured frames). A point has one or two *ways*: sides on links that move. Where some point has two, all have; a side on
the world then belongs to a link after the last, which stays at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spanloop.algorithms.contact.impulse_response import joint_impulses, link_velocities
from spanloop.algorithms.contact.points import ContactPoints, gaps, gaps_and_rows, surface_rates
from spanloop.kernels import KernelSpec
from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.sweeps import walk
from spanloop.topology import Mechanism

Arrays = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class ContactMechanics:
    """A model with its contact points; made of the specs and the mechanism of whoever uses it.

    spec: makes a KernelSpec of the model; arrays_of(spec, x): the arrays of x that a spec reads; mechanism_at(x).
    given: names of the arrays beside q and v that these read.
    """

    model: Model
    points: ContactPoints
    spec: Callable[..., KernelSpec]
    arrays_of: Callable[[KernelSpec, Arrays], Mapping[str, Sequence[Any]]]
    mechanism_at: Callable[[Arrays], Mechanism]
    given: tuple[str, ...] = ()
    has_loops: bool = False  # that are kept closed

    @property
    def n(self) -> int:
        """Number of points."""
        return self.points.n

    @property
    def block(self) -> int:
        """Numbers of a point: 3, or 6 with torsion or rolling."""
        return self.points.B

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames and bodies that contacts are fixed to."""
        names = (side.at for c in self.model.contacts for side in (c.a, c.b) if side.at != WORLD)
        return tuple(dict.fromkeys(names))

    @cached_property
    def ways(self) -> tuple[tuple[int, ...], ...]:
        """For each way, the place among the contact links of every point's side; len(links) stands for the world."""
        sides: list[list[int]] = [[] for _ in range(self.n)]
        for point, link, _ in self.points.sides:
            sides[point].append(link)
        most, world = max(map(len, sides)), len(self.points.links)
        return tuple(tuple(s[k] if k < len(s) else world for s in sides) for k in range(most))

    @property
    def width(self) -> int:
        """Numbers of the velocities of all contact links, and of the world where it has a place."""
        return 6 * (len(self.points.links) + (len(self.ways) > 1))

    def gaps(self, x: Arrays) -> list[Any]:
        """Gaps (n) [m]."""
        return gaps(self.points, self.mechanism_at(x), x["q"])

    def gaps_and_rows(self, x: Arrays) -> tuple[list[Any], list[Any]]:
        """Gaps (n), and rows of 6 numbers: for every point, every way and every one of its `block` directions."""
        found, rows = gaps_and_rows(self.points, self.mechanism_at(x), x["q"])
        size, ways = 6 * self.block, len(self.ways)
        out: list[Any] = [0.0] * (self.n * ways * size)
        filled = [0] * self.n
        for k, (point, _, _) in enumerate(self.points.sides):
            at = (point * ways + filled[point]) * size
            out[at : at + size] = rows[k * size : (k + 1) * size]
            filled[point] += 1
        return found, out

    def surface_rates(self, x: Arrays) -> list[Any]:
        """Velocities (n · block) of surfaces that move on their bodies."""
        if not self.points.has_moving_surfaces:
            return [0.0] * (self.n * self.block)
        return surface_rates(self.points, self.mechanism_at(x), x["q"])

    def link_velocities(self, x: Arrays) -> list[Any]:
        """V (width) of the contact links, at their origins in their axes."""
        m = self.mechanism_at(x)
        found = walk(link_velocities(m, self.frames), m, {"q": x["q"], "v": x["v"]})
        return [*found, *([0.0] * (self.width - len(found)))]

    def joint_impulses(self, x: Arrays) -> list[Any]:
        """Jᵀ p (nv) of x["impulse"] (6 a link) at the joints."""
        m = self.mechanism_at(x)
        return walk(joint_impulses(m, self.frames), m, {"q": x["q"], "impulse": x["impulse"]})

    def response(self, x: Arrays) -> tuple[list[Any], list[Any], list[Any]]:
        """Δv (nv) and ΔV (6 a link) due to x["impulse"] (6 a link), and the pairs that must be less."""
        answer, pairs = self._response.compute(self.arrays_of(self._response, x))
        return answer[: self.model.nv], answer[self.model.nv :], pairs

    def closed_velocity(self, x: Arrays) -> list[Any]:
        """v (nv) with the loops closed."""
        if not self.has_loops:
            return list(x["v"])
        delta, _ = self._correction.compute(self.arrays_of(self._correction, x))
        return [a + b for a, b in zip(x["v"], delta, strict=True)]

    @cached_property
    def _correction(self) -> KernelSpec:
        return self.spec("velocity_correction")

    @cached_property
    def _response(self) -> KernelSpec:
        return self.spec("impulse_response", frames=self.frames)
