"""The log of events that a rollout writes, as an EventTable.

A row of the log is one moment, at which one or several watchers fired (located_step.py); it becomes as many rows of the
table, each with the energy given up along its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.simulation.events.located_step import logged_sizes
from spanloop.simulation.events.switching import Switching, Watcher
from spanloop.trajectory.events import EventTable, impulse_rows

if TYPE_CHECKING:
    from spanloop.simulation.problem import Problem
    from spanloop.simulation.system import System


def logged_width(system: System) -> int:
    """Numbers in a row of the log; 0 if there is none."""
    return sum(logged_sizes(system).values()) if system.switching else 0


def moments(problem: Problem, log: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of the log by name, and `run`, ordered by run and time."""
    sizes = {"run": 1} | logged_sizes(problem.system)
    rows = np.concatenate(log).astype(float) if log else np.zeros((0, sum(sizes.values())))
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    ends = np.cumsum(list(sizes.values()))
    return {name: rows[:, end - size : end] for (name, size), end in zip(sizes.items(), ends, strict=True)}


def event_table(problem: Problem, log: Sequence[np.ndarray]) -> EventTable:
    """The events of all runs."""
    switching = problem.system.switching
    assert switching is not None
    found = moments(problem, log)
    which, watcher = np.nonzero(found["fired"] > 0.5)
    runs, n = found["run"][:, 0].astype(int), len(problem)
    bounced = _bounced(switching, found, which, watcher)
    kinds = [_kind(switching.watchers[j], b) for j, b in zip(watcher, bounced, strict=True)]
    names = [_name(switching, switching.watchers[j]) for j in watcher]
    lost = [_lost(switching, found, int(k), int(j)) for k, j in zip(which, watcher, strict=True)]
    start = problem.switched_start
    empty = np.zeros((len(which), 0))
    on = found["on"][which] > 0.5 if "on" in found else empty
    before = "v.was" if "v.was" in found else "v.hit"
    acting = [_acting(problem, found, v, which, runs) for v in (before, "v")]
    return EventTable(
        run=runs[which],
        time=found["t"][which, 0],
        kind=np.array(kinds, dtype=str),
        name=np.array(names, dtype=str),
        q=found["q"][which],
        v_before=found[before][which],
        v_after=found["v"][which],
        tau_before=acting[0][0],
        tau_after=acting[1][0],
        impulse=found["impulse"][which] if "impulse" in found else empty,
        energy_lost=np.array(lost, float),
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
    )


def _acting(
    problem: Problem, found: dict, v: str, which: np.ndarray, runs: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray] | None]:
    """Torques (n, nv) at the joints and forces (n, 6) on bodies, before or after each event."""
    n = len(found["t"])
    u, z, active = (found.get(name, np.zeros((n, 0))) for name in ("u", "z", "active"))
    tau, six = problem.torques_and_forces(found["t"], found["q"], found[v], u, z, active, runs)
    forces = {body: six[which, 6 * k : 6 * k + 6] for k, body in enumerate(problem.applied.bodies)}
    return tau[which], forces or None


def _bounced(switching: Switching, found: dict, which: np.ndarray, watcher: np.ndarray) -> list[bool]:
    """Whether a one-sided switch is open after its impact."""
    out = []
    for k, j in zip(which, watcher, strict=True):
        w = switching.watchers[j]
        out.append(w.kind == "gap" and not found["on"][k, w.switch] > 0.5)
    return out


def _kind(watcher: Watcher, bounced: bool) -> str:
    if bounced:
        return "impact"
    return {"gap": "attach", "pull": "release", "grasp": "break", "limit": "end"}.get(watcher.kind, watcher.kind)


def _name(switching: Switching, watcher: Watcher) -> str:
    return switching.switches[watcher.switch].name if watcher.switch >= 0 else watcher.name


def _lost(switching: Switching, found: dict, row: int, j: int) -> float:
    """The energy given up along the rows of a watcher's switch; once if several of one switch fire together."""
    k = switching.watchers[j].switch
    if k < 0 or any(switching.watchers[i].switch == k for i in np.flatnonzero(found["fired"][row, :j] > 0.5)):
        return 0.0
    return float(found["lost"][row, list(switching.switches[k].rows)].sum())
