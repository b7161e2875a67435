"""Random schedules of events against the same motion pieced together from runs without events, and dense algebra."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from random_loops import random_loops, random_plane_loop

import spanloop as sl
from spanloop.model.parts import Placement
from spanloop.simulation import time_loop
from spanloop.simulation.events import Attach, OneSided, Release

DURATION, STEP = 0.03, 1e-3


def pose(robot: sl.Dynamics, q: np.ndarray, body: str) -> np.ndarray:
    return np.eye(4) if body == "world" else np.asarray(robot.pose(q, body))


def captured(model: sl.Model, q: np.ndarray, name: str) -> sl.Model:
    """The model whose loop has its frame b where its frame a is at q."""
    robot, loops = sl.Dynamics(replace(model, loops=())), []
    for loop in model.loops:
        if loop.name == name:
            own = np.eye(4)
            own[:3, :3], own[:3, 3] = loop.placement_a.rotation, loop.placement_a.position
            x = np.linalg.inv(pose(robot, q, loop.b)) @ pose(robot, q, loop.a) @ own
            loop = replace(loop, placement_b=Placement(tuple(map(tuple, x[:3, :3].tolist())), tuple(x[:3, 3].tolist())))
        loops.append(loop)
    return replace(model, loops=tuple(loops))


def closed(model: sl.Model, names: set[str]) -> sl.Model:
    """The model with these of its switchable loops, and those that are always closed, for good."""
    kept = [x for x in model.loops if x.name in names or not x.switchable]
    return replace(model, loops=tuple(replace(x, switchable=False) for x in kept))


def struck(model: sl.Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, float]:
    """The velocity after a plastic impact by dense algebra, and the energy given up."""
    mass = np.asarray(sl.Dynamics(replace(model, loops=())).mass_matrix(q))
    if not model.loops:
        return v, 0.0
    root = np.linalg.cholesky(mass)
    rows = np.linalg.solve(root, np.asarray(sl.Dynamics(model).closure_jacobian(q)).T)
    y = root.T @ v
    after = np.linalg.solve(root.T, y - rows @ np.linalg.lstsq(rows, y, rcond=1e-9)[0])
    return after, float(0.5 * v @ mass @ v - 0.5 * after @ mass @ after)


def pieced(model: sl.Model, case, on: set[str], schedule: list) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """q and v at the end, and the energy given up at each event, from runs without events."""
    q, v, t, lost, on = case.q, case.v, 0.0, [], set(on)
    for moment, name in [*schedule, (DURATION, "")]:
        steps = int(np.ceil((moment - t) / STEP))
        options = {"tau": case.tau, "step": (moment - t) / steps, "limits": "ignore"}
        run = sl.simulate(closed(model, on), q, v, duration=moment - t, **options)
        assert run.outcome.finished
        q, v, t = run.q[-1], run.v[-1], moment
        if name:
            model = model if name in on else captured(model, q, name)
            on ^= {name}
            v, given_up = struck(closed(model, on), q, v)
            lost.append(given_up)
    return q, v, lost


@pytest.mark.slow
@pytest.mark.parametrize(("make", "seed"), [(random_plane_loop, 12), (random_plane_loop, 3), (random_loops, 2)])
def test_random_schedules_are_runs_without_events_and_impacts_between(make: Callable, seed: int):
    case, rng = make(seed), np.random.default_rng([seed, 5])
    model = case.model.without_losses()
    model = replace(model, loops=tuple(replace(x, switchable=True) for x in model.loops))
    names = [x.name for x in model.loops]
    times = np.sort(rng.uniform(0.1 * DURATION, 0.9 * DURATION, 4))
    schedule = [(float(t), str(rng.choice(names))) for t in times]
    on, events = set(names), []
    for t, name in schedule:
        events.append(Release(name, at=t) if name in on else Attach(name, at=t, capture=True))
        on ^= {name}
    options = {"tau": case.tau, "duration": DURATION, "step": STEP, "limits": "ignore"}
    run = sl.simulate(model, case.q, case.v, events=events, closures=sl.Closures(active_loops=names), **options)
    q, v, lost = pieced(model, case, set(names), schedule)
    assert run.outcome.finished
    np.testing.assert_allclose(run.events.time, times, rtol=0.0, atol=1e-9 * STEP)
    np.testing.assert_allclose(run.q[-1], q, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(run.v[-1], v, rtol=0.0, atol=1e-9 * max(1.0, np.abs(v).max()))
    np.testing.assert_allclose(run.events.energy_lost, lost, rtol=0.0, atol=1e-9)


def row_of_balls(masses: np.ndarray) -> sl.Model:
    builder = sl.Builder("row")
    for k, mass in enumerate(masses):
        builder = builder.body(f"b{k}", float(mass)).prismatic(f"z{k}", "world", f"b{k}", "z")
    model = builder.build().with_gravity((0.0, 0.0, 0.0))
    for k in range(len(masses) - 1):
        model = model.with_loop(f"b{k}", f"b{k + 1}", "point_on_plane", name=f"c{k}", switchable=True)
    return model


def bounced(x: np.ndarray, v: np.ndarray, masses: np.ndarray, e: np.ndarray, end: float) -> tuple:
    """Places and velocities at the end, and the moments of impacts, one after the other."""
    t, times = 0.0, []
    while True:
        gaps, rates = np.diff(x), np.diff(v)
        wait = np.where(rates < 0.0, gaps / np.where(rates < 0.0, -rates, 1.0), np.inf)
        k = int(np.argmin(wait))
        if t + wait[k] > end:
            return x + (end - t) * v, v, times
        t, x, v = t + wait[k], x + wait[k] * v, v.copy()
        times.append(t)
        impulse = (1.0 + e[k]) * (v[k] - v[k + 1]) * masses[k] * masses[k + 1] / (masses[k] + masses[k + 1])
        v[k : k + 2] += np.array([-1.0, 1.0]) * impulse / masses[k : k + 2]
        x[k + 1] = x[k]


@pytest.mark.slow
def test_balls_in_a_row_have_the_momenta_and_energies_of_their_impacts():
    rng = np.random.default_rng(4)
    masses, e = rng.uniform(0.3, 3.0, 5), np.array([1.0, 0.4, 0.9, 0.7])
    x, v = np.sort(rng.uniform(0.0, 2.0, (32, 5)), axis=1), 2.0 * rng.normal(size=(32, 5))
    events = [OneSided(f"c{k}", restitution=float(e[k]), resting=0.0) for k in range(4)]
    runs = sl.simulate(row_of_balls(masses), x, v, duration=3.0, step=0.02, events=events)
    for k in range(32):
        places, speeds, times = bounced(x[k], v[k], masses, e, 3.0)
        np.testing.assert_allclose(runs[k].events.time, times, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(runs[k].q[-1], places, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(runs[k].v[-1], speeds, rtol=0.0, atol=1e-12)
        assert np.diff(runs[k].q).min() > -1e-12


@pytest.mark.slow
def test_runs_are_the_same_bits_however_they_are_cut(tmp_path, monkeypatch):
    builder = (
        sl.Builder("cut").body("ball", 1.0).body("arm", 0.5, inertia=[0.1] * 3).prismatic("z", "world", "ball", "z")
    )
    model = builder.revolute("r", "ball", "arm", "y", (0.1, 0.0, 0.0)).build()
    model = model.with_loop("world", "ball", "point_on_plane", name="floor", switchable=True)
    model = model.with_coupling("r", None, offset=0.0, switchable=True, name="latch")
    rng = np.random.default_rng(0)
    q = np.column_stack([rng.uniform(0.1, 1.0, 8), rng.uniform(-1.0, 1.0, 8)])
    v, at, tau = rng.normal(size=(8, 2)), rng.uniform(0.0, 1.0, 8), rng.normal(size=(300, 2))
    open_again = Release("latch", when=lambda t, q, v: 1.2 - t - 0.1 * q["z"])

    def simulated(k=slice(None), **options) -> sl.Trajectory:
        events = [OneSided("floor", restitution=0.8), Attach("latch", at=at[k], capture=True), open_again]
        grid = {"duration": 1.5, "step": 0.005, "sample": 0.02}
        return sl.simulate(model, q[k], v[k], tau=tau, events=events, integrator=sl.Integrator(**options), **grid)

    def same(a: sl.Trajectory, b: sl.Trajectory) -> None:
        assert np.array_equal(a.q, b.q)
        assert np.array_equal(a.v, b.v)
        for name in ("time", "kind", "v_before", "v_after", "impulse", "energy_lost", "on", "captured"):
            assert np.array_equal(getattr(a.events, name), getattr(b.events, name))

    whole = simulated()
    same(whole, simulated(threads=2))
    same(whole[3], simulated(3))
    advance, calls = time_loop.TimeLoop.advance, [0]

    def interrupted(self, p, count):
        calls[0] += 1
        if calls[0] in (7, 31):
            raise KeyboardInterrupt
        advance(self, p, min(count, self.grid.every * int(rng.integers(1, 3))))

    with monkeypatch.context() as patched:
        patched.setattr(time_loop.TimeLoop, "advance", interrupted)
        for _ in range(2):
            assert simulated(checkpoint=tmp_path / "kept.npz").outcomes[0].reason == "interrupted"
        same(whole, simulated(checkpoint=tmp_path / "kept.npz"))
    monkeypatch.setattr(time_loop, "_LOG_NUMBERS", 10)  # logs that overflow at once
    same(whole, simulated())
