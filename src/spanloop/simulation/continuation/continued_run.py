"""run.continued: the end of a run, carried over to another model, simulated on, and joined to one Trajectory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.contacts import Settings
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, Reason, Refusal, StateError, listed
from spanloop.model import Model
from spanloop.simulation.continuation.carried_state import Carried, Change, refuse_if_not_finite, taken_along
from spanloop.simulation.continuation.closing_impact import Impact, impact
from spanloop.simulation.continuation.joined_runs import joined
from spanloop.simulation.continuation.last_model import as_held, closed_at_end, model_at_end, refuse_absent
from spanloop.simulation.events.changes import PULLED
from spanloop.simulation.events.kinds import OneSided
from spanloop.simulation.simulate import simulate
from spanloop.simulation.system import Closures
from spanloop.trajectory import EndReason, Trajectory

FAILED = (
    EndReason.SINGULAR, EndReason.OPEN, EndReason.NOT_FINITE, EndReason.NOT_CONVERGED, EndReason.CONTROLLER,
)  # fmt: skip


@dataclass(frozen=True)
class LastState:
    """q (n, nq), v (n, nv) at the end of every run, and the time [s]; goes_on (n,): runs that did not fail."""

    q: np.ndarray
    v: np.ndarray
    time: float
    goes_on: np.ndarray

    @staticmethod
    def of(run: Trajectory) -> LastState:
        """The ends of runs; StateError if none can go on, InputError if they end at different times."""
        goes_on = np.array([o.reason not in FAILED for o in run.outcomes])
        if not goes_on.any():
            words = f"there is nothing to go on from: {run.outcomes[0].sentence}"
            raise StateError.of("continued", Refusal(Reason.OTHER, words))
        last, n = run.segments[-1], len(run.outcomes)
        times = np.full(n, last.times[-1])
        q, v = (x.reshape(n, *x.shape[-2:]) for x in (last.q, last.v))
        rows = np.array([_last_row(x) for x in q])
        q, v, times = q[np.arange(n), rows].copy(), v[np.arange(n), rows].copy(), last.times[rows].copy()
        if run.ends is not None:
            located = np.isfinite(np.ravel(run.ends.times))
            times[located] = np.ravel(run.ends.times)[located]
            q[located] = run.ends.q.reshape(n, -1)[located]
            v[located] = run.ends.v.reshape(n, -1)[located]
        _refuse_different_times(times, goes_on)
        refuse_if_not_finite(q[goes_on], v[goes_on])
        return LastState(q, v, float(times[goes_on][0]), goes_on)


def _last_row(rows: np.ndarray) -> int:
    """Number of the last of rows (samples, width) that is not NaN."""
    filled = np.flatnonzero(~np.isnan(rows).all(axis=-1)) if rows.shape[-1] else np.arange(len(rows))
    return int(filled[-1]) if len(filled) else 0


def _refuse_different_times(times: np.ndarray, goes_on: np.ndarray) -> None:
    """InputError unless all runs that go on end at the latest time of all: a batch shares its times."""
    latest = float(times.max())
    early = np.flatnonzero(goes_on & (times < latest * (1.0 - 1e-15)))
    if len(early):
        k = int(early[0])
        raise InputError(
            f"continued: run {k} ends at t = {times[k]:.9g} s, another one at {latest:.9g} s, and the runs of a batch "
            "share their times. Continue them one by one: [one.continued(...) for one in run]"
        )


def continued(
    run: Trajectory,
    model: Model | Dynamics | None = None,
    *,
    duration: float,
    q: Mapping[str, ArrayLike] | None = None,
    v: Mapping[str, ArrayLike] | None = None,
    closures: str | Closures = "project",
    parameters: ArrayLike | None = None,
    **options: Any,
) -> Trajectory:
    """Continue a run from its end, with another model or the same; Trajectory.continued documents it."""
    _refuse_options(run, q, v, parameters, options)
    options.setdefault("contacts", str(run.settings.get("contacts", "steps")))
    last = LastState.of(run)
    if not isinstance(model, Model | Dynamics | None):
        raise InputError(f"continued: model is a {type(model).__name__}; expected a Model or a Dynamics")
    closed = closed_at_end(run, last.goes_on)
    old = model_at_end(run, closed, model is None or _is_carried_on(run, model, closures))
    target = old if model is None else as_held(run, old, model)
    new = target.model if isinstance(target, Dynamics) else target
    refuse_absent(run, new, q or {}, options.get("events"))
    new = new if parameters is None else new.with_parameters(parameters)
    loops = _closures(run, old, new, closures)
    carried = Change(old, new, q or {}, v or {}).carried(last.q[last.goes_on], last.v[last.goes_on])
    robot = target if isinstance(target, Dynamics) and parameters is None else Dynamics(new)
    loops, hit = _impact(robot, loops, carried, options.get("events"))
    rows = _all_runs(last.goes_on, hit)
    later = simulate(
        target,
        *(x.reshape(*run.batch, -1) for x in rows),
        duration=duration,
        closures=loops,
        parameters=parameters,
        start=last.time,
        **options,
    )
    return joined(run, closed, later, last.goes_on, hit, _words(old, last, carried))


def _refuse_options(run: Trajectory, q: Any, v: Any, parameters: Any, options: Mapping[str, Any]) -> None:
    for name, value in (("q", q), ("v", v)):
        if value is not None and not isinstance(value, Mapping):
            raise InputError(
                f"continued: {name} is a {type(value).__name__}; the state is that of the run's end. Give {{'joint': "
                "value} for joints that are to have another one, or start anew with sl.simulate(..., start=...)"
            )
    if "start" in options:
        raise InputError("continued: start is given; a run goes on at its end, run.outcome.time")
    if run.parameters is not None or np.ndim(getattr(parameters, "values", parameters)) > 1:
        raise InputError(
            "continued: the runs of this batch have parameters of their own. Continue them one by one: "
            "[one.continued(...) for one in run]"
        )
    given = options.get("contacts")
    if run.surfaces is not None or (isinstance(given, Settings) and given.differs_in_runs):
        raise InputError(
            "continued: the runs of this batch have friction or restitution of their own. Continue them one by one: "
            "[one.continued(...) for one in run]"
        )


def _is_carried_on(run: Trajectory, model: Model | Dynamics, closures: str | Closures) -> bool:
    """Whether switches of the model go on as they were in the run."""
    new = model.model if isinstance(model, Dynamics) else model
    is_open = isinstance(closures, str) or closures.active_loops is None
    return is_open and any(name in run.events.switches for name in new.switches)


def _closures(run: Trajectory, old: Model, new: Model, closures: str | Closures) -> Closures:
    """How loops are kept closed; switchable loops that the run had open stay open unless the user closes them."""
    loops = closures if isinstance(closures, Closures) else Closures(closures)
    switchable = new.switches
    if loops.active_loops is not None or not switchable:
        return loops
    closed = {x.name for x in old.loops} | {x.name for x in old.couplings}
    known = {*closed, *run.events.switches, *str(run.settings.get("open_loops", "")).split(", ")}
    return replace(loops, active_loops=tuple(x for x in switchable if x in closed or x not in known))


def _impact(robot: Dynamics, loops: Closures, carried: Carried, events: Any) -> tuple[Closures, Impact]:
    """The impact of what closes, and the closures after it: one-sided ones that it would pull at let go."""
    if loops.stabilization == "none":
        none = np.zeros((len(carried.q), 0))
        return loops, Impact(carried.q, carried.v, carried.v, none, none)
    one_sided = {x.loop: x for x in events if isinstance(x, OneSided)} if isinstance(events, list | tuple) else {}
    while True:
        hit = impact(robot._with_active_loops(loops.active_loops), carried.q, carried.v, carried.fresh)
        pulled = {name for name in loops.active_loops or () if name in one_sided and _is_pulled(one_sided[name], hit)}
        if not pulled:
            return loops, hit
        loops = replace(loops, active_loops=tuple(x for x in loops.active_loops or () if x not in pulled))


def _is_pulled(event: OneSided, hit: Impact) -> bool:
    """Whether an impact pulls at a one-sided loop; InputError if it does so in some runs of a batch only."""
    own = [r for r, row in enumerate(hit.rows) if row.owner == event.loop]
    size = np.abs(hit.impulse).sum(axis=1)
    pulls = event.sign * hit.impulse[:, own[event.row or 0]] < -PULLED * size
    if pulls.any() and not pulls.all():
        raise InputError(
            f"continued: the impact opens the one-sided loop {event.loop!r} in some runs of this batch and not in "
            "others. Continue them one by one: [one.continued(...) for one in run]"
        )
    return bool(pulls.all())


def _all_runs(goes_on: np.ndarray, hit: Impact) -> list[np.ndarray]:
    """q and v for all runs; those that failed get the state of another one, and are left out afterwards."""
    numbers = np.maximum(np.cumsum(goes_on) - 1, 0)
    return [hit.q[numbers], hit.v_after[numbers]]


def _words(old: Model, last: LastState, carried: Carried) -> str:
    """What was carried over, in one sentence."""
    parts = [f"at t = {last.time:.9g} s"]
    if carried.moved:
        parts.append(f"joints {listed(map(repr, carried.moved))} took over the motion of their bodies")
    if carried.fresh:
        parts.append(f"joints {listed(map(repr, carried.fresh))} began anew")
    if carried.gone:
        k = int(np.argmax(last.goes_on))
        run = "" if math.prod(last.goes_on.shape) == 1 else f" (of run {k})"
        parts.append(taken_along(old, carried.gone, last.q[k], last.v[k]) + run)
    return "; ".join(parts)
