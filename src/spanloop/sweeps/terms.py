"""Linear maps between stacked vectors, as plain terms: a term names the sweeps that apply it.

A stacked vector has one block at every link: six numbers in the space "links", and one a mode of a flexible body; one
a DoF in "joints", six for each frame that the link carries in "frames"; a vector of "rows", one number for each row of
the closures, is kept whole at the world. A term reads the block `source` of every link and keeps `target`; it knows no
coordinates and no mechanism. Its text is what one types to make it; terms with one text are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from spanloop.math.spatial import Force, Motion
from spanloop.math.vector3 import total
from spanloop.sweeps.program import Sweep, Values, at_once, inward, outward

LINKS, JOINTS, FRAMES, ROWS = "links", "joints", "frames", "rows"

SPACES = (LINKS, JOINTS, FRAMES, ROWS)

ONE = "1"  # text of every identity

Block = Callable[..., tuple]  # (link, here, block) -> block


def width(link) -> int:
    """How many numbers a link has in the space "links": six, and one for each mode of a flexible body."""
    return 6 + (link.kind.nv if link.kind.bends else 0)


def block(link, pair: Force | Motion) -> tuple:
    """The numbers of a force on a link, or of its motion; zeros for modes where it has none."""
    numbers = tuple(pair)
    return numbers + (0.0,) * (width(link) - len(numbers))


class Term(ABC):
    """A linear map from vectors of the space `columns` to vectors of the space `rows`."""

    text: str
    rows: str
    columns: str
    level: int  # which preparing sweeps it needs: 0 poses, 1 articulated inertias, 2 admittances

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
            return Values(**{target: block(link, arriving.f)}), Values(f=sent)

        def from_parent(link, here, parent):
            own = Motion.of(getattr(here, source))
            return Values(**{target: block(link, here.X.T @ getattr(parent, handed)), handed: own})

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
            arrived = weigh(link, here, block(link, here.X.T @ Motion.of(getattr(parent, target))))
            return Values(**{target: tuple(Motion.of(getattr(here, source)) + Motion.of(arrived))})

        if is_starred(self.text):
            return (outward(spread, None, **{target: (0.0,) * 6}),)
        return (inward(collect, f=Force()),)


def is_starred(text: str) -> bool:
    """Is this the text of a transpose?"""
    return text.endswith(".T")


def starred(text: str) -> str:
    """The text of the transpose."""
    return text.removesuffix(".T") if is_starred(text) else f"{text}.T"


# ---- Terms made of terms: products, sums, and either under a name of its own.


class Product(Term):
    """The factors one after the other, the last first."""

    def __init__(self, factors: tuple[Term, ...]):
        self.factors = factors
        self.text = " @ ".join(f"({f.text})" if isinstance(f, Sum) else f.text for f in factors)
        self.rows, self.columns = factors[0].rows, factors[-1].columns
        self.level = max(f.level for f in factors)

    def star(self) -> Term:
        return product(*(f.star() for f in reversed(self.factors)))

    def sweeps(self, source, target):
        out: tuple[Sweep, ...] = ()
        for k in reversed(range(len(self.factors))):
            to = f"{target}.{k}" if k else target
            out += self.factors[k].sweeps(source, to)
            source = to
        return out


class Sum(Term):
    """Numbers times terms, added."""

    def __init__(self, terms: tuple[tuple[float, Term], ...]):
        self.terms = terms
        self.text = _sum_text(terms)
        self.rows, self.columns = terms[0][1].rows, terms[0][1].columns
        self.level = max(t.level for _, t in terms)

    def star(self) -> Term:
        return added(*((c, t.star()) for c, t in self.terms))

    def sweeps(self, source, target):
        parts = [f"{target}+{k}" for k in range(len(self.terms))]
        out: tuple[Sweep, ...] = ()
        for part, (_, term) in zip(parts, self.terms, strict=True):
            out += term.sweeps(source, part)
        return (*out, adding(self.rows, [c for c, _ in self.terms], parts, target))


class Named(Term):
    """A product or sum under a name of its own."""

    def __init__(self, text: str, of: Term):
        self.text, self.of = text, of
        self.rows, self.columns, self.level = of.rows, of.columns, of.level

    def star(self) -> Term:
        mirrored = self.of.star()
        return self if mirrored.text == self.of.text else Named(starred(self.text), mirrored)

    def sweeps(self, source, target):
        return self.of.sweeps(source, target)


def product(*terms: Term) -> Term:
    """Terms composed: products are flattened, identities left out."""
    factors: list[Term] = []
    for t in terms:
        factors += t.factors if isinstance(t, Product) else [t]
    factors = [f for f in factors if f.text != ONE] or factors[:1]
    return factors[0] if len(factors) == 1 else Product(tuple(factors))


def added(*terms: tuple[float, Term]) -> Term:
    """Numbers times terms, added: sums are flattened, equal terms collected, in an order of their own."""
    found: dict[str, tuple[float, Term]] = {}
    for c, term in terms:
        for d, t in term.terms if isinstance(term, Sum) else ((1.0, term),):
            found[t.text] = (found[t.text][0] + c * d if t.text in found else c * d, t)
    left = [found[k] for k in sorted(found) if found[k][0] != 0.0] or [(0.0, terms[0][1])]
    return left[0][1] if len(left) == 1 and left[0][0] == 1.0 else Sum(tuple(left))


def adding(space: str, numbers: list[float], parts: list[str], target: str) -> Sweep:
    """The sweep that keeps target = Σ number · part, vectors of one space."""

    def added_up(kept) -> Values:
        columns = zip(*(getattr(kept, p) for p in parts), strict=True)
        return Values(**{target: tuple(total(c * x for c, x in zip(numbers, xs, strict=True)) for xs in columns)})

    def at_each_link(link, here, parent):
        return added_up(here)

    def at_the_world(m, here, world):
        return added_up(world)

    return at_once(at_the_world) if space == ROWS else outward(at_each_link)


def _sum_text(terms) -> str:
    words = []
    for c, t in terms:
        size = "" if abs(c) == 1.0 else f"{abs(c):.17g} * "
        words.append(f"{'-' if c < 0 else '+'} {size}{t.text}")
    return " ".join((words[0].removeprefix("+ ").replace("- ", "-", 1), *words[1:]))
