"""Terms made of terms: products, sums, and either under a name of its own."""

from __future__ import annotations

from spanloop.math.small import total
from spanloop.sweeps.program import Sweep, Values, at_once, outward
from spanloop.sweeps.terms import ONE, ROWS, Term, starred


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
