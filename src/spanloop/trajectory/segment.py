"""The data of a trajectory: segments of samples and outcomes of runs, and checks that they fit the model."""

from __future__ import annotations

import enum
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest, printable
from spanloop.model import Model
from spanloop.types import Array

Setting = str | float | int | bool

CONTACT_ARRAYS = ("contact_forces", "contact_checks")
SAMPLED = ("q", "v", "tau", "memory", *CONTACT_ARRAYS)  # arrays (..., n, size) of a segment


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """Samples of a motion with one topology, batch axes first; the runs of a batch share their times.

    times (n,) [s], q (..., n, nq), v (..., n, nv), tau (..., n, nv): the torques that acted at the joints (of a driven
    joint, its acceleration), memory (..., n, nz): states of controllers and actuators. Rows after a run's end are NaN.
    held: tau is constant from each sample to the next.
    contact_forces (..., n, points × 3 or 6): of all points of contacts along the axes (normal, t1, t2) of each, with
    torsion or rolling torques about them, too: the mean over the step that ends at the sample [N, N m]; NaN where it is
    not known. contact_checks (..., n, 3): up to each sample the largest natural residual of contacts [m/s], the largest
    penetration [m], and the number of steps with a jam. None without contacts.
    model: that of this segment, with the loops that are closed in it; None for the trajectory's, as in batches
    and in runs without events. closed: names of the switchable loops, couplings and stops that are closed in it; None
    where the trajectory's events tell. absent: names of the bodies that are not there.
    """

    times: Array
    q: Array
    v: Array
    tau: Array
    memory: Array | None = None
    held: bool = False
    model: Model | None = None
    closed: tuple[str, ...] | None = None
    absent: tuple[str, ...] = ()
    contact_forces: Array | None = None
    contact_checks: Array | None = None

    def __post_init__(self) -> None:
        for name in ("times", *SAMPLED):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, read_only(value, f"the segment's {name}"))

    def __len__(self) -> int:
        return int(self.q.shape[-2])

    def __repr__(self) -> str:
        count = f"{len(self)} sample{'' if len(self) == 1 else 's'}"
        parts = [count, f"{self.times.min():g} s to {self.times.max():g} s"] if self.times.size else [count]
        parts += [f"batch {self.batch}"] if self.batch else []
        for name in ("closed", "absent"):
            parts += [f"{name} {', '.join(getattr(self, name))}"] if getattr(self, name) else []
        return printable(f"Segment({'; '.join(parts)})")

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; () for one run."""
        return self.q.shape[:-2]

    def mapped(self, change: Callable[..., Array]) -> Segment:
        """The segment with change(array) in place of each of its arrays (..., n, size)."""
        changed: dict[str, Any] = {name: change(x) for name, x in self.arrays.items()}
        return replace(self, **changed)

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays (..., n, size) that it has, by name: q, v, tau, ..."""
        return {name: x for name in SAMPLED if (x := getattr(self, name)) is not None}

    def samples(self, which: slice) -> Segment:
        """The samples of a slice."""
        held = self.held and which.step in (None, 1)
        return replace(self.mapped(lambda x: x[..., which, :]), times=self.times[which], held=held)

    def run(self, index: tuple[int, ...]) -> Segment:
        """One run, or a smaller batch."""
        return self.mapped(lambda x: x[index])


