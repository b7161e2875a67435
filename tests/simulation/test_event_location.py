"""Location of events in a step, on floats: trials of functions of time whose roots are known."""

import itertools
import math

import numpy as np
import pytest

from spanloop.simulation.events import location
from spanloop.simulation.events.location import FAILED, RESOLVED, SLACK, Rules

H = 0.01


def rules(n, **changes):
    known = {
        "enabled": (None,) * n,
        "rearms": ("positive",) * n,
        "keeps_armed": (False,) * n,
        "disarms": ((),) * n,
        "gaps": (False,) * n,
    }
    return Rules(**{**known, **changes})


GAP = rules(1, rearms=("step",), gaps=(True,), enabled=((0, 0.0),))  # watched while its switch is off


def step(values, rates=None, fails=lambda t: False, armed=None, own=None, before=None):
    """One step of length H from t = 0: what fired at which time, the number of trials, and the arrays at the end.

    values(t), rates(t): of all watchers; the state is q = t. before: values at the start of the step before.
    """
    n = len(values(0.0))
    rates = rates or (lambda t: [0.0] * n)
    x = {"t": [0.0], "h": [H], "share": [0.0], "ending": [0.0], "armed": armed or [1.0] * n, "q": [0.0]}
    x |= {"third": before or [0.0] * n, "third.at": [-1.0 if before else 0.0], "on": [0.0]}
    x |= location.begin(x, n) | {"g": values(0.0), "r": rates(0.0)}
    fired, trials = [], 0
    while x["trying"][0] > 0.0:
        trials += 1
        assert trials <= location.MOST
        end = x["t.end"][0]
        assert x["t"][0] == pytest.approx(x["q"][0], abs=1e-15)
        well = not fails(end)
        x |= {"q.next": [end if well else float("nan")], "g.next": values(end) if well else [float("nan")] * n}
        x |= {"r.next": rates(end)}
        x |= location.check(x, own or rules(n), ["q"])
        if x["trying"][0] < 0.0:
            x |= location.end(x, own or rules(n))
            break
        x |= location.decide(x, own or rules(n), ["q"])
        if x["event"][0]:
            fired.append((x["t"][0], [j for j, f in enumerate(x["fired"]) if f]))
            x |= {"g": values(x["t"][0]), "r": rates(x["t"][0]), "on": [1.0]}
    return fired, trials, x


@pytest.mark.parametrize("seed", range(20))
def test_a_crossing_is_located_to_a_billionth_of_the_step(seed):
    """Cubic functions with one root in the step; the trials are few."""
    rng = np.random.default_rng(seed)
    root, bend, skew = rng.uniform(0.0, 1.0), rng.uniform(-0.5, 0.5), rng.uniform(-0.3, 0.3)

    def values(t):
        s = t / H
        return [(root - s) * (1.0 + bend * (s - root) + skew * (s - root) ** 2)]

    fired, trials, x = step(values)
    assert [which for _, which in fired] == [[0]]
    assert fired[0][0] == pytest.approx(root * H, abs=1.01 * RESOLVED["float64"] * H)
    assert trials <= 9
    assert x["share"] == [0.0]
    assert x["q.next"] == [pytest.approx(H, abs=2e-9 * H)]


def test_the_first_of_several_crossings_comes_first():
    roots = (0.7, 0.2, 0.4)
    fired, _, _ = step(lambda t: [r - t / H for r in roots])
    assert [which for _, which in fired] == [[1], [2], [0]]
    np.testing.assert_allclose([t / H for t, _ in fired], sorted(roots), atol=2e-9)


def test_crossings_of_one_moment_fire_together():
    fired, _, _ = step(lambda t: [0.3 - t / H, 3.0 * (0.3 - t / H), 0.6 - t / H])
    assert [which for _, which in fired] == [[0, 1], [2]]


def test_what_is_not_positive_at_the_start_fires_at_once():
    fired, _, _ = step(lambda t: [-1.0])
    assert fired == [(0.0, [0])]


def test_a_watcher_that_is_off_does_not_fire():
    fired, trials, x = step(lambda t: [0.5 - t / H], armed=[0.0])
    assert (fired, trials, x["armed"]) == ([], 1, [0.0])


