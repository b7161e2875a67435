"""Assembly: closed states from a rough guess, by damped Gauss-Newton steps within joint limits; projection.

With J = U S Vᵀ a step is dq = −V S (S² + μ)⁻¹ Uᵀ e, which is the shortest one where rows are redundant. The damping μ
falls while the error does. A guess from which no step helps (links all in a line) is shaken and tried again.

Numbers rounded in a file leave planar loops open along redundant rows, which no joint closes. Such a loop is closed
along the other rows, as kernels and projection close it, and a warning names what stays open: the model's own error.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, Reason, Refusal, SpanloopWarning, listed
from spanloop.loops.assembly.least_strain import LeastStrain, strain_energies
from spanloop.loops.batching import Computed, Refusals, Robot, over_states, resolution, values
from spanloop.loops.closure_errors import (
    errors,
    idle,
    joints_around,
    largest_rows,
    mechanism_of,
    positional,
    relative_errors,
    rows_of,
    worst,
)
from spanloop.loops.constraint_rank import by_assembly, structure
from spanloop.loops.reduced_inertia import Weighted
from spanloop.model import Model
from spanloop.model.parts import Joint
from spanloop.model.poses import default_position
from spanloop.model.user_input import by_name

SMALL = 1e-3  # rad, or of the loop's length: what a slightly misaligned axis may leave open

TURN = 0.5  # rad, the most that a joint turns in one step

_SHAKES = (0.0, 0.05, 0.15, 0.4, 0.8, 1.2)  # rad, or of the loop's length: shakes of the guess, one after the other

_CUT = 1e-10  # of the largest singular value: what is smaller counts as zero

_DAMPING, _STUCK = 1e-2, 1e6  # in squares of the largest singular value: at first, and when no step helps


def assemble(
    robot: Robot,
    guess: ArrayLike | Mapping[str, ArrayLike],
    fixed: Sequence[str] = (),
    *,
    tolerance: float = 1e-12,
    max_steps: int = 100,
    limits: str = "keep",
    room: float = 0.0,
) -> np.ndarray:
    """Coordinates q (..., nq) near the guess at which all loops are closed to `tolerance` [rad, or of their length].

    guess: (..., nq), or {"joint": coordinate}, the others where runs start by default
    fixed: names of joints that do not move. limits: "keep" leaves joints of one DoF within their limits, "ignore" does
    not; room: of their range, and rad or m at most, by which they stay inside. max_steps: for each of six attempts. A
    single guess that leads nowhere raises StateError, which names the loop; in a batch its row is NaN. Redundant rows
    that the model's own numbers leave open (by less than 1e-3) stay open, with a warning. Loops that constrain
    velocities alone have no position to be brought to, which a warning says. Flexible bodies bend only if joints alone
    do not close the loops, and then with the least strain; a warning says so where joints leave more than 1e-3 open.
    """
    _check(tolerance, max_steps, limits)
    _warn_of_velocity_loops(robot.model)
    fixed = (fixed,) if isinstance(fixed, str) else tuple(fixed)
    bounds = Limits(robot.model, fixed, are_kept=limits == "keep", room=room)
    rows = np.flatnonzero(positional(robot.model))
    task = _Task(robot, bounds, max(tolerance, 100.0 * resolution(robot)), max_steps, rows)
    bent: list[tuple[float, np.ndarray, np.ndarray]] = []

    def compute(q: np.ndarray) -> Computed:
        start = task.limits.within(q)
        best, size, stiff, apart = task.closed_with_little_bending(start, fixed)
        for attempt, shake in enumerate(_SHAKES):
            left = np.flatnonzero(size > task.tolerance)
            if not len(left):
                break
            found = task.descended(task.shaken(start[left], shake, attempt))
            reached = task.openness(found)
            better = reached < size[left]
            best[left[better]], size[left[better]] = found[better], reached[better]
            size[left[better]] = np.where(task.fit(best, left[better]), 0.0, reached[better])
        refused = np.flatnonzero(size > task.tolerance)
        bends = np.flatnonzero((apart > SMALL) & (size <= task.tolerance))
        bent.extend((float(apart[k]), stiff[k], best[k]) for k in bends)
        return (best,), {int(k): task.refusal(best[k], fixed, q[0] if len(q) == 1 else None) for k in refused}

    if isinstance(guess, Mapping):
        guess = by_name(robot.model, guess, default_position(robot.model), "q", "assemble")
    found = over_states("assemble", robot, compute, q=(guess, robot.model.nq))[0]
    _warn_of_misfit(robot, found, task.tolerance)
    _warn_of_bending(robot, bent)
    return found


def descended(robot: Robot, q: np.ndarray, limits: Limits, is_near: bool = False) -> np.ndarray:
    """States (n, nq) near q (n, nq) with smaller errors, closed where steps lead there: one attempt, no refusal.

    is_near: a few steps of Newton's method are enough, or the state is not worth more.
    """
    rows, steps, damping = np.flatnonzero(positional(robot.model)), 8 if is_near else 40, 1e-9 if is_near else _DAMPING
    task = _Task(robot, limits, max(1e-12, 100.0 * resolution(robot)), steps, rows)
    return task.descended(limits.within(q), damping)


def _check(tolerance: object, max_steps: object, limits: object) -> None:
    if limits not in ("keep", "ignore"):
        raise InputError(f"assemble: limits is {limits!r}; expected 'keep' or 'ignore'")
    if not (isinstance(tolerance, int | float | np.integer | np.floating) and 0.0 < tolerance < np.inf):
        raise InputError(f"assemble: tolerance is {tolerance!r}; must be a positive number [rad, or of loops' lengths]")
    if not (isinstance(max_steps, int | np.integer) and max_steps > 0):
        raise InputError(f"assemble: max_steps is {max_steps!r}; must be a positive whole number")


@dataclass(frozen=True)
class _Task:
    """Closing the loops of one robot, for rows of states."""

    robot: Robot
    limits: Limits
    tolerance: float
    max_steps: int
    rows: np.ndarray  # numbers of the rows that are closed

    def error(self, q: np.ndarray) -> np.ndarray:
        """The errors (n, rows) of the rows that are closed, without units."""
        return relative_errors(self.robot, q)[:, self.rows]

    def openness(self, q: np.ndarray) -> np.ndarray:
        """The largest error (n,) of each state."""
        found: np.ndarray = np.abs(self.error(q)).max(axis=1, initial=0.0)
        return found

    def fit(self, q: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Close those of the states q[some] along the rows that are not redundant that only redundant ones leave open.

        True for the states (some,) at which that succeeds; their rows of q are replaced.
        """
        fits = np.zeros(len(some), dtype=bool)
        size = self.openness(q[some])
        for i in np.flatnonzero((size > self.tolerance) & (size < SMALL)):
            here = structure(self.robot, q[some[i]])
            task = replace(self, rows=np.intersect1d(self.rows, here.kept))
            if here.general and len(task.rows) < len(self.rows):
                found = task.descended(q[some[i]][None])
                if task.openness(found)[0] <= self.tolerance and self.openness(found)[0] < SMALL:
                    q[some[i]], fits[i] = found[0], True
        return fits

    def closed_with_little_bending(
        self, q: np.ndarray, fixed: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """States that joints close as far as they can, and modes from there; their errors, infinite for others.

        Then the states that joints alone reach, and by how much (n,) these are open.
        """
        model, size = self.robot.model, np.full(len(q), np.inf)
        modes = [j.name for j in model.joints if j.kind.bends]
        if not modes:
            return q.copy(), size, q, np.zeros(len(q))
        limits = Limits(model, (*fixed, *modes), self.limits.are_kept, self.limits.share)
        stiff, apart = replace(self, limits=limits)._nearly_closed(q)
        best, open_ = stiff.copy(), np.flatnonzero(apart > self.tolerance)
        best[open_] = LeastStrain(model, self, self.limits.fixed).closed(stiff[open_])
        reached = self.openness(best)
        size = np.where(reached <= self.tolerance, reached, np.inf)
        return np.where(np.isfinite(size)[:, None], best, q), size, stiff, apart

    def _nearly_closed(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (n, nq) as nearly closed as shaken guesses lead to, to SMALL at least if they do; their errors."""
        best, size = q.copy(), np.full(len(q), np.inf)
        for attempt, shake in enumerate(_SHAKES):
            left = np.flatnonzero(size > SMALL)
            if not len(left):
                break
            found = self.descended(self.shaken(q[left], shake, attempt))
            reached = self.openness(found)
            better = reached < size[left]
            best[left[better]], size[left[better]] = found[better], reached[better]
        return best, size

    def shaken(self, q: np.ndarray, shake: float, attempt: int) -> np.ndarray:
        """The guesses moved at random, all in the same way: a state's answer does not depend on its batch."""
        if not shake:
            return q
        step = shake * np.random.default_rng(attempt).uniform(-1.0, 1.0, self.limits.nv) * self.dof_lengths
        there = self.moved(q, np.where(self.limits.fixed, 0.0, step))
        apart = ~np.abs(self.jacobian(np.concatenate([q, there]))).any(axis=(0, 1))  # joints that are in no loop
        return self.limits.within(self.moved(q, np.where(self.limits.fixed | apart, 0.0, step)))

    def descended(self, q: np.ndarray, first_damping: float = _DAMPING) -> np.ndarray:
        """States (n, nq) of smaller error, closed where the descent succeeds."""
        q, e = q.copy(), self.error(q)
        damping = np.full(len(q), first_damping)
        for _ in range(self.max_steps):
            busy = np.flatnonzero((np.abs(e).max(axis=1, initial=0.0) > self.tolerance) & (damping < _STUCK))
            if not len(busy):
                break
            J = self.jacobian(q[busy])
            step = self._step(q[busy], J, e[busy], damping[busy])
            trial = self.moved(q[busy], step)
            trial_error = self.error(trial)
            promised = _square(e[busy]) - _square(e[busy] + np.einsum("nrv,nv->nr", J, step / self.dof_lengths))
            gained = _square(e[busy]) - _square(trial_error)
            better, as_promised = gained > 0.0, gained > 0.5 * promised
            q[busy[better]], e[busy[better]] = trial[better], trial_error[better]
            factor = np.where(as_promised, 0.1, np.where(gained > 0.1 * promised, 1.0, 5.0))
            damping[busy] = np.maximum(factor * damping[busy], 1e-16)
        return q

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """The rows of positions (n, rows, nv), without units."""
        lengths = np.array(mechanism_of(self.robot.model).row_lengths)[:, None]
        J = values(self.robot, "closure_jacobian", q) / lengths * self.dof_lengths
        return J[:, self.rows]

    @property
    def dof_lengths(self) -> np.ndarray:
        """What makes steps (nv,) free of units."""
        return np.array(mechanism_of(self.robot.model).step_lengths)

    def moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The states after steps (n, nv), within the limits."""
        return self.limits.within(values(self.robot, "integrate", q, step))

    def _step(self, q: np.ndarray, J: np.ndarray, e: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """A damped step (n, nv) [rad, m]; DoF that would leave their limits stay, and the others compensate."""
        down, up = self.limits.room(q)
        free = np.ones(down.shape, dtype=bool)
        for _ in range(4):
            step = _damped(J * free[:, None, :], e, damping) * self.dof_lengths
            blocked = free & (((step > 0.0) & (up == 0.0)) | ((step < 0.0) & (down == 0.0)))
            if not blocked.any():
                break
            free &= ~blocked
        turn = np.abs(np.where(self._turning, step, 0.0)).max(axis=1, initial=1e-300)
        return np.clip(step * np.minimum(1.0, TURN / turn)[:, None], down, up)

    @property
    def _turning(self) -> np.ndarray:
        return np.array([unit == "rad" for j in self.robot.model.joints for unit in j.kind.units], dtype=bool)

    def outside(self, guess: np.ndarray, fixed: Sequence[str], around: Collection[str]) -> str:
        """If the loops close from the guess without limits: the joints `around` one that are then beyond theirs."""
        free = replace(self, limits=Limits(self.robot.model, fixed, are_kept=False))
        q = free.descended(guess[None])
        beyond = self.limits.beyond(q[0], around)
        if not beyond or free.openness(q)[0] > SMALL:
            return ""
        return f". Without limits it closes where {listed(beyond, 4)}; limits='ignore' allows that"

    def refusal(self, q: np.ndarray, fixed: Sequence[str], guess: np.ndarray | None = None) -> Refusal:
        """Which loop stays open, by how much, and what to try; from a guess also whether limits keep it open."""
        model = self.robot.model
        miss = worst(model, errors(self.robot, q[None])[0])
        if miss.name in idle(model):
            sentence = (
                f"{miss.what} is open by {miss.by()}, and no joint lies between its bodies. Move one of its frames"
            )
            return Refusal(Reason.NOT_CLOSABLE, sentence)
        around = joints_around(model, miss.name)
        held, reached = ([x for x in names if x in around] for names in (fixed, self.limits.reached(q)))
        advice = [f"fix fewer joints ({listed(map(repr, held), 5)})"] if held else []
        advice += [f"widen the limits of {listed(map(repr, reached), 5)}"] if reached else []
        advice += [f"accept that with tolerance={2.0 * miss.size:.0e}"] if miss.size < SMALL else []
        advice += ["try another guess", "look at the frames and lengths around it"]
        text = ", ".join(advice[:-1]) + ", or " + advice[-1]
        sentence = f"{miss.what} stays open by {miss.by()} at the nearest position found. {text[0].upper()}{text[1:]}"
        limited = "" if guess is None else self.outside(guess, fixed, around)
        return Refusal(Reason.NOT_CLOSABLE, sentence + limited)


def _warn_of_misfit(robot: Robot, q: np.ndarray, tolerance: float) -> None:
    """Warn of redundant rows that the model's numbers leave open, at states q (..., nq) that are closed otherwise."""
    states = q.reshape(-1, q.shape[-1])
    states = states[np.isfinite(states).all(axis=1)]
    if not len(states):
        return
    e = relative_errors(robot, states) * positional(robot.model)
    k = int(np.argmax(np.abs(e).max(axis=1, initial=0.0)))
    if np.abs(e[k]).max(initial=0.0) > tolerance:
        warnings.warn(
            f"assemble: {largest_rows(robot.model, errors(robot, states[k : k + 1])[0])}: redundant, no joint closes "
            "that; the model's own numbers leave it open. The other rows are closed, and motions follow them",
            SpanloopWarning,
            stacklevel=4,
        )


def _warn_of_bending(robot: Robot, bent: Sequence[tuple[float, np.ndarray, np.ndarray]]) -> None:
    """Warn of flexible bodies that were bent to close what joints leave open.

    bent: how far joints leave a state open, that state, and the closed one (nq,).
    """
    if not bent:
        return
    _, stiff, closed = max(bent, key=lambda found: found[0])
    miss, strained = worst(robot.model, errors(robot, stiff[None])[0]), strain_energies(robot.model, closed)
    words = listed((f"{name!r} with {energy:.3g} J" for name, energy in strained.items()), 4)
    warnings.warn(
        f"assemble: joints alone leave {miss.what} open by {miss.by()}; flexible bodies are bent to close it: {words} "
        "of strain energy. Name or fix fewer joints, try another guess, or look at the frames and lengths around it",
        SpanloopWarning,
        stacklevel=4,
    )


def velocity_loops(model: Model, whole: bool = False) -> tuple[str, ...]:
    """Names of the loops with rows that constrain velocities alone, driven ones included; whole: with no other rows."""
    rows = rows_of(model)
    own = [[r.positional for r in rows if r.owner == k] for k in range(len(model.loops))]
    return tuple(
        x.name for x, found in zip(model.loops, own, strict=True) if found and not (any if whole else all)(found)
    )


def _warn_of_velocity_loops(model: Model) -> None:
    names = velocity_loops(model, whole=True)
    if names:
        warnings.warn(
            f"assemble: {listed(map(repr, names), 4)} constrains velocities alone (a general joint, or driven): no "
            "position closes it, and its frames stay as far apart as they are. Close it by another kind of joint",
            SpanloopWarning,
            stacklevel=4,
        )


def _damped(J: np.ndarray, e: np.ndarray, damping: np.ndarray) -> np.ndarray:
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    largest = s.max(axis=1, initial=1e-100, keepdims=True)
    gain = np.where(s > _CUT * largest, s / (s * s + damping[:, None] * largest * largest), 0.0)
    return -np.einsum("nkv,nk,nrk,nr->nv", Vt, gain, U, e, optimize=True)


def _square(e: np.ndarray) -> np.ndarray:
    return np.einsum("nr,nr->n", e, e)


# ---- limits of joints with one DoF, as arrays


_NEAR = 1e-12  # rad or m: this near to a limit is at it


class Limits:
    """Where limited joints stand in q and v, and how far they may go; joints in `fixed` do not move at all."""

    def __init__(self, model: Model, fixed: Sequence[str] = (), are_kept: bool = True, room: float = 0.0):
        """are_kept: False leaves all limits out; room: a share of the range, at most as many rad or m, inside."""
        self.nv, self.are_kept, self.share = model.nv, are_kept, room
        self.fixed = np.zeros(model.nv, dtype=bool)
        for name in fixed:
            self.fixed[model.v_slice(name)] = True
        joints = [j for j in model.joints if are_kept and _limited(j) and j.name not in fixed]
        self.names = [j.name for j in joints]
        self.in_q = np.array([model.q_slice(j.name).start for j in joints], dtype=int)
        self.in_v = np.array([model.v_slice(j.name).start for j in joints], dtype=int)
        self.lower = np.array([-np.inf if j.lower is None else j.lower[0] for j in joints])
        self.upper = np.array([np.inf if j.upper is None else j.upper[0] for j in joints])
        inset = np.minimum(room * (self.upper - self.lower), room) if room else 0.0
        self.lower, self.upper = self.lower + inset, self.upper - inset

    def within(self, q: np.ndarray) -> np.ndarray:
        """q (n, nq) with joints beyond a limit moved to it."""
        q = np.array(q)
        q[:, self.in_q] = np.clip(q[:, self.in_q], self.lower, self.upper)
        return q

    def room(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest step (n, nv) that every DoF may take from q."""
        down, up = np.full((len(q), self.nv), -np.inf), np.full((len(q), self.nv), np.inf)
        down[:, self.in_v] = self.lower - q[:, self.in_q]
        up[:, self.in_v] = self.upper - q[:, self.in_q]
        down[:, self.fixed] = up[:, self.fixed] = 0.0
        return np.where(down > -_NEAR, 0.0, down), np.where(up < _NEAR, 0.0, up)

    def reached(self, q: np.ndarray) -> list[str]:
        """Names of the joints that stand at a limit in one state q (nq,)."""
        x = q[self.in_q]
        at = (x <= self.lower + _NEAR) | (x >= self.upper - _NEAR)
        return [name for name, here in zip(self.names, at, strict=True) if here]

    def beyond(self, q: np.ndarray, names: Collection[str]) -> list[str]:
        """Those of the joints that are beyond a limit in one state q (nq,), with where they are, and the limits."""
        numbers = zip(self.names, q[self.in_q], self.lower, self.upper, strict=True)
        return [
            f"{name!r} is at {x:.4g}, outside {low:.4g} to {up:.4g}"
            for name, x, low, up in numbers
            if name in names and not low - _NEAR <= x <= up + _NEAR
        ]


def _limited(joint: Joint) -> bool:
    return joint.kind.nv == joint.kind.nq == 1 and (joint.lower is not None or joint.upper is not None)


# ---- projection: drifted states brought back to closed loops by the change of least kinetic energy


_STEPS = 12

_ROUNDING = 8.0  # times the resolution: rates of closed rows that are zero but for rounding
_TARGET, _ENOUGH = 1e-14, 1e-11  # rad, or of the loop's length: where steps end, and what must be reached


@overload
def project(robot: Robot, q: ArrayLike, v: None = None) -> np.ndarray: ...


@overload
def project(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]: ...


def project(robot: Robot, q: ArrayLike, v: ArrayLike | None = None) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """q (..., nq) with the loops closed; with v also v (..., nv) with J v = 0: (q, v).

    Positions by Newton steps −M⁻¹Jᵀ(J M⁻¹ Jᵀ)⁺ e, velocities by one such step on J v. For small errors; `assemble`
    closes large ones. Driven joints stay as they are.
    """
    model = robot.model
    if v is None:
        positions = by_assembly(robot, lambda x: _positions(robot, x))
        return over_states("project", robot, positions, q=(q, model.nq))[0]

    def compute(q: np.ndarray, v: np.ndarray) -> Computed:
        (closed,), refusals = _positions(robot, q)
        return (closed, v + _velocity_correction(robot, closed, v)), refusals

    closed, slow = over_states("project", robot, by_assembly(robot, compute), q=(q, model.nq), v=(v, model.nv))
    return closed, slow


def _positions(robot: Robot, q: np.ndarray) -> tuple[tuple[np.ndarray], Refusals]:
    q, rows = q.copy(), None
    target, enough = (max(x, y * resolution(robot)) for x, y in ((_TARGET, 10.0), (_ENOUGH, 1000.0)))
    for _ in range(_STEPS):
        rows, e = _kept_positions(robot, q), relative_errors(robot, q)
        busy = np.flatnonzero(np.abs(e[:, rows]).max(axis=1, initial=0.0) > target)
        if not len(busy):
            break
        m = mechanism_of(robot.model)
        J = (values(robot, "closure_jacobian", q[busy]) / np.array(m.row_lengths)[:, None])[:, rows]
        lengths = np.maximum(np.linalg.norm(J * m.dof_lengths, axis=2), 1e-12)
        step = Weighted(robot, q[busy], J / lengths[:, :, None]).correction(e[busy][:, rows] / lengths)
        moved = values(robot, "integrate", q[busy], step)
        size = np.linalg.norm(relative_errors(robot, moved)[:, rows], axis=1)
        smaller = size < np.linalg.norm(e[busy][:, rows], axis=1)
        if not smaller.any():
            break
        q[busy[smaller]] = moved[smaller]
    e = relative_errors(robot, q)
    rows = _kept_positions(robot, q)
    left, anywhere = (np.abs(x).max(axis=1, initial=0.0) for x in (e[:, rows], e))
    return (q,), {int(k): _not_projected(robot, q[k]) for k in np.flatnonzero((left > enough) | (anywhere > SMALL))}


def _kept_positions(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Rows that constrain positions and are not redundant."""
    kept = structure(robot, q[0] if len(q) else robot.model.neutral()).kept
    return kept[positional(robot.model)[kept]]


def _velocity_correction(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    rows = structure(robot, q[0] if len(q) else robot.model.neutral())
    J = rows.unit_rows(values(robot, "closure_jacobian", q))
    rates, rounding = np.einsum("nrv,nv->nr", J, v), np.einsum("nrv,nv->nr", np.abs(J), np.abs(v))
    busy = np.flatnonzero(~(np.abs(rates) <= _ROUNDING * resolution(robot) * rounding).all(axis=1))
    out = np.zeros(v.shape)
    if len(busy):
        out[busy] = Weighted(robot, q[busy], J[busy]).correction(rates[busy])
    return out


def _not_projected(robot: Robot, q: np.ndarray) -> Refusal:
    miss = worst(robot.model, errors(robot, q[None])[0])
    sentence = f"{miss.what} stays open by {miss.by()}. Projection closes small errors only; try robot.assemble(q)"
    return Refusal(Reason.NOT_CLOSABLE, sentence)
