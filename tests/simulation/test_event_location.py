"""Where in a step an event happens: watchers that are functions of time, trial by trial on floats."""

from __future__ import annotations

import math

import pytest

from spanloop.simulation.events import location

H = 1e-3


def located(watchers, steps, lost_from=math.inf, rearms="positive"):
    """Events (time, numbers of the watchers that fired), trials of every step, and how the run ended."""
    n = len(watchers)
    rules = location.Rules((None,) * n, (rearms,) * n, (False,) * n, ((),) * n)
    x = {"share": [0.0], "armed": [1.0] * n, "ending": [0.0], "third": [0.0] * n, "third.at": [0.0]}
    x |= {"g": [f(0.0) for f in watchers], "r": [0.0] * n}
    events, trials = [], []
    for k in range(steps):
        x |= location.begin({**x, "t": [k * H], "h": [H]}, n)
        trials.append(0)
        while trials[-1] < location.MOST:
            trials[-1] += 1
            end = x["t.end"][0]
            x |= {"g.next": [f(end) for f in watchers], "s": x["t"], "s.next": [end if end < lost_from else math.nan]}
            x |= location.check(x, rules, ["s"])
            if not x["trying"][0] > 0.0:
                break
            x |= location.decide(x, rules, ["s"])
            if x["event"][0] > 0.5:
                events.append((x["t"][0], [j for j in range(n) if x["fired"][j] > 0.5]))
                x["g"] = [f(x["t"][0]) for f in watchers]
        if x["ending"][0]:
            return events, trials, x["ending"][0]
        x["g"] = x["g.next"]
    return events, trials, 0.0


@pytest.mark.parametrize("rate", [1.0, 20.0, 100.0])
@pytest.mark.parametrize("level", [-0.7, 0.0, 0.5, 0.9])
def test_a_smooth_crossing_takes_a_few_trials(rate, level):
    when = (math.acos(level) - 0.1) / rate
    events, trials, ending = located([lambda t: math.cos(rate * t + 0.1) - level], math.ceil(2.0 * when / H))
    assert ending == 0.0
    [(time, fired)] = events
    assert fired == [0]
    assert abs(time - when) <= 1e-9 * H
    assert set(trials) == {1, 4 if rate < 50.0 else 5}  # the whole step, guesses, the rest


def test_a_given_time_is_met_by_the_first_guess():
    events, trials, _ = located([lambda t: 0.0123456 - t], 20)
    assert trials == [1] * 12 + [3] + [1] * 7
    assert abs(events[0][0] - 0.0123456) <= 1e-9 * H


@pytest.mark.parametrize(
    "value",
    [
        lambda d: 1.0 if d > 0.0 else -1.0,
        lambda d: math.copysign(abs(d) ** (1.0 / 3.0), d),
        lambda d: d * d * d,
        lambda d: min(d, 1e-6),
        lambda d: d if d > 0.0 else 1e6 * d,
        lambda d: 1e6 * d if d > 0.0 else d,
        lambda d: d if d > 0.0 else math.nan,
    ],
    ids=["jump", "root", "cube", "kink", "steeper", "flatter", "no number"],
)
def test_a_crossing_that_is_not_smooth_is_located_too(value):
    when = 0.0033333
    events, trials, _ = located([lambda t: value(when - t)], 6)
    assert abs(events[0][0] - when) <= 1.001e-9 * H + 1e-5 * H * (value(1e-8) < 1e-20)  # of the cube: its rounding
    assert max(trials) < 70


def test_the_first_of_several_fires_and_then_the_others():
    moments = [0.0025004, 0.0025001, 0.0025004, 0.0031]
    events, trials, _ = located([lambda t, m=m: m - t for m in moments], 5)
    assert [fired for _, fired in events] == [[1], [0, 2], [3]]
    for time, fired in events:
        assert all(abs(time - moments[j]) <= 1e-9 * H for j in fired)
    assert trials == [1, 1, 5, 3, 1]


def test_what_is_not_positive_at_the_start_fires_there():
    events, trials, _ = located([lambda t: -1.0], 3)
    assert events == [(0.0, [0])]
    assert trials == [2, 1, 1]


def test_a_crossing_before_the_state_is_lost_is_found():
    events, _, ending = located([lambda t: 0.0012 - t], 4, lost_from=0.0018)
    assert abs(events[0][0] - 0.0012) <= 1e-9 * H
    assert ending == location.FAILED
    assert located([lambda t: 0.0019 - t], 4, lost_from=0.0018)[0] == []
