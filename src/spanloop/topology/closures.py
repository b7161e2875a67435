"""Closures as numbers: where a loop's two frames sit, its rows, the link at which its two paths meet, its length.

A row is one constraint: a wrench that acts on the child side and, reversed, on the parent side. Rows are numbered
through all closures; couplings of joint rates come after the loops, one row each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanloop.joints import JointKind
from spanloop.joints.driven import DrivenClosure
from spanloop.math.spatial import Force
from spanloop.math.vector3 import IDENTITY3, ZERO3, times
from spanloop.model import Model
from spanloop.topology.tree_paths import meeting, path
from spanloop.types import Floats33, Scalar, Vector3

if TYPE_CHECKING:
    from spanloop.topology.mechanism import Anchor

_AXES = "xyz"
_SHORT = 1e-6  # of the longest distance of a loop: a shorter one is an offset, not a size
_NOTHING = 1e-9  # of a vector's length: smaller components are rounding


@dataclass(frozen=True)
class Closure:
    """A joint that closes a cycle, between frames in which its axis is z (`JointKind.closure_sides`)."""

    name: str
    number: int
    kind: JointKind
    a: Anchor  # of the kind's parent frame
    b: Anchor  # of its child frame
    rows: tuple[int, ...]  # numbers of its rows
    meets: int  # the closest common ancestor of its two links; −1 is the world
    switchable: bool = False
    given: tuple[int, ...] = ()  # rows whose acceleration is an input: those of a driven closure's DoF
    child_axes: Floats33 = IDENTITY3  # from the frame b of the closure to the axes of the user's child frame
    length: float = 1.0  # m, the characteristic length of its loop: metres are compared after division by it

    @property
    def turns(self) -> bool:
        """Does the joint leave a rotation free?"""
        return self._constrained(0) < 3

    @property
    def keeps_axis(self) -> bool:
        """Do the z axes of the two frames stay aligned? A ball's do not."""
        return self._constrained(0) >= 2

    @property
    def slides(self) -> bool:
        """Does the joint leave a displacement free?"""
        return self._constrained(3) < 3

    def _constrained(self, start: int) -> int:
        """How many directions (start 0: angular, 3: linear) are constrained by rows of their own; given ones move."""
        space = self.kind.constraint_space(self.kind.neutral())[: len(self.rows) - len(self.given)]
        return sum(sum(map(abs, tuple(w)[start : start + 3])) == sum(map(abs, tuple(w))) == 1.0 for w in space)

    def row_kind(self, k: int) -> str:
        """Is row k of this closure a "moment" or a "force"? Their units differ."""
        w = self.kind.constraint_space(self.kind.neutral())[k]
        return "moment" if w.linear == ZERO3 else "force"

    def row_name(self, k: int) -> str:
        """Name of row k: the closure, and what the row transmits, in the axes of the user's child frame."""
        own = self.kind.row_names().get(k)
        return f"{self.name}: {own or wrench_name(self.child_row(k))}"

    def child_row(self, k: int) -> Force:
        """The wrench of row k in the axes of the user's child frame; of one that turns with the state, at neutral."""
        w = self.kind.constraint_space(self.kind.neutral())[k]
        return Force(times(self.child_axes, w.angular), times(self.child_axes, w.linear))


@dataclass(frozen=True)
class Gear:
    """A coupling of two joints' rates: rate(joint) − ratio · rate(source) = 0; without a source the joint is held."""

    name: str
    row: int
    link: int  # of the joint that follows
    source: int  # −1: none
    ratio: float
    offset: float
    meets: int
    switchable: bool = False

    @property
    def ends(self) -> tuple[tuple[int, float], ...]:
        """The links whose coordinates are in its row, with their factors σ."""
        return ((self.link, 1.0),) if self.source < 0 else ((self.link, 1.0), (self.source, -self.ratio))

    def along(self, values: Sequence[Scalar]) -> Scalar:
        """The row applied to one number a link, those of `ends`: coordinates, rates or accelerations."""
        return values[0] if self.source < 0 else values[0] - self.ratio * values[1]


