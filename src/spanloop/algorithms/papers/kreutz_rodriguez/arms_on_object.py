"""Forward dynamics of several arms that hold one object, with any open-chain algorithm underneath: CCFD.

[Kreutz & Rodriguez: 4.9; grasps that leave DoFs: appendices A and B]

    1) M θ̈_f + C = T            free accelerations, of every arm and of the object by themselves
    2) Ω f(0) = α_f(0) + ...     contact forces, Ω = J M⁻¹ Jᵀ + A M(C)⁻¹ Aᵀ
    3) M Δθ̈ + Jᵀ f(0) = 0        correction accelerations
    4) θ̈ = θ̈_f + Δθ̈

| here | paper | shape | meaning |
|---|---|---|---|
| Part | – | | an arm, or the object: a mechanism of its own |
| J | J, A | row by row | closure Jacobian of the part's DoFs, along the rows of the grasps |
| columns | M⁻¹ Jᵀ | by row | what a unit contact force does to the part: the open-chain algorithm at rest |
| Omega | Ω | rows × rows | |
| f | f(0) | by row | contact forces along φᶜ |

The open-chain algorithm runs once for the free accelerations and once for each row, at rest and without gravity,
springs and drives; equal expressions are computed once, so that its factors are shared. Departures: as in
recursive_arms.py; the object is one more part, with M(C)⁻¹ found by the same algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.pivot_tolerance import masked_factors, pivot_demands, row_bounds
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.kreutz_rodriguez.grasps import Grasps, grasps
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.math.vector3 import ZERO3, dot, is_zero, total
from spanloop.sweeps import Program, Values, at_once, walked
from spanloop.topology.mechanism import Link, Mechanism
from spanloop.topology.tree_paths import path


def forward_dynamics(
    mechanism,
    loaded=(),
    redundancy: Redundancy | None = None,
    *,
    solvers: Mapping[str, Callable],
    open_chain: str = "",
    feedback: bool = False,
) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration.

    open_chain: the name of a method for trees, one of `solvers`; the first of them by default.
    """
    chosen = open_chain or next(iter(solvers))
    if chosen not in solvers:
        raise InputError(f"arms_on_object: there is no open-chain method {chosen!r}; {nearest(chosen, solvers)}")
    if feedback:
        raise UnsupportedError("method 'arms_on_object' feeds no closure error back; 'arms_on_object_1' does")
    redundancy, sizes = redundancy or Redundancy(), closure_kinematics.extra_inputs(mechanism)
    jacobian, bias = closure_kinematics.closure_jacobian(mechanism), closure_kinematics.closure_bias(mechanism)
    g = grasps(mechanism, "arms_on_object")
    arms = [_part(mechanism, (*arm.base, *arm.links), loaded, mechanism.closures[arm.closure].rows) for arm in g.arms]
    body = _part(mechanism, (g.body,), loaded, range(mechanism.n_rows))
    parts = [*arms, body, *_others(mechanism, g, loaded)]
    program = {part: solvers[chosen](part.mechanism, part.loaded) for part in parts}
    still = {part: solvers[chosen](part.at_rest()) for part in parts}

    def solve(m, here, world) -> Values:
        """The four steps."""
        state: dict = {name: [x for h in here for x in getattr(h, name)] for name in ("q", "v", "tau")}
        state["forces"] = _forces(m, here, loaded)
        free, demands = [], []
        for part in parts:  # step 1 (4.9a)
            accelerations, asked = walked(program[part], part.mechanism, part.inputs(state))
            free.append(accelerations)
            demands += asked
        flat, masks = jacobian.result(m, here, world), closure_kinematics.masks(m, world)
        rows = [r for r in range(m.n_rows) if r not in redundancy.dropped]
        J = [[part.row(r, flat[r * m.nv : (r + 1) * m.nv]) for part in parts] for r in rows]
        gamma, given = bias.result(m, here, world), closure_kinematics.given_accelerations(m, world)
        columns = [
            [_column(still[part], part, part.inputs(state), x) for part, x in zip(parts, row, strict=True)] for row in J
        ]
        Omega = [[total(dot(x, y) for x, y in zip(a, b, strict=True) if y) for b in columns] for a in J]  # (4.9c)
        asked = []  # (4.9b), (4.9d)
        for r, row in zip(rows, J, strict=True):
            moved = [dot(x, y) for x, y in zip(row, free, strict=True)]
            asked.append(-total([gamma[r], -given.get(r, 0.0), *moved]))
        switched = [masks.get(r, 1.0) for r in rows]
        bounds = row_bounds(m, rows, Omega)
        factors = masked_factors(Omega, bounds, switched)
        f = factors.solve(asked)
        answer: dict = {}
        for k, part in enumerate(parts):  # steps 3 and 4 (4.9e, g)
            for n, place in enumerate(part.v):
                more = [column[k][n] * x for column, x in zip(columns, f, strict=True) if column[k]]
                answer[place] = total([free[k][n], *more])
        pivots = pivot_demands(bounds, factors, switched) if redundancy.refuses_singular else []
        return Values(answer=answer, f=f, demands=demands + pivots)

    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (*bias.sweeps, at_once(solve)),
        lambda m, here, world: [world.answer[k] for k in range(m.nv)],
        (mechanism.nv,),
        demands=lambda m, here, world: (
            (closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []) + world.demands
        ),
        loaded=loaded,
        sizes=sizes,
        double=any(p.double for p in program.values()),
    )


