"""From the arguments q, v (and parameters) of a run to the state that it starts with: how derivatives pass.

Coordinates move at rates of the joints: q → q ⊕ dq. Where a run keeps loops closed, its start is brought to them, as a
step does: (q, v) → (closed q, closed v). At a start that is closed, this leaves closed motions as they are and removes
the others, so that a derivative by q or v is one along closed motions; live lengths move the start with the loops.
A body that is absent at the start does not move, whatever v is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.derivative.forward import directional
from spanloop.compiler.derivative.reverse import pullback
from spanloop.joints import JointKind
from spanloop.kernels import content
from spanloop.math.scalar import where
from spanloop.math.vector3 import total
from spanloop.model import Model
from spanloop.simulation.gradients.derived_kernel import derived_kernel, rows_of
from spanloop.simulation.problem import Problem
from spanloop.simulation.system import System

Arrays = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class StartMap:
    """The map from arguments to the state at the start, of one problem."""

    problem: Problem

    def pullback(self, of_q: np.ndarray, of_v: np.ndarray) -> dict[str, np.ndarray]:
        """Derivatives by arguments: q (n, nv) at joint rates, v (n, nv), and p where live lengths move the start.

        of_q (n, nq), of_v (n, nv): derivatives by the state at the start.
        """
        nv, system = self._nv, self._system
        sizes = self._sizes | {"w.q": self._nq, "w.v": nv}
        count = 2 * nv + (system.sizes["p"] if self.moves_with_parameters else 0)
        found = derived_kernel("start.pullback", sizes, count, lambda x: _pulled(system, x), system.key())
        rows = rows_of(found, *self._rows, of_q, of_v)
        parts = {"q": rows[:, :nv], "v": rows[:, nv : 2 * nv]}
        return parts | ({"p": rows[:, 2 * nv :]} if self.moves_with_parameters else {})

    def pushed(self, rates: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Rates of q (n, columns, nq) and v (n, columns, nv) at the start.

        rates: of the arguments, q and v (columns, nv), and p (columns, parameters).
        """
        nq, nv, system = self._nq, self._nv, self._system
        given = {"d.q": rates["q"], "d.v": rates["v"]}
        given |= {"d.p": rates["p"]} if self.moves_with_parameters else {}
        sizes = self._sizes | {name: x.shape[-1] for name, x in given.items()}
        found = derived_kernel("start.rates", sizes, nq + nv, lambda x: _pushed(system, x), system.key())
        rows = rows_of(found, *(x[:, None] for x in self._rows), *(x[None] for x in given.values()))
        return rows[..., :nq], rows[..., nq:]

    @property
    def moves_with_parameters(self) -> bool:
        """Whether live parameters move the start."""
        return self._system.keeps_closed and self._system.live

    @property
    def _system(self) -> System:
        return replace(self.problem.system, implicit=False, frozen=self.problem.system.switching is not None)

    @property
    def _nq(self) -> int:
        return self.problem.model.nq

    @property
    def _nv(self) -> int:
        return self.problem.model.nv

    @cached_property
    def _sizes(self) -> dict[str, int]:
        names = self._system.constants if self._system.keeps_closed else ()
        return {"q": self._nq, "v": self._nv} | {n: self._system.sizes[n] for n in names}

    @property
    def _rows(self) -> list[np.ndarray]:
        switched = self.problem.switched_start if self._system.frozen else {}
        known = {**self.problem.constant_rows(), **switched, "q": self.problem.q, "v": self.problem.v}
        return [known[n] for n in self._sizes]


def _start(system: System, x: Arrays) -> tuple[list[Any], list[Any]]:
    """q and v with the loops closed, and without the motion of bodies that are absent."""
    q, v = _closed(system, x)
    for i in system.switching.absent_dofs if system.switching else ():
        v[i] = 0.0 * v[i]
    return q, v


def _closed(system: System, x: Arrays) -> tuple[list[Any], list[Any]]:
    """q and v with the loops closed; where all are open, as they are.

    An open loop may have no finite derivative: a string of length 0. It does not count.
    """
    if not system.keeps_closed:
        return list(x["q"]), list(x["v"])
    q, _ = system.closed_position(x, 1)
    v = system.closed_velocity({**x, "q": q})
    if not (system.all_switchable and "active" in x):
        return q, v
    some = total(x["active"]) > 0.0
    q = [where(some, a, b) for a, b in zip(q, x["q"], strict=True)]
    return q, [where(some, a, b) for a, b in zip(v, x["v"], strict=True)]


def _pulled(system: System, x: Arrays) -> list[Any]:
    """Derivatives by q (nv), v (nv) and live parameters, on traced scalars."""
    q, v = _start(system, x)
    live = list(x["p"]) if "p" in x else []
    found = pullback([*q, *v], [*x["w.q"], *x["w.v"]], [*x["q"], *x["v"], *live])
    nq = len(x["q"])
    return [*_at_rates(system.model, x["q"], found[:nq]), *found[nq:]]


def _pushed(system: System, x: Arrays) -> list[Any]:
    """Rates of q (nq) and v (nv) at the start, on traced scalars."""
    q, v = _start(system, x)
    live = (list(x["p"]), list(x["d.p"])) if "d.p" in x else ([], [])
    moving, rates = [*x["q"], *x["v"], *live[0]], [*system.rates(x["q"], x["d.q"]), *x["d.v"], *live[1]]
    return directional([*q, *v], moving, rates)


def _at_rates(model: Model, q: Sequence[Any], of_q: Sequence[Any]) -> list[Any]:
    """Derivatives by coordinates (nq) as derivatives by joint rates (nv)."""
    return [total(rate * w for rate, w in zip(row, of_q[at], strict=True)) for at, row in _unit_rates(model, q)]


def _unit_rates(model: Model, q: Sequence[Any]) -> Iterator[tuple[slice, Sequence[Any]]]:
    """For each degree of freedom its joint's coordinates, and their rates while it moves at rate 1."""
    for joint in model.joints:
        at, nv = model.q_slice(joint.name), joint.kind.nv
        for k in range(nv):
            yield at, joint.kind.rates(tuple(q[at]), tuple(float(i == k) for i in range(nv)))


def joint_rates(model: Model, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Rates of coordinates (..., columns, nq) at q (..., nq) as rates of joints (..., columns, nv).

    The degrees of freedom of a joint move its coordinates in directions that are orthogonal to each other.
    """
    if all(type(joint.kind).rates is JointKind.rates for joint in model.joints):
        return rates

    def compute(x: Arrays) -> list[Any]:
        rows = list(_unit_rates(model, x["q"]))
        squares = [total(r * r for r in row) for _, row in rows]
        return [a / b for a, b in zip(_at_rates(model, x["q"], x["d.q"]), squares, strict=True)]

    found = derived_kernel("joint_rates", {"q": model.nq, "d.q": model.nq}, model.nv, compute, content(model))
    return rows_of(found, q[..., None, :], rates)
