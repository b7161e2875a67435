"""The compiled time loop on a tiny schedule: loops in loops, calls between turns, the log, arrays changed in place."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from spanloop.compiler.lower import Call, Log, Repeat, Schedule, When, unrolled
from spanloop.compiler.render import segments
from spanloop.compiler.render.rollout import HALTED, NOT_CONVERGED
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.math.scalar import where

H, COUNT = 0.125, 40
MOST, ROUNDS = 9, 12
RUNS = 21  # the last vector is not full
SAME = np.testing.assert_array_equal
NO_CONTROLS = np.zeros((1, 1, 1))


def call(sizes, name, reads, writes, compute) -> Call:
    """A call of compute({array: scalars}), which returns the scalars of every array that is written."""

    def flat(x):
        return [y for part in compute(x) for y in part], (), ()

    return Call(unrolled(name, [(n, sizes[n]) for n in reads], (0,), flat), tuple(reads), tuple(writes))


def bouncing() -> Schedule:
    """x falls at speed 1 and is set to `size` whenever it reaches 0, inside a step; `number` counts that in place.

    From the third time on it is set to 1.25 size. With every throw the state x itself becomes number·size, which a step
    that fails leaves there.

    A turn takes the rest of the step from `top`, or the part of it until x is 0; h is its length, t its start. In each
    turn the square root of 2 + x at its end is found by repetition. A run halts when number is above limit.
    """
    names = (
        "x",
        "number",
        "t",
        "h",
        "size",
        "limit",
        "top",
        "rest",
        "x.next",
        "left",
        "flag",
        "guess",
        "rough",
        "halt",
    )
    sizes = dict.fromkeys(names, 1) | {"root": 2, "root.next": 2, "rounds": 1, "late": 1}
    make = functools.partial(call, sizes)

    def trial(x):
        top, rest = x["top"][0], x["rest"][0]
        crosses = top < rest
        length = where(crosses, top, rest)
        return [top - length], [where(crosses, 1.0, -1.0)], [length], [1.0], [0.0], [1.0]

    def improve(x):
        value, busy = x["guess"][0], x["rough"][0] > 0.0
        better = 0.5 * (value + (2.0 + x["x.next"][0]) / value)
        rough = where(better - value < -1e-5, 1.0, where(better - value > 1e-5, 1.0, -1.0))
        rounds = where(busy, x["rounds"][0] + 1.0, x["rounds"][0])
        return [where(busy, better, value)], [rounds], [where(busy, rough, -1.0)]

    def throw(x):
        crosses = x["left"][0] > 0.0
        return (
            [where(crosses, x["size"][0], x["top"][0])],
            [where(crosses, x["rest"][0] - x["h"][0], x["rest"][0])],
            [where(crosses, x["number"][0] + 1.0, x["number"][0])],
            [where(crosses, x["t"][0] + x["h"][0], x["t"][0])],
            [where(crosses, 1.0, -1.0)],
            [where(crosses, x["number"][0] - 1.5, -1.0)],
            [where(crosses, x["size"][0] * x["number"][0], x["x"][0])],
        )

    def lift(x):
        return ([where(x["late"][0] > 0.0, 1.25 * x["top"][0], x["top"][0])],)

    def end(x):
        return [x["guess"][0], x["rounds"][0]], [x["limit"][0] - x["number"][0]]

    turn = (
        make("trial", ("top", "rest"), ("x.next", "left", "h", "guess", "rounds", "rough"), trial),
        Repeat(
            (make("improve", ("guess", "rounds", "rough", "x.next"), ("guess", "rounds", "rough"), improve),),
            "rough",
            ROUNDS,
        ),
    )
    moved = ("top", "rest", "number", "t", "flag")
    loop = Repeat(
        turn,
        "left",
        MOST,
        between=(
            make("throw", ("x", "size", "left", "h", *moved[:-1]), (*moved, "late", "x"), throw),
            When((make("lift", ("late", "top"), ("top",), lift),), "late"),
        ),
        log=Log("flag", ("t", "number", "top", "root")),
    )
    return Schedule(
        "bouncing",
        sizes,
        ("x", "number", "root"),
        ("size", "limit"),
        (),
        ("x", "number", "t", "h"),
        (),
        (
            make("begin", ("x", "h"), ("top", "rest"), lambda x: (x["x"], x["h"])),
            loop,
            make("end", ("guess", "rounds", "number", "limit"), ("root.next", "halt"), end),
        ),
        halt="halt",
        in_place=("number",),
    )


def expected(x, size, limit, real):
    """What one run does: its state at the end, steps that ended well, why it ended, samples, rows of its log."""
    one = real
    x, size, number, root, rows, samples = one(x), one(size), one(0), [one(0), one(0)], [], []
    for k in range(COUNT):
        samples.append([x, number, one(k * H), one(H)])
        top, rest, t = x, one(H), one(k * H)
        for turn in range(MOST):
            length = top if top < rest else rest
            crosses, guess, rounds = top < rest, one(1), 0
            while True:
                better = one(0.5) * (guess + (one(2) + (top - length)) / guess)
                rough, guess, rounds = abs(better - guess) > one(1e-5), better, rounds + 1
                if not rough or rounds == ROUNDS:
                    break
            if not crosses or turn == MOST - 1:
                break
            top = size if number < 1.75 else one(1.25) * size
            rest, number, t, x = rest - length, number + one(1), t + length, size * number
            rows.append([t, number, top, *root])
        why = (HALTED if number > limit else 0) | (NOT_CONVERGED if crosses or rough else 0)
        if why:
            return [x, number, *root], k, why, samples, rows
        x, root = top - length, [guess, one(rounds)]
    return [x, number, *root], COUNT, 0, [*samples, [x, number, one(COUNT * H), one(H)]], rows


def inputs(dtype):
    """States, sizes and limits: no throws, some, several a step, too many a step, too many at all, a root too far."""
    sizes = np.array([50.0, 0.3, 0.7, 0.05, 0.031, 0.012, 0.0099, 1.3, 0.41, 0.23, 5e5, *np.linspace(0.02, 2.0, 10)])
    state = np.zeros((RUNS, 4), dtype)
    state[:, 0] = [6.0, *np.linspace(0.01, 3.0, RUNS - 1)]
    limits = np.where(np.arange(RUNS) % 4 == 3, 6.0, 1e6)
    return state, np.stack([sizes, limits], axis=1).astype(dtype)


@functools.cache
def rollout(dtype: str) -> Rollout:
    return Rollout(f"test of loops {dtype}", bouncing, dtype)


def moved(dtype, runs, capacity=400, pieces=(COUNT,)):
    """State, steps, reasons, samples, log and its counts of some runs; steps in pieces, one call each."""
    state, constants = inputs(dtype)
    state, constants = state[runs].copy(), constants[runs].copy()
    why, counts = np.zeros(len(state), np.uint8), np.zeros(len(state), np.int64)
    record = np.full((len(state), COUNT + 1, 4), np.nan, dtype)
    log, logged = np.full((len(state), capacity, 5), np.nan, dtype), np.zeros(len(state), np.int64)
    first = 0
    for n in pieces:
        part = np.full((len(state), n + 1, 4), np.nan, dtype)
        counts += rollout(dtype).run(
            state, constants, NO_CONTROLS.astype(dtype), why, Steps(0.0, H, first, n), part, log, logged
        )
        record[:, first : first + n + 1] = part
        first += n
    return state, counts, why, record, log, logged


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("SPANLOOP_CACHE", "off")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_runs_in_a_batch_and_alone_do_what_their_loops_say(dtype):
    starts, constants = inputs(dtype)
    state, counts, why, record, log, logged = moved(dtype, slice(None))
    assert {0, HALTED, NOT_CONVERGED} <= set(why.tolist())
    assert len(set(logged.tolist())) > 8
    for k in range(RUNS):
        end, steps, reason, samples, rows = expected(starts[k, 0], *constants[k], np.dtype(dtype).type)
        SAME(state[k], end)
        assert (counts[k], why[k], logged[k]) == (steps, reason, len(rows))
        SAME(record[k, : len(samples)], samples)
        SAME(log[k, : len(rows)], np.reshape(rows, (-1, 5)))
        assert np.isnan(log[k, len(rows) :]).all()
        alone = moved(dtype, slice(k, k + 1))
        for one, many in zip(alone, (state, counts, why, record, log, logged), strict=True):
            valid = slice(len(samples)) if one.ndim == 3 and one.shape[2] == 4 else slice(None)
            SAME(one[0][valid] if one.ndim == 3 else one[0], many[k][valid] if one.ndim == 3 else many[k])


def test_a_run_in_several_calls_is_the_run_in_one():
    whole, parts = moved("float64", slice(None)), moved("float64", slice(None), pieces=(7, 0, 20, 13))
    for k in (0, 1, 2, 4, 5):
        SAME(parts[k], whole[k])


def test_rows_beyond_the_capacity_of_the_log_are_counted_not_written():
    whole, short = moved("float64", slice(None)), moved("float64", slice(None), capacity=3)
    SAME(short[5], whole[5])
    SAME(short[4], whole[4][:, :3])
    SAME(short[0], whole[0])
    assert (whole[5] > 3).any()


def test_without_a_log_the_motion_is_the_same():
    state, constants = inputs("float64")
    why = np.zeros(RUNS, np.uint8)
    rollout("float64").run(state, constants, NO_CONTROLS, why, Steps(0.0, H, 0, COUNT))
    SAME(state, moved("float64", slice(None))[0])


def test_a_run_that_comes_with_a_reason_keeps_what_calls_change_in_place():
    state, constants = inputs("float64")
    before, why = state.copy(), np.full(RUNS, HALTED, np.uint8)
    for runs in (slice(0, 1), slice(None)):
        log, logged = np.zeros((len(state[runs]), 4, 5)), np.zeros(len(state[runs]), np.int64)
        steps = Steps(0.0, H, 0, COUNT)
        rollout("float64").run(state[runs], constants[runs], NO_CONTROLS, why[runs], steps, None, log, logged)
        SAME(state, before)
        assert not logged.any()


@pytest.mark.parametrize("whole", [segments.WHOLE, 4])
def test_a_call_may_write_what_it_reads(monkeypatch, whole):
    """In one piece, and cut into several, of which later ones still read."""
    monkeypatch.setattr(segments.cut, "__defaults__", (whole, 2))
    sizes = {"x": 2, "x.next": 2, "y": 3}
    turned = call(sizes, "turned", ("y",), ("y",), lambda x: ([x["y"][1] + 1.0, x["y"][2] * 2.0, x["y"][0]],))
    sums = call(sizes, "sums", ("x", "y"), ("x.next", "y"), lambda x: (_sums(x), [_long(x), x["y"][2], x["y"][1]]))
    schedule = Schedule("turned", sizes, ("x", "y"), (), (), (), (), (turned, sums), in_place=("y",))
    start = np.array([[1.0, 2.0, 3.0, 5.0, 7.0]] * 3)
    for runs in (1, 3):
        state = start[:runs].copy()
        made = Rollout(f"{whole}", lambda: schedule)
        made.run(state, np.zeros((1, 1)), NO_CONTROLS, np.zeros(runs, np.uint8), Steps(0.0, H, 0, 1))
        y = (6.0, 14.0, 3.0)
        SAME(state, [[1.0 + y[0], 2.0 * y[2], _long({"x": (1.0, 2.0), "y": y}), y[2], y[1]]] * runs)


def _sums(x):
    return [x["x"][0] + x["y"][0], x["x"][1] * x["y"][2]]


def _long(x):
    out = x["y"][0]
    for k in range(6):
        out = out * x["x"][k % 2] + x["y"][k % 3]
    return out


def test_a_schedule_shows_its_loops_and_counts_the_usual_turn():
    schedule = bouncing()
    text = str(schedule)
    assert "= improve(guess, rounds, rough, x.next)  (repeat while rough > 0)  (repeat while left > 0)" in text
    assert "= throw(x, size, left, h, top, rest, number, t)  (between turns while left > 0)" in text
    assert "top = lift(late, top)  (when late > 0)  (between turns while left > 0)" in text
    assert "log t, number, top, root where flag > 0" in text
    own = {c.plan.name: c.plan.operations.total for c in schedule.calls()}
    assert list(own) == ["begin", "trial", "improve", "throw", "lift", "end"]
    assert len(schedule.plans()) == 6
    assert schedule.operations == own["begin"] + own["trial"] + ROUNDS * own["improve"] + own["end"]
