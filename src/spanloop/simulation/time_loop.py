"""Going on: steps in stretches, between which progress is told, checkpoints are kept and an interrupt is heard.

How the stretches are cut never changes a number: all that a run carries is in its row of state.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.simulation.inputs import CallbackError
from spanloop.simulation.time_grid import Grid

_MOMENT = 0.2  # s of computing between two looks at the world


@dataclass
class Progress:
    """How far a simulation has come: all that is needed to go on."""

    state: np.ndarray  # (n, width)
    why: np.ndarray  # (n,) bits of what ended a run
    counts: np.ndarray  # (n,) steps that ended well
    record: np.ndarray  # (n, samples, width)
    done: int = 0  # steps taken
    interrupted: bool = False
    refused: str = ""  # why a callback's answer could not be used


@dataclass(frozen=True)
class Job:
    """What is computed: a rollout, when, from which inputs."""

    rollout: Rollout
    grid: Grid
    constants: np.ndarray  # (n or 1, width)
    controls: (
        np.ndarray | Callable
    )  # (n or 1, steps or 1, width), or callback(t, state, step's number) -> (n, 1, width)
    inputs: int
    start: float = 0.0

    def begin(self, state: np.ndarray, recorded: int) -> Progress:
        n, dtype = len(state), self.rollout.dtype
        record = np.full((n, self.grid.samples, recorded), np.nan, dtype)
        return Progress(np.ascontiguousarray(state, dtype), np.zeros(n, np.uint8), np.zeros(n, np.int64), record)

    def advance(self, p: Progress, count: int) -> None:
        """`count` steps from here; with none, only the sample. One that does not end is as if it had not begun."""
        g = self.grid
        record = p.record[:, p.done // g.every :] if p.done % g.every == 0 else None
        controls = self.controls
        if callable(controls):
            controls = controls(self.start + p.done * g.h, p.state, p.done) if count else np.zeros((1, 1, self.inputs))
        elif controls.shape[1] > 1:
            controls = controls[:, p.done : p.done + count]
        controls = np.ascontiguousarray(controls, self.rollout.dtype)
        state, why = p.state.copy(), p.why.copy()
        steps = Steps(self.start, g.h, p.done, count, g.every)
        counts = self.rollout.run(state, self.constants, controls, why, steps, record)
        p.state, p.why, p.counts, p.done = state, why, p.counts + counts, p.done + count


def run(job: Job, p: Progress, tell: Callable[[Progress], None], keep: Callable[[Progress], None]) -> None:
    """To the end, or to an interrupt. tell, keep: called between stretches, which begin at samples.

    With a callback every step is a stretch.
    """
    g, stepwise = job.grid, callable(job.controls)
    unit = 1 if stepwise else g.every
    units = 1
    try:
        while p.done < g.steps and not p.why.all():
            began = time.perf_counter()
            job.advance(p, min(units * unit, g.steps - p.done))
            pace = _MOMENT / max(time.perf_counter() - began, 1e-9)
            if not stepwise:
                units = max(1, int(units * min(8.0, pace)))
            tell(p)
            keep(p)
        if stepwise:
            job.advance(p, 0)
    except CallbackError as error:
        if p.done == 0:
            raise
        p.refused = str(error)
    except KeyboardInterrupt:
        p.interrupted = True


# ---- A line that says how far a long simulation has come; only where someone is looking.


_SILENCE = 1.0  # s before the first word

_PAUSE = 0.1  # s between two words

_WIDTH = 30


class Bar:
    """Told after every stretch; writes to stderr."""

    def __init__(self, steps: int, h: float, runs: int, wanted: bool | None):
        self.steps, self.h, self.runs = steps, h, runs
        self.wanted = _watched() if wanted is None else bool(wanted)
        self.began = self.last = time.perf_counter()
        self.shown = False

    def tell(self, done: int) -> None:
        now = time.perf_counter()
        if not self.wanted or now - self.began < _SILENCE or now - self.last < _PAUSE:
            return
        self.last, self.shown = now, True
        share = done / self.steps
        full = int(share * _WIDTH)
        left = (now - self.began) * (1.0 - share) / max(share, 1e-9)
        pace = done * self.h * self.runs / (now - self.began)
        bar = "█" * full + "░" * (_WIDTH - full)
        text = f"\r{bar} {100 * share:3.0f} %  t = {done * self.h:.4g} s  {pace:.3g}× real time  {left:.0f} s left   "
        print(text, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown:
            print("\r" + " " * 100 + "\r", end="", file=sys.stderr, flush=True)


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
