"""Derivatives of the dynamics of trees as kernels: ∂a/∂(q, v, tau) and ∂tau/∂(q, v, a).

    tau = ID(q, v, a),   M = ∂ID/∂a:   ∂a/∂(q, v) = −M⁻¹ ∂ID/∂(q, v) at the accelerations that tau gives,  ∂a/∂tau = M⁻¹

Vectors of every degree of freedom come from two sweeps (algorithms/tree/inverse_dynamics_derivatives.py); products of
them and the solution are loops (compiler/lower/pair_system.py). The acceleration of a driven joint is its entry of
tau: its row is [0 0 1], and its column says how the others accelerate with it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.algorithms.catalog import Algorithm
from spanloop.algorithms.tree import inverse_dynamics_derivatives as terms
from spanloop.compiler.derivative import tangents
from spanloop.compiler.lower import Addition, PairMatrix, PairSystem, Plan, traced_inputs
from spanloop.compiler.lower.evaluation import evaluated
from spanloop.compiler.trace import Expression
from spanloop.errors import Refusal
from spanloop.kernels.compile import machine_kernel
from spanloop.kernels.lowering import unit_conditions
from spanloop.kernels.spec import KernelSpec
from spanloop.model import Model
from spanloop.topology import Mechanism
from spanloop.topology.tree_paths import path

if TYPE_CHECKING:
    from spanloop.compiler.runtime.kernel import Kernel
    from spanloop.kernels.compile import AnyKernel

SHORT = 13000  # operations up to which code without loops is faster
BY_POSITION, BY_RATE, BY_ACCELERATION = range(3)  # the three matrices
FORWARD, INVERSE = "derivatives", "inverse_dynamics_derivatives"
_MAKERS = {FORWARD: terms.terms_of_forward_dynamics, INVERSE: terms.terms_of_inverse_dynamics}


@dataclass(frozen=True, eq=False)
class TreeDerivatives:
    """The definition of a kernel; `of` makes it. front: computes the vectors of all degrees of freedom."""

    name: str
    front: KernelSpec

    @staticmethod
    def of(
        model: Model, name: str, forces: Sequence[str] = (), *, single: bool = False, lowering: str = "auto"
    ) -> TreeDerivatives:
        """name: FORWARD or INVERSE; forces: names of bodies with external forces; single: for float32."""
        options = {"loaded": tuple(forces)} if forces else {}
        algorithm = Algorithm(_MAKERS[name], ("loaded",))
        front = KernelSpec(
            model, name, "composite_body", algorithm, options, regroup=True, lowering=lowering, single=single
        )
        return TreeDerivatives(name, front)

    @property
    def label(self) -> str:
        """What it computes, for reports."""
        return self.front.label

    @functools.cached_property
    def key(self) -> str:
        """Names everything that the plan depends on; needs no tracing."""
        return hashlib.sha256(f"pairs|{self.front.key}".encode()).hexdigest()

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""
        nv = self.front.model.nv
        return self.front.signature()[0], (nv, 3 * nv)

    @functools.cached_property
    def plan(self) -> PairSystem | Plan:
        """The vectors of all DoF, and what is made of them: by loops, or written out if that is short."""
        if isinstance(self.system.front, Plan) and self.system.operations.total <= 2 * SHORT:
            written = self.system.written_out()
            if written.operations.total <= SHORT:
                return written
        return self.system

    @functools.cached_property
    def system(self) -> PairSystem:
        """The vectors, and their pairs."""
        m = self.front.program[0]
        curved, plan = _curved_springs(m), self.front.plan
        extra: list[Addition] = []
        if curved:
            plan, extra = self._with_springs(m, curved)
        below, above = _related(m)
        driven = frozenset(k for link in m.links if link.driven for k in range(link.v.start, link.v.stop))
        solved = self.name == FORWARD
        matrices = _matrices(bool(self.front.options))
        additions = (*_at_joints(m), *extra)
        return PairSystem(
            self.name,
            plan,
            self.signature()[1],
            matrices,
            below,
            above,
            additions,
            solved,
            driven if solved else frozenset(),
        )

    def _with_springs(self, m: Mechanism, curved: Sequence[Any]) -> tuple[Plan, list[Addition]]:
        """The front, with derivatives of springs that are not linear in the joint's coordinates."""
        inputs, _ = self.front.signature()
        x = traced_inputs(inputs)
        answer, demands = self.front.compute(x)
        additions = []
        for link in curved:
            first, nv = link.v.start, link.kind.nv
            q = tuple(x["q"][link.q])
            torque, _ = link.kind.spring(q, link.rest, link.stiffness)
            units = [tuple(float(i == k) for i in range(nv)) for k in range(nv)]
            seeds: dict[int, dict] = {}
            for k, unit in enumerate(units):
                for node, rate in zip(q, link.kind.rates(q, unit), strict=True):
                    if isinstance(rate, Expression) or rate:
                        seeds.setdefault(node.index, {})[k] = rate
            for i, by in enumerate(tangents(torque, seeds)):
                for k, y in by.items():
                    additions.append(Addition(BY_POSITION, first + i, first + k, at=len(answer)))
                    answer.append(-y)
        guards = list(unit_conditions(self.front.model, x))
        plan = Plan.of(self.name, x, (len(answer),), answer, guards, [a < b for a, b in demands])
        return plan, additions

    def reference(self, *arrays: np.ndarray) -> np.ndarray | None:
        """The answer of one state on Python floats; None if it has none."""
        found = self.front.reference(*arrays)
        if found is None:
            return None
        numbers = found.ravel().tolist()
        if len(numbers) < self.system.width:
            assert isinstance(self.system.front, Plan)
            numbers = evaluated(self.system.front, [float(y) for x in arrays for y in x])[0]
        try:
            answer = self.system.evaluate(numbers)
        except np.linalg.LinAlgError:
            return None
        return answer if np.isfinite(answer).all() else None

    def explain(self, *arrays: np.ndarray) -> Refusal:
        """Why this state has no answer."""
        return self.front.explain(*arrays)

    def other_kernels(self, dtype: str, *arrays: np.ndarray) -> Iterator[Kernel]:
        """There are none: trees have one assembly."""
        return iter(())


