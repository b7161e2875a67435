"""sl.simulate(target="cuda"): the runs of the CPU, with the driver's double, which runs the threads' text here."""

from __future__ import annotations

import numpy as np
import pytest
from driver_double import doubled_driver
from run_kinds import CASES, RUNS, assert_same, clutch, looped

import spanloop as sl
from spanloop.compiler.runtime.gpu import device_runs, driver
from spanloop.errors import DeviceError, InputError, SpanloopWarning
from spanloop.simulation import checkpoint, time_loop

without_gpu = pytest.mark.skipif(driver.is_available(), reason="this machine has a GPU")


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_run_is_that_of_the_cpu(name, monkeypatch):
    make, options = CASES[name]
    model, q, v = make()
    expected = sl.simulate(model, q, v, duration=0.04, step=1e-3, **options)
    with doubled_driver(monkeypatch) as double:
        found = sl.simulate(model, q, v, duration=0.04, step=1e-3, target="cuda", **options)
        assert "launch" in double.story
        assert double.used == 0  # all memory is given back
    assert found.settings["target"] == "cuda"
    # other places of fused multiplications; stops and impacts divide small numbers
    assert_same(expected, found, 1e-9)


def test_single_precision_is_that_of_the_cpu(monkeypatch):
    model, q, v = looped()
    single = sl.Integrator("rk4", dtype="float32")
    expected = sl.simulate(model, q, v, duration=0.04, integrator=single)
    with doubled_driver(monkeypatch):
        found = sl.simulate(model, q, v, duration=0.04, integrator=single, target="cuda")
    assert found.q.dtype == expected.q.dtype
    assert_same(expected, found, 1e-5)


def test_one_run_and_a_dynamics_with_the_target(monkeypatch):
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    expected = sl.simulate(model, q, duration=0.02)
    with doubled_driver(monkeypatch) as double:
        found = sl.simulate(sl.Dynamics(model, target="cuda"), q, duration=0.02)
        assert "launch" in double.story
        later = found.continued(duration=0.01, target="cuda")
        assert later.settings["target"] == "cuda"
    assert_same(expected, found, 1e-11)
    assert sl.simulate(sl.Dynamics(model, target="cuda"), q, duration=0.02, target="cpu").settings.get("target") is None


def test_the_cut_into_stretches_changes_no_number(monkeypatch):
    model, q, v = looped()
    with doubled_driver(monkeypatch):
        whole = sl.simulate(model, q, v, duration=0.2, sample=8e-3, step=1e-3, target="cuda")
        monkeypatch.setattr(device_runs, "LAUNCH", 1e-9)  # a launch a step
        monkeypatch.setattr(device_runs, "BUFFER", 1)  # a sample a stretch
        parts = sl.simulate(model, q, v, duration=0.2, sample=8e-3, step=1e-3, target="cuda")
    assert whole.q.shape == parts.q.shape
    np.testing.assert_array_equal(whole.q, parts.q)
    np.testing.assert_array_equal(whole.v, parts.v)


def test_samples_are_copied_while_the_next_stretch_runs(monkeypatch):
    model, q, v = looped()
    monkeypatch.setattr(device_runs, "BUFFER", 4 * RUNS * 6 * 8)  # three samples a stretch
    with doubled_driver(monkeypatch) as double:
        run = sl.simulate(model, q, v, duration=0.06, step=1e-3, target="cuda")
    assert run.q.shape == (RUNS, 61, 3)
    story = [x for x in double.story if x in ("launch", "read samples", "synchronize", "read")]
    at = [k for k, x in enumerate(story) if x == "read samples"]
    assert len(at) > 5
    for k in at[:-1]:  # the process waits for samples only when the next kernel has been started
        assert story[k + 1 : story.index("launch", k)] == ["read", "synchronize"]  # which runs have ended
    states = double.story.count("read") - len(at)
    assert states == 3  # state, why and counts are read once, at the end


