"""From the arguments q, v (and parameters) of a run to the state that it starts with: how derivatives pass.

Coordinates move at rates of the joints: q → q ⊕ dq. Where a run keeps loops closed, its start is brought to them, as a
step does: (q, v) → (closed q, closed v). At a start that is closed, this leaves closed motions as they are and removes
the others, so that a derivative by q or v is one along closed motions; live lengths move the start with the loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.derivative.reverse import pullback
from spanloop.compiler.lower import Plan, unrolled
from spanloop.compiler.lower.evaluation import evaluated
from spanloop.model import Model
from spanloop.simulation.problem import Problem
from spanloop.simulation.system import System
from spanloop.simulation.traced_kernels import kernel

Arrays = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class StartMap:
    """The map from arguments to the state at the start, of one problem."""

    problem: Problem

    def pullback(self, of_q: np.ndarray, of_v: np.ndarray) -> dict[str, np.ndarray]:
        """Derivatives by arguments: q (n, nv) at joint rates, v (n, nv), and p if parameters are live.

        of_q (n, nq), of_v (n, nv): derivatives by the state at the start.
        """
        nv = self.problem.model.nv
        given = self.problem.constant_rows() | (self.problem.switched_start if self._system.frozen else {})
        rows = {name: x for name, x in given.items() if name in self._sizes}
        rows |= {"q": self.problem.q, "v": self.problem.v, "w.q": of_q, "w.v": of_v}
        found = self._kernel().evaluate(*(np.ascontiguousarray(rows[n], float) for n in self._sizes))
        return {"q": found[:, :nv], "v": found[:, nv : 2 * nv]} | ({"p": found[:, 2 * nv :]} if self._live else {})

    @property
    def _system(self) -> System:
        return replace(self.problem.system, implicit=False, frozen=self.problem.system.switching is not None)

    @property
    def _live(self) -> bool:
        return self._system.keeps_closed and self._system.live

    @cached_property
    def _sizes(self) -> dict[str, int]:
        nq, nv = self.problem.model.nq, self.problem.model.nv
        names = self._system.constants if self._system.keeps_closed else ()
        return {"q": nq, "v": nv, "w.q": nq, "w.v": nv} | {n: self._system.sizes[n] for n in names}

    def _kernel(self) -> Any:
        count = 2 * self.problem.model.nv + (self._system.sizes["p"] if self._live else 0)
        inputs = tuple(self._sizes.items())

        def traced(x: Arrays) -> list[Any]:
            return _pulled(self._system, x)

        def plan() -> Plan:
            return unrolled("start", inputs, (0,), lambda x: (traced(x), (), ()))

        def compute(x: Arrays) -> tuple[list[Any], tuple[()]]:
            numbers = [y for n, _ in inputs for y in x[n]]
            is_traced = any(not isinstance(y, float) for y in numbers)
            return (traced(x) if is_traced else evaluated(plan(), numbers)[0]), ()

        return kernel("start", self._sizes, count, compute, self._system.key())


def _pulled(system: System, x: Arrays) -> list[Any]:
    """Derivatives by q (nv), v (nv) and live parameters, on traced scalars."""
    of_q, of_v, of_p = list(x["w.q"]), list(x["w.v"]), list[Any]()
    if system.keeps_closed:
        live = list(x["p"]) if system.live else []
        q, _ = system.closed_position(x, 1)
        v = system.closed_velocity({**x, "q": q})
        found = pullback([*q, *v], [*of_q, *of_v], [*x["q"], *x["v"], *live])
        nq, nv = len(of_q), len(of_v)
        of_q, of_v, of_p = found[:nq], found[nq : nq + nv], found[nq + nv :]
    return [*_at_rates(system.model, x["q"], of_q), *of_v, *of_p]


def _at_rates(model: Model, q: Sequence[Any], of_q: Sequence[Any]) -> list[Any]:
    """Derivatives by coordinates (nq) as derivatives by joint rates (nv)."""
    out: list[Any] = []
    for joint in model.joints:
        at, nv = model.q_slice(joint.name), joint.kind.nv
        for k in range(nv):
            unit = tuple(float(i == k) for i in range(nv))
            total: Any = 0.0
            for rate, w in zip(joint.kind.rates(tuple(q[at]), unit), of_q[at], strict=True):
                total = total + rate * w
            out.append(total)
    return out
