"""The time loop of fixed steps: a grid of times, stretches of compiled steps, and a progress bar between them.

How the stretches are cut never changes a number: all that a run carries is in its row of state.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.compiler.runtime import machine
from spanloop.compiler.runtime.gpu.device_runs import DeviceRuns
from spanloop.compiler.runtime.gpu.rollout import AnyRollout
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.contacts.contact_arrays import CLOSED, TORQUES
from spanloop.errors import InputError, SpanloopWarning
from spanloop.simulation.inputs import CallbackError
from spanloop.trajectory import Outcome

if TYPE_CHECKING:
    from spanloop.simulation.integrators.step_schedule import StateLayout

STEP = 1e-3  # s, if none is given
MOST_STEPS = 2_000_000_000
_MOST_NUMBERS = 20_000_000  # that are kept if no time between samples is given
_STRETCHED = 1e-6  # of a length of time: a smaller change of it is rounding
_STRETCH = 0.2  # s of computing between two reports of progress
_REPEATED = 30  # times that the first step is repeated, until its contact forces are expected
_LOGGED = 8  # rows of a run's log in a stretch at first
_LOG_NUMBERS = 16_000_000  # of all logs of a stretch: it is made shorter rather than needs more


@dataclass(frozen=True)
class Grid:
    """`steps` steps of length h [s]; a sample at the start of every `every`-th, and at the end."""

    duration: float
    steps: int
    every: int

    @property
    def h(self) -> float:
        """Length of a step [s]."""
        return self.duration / self.steps

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.steps // self.every + 1

    def halved(self) -> Grid:
        """Steps of half the length, samples at the same times."""
        return Grid(self.duration, 2 * self.steps, 2 * self.every)


def grid(duration: Any, step: Any, sample: Any, width: int, called: str = "step") -> Grid:
    """The grid of a run; width: numbers in one sample of all runs; called: the argument that `step` comes from.

    The duration is kept, and divided evenly: samples first, then whole steps from each sample to the next, each as near
    as possible to the length that was asked for; a warning says if it is another.
    """
    duration = positive(duration, "duration")
    h = positive(STEP if step is None else step, called)
    if h > duration * (1.0 + 1e-9):
        raise InputError(f"{called} is {h:g} s, longer than the duration of {duration:g} s; must be at most that")
    if duration / h > MOST_STEPS:
        raise InputError(f"{duration:g} s in steps of {h:g} s are {duration / h:.2g} steps; at most {MOST_STEPS:.0g}")
    steps = max(1, round(duration / h))
    if sample is None:
        every = max(1, -(-(steps * width) // _MOST_NUMBERS))
        found = Grid(duration, every * max(1, -(-steps // every)), every)
        if step is not None and every == 1:
            _warn_if_other(called, h, found.h, f"the duration of {duration:g} s")
        return found
    gap = positive(sample, "sample")
    if gap > duration * (1.0 + 1e-9):
        raise InputError(f"sample is {gap:g} s, longer than the duration of {duration:g} s; must be at most that")
    if gap < h * (1.0 - 1e-9):
        raise InputError(f"sample is {gap:g} s, shorter than the step of {h:g} s; must be at least that")
    samples = max(1, round(duration / gap))
    every = max(1, round(duration / samples / h))
    found = Grid(duration, samples * every, every)
    _warn_if_other("sample", gap, duration / samples, f"the duration of {duration:g} s")
    if step is not None:
        _warn_if_other("step", h, found.h, f"the time between samples of {duration / samples:.6g} s")
    return found


def _warn_if_other(name: str, asked: float, used: float, whole: str) -> None:
    """Warn if a length of time differs from the one that was asked for; whole: what it would have to divide."""
    if abs(used - asked) > _STRETCHED * asked:
        warnings.warn(
            f"simulate: {name} is {asked:g} s, which does not divide {whole}; {used:.6g} s is used",
            SpanloopWarning,
            stacklevel=4,
        )


def positive(x: Any, name: str) -> float:
    """A length of time [s], checked; name: of the argument."""
    try:
        if isinstance(x, (str, bytes, bool, np.bool_)):
            raise TypeError
        value = float(x)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {x!r}; expected a number of seconds") from None
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value:g} s; must be positive")
    return value


_Taken = tuple[np.ndarray, np.ndarray, np.ndarray]  # state, why, counts


@dataclass
class Progress:
    """The state of all runs after some steps: all that the time loop needs to continue.

    On a GPU state and counts are those of the last `TimeLoop.fetch`.
    """

    state: np.ndarray  # (n, width)
    why: np.ndarray  # (n,) bits of what ended a run; 0 for runs that go on
    counts: np.ndarray  # (n,) steps without a failure
    record: np.ndarray  # (n, samples, width)
    done: int = 0  # steps taken
    interrupted: bool = False
    resumed: int = 0  # steps that a checkpoint had
    refused: str = ""  # why a callback's torques could not be used
    log: list[np.ndarray] = field(default_factory=list)  # of every run, stretch by stretch: (run, row of the log)
    capacity: int = _LOGGED  # rows of a run's log in a stretch


@dataclass(frozen=True)
class TimeLoop:
    """A compiled rollout, its grid of times, and the inputs of its steps.

    on_device: the runs on a GPU, which takes the steps of all of them; the rollout, on the CPU, those of single ones.
    """

    rollout: Rollout
    grid: Grid
    constants: np.ndarray  # (n or 1, width)
    controls: np.ndarray | Callable  # (n or 1, steps or 1, width), or (t, state, step's number) -> (n, 1, width)
    inputs: int
    start: float = 0.0  # s
    logs: int = 0  # numbers in a row of the log of events
    on_device: DeviceRuns | None = None

    @property
    def batch_rollout(self) -> AnyRollout:
        """What takes steps of all runs."""
        return self.rollout if self.on_device is None else self.on_device.rollout

    def begin(self, state: np.ndarray, recorded: int) -> Progress:
        """The progress before the first step; recorded: how many numbers of a row are kept as a sample."""
        n, dtype = len(state), self.rollout.dtype
        record = np.full((n, self.grid.samples, recorded), np.nan, dtype)
        capacity = max(1, min(_LOGGED, _LOG_NUMBERS // max(1, n * self.logs)))
        own = np.zeros(n, np.uint8), np.zeros(n, np.int64), record
        return Progress(np.ascontiguousarray(state, dtype), *own, capacity=capacity)

    def advance(self, p: Progress, count: int) -> None:
        """Take `count` steps; with none, only the sample. An interrupted stretch changes nothing."""
        g = self.grid
        record = p.record[:, p.done // g.every :] if p.done % g.every == 0 else None
        controls = self.controls
        if callable(controls):
            self.fetch(p)
            controls = controls(self.start + p.done * g.h, p.state, p.done) if count else np.zeros((1, 1, self.inputs))
        elif controls.shape[1] > 1:
            controls = controls[:, p.done : p.done + count]
        controls = np.ascontiguousarray(controls, self.rollout.dtype)
        take = self._on_cpu if self.on_device is None else self._on_gpu
        n = len(p.state)
        while True:
            log = np.empty((n, p.capacity, self.logs), self.rollout.dtype) if self.logs else None
            logged = np.zeros(n, np.int64)
            steps = Steps(self.start, g.h, p.done, count, g.every)
            state, why, counts = take(p, controls, steps, record, log, logged)
            needed = int(logged.max(initial=0))
            if log is None or needed <= p.capacity:
                break
            if count == 1 or n * needed * self.logs <= _LOG_NUMBERS:  # the same steps again, with a longer log
                p.capacity = needed
            else:
                count = count // 2
        if log is not None and needed:
            runs, rows = np.repeat(np.arange(n), logged), log[np.arange(p.capacity) < logged[:, None]]
            p.log.append(np.column_stack([runs, rows]))
        p.state, p.why, p.counts, p.done = state, why, counts, p.done + count

    def _on_cpu(self, p: Progress, controls, steps: Steps, record, log, logged) -> _Taken:
        """State, why and counts after some steps; those of p stay as they are."""
        state, why = p.state.copy(), p.why.copy()
        counts = self.rollout.run(state, self.constants, controls, why, steps, record, log, logged)
        return state, why, p.counts + counts

    def _on_gpu(self, p: Progress, controls, steps: Steps, record, log, logged) -> _Taken:
        """The same on the device, where the state stays. An earlier trial, or one that was interrupted, is undone."""
        runs = self.on_device
        assert runs is not None
        if not runs.is_placed:
            runs.place(p.state, self.constants, p.why, p.counts, p.done)
        runs.advance(controls, steps, record, log, None if log is None else logged)
        return p.state, runs.why(), p.counts

    def fetch(self, p: Progress) -> None:
        """Bring the state and the samples of all runs from the device, if they are there."""
        if self.on_device is not None and self.on_device.is_placed:
            p.state, p.why, p.counts = self.on_device.fetched(p.done)

    def run(self, p: Progress, report: Callable[[Progress], None]) -> None:
        """Take all steps, or those before an interrupt. report: called between stretches, which begin at samples.

        With a callback every step is a stretch.
        """
        g, stepwise = self.grid, callable(self.controls)
        unit = 1 if stepwise else g.every
        units, most = 1, self._most_samples(p)
        try:
            while p.done < g.steps and not p.why.all():
                began = time.perf_counter()
                inside = 0 if stepwise else p.done % g.every  # the last stretch was cut between two samples
                self.advance(p, min(g.every - inside if inside else min(units, most) * unit, g.steps - p.done))
                pace = _STRETCH / max(time.perf_counter() - began, 1e-9)
                if not stepwise:
                    units = max(1, int(min(units, most) * min(8.0, pace)))
                report(p)
            if stepwise:
                self.advance(p, 0)
        except CallbackError as error:
            if p.done == 0:
                raise
            p.refused = str(error)
        except KeyboardInterrupt:
            p.interrupted = True
        self.fetch(p)

    def _most_samples(self, p: Progress) -> int:
        """Samples of a stretch, at most: on a GPU those that its buffers hold."""
        if self.on_device is None:
            return self.grid.samples
        return self.on_device.samples(p.record.shape[0] * p.record.shape[2])

    def outcome(self, p: Progress) -> Outcome:
        """The outcome of all runs that nothing ended inside the rollout."""
        t = self.start + p.done * self.grid.h
        if p.refused:
            return Outcome("controller", f"{p.refused}. The run ended there", t)
        if p.interrupted and p.done < self.grid.steps:
            return Outcome("interrupted", f"interrupted at t = {t:.6g} s", t)
        return Outcome("finished", f"finished after {t:.6g} s", t)


# ---- the error of steps, from a few that are repeated in halves

LONG_STEP = 1e-3  # of the speed: a step with a larger error is too long for the motion
_PROBES = 4  # steps that are repeated, at most
_PROBED = 16  # runs of a batch in which they are
_SLOW = 1e-9  # rad/s or m/s: what is slower counts as this fast
_ROUNDED = 1e-6  # of the largest speed of all joints, and of what gravity adds in a second: the same
_DIGITS = 8.0  # of rounding, which is no error of a step
LASTING = 32  # steps over which errors that implicit steps damp fade from a mean


@dataclass(frozen=True)
class StepErrors:
    """Errors of velocity over the largest speed of the run: the largest of one step, and the sum over all steps."""

    largest: float
    total: float


def step_errors(
    loop: TimeLoop,
    p: Progress,
    layout: StateLayout,
    units: Sequence[str],
    inputs_at: Callable,
    order: int,
    weight: float,
    further: int = 0,
) -> StepErrors | None:
    """An estimate from steps that are taken once whole and once in halves; None if none succeeds.

    The velocities after both differ by (1 − 2⁻ᵖ) times the error of the whole one, p the order. Angles and lengths are
    compared each with their own kind; beside other speeds, or the weight of the links, very slow ones are rounding.
    units: of the DoF. inputs_at(number): the inputs of a step, as those of the loop. weight: of gravity [m/s²].
    further: steps that follow both; what counts is the mean of the differences after each. Implicit steps damp what
    they do not resolve, so that errors in it do not add up; the mean over LASTING of them leaves the errors that do.
    """
    moved = np.flatnonzero(p.counts)  # the others ended where they began
    if not len(moved):
        return None
    runs = moved[np.unique(np.linspace(0, len(moved) - 1, _PROBED).astype(int))]
    rows = p.record[runs]
    v = slice(layout.sizes["q"], layout.sizes["q"] + layout.sizes["v"])
    speeds = np.abs(rows[:, : int(p.counts.max()) // loop.grid.every + 1, v])
    groups = [[k for k, unit in enumerate(units) if unit == kind] for kind in dict.fromkeys(units)]
    found = []
    for sample in _probes(speeds):
        inputs = inputs_at(int(sample) * loop.grid.every)
        difference, well = _repeated(loop, p, layout, runs, int(sample), inputs, further)
        found.append(np.where(well[:, None], np.abs(difference), np.nan))
    errors = np.array(found) / (1.0 - 0.5**order)
    shares = []
    slow = np.maximum(_ROUNDED * np.maximum(np.nanmax(speeds, axis=(1, 2), initial=0.0), weight), _SLOW)
    for group in groups:
        fastest = np.maximum(np.nanmax(speeds[:, :, group], axis=(1, 2), initial=0.0), slow)
        share = errors[:, :, group].max(axis=2, initial=0.0) / fastest
        shares.append(np.where(share < _DIGITS * np.finfo(rows.dtype).eps, 0.0, share))
    share = np.max(shares, axis=0) if shares else np.full((1, 1), np.nan)
    share = share[:, np.isfinite(share).all(axis=0)]
    if not share.size:
        return None
    return StepErrors(float(share.max()), float(share.mean(axis=0).max()) * loop.grid.steps)


def _probes(speeds: np.ndarray) -> np.ndarray:
    """Numbers of the samples from which steps are repeated: a few, evenly, and the fastest; speeds (n, samples, nv)."""
    last = max(1, speeds.shape[1] - 1)
    evenly = np.linspace(0, last - 1, min(_PROBES - 1, last // 50) + 2).astype(int)[1:-1]
    fastest = np.nan_to_num(speeds[:, :last]).max(axis=(0, 2), initial=0.0)
    return np.unique([*evenly, int(np.argmax(fastest))])


def _repeated(
    loop: TimeLoop,
    p: Progress,
    layout: StateLayout,
    runs: np.ndarray,
    sample: int,
    inputs: np.ndarray,
    further: int,
) -> tuple[np.ndarray, np.ndarray]:
    """How velocities (n, nv) differ after a step from a sample, taken whole and in halves, and where all succeed.

    The mean of these differences, and of those after each of `further` steps.
    """
    h, places = loop.grid.h, layout.places
    constants = loop.constants[runs] if len(loop.constants) > 1 else loop.constants
    controls = np.ascontiguousarray(inputs[runs] if len(inputs) > 1 else inputs, loop.rollout.dtype)
    state, at = p.state[runs], 0
    for name in ("q", "v", "z", "active", "captured", "present"):
        if name in layout:
            state[:, places[name]] = p.record[runs, sample, at : at + layout.sizes[name]]
            at += layout.sizes[name]
    known = {"armed": 0.0, "share": 0.0, "ending": 0.0} if loop.logs else {"g": -1.0}  # no event is met
    for name, value in {**known, "q.rest": 0.0, "v.rest": 0.0}.items():
        if name in layout:
            state[:, places[name]] = value
    why = np.zeros(len(runs), np.uint8)

    def taken(state: np.ndarray, share: float, length: float) -> np.ndarray:
        after = state.copy()
        t = loop.start + (sample * loop.grid.every + share) * h
        loop.rollout.run(after, constants, controls, why, Steps(t, length * h, 0, 1), None)
        for name in ("z", "g", "armed"):  # a memory is constant during a step
            if name in layout:
                after[:, places[name]] = state[:, places[name]]
        return after

    v = places["v"]
    whole, halves = taken(state, 0.0, 1.0), taken(taken(state, 0.0, 0.5), 0.5, 0.5)
    difference = whole[:, v].astype(float) - halves[:, v]
    for k in range(1, further + 1):
        whole, halves = taken(whole, float(k), 1.0), taken(halves, float(k), 1.0)
        difference += whole[:, v].astype(float) - halves[:, v]
    return difference / (1 + further), why == 0


_SILENCE = 1.0  # s before the bar is drawn
_PAUSE = 0.1  # s between two drawings
_WIDTH = 30


class ProgressBar:
    """A line on stderr with the share of steps done, the pace and the time left."""

    def __init__(self, steps: int, h: float, runs: int, wanted: bool | None):
        self.steps, self.h, self.runs = steps, h, runs
        self.wanted = machine.is_watched() if wanted is None else bool(wanted)
        self.began = self.last = time.perf_counter()
        self.first: int | None = None  # steps done when it began: the first ones include compiling
        self.shown = False

    def draw(self, done: int) -> None:
        """Draw the bar after `done` steps, if it is time."""
        now = time.perf_counter()
        if self.first is None:
            self.began, self.first = now, done
            return
        if not self.wanted or now - self.began < _SILENCE or now - self.last < _PAUSE:
            return
        self.last, self.shown = now, True
        share = done / self.steps
        full = int(share * _WIDTH)
        steps_a_second = max(done - self.first, 1) / (now - self.began)
        left, pace = (self.steps - done) / steps_a_second, steps_a_second * self.h * self.runs
        bar = "█" * full + "░" * (_WIDTH - full)
        text = f"\r{bar} {100 * share:3.0f} %  t = {done * self.h:.4g} s  {pace:.3g}× real time  {left:.0f} s left   "
        print(text, end="", file=_screen(), flush=True)

    def say(self, sentence: str) -> None:
        """Print a sentence where the bar would be drawn."""
        if self.wanted:
            print(sentence, file=sys.stderr, flush=True)

    def erase(self) -> None:
        """Erase the bar."""
        if self.shown:
            print("\r" + " " * 100 + "\r", end="", file=_screen(), flush=True)


def _screen() -> Any:
    """Standard error; where the command line filters control characters, the stream behind the filter."""
    return getattr(sys.stderr, "unfiltered", sys.stderr)


def expect_forces(loop: TimeLoop, p: Progress, layout: StateLayout) -> None:
    """Expect contact forces in the first step, of points that are closed at the start: found by repeating that step.

    Each repetition expects the forces that the one before it found, so that what stands at the start stays there. Where
    a callback acts, which is called once a step, none are expected.
    """
    closed = p.state[:, layout.places["contact.gap"]] <= CLOSED
    if callable(loop.controls) or not closed.any():
        return
    controls = np.ascontiguousarray(loop.controls[:, :1], loop.rollout.dtype)
    f, others = layout.places["contact.f"], [layout.places[name] for name in ("contact.force", TORQUES)]
    block = (f.stop - f.start) // closed.shape[1]
    for _ in range(_REPEATED):
        trial, why = p.state.copy(), p.why.copy()
        loop.batch_rollout.run(trial, loop.constants, controls, why, Steps(loop.start, loop.grid.h, 0, 1))
        well = closed & (why == 0)[:, None]
        p.state[:, f] = np.where(np.repeat(well, block, axis=1), trial[:, f], 0.0)
        for place in others:
            p.state[:, place] = np.where(well.any(axis=1)[:, None], trial[:, place], 0.0)
