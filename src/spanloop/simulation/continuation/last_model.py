"""The model at the end of a run: with the loops that are closed there, where they hold, and without absent bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.simulation.events.kinds import Appear
from spanloop.trajectory import Trajectory
from spanloop.trajectory.events import STOP

_ONE_BY_ONE = "Continue them one by one: [one.continued(...) for one in run]"


def closed_at_end(run: Trajectory, goes_on: np.ndarray) -> list[frozenset[str]]:
    """Names of the loops and couplings that are closed at the end of each run that goes on, but stops of joints."""
    model, table = _without_stops(run.segments[-1].model or run.model), run.events
    names = frozenset(x.name for x in model.loops) | frozenset(x.name for x in model.couplings)
    if not run.batch or not table.switches:
        return [names] * int(goes_on.sum())
    out = []
    for k in np.flatnonzero(goes_on):
        rows = np.flatnonzero(table.run == k)
        on = table.on[rows[-1]] if len(rows) else table.begin_on[k]
        opened = {name for name, closed in zip(table.switches, on, strict=True) if not closed}
        out.append(names - opened)
    return out


def model_at_end(run: Trajectory, closed: list[frozenset[str]], is_needed: bool) -> Model:
    """The model in which runs end, without stops of joints; closed: names in each run.

    is_needed: whether its closed loops count, and not just its joints.

    Raises:
        InputError: they are needed, and the runs of a batch end with different ones.
    """
    model = _without_stops(run.segments[-1].model or run.model)
    if not run.batch or not run.events.switches:
        return model
    if is_needed and any(names != closed[0] for names in closed):
        raise InputError(f"continued: the runs of this batch end with different loops closed. {_ONE_BY_ONE}")
    if is_needed and closed[0] & set(run.events.captures):
        raise InputError(f"continued: loops of this batch hold where each run has captured them. {_ONE_BY_ONE}")
    opened = [name for name in run.events.switches if name not in closed[0]]
    loops = tuple(x for x in model.loops if x.name not in opened)
    return replace(model, loops=loops, couplings=tuple(c for c in model.couplings if c.name not in opened))


def _without_stops(model: Model) -> Model:
    if not any(c.name.endswith(STOP) for c in model.couplings):
        return model
    return replace(model, couplings=tuple(c for c in model.couplings if not c.name.endswith(STOP)))


def as_held(run: Trajectory, old: Model, target: Model | Dynamics) -> Model | Dynamics:
    """The target; loops that are those of the run, and hold a pose that they captured, go on holding it."""
    new = target.model if isinstance(target, Dynamics) else target
    loops = tuple(_held(x, run.model.loops, old.loops) for x in new.loops)
    couplings = tuple(_held(x, run.model.couplings, old.couplings) for x in new.couplings)
    if loops == new.loops and couplings == new.couplings:
        return target
    model = replace(new, loops=loops, couplings=couplings)
    if isinstance(target, Dynamics):
        return Dynamics(model, method=target.method, on_singular=target.on_singular)
    return model


def _held(part: Any, first: Iterable[Any], last: Iterable[Any]) -> Any:
    """The loop or coupling as the run ends with it, if it is the one with which the run began."""
    begun = next((x for x in first if x.name == part.name), None)
    return next((x for x in last if x.name == part.name and part == begun), part)


def refuse_absent(run: Trajectory, new: Model, q: Mapping[str, Any], events: Any) -> None:
    """InputError if the new model has a body that is absent at the end of the run, and nothing says where."""
    appearing = {x.body for x in events if isinstance(x, Appear)} if isinstance(events, Iterable) else set()
    for joint in new.joints:
        if joint.child in _absent(run) and joint.child not in appearing and joint.name not in q:
            raise InputError(
                f"continued: body {joint.child!r} is absent at the end of the run, and the new model has it. Remove it "
                f"from the model, give q={{{joint.name!r}: ...}}, or let it come by Appear({joint.child!r}, ...)"
            )


def _absent(run: Trajectory) -> set[str]:
    """Bodies that are absent at the end of one of the runs."""
    absent, table = set(run.segments[-1].absent), run.events
    if not run.batch or not table.bodies:
        return absent
    assert table.begin_present is not None
    for k in range(table.runs):
        present = dict(zip(table.bodies, table.begin_present[k], strict=True))
        for row in np.flatnonzero(table.run == k):
            if table.kind[row] in ("appear", "vanish"):
                present[str(table.name[row])] = table.kind[row] == "appear"
        absent |= {name for name, here in present.items() if not here}
    return absent
