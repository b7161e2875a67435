"""Where in a step an event happens: one trial after the other of the rest of the step, on scalars, for each run.

A part of a step begins at `share` and its trial ends at `to`, both in steps. Where no watcher has crossed zero at `to`,
the trial is accepted. Else the crossing is between `low` and `high`, and the next trial ends at the first of all
crossings that parabolas through the last three values let expect; every second one of many halves the bracket. A trial
is the event's moment when its values, at the rate at which they fall there, cross zero within RESOLVED / 2, or when the
bracket is RESOLVED wide.

| name | numbers | meaning |
|---|---|---|
| trying | 1 | positive while trials go on |
| share, to, low, high | 1 | see above |
| tries | 1 | number of trials since one has crossed |
| failed | 1 | 1 if the last trial failed |
| done | 1 | 1 once a trial was the rest of the step |
| fine | 1 | 1 if the trial that ended at `high` did not fail |
| g, g.next | watchers | values at the beginning and at the end of the trial; one fires where it is not positive |
| r, r.next | watchers | rates of gaps [1/s] |
| lower, upper | watchers | values at `low` and `high` |
| third | watchers | values at `third.at`, outside of the bracket; none where that is `low` |
| crossed | watchers | 1 for those that have crossed at `high` |
| armed | watchers | 1 for those that may fire |
| fired | watchers | 1 for those that fire now; `event` is 1 if one does |
| ending | 1 | number of the watcher that ends the run, plus 1; FAILED if a trial fails |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.math.scalar import absolute, sqrt, where
from spanloop.math.vector3 import total

SHORTEST = (1e-12, 1e-6)  # of a step: a part of it, in float64 and in float32
RESOLVED = {"float64": 1e-9, "float32": 1e-5}  # of a step: how exactly an event is located
SLACK = {"float64": 1e-10, "float32": 1e-4}  # rad or m: how far a gap that force has opened may close again unseen
MOST = 200  # trials in a step
RESTLESS = 60.0  # trials in a step, after which what is slow does not bounce, and what pushes stays closed
CLOSING = 1e-9  # m/s or rad/s: a gap that closes faster is watched
FAILED = -1.0  # `ending` of a run whose step fails
LARGEST = 1e9  # a number of the state that is larger is lost
_TRIES = 6.5  # trials of one crossing until some of them halve the bracket

Arrays = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Rules:
    """What location needs to know of each watcher, in order."""

    enabled: tuple[tuple[int, float] | None, ...]  # (switch, 1 or 0): fires only while it is on, or off
    rearms: tuple[str, ...]  # after "step": a part of a step; "positive": a step; "whole step": one that is positive
    keeps_armed: tuple[bool, ...]  # stays armed when it fires
    disarms: tuple[tuple[int, ...], ...]  # other watchers that are off until they are armed again
    gaps: tuple[bool, ...]  # have rates: one that is closed and opens does not fire, one that is off has SLACK
    pulls: tuple[bool, ...] = ()  # of closed one-sided switches: not watched in the rest of a step with RESTLESS trials
    resolved: float = RESOLVED["float64"]
    slack: float = SLACK["float64"]
    bodies: tuple[tuple[int, ...], ...] = ()  # those that must be there; none where it is empty


BEGUN = ("t.grid", "h.grid", "t", "h", "t.end", "trying", "to", "tries", "turns", "done")  # of `begin`, what steps need


def begin(x: Arrays, n: int) -> dict[str, list[Any]]:
    """The arrays at the start of a step: the first trial is the whole of it."""
    t, h, share = x["t"][0], x["h"][0], x["share"][0]
    none = [0.0] * n
    return {
        "t.grid": [t], "h.grid": [h], "t": [t + share * h], "h": [(1.0 - share) * h], "t.end": [t + h],
        "trying": [1.0], "to": [1.0], "low": [share], "high": [1.0], "tries": [0.0], "fine": [1.0],
        "event": [0.0], "turns": [0.0], "done": [0.0], "lower": none, "upper": none, "crossed": none, "fired": none,
    }  # fmt: skip


def checked(n: int) -> dict[str, int]:
    """The arrays that `check` writes, and their sizes; n: number of watchers."""
    return {"trying": 1, "failed": 1, "done": 1}


def check(x: Arrays, rules: Rules, state: Sequence[str], waits: Sequence[str] = ()) -> dict[str, list[Any]]:
    """After a trial: whether it is the rest of the step. If so the step is done, else `decide` follows.

    What a trial reads stays as it is: it is repeated while other runs of a batch go on, and has the same end again.
    state: names of the arrays that a part changes. waits: arrays whose number is positive if it did not converge.
    """
    x = _with_slack(x, rules)
    goes_on = (x["trying"][0] > 0.0) & _not(absolute(x["ending"][0]) > 0.5)
    ok = total(absolute(y) for name in state for y in x[f"{name}.next"]) < LARGEST  # not so where one is no number
    for name in waits:
        ok = ok & _not(x[name][0] > 0.0)
    is_crossed = _any(a | b for a, b in zip(_at_once(x, rules), _crosses(x, rules), strict=True))
    done = goes_on & (ok & _not(is_crossed)) & _not(x["tries"][0] > 0.5)
    return {
        "trying": [where(goes_on & _not(done), 1.0, -1.0)],
        "failed": [where(ok, 0.0, 1.0)],
        "done": [where(done, 1.0, x["done"][0])],
    }


def ended(n: int) -> dict[str, int]:
    """The arrays that `end` writes, and their sizes; n: number of watchers."""
    return {"share": 1, "armed": n, "third": n, "third.at": 1}


def end(x: Arrays, rules: Rules) -> dict[str, list[Any]]:
    """After all trials of a step: what the next one begins with, if this one is done."""
    x, done, armed = _with_slack(x, rules), x["done"][0] > 0.5, []
    for y, first, now, rearms in zip(x["armed"], x["g"], x["g.next"], rules.rearms, strict=True):
        again = {"step": done & (now > rules.slack), "positive": done & (now > 0.0)}.get(rearms, False)
        if rearms == "whole step":
            again = done & _not(x["share"][0] > 0.0) & (first > rules.slack) & (now > rules.slack)
        armed.append(where(again, 1.0, y))
    return {
        "share": [where(done, 0.0, x["share"][0])],
        "armed": armed,
        "third": [where(done, g, y) for g, y in zip(x["g"], x["third"], strict=True)],
        "third.at": [where(done, x["share"][0] - 1.0, x["third.at"][0])],
    }


def decided(n: int) -> dict[str, int]:
    """The arrays that `decide` writes beside the state, and their sizes; n: number of watchers."""
    single = ("trying", "share", "to", "low", "high", "tries", "fine", "event", "turns", "t", "h", "t.end", "third.at")
    return (
        dict.fromkeys(single, 1)
        | dict.fromkeys(("lower", "upper", "third", "crossed", "fired", "armed"), n)
        | {"ending": 1}
    )


def decide(x: Arrays, rules: Rules, state: Sequence[str]) -> dict[str, list[Any]]:
    """What follows from a trial that is not the rest of the step: an event here, or the next trial.

    All arrays of `decided`, and those of the state, which moves on where a part ends.
    """
    x = _with_slack(x, rules)
    busy, ok = x["trying"][0] > 0.0, x["failed"][0] < 0.5
    share, to, resolved = x["share"][0], x["to"][0], rules.resolved
    at_once, crosses = _at_once(x, rules), [c & ok for c in _crosses(x, rules)]
    once, hit = _any(at_once), _not(ok) | _any(crosses)
    bracket = _narrowed(x, rules, hit, crosses)
    fine, crossing = bracket["fine"][0] > 0.5, [c > 0.5 for c in bracket["crossed"]]
    ahead = _ahead(x, bracket, hit)
    soonest: Any = 1.0
    for c, distance in zip(crossing, ahead, strict=True):
        soonest = where(c & (distance < soonest), distance, soonest)
    low, high = bracket["low"][0], bracket["high"][0]
    near = (x["tries"][0] > 0.5) & fine & (absolute(soonest) < 0.5 * resolved)
    closed = near | _not(high - low > resolved)

    found = busy & (closed & fine & _not(once))
    lost = busy & (closed & _not(fine) & _not(once))
    event = busy & (once | found)
    reached = [c & _not(near & (distance > resolved)) for c, distance in zip(crossing, ahead, strict=True)]
    reached = [c | (ok & y) for c, y in zip(reached, _touching(x, rules, ahead), strict=True)]
    fires = [event & ((once & a) | (_not(once) & c)) for a, c in zip(at_once, reached, strict=True)]

    start = where(found, to, share)
    least = SHORTEST[resolved > 1e-6]
    rest = where(1.0 - start > least, 1.0, start + least)  # an event at the step's end leaves a part of next to no time
    trial = where(event, rest, _next_trial(bracket, resolved))
    t = x["t.grid"][0] + start * x["h.grid"][0]
    h = (trial - start) * x["h.grid"][0]
    begun = {"low": [start], "high": [rest], "tries": [0.0], "fine": [1.0], "third.at": [start]}
    out: dict[str, list[Any]] = {
        name: [where(event, a, b) for a, b in zip(begun.get(name, [0.0] * len(new)), new, strict=True)]
        for name, new in bracket.items()
    }
    out |= {
        "trying": [where(lost, -1.0, 1.0)],
        "share": [start],
        "to": [trial],
        "turns": [x["turns"][0] + 1.0],
        "t": [t],
        "h": [h],
        "t.end": [t + h],
        "armed": _armed(x, rules, fires, found),
        "ending": [where(lost, FAILED, x["ending"][0])],
    }
    for name in state:
        out[name] = [where(found, b, a) for a, b in zip(x[name], x[f"{name}.next"], strict=True)]
    out = {name: [where(busy, b, a) for a, b in zip(x[name], new, strict=True)] for name, new in out.items()}
    return out | {"event": [where(event, 1.0, 0.0)], "fired": [where(f, 1.0, 0.0) for f in fires]}


def _with_slack(x: Arrays, rules: Rules) -> Arrays:
    """The arrays with SLACK added to gaps that are off."""
    if not any(rules.gaps):
        return x
    out = dict(x)
    for name in ("g", "g.next"):
        rows = zip(x[name], x["armed"], rules.gaps, strict=True)
        out[name] = [y + where(armed > 0.5, 0.0, rules.slack) if gap else y for y, armed, gap in rows]
    return out


def _watching(x: Arrays, rules: Rules) -> list[Any]:
    """Whether each watcher may fire now."""
    out = []
    bodies = rules.bodies or ((),) * len(rules.enabled)
    pulls = rules.pulls or (False,) * len(rules.enabled)
    rows = zip(x["armed"], rules.enabled, bodies, rules.gaps, pulls, x["g"], x["r"], strict=True)
    for armed, enabled, needed, gap, pull, g, r in rows:
        may = _not((g < -rules.slack) & ((r > 0.0) | (_not(armed > 0.5) & (r > -CLOSING)))) if gap else armed > 0.5
        may = may & (x["turns"][0] < RESTLESS) if pull else may
        for body in needed:
            may = may & (x["present"][body] > 0.5)
        if enabled is not None:
            switch, value = enabled
            on = x["on"][switch] > 0.5
            may = may & (on if value else _not(on))
        out.append(may)
    return out


def _first(x: Arrays, rules: Rules) -> list[Any]:
    """Values at the beginning of a part; a gap that is closed and opens counts as it will be at the trial's end."""
    span, out = (x["to"][0] - x["share"][0]) * x["h.grid"][0], list(x["g"])
    for j, is_gap in enumerate(rules.gaps):
        if is_gap:
            g, r = x["g"][j], x["r"][j]
            out[j] = where(g > 0.0, g, where(r > 0.0, r * span, 0.0))
    return out


