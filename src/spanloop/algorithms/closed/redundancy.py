"""Redundant closure rows of a mechanism, and closures whose rows depend on each other without the free body they hold.

Both are found on floats at assembled states, when a kernel is made [docs/theory/elimination.md, section 7]. Rows are
redundant if at every one of these states they depend on the rows that are kept. A mechanism may have several assemblies
with different redundancy, so every kernel tests the rows that it drops (dropped_rows.py), and `find_redundancy(near=q)`
learns the redundancy of the assembly that q belongs to.

Errors, rows and steps are dimensionless here: metres are divided by the characteristic lengths of loops and joints.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.tree.composite_body import mass_matrix
from spanloop.sweeps import walk
from spanloop.topology.captured_frames import captured_at
from spanloop.topology.tree_paths import meeting, path

TOLERANCE = 1e-8  # of the square of what is left of a row of unit length
TRACE = TOLERANCE**0.5  # of a row that is usual: what is shorter is a trace of misalignment
ROUNDED = 1e-8  # of a loop's length: rows of lengths are not compared with less
MISALIGNED = 1e-4  # closure error [rad, or of the loop's length] that is put down to slightly wrong axes
_STATES, _TRIES, _STEPS = 3, 12, 80
_WALKED = 20_000  # numbers of Jacobians: to compute more on floats takes longer than to compile kernels
_ROUNDED, _SMALL = 1e-9, 1e-3  # of the largest singular value: rounding of a dependent row, a nearly singular position
_TURN = 0.5  # rad, the most that a joint turns in one step; it slides as far as the loops are open, or this much
_WIDE, _NEAR = (0.2, 0.15), (0.02, 0.01)  # how far guesses are from neutral, from a given state: at first, and growth


@dataclass(frozen=True)
class Redundancy:
    """Which closure rows of a mechanism are redundant, and which states its kernels refuse."""

    dropped: frozenset[int] = frozenset()  # rows that are redundant at every configuration
    weak: frozenset[int] = frozenset()  # closures whose own admittance is deficient: after the free body
    refuses_singular: bool = False  # a kernel refuses positions at which rows that are kept lose rank
    is_known: bool = False  # closed states were found; without them nothing is dropped
    refuses_open: bool = True  # a kernel refuses positions at which a loop is open
    idle: frozenset[int] = frozenset()  # rows that can be switched and depend on others while all are active
    misaligned: float = 0.0  # share of a dropped row of unit length that does not depend on the kept ones
    yields: Callable[[], tuple[float, ...]] = field(default=tuple, compare=False, repr=False)  # per torque
    jacobians: tuple[np.ndarray, ...] = field(default=(), compare=False, repr=False)  # of all rows, at closed states


Evaluate = Callable[[str, np.ndarray], np.ndarray]  # (function, q): a function of closure_kinematics at one state


def find_redundancy(
    mechanism, near: np.ndarray | None = None, evaluate: Evaluate | None = None, captures: Sequence[str] = ()
) -> Redundancy:
    """The redundancy of a mechanism with loops, of the assemblies near its neutral state or near the state q given.

    Nothing is dropped where no assembled state is found: rows that depend on each other are then refused as singular.
    evaluate: computes closure_error, closure_facing and closure_jacobian faster than walks on floats do, after a while.
    captures: loops and couplings that capture; every state closes them. Those that can be switched and are open at
    `near` are taken as if they captured, and so are all of them where states do not close them together.
    """
    closures = ClosureValues(mechanism, evaluate)
    switches = tuple(mechanism.switches)
    if near is not None:
        captures = (*captures, *(x for x in _open_switches(closures, near) if x not in captures))
    permanent = _states_without(closures, switches, near)
    for held in (tuple(captures), switches):
        states = permanent if set(held) == set(switches) else _states_without(closures, held, near)
        found = _redundancy_at(closures, permanent, states, held)
        if found.is_known or held == switches:
            break
    return found


def _states_without(closures: ClosureValues, held: Sequence[str], near: np.ndarray | None) -> list[np.ndarray]:
    """A few states that close all rows but those of these switches."""
    m = closures.mechanism
    left_out = {r for name in held for r in m.switches[name]}
    return closed_states(closures, [r for r in m.position_rows if r not in left_out], near)


def _redundancy_at(
    closures: ClosureValues, permanent: Sequence[np.ndarray], states: Sequence[np.ndarray], held: Sequence[str]
) -> Redundancy:
    """The redundancy at states that close all loops but those held, which are captured there.

    permanent: states that close what cannot be switched; rows that depend on others at these states are dropped.
    """
    m = closures.mechanism
    if not states or not permanent:
        return Redundancy(refuses_singular=True)
    whole = [closures.captured_jacobian(q, held) for q in states]
    jacobians = [without_traces(m, J) for J in whole]
    movable = {*m.switched_rows, *m.given_rows}  # rows that stay, whatever they depend on
    own = [r for r in range(m.n_rows) if r not in movable]
    alone = jacobians if states is permanent else [without_traces(m, closures.jacobian(q)) for q in permanent]
    redundant = frozenset(own[k] for k in redundant_rows([J[own] for J in alone]))
    kept = [r for r in range(m.n_rows) if r not in redundant]
    captured = {r for name in held for r in m.switches[name]}
    if is_isolated(m, states, [J[[r for r in kept if r not in captured]] for J in jacobians]):
        return Redundancy(refuses_singular=True)
    return Redundancy(
        dropped=redundant,
        weak=_weak(m, jacobians, redundant),
        idle=frozenset(m.switched_rows) & dependent_rows(jacobians, kept),
        refuses_singular=True,
        is_known=True,
        misaligned=max((independent_share(J, kept, sorted(redundant)) for J in whole), default=0.0),
        yields=functools.partial(_torque_yields, m, states),
        jacobians=tuple(jacobians),
    )


def _open_switches(closures: ClosureValues, q: np.ndarray) -> list[str]:
    """Loops and couplings that can be switched and are open at q."""
    switches = closures.mechanism.switches
    error = np.abs(closures.error(q)) if switches else np.zeros(0)
    return [name for name, rows in switches.items() if error[list(rows)].max(initial=0.0) > closure_kinematics.OPEN]


def independent_share(J: np.ndarray, kept: Sequence[int], dropped: Sequence[int]) -> float:
    """The largest part of any dropped row of a scaled Jacobian (n_rows, nv) that is independent of the kept rows."""
    if not len(dropped):
        return 0.0
    rows, (_, s, Vt) = J[list(dropped)], np.linalg.svd(J[list(kept)], full_matrices=False)
    basis = Vt[s > TRACE * s.max(initial=0.0)]
    rest = rows - (rows @ basis.T) @ basis
    return float(np.linalg.norm(rest, axis=1).max(initial=0.0))


def redundant_rows(jacobians: Sequence[np.ndarray], tolerance: float = TOLERANCE, first: int = 0) -> frozenset[int]:
    """Rows that depend on the others at every one of the states; rows before number `first` are kept if they can be.

    Gram-Schmidt on rows of unit length, at all states side by side: the row that is best where it is worst is kept
    next (23), until what is left of every other row vanishes at every state. Rows that still matter somewhere are all
    kept.
    """
    rests = []
    for J in jacobians:
        length = np.linalg.norm(J, axis=1, keepdims=True)
        some = length > 1e-12 * max(length.max(initial=0.0), 1e-300)
        rests.append(np.where(some, J / np.maximum(length, 1e-300), 0.0))
    left = list(range(len(jacobians[0])))
    while left:
        sizes = np.array([[rest[r] @ rest[r] for r in left] for rest in rests])
        worth = sizes.min(axis=0) - 1e-9 * np.arange(len(left))  # the earlier row where they are equal
        worth += [2.0 if r < first and w > tolerance else 0.0 for r, w in zip(left, worth, strict=True)]
        best = int(np.argmax(worth))
        if sizes[:, best].min() <= tolerance:
            return frozenset(r for k, r in enumerate(left) if sizes[:, k].max() <= tolerance)
        r = left.pop(best)
        for rest, size in zip(rests, sizes[:, best], strict=True):
            e = rest[r] / np.sqrt(size)
            rest -= np.outer(rest @ e, e)
    return frozenset()


def without_traces(mechanism, J: np.ndarray) -> np.ndarray:
    """A scaled Jacobian without rows that are there only because an axis is slightly misaligned.

    Rows of angles are compared with 1, rows of lengths with the longest of their closure if that is more than rounding.
    """
    out = J.copy()
    for c in mechanism.closures:
        rows = np.array(c.rows, dtype=int)
        size = np.linalg.norm(J[rows], axis=1)
        lengths = np.array([c.row_kind(k) == "force" for k in range(len(rows))], dtype=bool)
        scale = np.where(lengths, max(size[lengths].max(initial=0.0), ROUNDED), 1.0)
        out[rows[size <= TRACE * scale]] = 0.0
    return out


def closed_states(closures: ClosureValues, rows: Sequence[int], near: np.ndarray | None = None) -> list[np.ndarray]:
    """A few configurations with these rows closed, from random guesses near the neutral one or near q; none if that
    fails."""
    mechanism, rng = closures.mechanism, np.random.default_rng(0)
    start, (first, growth) = (_neutral(mechanism), _WIDE) if near is None else (near, _NEAR)
    out: list[np.ndarray] = []
    doubtful: list[np.ndarray] = []
    for attempt in range(2 * _TRIES):
        guess = _moved(mechanism, start, rng.uniform(-1, 1, mechanism.nv) * (first + growth * (attempt % _TRIES)))
        q = _closed(closures, guess, rows)
        if q is not None:
            (doubtful if _is_nearly_singular(closures, q, rows) else out).append(q)
        if len(out) == _STATES or (attempt >= _TRIES and out):
            break
    return out or doubtful[:_STATES]


def _is_nearly_singular(closures: ClosureValues, q: np.ndarray, rows: Sequence[int]) -> bool:
    """Is a singular value small, but no rounding? Guesses that cannot be closed regularly end at singular positions."""
    s = np.linalg.svd(closures.jacobian(q)[list(rows)], compute_uv=False)
    return bool(((s > _ROUNDED * s.max(initial=0.0)) & (s < _SMALL * s.max(initial=0.0))).any())


def _closed(closures: ClosureValues, q: np.ndarray, rows: Sequence[int]) -> np.ndarray | None:
    """Damped Gauss-Newton on the closure error."""
    mechanism, error = closures.mechanism, closures.error(q)[rows]
    sliding = np.array([unit == "m" for link in mechanism.links for unit in link.kind.units], dtype=bool)
    yields = np.array(mechanism.step_lengths) / np.array(mechanism.dof_lengths)
    damping = 1e-3
    for _ in range(_STEPS):
        size = float(np.linalg.norm(error))
        if size < 1e-11 or (damping > 1.0 and size < MISALIGNED):
            break
        J = closures.jacobian(q)[rows] * yields
        brake = max(damping * min(1.0, size), 1e-10 * np.sum(J * J) / mechanism.nv)
        step = -np.linalg.solve(J.T @ J + brake * np.eye(mechanism.nv), J.T @ error)
        most = np.where(sliding, max(_TURN, size), _TURN)
        step *= min(1.0, 1.0 / max((np.abs(step) / most).max(), 1e-12))
        trial = _moved(mechanism, q, step)
        trial_error = closures.error(trial)[rows]
        if np.linalg.norm(trial_error) < size:
            q, error, damping = trial, trial_error, max(damping * 0.2, 1e-14)
        else:
            damping = min(damping * 8.0, 1e3)
    closed = np.linalg.norm(error) < MISALIGNED and closures.facing(q, rows).min(initial=1.0) > 0.0
    return q if closed else None


def is_isolated(mechanism, states: Sequence[np.ndarray], jacobians: Sequence[np.ndarray]) -> bool:
    """Do all guesses lead to one state although the rows leave a motion there? Then it is a singular position."""
    ranks = [int(np.linalg.matrix_rank(J, tol=TRACE)) for J in jacobians]
    if len(states) < 2 or max(ranks) >= mechanism.nv:
        return False
    apart = np.max([np.abs(q - states[0]) / _coordinate_lengths(mechanism) for q in states[1:]])
    return bool(apart < _NEAR[0] * TRACE**0.5)


def _coordinate_lengths(mechanism) -> np.ndarray:
    """By which each entry of q is divided: a characteristic length for metres, 1 for angles and quaternions."""
    out: list[float] = []
    for link in mechanism.links:
        own = mechanism.dof_lengths[link.v]
        sliding = [x for x, unit in zip(own, link.kind.units, strict=True) if unit == "m"]
        out += own if link.kind.nq == link.kind.nv else [1.0] * (link.kind.nq - len(sliding)) + sliding
    return np.array(out)


def _weak(mechanism, jacobians: Sequence[np.ndarray], dropped: frozenset[int]) -> frozenset[int]:
    """Closures on free bodies whose rows depend on each other without the DoFs of these bodies and of driven joints."""
    floating = [link.number for link in mechanism.links if link.floats]
    if not floating:
        return frozenset()
    given = [link.number for link in mechanism.links if link.driven]
    columns = [c for i in floating + given for c in range(mechanism.links[i].v.start, mechanism.links[i].v.stop)]
    touching = [c for c in mechanism.closures if _touches(mechanism, c, floating)]
    theirs = [r for c in touching for r in c.rows if r not in dropped]
    others = [r for r in range(mechanism.n_rows) if r not in dropped and r not in theirs]
    rows = others + theirs
    without = [np.delete(J[rows], columns, axis=1) for J in jacobians]
    dependent = {rows[k] for k in redundant_rows(without, 1e-7, first=len(others))}
    return frozenset(c.number for c in touching if dependent & set(c.rows))


def _torque_yields(mechanism, states: Sequence[np.ndarray]) -> tuple[float, ...]:
    """The acceleration of each DoF without loops for a unit torque at it, the largest at any of the states (nv,).

    0 where no state has a finite mass matrix (coordinates of 1e200): rows that are left out then count as open.
    """
    n, lengths = mechanism.nv, np.array(mechanism.dof_lengths)
    found = [np.zeros(n)]
    for q in states:
        M = np.reshape(walk(mass_matrix(mechanism), mechanism, {"q": q.tolist()}), (n, n)).astype(float)
        if np.isfinite(M).all():
            found.append(np.diag(np.linalg.pinv(M * np.outer(lengths, lengths))) * lengths)
    return tuple(np.max(found, axis=0).tolist())


def dependent_rows(jacobians: Sequence[np.ndarray], rows: Sequence[int]) -> frozenset[int]:
    """Those of the rows that take part in a dependency at any of the states."""
    out: set[int] = set()
    for J in jacobians:
        U, s, _ = np.linalg.svd(J[rows])
        null = U[:, int(np.sum(s > TRACE * s.max(initial=0.0))) :]
        out |= {r for r, x in zip(rows, np.linalg.norm(null, axis=1), strict=True) if x > TRACE}
    return frozenset(out)


def _touches(mechanism, closure, floating: Sequence[int]) -> bool:
    parents = mechanism.parents
    ends = [path(parents, closure.a.link), path(parents, closure.b.link)]
    top = meeting(parents, closure.a.link, closure.b.link)
    return any(i in end[: end.index(top)] for end in ends for i in floating)


def _neutral(mechanism) -> np.ndarray:
    return np.array([x for link in mechanism.links for x in link.kind.neutral()])


def _moved(mechanism, q: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """q after a step whose slides are in shares of their loops' lengths."""
    delta = delta * np.array(mechanism.step_lengths)
    moved = [
        x
        for link in mechanism.links
        for x in link.kind.plus(tuple(map(float, q[link.q])), tuple(map(float, delta[link.v])))
    ]
    return np.array(moved)