@pytest.mark.slow
def test_a_long_log_takes_the_stretch_again(monkeypatch):
    model, q, v = clutch()
    events = [
        event
        for k in range(12)
        for event in (sl.events.Attach("clutch", at=0.002 + 0.003 * k, capture=True),
                      sl.events.Release("clutch", at=0.003 + 0.003 * k))
    ]  # fmt: skip
    expected = sl.simulate(model, q, v, duration=0.05, step=1e-3, sample=0.05, events=events)
    monkeypatch.setattr(time_loop, "_LOGGED", 1)
    with doubled_driver(monkeypatch):
        found = sl.simulate(model, q, v, duration=0.05, step=1e-3, sample=0.05, events=events, target="cuda")
    assert len(found.events.time) == len(expected.events.time) == RUNS * 24
    np.testing.assert_allclose(found.events.time, expected.events.time, atol=1e-12)
    np.testing.assert_allclose(found.events.v_after, expected.events.v_after, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("at", [("launch", 3), ("synchronize", 9), ("copy", 4), ("read samples", 2), ("read", 3)])
def test_an_interrupt_anywhere_leaves_the_steps_before_it(at, monkeypatch):
    model, q, v = looped()
    expected = sl.simulate(model, q, v, duration=0.06, step=1e-3)
    seen = []

    def interrupt(what):
        seen.append(what)
        if what == at[0] and seen.count(what) == at[1] + 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(device_runs, "BUFFER", 4 * RUNS * 6 * 8)
    with doubled_driver(monkeypatch, interrupt=interrupt):
        found = sl.simulate(model, q, v, duration=0.06, step=1e-3, target="cuda")
    assert {x.reason for x in found.outcomes} == {"interrupted"}
    n = len(found.times)
    assert 2 < n < 61
    np.testing.assert_allclose(found.q, expected.q[:, :n], atol=1e-11)


def test_a_killed_run_continues_from_its_checkpoint(tmp_path, monkeypatch):
    model, q, v = looped()
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", np.inf)
    monkeypatch.setattr(device_runs, "BUFFER", 4 * RUNS * 6 * 8)
    kept = sl.Integrator("rk4", checkpoint=tmp_path / "run.ckpt", target="cuda")

    def kill(what):
        if double.story.count("launch") == 6:
            raise MemoryError

    with doubled_driver(monkeypatch) as double:
        whole = sl.simulate(model, q, v, duration=0.06, step=1e-3, target="cuda")
    with doubled_driver(monkeypatch, interrupt=kill) as double, pytest.raises(MemoryError):
        sl.simulate(model, q, v, duration=0.06, step=1e-3, integrator=kept)
    with doubled_driver(monkeypatch) as double:
        resumed = sl.simulate(model, q, v, duration=0.06, step=1e-3, integrator=kept)
    assert "resumed" in resumed.settings
    np.testing.assert_array_equal(resumed.q, whole.q)


def test_runs_that_do_not_fit_are_refused_before_they_begin(monkeypatch):
    model, q, v = looped()
    with doubled_driver(monkeypatch, memory=1500) as double:
        with pytest.raises(
            DeviceError, match=r"5 runs need .* GB more on Double, which has .* GB free. Simulate about"
        ):
            sl.simulate(model, q, v, duration=0.04, target="cuda")
        assert "launch" not in double.story


@pytest.mark.slow
def test_derivatives_of_runs_are_those_of_the_cpu(monkeypatch):
    model, q, v = looped()
    wrt, on_gpu = ("q", "v", "tau"), sl.Integrator("rk4", target="cuda")
    given = {"duration": 0.02, "step": 1e-3, "wrt": wrt, "tau": np.zeros(3)}

    def both(integrator):
        found = sl.gradient(model, lambda q, v: q[0] ** 2 + v[1], q, v, integrator=integrator, **given)
        return found, sl.sensitivities(model, q, v, integrator=integrator, **given)

    expected = both("rk4")
    with doubled_driver(monkeypatch) as double:
        found = both(on_gpu)
        assert double.story.count("launch") >= 3
    for name in wrt:
        np.testing.assert_allclose(getattr(found[0], name), getattr(expected[0], name), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found[1].dq, expected[1].dq, rtol=1e-9, atol=1e-11)


def test_an_event_that_one_run_just_misses_ends_where_the_batch_met_it(monkeypatch):
    model = sl.zoo.pendulum()
    after = sl.simulate(model, [1.0], duration=1e-3, step=1e-3).q[-1, 0]
    bound = float(np.nextafter(after, -10.0))
    assert sl.simulate(model, [1.0], duration=1e-3, step=1e-3, events=lambda t, q, v: q[0] - bound).outcome.finished

    def rounded(runs):  # the device rounds to the other side
        why = device_runs.DeviceRuns._read(runs, "why", runs._now)
        why[:] = 2
        return why

    def fetched(runs, done):
        state, why, counts = original(runs, 0)  # before the step
        why[:], counts[:] = 2, 0
        return state, why, counts

    original = device_runs.DeviceRuns.fetched
    monkeypatch.setattr(device_runs.DeviceRuns, "why", rounded)
    monkeypatch.setattr(device_runs.DeviceRuns, "fetched", fetched)
    with doubled_driver(monkeypatch):
        run = sl.simulate(
            model, [1.0], duration=1e-3, step=1e-3, events=lambda t, q, v: q[0] - bound, target="cuda"
        )  # fmt: skip
    assert run.outcome.reason == "event"
    assert run.outcome.time == pytest.approx(1e-3)


@without_gpu
def test_without_a_gpu_nothing_is_computed():
    model, calls = sl.zoo.four_bar(), []

    def controller(t, q, v):
        calls.append(t)
        return 0.0 * v

    for given in ({"target": "cuda"}, {"integrator": sl.Integrator(target="cuda")}):
        with pytest.raises(DeviceError, match=r"needs an NVIDIA GPU with its driver.*target='cpu'"):
            sl.simulate(model, sl.zoo.four_bar_start(), duration=0.1, controller=controller, **given)
    with pytest.raises(DeviceError, match="needs an NVIDIA GPU"):
        sl.simulate(sl.Dynamics(model, target="cuda"), sl.zoo.four_bar_start(), duration=0.1, controller=controller)
    with pytest.raises(DeviceError, match="needs an NVIDIA GPU"):
        sl.gradient(model, lambda q, v: q[0], duration=0.1, integrator=sl.Integrator(target="cuda"))
    assert not calls


def test_what_does_not_run_there_is_refused_with_the_reason():
    model = sl.zoo.pendulum()
    with pytest.raises(
        InputError, match=r"'DOP853' chooses its steps in SciPy, on the CPU; target is 'cuda'. Use 'rk4'"
    ):
        sl.simulate(model, duration=0.1, integrator="DOP853", target="cuda")
    with pytest.raises(InputError, match="target is 'cudda'; did you mean 'cuda'"):
        sl.simulate(model, duration=0.1, target="cudda")


def test_a_step_that_is_too_long_is_reported_there_too(monkeypatch):
    with doubled_driver(monkeypatch), pytest.warns(SpanloopWarning, match="too long for this motion"):
        sl.simulate(sl.zoo.pendulum(), [1.0], [40.0], duration=1.0, step=0.1, target="cuda")
