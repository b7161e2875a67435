"""Models of segments: a mechanism with the loops, couplings and stops that are closed in a segment."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.kernels.compile import machine_kernel
from spanloop.kernels.row_masks import row_masks
from spanloop.kernels.spec import KernelSpec
from spanloop.model import Model
from spanloop.model.parts import Coupling, Placement
from spanloop.topology import mechanism
from spanloop.topology.captured_frames import FRAME, OFFSET, own_placement, with_captured_placements
from spanloop.trajectory.events import STOP, EventTable


def with_closed(
    model: Model, events: EventTable, closed: tuple[str, ...], captured: np.ndarray, q: np.ndarray
) -> Model:
    """The model with those of its switches that are closed; loops that are not switchable are closed always.

    captured: the frames and offsets at which the table's `captures` hold. q (nq,): a state in which closed stops touch.
    """
    couplings = {c.name for c in model.couplings}
    own = couplings | {x.name for x in model.loops}
    opened = tuple(name for name in events.switches if name in own and name not in closed)
    stops = [name for name in closed if name.endswith(STOP) and name not in own]
    holds = tuple(_hold(model, name.removesuffix(STOP), q) for name in stops)
    at, frames = 0, []
    for name in events.captures:
        width = OFFSET if name.endswith(STOP) or name in couplings else FRAME
        if name in closed and name in own:
            frames.append((name, tuple(captured[at : at + width].tolist())))
        at += width
    return _with_closed(model, opened, tuple(frames), holds)


@functools.lru_cache(maxsize=256)
def _with_closed(
    model: Model,
    opened: tuple[str, ...],
    frames: tuple[tuple[str, tuple[float, ...]], ...],
    holds: tuple[tuple[str, float], ...],
) -> Model:
    if frames:
        model = with_captured_placements(model, [name for name, _ in frames], [x for _, own in frames for x in own])
    loops, couplings = ([x.name for x in group if x.name in opened] for group in (model.loops, model.couplings))
    if loops:
        model = model.remove(loops, kind="loop")
    if couplings:
        model = model.remove(couplings, kind="coupling")
    stops = tuple(Coupling(joint + STOP, joint, offset=at, switchable=True) for joint, at in holds)
    return replace(model, couplings=(*model.couplings, *stops)) if stops else model


def _hold(model: Model, joint: str, q: np.ndarray) -> tuple[str, float]:
    """A joint with a stop, and the limit at which it is."""
    j, at = model.joint(joint), float(q[model.q_slice(joint)][0])
    limits = [x[0] for x in (j.lower, j.upper) if x is not None and np.isfinite(x[0])]
    return joint, min(limits, key=lambda x: abs(x - at), default=at)


@functools.lru_cache(maxsize=32)
def robot_of(model: Model) -> Dynamics:
    """The kernels of a model, kept: segments come again."""
    return Dynamics(model)


@dataclass(frozen=True, eq=False)
class HeldLoops:
    """Loops of a model at the frames that they hold, by kernels that models with other captured frames share."""

    base: Model  # with all switchable loops and couplings at the same frames
    captures: tuple[str, ...]
    captured: np.ndarray

    def closure_error(self, q: np.ndarray) -> np.ndarray:
        """Errors (n, n_rows) at rows q (n, nq)."""
        return self._called("closure_error", q)

    def closure_jacobian(self, q: np.ndarray) -> np.ndarray:
        """J (n, n_rows, nv) at rows q (n, nq)."""
        return self._called("closure_jacobian", q)

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, *, forces: Mapping[str, np.ndarray] | None = None
    ) -> np.ndarray:
        """Accelerations (n, nv) at rows q, v, tau, under forces (n, 6) on bodies."""
        if not len(q):
            return np.zeros_like(v)
        loads = (np.concatenate(list(forces.values()), axis=-1),) if forces else ()
        mask = row_masks(self.base, (), closed=self.captures, near=q[0], captures=self.captures)[0]
        inputs = (q, v, tau, *loads, np.tile(mask, (len(q), 1)))
        return self._called("forward_dynamics", *inputs, loaded=tuple(forces or ()))

    @property
    def model(self) -> Model:
        """A model with these joints and loops."""
        return self.base

    def _called(self, function: str, *inputs: np.ndarray, loaded: tuple[str, ...] = ()) -> np.ndarray:
        frames = np.tile(self.captured, (len(inputs[0]), 1))
        found: np.ndarray = _kernel(self.base, function, self.captures, loaded)(*inputs, frames)
        return found


@functools.lru_cache(maxsize=256)
def held_loops(model: Model) -> HeldLoops | Dynamics:
    """Closure rows and forward dynamics of a model; where loops may have captured frames, with these as inputs."""
    names = [x.name for x in model.loops if x.switchable], [c.name for c in model.couplings if c.switchable]
    captures = (*names[0], *names[1])
    if not captures:
        return robot_of(model)
    loops = tuple(replace(x, placement_b=Placement()) if x.switchable else x for x in model.loops)
    couplings = tuple(replace(x, offset=0.0) if x.switchable else x for x in model.couplings)
    m = mechanism(model)
    captured = np.array([x for name in captures for x in own_placement(m, name)], float)
    return HeldLoops(replace(model, loops=loops, couplings=couplings), captures, captured)


@functools.lru_cache(maxsize=64)
def _kernel(base: Model, function: str, captures: tuple[str, ...], loaded: tuple[str, ...]) -> Any:
    return machine_kernel(KernelSpec.of(base, function, captures=captures, forces=loaded))
