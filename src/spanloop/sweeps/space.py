"""The spaces of stacked vectors over a tree, and terms applied in them at given coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spanloop.errors import InputError, StateError
from spanloop.model import Model
from spanloop.sweeps.preparing import preparation
from spanloop.sweeps.program import Values
from spanloop.sweeps.terms import FRAMES, JOINTS, LINKS, Term
from spanloop.sweeps.walk import carry_out
from spanloop.topology import mechanism

_UNIT = 1e-6  # by how much a quaternion may miss length 1
_NOTHING = 1e-12  # of the largest entry: what counts as zero in a picture


class Algebra:
    """A model's tree, the frames of interest, and coordinates q, if they are known."""

    def __init__(self, model: Model, q: Sequence[Any] | None = None, frames: tuple[str, ...] = ()):
        self.model, self.frames = model, tuple(model.frame(name).name for name in frames)
        self.mechanism = mechanism(model)
        self.q = None if q is None else _checked(model, q)
        self._kept: dict[int, list[Values]] = {}

    def at(self, q) -> Algebra:
        return Algebra(self.model, q, self.frames)

    def anywhere(self) -> np.ndarray:
        """Coordinates without special values."""
        return self.model.random_state(np.random.default_rng(0))[0]

    @property
    def has_armature(self) -> bool:
        return any(not (isinstance(m, float) and m == 0.0) for link in self.mechanism.links for m in link.armature)

    # ---- spaces

    def size(self, space: str) -> int:
        """Length of a vector."""
        return {LINKS: 6 * len(self.mechanism.links), JOINTS: self.model.nv, FRAMES: 6 * len(self.frames)}[space]

    def blocks(self, m, space: str) -> tuple[tuple[int, ...], ...]:
        """Which entries of a vector belong to each link; those of frames fixed to the world belong to none."""
        if space == JOINTS:
            return tuple(tuple(range(link.v.start, link.v.stop)) for link in m.links)
        if space == LINKS:
            return tuple(tuple(range(6 * k, 6 * k + 6)) for k in range(len(m.links)))
        on = [m.anchors[name].link for name in self.frames]
        return tuple(
            tuple(6 * k + i for k, at in enumerate(on) if at == link.number for i in range(6)) for link in m.links
        )

    def joined(self, m, space: str, blocks: Sequence[Sequence[Any]]) -> list[Any]:
        """The vector of its blocks."""
        whole: list[Any] = [0.0] * self.size(space)
        for places, block in zip(self.blocks(m, space), blocks, strict=True):
            for k, x in zip(places, block, strict=True):
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
        here = [Values(**vars(h)) for h in self._prepared(term.level)]
        for h, places in zip(here, self.blocks(self.mechanism, term.columns), strict=True):
            h.x = tuple(values[k] for k in places)
        carry_out(term.sweeps("x", "y"), self.mechanism, here, Values())
        y = self.joined(self.mechanism, term.rows, [h.y for h in here])
        return np.array(y) if all(isinstance(v, float) for v in y) else tuple(y)

    def _prepared(self, level: int) -> list[Values]:
        """What the sweeps before a term of this level keep at the links; q never changes, so it is found once."""
        if level not in self._kept:
            self._kept[level] = self._prepare(level)
        return self._kept[level]

    def _prepare(self, level: int) -> list[Values]:
        assert self.q is not None
        here = [Values(q=tuple(self.q[link.q])) for link in self.mechanism.links]
        carry_out(preparation(self.mechanism, self.frames, level), self.mechanism, here, Values())
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
        return list(self.frames) if space == FRAMES else [link.name for link in self.mechanism.links]

    def _groups(self, space: str) -> list[list[int]]:
        if space == FRAMES:
            return [list(range(6 * k, 6 * k + 6)) for k in range(len(self.frames))]
        return [list(places) for places in self.blocks(self.mechanism, space)]


def _checked(model: Model, q: Sequence[Any]) -> list[Any]:
    """q as a list: of its length, finite, quaternions of length 1."""
    values = [float(x) if isinstance(x, int | float | np.number) else x for x in q]
    if len(values) != model.nq:
        raise InputError(f"operators: q has {len(values)} entries; expected {model.nq} of model {model.name!r}")
    if any(isinstance(x, float) and not np.isfinite(x) for x in values):
        raise StateError("operators: every entry of q must be finite")
    for joint in model.joints:
        for part in joint.kind.unit_parts(tuple(values[model.q_slice(joint.name)])):
            if all(isinstance(x, float) for x in part) and abs(np.linalg.norm(part) - 1.0) > _UNIT:
                raise StateError(
                    f"operators: joint {joint.name!r} has a quaternion of length {np.linalg.norm(part):.9g}; "
                    f"expected 1 to within {_UNIT:g}. Divide it by its length"
                )
    return values
