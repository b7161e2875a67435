"""Where a run with events has a derivative: each event is one crossing of zero, with a speed, and happens alone.

A run changes smoothly with what it starts from as long as the same events happen in the same order. It does not where a
watched value only grazes zero, where two events coincide, or where a constraint bounces until it rests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from spanloop.errors import Reason, Refusal, StateError, UnsupportedError
from spanloop.simulation.events.location import RESOLVED
from spanloop.simulation.events.switches import Watcher
from spanloop.simulation.gradients.event_maps import EventMaps
from spanloop.simulation.gradients.event_parts import REPEATED, Moment, Parts
from spanloop.simulation.gradients.wanted import MOMENTS
from spanloop.simulation.problem import Problem
from spanloop.trajectory import EndReason

GRAZING = 1e-3  # of the change of its rate in a step: a value that falls more slowly grazes zero
AT_ONCE = 1e-7  # rad, m, N or what a value is: below −this it fires however the state changes a little
NEAR = 10.0 * RESOLVED["float64"]  # of a step: how far from its crossing an event may be found
ENDS = (EndReason.FINISHED, EndReason.EVENT, EndReason.GRASP)  # that a user asks for


@dataclass(frozen=True)
class Crossing:
    """The watched value that falls to 0 where an event happens.

    name: what happens, for sentences; rate: its derivative by time alone; slope: {array: (size,)} its derivatives by
    the state and by what else moves.
    """

    watcher: int
    name: str
    value: float
    rate: float
    slope: Mapping[str, np.ndarray]


def must_be_supported(function: str, problem: Problem, dtype: str) -> None:
    """Refuse problems whose events have no derivative here."""
    if dtype != "float64":
        raise UnsupportedError(f"{function}: events are differentiated in float64. Give dtype='float64'")
    if problem.system.contacts:
        raise UnsupportedError(
            "gradient: runs with contacts have no derivative here. contacts='ignore' leaves them out"
        )
    if problem.applied.memory:
        raise UnsupportedError(
            f"{function}: a run with events whose controller or actuators keep a memory has no derivative here. Give a "
            "controller without memory, or leave out the events"
        )


def must_have_gone_well(parts: Parts, may_end: bool = True) -> None:
    """Refuse a run that ended in another way than by its duration, or, if it may, by a condition or a grasp."""
    if parts.end.outcome.reason not in (ENDS if may_end else ENDS[:1]):
        words = f"the run ended before its duration, and has no derivative there: {parts.end.outcome.sentence}"
        raise StateError.of("gradient", Refusal(Reason.NOT_SMOOTH, words))


def crossing_of(parts: Parts, maps: EventMaps, moment: Moment) -> Crossing | None:
    """The crossing at which an event happens; None where its time does not change: at the start of the run.

    Raises:
        StateError: several events happen at this moment, or the run bounces without end.
    """
    _must_follow(parts, maps, moment)
    given = parts.watched(moment)
    g = maps.watched(given)["g"]
    fired = _fired(parts, moment, g)
    if moment.part == 0 and parts.length[0] <= NEAR * parts.h:
        _must_fire_at_once(parts, maps, moment, fired, g)
        return None
    j = _alone(parts, maps, moment, fired, g)
    _must_not_be_last(parts, maps, moment, j)
    slopes = {n: x[0] for n, x in maps.watched.pull(given, {"g": np.eye(len(g))[[j]]}).items()}
    return Crossing(j, _name(maps, j), float(g[j]), float(slopes.pop("t")[0]), slopes)


def _fired(parts: Parts, moment: Moment, g: np.ndarray) -> np.ndarray:
    """The watchers that fire at an event; g: their values there, which may be a little above 0 where loops close."""
    if moment.rows:
        return np.flatnonzero(moment.rows[0]["fired"] > 0.5)
    return np.array([parts.end.event]) if parts.end.event >= 0 else np.flatnonzero(~(g > 0.0))


def must_be_transversal(parts: Parts, maps: EventMaps, moment: Moment, crossing: Crossing, rate: float) -> None:
    """Refuse a value that grazes zero, and an event that is not where its value crosses zero.

    rate: of the value along the motion, at the event.
    """
    length = float(parts.length[moment.part])
    first = float(maps.watched(_at_start(parts, moment))["g"][crossing.watcher])
    mean = (crossing.value - first) / length if length > 0.0 else rate
    bend = 2.0 * abs(rate - mean) / length * parts.h if length > NEAR * parts.h else 0.0  # change of rate in a step
    if not rate < 0.0 or abs(rate) < GRAZING * bend:
        raise _not_smooth(
            f"{crossing.name} grazes zero at t = {moment.time:.9g} s: its value falls at {-rate:.3g} a second there, "
            "and a small change of the start decides whether it happens at all"
        )
    if abs(crossing.value) > abs(rate) * NEAR * parts.h + 1e-9 * max(1.0, abs(first)) * 1e-3:
        raise _not_smooth(
            f"{crossing.name} happens at t = {moment.time:.9g} s, where its value is {crossing.value:.3g} and does not "
            "cross zero: it was negative before, and not watched"
        )


def _at_start(parts: Parts, moment: Moment) -> dict[str, np.ndarray]:
    """The arrays of EventMaps.watched at the start of the part that an event ends."""
    return {**parts.watched(moment), **parts.state(moment.part), "t": parts.time[moment.part : moment.part + 1]}


def _must_follow(parts: Parts, maps: EventMaps, moment: Moment) -> None:
    """Refuse rows of the log that do not follow from the first: others that happen at the same moment, and bounces."""
    switching = maps.problem.system.switching
    jumps = parts.jumps(moment)
    for k, (row, given) in enumerate(zip(moment.rows, jumps, strict=True)):
        assert switching is not None
        found = maps.jump(given)
        speed = 1.0 + np.abs(row["v"]).max(initial=0.0)
        slow = [switching.watchers[j] for j in np.flatnonzero(row["fired"] > 0.5)]
        slow = [w for w in slow if w.kind == "gap" and switching.switches[w.switch].restitution > 0.0]
        rests = [w.name for w in slow if row["on"][w.switch] > 0.5]
        if rests or np.abs(found["v"] - row["v"]).max(initial=0.0) > REPEATED * speed:
            name = repr(rests[0]) if rests else "a one-sided constraint"
            raise _not_smooth(
                f"{name} bounces until it rests, at t = {moment.time:.9g} s: the number of its bounces changes with "
                "the start. Give restitution=0, or end the run before"
            )
        if k and not moment.ends:
            g = maps.watched({**parts.watched(moment), **given})["g"]
            for j in np.flatnonzero(row["fired"] > 0.5):
                if not (g[j] < -AT_ONCE or switching.watchers[j].moment >= 0):
                    raise _coincide(moment, [_name(maps, int(j)), "the event before it"])


def _must_fire_at_once(parts: Parts, maps: EventMaps, moment: Moment, fired: np.ndarray, g: np.ndarray) -> None:
    """Refuse an event at the start whose value is 0 there: it is at the edge of happening."""
    for j in fired:
        is_fixed = _is_timed(maps, int(j)) and MOMENTS not in maps.moving
        if not (is_fixed or g[j] < -AT_ONCE):
            timed = "its time", "Give a later at="
            what, advice = timed if _is_timed(maps, int(j)) else ("the start", "Start away from it, or with it closed")
            raise _not_smooth(
                f"{_name(maps, int(j))} happens at the start, t = {moment.time:.9g} s, where its value is {g[j]:.3g}: "
                f"a small change of {what} decides when it happens. {advice}"
            )


def _alone(parts: Parts, maps: EventMaps, moment: Moment, fired: np.ndarray, g: np.ndarray) -> int:
    """The one watcher whose crossing is the event."""
    logged = fired.tolist()
    if maps.problem.system.switching is not None:
        watchers = [_watcher(maps, int(j)) for j in fired]
        if all(w.moment >= 0 for w in watchers) and (len(fired) == 1 or MOMENTS not in maps.moving):
            return int(fired[0])
        fired = np.array([j for j, w in zip(fired, watchers, strict=True) if w.kind != "pull" or abs(g[j]) <= AT_ONCE
                          or len(fired) == 1], int)  # fmt: skip
    together = sorted({*fired.tolist(), *_crossing(parts, maps, moment, g)})
    if len(together) != 1:
        both = together or logged
        raise _coincide(moment, [_name(maps, j) for j in both], all(_is_timed(maps, j) for j in both))
    return int(together[0])


def _crossing(parts: Parts, maps: EventMaps, moment: Moment, g: np.ndarray) -> list[int]:
    """The watchers that cross zero at this moment, whether they fire or not; g: their values there.

    Where a run ends, nothing else fires.
    """
    length, switching = float(parts.length[moment.part]), maps.problem.system.switching
    if length <= NEAR * parts.h:
        return []
    first = maps.watched(_at_start(parts, moment))["g"]
    near = NEAR * parts.h * np.abs(g - first) / length
    found = np.flatnonzero((first > near) & (g <= near)).tolist()
    if switching is None:
        return found
    needed = [(j, switching.rules.enabled[j]) for j in found]  # (switch, 1 or 0)
    return [j for j, x in needed if x is None or moment.on[x[0]] == x[1]]


def _must_not_be_last(parts: Parts, maps: EventMaps, moment: Moment, j: int) -> None:
    """Refuse an event at the last moment of the duration, unless nothing moves it away from there."""
    timed = _is_timed(maps, j)
    if moment.time < parts.stop - NEAR * parts.h or (timed and MOMENTS not in maps.moving):
        return
    what, advice = ("its time", "an earlier at= or a longer") if timed else ("the start", "another")
    raise _not_smooth(
        f"{_name(maps, j)} happens at the last moment of the duration, t = {moment.time:.9g} s: a small change of "
        f"{what} decides whether it happens at all. Give {advice} duration"
    )


def _is_timed(maps: EventMaps, j: int) -> bool:
    """Whether a watcher is an event at a given time."""
    return maps.problem.system.switching is not None and _watcher(maps, j).moment >= 0


def _watcher(maps: EventMaps, j: int) -> Watcher:
    switching = maps.problem.system.switching
    assert switching is not None
    return switching.watchers[j]


_WORDS = {
    "gap": "the gap of",
    "pull": "the force of",
    "attach": "the condition to attach",
    "release": "the condition to release",
    "grasp": "the margin of grasp",
    "limit": "the limit of joint",
    "appear": "the condition to appear of",
    "vanish": "the condition to vanish of",
    "end": "the condition",
}


def _name(maps: EventMaps, j: int) -> str:
    """What a watcher is, in words."""
    if maps.problem.system.switching is None:
        limits = maps.problem.events.limits
        return (
            f"the limit of joint {limits[j].joint!r}"
            if j < len(limits)
            else f"the condition {maps.problem.events.name(j)!r}"
        )
    w = _watcher(maps, j)
    if w.moment >= 0:
        return f"{type(w.event).__name__}({w.name!r}) at a given time"
    return f"{_WORDS.get(w.kind, w.kind)} {w.name!r}"


def _coincide(moment: Moment, names: list[str], are_timed: bool = False) -> StateError:
    what = "their times" if are_timed else "the start"
    return _not_smooth(
        f"{' and '.join(names)} happen at the same moment, t = {moment.time:.9g} s: a small change of {what} "
        "decides which is first, and the run has no derivative there"
    )


def _not_smooth(words: str) -> StateError:
    return StateError.of("gradient", Refusal(Reason.NOT_SMOOTH, words))
