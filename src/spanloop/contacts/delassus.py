"""The Delassus matrix W of contact points, column after column, as calls on arrays: loops whose code does not grow.

    W = J Y Jᵀ,   u = J v + W f

J: rows of the points, Y: response of the mechanism with its loops closed. A column is the response of the contact
links to one row as an impulse. Names of arrays have the prefix "contact.":

| name | numbers | meaning |
|---|---|---|
| on | n | 1 for points that are closed, 0 for others |
| rows | n · ways · block · 6 | rows of each point, in the axes of its links |
| factors | | what the response depends on beside the impulse |
| impulse, V | width | of the contact links |
| V0, V1, ... | width | their response to the rows of one point |
| W | n · n · block² | block of points i and j, row by row, at i n + j; 0 where point j or i is not on for any run |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from spanloop.compiler.lower import Block, Call, For, Plan, Stage, When, split, unrolled, with_demands_in_output
from spanloop.compiler.lower.plan import live
from spanloop.compiler.lower.schedule import Item, Place
from spanloop.compiler.trace import Expression
from spanloop.contacts.mechanics import ContactMechanics
from spanloop.math.vector3 import total

PREFIX = "contact."


def named(*names: str) -> tuple[str, ...]:
    """Names of arrays of contacts."""
    return tuple(PREFIX + n for n in names)


class DelassusCalls:
    """Makes the calls that find rows, velocities, W and what impulses do, on the arrays of a stage."""

    def __init__(self, stage: Stage, mechanics: ContactMechanics):
        self.stage, self.mechanics = stage, mechanics
        self.n, self.block, self.ways = mechanics.n, mechanics.block, mechanics.ways
        self.nv, self.nq = mechanics.model.nv, mechanics.model.nq
        self.links = 6 * len(mechanics.points.links)
        size, rows = self.n * self.block, self.n * len(self.ways) * self.block * 6
        sizes = {"gap": self.n, "on": self.n, "rows": rows, "moving": size, "W": size * size, "dv": self.nv}
        sizes |= {"impulse": mechanics.width, "factors": len(self._respond[0].outputs) - self._early}
        sizes |= dict.fromkeys(("V", "V.before", *(f"V{c}" for c in range(self.block))), mechanics.width)
        for name, count in sizes.items():
            stage.array(PREFIX + name, count)

    # ---- places

    def of_point(self, array: str, counter: str = "i", size: int | None = None) -> Block:
        """The numbers of point i in an array with as many for every point."""
        size = size or self.stage.sizes[PREFIX + array] // self.n
        return Block(PREFIX + array, size, ((counter, self.stage.sizes[PREFIX + array] // self.n),))

    def of_link(self, array: str, way: int, counter: str = "i") -> Block:
        """The six numbers of the link on one way of point i."""
        return Block(PREFIX + array, 6, ((counter, tuple(6 * k for k in self.ways[way])),))

    def of_pair(self, i: str, j: str, size: int | None = None) -> Block:
        """W of points i and j; its first number is that of the normals."""
        area = self.block**2
        return Block(PREFIX + "W", size or area, ((i, self.n * area), (j, area)))

    def moving_links(self, array: str) -> Block:
        """The numbers of the links that move."""
        return Block(PREFIX + array, self.links)

    # ---- calls

    def touch(self, q: str, gap: str = PREFIX + "gap") -> Call:
        """Gaps, rows and velocities of surfaces at q."""

        def page(q, *given):
            x = self._arrays(given, q=q)
            gaps, rows = self.mechanics.gaps_and_rows(x)
            return gaps, rows, self.mechanics.surface_rates(x)

        reads = (q, *self.mechanics.given)
        return self.stage.call("touch", reads, (gap, *named("rows", "moving")), page)

    def gaps(self, q: str, gap: str) -> Call:
        """Gaps at q."""

        def page(q, *given):
            return (self.mechanics.gaps(self._arrays(given, q=q)),)

        return self.stage.call("gaps", (q, *self.mechanics.given), (gap,), page)

    def factor(self, q: str, v: str, before: str, closed: str) -> list[Item]:
        """Factors of the response at q; v with closed loops, and velocities of the links with it and with `before`."""
        arrays = named("impulse", *(f"V{c}" for c in range(self.block)))
        clear = self.stage.call("rest", (), arrays, lambda: ([0.0] * self.mechanics.width,) * len(arrays))
        reads = (q, v, before, *self.mechanics.given)
        return [clear, Call(self._respond[0], reads, (closed, *named("V", "V.before", "factors")))]

    def matrix(self) -> list[Item]:
        """W, from the columns of the points that are on."""
        area = self.block**2
        zero = self.stage.call("no_admittance", (), (self.of_pair("i", "j"),), lambda: ([0.0] * area,))
        columns: list[Item] = []
        for c in range(self.block):
            columns += [*self._push(c), self.to_links(f"V{c}"), *self._clear()]
        given = [self.of_link(f"V{c}", w) for w in range(len(self.ways)) for c in range(self.block)]
        block = self.stage.call(
            "admittance", (self.of_point("rows"), *given), (self.of_pair("j", "i"), self.of_pair("i", "j")), self._pair
        )
        flag = self.of_point("on", "j")
        return [
            For("i", 0, self.n, (For("j", 0, self.n, (zero,)),)),
            For("j", 0, self.n, (When((*columns, For("i", ("j", 0), self.n, (block,))), flag),)),
        ]

    def to_links(self, array: str) -> Call:
        """Changes of the velocities of the links due to the impulses on them."""
        return Call(self._respond[1], (PREFIX + "factors", self.moving_links("impulse")), (self.moving_links(array),))

    def to_joints(self, array: str) -> Call:
        """The same of v."""
        return Call(self._respond[2], (PREFIX + "factors", self.moving_links("impulse")), (array,))

    def to_torques(self, q: str, array: str) -> Call:
        """Torques (nv) at the joints of the impulses on the links, with the links at q."""

        def page(q, impulse, *given):
            return (self.mechanics.joint_impulses(self._arrays(given, q=q, impulse=impulse)),)

        reads: tuple[Place, ...] = (q, self.moving_links("impulse"), *self.mechanics.given)
        return self.stage.call("to_torques", reads, (array,), page)

    def gather(self, forces: str) -> list[Item]:
        """Impulses on the links: the sum of the rows of all points times their numbers in an array of n · block."""
        area = self.block
        clear = self.stage.call("no_impulse", (), (self.moving_links("impulse"),), lambda: ([0.0] * self.links,))
        calls = []
        for w in range(len(self.ways)):
            at = self.of_link("impulse", w)
            rows = Block(PREFIX + "rows", 6 * area, (("i", 6 * area * len(self.ways)),), 6 * area * w)
            force = Block(forces, area, (("i", area),))
            calls.append(self.stage.call("gather", (rows, force, at), (at,), self._sum))
        return [clear, For("i", 0, self.n, tuple(calls))]

    # ---- pages

    def along(self, rows: Sequence[Any], *velocities: Sequence[Any]) -> list[Any]:
        """Velocities (block) of a point, from those of its links, one for each way."""
        out = []
        for d in range(self.block):
            terms = []
            for w, V in enumerate(velocities):
                at = 6 * (w * self.block + d)
                terms += [r * x for r, x in zip(rows[at : at + 6], V, strict=True)]
            out.append(total(terms))
        return out

    def _pair(self, rows: Sequence[Any], *columns: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """W of points j and i, and of i and j, from the response of the links of i to the rows of j."""
        B, ways = self.block, len(self.ways)
        of_i = [self.along(rows, *(columns[w * B + c] for w in range(ways))) for c in range(B)]  # column c, row d
        return [x for column in of_i for x in column], [of_i[c][d] for d in range(B) for c in range(B)]

    def _sum(self, rows: Sequence[Any], force: Sequence[Any], there: Sequence[Any]) -> tuple[list[Any]]:
        return ([total([x, *(rows[6 * d + k] * f for d, f in enumerate(force))]) for k, x in enumerate(there)],)

    def _push(self, c: int) -> list[Call]:
        """Row c of point j as an impulse on its links."""
        calls = []
        for w in range(len(self.ways)):
            row = Block(PREFIX + "rows", 6, (("j", 6 * self.block * len(self.ways)),), 6 * (w * self.block + c))
            calls.append(self.stage.call("copy_six", (row,), (self.of_link("impulse", w, "j"),), lambda x: (list(x),)))
        return calls

    def _clear(self) -> list[Call]:
        return [
            self.stage.call("no_six", (), (self.of_link("impulse", w, "j"),), lambda: ([0.0] * 6,))
            for w in range(len(self.ways))
        ]

    # ---- the response in two parts

    @property
    def _early(self) -> int:
        return self.nv + 2 * self.mechanics.width

    @cached_property
    def _respond(self) -> tuple[Plan, Plan, Plan]:
        """Factors and velocities; response of the links; response of the joints."""
        mechanics, sizes = self.mechanics, self.stage.sizes
        given = tuple((n, sizes[n]) for n in mechanics.given)
        inputs = (("q", self.nq), ("v", self.nv), ("before", self.nv), *given, ("impulse", self.links))

        def compute(x):
            closed = mechanics.closed_velocity(x)
            V = mechanics.link_velocities({**x, "v": closed})
            before = mechanics.link_velocities({**x, "v": x["before"]})
            dv, dV, pairs = mechanics.response(x)
            return [*closed, *V, *before, *dv, *dV], (), [a < b for a, b in pairs]

        whole = unrolled(f"{self.stage.prefix}respond", inputs, (0,), compute)
        first, second = split(whole, ("impulse",), early=self._early)
        return with_demands_in_output(first), _part(second, slice(self.nv, None)), _part(second, slice(0, self.nv))

    def _arrays(self, given: Sequence[Sequence[Any]], **more: Any) -> Mapping[str, Sequence[Any]]:
        return {**dict(zip(self.mechanics.given, given, strict=True)), **more}


def _part(plan: Plan, chosen: slice) -> Plan:
    """The plan of some of the outputs."""
    outputs = plan.outputs[chosen]
    nodes = live([x for x in outputs if isinstance(x, Expression)])
    return replace(plan, nodes=tuple(nodes), outputs=outputs, shape=(len(outputs),))
