"""Which rows act while a set of switchable loops is closed: masks for the input `active` of kernels.

Which rows depend on others differs by set: two rigid grasps of one disc share rows that neither of them shares with the
world. A kernel takes the set as numbers, so the rows that it is to leave out are found beforehand, on floats at states
where the set is closed, as those of the whole mechanism are (redundancy.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from spanloop.algorithms.closed.redundancy import (
    TRACE,
    ClosureValues,
    Evaluate,
    closed_states,
    dependent_rows,
    is_isolated,
    redundant_rows,
    without_traces,
)

Rows = frozenset[int]


def row_mask(mechanism, active: Collection[str], near: np.ndarray | None = None) -> np.ndarray:
    """The mask (switched rows,) of one set of closed loops and couplings, for the kernel's input `active`."""
    return row_masks(mechanism, [active], near)[0]


def row_masks(
    mechanism,
    sets: Sequence[Collection[str]],
    near: np.ndarray | None = None,
    captures: Sequence[str] = (),
    evaluate: Evaluate | None = None,
) -> np.ndarray:
    """A row (switched rows,) for each set of closed loops and couplings: 1 for every switched row that the set needs,
    −1 for a row of a closed loop that depends on others, 0 for the rows of open ones.

    near: a state q (nq,) of the assembly; by default those near the neutral state. captures: loops and couplings that
    capture: any state closes them. evaluate: as of find_redundancy.
    """
    found = _Assemblies(ClosureValues(mechanism, evaluate), near, tuple(captures))
    masks = np.zeros((len(sets), len(mechanism.switched_rows)))
    for k in _smaller_first(sets):
        rows = _rows_of(mechanism, sets[k])
        idle = found.idle(rows) if rows else frozenset()
        masks[k] = [0.0 if r not in rows else -1.0 if r in idle else 1.0 for r in mechanism.switched_rows]
    return masks


def undetermined_rows(
    mechanism,
    sets: Sequence[Collection[str]],
    near: np.ndarray | None = None,
    captures: Sequence[str] = (),
    evaluate: Evaluate | None = None,
) -> list[Rows]:
    """For each set of closed loops and couplings, the rows (of permanent ones, too) that depend on others: how their
    forces are split is not determined. Rows without any effect, as those out of a plane, do not count."""
    found = _Assemblies(ClosureValues(mechanism, evaluate), near, tuple(captures))
    out: list[Rows] = [frozenset()] * len(sets)
    for k in _smaller_first(sets):
        out[k] = found.shared(_rows_of(mechanism, sets[k]))
    return out


def _smaller_first(sets: Sequence[Collection[str]]) -> list[int]:
    """Numbers of the sets: what a smaller set cannot close, a larger one cannot."""
    return sorted(range(len(sets)), key=lambda k: len(sets[k]))


def _rows_of(mechanism, names: Collection[str]) -> list[int]:
    return [r for name, own in mechanism.switches.items() if name in names for r in own]


class _Assemblies:
    """States at which sets of rows are closed, each found once, and the rows that depend on others there."""

    def __init__(self, closures: ClosureValues, near: np.ndarray | None, captures: tuple[str, ...]):
        m = closures.mechanism
        self.closures, self.near, self.captures = closures, near, captures
        self.permanent = sorted(set(range(m.n_rows)) - set(m.switched_rows))
        self.captured = {r for name in captures for r in m.switches[name]}
        self.states: dict[Rows, list[np.ndarray]] = {}  # by the switched rows that are closed there
        self.jacobians: dict[tuple[Rows, tuple[str, ...]], list[np.ndarray]] = {}

    def idle(self, rows: Sequence[int]) -> Rows:
        """Those of these switched rows that depend on the others and on the permanent ones."""
        order, jacobians = self._of(rows)
        if not jacobians:
            return frozenset()
        found = redundant_rows([J[order] for J in jacobians], first=len(self.permanent))
        return frozenset(order[k] for k in found) & frozenset(rows)

    def shared(self, rows: Sequence[int]) -> Rows:
        """Those of these switched rows and the permanent ones that depend on each other, but not those that vanish."""
        order, jacobians = self._of(rows)
        if not jacobians:
            return frozenset()
        sizes = np.max([np.linalg.norm(J, axis=1) for J in jacobians], axis=0)
        return dependent_rows(jacobians, [r for r in order if sizes[r] > TRACE])

    def _of(self, rows: Sequence[int]) -> tuple[list[int], list[np.ndarray]]:
        """The permanent rows, which stay, then these, and Jacobians of all rows at states that close them."""
        jacobians = self._jacobians(frozenset(rows) - self.captured, self.captures)
        if not jacobians:  # out of reach, or closed in one singular position only: as if all of them captured
            jacobians = self._jacobians(frozenset(), tuple(self.closures.mechanism.switches))
        return [*self.permanent, *rows], jacobians

    def _jacobians(self, closed: Rows, captures: tuple[str, ...]) -> list[np.ndarray]:
        key = closed, captures
        if key not in self.jacobians:
            m, states = self.closures.mechanism, self._states(closed)
            found = [without_traces(m, self.closures.captured_jacobian(q, captures)) for q in states]
            held = [*self.permanent, *closed]
            self.jacobians[key] = [] if is_isolated(m, states, [J[held] for J in found]) else found
        return self.jacobians[key]

    def _states(self, closed: Rows) -> list[np.ndarray]:
        if closed not in self.states:
            impossible = any(not found and fewer < closed for fewer, found in self.states.items())
            rows = [r for r in self.closures.mechanism.position_rows if r in closed or r in self.permanent]
            self.states[closed] = [] if impossible else closed_states(self.closures, rows, self.near)
        return self.states[closed]
