"""One period of a mode as positions: q ⊕ amplitude · shape · sin(phase), with the loops closed exactly."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from spanloop.errors import InputError, Reason, Refusal, SpanloopWarning, StateError
from spanloop.flexible.deformation import turning
from spanloop.loops.closure_errors import mechanism_of
from spanloop.model import Model
from spanloop.model.flexible_bodies.pieces import modal
from spanloop.types import Array

AMPLITUDE = 0.3  # rad, or of the mechanism's length
_TRIES = 8  # each with half the amplitude


def mode_motion(modes: Any, number: int, amplitude: float | None, samples: int) -> tuple[Array, Array]:
    """Phases (samples,) [rad] and positions (samples, nq); `Modes.motion` documents the arguments."""
    if not isinstance(number, int | np.integer) or not -len(modes) <= number < len(modes):
        raise InputError(f"mode {number!r}: expected a number from 0 to {len(modes) - 1}")
    if amplitude is not None and not (math.isfinite(amplitude) and amplitude > 0.0):
        raise InputError(f"amplitude is {amplitude!r}; must be a number > 0")
    robot, shape = modes.robot, modes.shapes[:, number]
    lengths = np.array(mechanism_of(robot.model).dof_lengths)
    phases = np.linspace(0.0, 2.0 * np.pi, samples)
    swing = (np.exp(1j * phases)[:, None] * shape).imag  # starts at the equilibrium where the shape is real
    largest = np.abs(shape / lengths).max()
    size = AMPLITUDE / max(largest, _largest_turn(robot.model, shape)) if amplitude is None else amplitude / largest
    for _ in range(_TRIES if amplitude is None else 1):
        q, follows = _closed(robot, modes.q, size * swing, lengths)
        if follows:
            return phases, q
        size /= 2.0
    sentence = f"mode {number}: the loops do not follow a motion of this size; give a smaller amplitude"
    raise StateError.of("modes.motion", Refusal(Reason.NOT_CLOSABLE, sentence))


def _largest_turn(model: Model, shape: Array) -> float:
    """The largest rotation of a section of a flexible body in a shape (nv,) of a mode [rad]; 0 without such a body."""
    largest = 0.0
    for j in model.joints:
        if j.kind.bends:
            turns = np.tensordot(turning(modal(j)), shape[model.v_slice(j.name)], axes=(1, 0))
            largest = max(largest, float(np.linalg.norm(turns, axis=1).max()))
    return largest


def _closed(robot: Any, q: Array, deltas: Array, lengths: Array) -> tuple[Array, bool]:
    """Positions q ⊕ deltas (n, nv) with the loops closed, and whether they stay near and in one assembly."""
    guess = robot.integrate(q, deltas)
    if not (robot.model.loops or robot.model.couplings):
        return guess, True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        closed = robot.assemble(guess, limits="ignore")
        moved = np.abs(robot.difference(guess, closed) / lengths).max()
    return closed, bool(moved <= 0.5 * np.abs(deltas / lengths).max())
