"""Diagnosis of a closed mechanism at a state: closure errors, rank, mobility, redundant rows, singularity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import SpanloopError, in_one_line, listed
from spanloop.loops.arguments import dof_names
from spanloop.loops.assembly.assembly import SMALL, assemble, velocity_loops
from spanloop.loops.batching import Robot, one_state, resolution, values
from spanloop.loops.closure_errors import Miss, errors, idle, largest_rows, mechanism_of, misses, rows_of
from spanloop.loops.constraint_rank import Structure, distance, rank, singular_values, structure
from spanloop.loops.independent_dofs import IndependentCoordinates, independent_coordinates
from spanloop.loops.redundant_directions import redundant_directions
from spanloop.model import Model
from spanloop.model.examine import Finding
from spanloop.model.examine.messages import counted
from spanloop.topology.partition import connected_components, ties

CLOSED = 1e-6  # rad, or of the loop's length: a loop with a larger error is not closed (in double precision)

NEAR = 1e-2  # of the distance to singularity in general: what is less is near

_SHARE = 0.1  # of the largest entry: joints with less have no part in a motion


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """A closed mechanism at one state; print it."""

    model: str
    n_loops: int
    n_couplings: int
    n_dofs: int
    misses: tuple[Miss, ...]  # closure error of every loop, then of every coupling
    misfit: str  # redundant rows that the model's own numbers leave open by more than the tolerance, "" if none
    tolerance: float  # rad, or of the loop's length: a loop with a larger error is not closed
    n_rows: int
    rank: int  # here
    general_rank: int | None  # None: no closed state was found
    singular_values: np.ndarray  # of the rows at unit length, here
    gap: float  # the smallest singular value that counts, divided by the next
    rows: tuple[str, ...]  # names of all rows, in the order of closure_error, closure_jacobian and Solution.rows
    redundant: tuple[str, ...]  # directions in which the rows transmit nothing wherever the loops are closed
    redundant_here: tuple[str, ...]  # more such directions at this state: elsewhere there are none, or others
    distance: float  # to singularity: smallest singular value of the rows that count, divided by the largest
    general_distance: float
    direction: tuple[str, ...]  # DoF that move in the motion that is gained, or nearly so
    velocity_loops: tuple[str, ...]  # loops without a row for positions: nothing closes or opens them
    idle: tuple[str, ...]  # loops between bodies that no joint moves against each other
    parts: tuple[Part, ...]
    independent: IndependentCoordinates

    @property
    def open_loops(self) -> tuple[Miss, ...]:
        """Loops and couplings that are not closed."""
        return tuple(miss for miss in self.misses if not miss.size <= self.tolerance)

    @property
    def closed(self) -> bool:
        return not self.open_loops

    @property
    def mobility(self) -> int:
        """DoF that the loops leave here."""
        return self.n_dofs - self.rank

    @property
    def general_mobility(self) -> int | None:
        return None if self.general_rank is None else self.n_dofs - self.general_rank

    @property
    def singular(self) -> bool:
        """Whether the rank here is below the general one."""
        return self.general_rank is not None and self.rank < self.general_rank

    @property
    def near_singular(self) -> bool:
        return not self.singular and self.distance < NEAR * self.general_distance

    def __repr__(self) -> str:
        return f"Diagnosis({self.model!r}, {report(self).splitlines()[-1]})"

    def __str__(self) -> str:
        return report(self)

    def _repr_html_(self) -> str:
        from spanloop.model.printout import lines

        return lines(report(self))


def diagnose(robot: Robot, q: ArrayLike) -> Diagnosis:
    """The loops at one state q (nq,)."""
    model = robot.model
    state = one_state("diagnose", robot, q)
    rows, J = structure(robot, state), values(robot, "closure_jacobian", state)
    kept = rows.scaled(J)
    s = singular_values(kept)
    r, all_values = rank(s), singular_values(J / rows.lengths[:, None] * rows.dof_lengths)
    names = tuple(row.name for row in rows_of(model))
    tolerance = max(CLOSED, 100.0 * resolution(robot))
    off, misfit = _misses(model, rows, errors(robot, state[None])[0], tolerance)
    always, here = redundant_directions(model, rows, J if all(miss.size <= tolerance for miss in off) else None)
    return Diagnosis(
        model=model.name,
        n_loops=len(model.loops),
        n_couplings=len(model.couplings),
        n_dofs=model.nv,
        misses=off,
        misfit=misfit,
        tolerance=tolerance,
        n_rows=len(names),
        rank=r,
        general_rank=rows.rank if rows.general else None,
        singular_values=all_values,
        gap=_gap(all_values, r),
        rows=names,
        redundant=always,
        redundant_here=here,
        distance=distance(s, rows.rank),
        general_distance=rows.distance,
        direction=_direction(robot, kept, rows),
        velocity_loops=velocity_loops(model, whole=True),
        idle=idle(model),
        parts=parts(model, kept),
        independent=independent_coordinates(robot, state),
    )


def _misses(model: Model, rows: Structure, error: np.ndarray, tolerance: float) -> tuple[tuple[Miss, ...], str]:
    """How far the loops are from closed, and the redundant rows (no part of that) which the model leaves open."""
    found, redundant = misses(model, error), list(rows.redundant)
    if not rows.general or not redundant or all(miss.size <= tolerance for miss in found):
        return found, ""
    rest, own = error.copy(), np.zeros_like(error)
    rest[redundant], own[redundant] = 0.0, error[redundant]
    closed = misses(model, rest)
    fits = max(miss.size for miss in misses(model, own)) < SMALL
    if not fits or any(miss.size > tolerance for miss in closed):
        return found, ""
    return closed, largest_rows(model, own)


def _gap(s: np.ndarray, r: int) -> float:
    """How much larger the r-th singular value is than the next; infinite where there is none."""
    following = s[r] if r < len(s) else 0.0
    return float(s[r - 1] / following) if r and following > 0.0 else np.inf


def _direction(robot: Robot, kept: np.ndarray, rows: Structure) -> tuple[str, ...]:
    """DoF in the motion that the rows resist least, beyond the mobility in general."""
    if not rows.rank:
        return ()
    motion = np.abs(np.linalg.svd(kept)[2][rows.rank - 1])
    order = [int(k) for k in np.argsort(-motion) if motion[k] > _SHARE * motion.max()]
    names = dof_names(robot.model)
    return tuple(names[k] for k in order)


# ---- parts that only the world joins, so that they move independently of each other


@dataclass(frozen=True)
class Part:
    """Joints that hang together, and the DoF that the loops leave them."""

    joints: tuple[str, ...]
    mobility: int


def parts(model: Model, jacobian: np.ndarray) -> tuple[Part, ...]:
    """The parts, with their mobility for rows (rows, nv) of a scaled Jacobian."""
    m, out = mechanism_of(model), []
    for links in connected_components(range(len(m.links)), ties(m)):
        columns = [k for i in links for k in range(m.links[i].v.start, m.links[i].v.stop)]
        left = len(columns) - rank(singular_values(jacobian[:, columns]))
        out.append(Part(tuple(m.links[i].name for i in links), left))
    return tuple(out)


# ---- the printout


def report(d: Diagnosis) -> str:
    """The diagnosis as a few lines: the facts, then warnings."""
    return "\n".join(map(in_one_line, [*_facts(d), *_verdicts(d)]))


def _facts(d: Diagnosis) -> Iterator[str]:
    if not d.n_rows:
        yield f"{d.model}: no loops. Mobility {d.mobility}: every DoF is independent."
        return
    closing = counted(d.n_loops, "loop") + (f" and {counted(d.n_couplings, 'coupling')}" if d.n_couplings else "")
    yield f"{d.model}: {closing} on {d.n_dofs} DoF."
    if d.velocity_loops:
        yield f"No position closes or opens {listed(map(repr, d.velocity_loops), 6)}: velocities alone are constrained."
    measured = [miss for miss in d.misses if miss.name not in d.velocity_loops]
    if d.closed and measured:
        miss = max(measured, key=lambda miss: miss.size)
        others = "other loops" if d.velocity_loops else "loops"
        yield f"The {others} are closed to {miss.by()}." if miss.size else f"The {others} are closed exactly."
    if d.misfit:
        yield f"{d.misfit}: redundant, no joint closes that; the model's own numbers leave it open."
    if d.rank == d.n_rows:
        yield f"{counted(d.n_rows, 'row')}, all of them independent."
    else:
        gap = f"{d.gap:.0e}" if d.gap < 1e15 else "1e15 or more"
        yield f"{counted(d.n_rows, 'row')}, {d.rank} of them independent; the singular values show a gap of {gap}."
    if d.redundant:
        where = "at this state" if d.general_rank is None else "in this assembly"
        yield f"Redundant {where}: {listed(d.redundant, 12)}."
    if d.redundant_here:
        turning = d.general_rank is not None and not d.singular
        where = "in directions that turn with the state, here" if turning else "at this state"
        yield f"Redundant {where}: {listed(d.redundant_here, 12)}."
    known = "" if d.general_mobility is None else f" here, {d.general_mobility} in general"
    same = d.general_mobility == d.mobility
    chosen = f" Independent: {listed(d.independent.names, 12)}." if len(d.independent) else ""
    yield f"Mobility {d.mobility}{' here and in general' if same else known}.{chosen}"
    if d.rank:
        general = "" if d.general_rank is None else f" (in general {d.general_distance:.2g})"
        yield f"Distance to singularity {d.distance:.2g}{general}."


def _verdicts(d: Diagnosis) -> Iterator[str]:
    for miss in d.open_loops:
        yield f"NOT CLOSED: {miss.what} is open by {miss.by()}. Try robot.assemble(q)."
    if d.singular:
        gained = d.mobility - (d.general_mobility or 0)
        yield (
            f"SINGULAR: {counted(gained, 'independent row')} fewer than in general; "
            f"{listed(d.direction, 6)} can move in addition to the usual motion."
        )
    elif d.near_singular:
        yield f"NEAR A SINGULARITY: the rows hardly resist a motion of {listed(d.direction, 6)}."
    if d.n_rows and d.mobility == 0 and not d.singular:
        yield "MOBILITY 0: the loops leave no motion; this is a structure."
    for name in d.idle:
        yield f"IDLE LOOP: no joint lies between the bodies of {name!r}; its rows constrain nothing."
    if len(d.parts) > 1:
        shown = "; ".join(f"{listed(part.joints, 4)} (mobility {part.mobility})" for part in d.parts)
        yield f"{len(d.parts)} PARTS that only the world joins: {shown}."
    if d.n_rows and d.general_rank is None:
        yield "No closed state was found from neutral or from here: redundant rows are those of this state only."


# ---- findings of `spanloop check`; model/examine/messages.py has their sentences


def examine_loops(robot: Robot) -> tuple[Finding, ...]:
    """Loops, mobility, redundant rows, and whether a closed state is found from neutral coordinates."""
    model = robot.model
    if not (model.loops or model.couplings):
        return (Finding("tree"),) if model.nv else ()
    loops = counted(len(model.loops), "loop") if model.loops else ""
    gears = counted(len(model.couplings), "coupling") if model.couplings else ""
    counts = {
        "loops": " and ".join(x for x in (loops, gears) if x),
        "dofs": f"{model.nv} DoF",
        "rows": counted(len(rows_of(model)), "row"),
    }
    return (Finding("loops", values=counts), *_closing_findings(robot))


def _closing_findings(robot: Robot) -> Iterator[Finding]:
    model = robot.model
    for name in idle(model):
        yield Finding("idle_loop", (f"loop {name!r}",))
    neutral = model.neutral()
    off = [m for m in misses(model, errors(robot, neutral[None])[0]) if m.size > CLOSED]
    if off:
        count = counted(len(off), "loop or coupling is", "loops or couplings are")
        worst = max(off, key=lambda miss: miss.size)
        yield Finding("open_at_zero", tuple(repr(m.name) for m in off), {"by": worst.by(), "count": count})
    try:
        q = assemble(robot, neutral)
    except SpanloopError as error:
        yield Finding("not_assembled", values={"why": str(error)})
        return
    yield from _diagnosis_findings(diagnose(robot, q))


def _diagnosis_findings(d: Diagnosis) -> Iterator[Finding]:
    mobility = d.mobility if d.general_mobility is None else d.general_mobility
    if mobility == 0:
        yield Finding("structure")
    else:
        names = d.independent.names
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        yield Finding("mobility", values={"mobility": mobility, "independent": shown or "no joints"})
    redundant = d.redundant if d.singular else d.redundant + d.redundant_here
    if redundant:
        yield Finding("redundant", redundant, {"count": counted(len(redundant), "row is", "rows are")})
    if d.singular:
        yield Finding("singular", values={"direction": ", ".join(d.direction[:6])})
    if len(d.parts) > 1:
        yield Finding("separate", values={"count": len(d.parts)})
