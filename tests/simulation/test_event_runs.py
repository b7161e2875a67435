"""Runs with events: a run of a batch gives the bits it gives alone, a resumed one too; no change compiles anything."""

from __future__ import annotations

import event_stories as known
import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime import machine
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.simulation import checkpoint

COLUMNS = ("time", "kind", "name", "q", "v_before", "v_after", "impulse", "energy_lost", "on", "captured")


def assert_same_table(one, other):
    for column in COLUMNS:
        assert np.array_equal(getattr(one, column), getattr(other, column)), column


def assert_same(one, other):
    """Two runs, with the moments of their events among the samples."""
    assert_same_table(one.events, other.events)
    for name in ("times", "q", "v", "tau"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def string(speeds):
    taut, one_sided = sl.Closures(active_loops=["string"]), sl.events.OneSided("string", sign=-1)
    speeds = np.asarray(speeds, float)
    q = np.broadcast_to([0.0, -1.0], (*speeds.shape, 2))
    v = np.stack([speeds, 0.0 * speeds], axis=-1)
    return sl.simulate(known.point("string", 1.0), q, v, duration=2.0, closures=taut, events=[one_sided])


@pytest.mark.slow
def test_strings_of_a_batch_go_slack_and_catch_as_alone():
    speeds = np.array([5.0, 5.3, 6.9, 6.2, 2.0, 5.9, 6.5, 6.6, 6.0])  # one never goes slack, and one lane is left over
    runs = string(speeds)
    counts = np.bincount(runs.events.run, minlength=len(speeds))
    assert counts[4] == 0
    assert (np.delete(counts, 4) >= 2).all()
    for k in (0, 2, 4, 8):
        assert_same(runs[k], string(speeds[k]))


def clutch(at, spins):
    b = sl.Builder("discs").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.5, 0.5, 0.7))
    b.revolute("first", "world", "one", "z").revolute("second", "world", "two", "z", (0, 0, 0.1))
    model = b.loop("one", "two", "fixed", name="clutch", switchable=True).build()
    events = [sl.events.Attach("clutch", at=at, capture=True), sl.events.Release("clutch", at=0.0807)]
    return sl.simulate(model, v=spins, duration=0.1, events=events)


@pytest.mark.slow
def test_each_run_of_a_batch_has_its_own_moment():
    at, rng = np.array([0.0113, 0.0321, 0.0529, 0.0777, 0.0604]), np.random.default_rng(7)
    spins = rng.normal(size=(5, 2))
    runs = clutch(at, spins)
    assert np.array_equal(runs.events.run, np.repeat(np.arange(5), 2))
    np.testing.assert_allclose(runs.events.time[::2], at, atol=1e-12)
    for k in range(5):
        assert_same(runs[k], clutch(at[k], spins[k]))


def bouncing(file=None):
    idle = sl.control.callback(lambda t, q, v: 0.0 * v)
    ground = sl.events.OneSided("ground", restitution=0.5)
    return sl.simulate(known.ball(), [0.15], duration=0.6, step=5e-3, controller=idle, events=[ground],
                       integrator=sl.Integrator(checkpoint=file))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("after", [25, 50, 90])
def test_a_run_killed_between_its_events_resumes_to_the_same_bits(tmp_path, monkeypatch, after):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", np.inf)
    file, original, calls = tmp_path / "run.ckpt", Rollout.run, []

    def killed(self, *args):
        calls.append(1)
        if len(calls) == after:
            raise ZeroDivisionError("killed")
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Rollout, "run", killed)
        with pytest.raises(ZeroDivisionError):
            bouncing(file)
    run, whole = bouncing(file), bouncing()
    assert run.settings["resumed"]
    assert len(whole.events) > 8
    assert_same(run, whole)


@pytest.mark.slow
def test_nothing_is_compiled_when_topology_changes_or_when_it_changes_at_another_time(monkeypatch):
    clutch(0.0113, [1.0, 2.0])
    monkeypatch.setattr(machine, "object_code", lambda *_: pytest.fail("something was compiled"))
    run = clutch(0.0446, [3.0, -2.0])
    assert len(run.events) == 2
