"""The contact problem of a state, compiled for a model: W, accelerations of the points, forces.

    u̇ = d(J v)/dt + W f,   0 ≤ u̇_n ⊥ f_n ≥ 0 where a point is closed,   friction: a point that slips has f_t = −µ f_n d,
    d the direction of its slip; one that does not is in its cone, of maximum dissipation

The derivative of J v while q moves with v and v with the accelerations without contacts is taken on the traced graph,
so that it has all that turns and curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.algorithms.contact.points import contact_points
from spanloop.compiler.derivative import directional
from spanloop.compiler.lower import Stage
from spanloop.compiler.lower.schedule import Item
from spanloop.contacts.delassus import PREFIX, DelassusCalls, named
from spanloop.contacts.mechanics import ContactMechanics
from spanloop.contacts.solver.rounds import solver_calls
from spanloop.contacts.stage_function import StageFunction
from spanloop.kernels import KernelSpec, content
from spanloop.model import Model
from spanloop.model.contacts import contact_content
from spanloop.topology import mechanism


@dataclass(frozen=True)
class ContactProblem:
    """The functions of one model; rows of q, v, a are states."""

    model: Model
    on_singular: str = "raise"

    @cached_property
    def mechanics(self) -> ContactMechanics:
        """What contacts need of the mechanism."""
        baked = mechanism(self.model)

        def spec(name: str, **options: Any) -> KernelSpec:
            return KernelSpec.of(self.model, name, on_singular=self.on_singular, **options)

        def arrays_of(spec: KernelSpec, x: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
            return {n: x[n] for n, _ in spec.signature()[0]}

        given = ("active",) if baked.switched_rows else ()
        return ContactMechanics(self.model, contact_points(self.model, baked), spec, arrays_of, lambda x: baked, given)

    def delassus(self, q: np.ndarray, active: np.ndarray | None = None) -> np.ndarray:
        """W (n, size, size) of all points at rows q (n, nq); active: of closure rows that can be switched."""
        on = np.ones((1, self.mechanics.n))
        found = self._delassus(q=q, **{PREFIX + "on": on}, **self._given(active))[PREFIX + "W"]
        return self._square(found)

    def solved(self, active: np.ndarray | None = None, **rows: np.ndarray) -> dict[str, np.ndarray]:
        """f (n, size) [N, N m], W, accelerations of the points without contacts, changes of v̇ and the residual [m/s²].

        rows: q, v, a (accelerations without contacts), on, toward, coefficients, as in contacts/solver/rounds.py.
        """
        own = {PREFIX + n: rows[n] for n in ("on", "toward", "coefficients")}
        found = self._solution(q=rows["q"], v=rows["v"], a=rows["a"], **own, **self._given(active))
        named_ = {k.removeprefix(PREFIX): x for k, x in found.items()}
        return {**named_, "W": self._square(named_["W"])}

    def _given(self, active: np.ndarray | None) -> dict[str, np.ndarray]:
        return {} if active is None else {"active": np.atleast_2d(active)}

    def _square(self, W: np.ndarray) -> np.ndarray:
        """Blocks of points as one matrix."""
        n, B = self.mechanics.n, self.mechanics.block
        return W.reshape(len(W), n, n, B, B).swapaxes(2, 3).reshape(len(W), n * B, n * B)

    @cached_property
    def _delassus(self) -> StageFunction:
        n = self.mechanics.n
        inputs = {"q": self.model.nq, PREFIX + "on": n, **self._switched}

        def calls(stage: Stage) -> list[Item]:
            d = DelassusCalls(stage, self.mechanics)
            return [d.touch("q"), *d.factor("q", self._still(stage), self._still(stage), PREFIX + "dv"), *d.matrix()]

        return self._function("delassus", inputs, {PREFIX + "W": (n * self.mechanics.block) ** 2}, calls)

    @cached_property
    def _solution(self) -> StageFunction:
        n, size, nv = self.mechanics.n, self.mechanics.n * self.mechanics.block, self.model.nv
        inputs = {"q": self.model.nq, "v": nv, "a": nv, **self._switched}
        inputs |= dict(zip(named("on", "toward", "coefficients"), (n, 2 * n, 3 * n), strict=True))
        outputs = dict(zip(named("f", "W", "b", "dv", "residual"), (size, size * size, size, nv, 1), strict=True))

        def calls(stage: Stage) -> list[Item]:
            d = DelassusCalls(stage, self.mechanics)
            stage.array(PREFIX + "soft", n)
            closed = stage.array(PREFIX + "v", nv)
            rigid = stage.call("rigid", (), named("soft", "f"), lambda: ([0.0] * n, [0.0] * size))
            keys = ("W", "b", "on", "coefficients", "toward", "soft", "residual", "f")
            names = dict(zip(keys, named(*keys), strict=True))
            problem = [d.touch("q"), *d.factor("q", "v", "v", closed), self._accelerate(stage, d), *d.matrix(), rigid]
            solved = solver_calls(stage, n, self.mechanics.block, names)
            return [*problem, *solved, *d.gather(PREFIX + "f"), d.to_joints(PREFIX + "dv")]

        return self._function("contact_solution", inputs, outputs, calls)

    def _accelerate(self, stage: Stage, d: DelassusCalls) -> Item:
        """b: the accelerations of all points without contacts."""
        m, six = self.mechanics, 6 * len(d.ways) * self.mechanics.block

        def page(q, v, a, *given):
            x = {"q": q, "v": v, **dict(zip(m.given, given, strict=True))}
            _, rows = m.gaps_and_rows(x)
            V = m.link_velocities(x)
            moving = m.surface_rates(x)
            u: list[Any] = []
            for i in range(m.n):
                own = [V[6 * way[i] : 6 * way[i] + 6] for way in d.ways]
                u += d.along(rows[six * i : six * (i + 1)], *own)
            u = [x - y for x, y in zip(u, moving, strict=True)]
            return (directional(u, [*q, *v], [*self._rates(q, v), *a]),)

        return stage.call("accelerate", ("q", "v", "a", *m.given), (PREFIX + "b",), page)

    def _rates(self, q: Sequence[Any], v: Sequence[Any]) -> list[Any]:
        """dq/dt (nq)."""
        out: list[Any] = []
        for joint in self.model.joints:
            if joint.kind.nv:
                own = tuple(q[self.model.q_slice(joint.name)]), tuple(v[self.model.v_slice(joint.name)])
                out += joint.kind.rates(*own)
        return out

    def _still(self, stage: Stage) -> str:
        """An array of velocities whose numbers do not matter."""
        return stage.array(PREFIX + "still", self.model.nv)

    @property
    def _switched(self) -> dict[str, int]:
        return {"active": len(mechanism(self.model).switched_rows)} if self.mechanics.given else {}

    def _function(self, name: str, inputs: Mapping[str, int], outputs: Mapping[str, int], calls: Any) -> StageFunction:
        key = f"{content(self.model)} {contact_content(self.model)} {self.on_singular}"
        return StageFunction(name, key, inputs, outputs, calls, f"{name.replace('_', ' ')} of {self.model.name!r}")
