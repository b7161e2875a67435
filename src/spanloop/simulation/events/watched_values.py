"""The values of watchers at a state, on any scalar: each is positive until it fires; gaps come with their rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spanloop.algorithms.papers.kreutz_rodriguez.grasp_margin import friction_cone
from spanloop.math.scalar import where
from spanloop.model import Model
from spanloop.simulation.events.conditions import condition_value
from spanloop.simulation.events.endings import bounded
from spanloop.simulation.events.kinds import Grasp
from spanloop.simulation.events.switches import Switch, Watcher

if TYPE_CHECKING:
    from spanloop.simulation.system import System

SLACK = 1e-12  # of the weight: a one-sided constraint that pulls with less than this stays closed

Arrays = Mapping[str, Sequence[Any]]


def values_and_rates(system: System, x: Arrays) -> tuple[list[Any], list[Any]]:
    """Values of all watchers, and rates of those that are gaps (0 of the others).

    x: t, q, v, f (forces of rows, if watchers need them), gaps (of contact points, if known), and the arrays of the
    system.
    """
    assert system.switching is not None
    switching = system.switching
    gaps = [w for w in switching.watchers if w.kind == "gap" and w.limit is None]
    errors = system.row_errors(x) if gaps else []
    forces = x.get("f", ())
    wrenches = (
        system.wrenches(x, forces) if any(w.takes_forces or w.kind == "grasp" for w in switching.watchers) else {}
    )
    slack = SLACK * weight(switching.model)
    touches = switching.touches != slice(0, 0)
    points = (x["gaps"] if "gaps" in x else system.contact_mechanics.gaps(x)) if touches else ()
    out = []
    for w in switching.watchers:
        if w.moment >= 0:
            value = x["at"][w.moment] - x["t"][0]
        elif w.condition is not None:
            value = condition_value(w, system.model, x, wrenches)
        elif w.limit is not None:
            value = w.limit.value(x["q"])
        elif w.kind == "touch":
            value = points[w.point]
        elif w.kind == "gap":
            row, sign = _watched(switching.switches[w.switch])
            value = sign * errors[row]
        elif w.kind == "pull":
            value = push(system, switching.switches[w.switch], x, forces) + slack
        else:
            value = margin(w, switching.model, wrenches)
        out.append(bounded(value))
    return out, [bounded(y) for y in gap_rates(system, x)]


def gap_rates(system: System, x: Arrays) -> list[Any]:
    """Rates of the gaps of one-sided switches and stops, 0 for the others. x: q, v, the arrays of the system."""
    assert system.switching is not None
    switches, watchers = system.switching.switches, system.switching.watchers
    rates = system.row_rates(x) if any(w.kind == "gap" and w.limit is None for w in watchers) else []
    out: list[Any] = [0.0] * len(watchers)
    for j, w in enumerate(watchers):
        if w.kind == "gap" and w.limit is not None:
            out[j] = w.limit.sign * x["v"][switches[w.switch].dof]
        elif w.kind == "gap":
            row, sign = _watched(switches[w.switch])
            out[j] = sign * rates[row]
    return out


def weight(model: Model) -> float:
    """The weight of all bodies [N], and at least 1e-3."""
    masses = sum(body.inertia.mass for body in model.bodies)
    return max(1e-3, masses * sum(g * g for g in model.gravity) ** 0.5)


def _watched(switch: Switch) -> tuple[int, int]:
    """The row that a one-sided switch watches, and the sign of its error."""
    event = switch.one_sided
    assert event is not None
    assert event.row is not None
    return switch.rows[event.row], event.sign


def watched_row(switch: Switch) -> int:
    """The row whose force shows whether a one-sided switch pushes."""
    return switch.rows[0] if switch.is_stop else _watched(switch)[0]


def side(switch: Switch, offset: Any) -> Any:
    """1 where a stop is at the lower limit of its joint, −1 at the upper one; offset: the coordinate that it holds."""
    if switch.lower is None or switch.upper is None:
        return 1.0 if switch.upper is None else -1.0
    return where(offset < 0.5 * (switch.lower.bound + switch.upper.bound), 1.0, -1.0)


def push(system: System, switch: Switch, x: Arrays, forces: Sequence[Any]) -> Any:
    """The force with which a one-sided switch pushes [N or N m]."""
    if switch.is_stop:
        assert system.switching is not None
        return side(switch, x["captured"][system.switching.captured_place(switch.name)]) * forces[switch.rows[0]]
    row, sign = _watched(switch)
    return sign * forces[row]


def margin(w: Watcher, model: Model, wrenches: Mapping[str, Any]) -> Any:
    """The pressing force that a grasp has to spare [N]."""
    event = w.event
    assert isinstance(event, Grasp)
    loop = next(x for x in model.loops if x.name == event.loop)
    cone = friction_cone(loop.kind, event.friction, event.torsion, event.normal, f"Grasp({event.loop!r})")
    return cone.margin(wrenches[event.loop])
