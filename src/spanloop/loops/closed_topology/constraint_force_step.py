"""The kernel of step D: forces at the points of closure. It depends on the closures, not on the systems they join."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import OPEN
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.rodriguez_jain_kreutz.constraint_step import closure_errors, constraint_step
from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.errors import Reason, Refusal
from spanloop.kernels import machine_kernel, source_hash
from spanloop.model import Model
from spanloop.sweeps import Program, walked
from spanloop.topology import Mechanism, mechanism


@dataclass(frozen=True)
class StepD:
    """Step D as data; equal ones share a kernel."""

    points: Model  # of points and loops alone: joined.of_points
    counts: tuple[int, int]  # points of the primary and of the secondary system
    coupled: tuple[tuple[int, int], ...]  # pairs of points of the primary that feel each other
    cheap: bool
    redundancy: Redundancy
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @property
    def key(self) -> str:
        """Of all that the plan depends on; names of frames and loops are not of it."""
        closures = [replace(c, name="") for c in self._made[0].closures]
        found = (sorted(self.redundancy.dropped), self.redundancy.refuses_singular, self.redundancy.refuses_open)
        parts = (closures, self.counts, self.coupled, self.cheap, found, source_hash())
        return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()

    @functools.cached_property
    def _made(self) -> tuple[Mechanism, Program]:
        m = mechanism(self.points)
        return m, constraint_step(m, self.counts, self.coupled, self.cheap, self.redundancy)

    @functools.cached_property
    def kernel(self):
        """k(primary, secondary, ...) -> forces at all points (..., 6 k), world axes."""
        options = dict(self.options)
        if options.pop("target") == "python":
            from spanloop.compiler.runtime.reference import PythonKernel

            return PythonKernel(self)
        return machine_kernel(self, **options)

    @property
    def name(self) -> str:
        return "forward_dynamics"

    @property
    def label(self) -> str:
        """What it computes, for reports."""
        return "constraint forces"

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""
        program = self._made[1]
        return tuple(program.sizes.items()), program.shape

    @functools.cached_property
    def plan(self) -> Plan:
        """The operations in order."""
        m, program = self._made
        inputs, shape = self.signature()
        traced = traced_inputs(inputs)
        numbers, pairs = walked(program, m, traced)
        return Plan.of(self.name, traced, shape, numbers, demands=[a < b for a, b in pairs])

    def reference(self, *rows: np.ndarray) -> np.ndarray | None:
        """One state on floats; None if it has no answer."""
        m, program = self._made
        try:
            numbers, pairs = walked(program, m, self._given(rows))
            found = np.array(numbers, dtype=float)
        except (ZeroDivisionError, OverflowError):
            return None
        return found if np.isfinite(found).all() and all(a < b for a, b in pairs) else None

    def other_kernels(self, dtype: str, *rows: np.ndarray) -> Iterator[Kernel]:
        """None of them: the assembly is chosen when the kernel is made."""
        return iter(())

    def explain(self, *rows: np.ndarray) -> Refusal:
        """Why this state has no answer."""
        m, program = self._made
        errors = np.abs(np.array(walked(closure_errors(m, program), m, self._given(rows))[0], dtype=float))
        worst = max(m.closures, key=lambda c: errors[list(c.rows)].max(initial=0.0))
        by = errors[list(worst.rows)].max(initial=0.0)
        if not by < 0.5 * OPEN:
            loop = self.points.loops[worst.number]
            return Refusal(
                Reason.OPEN_LOOP,
                f"loop {loop.name!r}, between {loop.a!r} and {loop.b!r}, is open by {by:.3g} (metres or radians). "
                "Close it first: q = sl.Dynamics(pair.model).assemble(q)",
            )
        return Refusal(
            Reason.SINGULAR_CLOSURE,
            "the loops are in a singular configuration, or too near one: constraints that are independent elsewhere "
            "depend on each other here, so that accelerations are not unique. See sl.Dynamics(pair.model).diagnose(q); "
            "on_singular='minimum_norm' gives one answer",
        )

    def _given(self, rows) -> Mapping[str, list[float]]:
        return {n: [float(x) for x in row] for n, row in zip(self._made[1].sizes, rows, strict=True)}
