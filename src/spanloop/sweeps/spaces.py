"""The spaces of stacked vectors over a tree, and terms applied in them at given coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from spanloop.errors import InputError, Reason, Refusal, StateError
from spanloop.model import Model
from spanloop.sweeps.closure_operators import pivot_demands
from spanloop.sweeps.operator_blocks import preparation
from spanloop.sweeps.program import Values, carry_out
from spanloop.sweeps.terms import FRAMES, JOINTS, LINKS, ROWS, Term, width
from spanloop.sweeps.tested_pivots import PivotTest
from spanloop.topology import mechanism
from spanloop.topology.mechanism import Anchor

_UNIT = 1e-6  # by how much a quaternion may miss length 1
_NOTHING = 1e-12  # of the largest entry: what counts as zero in a picture


class Algebra:
    """A model's tree, the frames of interest, and coordinates q, if they are known.

    Where no frame is named those of interest are the points of closure, two for each loop. kept(): which rows of the
    loops are in A; all if there is no such function.
    """

    def __init__(
        self,
        model: Model,
        q: Sequence[Any] | None = None,
        frames: tuple[str, ...] = (),
        kept: Callable[[], frozenset[int]] | None = None,
    ):
        self.model, self.frames = model, tuple(model.frame(name).name for name in frames)
        self.mechanism = mechanism(model)
        self._found_rows = kept
        self.q = None if q is None else _checked(model, q)
        self._kept: dict[int, list[Values]] = {}
        self._kept_rows: list[frozenset[int]] = []

    def at(self, q) -> Algebra:
        """The same algebra at coordinates q (nq,)."""
        return Algebra(self.model, q, self.frames, self._found_rows)

    def anywhere(self) -> np.ndarray:
        """Coordinates without special values."""
        return self.model.random_state(np.random.default_rng(0))[0]

    @property
    def has_armature(self) -> bool:
        """Is there a rotor inertia at any joint?"""
        return any(not (isinstance(m, float) and m == 0.0) for link in self.mechanism.links for m in link.armature)

    # ---- closures

    @property
    def closed(self) -> bool:
        """Are there closures, and are their points the frames of interest?"""
        return bool(self.mechanism.closures) and not self.frames

    def kept(self) -> frozenset[int]:
        """Numbers of the rows in A."""
        if not self._kept_rows:
            every = frozenset(r for c in self.mechanism.closures for r in c.rows)
            self._kept_rows.append(every if self._found_rows is None else self._found_rows())
        return self._kept_rows[0]

    def points(self, m) -> list[Anchor]:
        """The frames of interest."""
        if self.closed:
            return [x for c in m.closures for x in (c.a, c.b)]
        return [m.anchors[name] for name in self.frames]

    # ---- spaces

    def size(self, space: str) -> int:
        """Length of a vector."""
        if space == ROWS:
            return len(self.kept())
        frames = 6 * len(self.points(self.mechanism))
        return {LINKS: sum(map(width, self.mechanism.links)), JOINTS: self.model.nv, FRAMES: frames}[space]

    def blocks(self, m, space: str) -> tuple[tuple[int, ...], ...]:
        """Which entries of a vector belong to each link; those of frames fixed to the world belong to none."""
        if space == JOINTS:
            return tuple(tuple(range(link.v.start, link.v.stop)) for link in m.links)
        if space == LINKS:
            ends = list(accumulate(map(width, m.links), initial=0))
            return tuple(tuple(range(a, b)) for a, b in pairwise(ends))
        on = [anchor.link for anchor in self.points(m)]
        return tuple(
            tuple(6 * k + i for k, at in enumerate(on) if at == link.number for i in range(6)) for link in m.links
        )

    def found(self, m, space: str, here: Sequence[Values], world: Values, name: str) -> list[Any]:
        """The vector that is kept under this name."""
        if space == ROWS:
            return list(getattr(world, name))
        whole: list[Any] = [0.0] * self.size(space)
        for places, h in zip(self.blocks(m, space), here, strict=True):
            for k, x in zip(places, getattr(h, name), strict=True):
                whole[k] = x
        return whole

    # ---- at q

    def applied(self, term: Term, x) -> Any:
        """term @ x, for x (n,) or columns (n, k): an array of floats, a tuple where a scalar is traced."""
        if self.q is None:
            raise InputError(f"({term.text}) @ numbers: at which q? Use sl.operators(model, q) or .at(q)")
        if isinstance(x, np.ndarray) and x.ndim == 2:
            return np.column_stack([self.applied(term, column) for column in x.T])
        values = list(x)
        if len(values) != self.size(term.columns):
            raise InputError(
                f"({term.text}) @ x: x has {len(values)} entries; expected {self.size(term.columns)}, "
                f"a vector of {term.columns}"
            )
        values = [float(v) if isinstance(v, int | float | np.number) else v for v in values]
        prepared = [vars(h) for h in self._prepared(term.level)]
        if term.columns == ROWS:
            here, world = [Values(**h) for h in prepared], Values(kept=self.kept, x=tuple(values))
        else:
            blocks = self.blocks(self.mechanism, term.columns)
            here = [Values(**h, x=tuple(values[k] for k in b)) for h, b in zip(prepared, blocks, strict=True)]
            world = Values(kept=self.kept)
        carry_out(term.sweeps("x", "y"), self.mechanism, here, world)
        demands = pivot_demands(self.mechanism, here, world)
        if any(isinstance(less < more, bool) and not less < more for less, more in demands):
            words = (
                "the loops are in a singular configuration at this q: rows that are independent "
                "elsewhere depend on each other, and their admittance has no inverse. "
                "See sl.Dynamics(model).diagnose(q)"
            )
            raise StateError.of(term.text, Refusal(Reason.SINGULAR_CLOSURE, words))
        y = self.found(self.mechanism, term.rows, here, world, "y")
        return np.array(y) if all(isinstance(v, float) for v in y) else tuple(y)

    def _prepared(self, level: int) -> list[Values]:
        """What the sweeps before a term of this level keep at the links; q never changes, so it is found once."""
        if level not in self._kept:
            self._kept[level] = self._prepare(level)
        return self._kept[level]

    def _prepare(self, level: int) -> list[Values]:
        assert self.q is not None
        here = [Values(q=tuple(self.q[link.q])) for link in self.mechanism.links]
        carry_out(
            preparation(self.mechanism, self.points(self.mechanism), level, self.kept), self.mechanism, here, Values()
        )
        tested = PivotTest(self.mechanism)
        pairs = tested.pairs(self.mechanism, here, None) if level else []
        if all(isinstance(x, float) for pair in pairs for x in pair):
            refusal = tested.refusal(self.mechanism, pairs) if pairs else None
            if refusal:
                raise StateError.of("operators", refusal)
        return here

    # ---- pictures

    def picture(self, matrix: np.ndarray, term: Term) -> str:
        """Which blocks are not zero, with the names of the rows."""
        names = self._names(term.rows)
        small = _NOTHING * max(np.abs(matrix).max(initial=0.0), 1e-300)
        lines = [f"{term.text}: {term.columns} to {term.rows}"]
        for name, rows in zip(names, self._groups(term.rows), strict=True):
            marks = [
                "#" if np.abs(matrix[np.ix_(rows, columns)]).max(initial=0.0) > small else "·"
                for columns in self._groups(term.columns)
            ]
            lines.append(f"{name:>{max(map(len, names))}}  {' '.join(marks)}")
        return "\n".join(lines)

    def _names(self, space: str) -> list[str]:
        if space == ROWS:
            return [x.name for x in self.model.loops]
        if space == FRAMES and self.closed:
            return [f"{x.name} on {body}" for x in self.model.loops for body in (x.a, x.b)]
        return list(self.frames) if space == FRAMES else [link.name for link in self.mechanism.links]

    def _groups(self, space: str) -> list[list[int]]:
        if space == ROWS:
            order = sorted(self.kept())
            return [[order.index(r) for r in c.rows if r in order] for c in self.mechanism.closures]
        if space == FRAMES:
            return [list(range(6 * k, 6 * k + 6)) for k in range(len(self.points(self.mechanism)))]
        return [list(places) for places in self.blocks(self.mechanism, space)]


def _checked(model: Model, q: Sequence[Any]) -> list[Any]:
    """q as a list: of its length, finite, quaternions of length 1."""
    values = [float(x) if isinstance(x, int | float | np.number) else x for x in q]
    if len(values) != model.nq:
        raise InputError(f"operators: q has {len(values)} entries; expected {model.nq} of model {model.name!r}")
    if any(isinstance(x, float) and not np.isfinite(x) for x in values):
        raise StateError.of("operators", Refusal(Reason.NOT_FINITE, "every entry of q must be finite"))
    for joint in model.joints:
        for part in joint.kind.unit_parts(tuple(values[model.q_slice(joint.name)])):
            if all(isinstance(x, float) for x in part) and abs(np.linalg.norm(part) - 1.0) > _UNIT:
                words = (
                    f"joint {joint.name!r} has a quaternion of length {np.linalg.norm(part):.9g}; "
                    f"expected 1 to within {_UNIT:g}. Divide it by its length"
                )
                raise StateError.of("operators", Refusal(Reason.QUATERNION, words))
    return values
