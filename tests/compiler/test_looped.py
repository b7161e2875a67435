"""Looped kernels: steps traced once for each class of links, the same answers."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from mechanisms import EPS, RANDOM, model_of
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.compiler.lower import Looped
from spanloop.errors import StateError, UnsupportedError
from spanloop.kernels import LOOP_THRESHOLD, KernelSpec

FUNCTIONS = {
    "forward_dynamics": ("q", "v", "x"),
    "inverse_dynamics": ("q", "v", "x"),
    "bias": ("q", "v"),
    "gravity_torques": ("q",),
    "integrate": ("q", "x"),
}
TREES = ["puma", "quadruped", "star", "tree", "chain16", "chain8_random", "chain_helical", *RANDOM[:12]]


def inputs(model, names, seed=3):
    q, v = model.random_state(seed)
    known = {"q": q, "v": v, "x": np.random.default_rng(seed).normal(size=model.nv)}
    return [known[n] for n in names]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", TREES)
def test_looped_kernels_give_what_unrolled_ones_give(name, function):
    model = model_of(name)
    given = inputs(model, FUNCTIONS[function])
    if KernelSpec.of(model, function).program[1].demands is not None:  # pivots are tested by the links' numbers
        with pytest.raises(UnsupportedError, match="cannot be looped"):
            sl.compile(model, function, lowering="looped")
        return
    kernel = sl.compile(model, function, lowering="looped")
    assert isinstance(kernel.plan, Looped)
    expected = sl.compile(model, function, target="python")(*given)
    cond = np.linalg.cond(sl.compile(model, "mass_matrix", target="python")(given[0]))
    bound = 100 * EPS * (cond if function == "forward_dynamics" else 1.0) * np.abs(expected).max() + 1e-13
    assert np.abs(kernel(*given) - expected).max() <= bound
    rows = [np.array([inputs(model, FUNCTIONS[function], seed)[k] for seed in range(11)]) for k in range(len(given))]
    many = kernel(*rows)
    for k in (0, 5, 10):
        one = kernel(*(r[k] for r in rows))
        assert np.abs(many[k] - one).max() <= 1e-11 * max(1.0, np.abs(one).max())


def test_equal_numbers_are_baked_and_others_are_data():
    alike, different = (sl.compile(zoo.chain(12, seed=s), "forward_dynamics", lowering="looped") for s in (None, 3))
    assert len(alike.plan.numbers) < len(different.plan.numbers)
    assert len(alike.plan.steps[0]) <= 4
    assert len(different.plan.steps[0]) <= 4


def test_operations_grow_with_the_number_of_links():
    counts = [sl.compile(zoo.chain(n, seed=4), "forward_dynamics", lowering="looped").operations for n in (50, 100)]
    ratio = (counts[1].multiplications + counts[1].additions) / (counts[0].multiplications + counts[0].additions)
    assert ratio < 2.02


@pytest.mark.slow
def test_long_chains_are_looped_unless_told_otherwise():
    short, long = zoo.chain(LOOP_THRESHOLD, seed=1), zoo.chain(LOOP_THRESHOLD + 1, seed=1)
    assert not isinstance(sl.compile(short, "inverse_dynamics").plan, Looped)
    assert isinstance(sl.compile(long, "inverse_dynamics").plan, Looped)
    assert not isinstance(sl.compile(long, "gravity_torques", lowering="unrolled").plan, Looped)


def test_a_kernel_from_disk_has_its_data():
    model = zoo.chain(LOOP_THRESHOLD + 2, seed=2)
    given = inputs(model, ("q", "v", "x"))
    first, second = (sl.compile(model, "forward_dynamics") for _ in range(2))
    assert second.from_cache
    assert np.array_equal(first(*given), second(*given))


def test_states_without_an_answer_are_reported():
    model = model_of("quadruped")
    q, v, x = inputs(model, ("q", "v", "x"))
    kernel = sl.compile(model, "forward_dynamics", lowering="looped")
    bent = q.copy()
    bent[:4] *= 1.1
    with says(StateError, "quaternion of length"):
        kernel(bent, v, x)
    with says(StateError, "v[3] (joint"):
        kernel(q, np.where(np.arange(model.nv) == 3, np.nan, v), x)
    with pytest.warns(sl.SpanloopWarning, match="1 of 10 states has no answer"):
        out = kernel(np.array([q] * 4 + [bent] + [q] * 5), v, x)
    assert np.isnan(out[4]).all()
    assert np.isfinite(np.delete(out, 4, axis=0)).all()
    far = np.where(np.arange(model.nq) == 8, 3e9, q)
    expected = sl.compile(model, "forward_dynamics", target="python")(far, v, x)
    np.testing.assert_allclose(kernel(far, v, x), expected, rtol=1e-9)


def test_threads_do_not_meet_in_one_memory():
    model = zoo.chain(60, seed=5)
    kernel = sl.compile(model, "forward_dynamics")
    states = [inputs(model, ("q", "v", "x"), seed) for seed in range(8)]
    expected = [kernel.evaluate(*s) for s in states]
    wrong = []

    def work(k):
        wrong.extend(k for _ in range(300) if not np.array_equal(kernel.evaluate(*states[k]), expected[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_float32_and_threads_in_batches():
    model = zoo.chain(60, seed=5)
    rows = [np.array(x) for x in zip(*(inputs(model, ("q", "v", "x"), s) for s in range(40)), strict=True)]
    exact = sl.compile(model, "inverse_dynamics")(*rows)
    single = sl.compile(model, "inverse_dynamics", dtype="float32", threads=2)(*rows)
    assert np.abs(single - exact).max() <= 1e-4 * np.abs(exact).max()


def test_what_cannot_be_looped_says_why():
    with says(UnsupportedError, "mass_matrix by composite_body cannot be looped"):
        sl.compile(zoo.puma(), "mass_matrix", lowering="looped")
    for model, options, words in (
        (zoo.four_bar(), {}, "loops and couplings need the unrolled form"),
        (zoo.puma(), {"parameters": "live"}, "live parameters need the unrolled form"),
        (zoo.puma(), {"forces": "link6"}, "external forces need the unrolled form"),
    ):
        with says(UnsupportedError, f"cannot be looped: {words}"):
            sl.compile(model, "forward_dynamics", lowering="looped", **options)
    with pytest.raises(UnsupportedError, match=r"a selection of what links keep$"):
        sl.compile(zoo.puma(), "momentum", lowering="looped")
    with says(sl.SpanloopError, "lowering is 'folded'; expected 'auto', 'unrolled' or 'looped'"):
        sl.compile(zoo.puma(), "bias", lowering="folded")


def test_a_slide_without_limits_on_a_hinge_is_looped_once_it_has_some():
    def model(**slide):
        b = sl.Builder("slide on a hinge")
        for body in ("arm", "load"):
            b.body(body, 1.0, (0.1, 0.05, -0.03), (0.02, 0.03, 0.025))
        return b.revolute("hinge", "world", "arm").prismatic("slide", "arm", "load", **slide).build()

    with says(UnsupportedError, "pivots are tested in every state (joints: 'hinge'), which needs the unrolled form"):
        sl.compile(model(), "forward_dynamics", lowering="looped")
    kernel = sl.compile(model(limits=(-0.5, 0.5)), "forward_dynamics", lowering="looped")
    assert isinstance(kernel.plan, Looped)


def test_an_empty_answer_is_not_looped():
    model = zoo.chain(LOOP_THRESHOLD + 1, seed=2)
    kernel = sl.compile(model, "closure_error")
    assert not isinstance(kernel.plan, Looped)
    assert kernel(np.zeros((5, model.nq))).shape == (5, 0)


@pytest.mark.slow
def test_ten_thousand_links():
    """Torques for accelerations that torques have caused."""
    model = zoo.chain(10_000, seed=1)
    q, v, x = inputs(model, ("q", "v", "x"))
    v *= 1e-2
    a = sl.compile(model, "forward_dynamics")(q, v, x)
    back = sl.compile(model, "inverse_dynamics")(q, v, a)
    assert np.abs(back - x).max() <= 1e-9 * np.abs(back).max() + 1e-6
