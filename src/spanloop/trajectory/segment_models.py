"""Models of segments: a mechanism with the loops, couplings and stops that are closed in a segment."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import UnsupportedError
from spanloop.model import Model
from spanloop.model.parts import Coupling
from spanloop.trajectory.events import STOP


def with_closed(
    model: Model, switches: tuple[str, ...], closed: tuple[str, ...], captured: np.ndarray, q: np.ndarray
) -> Model:
    """The model with those of its switches that are closed.

    switches: names of loops, couplings and stops; the others are closed always. captured: frames at which closed loops
    hold. q (nq,): a state in which closed stops touch.
    """
    opened = tuple(name for name in switches if name not in closed)
    holds = tuple(_hold(model, name.removesuffix(STOP), q) for name in closed if name.endswith(STOP))
    frames = tuple(captured.tolist()) if closed else ()
    return _with_closed(model, opened, frames, holds)


@functools.lru_cache(maxsize=256)
def _with_closed(
    model: Model, opened: tuple[str, ...], captured: tuple[float, ...], holds: tuple[tuple[str, float], ...]
) -> Model:
    if captured:
        model = with_captured_placements(model, captured)
    loops, couplings = ([x.name for x in group if x.name in opened] for group in (model.loops, model.couplings))
    if loops:
        model = model.remove(loops, kind="loop")
    if couplings:
        model = model.remove(couplings, kind="coupling")
    stops = tuple(Coupling(joint + STOP, joint, source=None, offset=at) for joint, at in holds)
    return replace(model, couplings=(*model.couplings, *stops)) if stops else model


def _hold(model: Model, joint: str, q: np.ndarray) -> tuple[str, float]:
    """A joint with a stop, and the limit at which it is."""
    j, at = model.joint(joint), float(q[model.q_slice(joint)][0])
    limits = [x[0] for x in (j.lower, j.upper) if x is not None and np.isfinite(x[0])]
    return joint, min(limits, key=lambda x: abs(x - at), default=at)


def with_captured_placements(model: Model, captured: tuple[float, ...]) -> Model:
    """The model with loops at the frames that they have captured."""
    raise UnsupportedError(
        f"model {model.name!r}: captured frames of loops ({len(captured)} numbers) are not known here"
    )


@functools.lru_cache(maxsize=32)
def robot_of(model: Model) -> Dynamics:
    """The kernels of a model, kept: segments come again."""
    return Dynamics(model)
