"""Where in a step an event happens: one trial after the other of the rest of the step, on scalars, for each run.

A part of a step begins at `share` and its trial ends at `to`, both in steps. Where no watcher has crossed zero at `to`,
the trial is accepted. Else the crossing is between `low` and `high`, and the next trial ends where the Illinois
method [Dowell & Jarratt 1971] places the first of all crossings, until the bracket is RESOLVED wide.

| name | numbers | meaning |
|---|---|---|
| trying | 1 | positive while trials go on |
| share, to, low, high | 1 | see above |
| bracketed | 1 | 1 once a trial has crossed |
| side | 1 | 1 or −1 if the last trial moved `high` or `low` |
| fine | 1 | 1 if the trial that ended at `high` did not fail |
| g, g.next | watchers | values at the beginning and at the end of the trial; one that is not positive fires |
| r, r.next | watchers | rates of gaps [1/s] |
| lower, upper | watchers | values at `low` and `high`, as the method weights them |
| crossed | watchers | 1 for those that have crossed at `high` |
| armed | watchers | 1 for those that may fire |
| fired | watchers | 1 for those that fire now; `event` is 1 if one does |
| ending | 1 | number of the watcher that ends the run, plus 1; FAILED if a trial fails |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import total

RESOLVED = {"float64": 1e-9, "float32": 1e-5}  # of a step: how exactly an event is located
MOST = 200  # trials in a step
FAILED = -1.0  # `ending` of a run whose step fails
_LARGEST = 1e9  # a number of the state that is larger is lost

Arrays = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Rules:
    """What location needs to know of each watcher, in order."""

    enabled: tuple[tuple[int, float] | None, ...]  # (switch, 1 or 0): fires only while it is on, or off
    rearms: tuple[str, ...]  # "positive": after a step with a positive value; "step": after any step; "never" is off
    keeps_armed: tuple[bool, ...]  # stays armed when it fires
    disarms: tuple[tuple[int, ...], ...]  # other watchers that are off until they are armed again
    resolved: float = RESOLVED["float64"]


def writes(n: int) -> dict[str, int]:
    """The arrays that `begin` and `decide` write beside the state, and their sizes; n: number of watchers."""
    single = ("trying", "share", "to", "low", "high", "bracketed", "side", "fine", "event", "turns", "t", "h", "t.end")
    return dict.fromkeys(single, 1) | dict.fromkeys(("lower", "upper", "crossed", "fired", "armed"), n) | {"ending": 1}


def begin(x: Arrays, n: int) -> dict[str, list[Any]]:
    """The arrays at the start of a step: the first trial is the whole of it."""
    t, h, share = x["t"][0], x["h"][0], x["share"][0]
    none = [0.0] * n
    return {
        "t.grid": [t], "h.grid": [h], "t": [t + share * h], "h": [(1.0 - share) * h], "t.end": [t + h],
        "trying": [1.0], "to": [1.0], "low": [share], "high": [1.0], "bracketed": [0.0], "side": [0.0], "fine": [1.0],
        "event": [0.0], "turns": [0.0], "lower": none, "upper": none, "crossed": none, "fired": none,
    }  # fmt: skip


def decide(x: Arrays, rules: Rules, state: Sequence[str], waits: Sequence[str] = ()) -> dict[str, list[Any]]:
    """What follows from a trial: all arrays of `writes`, and those of the state, which moves on where a part ends.

    state: names of the arrays that a part changes. waits: arrays whose number is positive if a trial did not converge.
    """
    n, resolved = len(rules.enabled), rules.resolved
    share, to, low, high = (x[name][0] for name in ("share", "to", "low", "high"))
    busy, ends = x["trying"][0] > 0.0, absolute(x["ending"][0]) > 0.5
    was_bracketed, side = x["bracketed"][0] > 0.5, x["side"][0]
    after = [y for name in state for y in x[f"{name}.next"]]
    ok = total(absolute(y) for y in after) < _LARGEST  # not so where one is no number
    for name in waits:
        ok = ok & _not(x[name][0] > 0.0)

    watching = [_watching(x, rules, j) for j in range(n)]
    span = (to - share) * x["h.grid"][0]
    first = [where(g > 0.0, g, where(r > 0.0, r * span, 0.0)) for g, r in zip(x["g"], x["r"], strict=True)]
    at_once = [w & _not(y > 0.0) for w, y in zip(watching, first, strict=True)]
    now = x["g.next"]
    crosses = [w & _not(y > 0.0) & ok for w, y in zip(watching, now, strict=True)]
    once, hit = _any(at_once), _not(ok) | _any(crosses)
    whole = _not(once) & (_not(hit) & _not(was_bracketed))

    raised = was_bracketed & _not(hit)  # the bracket's lower end
    low = where(raised, to, low)
    high = where(hit, to, high)
    fine = where(hit, where(ok, 1.0, 0.0), x["fine"][0])
    crossed = [where(hit, where(c, 1.0, 0.0), y) for c, y in zip(crosses, x["crossed"], strict=True)]
    halve_lower, halve_upper = hit & (side > 0.5), raised & (side < -0.5)
    lower, upper = [], []
    for j in range(n):
        value = where(was_bracketed, x["lower"][j], first[j])
        lower.append(where(raised, now[j], where(halve_lower, 0.5 * value, value)))
        value = x["upper"][j]
        upper.append(where(hit, now[j], where(halve_upper, 0.5 * value, value)))
    side = where(hit, 1.0, where(raised, -1.0, side))
    bracketed = was_bracketed | hit
    closed = bracketed & _not(high - low > resolved)

    goes_on = busy & _not(ends)
    found = closed & (fine > 0.5) & _not(once)
    lost = goes_on & (closed & _not(fine > 0.5)) & _not(once)
    event = goes_on & (once | found)
    taken = goes_on & found
    done = goes_on & whole
    fired = [where(event, where(once, where(a, 1.0, 0.0), c), 0.0) for a, c in zip(at_once, crossed, strict=True)]

    share_next = where(taken, to, where(done, 0.0, share))
    rest = where(1.0 - share_next > resolved, 1.0, share_next + resolved)
    trial = where(event, rest, where(whole, to, _next_trial(low, high, resolved, fine, crossed, lower, upper)))
    start = where(event, share_next, share)
    t = x["t.grid"][0] + start * x["h.grid"][0]
    h = (trial - start) * x["h.grid"][0]
    zero = [0.0] * n
    out: dict[str, list[Any]] = {
        "trying": [where(done | (lost | ends), -1.0, 1.0)],
        "share": [share_next],
        "to": [trial],
        "low": [where(event, share_next, low)],
        "high": [where(event, rest, high)],
        "bracketed": [where(event, 0.0, where(bracketed, 1.0, 0.0))],
        "side": [where(event, 0.0, side)],
        "fine": [where(event, 1.0, fine)],
        "event": [where(event, 1.0, 0.0)],
        "turns": [x["turns"][0] + 1.0],
        "t": [t],
        "h": [h],
        "t.end": [t + h],
        "lower": [where(event, a, b) for a, b in zip(zero, lower, strict=True)],
        "upper": [where(event, a, b) for a, b in zip(zero, upper, strict=True)],
        "crossed": [where(event, a, b) for a, b in zip(zero, crossed, strict=True)],
        "fired": fired,
        "armed": _armed(x, rules, fired, now, done, taken),
        "ending": [where(lost, FAILED, x["ending"][0])],
    }
    for name in state:
        out[name] = [where(taken, b, a) for a, b in zip(x[name], x[f"{name}.next"], strict=True)]
    return {name: [where(busy, b, a) for a, b in zip(x[name], new, strict=True)] for name, new in out.items()}


def _watching(x: Arrays, rules: Rules, j: int) -> Any:
    """Whether watcher j may fire now."""
    armed = x["armed"][j] > 0.5
    if rules.enabled[j] is None:
        return armed
    switch, value = rules.enabled[j]  # type: ignore[misc]
    on = x["on"][switch] > 0.5
    return armed & (on if value else _not(on))


def _armed(x: Arrays, rules: Rules, fired: Sequence[Any], now: Sequence[Any], done: Any, taken: Any) -> list[Any]:
    """Which watchers may fire next: those that fired are off until a whole step was positive."""
    out = []
    for j, armed in enumerate(x["armed"]):
        y = armed
        if rules.rearms[j] == "positive":
            y = where(done & (now[j] > 0.0), 1.0, y)
        elif rules.rearms[j] == "step":
            y = where(done | taken & (now[j] > 0.0), 1.0, y)
        if not rules.keeps_armed[j]:
            y = where(fired[j] > 0.5, 0.0, y)
        for other, others in enumerate(rules.disarms):
            if j in others:
                y = where(fired[other] > 0.5, 0.0, y)
        out.append(y)
    return out


def _next_trial(
    low: Any, high: Any, resolved: float, fine: Any, crossed: Sequence[Any], lower: Sequence[Any], upper: Sequence[Any]
) -> Any:
    """Where the next trial ends, inside the bracket: at the first of the crossings that its ends let expect."""
    width = high - low
    first: Any = high
    for c, a, b in zip(crossed, lower, upper, strict=True):
        slope = where(a > b, a - b, 1.0)
        guess = where(c > 0.5, high + width * (b / slope), high)
        first = where(guess < first, guess, first)
    guess = where(fine > 0.5, first, low + 0.5 * width)
    inside = where(guess > low + 0.5 * resolved, guess, low + 0.5 * resolved)
    return where(inside < high - 0.5 * resolved, inside, high - 0.5 * resolved)


def _not(a: Any) -> Any:
    return not a if isinstance(a, bool) else ~a


def _any(conditions: Sequence[Any]) -> Any:
    out: Any = False
    for c in conditions:
        out = out | c
    return out