@dataclass(frozen=True, eq=False)
class Part:
    """An arm with what it stands on, or the object, as a mechanism of its own."""

    mechanism: Mechanism
    q: tuple[int, ...]  # where its coordinates stand among all
    v: tuple[int, ...]
    loaded: tuple[str, ...]
    rows: Collection[int]  # of the grasps that touch it

    def of(self, entries) -> list:
        """Its own among entries (nv,) of the whole mechanism."""
        return [entries[k] for k in self.v]

    def row(self, r: int, entries) -> list:
        """Its part of a row of the closure Jacobian."""
        return self.of(entries) if r in self.rows else [0.0] * len(self.v)

    def inputs(self, state: Mapping) -> dict:
        forces = [x for body in self.loaded for x in state["forces"][body]]
        return {
            "q": [state["q"][k] for k in self.q],
            "v": self.of(state["v"]),
            "tau": self.of(state["tau"]),
            "forces": forces,
        }

    def at_rest(self) -> Mechanism:
        """Without gravity, dampers and springs: torques alone accelerate it."""
        links = [replace(k, damping=(0.0,) * k.kind.nv, stiffness=(0.0,) * k.kind.nv) for k in self.mechanism.links]
        return replace(self.mechanism, links=tuple(links), gravity=ZERO3)


def _part(mechanism, numbers, loaded, rows) -> Part:
    """These links, numbered anew; their parents are among them, or the world."""
    new = {-1: -1} | {old: k for k, old in enumerate(numbers)}
    links: list[Link] = []
    q: list[int] = []
    v: list[int] = []
    for old in numbers:
        link = mechanism.links[old]
        own = slice(len(q), len(q) + link.kind.nq), slice(len(v), len(v) + link.kind.nv)
        links.append(replace(link, number=new[old], parent=new[link.parent], q=own[0], v=own[1]))
        q += range(link.q.start, link.q.stop)
        v += range(link.v.start, link.v.stop)
    anchors = {n: replace(a, link=new[a.link]) for n, a in mechanism.anchors.items() if a.link in numbers}
    bodies = tuple(n for n in loaded if n in anchors)
    return Part(Mechanism(tuple(links), mechanism.gravity, anchors), tuple(q), tuple(v), bodies, rows)


def _others(mechanism, g: Grasps, loaded) -> list[Part]:
    """All links that do not hold the object, with what carries them, as one part."""
    busy = {g.body, *(i for arm in g.arms for i in arm.links)}
    wanted = {i for link in mechanism.links if link.number not in busy for i in path(mechanism.parents, link.number)}
    numbers = sorted(wanted - {-1})
    return [_part(mechanism, numbers, loaded, ())] if numbers else []


def _forces(m, here, loaded) -> dict:
    """External forces by body, as they were laid down at the links."""
    left = {i: list(h.forces) for i, h in enumerate(here)}
    out = {}
    for body in loaded:
        link = m.anchors[body].link
        if link >= 0:
            out[body] = left[link].pop(0)[0]
    return out


def _column(program: Program, part: Part, state: dict, row: list) -> list:
    """M⁻¹ Jᵀ of one row; none where the row does not touch the part."""
    if all(map(is_zero, row)):
        return []
    driven = [link.driven for link in part.mechanism.links for _ in range(link.kind.nv)]
    torque = [0.0 if d else x for d, x in zip(driven, row, strict=True)]
    return walked(program, part.at_rest(), {"q": state["q"], "v": [0.0] * len(row), "tau": torque})[0]
