"""The log of events that a rollout writes, as an EventTable.

A row of the log is one impact, at which one or several watchers fired (located_step.py); it becomes as many rows of the
table, each with the energy given up along its own rows. Impacts that are no further apart than events are located are
of one moment, and have its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.simulation.events.located_step import logged_sizes
from spanloop.simulation.events.location import RESOLVED
from spanloop.simulation.events.switches import Switching, Watcher
from spanloop.trajectory.events import NO_EFFECT, EventTable, impulse_rows

if TYPE_CHECKING:
    from spanloop.simulation.problem import Problem
    from spanloop.simulation.system import System

SHORT = 1e-6  # of a step: a part that is shorter has no mean force
_OPENS = ("release", "pull", "grasp")  # kinds of watchers


def logged_width(system: System) -> int:
    """Numbers in a row of the log."""
    return sum(logged_sizes(system).values())


def moments(problem: Problem, log: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of the log by name, and `run`, ordered by run and time."""
    sizes = {"run": 1} | logged_sizes(problem.system)
    rows = np.concatenate(log).astype(float) if log else np.zeros((0, sum(sizes.values())))
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    ends = np.cumsum(list(sizes.values()))
    return {name: rows[:, end - size : end] for (name, size), end in zip(sizes.items(), ends, strict=True)}


def event_table(problem: Problem, log: Sequence[np.ndarray], step: float, dtype: str) -> EventTable:
    """The events of all runs. step: that in which they were located [s]; dtype: of its numbers."""
    switching = problem.system.switching
    assert switching is not None
    found = moments(problem, log)
    which, watcher = np.nonzero(found["fired"] > 0.5)
    runs, n = found["run"][:, 0].astype(int), len(problem)
    kinds, names = np.full(len(which), "", dtype=object), np.full(len(which), "", dtype=object)
    lost, start = np.zeros(len(which)), problem.switched_start
    was: dict[str, np.ndarray] = {
        name: _before(found[name], runs, start[name]) for name in ("on", "present") if name in found
    }
    for j, w in enumerate(switching.watchers):
        mine = watcher == j
        kinds[mine], names[mine] = _kinds(switching, j, found, was)[which[mine]], _name(switching, w)
        lost[mine] = _lost(switching, found, j)[which[mine]]
    lost += _lost_beside(switching, found, which, watcher)
    empty = np.zeros((len(which), 0))
    on = found["on"][which] > 0.5 if "on" in found else empty
    before = "v.was" if "v.was" in found else "v.hit"
    acting = [_acting(problem, found, v, which, runs) for v in (before, "v")]
    return EventTable(
        run=runs[which],
        time=_times(found, problem.start, 2.0 * RESOLVED[dtype] * step)[which],
        kind=kinds.astype(str),
        name=names.astype(str),
        q=found["q"][which],
        v_before=found[before][which],
        v_after=found["v"][which],
        tau_before=acting[0][0],
        tau_after=acting[1][0],
        impulse=found["impulse"][which] + 0.0 if "impulse" in found else empty,  # no -0
        energy_lost=lost + 0.0,
        on=on,
        captured=found["captured"][which] if "captured" in found else empty,
        begin_on=np.broadcast_to(start.get("on", np.zeros((1, 0))) > 0.5, (n, len(switching.switches))),
        begin_captured=np.broadcast_to(
            start.get("captured", np.zeros((1, 0))), (n, problem.system.sizes.get("captured", 0))
        ),
        switches=tuple(s.name for s in switching.switches),
        rows=impulse_rows(switching.model) if "impulse" in found else (),
        captures=switching.captures,
        bodies=switching.bodies,
        begin_present=np.broadcast_to(start.get("present", np.zeros((1, 0))) > 0.5, (n, len(switching.bodies))),
        one_sided=tuple((s.name, s.one_sided.row or 0, s.one_sided.sign) for s in switching.switches if s.one_sided),
        forces_before=acting[0][1],
        forces_after=acting[1][1],
        memory=found["z"][which] if "z" in found else None,
        q_before=found["q.was"][which] if "q.was" in found else None,
        **_of_contacts(problem, found, step, which),
    )


def _of_contacts(problem: Problem, found: dict, step: float, which: np.ndarray) -> dict[str, Any]:
    """Impulses of contacts, and their forces in the part of a step that ends at each event."""
    if "contact.p" not in found:
        return {}
    assert problem.system.contacts is not None
    length = parts_before(found["t"][:, 0], found["run"][:, 0], problem.start, step)[which, None]
    forces = np.where(length > SHORT * step, found["contact.f"][which] / np.where(length > 0.0, length, 1.0), np.nan)
    names = problem.system.contacts.names
    return {"points": names, "contact_impulse": found["contact.p"][which], "contact_forces": forces}


def parts_before(times: np.ndarray, run: np.ndarray, start: float, step: float) -> np.ndarray:
    """Lengths (n,) [s] of the parts of steps that end at events, ordered by run and time."""
    grid = start + step * np.floor((times - start) / step * (1.0 - 1e-12))
    last = np.concatenate([[-np.inf], np.where(np.diff(run) == 0, times[:-1], -np.inf)]) if len(times) else times
    return times - np.maximum(grid, last)