@dataclass
class ClosureValues:
    """Errors and rows of a mechanism's closures at one state, without units."""

    mechanism: Any
    evaluate: Evaluate | None = None  # takes over where walks on floats would take longer
    effort: int = 0  # numbers computed so far

    def error(self, q: np.ndarray) -> np.ndarray:
        return self._values("closure_error", q) / np.array(self.mechanism.row_lengths)

    def facing(self, q: np.ndarray, rows: Sequence[int]) -> np.ndarray:
        """Of the closures that have one of these rows."""
        of_rows = [c.number for c in self.mechanism.closures if set(c.rows).intersection(rows)]
        return self._values("closure_facing", q)[of_rows] if of_rows else np.ones(0)

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """J (n_rows, nv), its rows divided and its columns multiplied by characteristic lengths."""
        return self._scaled(self._values("closure_jacobian", q))

    def captured_jacobian(self, q: np.ndarray, captures: Sequence[str]) -> np.ndarray:
        """The same with these loops captured at q."""
        if not captures:
            return self.jacobian(q)
        m = captured_at(self.mechanism, q.tolist(), captures)
        return self._scaled(np.array(walk(closure_kinematics.closure_jacobian(m), m, {"q": q.tolist()}), dtype=float))

    def _scaled(self, J: np.ndarray) -> np.ndarray:
        m = self.mechanism
        scaled: np.ndarray = J.reshape(m.n_rows, m.nv) / np.array(m.row_lengths)[:, None] * np.array(m.dof_lengths)
        return scaled

    def _values(self, function: str, q: np.ndarray) -> np.ndarray:
        self.effort += self.mechanism.n_rows * (self.mechanism.nv if function == "closure_jacobian" else 1)
        if self.evaluate is not None and self.effort > _WALKED:
            return self.evaluate(function, q)
        program = getattr(closure_kinematics, function)(self.mechanism)
        return np.array(walk(program, self.mechanism, {"q": q.tolist()}), dtype=float)


def scaled_jacobian(mechanism, q: np.ndarray) -> np.ndarray:
    """J (n_rows, nv) at one state, its rows divided and its columns multiplied by characteristic lengths."""
    return ClosureValues(mechanism).jacobian(q)
