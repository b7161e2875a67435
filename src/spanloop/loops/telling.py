"""A diagnosis in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spanloop.loops.diagnosing import Diagnosis


def told(d: Diagnosis) -> str:
    """The diagnosis as a few lines: what there is, then what deserves attention."""
    return "\n".join([*_facts(d), *_verdicts(d)])


def _facts(d: Diagnosis) -> Iterator[str]:
    if not d.n_rows:
        yield f"{d.model}: no loops. Mobility {d.mobility}: every freedom is independent."
        return
    closing = _count(d.n_loops, "loop") + (f" and {_count(d.n_couplings, 'coupling')}" if d.n_couplings else "")
    yield f"{d.model}: {closing} on {_count(d.n_freedoms, 'freedom')}."
    if d.closed:
        error = max(miss.size for miss in d.misses)
        yield f"The loops are closed to {error:.0e} m or rad." if error else "The loops are closed exactly."
    if d.rank == d.n_rows:
        yield f"{_count(d.n_rows, 'row')}, all of them independent."
    else:
        gap = f"{d.gap:.0e}" if d.gap < 1e15 else "1e15 or more"
        yield f"{_count(d.n_rows, 'row')}, {d.rank} of them independent; the singular values show a gap of {gap}."
    if d.redundant:
        where = "at this state" if d.general_rank is None else "wherever the loops are closed"
        yield f"Redundant {where}: {_listed(d.redundant, 12)}."
    known = "" if d.general_mobility is None else f" here, {d.general_mobility} in general"
    same = d.general_mobility == d.mobility
    chosen = f" Independent: {_listed(d.independent.names, 12)}." if len(d.independent) else ""
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
            f"SINGULAR: {_count(gained, 'independent row')} fewer than in general; "
            f"{_listed(d.direction, 6)} can move beside the usual motion."
        )
    elif d.near_singular:
        yield f"NEAR A SINGULARITY: the rows hardly resist a motion of {_listed(d.direction, 6)}."
    if d.n_rows and d.mobility == 0 and not d.singular:
        yield "MOBILITY 0: the loops leave no motion; this is a structure."
    for name in d.idle:
        yield f"IDLE LOOP: no joint lies between the bodies of {name!r}; its rows constrain nothing."
    if len(d.parts) > 1:
        shown = "; ".join(f"{_listed(part.joints, 4)} (mobility {part.mobility})" for part in d.parts)
        yield f"{len(d.parts)} PARTS that only the world joins: {shown}."
    if d.n_rows and d.general_rank is None:
        yield "No closed state was found from neutral, so that what is redundant is known for this state only."


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _listed(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