def tree_kernel(
    model: Model,
    name: str,
    forces: Sequence[str] = (),
    *,
    dtype: str = "float64",
    threads: int = 1,
    target: str = "cpu",
    on_singular: str = "raise",
) -> AnyKernel:
    """The kernel of FORWARD or INVERSE, k(q, v, tau or a[, forces]) -> (..., nv, 3 nv); options as of sl.Dynamics."""
    definition = TreeDerivatives.of(model, name, forces, single=np.dtype(dtype) == np.float32)
    if target == "python":
        from spanloop.compiler.runtime.reference import PythonKernel

        return PythonKernel(definition, dtype)
    if target == "cuda":
        from spanloop.compiler.runtime.gpu.kernel import GpuKernel

        return GpuKernel(definition, dtype)
    return machine_kernel(definition, dtype=dtype, threads=threads)


def _matrices(loaded: bool) -> tuple[PairMatrix, PairMatrix, PairMatrix]:
    """The rows that are multiplied, by the names of PARTS."""
    rows, at = {}, 0
    for part, size in terms.LOADED_PARTS.items():
        rows[part] = range(at, at + size)
        at += size

    def dot(x: str, y: str) -> tuple[tuple[int, int], ...]:
        return tuple(zip(rows[x], rows[y], strict=False))  # of ψ and s, b and e meet the angular parts

    held = dot("e", "s") if loaded else ()
    return (
        PairMatrix(dot("F", "chi") + dot("b", "psi") + held, dot("s", "f_q")),
        PairMatrix(dot("F", "gamma") + dot("b", "s"), dot("s", "f_v")),
        PairMatrix(dot("F", "s"), dot("s", "F")),
    )


def _related(m: Mechanism) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """For each degree of freedom i those j that carry it or move the same joint, and those that it carries."""
    below: list[list[int]] = [[] for _ in range(m.nv)]
    above: list[list[int]] = [[] for _ in range(m.nv)]
    for link in m.links:
        own = range(link.v.start, link.v.stop)
        carriers = [k for a in path(m.parents, link.parent)[:-1] for k in range(m.links[a].v.start, m.links[a].v.stop)]
        for i in own:
            joint = own if link.kind.constant_space else range(own.start, i + 1)
            below[i] = sorted([*carriers, *joint])
        for i in carriers:
            above[i] += own
        if not link.kind.constant_space:  # one after the other
            for i in own:
                above[i] += range(i + 1, own.stop)
    return tuple(map(tuple, below)), tuple(tuple(sorted(row)) for row in above)


def _at_joints(m: Mechanism) -> Iterator[Addition]:
    """Armature, dampers, and springs that are linear in the coordinates."""
    springs = {link.number for link in _curved_springs(m)}
    for link in m.links:
        for k in range(link.kind.nv):
            i = link.v.start + k
            if link.armature[k]:
                yield Addition(BY_ACCELERATION, i, i, float(link.armature[k]))
            if link.damping[k]:
                yield Addition(BY_RATE, i, i, float(link.damping[k]))
            if link.number not in springs and link.stiffness[k]:
                yield Addition(BY_POSITION, i, i, float(link.stiffness[k]))


def _curved_springs(m: Mechanism) -> list[Any]:
    """Links with springs at joints whose rates are not those of their coordinates."""
    return [link for link in m.links if any(link.stiffness) and not _is_flat(link.kind)]


def _is_flat(kind: Any) -> bool:
    """Whether dq/dt = v."""
    probe = tuple(0.1 * (k + 1) for k in range(kind.nv))
    return kind.nq == kind.nv and tuple(kind.rates(probe, probe)) == probe