def _at_once(x: Arrays, rules: Rules) -> list[Any]:
    """Whether each watcher fires at the beginning of the part."""
    return [w & _not(y > 0.0) for w, y in zip(_watching(x, rules), _first(x, rules), strict=True)]


def _crosses(x: Arrays, rules: Rules) -> list[Any]:
    """Whether each watcher has crossed at the end of the trial."""
    return [w & _not(y > 0.0) for w, y in zip(_watching(x, rules), x["g.next"], strict=True)]


def _touching(x: Arrays, rules: Rules, ahead: Sequence[Any]) -> list[Any]:
    """Whether each is a gap that closes at the moment of the trial, though it is not closed yet: by symmetry, say."""
    rows = zip(_watching(x, rules), rules.rearms, x["g.next"], ahead, strict=True)
    resolved = rules.resolved
    return [w & (y > 0.0) & (d > 0.0) & (d < resolved) if rearms == "step" else False for w, rearms, y, d in rows]


def _narrowed(x: Arrays, rules: Rules, hit: Any, crosses: Sequence[Any]) -> dict[str, list[Any]]:
    """The bracket with the last trial as one of its ends; the end that it replaces is the third point."""
    to, low, high, tries = (x[name][0] for name in ("to", "low", "high", "tries"))
    is_first = _not(tries > 0.5)  # the bracket's lower end is the beginning of the part, where nothing has crossed
    low = where(is_first, x["share"][0], low)
    lower = [where(is_first, a, b) for a, b in zip(_first(x, rules), x["lower"], strict=True)]

    def third(before: Any, a: Any, b: Any) -> Any:
        return where(is_first, before, where(hit, b, a))

    return {
        "low": [where(hit, low, to)],
        "high": [where(hit, to, high)],
        "third.at": [third(x["third.at"][0], low, high)],
        "lower": [where(hit, a, y) for a, y in zip(lower, x["g.next"], strict=True)],
        "upper": [where(hit, y, b) for b, y in zip(x["upper"], x["g.next"], strict=True)],
        "third": [third(c, a, b) for c, a, b in zip(x["third"], lower, x["upper"], strict=True)],
        "tries": [where(tries < _TRIES, tries + 1.0, tries - 1.0)],
        "fine": [where(hit, 1.0 - x["failed"][0], x["fine"][0])],
        "crossed": [where(hit, where(c, 1.0, 0.0), y) for c, y in zip(crosses, x["crossed"], strict=True)],
    }


