"""A stretch of motion with one topology, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spanloop.errors import InputError, nearest


@dataclass(frozen=True, eq=False)
class Segment:
    """Samples of a motion, batch axes first; the runs of a batch share their times.

    times (n,) [s], q (..., n, nq), v (..., n, nv), tau (..., n, nv): what acted at the joints (a driven joint's entry
    is its acceleration), memory (..., n, nz): states of controllers and actuators. After a run's end its rows are
    NaN. held: is tau constant from each sample to the next?
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    memory: np.ndarray | None = None
    held: bool = False

    def __post_init__(self):
        for name in ("times", "q", "v", "tau", "memory"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, fixed(value, f"the segment's {name}"))

    def __len__(self) -> int:
        return self.q.shape[-2]

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; () for one run."""
        return self.q.shape[:-2]

    def mapped(self, change) -> Segment:
        """The segment with change(array) in place of q, v, tau and memory."""
        given = {name: getattr(self, name) for name in ("q", "v", "tau", "memory")}
        return replace(self, **{name: change(x) for name, x in given.items() if x is not None})

    def samples(self, which: slice) -> Segment:
        """The samples of a slice."""
        held = self.held and which.step in (None, 1)
        return replace(self.mapped(lambda x: x[..., which, :]), times=self.times[which], held=held)

    def run(self, index: tuple[int, ...]) -> Segment:
        """One run, or a smaller batch."""
        return self.mapped(lambda x: x[index])


def fixed(value, what: str) -> np.ndarray:
    """An array of floats that cannot be written to; what is not made of real numbers is refused."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} has entries of type {array.dtype}; expected real numbers")
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(float)
    view = array.view()
    view.flags.writeable = False
    return view


# ---- How a run ended.


REASONS = ("finished", "event", "limit", "singular", "open", "not_finite", "not_converged", "controller", "interrupted")


@dataclass(frozen=True)
class Outcome:
    """Why a run ended (one of REASONS), a sentence that says what happened, and the time [s] at which."""

    reason: str
    sentence: str
    time: float

    def __post_init__(self):
        if self.reason not in REASONS:
            raise InputError(f"the outcome's reason is {self.reason!r}; {nearest(self.reason, REASONS)}")
        object.__setattr__(self, "time", float(self.time))

    @property
    def finished(self) -> bool:
        """Did the run last as long as was asked for?"""
        return self.reason == "finished"

    def __str__(self) -> str:
        return self.sentence
