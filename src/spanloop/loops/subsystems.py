"""Subsystems: the branches of the spanning tree that start at the world, and the order in which they can be solved.

[Saha, section 4.1-4.2]. The unknowns of a subsystem are the forces of the loops that it takes part in and the torques
of its actuators. It is determinate if these are as many as its DoF, and its equations (eq. 42) determine them.
Its solution makes others determinate. If none is determinate, the rest are solved together (eq. 43-46).

Slips: eq. 42 is printed as "(10)"; eq. 40 has M_j W_j t_j where 38 has W_j M_j E_j t_j.
Departures: rows that are redundant wherever the loops are closed have force 0 and do not count, so that a loop in a
plane has two unknowns also if it is closed by a hinge in space. Those left together may have actuators to spare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.errors import InputError, in_one_line
from spanloop.loops.arguments import actuators, dof_names
from spanloop.loops.batching import Robot
from spanloop.loops.closure_errors import mechanism_of, rows_of
from spanloop.loops.constraint_rank import RANK, in_general
from spanloop.model.examine.messages import counted
from spanloop.topology import Mechanism
from spanloop.topology.tree_paths import path

_NUMERALS = ((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


@dataclass(frozen=True)
class Subsystem:
    """One branch: its joints, and what is unknown of it before anything is solved."""

    name: str  # I, II, III, ...
    joints: tuple[str, ...]
    dofs: tuple[int, ...]  # places in v
    actuators: tuple[str, ...]  # names of DoF
    loops: tuple[str, ...]  # loops and couplings whose force acts on it
    unknowns: int
    determinate: bool  # by itself


@dataclass(frozen=True)
class Stage:
    """Equations solved together: of some DoF, with row forces and actuator torques as unknowns."""

    subsystems: tuple[str, ...]
    dofs: tuple[int, ...]
    rows: tuple[int, ...]
    actuated: tuple[int, ...]
    determinate: bool

    @property
    def unknowns(self) -> int:
        return len(self.rows) + len(self.actuated)

    def __str__(self) -> str:
        name, count = " with ".join(self.subsystems), _compared(self.unknowns, len(self.dofs))
        if self.determinate:
            return name
        if self.unknowns < len(self.dofs):
            return f"{name} ({count}: not all motions can be produced)"
        if self.unknowns > len(self.dofs):
            return f"{name} ({count}: some to spare, the least torques are taken)"
        return f"{name} ({count}, whose equations do not determine them)"


@dataclass(frozen=True)
class Subsystems:
    """The branches of a mechanism and the stages of their solution; print it."""

    model: str
    parts: tuple[Subsystem, ...]
    stages: tuple[Stage, ...]

    def __str__(self) -> str:
        lines = [f"{self.model}: {counted(len(self.parts), 'subsystem')}."]
        for p in self.parts:
            kind = "determinate" if p.determinate else "indeterminate"
            lines.append(
                f"{p.name}: {', '.join(p.joints)}. {len(p.dofs)} DoF, "
                f"{counted(p.unknowns, 'unknown')} (loops: {', '.join(p.loops) or 'none'}; "
                f"actuators: {', '.join(p.actuators) or 'none'}): {kind}."
            )
        return "\n".join(map(in_one_line, [*lines, f"Solved in the order {', then '.join(map(str, self.stages))}."]))


def subsystems(robot: Robot, actuated: Sequence[str] | None = None) -> Subsystems:
    """The subsystems of the robot's model, with its own actuators or with those named."""
    model = robot.model
    usual = in_general(model)
    if usual is None:
        raise InputError(
            f"subsystems: no closed state of model {model.name!r} was found, so its redundant rows are unknown"
        )
    driving, m = actuators(model, actuated, None), mechanism_of(model)
    J = np.zeros((m.n_rows, m.nv))
    J[usual.kept] = usual.jacobian
    branches = _branches(m)
    acting = {k: {f for f in driving.dofs if f in _dofs(m, links)} for k, links in enumerate(branches)}
    touching = {k: _rows(m, links) & set(usual.kept.tolist()) for k, links in enumerate(branches)}
    names = dof_names(model)
    owners = [x.name for x in model.loops] + [x.name for x in model.couplings]
    parts = []
    for k, links in enumerate(branches):
        free, rows = _dofs(m, links), touching[k]
        parts.append(
            Subsystem(
                _numeral(k + 1),
                tuple(m.links[i].name for i in links),
                tuple(free),
                tuple(names[f] for f in sorted(acting[k])),
                tuple(dict.fromkeys(owners[rows_of(model)[r].owner] for r in sorted(rows))),
                len(rows) + len(acting[k]),
                _solvable(J, free, rows, acting[k]),
            )
        )
    return Subsystems(model.name, tuple(parts), tuple(_stages(J, parts, touching, acting)))


def _stages(
    J: np.ndarray, parts: Sequence[Subsystem], touching: dict[int, set[int]], acting: dict[int, set[int]]
) -> list[Stage]:
    """Determinate subsystems one after the other; those left when there is none, together."""
    left, solved, out = list(range(len(parts))), set[int](), []
    while left:
        ready = [k for k in left if _solvable(J, parts[k].dofs, touching[k] - solved, acting[k])][:1]
        chosen = ready or left
        rows = set[int]().union(*(touching[k] for k in chosen)) - solved
        torques = set[int]().union(*(acting[k] for k in chosen))
        free = sorted(f for k in chosen for f in parts[k].dofs)
        names = tuple(parts[k].name for k in chosen)
        determinate = bool(ready) or _solvable(J, free, rows, torques)
        out.append(Stage(names, tuple(free), tuple(sorted(rows)), tuple(sorted(torques)), determinate))
        solved |= rows
        left = [k for k in left if k not in chosen]
    return out


def _solvable(J: np.ndarray, dofs: Sequence[int], rows: set[int], acting: set[int]) -> bool:
    """As many unknowns as DoF, and equations that determine them."""
    if len(rows) + len(acting) != len(dofs):
        return False
    unit = np.eye(J.shape[1])[sorted(acting)]
    A = np.concatenate((J[sorted(rows)], unit))[:, list(dofs)]
    s = np.linalg.svd(A, compute_uv=False)
    return bool(s.min(initial=np.inf) > RANK * s.max(initial=0.0))


def _branches(m: Mechanism) -> list[list[int]]:
    """Links that hang together on one link at the world."""
    roots = [link.number for link in m.links if link.parent < 0]
    ways = {link.number: path(m.parents, link.number) for link in m.links}
    return [[i for i in range(len(m.links)) if root in ways[i]] for root in roots]


def _dofs(m: Mechanism, links: Sequence[int]) -> list[int]:
    return [f for i in links for f in range(m.links[i].v.start, m.links[i].v.stop)]


def _rows(m: Mechanism, links: Sequence[int]) -> set[int]:
    """Rows of the loops and couplings that end on one of these links."""
    out = {r for c in m.closures if c.a.link in links or c.b.link in links for r in c.rows}
    return out | {g.row for g in m.gears if any(i in links for i, _ in g.ends)}


def _numeral(n: int) -> str:
    out = ""
    for value, letters in _NUMERALS:
        while n >= value:
            out, n = out + letters, n - value
    return out


def _compared(unknowns: int, dofs: int) -> str:
    return f"{counted(unknowns, 'unknown')} for {dofs} DoF"
