"""Moving along the joints' coordinates, and the way between two of their positions."""

from __future__ import annotations

from spanloop.sweeps import Program, Values, outward


def integrate(mechanism) -> Program:
    """q ⊕ delta (nq,): where the constant velocity delta (nv,) leads in one unit of time."""
    return Program("integrate", ("q", "delta"), (outward(advance),), _joined, shape=(mechanism.nq,))


def difference(mechanism) -> Program:
    """delta (nv,) with start ⊕ delta = q."""
    return Program("difference", ("start", "q"), (outward(compare),), _joined, shape=(mechanism.nv,))


def advance(link, here, parent) -> Values:
    """The joint's coordinates after delta."""
    return Values(out=link.kind.plus(here.q, here.delta))


def compare(link, here, parent) -> Values:
    """The joint's delta from start to q."""
    return Values(out=link.kind.minus(here.q, here.start))


def _joined(mechanism, here, world):
    return [x for h in here for x in h.out]
