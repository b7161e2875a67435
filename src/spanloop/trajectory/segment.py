"""A stretch of motion with one topology, as plain arrays."""

from __future__ import annotations

import enum
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


class EndReason(enum.StrEnum):
    """Why a run ended. A member equals its word: run.outcome.reason == "limit"."""

    FINISHED = "finished"  # it lasted for the whole duration
    EVENT = "event"  # a condition of `events` was met
    LIMIT = "limit"  # a joint reached its limit
    SINGULAR = "singular"  # the loops, or the legs, came to a singular position
    OPEN = "open"  # a loop opened
    NOT_FINITE = "not_finite"  # numbers grew beyond bounds, or accelerations do not exist
    NOT_CONVERGED = "not_converged"  # an implicit step did not converge
    CONTROLLER = "controller"  # a callback did not return torques
    INTERRUPTED = "interrupted"  # Ctrl-C


@dataclass(frozen=True)
class Outcome:
    """Why a run ended, a sentence that explains it, and the time [s] of the end."""

    reason: EndReason | str
    sentence: str
    time: float

    def __post_init__(self):
        if self.reason not in list(EndReason):
            raise InputError(f"the outcome's reason is {self.reason!r}; {nearest(self.reason, list(EndReason))}")
        object.__setattr__(self, "reason", EndReason(self.reason))
        object.__setattr__(self, "time", float(self.time))

    @property
    def finished(self) -> bool:
        """Did the run last as long as was asked for?"""
        return self.reason is EndReason.FINISHED

    def __str__(self) -> str:
        return self.sentence
