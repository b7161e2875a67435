"""One system of a closed topology: its kernels of steps A to C and of step E."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.kernels import compile
from spanloop.loops.closed_topology.combined_model import frames_of
from spanloop.model import Model
from spanloop.topology import mechanism
from spanloop.topology.tree_paths import meeting


@dataclass(frozen=True, eq=False)
class Column:
    """A tree and its points of closure. It knows no closure, and no other system.

    points: the frames that closures between the systems name; of loops inside one system, which a model keeps by body
    and placement, the bodies that they join.
    """

    model: Model  # without loops
    points: tuple[str, ...]
    options: dict[str, Any]

    @staticmethod
    def of(model: Model, points: Sequence[str], options: dict[str, Any], old: Column | None = None) -> Column:
        """The old column, if it will do: the same tree with at least these points. Points keep their order, so that
        step D finds the same ones in a new tree."""
        tree = replace(model, loops=())
        kept = () if old is None else tuple(x for x in old.points if x in frames_of(tree))
        wanted = tuple(dict.fromkeys((*kept, *points)))
        return old if old is not None and (old.model, old.points) == (tree, wanted) else Column(tree, wanted, options)

    @functools.cached_property
    def sizes(self) -> tuple[int, int]:
        """nq, nv."""
        return self.model.nq, self.model.nv

    @functools.cached_property
    def _free(self) -> dict:
        return {}

    def free(self, loaded: tuple[str, ...] = ()):
        """Steps A to C: β̇ᶠ, the points with their motions, Λ; loaded: bodies with forces from outside."""
        if loaded not in self._free:
            self._free[loaded] = compile(self.model, "free_response", points=self.points, forces=loaded, **self.options)
        return self._free[loaded]

    @functools.cached_property
    def _forced(self):
        return compile(self.model, "forced_response", points=self.points, **self.options)

    @functools.cached_property
    def coupled(self) -> tuple[tuple[int, int], ...]:
        """Pairs of points that feel each other: those with a common ancestor that moves."""
        m = mechanism(self.model)
        links = [m.anchors[name].link for name in self.points]
        pairs = [(i, j) for i in range(len(links)) for j in range(len(links))]
        return tuple((i, j) for i, j in pairs if meeting(m.parents, links[i], links[j]) >= 0)

    def response(self, q, v, tau, loads: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """A, B, C: β̇ᶠ (..., nv), and the input of step D (..., 24 k + 36 k²); loads: external forces by body."""
        own = {name: six for name, six in loads.items() if name in self.model.body_number}
        forces = [np.concatenate(list(own.values()), axis=-1)] if own else []
        numbers, nv = self.free(tuple(own)).evaluate(q, v, tau, *forces), self.sizes[1]
        return numbers[..., :nv], numbers[..., nv:]

    def forced(self, q, push) -> np.ndarray:
        """E: β̇ᵟ (..., nv) due to forces (..., 6 k) at the points."""
        return self._forced.evaluate(q, push) if self.points else np.zeros((*q.shape[:-1], self.sizes[1]))
