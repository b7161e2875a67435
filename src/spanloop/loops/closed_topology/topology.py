"""A closed topology assembled from two systems and a set of closures, each part with kernels of its own.

[Rodriguez, Jain & Kreutz, sections 2.3 and 3]. The primary system is what changes least (arms), the secondary what
they work on (an object, a tool, a mechanism), and closures join them, or frames of one of them.

|   | primary system          | both            | secondary system        | kernel |
|---|-------------------------|-----------------|-------------------------|--------|
| A | M_P β̇ᶠ_P = T̂_P          |                 | M_S β̇ᶠ_S = T̂_S          | free   |
| B | α̃ᶠ_P = J_P β̇ᶠ_P         |                 | α̃ᶠ_S = J_S β̇ᶠ_S         | free   |
| C | Λ_P = J_P M_P⁻¹ J_P*    |                 | Λ_S = J_S M_S⁻¹ J_S*    | free   |
| D |                         | A Λ A* f̃ = A α̃ᶠ − U |                     | step D |
| E | M_P β̇ᵟ_P = −J_P*A_P* f̃  |                 | M_S β̇ᵟ_S = −J_S*A_S* f̃  | forced |
| F | β̇_P = β̇ᶠ_P + β̇ᵟ_P       |                 | β̇_S = β̇ᶠ_S + β̇ᵟ_S       | –      |

A new secondary system compiles its own two kernels, a new set of closures between the same points only step D.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.dropped_rows import dropped_row_demands
from spanloop.algorithms.papers.rodriguez_jain_kreutz.closed_topology import secondary_body
from spanloop.compiler.lower import traced_inputs
from spanloop.compiler.runtime import arrays
from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.errors import InputError, nearest
from spanloop.kernels import redundancy_of
from spanloop.kernels.state_refusals import OTHER_ASSEMBLY
from spanloop.loops.arguments import external_forces, loop_inputs
from spanloop.loops.closed_topology.combined_model import PRIMARY, SECONDARY, as_loops, joined, of_points, points
from spanloop.loops.closed_topology.constraint_force_step import StepD
from spanloop.loops.closed_topology.system_kernels import Column
from spanloop.model import Model
from spanloop.model.parts import Loop
from spanloop.topology import mechanism


class ClosedTopology:
    """Forward dynamics of two systems and the closures between and within them.

    pair = sl.ClosedTopology(arms, box, [("tool1", "side1", "fixed"), ("tool2", "side2", "spherical")])
    a = pair.forward_dynamics(q, v, tau)
    pair = pair.with_secondary(crate)          # the arms' kernels stay
    pair = pair.with_closures([...])           # only step D is compiled

    q (..., nq), v, tau, a (..., nv) hold the primary system's entries first, then the secondary's, as in pair.model:
    the two systems as one model. pair.split(a) gives both parts.
    """

    model: Model
    primary: Column
    secondary: Column
    step_d: StepD | None

    def __init__(
        self,
        primary: Model,
        secondary: Model,
        closures: Sequence[Any] = (),
        *,
        points: Sequence[str] = (),
        threads: int = 1,
        target: str = "cpu",
        on_singular: str = "raise",
    ):
        """closures: (frame, frame, joint) or (frame, frame, joint, name), the joint a kind or its name, or loops whose
        ends are frames. Frames are of either system, bodies or the world. A model's own loops come along.

        points: names of more frames or bodies that closures to come may join, so that they too find kernels made.
        threads: for batches, 0 for all cores; target, on_singular: as in sl.Dynamics.
        """
        if on_singular not in ("raise", "minimum_norm"):
            raise InputError(f"on_singular is {on_singular!r}; expected 'raise' or 'minimum_norm'")
        if target not in ("cpu", "python"):
            raise InputError(f"target is {target!r}; {nearest(target, ('cpu', 'python'))}")
        self._parts = (primary, secondary, as_loops(closures), tuple(points))
        self._options: dict[str, Any] = {"threads": threads, "target": target, "on_singular": on_singular}
        self._assemble(None)

    def _assemble(self, old: ClosedTopology | None) -> ClosedTopology:
        """Columns and step D: those of the old one where they will do."""
        one, other, between, ready = self._parts
        loops = (*one.loops, *other.loops, *between)
        made = {k: x for k, x in self._options.items() if k != "on_singular"}
        of = {name: points(loops, ready, name, one, other) for name in (PRIMARY, SECONDARY)}
        self.model = joined(one, other, between)
        self.primary = Column.of(one, of[PRIMARY], made, old.primary if old else None)
        self.secondary = Column.of(other, of[SECONDARY], made, old.secondary if old else None)
        self._sizes = (("q", self.model.nq), ("v", self.model.nv), ("tau", self.model.nv))
        step = self._step_d(loops, made)
        self.step_d = old.step_d if old and old.step_d == step else step
        return self

    def _step_d(self, loops: Sequence[Loop], made: dict[str, Any]) -> StepD | None:
        if not loops:
            return None
        m = mechanism(self.model)
        found = redundancy_of(self.model)
        found = replace(
            found, refuses_singular=found.refuses_singular and self._options["on_singular"] == "raise", weak=frozenset()
        )
        body = secondary_body(m, found)
        return StepD(
            of_points(self.primary.points + self.secondary.points, loops),
            (len(self.primary.points), len(self.secondary.points)),
            self.primary.coupled,
            body is not None and body.body >= len(mechanism(self.primary.model).links),
            found,
            tuple(made.items()),
        )

    # ---- changes

    def with_secondary(self, secondary: Model, closures: Sequence[Any] | None = None) -> ClosedTopology:
        """The same with another secondary system, with the same closures unless others are named."""
        one, _, between, ready = self._parts
        return self._changed(one, secondary, between if closures is None else as_loops(closures), ready)

    def with_closures(self, closures: Sequence[Any]) -> ClosedTopology:
        """The same with other closures instead of its own; loops of the two models stay."""
        one, other, _, ready = self._parts
        return self._changed(one, other, as_loops(closures), ready)

    def _changed(self, *parts: Any) -> ClosedTopology:
        new = object.__new__(ClosedTopology)
        new._parts, new._options = parts, self._options
        return new._assemble(self)

    # ---- dynamics

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: Mapping[str, ArrayLike] | None = None,
    ) -> np.ndarray:
        """Accelerations a (..., nv) under torques tau; a driven joint's entry of tau is its acceleration.

        forces: {"body": [torque; force] (..., 6)} from outside, at body origins in world axes.
        active_loops: names of the switchable loops that are closed; all by default. loop_accelerations:
        {"loop": (..., n)}, accelerations along the DoF of driven loops.
        """
        loads = _loads(self.model, forces or {})
        extras = loop_inputs(self.model, active_loops, loop_accelerations)
        state, leading = arrays.accepted("forward_dynamics", self._sizes, (q, v, tau), np.dtype(float))
        leading = np.broadcast_shapes(leading, *(x.shape[:-1] for x in (*loads.values(), *extras)))
        whole = [x if x.shape[:-1] == leading else np.broadcast_to(x, (*leading, x.shape[-1])) for x in state]
        (q_P, q_S), (v_P, v_S), (tau_P, tau_S) = map(self.split, whole)

        free_P, points_P = self.primary.response(q_P, v_P, tau_P, loads)  # A, B, C
        free_S, points_S = self.secondary.response(q_S, v_S, tau_S, loads)
        a = np.concatenate((free_P, free_S), axis=-1)
        if self.step_d is None:
            return a
        fine = np.isfinite(a).all(axis=-1)
        if not fine.any():
            return a
        points_P, points_S, q_P, q_S = (_stand_in(fine, x) for x in (points_P, points_S, q_P, q_S))
        push = self.step_d.kernel.evaluate(*(x for x in (points_P, points_S) if x.shape[-1]), *extras)  # D
        fine &= np.isfinite(push).all(axis=-1)
        push, k = np.where(fine[..., None], push, 0.0), 6 * len(self.primary.points)
        more = (self.primary.forced(q_P, push[..., :k]), self.secondary.forced(q_S, push[..., k:]))  # E
        a = np.where(fine[..., None], a + np.concatenate(more, axis=-1), np.nan)  # F
        self._refuse_other_assemblies(whole, extras, a)
        return a

    def _refuse_other_assemblies(
        self, state: Sequence[np.ndarray], extras: Sequence[np.ndarray], a: np.ndarray
    ) -> None:
        """Refuse states at which rows that step D leaves out as redundant would open; they are tested one by one."""
        found, m = redundancy_of(self.model), mechanism(self.model)
        if not self._tests_rows:
            return
        leading, names = a.shape[:-1], [*(n for n, _ in self._sizes), *closure_kinematics.extra_inputs(m)]
        rows = [np.broadcast_to(x, (*leading, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (*state, *extras)]
        flat, refused = a.reshape(-1, a.shape[-1]), []
        for k in np.flatnonzero(np.isfinite(flat).all(axis=1)):
            inputs = {n: x[k].tolist() for n, x in zip(names, rows, strict=True)}
            if not all(less < more for less, more in dropped_row_demands(m, found, inputs, flat[k].tolist())):
                refused.append(int(k))
        refuse_states("forward_dynamics", refused, lambda _: OTHER_ASSEMBLY, leading, flat)

    @functools.cached_property
    def _tests_rows(self) -> bool:
        """Whether rows are left out whose accelerations do not vanish by structure."""
        m = mechanism(self.model)
        inputs = traced_inputs((*self._sizes, *closure_kinematics.extra_inputs(m).items(), ("a", m.nv)))
        return bool(dropped_row_demands(m, redundancy_of(self.model), inputs, inputs["a"]))

    def split(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """q (..., nq), or v, tau, a (..., nv), of both systems as (primary, secondary)."""
        x = np.asarray(x)
        sizes = dict(zip((size for _, size in self._sizes[:2]), self.primary.sizes, strict=True))
        if x.ndim == 0 or x.shape[-1] not in sizes:
            raise InputError(
                f"split: x has shape {x.shape}; expected q (..., {self.model.nq}) or v (..., {self.model.nv})"
            )
        n = sizes[x.shape[-1]]
        return x[..., :n], x[..., n:]

    def __repr__(self) -> str:
        one, other, between, _ = self._parts
        return f"ClosedTopology({one.name!r}, {other.name!r}, {len(between)} closures, nv={self.model.nv})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (*self._parts, self._options)


def _remade(
    primary: Model, secondary: Model, closures: Sequence[Any], ready: Sequence[str], options: dict[str, Any]
) -> ClosedTopology:
    return ClosedTopology(primary, secondary, closures, points=ready, **options)


def _loads(model: Model, forces: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """External forces [torque; force] (..., 6) by body, in the model's order, their batch axes broadcast."""
    names, _ = external_forces(model, "forward_dynamics", forces)
    wide = np.broadcast_arrays(*(np.asarray(forces[n], float) for n in names)) if names else []
    return dict(zip(names, wide, strict=True))


def _stand_in(fine: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Rows (..., n) with the first that is fine in place of all that are not."""
    return x if fine.all() else np.where(fine[..., None], x, x[fine][0])