def test_a_watcher_is_armed_again_by_a_step_that_ends_positive():
    assert step(lambda t: [0.5 + t / H], armed=[0.0])[2]["armed"] == [1.0]


def test_a_gap_that_opens_and_closes_within_the_step_is_found_by_its_rate():
    """A ball that leaves the ground at the start and is back at half of the step."""

    def values(t):
        return [t * (0.5 * H - t)]

    def rates(t):
        return [0.5 * H - 2.0 * t]

    fired, _, _ = step(values, rates, own=GAP)
    assert fired[0][0] == pytest.approx(0.5 * H, abs=2e-9 * H)


def test_a_gap_that_force_has_opened_is_seen_when_it_closes_again():
    """It is off, and closes after all: found where it is closed by its slack."""
    fired, _, _ = step(lambda t: [-1e-16 - 0.01 * t], armed=[0.0], own=GAP)
    assert fired[0][0] == pytest.approx(SLACK["float64"] / 0.01, rel=1e-3)


def test_a_gap_that_force_has_opened_is_not_closed_by_rounding():
    fired, _, x = step(lambda t: [-1e-16 + 1e-3 * t * t], armed=[0.0], own=GAP)
    assert fired == []
    assert x["armed"] == [1.0]


def test_a_gap_that_comes_back_from_beyond_does_not_fire():
    fired, _, _ = step(lambda t: [-1e-5 + 1e-4 * t], lambda t: [1e-4], own=GAP)
    assert fired == []


def test_an_event_before_a_failure_is_found():
    fired, _, x = step(lambda t: [0.3 - t / H], fails=lambda t: t > 0.5 * H)
    assert fired[0][0] == pytest.approx(0.3 * H, abs=2e-9 * H)
    assert x["ending"] == [FAILED]
    assert x["q"][0] == pytest.approx(0.3 * H, abs=2e-9 * H)  # the part that failed begins there


def test_a_failure_without_an_event_ends_the_run():
    fired, trials, x = step(lambda t: [2.0 - t / H], fails=lambda t: t > 0.1 * H)
    assert (fired, x["ending"]) == ([], [FAILED])
    assert trials < 60


@pytest.mark.parametrize("at", [0.0, 1e-12, 0.5, 1.0 - 1e-12, 1.0])
def test_moments_at_the_ends_of_a_step_fire_once(at):
    fired, _, _ = step(lambda t: [at * H - t])
    assert len(fired) == 1
    assert fired[0][0] == pytest.approx(at * H, abs=2e-9 * H)


def test_the_time_of_a_lane_never_goes_back():
    seen = []

    def values(t):
        seen.append(t)
        return [0.25 - t / H, 0.75 - t / H]

    fired, _, _ = step(values)
    times = [t for t, _ in fired]
    assert all(a < b for a, b in itertools.pairwise(times))
    assert max(seen) <= H * (1.0 + 2e-9)


@pytest.mark.parametrize(
    "value",
    [
        lambda d: 1.0 if d > 0.0 else -1.0,
        lambda d: math.copysign(abs(d) ** (1.0 / 3.0), d),
        lambda d: min(d, 1e-3),
        lambda d: d if d > 0.0 else 1e6 * d,
        lambda d: 1e6 * d if d > 0.0 else d,
    ],
    ids=["jump", "root", "kink", "steeper", "flatter"],
)
def test_a_crossing_that_is_not_smooth_is_located_too(value):
    fired, trials, _ = step(lambda t: [value(0.3333 - t / H)])
    assert fired[0][0] == pytest.approx(0.3333 * H, abs=1.001e-9 * H)
    assert trials < 70


@pytest.mark.parametrize("rate", [0.001, 0.02])
def test_a_smooth_crossing_takes_four_trials(rate):
    """The whole step, two guesses, the rest; without values of the step before, up to three guesses."""
    when = (math.acos(0.5) - 1.0) / rate  # in steps
    first = math.floor(when)

    def cosine(steps):
        return [math.cos(rate * steps + 1.0) - 0.5]

    fired, trials, _ = step(lambda t: cosine(first + t / H), before=cosine(first - 1.0))
    assert fired[0][0] == pytest.approx((when - first) * H, abs=1e-9 * H)
    assert trials == 4
    assert step(lambda t: cosine(first + t / H))[1] in (4, 5)