def _ahead(x: Arrays, bracket: Arrays, hit: Any) -> list[Any]:
    """How far beyond the trial each value crosses zero, by the flatter line to its neighbours; −1 if one rises.

    Its neighbours are the other end of the bracket and the end that it has replaced, one on each side of zero.
    """
    to = x["to"][0]
    distances = [where(hit, bracket["low"][0], bracket["high"][0]) - to, bracket["third.at"][0] - to]
    out = []
    for now, a, b, c in zip(x["g.next"], bracket["lower"], bracket["upper"], bracket["third"], strict=True):
        ahead: Any = 0.0
        for value, distance in zip((where(hit, a, b), c), distances, strict=True):
            fall = where(distance > 0.0, 1.0, -1.0) * (now - value)
            size = absolute(distance)
            guess = where(fall > 0.0, now * size / where(fall > 0.0, fall, 1.0), -1.0)
            ahead = where(absolute(guess) > absolute(ahead), guess, ahead)
        out.append(ahead)
    return out


def _next_trial(bracket: Arrays, resolved: float) -> Any:
    """Where the next trial ends, inside the bracket."""
    low, high, third_at = (bracket[name][0] for name in ("low", "high", "third.at"))
    first: Any = high
    for crossed, *values in zip(*(bracket[name] for name in ("crossed", "lower", "upper", "third")), strict=True):
        guess = _root(low, high, third_at, *values)
        first = where((crossed > 0.5) & (guess < first), guess, first)
    halves = _not((bracket["fine"][0] > 0.5) & (bracket["tries"][0] < _TRIES))
    guess = where(halves, low + 0.5 * (high - low), first)
    inside = where(guess > low + 0.5 * resolved, guess, low + 0.5 * resolved)
    return where(inside < high - 0.5 * resolved, inside, high - 0.5 * resolved)


