"""Linear maps between stacked vectors, as plain terms: a term says which sweeps apply it.

A stacked vector has one block at every link: six numbers in the space "links", one a freedom in "joints", six for
each frame that the link carries in "frames"; a vector of "rows", one number for each row of the closures, is kept
whole at the world. A term reads the block `source` of every link and keeps `target`; it knows no coordinates and no
mechanism. Its text is what one types to make it; terms with one text are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from spanloop.math.spatial import Force, Motion
from spanloop.sweeps.program import Sweep, Values, inward, outward

LINKS, JOINTS, FRAMES, ROWS = "links", "joints", "frames", "rows"
SPACES = (LINKS, JOINTS, FRAMES, ROWS)
ONE = "1"  # text of every identity

Block = Callable[..., tuple]  # (link, here, block) -> block


class Term(ABC):
    """A linear map from vectors of the space `columns` to vectors of the space `rows`."""

    text: str
    rows: str
    columns: str
    level: int  # which preparing sweeps it needs: 0 placing, 1 articulated inertias, 2 admittances

    @abstractmethod
    def star(self) -> Term:
        """The transpose."""

    @abstractmethod
    def sweeps(self, source: str, target: str) -> tuple[Sweep, ...]:
        """The sweeps that keep target = term · source."""


class Local(Term):
    """A block diagonal map, each link for itself: times(link, here, block); symmetric if it has no transpose."""

    def __init__(self, text: str, rows: str, columns: str, level: int, times: Block, transposed: Block | None = None):
        self.text, self.rows, self.columns, self.level = text, rows, columns, level
        self.times, self.transposed = times, transposed

    def star(self) -> Local:
        if self.transposed is None:
            return self
        return Local(starred(self.text), self.columns, self.rows, self.level, self.transposed, self.times)

    def sweeps(self, source, target):
        def at_each_link(link, here, parent):
            return Values(**{target: self.times(link, here, getattr(here, source))})

        return (outward(at_each_link),)


class Shift(Term):
    """E_phi: what the children pass to their parent; transposed, what the parent hands to its children."""

    rows = columns = LINKS
    level = 0

    def __init__(self, text: str = "E_phi"):
        self.text = text

    def star(self) -> Shift:
        return Shift(starred(self.text))

    def sweeps(self, source, target):
        handed = f"{target} handed on"

        def from_children(link, here, arriving):
            sent = here.X @ Force.of(getattr(here, source))
            return Values(**{target: tuple(arriving.f)}), Values(f=sent)

        def from_parent(link, here, parent):
            own = Motion.of(getattr(here, source))
            return Values(**{target: tuple(here.X.T @ getattr(parent, handed)), handed: own})

        if is_starred(self.text):
            return (outward(from_parent, None, **{handed: Motion()}),)
        return (inward(from_children, f=Force()),)


class Transition(Term):
    """(1 − E_phi W)⁻¹ = 1 + E_phi W + (E_phi W)² + ... with a block diagonal W: one sweep inward, or outward."""

    rows = columns = LINKS

    def __init__(self, text: str, weight: Local):
        self.text, self.weight, self.level = text, weight, weight.level

    def star(self) -> Transition:
        return Transition(starred(self.text), self.weight.star())

    def sweeps(self, source, target):
        weigh = self.weight.times

        def collect(link, here, arriving):
            y = tuple(arriving.f + Force.of(getattr(here, source)))
            return Values(**{target: y}), Values(f=here.X @ Force.of(weigh(link, here, y)))

        def spread(link, here, parent):
            arrived = weigh(link, here, tuple(here.X.T @ Motion.of(getattr(parent, target))))
            return Values(**{target: tuple(Motion.of(getattr(here, source)) + Motion.of(arrived))})

        if is_starred(self.text):
            return (outward(spread, None, **{target: (0.0,) * 6}),)
        return (inward(collect, f=Force()),)


def is_starred(text: str) -> bool:
    return text.endswith(".T")


def starred(text: str) -> str:
    return text.removesuffix(".T") if is_starred(text) else f"{text}.T"
