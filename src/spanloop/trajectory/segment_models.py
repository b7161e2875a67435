"""Models of segments: a mechanism with the loops, couplings and stops that are closed in a segment."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.kernels.compile import machine_kernel
from spanloop.kernels.row_masks import row_masks
from spanloop.kernels.spec import KernelSpec
from spanloop.model import Model
from spanloop.model.parts import Coupling, Placement
from spanloop.topology import mechanism
from spanloop.topology.captured_frames import FRAME, OFFSET, own_placement, with_captured_placements
from spanloop.trajectory.events import STOP, EventTable
from spanloop.types import Array


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


# ---- kernels


@functools.lru_cache(maxsize=64)
def robot_of(model: Model) -> Dynamics:
    """The kernels of a segment's model; segments that differ in captured frames share theirs."""
    return HeldDynamics(model) if model.switches else Dynamics(model)


class HeldDynamics(Dynamics):
    """A Dynamics whose switchable loops and couplings are closed where the model has them.

    Their frames and offsets are inputs of its kernels, and what does not depend on loops comes from the tree: a model
    that holds other frames needs no kernels of its own.
    """

    def __init__(self, model: Model):
        super().__init__(model)
        self._base = _without_frames(model)
        self._tree = robot_of(replace(model, loops=(), couplings=()))
        m = mechanism(model)
        self._captured = np.array([x for name in model.switches for x in own_placement(m, name)], float)
        self._near: np.ndarray | None = None

    def forward_dynamics(self, q: ArrayLike, *state: ArrayLike, **options: Any) -> Array:
        rows = np.reshape(np.asarray(q, float), (-1, self.model.nq))
        known = rows[np.isfinite(rows).all(axis=1)]
        self._near = known[0] if len(known) else None
        return super().forward_dynamics(q, *state, **options)

    def _kernel(self, function: str, **options: Any) -> Any:
        if function in _OF_LOOPS:
            kernel = _kernel_of_loops(self._base, function, tuple(sorted(options.items())))
            return _HeldKernel(kernel, self._captured)
        if function in _OF_TREES:
            return self._tree._kernel(function, **options)
        return super()._kernel(function, **options)

    def _row_mask(self, model: Model, active_loops: frozenset[str]) -> np.ndarray:
        return row_masks(self.model, (), closed=active_loops, near=self._near, captures=self.model.switches)[0]

    def _shorten(self, function: str, kernel: Any) -> None:
        """Calls go through the methods, which add the frames."""


def _without_frames(model: Model) -> Model:
    """The model with all frames and offsets at which switchable loops and couplings may hold at zero."""
    loops = tuple(replace(x, placement_b=Placement()) if x.switchable else x for x in model.loops)
    couplings = tuple(replace(x, offset=0.0) if x.switchable else x for x in model.couplings)
    return replace(model, loops=loops, couplings=couplings)


def row_lengths(model: Model) -> np.ndarray:
    """By which errors of closure rows (n_rows,) are divided before they are compared: a length, or 1 for radians.

    A frame that was captured beside its place by rounding makes no length.
    """
    own = np.array(mechanism(model).row_lengths)
    return np.maximum(own, mechanism(_without_frames(model)).row_lengths) if model.switches else own


_OF_TREES = (
    "mass_matrix", "bias", "gravity_torques", "reactions", "pose", "poses", "jacobian", "jacobian_bias",
    "frame_velocity", "frame_acceleration", "energy", "momentum", "center_of_mass", "integrate", "difference",
)  # fmt: skip
_OF_LOOPS = ("forward_dynamics", "closure_error", "closure_facing", "closure_jacobian", "closure_bias")


@functools.lru_cache(maxsize=64)
def _kernel_of_loops(base: Model, function: str, options: tuple[tuple[str, Any], ...]) -> Any:
    return machine_kernel(KernelSpec.of(base, function, captures=base.switches, **dict(options)))


class _HeldKernel:
    """A kernel whose last input is given."""

    def __init__(self, kernel: Any, captured: np.ndarray):
        self.kernel, self.captured = kernel, captured

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        return self.kernel(*inputs, self.captured, out=out)

    def evaluate(self, *inputs: np.ndarray) -> np.ndarray:
        """The answers for rows of states (n, ...); NaN for a state without one."""
        frames = np.broadcast_to(self.captured, (*np.shape(inputs[0])[:-1], len(self.captured)))
        found: np.ndarray = self.kernel.evaluate(*inputs, np.ascontiguousarray(frames))
        return found

    @property
    def dtype(self) -> Any:
        """The type of its numbers."""
        return self.kernel.dtype
