"""One step towards targets: damped least squares on the targets, with closed loops as equations and limits kept.

At the coordinates q the step δ makes

    λ |δ|² + Σ w (J δ − e)²      least, with      J_c δ + c = 0                                      (1)

over targets with errors e and weights w, and closures with errors c. With multipliers y it is the sparse system

    [ 1   Aᵀ ] [ δ ]   [ 0 ]
    [ A  −Λ ] [−y ] = [ e ]    A = [J; J_c],  Λ = λ/w for targets, EQUAL + OPEN Σ c² for closures    (2)

which has a factor LDLᵀ in any order because it is quasidefinite [Vanderbei1995]. EQUAL is so small that closures hold
to first order, and large enough that redundant rows, which repeat others, are harmless. Loops that are far open are
closed with damping. λ falls with the square of the error [Sugihara2011], times a factor that each state adapts: the
last steps are those of Newton's method. A DoF turns by CAP at most.

Limits are an active set: a DoF at a limit, which (Aᵀy) would push outward, rests in the next step.

A state is a trial: `q` was reached from `start` by share · delta. If it is better it becomes the next start, and the
step from there the next delta; else the same delta is taken to a smaller share. Every state is evaluated once.

| array | numbers | meaning |
|---|---|---|
| q, start, delta | nq, nq, nv | trial, best state so far, step from there |
| free | limits | 0 for a DoF that rests at its limit, else 1 |
| merit | 3 | of start: Σ w e², Σ c², the square of delta |
| pace | 2 | the factor of λ, share |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spanloop.algorithms.closed.closure_kinematics import error_rows, jacobian_rows
from spanloop.algorithms.tree.energy import collect
from spanloop.algorithms.tree.kinematics import poses
from spanloop.algorithms.tree.link_motion import placed
from spanloop.algorithms.tree.target_rows import CENTER_OF_MASS, SIZES, UNITS, Group, TargetKind, target_rows
from spanloop.math.inertia import RigidInertia
from spanloop.math.scalar import where
from spanloop.math.sparse_ldl import SparseLDL, System, block_order
from spanloop.math.vector3 import is_zero, total
from spanloop.sweeps import Program, inward

EQUAL, OPEN = 1e-11, 0.01
LEAST, MOST = 1e-11, 1.0  # λ at least, and without its factor at most
CAP = 1.0  # rad: how far a DoF turns in one step at most
NEAR = 1e-12  # rad or m: this near to a limit is at it


@dataclass(frozen=True)
class Limit:
    """A DoF of a joint with one coordinate, and how far it may go."""

    in_v: int
    in_q: int
    lower: float
    upper: float


@dataclass(frozen=True)
class Reaching:
    """What is to be reached by a mechanism: targets, limits, DoF that rest, a length [m] as large as the mechanism."""

    targets: tuple[TargetKind, ...]
    limits: tuple[Limit, ...]
    fixed: frozenset[int]
    length: float

    @property
    def sizes(self) -> dict[str, int]:
        """Inputs that belong to no joint."""
        numbers = sum(SIZES[t.kind] for t in self.targets)
        weights = sum(len(UNITS[t.kind]) for t in self.targets)
        return {
            "free": len(self.limits), "merit": 3, "pace": 2, "target": numbers, "weight": weights, "tolerance": 2,
        }  # fmt: skip


def reaching_step(mechanism, task: Reaching) -> Program:
    """q, start, delta, free, merit and pace after a step, and −1 where q has reached all targets, else 1."""
    masses = (inward(collect, I=RigidInertia()),) if any(t.kind == CENTER_OF_MASS for t in task.targets) else ()

    def result(m, here, world):
        return _Step(m, here, world, task).answer()

    nq, nv, sizes = mechanism.nq, mechanism.nv, task.sizes
    count = 2 * nq + nv + sizes["free"] + sizes["merit"] + sizes["pace"] + 1
    return Program(
        "reaching_step", ("q", "start", "delta", *sizes), (*placed(()), poses(), *masses), result, (count,), sizes=sizes
    )


class _Step:
    """A step at one state."""

    def __init__(self, m, here, world, task: Reaching):
        self.m, self.here, self.world, self.task = m, here, world, task
        self.groups = self._groups()
        lengths = m.row_lengths
        self.closure_errors = [e * (1.0 / s) for e, s in zip(error_rows(m, here), lengths, strict=True)]
        self.closure_rows = [
            {k: x * (1.0 / s) for k, x in enumerate(row) if not is_zero(x)}
            for row, s in zip(jacobian_rows(m, here), lengths, strict=True)
        ]
        self.looped = {k for row in self.closure_rows for k in row}
        self.units = [unit for link in m.links for unit in link.kind.units]
        self.dof_lengths = [task.length if unit == "m" else 1.0 for unit in self.units]
        self.cost = total(w * g.square for w, g in zip(world.weight, self.groups, strict=True))
        self.openness = total(c * c for c in self.closure_errors)

    def _groups(self) -> list[Group]:
        out, at = [], 0
        for t in self.task.targets:
            out += target_rows(self.m, self.here, self.world, t, self.world.target[at : at + SIZES[t.kind]])
            at += SIZES[t.kind]
        return out

    def answer(self) -> list:
        """All arrays after the step, and −1 where targets are met, else 1."""
        factor, share = self.world.pace
        better = self._better()
        factor = where(better, _clipped(0.3 * factor, 1e-3, 1e6), _clipped(5.0 * factor, 1e-3, 1e6))
        share = where(better, 1.0, 0.3 * share)
        step, pushes = self._step(factor)
        trial, start, delta = self._moved(better, share, step)
        free = []
        for x, limit, push in zip(self.world.free, self.task.limits, pushes, strict=True):
            at = trial[limit.in_q]
            if not is_zero(step[limit.in_v]):
                trial[limit.in_q] = at = _clipped(at, limit.lower, limit.upper)
            rests = where(_outward(limit, at, push), 0.0, 1.0)
            free.append(where(better, rests, x) if limit.in_v in self.looped else 1.0)
        size = total(x * x * s**-2 for x, s in zip(step, self.dof_lengths, strict=True))
        found = (self.cost, self.openness, size)
        merit = [where(better, x, y) for x, y in zip(found, self.world.merit, strict=True)]
        return [*trial, *start, *delta, *free, *merit, factor, share, where(self._done(), -1.0, 1.0)]

    def _moved(self, better, share, step) -> tuple[list, list, list]:
        """The next trial, start and delta; joints on no way to a target or loop stay as they are."""
        trial, start, delta = [], [], []
        for link, h in zip(self.m.links, self.here, strict=True):
            own = step[link.v]
            if all(is_zero(x) for x in own):
                begin, change, end = h.start, own, h.q
            else:
                begin = tuple(where(better, x, y) for x, y in zip(h.q, h.start, strict=True))
                change = [where(better, x, y) for x, y in zip(own, h.delta, strict=True)]
                end = link.kind.plus(begin, [share * d for d in change])
            trial += end
            start += begin
            delta += change
        return trial, start, delta

    def _better(self):
        cost, openness, _ = self.world.merit
        lower = self.cost < cost
        if not self.closure_rows:
            return lower
        return lower | (self.openness < 0.25 * openness) | (self.cost + self.openness < cost + openness)

    def _done(self):
        limit, closed = self.world.tolerance
        found = [g.square < limit * limit for g in self.groups]
        found += [self.openness < closed * closed] if self.closure_rows else []
        out = found[0]
        for x in found[1:]:
            out = out & x
        return out

    def _step(self, factor) -> tuple[list, list]:
        """The step (nv), within the cap, and what pushes each DoF with limits."""
        masks = self._masks()
        pushes = self._pushes(factor, masks)
        wanted = [
            0.0 if is_zero(p) else p * s * masks.get(k, 1.0)
            for k, (p, s) in enumerate(zip(pushes, self.dof_lengths, strict=True))
        ]
        step = [
            _clipped(x, -CAP, CAP) if unit == "rad" and not is_zero(x) else x
            for x, unit in zip(wanted, self.units, strict=True)
        ]
        return step, [pushes[x.in_v] for x in self.task.limits]

    def _masks(self) -> dict:
        """0 for a DoF that rests at its limit, else 1."""
        q = [x for h in self.here for x in h.q]
        out = {}
        for limit, free in zip(self.task.limits, self.world.free, strict=True):
            if limit.in_v in self.looped:
                out[limit.in_v] = free
                continue
            slope = total(
                (w * row[limit.in_v]) * e
                for g, w in zip(self.groups, self.world.weight, strict=True)
                for row, e in zip(g.rows, g.errors, strict=True)
                if limit.in_v in row
            )
            out[limit.in_v] = where(_outward(limit, q[limit.in_q], slope), 0.0, 1.0)
        return out

    def _pushes(self, factor, masks) -> list:
        """Aᵀy (nv) in units of each DoF: the step, and where DoF rest that which they would make."""
        rows, errors, softness, blocks = self._rows(factor)
        system = System()
        for dof in {k for row in rows for k in row}:
            system.add(("v", dof), ("v", dof), 1.0)
        for r, row in enumerate(rows):
            system.add(("r", r), ("r", r), -softness[r])
            for dof, x in row.items():
                system.add(("v", dof), ("r", r), x * self.dof_lengths[dof])
        used = {k for row in rows for k in row}
        for link in self.m.links:
            own = [("v", k) for k in range(link.v.start, link.v.stop) if k in used]
            if own:
                blocks[("v", link.number)] = own
        order, _ = block_order(blocks, system, last=lambda block: block[0] == "target")
        factors = SparseLDL(
            system, order, lambda name, pivot: masks.get(name[1], 1.0) / pivot if name[0] == "v" else 1.0 / pivot
        )
        found = factors.solve({("r", r): e for r, e in enumerate(errors)})
        out: list[Any] = [0.0] * self.m.nv
        for dof in used:
            terms = [-(row[dof] * found[("r", r)]) for r, row in enumerate(rows) if dof in row]
            out[dof] = total(terms) * self.dof_lengths[dof]
        return out

    def _rows(self, factor):
        """Rows of targets and closures without the DoF that rest, their errors, Λ, and blocks of rows."""
        damping = factor * where(self.cost < MOST, self.cost, MOST) + LEAST
        rows: list[dict] = []
        errors: list[Any] = []
        softness: list[Any] = []
        blocks: dict[tuple[str, int], list] = {}
        for k, (group, weight) in enumerate(zip(self.groups, self.world.weight, strict=True)):
            blocks[("target", k)] = [("r", len(rows) + i) for i in range(len(group.rows))]
            for row, e in zip(group.rows, group.errors, strict=True):
                rows.append({d: x for d, x in row.items() if d not in self.task.fixed and not is_zero(x)})
                errors.append(e)
                softness.append(damping / weight)
        owners = [(*c.rows,) for c in self.m.closures] + [(g.row,) for g in self.m.gears]
        for k, numbers in enumerate(owners):
            block = []
            for r in numbers:
                row = {d: x for d, x in self.closure_rows[r].items() if d not in self.task.fixed}
                if row:
                    block.append(("r", len(rows)))
                    rows.append(row)
                    errors.append(-self.closure_errors[r])
                    softness.append(EQUAL + OPEN * self.openness)
            if block:
                blocks[("closure", k)] = block
        return rows, errors, softness, blocks


def _clipped(x, lower, upper):
    x = where(x < lower, lower, x)
    return where(x > upper, upper, x)


def _outward(limit: Limit, at, push):
    """Is a coordinate at a limit pushed beyond it?"""
    if is_zero(push):
        return False
    return ((at < limit.lower + NEAR) & (push < 0.0)) | ((at > limit.upper - NEAR) & (push > 0.0))
