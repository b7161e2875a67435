"""Initial states of environments: drawn at random in blocks, with loops closed and shapes apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.contacts.geometry_check import overlap_refusal
from spanloop.envs.batch_motion import BatchMotion, refused_by
from spanloop.envs.start_noise import StartNoise
from spanloop.envs.user_arguments import of_draws
from spanloop.errors import InputError, Reason, Refusal, SpanloopWarning, StateError, nearest
from spanloop.loops.assembly.assembly import Limits
from spanloop.loops.batching import faulty_states
from spanloop.simulation import initial_state

Drawn = tuple[np.ndarray, np.ndarray]  # q (n, nq), v (n, nv)
Draw = Callable[[np.random.Generator, int], Any]
_BLOCK = 64  # states that are drawn at once, at least
_PART, _PARTS = 0.15, 200  # rad or m: of the way to a start that is far; parts of it, at most
_TRIES = 64  # starts of an environment that are drawn before its parameters are refused


class Starts:
    """A stock of random starts; `take` hands them out in order, and draws a block of others when there are none."""

    def __init__(self, motion: BatchMotion, reset: Any, keeps_limits: bool = True):
        """reset: what is drawn, as MechanismEnv has it; keeps_limits: starts are inside the limits of joints."""
        self.motion, self.robot, self.model = motion, motion.problem.robot, motion.problem.model
        self.has_loops = bool(self.model.loops or self.model.couplings)
        self._parts = 1  # of the way from the start to a guess
        self.fixed: tuple[str, ...] = ()  # joints whose coordinates are drawn, and do not move in the assembly
        self._draw = self._drawing(reset)
        inside = Limits(self.model, are_kept=keeps_limits)
        first = motion.problem.q[:1]  # a joint may begin beyond its limit, if the user says so
        self._limits = inside if np.array_equal(inside.within(first), first) else Limits(self.model, are_kept=False)
        self.clear()

    def clear(self) -> None:
        """Forget what is in stock: the next block comes from another generator."""
        self._stock: Drawn = (np.zeros((0, self.model.nq)), np.zeros((0, self.model.nv)))

    def take(self, random: np.random.Generator, rows: np.ndarray) -> Drawn:
        """The starts of the runs of these numbers.

        Live parameters decide whether shapes overlap: where they do, the start of that run is drawn again.
        """
        q, v = self.closed(rows, *self._from_stock(random, len(rows)))
        for _ in range(_TRIES if self._is_live and self.motion.problem.system.contacts else 0):
            again = self._overlapping(self._gaps(q, rows))
            if not again:
                return q, v
            q[again], v[again] = self.closed(rows[again], *self._from_stock(random, len(again)))
        refusal = self._overlap(q, rows) if self._is_live else None
        if refusal is not None:
            raise StateError.of("reset", refusal)
        return q, v

    def _from_stock(self, random: np.random.Generator, n: int) -> Drawn:
        """The next n states."""
        while len(self._stock[0]) < n:
            more = self._block(random, max(_BLOCK, self.motion.count))
            self._stock = (np.concatenate([self._stock[0], more[0]]), np.concatenate([self._stock[1], more[1]]))
        taken = self._stock[0][:n], self._stock[1][:n]
        self._stock = self._stock[0][n:], self._stock[1][n:]
        return taken

    def closed(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> Drawn:
        """States near q, v with all loops closed, as the parameters of these runs close them; far ones are refused."""
        return self._closed(rows, q, v)[:2]  # without the note: a user did not give these velocities

    def _closed(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        """The same, and a note on what was changed, "" if nothing."""
        with warnings.catch_warnings(), refused_by("reset"):
            warnings.simplefilter("ignore", SpanloopWarning)
            return self.motion.problem.closed(q, v, rows)

    def given(self, rows: np.ndarray, q: Any, v: Any) -> Drawn:
        """Starts that a user gives, each for all runs or (n, ...) for each, checked and closed, with a warning."""
        q = self.motion.problem.q[0] if q is None else q
        live = self.motion.problem.system.live_parameters(self.motion.constants_of(rows))
        with refused_by("reset"):
            q, v, leading = initial_state.states(self.robot, q, v, {}, live, "reset")
        n = len(rows)
        if leading not in ((), (1,), (n,)):
            count = "x".join(map(str, leading))
            raise InputError(
                f"reset: options have q and v for {count} environments; {n} of {self.motion.count} are reset. Expected "
                "one row for all of these, or one for each, in their order"
            )
        q, v = (np.repeat(x, n, axis=0) if len(x) < n else x for x in (q, v))
        refusal = self._overlap(q, rows)
        if refusal is not None:
            raise StateError.of("reset", refusal)
        q, v, note = self._closed(rows, q, v)
        for words in filter(None, (note, *self.motion.problem.notes_on_limits(q))):
            warnings.warn(f"reset: {words}", SpanloopWarning, stacklevel=4)
        return q, v

    # ---- a block

    def _block(self, random: np.random.Generator, n: int) -> Drawn:
        """Those of n random states that can be used; StateError where none can."""
        guess, v = self._checked(self._draw(random, n), n)
        q = self._assembled(guess)
        well = np.isfinite(q).all(axis=1)
        if not well.any():
            raise self._refused(guess)
        q, v = q[well], v[well]
        if self.has_loops:
            with refused_by("reset"):
                initial_state.assembly(self.robot, np.concatenate([self.motion.problem.q[:1], q]))
        return q, v

    def _assembled(self, guess: np.ndarray) -> np.ndarray:
        """States with closed loops, inside limits, and shapes that do not overlap; NaN where none is near the guess.

        With live parameters `take` finds overlaps.
        """
        q = guess.copy()
        if self.has_loops:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SpanloopWarning)
                q = self.robot.assemble(self._near(guess), self.fixed)
        q[(self._limits.within(q) != q).any(axis=1)] = np.nan
        if self.motion.problem.system.contacts and not self._is_live:
            q[self._overlapping(self._gaps(q, np.zeros(len(q), int)))] = np.nan
        return q

    def _near(self, guess: np.ndarray) -> np.ndarray:
        """The guesses, where joints with ranges reach far from the start with the others moved along, part by part.

        A loop that can be put together in two ways would close in either from afar. Rows that cannot be closed on the
        way stay as they were guessed.
        """
        start = self.motion.problem.q[:1]
        q = np.repeat(start, len(guess), axis=0)
        for part in range(1, self._parts):
            there = np.where(guess != start, start + part / self._parts * (guess - start), q)
            found = self.robot.assemble(there, self.fixed)
            q = np.where(np.isfinite(found).all(axis=1, keepdims=True), found, there)
        return np.where(guess != start, guess, q)

    @property
    def _is_live(self) -> bool:
        """Whether parameters are live."""
        return self.motion.problem.system.live

    def _gaps(self, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Gaps (n, points) of all contacts of the runs of these numbers, infinite where q is not finite."""
        out, well = np.full((len(q), len(self._points)), np.inf), np.isfinite(q).all(axis=1)
        every = self.motion.problem.constant_rows().items()
        constants = {name: x[rows[well]] if len(x) > 1 else x for name, x in every}
        out[well] = self.motion.problem.system.gaps(q[well], constants) if well.any() else 0.0
        return out

    def _overlapping(self, gaps: np.ndarray) -> list[int]:
        """Numbers of the rows of gaps in which shapes of hard contacts overlap; compliant ones may."""
        bound = self.motion.problem.system.overlap
        deep = np.flatnonzero((gaps < -bound).any(axis=1))
        return [int(k) for k in deep if overlap_refusal(self.model, gaps[k], None, bound) is not None]

    @property
    def _points(self) -> tuple[str, ...]:
        points = self.motion.problem.system.contacts
        return () if points is None else tuple(points.names)

    def _overlap(self, q: np.ndarray, rows: np.ndarray) -> Refusal | None:
        system = self.motion.problem.system
        return overlap_refusal(self.model, self._gaps(q, rows), None, system.overlap) if system.contacts else None

    def _refused(self, guess: np.ndarray) -> StateError:
        """Why none of the guesses is a start."""
        q, why = guess[:1], ""
        if self.has_loops:
            try:
                q = self.robot.assemble(guess[0], self.fixed)[None]
            except StateError as error:
                why = str(error)
        beyond = self._limits.beyond(q[0], self._limits.names)
        why = why or ("joint " + beyond[0] if beyond else str(self._overlap(q, np.zeros(1, int))))
        words = f"none of {len(guess)} random starts can be used; of the first: {why}"
        return StateError.of("reset", Refusal(Reason.NOT_CLOSABLE, words))

    # ---- what is drawn

    def _drawing(self, reset: Any) -> Draw:
        start = self.motion.problem.q[0]
        if callable(reset):
            return of_draws(reset, "reset")
        if isinstance(reset, Mapping) and reset:
            return self._ranges(reset, start)
        try:
            noise = float(0.0 if reset is None else reset)
        except (TypeError, ValueError):
            noise = np.nan
        if not (0.0 <= noise < np.inf) or isinstance(reset, bool):
            raise InputError(
                f"reset is {reset!r}; expected a size of noise [rad or m], {{'joint': (low, high)}}, or a function "
                "(random, n) -> q or (q, v)"
            )
        if not noise:
            return lambda random, n: np.tile(start, (n, 1))
        found = StartNoise.of(self.robot, start, noise)
        self.fixed = found.held
        return found

    def _ranges(self, ranges: Mapping[str, Any], start: np.ndarray) -> Draw:
        """The start, with coordinates of these joints drawn from their ranges."""
        known = [j.name for j in self.model.joints if j.kind.nq == 1]
        bounds = []
        for name, pair in ranges.items():
            if name not in known:
                raise InputError(f"reset: {name!r} is no joint of one coordinate; {nearest(name, known)}")
            try:
                low_high = np.asarray(pair, float)
            except (TypeError, ValueError):
                low_high = np.array(np.nan)
            if low_high.shape != (2,) or not np.isfinite(low_high).all() or low_high[0] > low_high[1]:
                raise InputError(f"reset[{name!r}] is {pair!r}; expected (low, high) [rad or m]")
            bounds.append(low_high)
        self.fixed = tuple(ranges)
        places = [self.model.q_slice(name).start for name in ranges]
        low, high = np.array(bounds).T
        farthest = np.abs(np.array([low, high]) - start[places]).max(initial=0.0)
        self._parts = int(np.clip(np.ceil(farthest / _PART), 1, _PARTS))

        def draw(random: np.random.Generator, n: int) -> np.ndarray:
            q = np.tile(start, (n, 1))
            q[:, places] = random.uniform(low, high, (n, len(places)))
            return q

        return draw

    def _checked(self, drawn: Any, n: int) -> Drawn:
        """What a function drew, as q and v."""
        given = drawn if isinstance(drawn, tuple) else (drawn, np.zeros((n, self.model.nv)))
        pair = [as_numpy("reset", "what the function returned", x, f"({n}, k)") for x in given]
        shapes = [x.shape for x in pair]
        if shapes != [(n, self.model.nq), (n, self.model.nv)]:
            raise InputError(
                f"reset returned arrays of shape {', '.join(map(str, shapes))}; expected q ({n}, {self.model.nq}), or "
                f"a tuple of q and v ({n}, {self.model.nv})"
            )
        if wrong := [x.dtype for x in pair if x.dtype.kind not in "fiub"]:
            raise InputError(f"reset returned {wrong[0]}; expected real numbers")
        q, v = (np.array(x, float) for x in pair)
        faults = faulty_states(self.robot, {"q": q, "v": v})
        if faults:
            raise StateError.of("reset", faults[min(faults)])
        return q, v
