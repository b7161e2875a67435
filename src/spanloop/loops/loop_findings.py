"""What a colleague would say about a mechanism's loops, as findings; model/examine/messages.py has the sentences."""

from __future__ import annotations

from collections.abc import Iterator

from spanloop.errors import SpanloopError
from spanloop.loops.assembly import assemble
from spanloop.loops.batching import Robot
from spanloop.loops.closure_errors import errors, idle, misses, rows_of
from spanloop.loops.diagnosis import CLOSED, Diagnosis, diagnose
from spanloop.model.examine import Finding
from spanloop.model.examine.messages import counted


def examine_loops(robot: Robot) -> tuple[Finding, ...]:
    """Loops, mobility, redundant rows, and whether a closed state is found from neutral coordinates."""
    model = robot.model
    if not (model.loops or model.couplings):
        return (Finding("tree"),) if model.nv else ()
    loops = counted(len(model.loops), "loop") if model.loops else ""
    gears = counted(len(model.couplings), "coupling") if model.couplings else ""
    values = {
        "loops": " and ".join(x for x in (loops, gears) if x),
        "dofs": f"{model.nv} DoF",
        "rows": counted(len(rows_of(model)), "row"),
    }
    return (Finding("loops", values=values), *_closing(robot))


def _closing(robot: Robot) -> Iterator[Finding]:
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
    yield from _diagnosed(diagnose(robot, q))


def _diagnosed(d: Diagnosis) -> Iterator[Finding]:
    mobility = d.mobility if d.general_mobility is None else d.general_mobility
    if mobility == 0:
        yield Finding("structure")
    else:
        names = d.independent.names
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        yield Finding("mobility", values={"mobility": mobility, "independent": shown or "no joints"})
    if d.redundant:
        yield Finding("redundant", d.redundant, {"count": counted(len(d.redundant), "row is", "rows are")})
    if d.singular:
        yield Finding("singular", values={"direction": ", ".join(d.direction[:6])})
    if len(d.parts) > 1:
        yield Finding("separate", values={"count": len(d.parts)})