def _root(low: Any, high: Any, third_at: Any, a: Any, b: Any, c: Any) -> Any:
    """Where a value falls to 0 that is a at `low`, b at `high` and c at third_at, by the parabola through them."""
    width = high - low
    u = (third_at - low) / where(width > 0.0, width, 1.0)
    slope, bend = where(a > b, a - b, 1.0), u * (u - 1.0)
    is_known = absolute(bend) > 1e-12
    curvature = where(is_known, (c - a + slope * u) / where(is_known, bend, 1.0), 0.0)
    s = slope + curvature  # a − s u + curvature u² = 0
    square = s * s - 4.0 * a * curvature
    size = s + sqrt(where(square > 0.0, square, 0.0))
    return low + width * (2.0 * a / where(size > slope, size, 2.0 * slope))


def _armed(x: Arrays, rules: Rules, fires: Sequence[Any], found: Any) -> list[Any]:
    """Which watchers may fire next: those that fired are off until a whole step was positive."""
    out = []
    for j, armed in enumerate(x["armed"]):
        y = armed
        if rules.rearms[j] == "step":
            y = where(found & (x["g.next"][j] > rules.slack), 1.0, y)
        if not rules.keeps_armed[j]:
            y = where(fires[j], 0.0, y)
        for other, others in enumerate(rules.disarms):
            if j in others:
                y = where(fires[other], 0.0, y)
        out.append(y)
    return out


def _not(a: Any) -> Any:
    return not a if isinstance(a, bool) else ~a


def _any(conditions: Any) -> Any:
    out: Any = False
    for c in conditions:
        out = out | c
    return out