def read_only(value: object, what: str) -> Array:
    """An array of floats that cannot be written to; InputError unless it holds real numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} has entries of type {array.dtype}; expected real numbers")
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(float)
    view = array.view()
    view.flags.writeable = False
    return view


class EndReason(enum.StrEnum):
    """Why a run ended. A member equals its word: run.outcome.reason == "limit"."""

    FINISHED = "finished"  # it lasted for the whole duration
    EVENT = "event"  # a condition of `events` was met
    LIMIT = "limit"  # a joint reached its limit
    ATTACH = "attach"  # a loop that should attach was open, or closed too fast
    GRASP = "grasp"  # a grasp left its friction cone
    SINGULAR = "singular"  # the loops, or the legs, came to a singular configuration
    OPEN = "open"  # a loop opened
    OVERLAP = "overlap"  # a body appeared inside a shape of a contact
    TUNNEL = "tunnel"  # a step could pass through a shape of a contact
    JAM = "jam"  # friction jams a contact
    UNSOLVED = "unsolved"  # the forces of contacts were not found
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

    def __post_init__(self) -> None:
        if self.reason not in list(EndReason):
            reasons = [x.value for x in EndReason]
            raise InputError(f"the outcome's reason is {self.reason!r}; {nearest(self.reason, reasons)}")
        object.__setattr__(self, "reason", EndReason(self.reason))
        object.__setattr__(self, "time", float(self.time))

    @property
    def finished(self) -> bool:
        """Whether the run lasted its whole duration."""
        return self.reason is EndReason.FINISHED

    def __str__(self) -> str:
        return self.sentence


# ---- checks


def checked_segments(model: Model, segments: Segment | Sequence[Segment]) -> tuple[Segment, ...]:
    """The segments, if their shapes fit and time runs forward."""
    segments = (segments,) if isinstance(segments, Segment) else tuple(segments)
    if not segments or not all(len(s) for s in segments):
        raise InputError("a trajectory needs samples; this one has none")
    batch, end = segments[0].batch, -math.inf
    for s in segments:
        n, own = len(s), model if s.model is None else s.model
        _shape("times", s.times, (n,))
        _shape("q", s.q, (*batch, n, own.nq))
        _shape("v", s.v, (*batch, n, own.nv))
        _shape("tau", s.tau, (*batch, n, own.nv))
        for name, x in s.arrays.items():
            _shape(name, x, (*batch, n, x.shape[-1]))
        if not np.isfinite(s.times).all() or s.times[0] < end or not (np.diff(s.times) > 0.0).all():
            raise InputError("a trajectory's times must be finite and increase from sample to sample")
        end = s.times[-1]
    return segments


def checked_ends(segments: tuple[Segment, ...], ends: Segment | None) -> Segment | None:
    """The located ends: one sample (..., 1, size) a run, times (...)."""
    if ends is None:
        return None
    first = segments[0]
    _shape("times of ends", ends.times, first.batch)
    for name in SAMPLED:
        one, many = getattr(ends, name), getattr(first, name)
        if many is None or one is None:
            if one is not many:
                raise InputError(f"{name} is set for the samples or for the ends only; expected both or none")
            continue
        _shape(f"{name} of ends", one, (*first.batch, 1, many.shape[-1]))
    return ends


def checked_outcomes(batch: tuple[int, ...], outcomes: Outcome | Sequence[Outcome]) -> tuple[Outcome, ...]:
    """One outcome a run."""
    outcomes = (outcomes,) if isinstance(outcomes, Outcome) else tuple(outcomes)
    if len(outcomes) != math.prod(batch):
        raise InputError(f"{len(outcomes)} outcomes are given; expected one a run, {math.prod(batch)}")
    return outcomes


def checked_settings(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings as plain values that files can hold."""
    return {str(name): _plain(name, value) for name, value in settings.items()}


def checked_forces(
    models: Sequence[Model], shape: tuple[int, ...], forces: Mapping[str, object] | None
) -> dict[str, Array] | None:
    """Forces (..., n, 6) by body of one of the models, in the bodies' order."""
    if not forces:
        return None
    known = list(dict.fromkeys(b.name for model in models for b in model.bodies))
    for name in forces:
        if name not in known:
            raise InputError(f"forces names {name!r}, which is not a body; {nearest(name, known)}")
    out = {name: read_only(forces[name], f"the force on {name!r}") for name in sorted(forces, key=known.index)}
    for name, six in out.items():
        _shape(f"the force on {name!r}", six, (*shape, 6))
    return out


def _plain(name: str, value: object) -> Setting:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, str):
        return str(value)
    raise InputError(f"setting {name!r} is a {type(value).__name__}; expected text, a number or a truth value")


def _shape(what: str, array: Array, expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise InputError(f"{what} has shape {array.shape}; expected {expected}")
