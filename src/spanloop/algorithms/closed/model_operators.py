"""The spatial operators of a model, with those of its closures."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spanloop.algorithms.closed.redundancy import find_redundancy
from spanloop.errors import UnsupportedError
from spanloop.model import Model
from spanloop.sweeps.operators import Operators
from spanloop.sweeps.spaces import Algebra
from spanloop.topology import mechanism


def operators(model: Model, q: Sequence[Any] | None = None, frames: str | Sequence[str] = ()) -> Operators:
    """The spatial operators of a model: at q (nq,), floats or traced, or for any q.

    frames: names of the frames or bodies of B and J. Without names, and where the model has loops, these are the points
    of closure, two for each loop, and the operators A, Lam and b exist, too. All other operators are those of the
    spanning tree, in which loops are open; a driven joint is one like all others.

    >>> robot, q = sl.Dynamics(sl.zoo.puma()), np.full(6, 0.3)
    >>> s = sl.operators(robot.model, q)
    >>> M = s.H @ s.phi @ s.Mb @ s.phi.T @ s.H.T
    >>> bool(np.allclose(M @ np.ones(6), robot.mass_matrix(q) @ np.ones(6)))
    True
    """
    named = (frames,) if isinstance(frames, str) else tuple(frames)
    near = tuple(q) if q is not None and all(isinstance(x, float) for x in q) else None
    return Operators(Algebra(model, q, named, functools.partial(_kept, model, near)))


@functools.lru_cache(maxsize=64)
def _kept(model: Model, near: tuple[float, ...] | None) -> frozenset[int]:
    """Rows of the loops without those that depend on the others in the assembly of q, or in those near neutral."""
    if model.couplings:
        raise UnsupportedError(
            f"operators of loops: model {model.name!r} has a coupling ({model.couplings[0].name!r}), which A does not "
            "know; leave it out of the motion: model.lock(...)"
        )
    m = mechanism(model)
    found = find_redundancy(m, None if near is None else np.array(near))
    if near is not None and not found.is_known:  # q is not closed
        found = find_redundancy(m)
    return frozenset(range(m.n_rows)) - found.dropped
