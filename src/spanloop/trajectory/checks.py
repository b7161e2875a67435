"""The door of a trajectory: arrays that fit the model and each other."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.trajectory.segment import Outcome, Segment, fixed

Setting = str | float | int | bool


def checked_segments(model: Model, segments: Segment | Sequence[Segment]) -> tuple[Segment, ...]:
    """The segments, if their shapes fit and time runs forward."""
    segments = (segments,) if isinstance(segments, Segment) else tuple(segments)
    if not segments or not all(len(s) for s in segments):
        raise InputError("a trajectory needs samples; this one has none")
    batch, end = segments[0].batch, -math.inf
    for s in segments:
        n = len(s)
        _shape("times", s.times, (n,))
        _shape("q", s.q, (*batch, n, model.nq))
        _shape("v", s.v, (*batch, n, model.nv))
        _shape("tau", s.tau, (*batch, n, model.nv))
        if s.memory is not None:
            _shape("memory", s.memory, (*batch, n, s.memory.shape[-1]))
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
    for name in ("q", "v", "tau", "memory"):
        one, many = getattr(ends, name), getattr(first, name)
        if many is None or one is None:
            if one is not many:
                raise InputError(f"{name} is given for the samples or for the ends only; expected both or none")
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


def checked_forces(model: Model, shape: tuple[int, ...], forces: Mapping | None) -> dict[str, np.ndarray] | None:
    """Forces (..., n, 6) by body, in the bodies' order."""
    if not forces:
        return None
    known = [b.name for b in model.bodies]
    for name in forces:
        if name not in known:
            raise InputError(f"forces names {name!r}, which is not a body; {nearest(name, known)}")
    out = {name: fixed(forces[name], f"the force on {name!r}") for name in sorted(forces, key=known.index)}
    for name, six in out.items():
        _shape(f"the force on {name!r}", six, (*shape, 6))
    return out


def _plain(name: str, value) -> Setting:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, str):
        return str(value)
    raise InputError(f"setting {name!r} is a {type(value).__name__}; expected text, a number or a truth value")


def _shape(what: str, array: np.ndarray, expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise InputError(f"{what} has shape {array.shape}; expected {expected}")