def closures(model: Model, anchors: dict[str, Anchor], parents: Sequence[int]) -> tuple[Closure, ...]:
    """The model's loops."""
    out, row = [], 0
    for number, loop in enumerate(model.loops):
        sides = loop.kind.closure_sides()
        kind = sides.kind.switched() if loop.switchable else sides.kind
        kind = DrivenClosure(kind) if loop.driven else kind
        a = anchors[loop.a].at(loop.placement_a.rotation, loop.placement_a.position).at(sides.before.matrix(), ZERO3)
        b = anchors[loop.b].at(loop.placement_b.rotation, loop.placement_b.position).at(sides.after.matrix(), ZERO3)
        n = len(kind.constraint_space(kind.neutral()))
        rows = tuple(range(row, row + n))
        given = rows[n - loop.kind.nv :] if loop.driven else ()
        meets = meeting(parents, a.link, b.link)
        child = sides.after.matrix()
        out.append(Closure(loop.name, number, kind, a, b, rows, meets, loop.switchable, given, child))
        row += n
    return tuple(out)


def gears(model: Model, links: dict[str, int], parents: Sequence[int], first_row: int) -> tuple[Gear, ...]:
    """The model's couplings between joints that move."""
    out: list[Gear] = []
    for c in model.couplings:
        ends = [links[name] for name in c.joints]
        up = [parents[k] for k in ends]
        row, source = first_row + len(out), ends[1] if c.source is not None else -1
        out.append(Gear(c.name, row, ends[0], source, c.ratio, c.offset, meeting(parents, up[0], up[-1]), c.switchable))
    return tuple(out)


def wrench_name(w: Force) -> str:
    """A wrench in words: "moment about y", "force along (0.6, 0, 0.8)"; of both, with the moment at the origin."""
    moment, force = (math.hypot(*part) for part in (w.angular, w.linear))
    if force <= _NOTHING * moment:
        return f"moment about {_direction(w.angular)}"
    if moment <= _NOTHING * force:
        return f"force along {_direction(w.linear)}"
    arm = tuple(x / force for x in w.angular)
    return f"force along {_direction(w.linear)} and moment {_vector(arm)} N m per N"


def _direction(vector: Vector3) -> str:
    """x, -y, or the unit vector."""
    length = math.hypot(*vector) or 1.0
    unit = tuple(x / length for x in vector)
    for x, name in zip(unit, _AXES, strict=True):
        if abs(x) > 1.0 - _NOTHING:
            return name if x > 0.0 else f"-{name}"
    return _vector(unit)


def _vector(v: Vector3) -> str:
    return "(" + ", ".join(f"{round(x, 4) + 0.0:g}" for x in v) + ")"


# ---- characteristic lengths
#
# The length of a loop is the median of the distances between neighbouring joints on its bodies. Tolerances of lengths
# are shares of it, so that a mechanism answers alike in metres and in millimetres, and a rail of 60 m does not hide a
# rod of 0.1 m.


def loop_lengths(links: Sequence[Any], closures: Sequence[Any]) -> tuple[list[float], float]:
    """The length of each closure's loop [m], and that of the mechanism; links and closures of floats."""
    own = [_median(_distances(links, c)) for c in closures]
    some = [x for x in own if x > 0.0]
    whole = _median(some) or _size(links) or 1.0
    return [x or whole for x in own], whole


def _distances(links: Sequence[Any], closure: Any) -> list[float]:
    """Distances between the joints on each body of a loop, and the length that the closing joint itself has."""
    parents = [link.parent for link in links]
    out, ends = [], []
    for anchor in (closure.a, closure.b):
        point = anchor.position  # where the body is joined to the next one, outboard
        for i in path(parents, anchor.link):
            if i == closure.meets:
                break
            out.append(math.hypot(*point))
            point = links[i].placement.translation
        ends.append(point)
    out.append(math.dist(*ends))
    rod = closure.kind.closing_pose().translation
    return [*out, math.hypot(*rod)]


def _size(links: Sequence[Any]) -> float:
    """The size of a mechanism without distances in its loops: of offsets between joints, else of its bodies."""
    offsets = _median([math.hypot(*link.placement.translation) for link in links])
    heavy = [link.inertia for link in links if link.inertia.mass > 0.0]
    radii = [math.sqrt(max(sum(i.second[k][k] for k in range(3)), 0.0) / i.mass) for i in heavy]
    return offsets or _median(radii)


def _median(distances: Sequence[float]) -> float:
    """The median of those that are not short beside the longest; 0 without any."""
    longest = max(distances, default=0.0)
    sizes = sorted(x for x in distances if x > _SHORT * longest)
    return sizes[(len(sizes) - 1) // 2] if sizes else 0.0
