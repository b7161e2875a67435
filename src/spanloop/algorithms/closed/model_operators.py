"""The spatial operators of a model, with those of its closures."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

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
    return Operators(Algebra(model, q, named, functools.partial(_kept, model)))


@functools.lru_cache(maxsize=64)
def _kept(model: Model) -> frozenset[int]:
    """Rows of the loops without those that depend on the others at every configuration."""
    if model.couplings:
        raise UnsupportedError(
            f"operators of loops: model {model.name!r} has a coupling ({model.couplings[0].name!r}), which A does not "
            "know; leave it out of the motion: model.lock(...)"
        )
    m = mechanism(model)
    return frozenset(range(m.n_rows)) - find_redundancy(m).dropped