def _lost_beside(switching: Switching, found: dict, which: np.ndarray, watcher: np.ndarray) -> np.ndarray:
    """The energy that points take which do not close in an event, at its last row of the table."""
    out = np.zeros(len(which))
    if "contact.lost" in found and len(which):
        rest = found["contact.lost"].sum(axis=1)
        for j in range(len(switching.watchers))[switching.touches]:
            rest = rest - np.where(found["fired"][:, j] > 0.5, _lost(switching, found, j), 0.0)
        last = np.append(which[1:] != which[:-1], True)
        out[last] = rest[which[last]]
    return out


def plastic_note(switching: Switching, table: EventTable) -> str:
    """A sentence on the switches that bounced too often in one step and then stayed closed, "" if there are none."""
    met = []
    for switch in switching.switches:
        if switch.restitution == 0.0 or len(switch.rows) > 1 or switch.is_locked:
            continue
        closes = (table.kind == "attach") & (table.name == switch.name)
        impulse = np.abs(table.impulse[closes, switch.rows[0]])
        speed = 2.0 * table.energy_lost[closes] / np.where(impulse > 0.0, impulse, 1.0)
        met += [switch.name] * bool((speed > 1.001 * switch.resting).any())
    return f"impacts of {', '.join(met)} followed each other too fast: restitution counts as 0 there" if met else ""


def _times(found: dict, start: float, near: float) -> np.ndarray:
    """Times (n,) of the rows of a log: of rows that are as near to the first of a moment, that of the last; and the
    start for those near to it."""
    times, run = found["t"][:, 0].copy(), found["run"][:, 0]
    first = 0
    for k in range(1, len(times) + 1):
        if k == len(times) or run[k] != run[first] or times[k] > found["t"][first, 0] + near:
            times[first:k] = times[k - 1]
            first = k
    return np.where(np.abs(times - start) <= near, start, times)


def _acting(
    problem: Problem, found: dict, v: str, which: np.ndarray, runs: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray] | None]:
    """Torques (n, nv) at the joints and forces (n, 6) on bodies, before or after each event."""
    n = len(found["t"])
    u, z, active = (found.get(name, np.zeros((n, 0))) for name in ("u", "z", "active"))
    tau, six = problem.torques_and_forces(found["t"], found["q"], found[v], u, z, active, runs)
    forces = {body: six[which, 6 * k : 6 * k + 6] for k, body in enumerate(problem.applied.bodies)}
    return tau[which], forces or None


def _before(x: np.ndarray, runs: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Whether entries (n, k) of the log were on before each of its rows; start (runs or 1, k): at the start."""
    before = np.concatenate([x[:1], x[:-1]])
    first = np.concatenate([[True], np.diff(runs) != 0])[: len(x)]
    before[first] = np.broadcast_to(start, (max(len(start), runs.max(initial=0) + 1), x.shape[1]))[runs[first]]
    return before > 0.5


def _kinds(switching: Switching, j: int, found: dict, was: Mapping[Any, np.ndarray]) -> np.ndarray:
    """The kind of event that each row of the log would be to watcher j; was: switches and bodies before it."""
    w = switching.watchers[j]
    usual = {"gap": "attach", "pull": "release", "grasp": "break", "limit": "end", "touch": "impact"}.get(
        w.kind, w.kind
    )
    kinds = np.full(len(found["t"]), usual, dtype=object)
    if w.kind in ("attach", "gap"):
        bodies = switching.bodies_of(w.switch)
        opens = [
            i
            for i, o in enumerate(switching.watchers)
            if (o.switch == w.switch and o.kind in _OPENS) or (o.kind == "vanish" and o.body in bodies)
        ]
        is_open = ~(found["on"][:, w.switch] > 0.5)
        is_still = (found["impulse"][:, list(switching.switches[w.switch].rows)] == 0.0).all(axis=1)
        refused = is_open & is_still & ~(found["fired"][:, opens] > 0.5).any(axis=1)
        kinds[refused] = "refused"
        if w.kind == "gap":
            kinds[is_open & ~refused] = "impact"  # a one-sided switch that is open after it
    same = [i for i, o in enumerate(switching.watchers) if o.switch == w.switch and o.kind in ("attach", "gap")]
    if w.kind == "attach":
        kinds[was["on"][:, w.switch]] = NO_EFFECT
    elif w.kind == "release":
        kinds[~was["on"][:, w.switch] & ~(found["fired"][:, same] > 0.5).any(axis=1)] = NO_EFFECT
    elif w.kind in ("appear", "vanish"):
        both = [i for i, o in enumerate(switching.watchers) if o.body == w.body and i != j]
        is_same = was["present"][:, w.body] == (w.kind == "appear")
        kinds[is_same & ~(found["fired"][:, both] > 0.5).any(axis=1)] = NO_EFFECT
    return kinds


def _name(switching: Switching, watcher: Watcher) -> str:
    return switching.switches[watcher.switch].name if watcher.switch >= 0 else watcher.name


def _lost(switching: Switching, found: dict, j: int) -> np.ndarray:
    """The energy given up along the rows of a watcher's switch in every row of the log.

    If several watchers of one switch fire together, the last of them has it: it decides whether the switch closes.
    """
    switches = [w.switch for w in switching.watchers]
    if switching.watchers[j].kind == "touch":
        lost: np.ndarray = found["contact.lost"][:, switching.watchers[j].point]
        return lost
    if switches[j] < 0:
        return np.zeros(len(found["t"]))
    total = sum(found["lost"][:, r] for r in switching.switches[switches[j]].rows)
    later = [i for i in range(j + 1, len(switches)) if switches[i] == switches[j]]
    return np.where((found["fired"][:, later] > 0.5).any(axis=1), 0.0, total)
