"""Units of FMI 3.0 in FMPy move as sl.simulate does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fmu_instances import fmpy, instances, needs_compiler

import spanloop as sl
from spanloop.exports.export import export

pytestmark = needs_compiler
STEP, STEPS = 1e-3, 5000


def torques(model: sl.Model, inputs: list[str], size: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows of torques (steps, nv) of sines, and the signals of the inputs for FMPy."""
    t = STEP * np.arange(STEPS + 1)
    signals = np.zeros(len(t), dtype=[("time", float), *((n, float) for n in inputs)])
    signals["time"], rows = t, np.zeros((STEPS, model.nv))
    for k, name in enumerate(inputs):
        signals[name] = size * np.sin((k + 1.0) * t)
        rows[:, model.v_slice(name.removeprefix("tau.")).start] = signals[name][:-1]
    return rows, signals


def named(path: Path, causality: str) -> list[str]:
    found = fmpy.read_model_description(str(path))
    return [v.name for v in found.modelVariables if v.causality == causality]


def columns(result: np.ndarray, first: str) -> np.ndarray:
    return np.array([result[n] for n in result.dtype.names if n.startswith(first)]).T


CASES = {  # a model, its start, the size of torques [N m]
    "puma": (sl.zoo.puma, lambda: None, 3.0),
    "four_bar": (sl.zoo.four_bar, sl.zoo.four_bar_start, 0.5),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    model, start, size = (x() if callable(x) else x for x in CASES[request.param])
    path = tmp_path_factory.mktemp("units") / f"{request.param}.fmu"
    export(model, path, q=start, step=STEP, integrator="rk4")
    return model, start, size, path


@pytest.mark.slow
def test_co_simulation_with_inputs_is_the_motion_of_simulate(case):
    model, q, size, path = case
    inputs, outputs = named(path, "input"), named(path, "output")
    rows, signals = torques(model, inputs, size)
    run = sl.simulate(model, q, duration=STEP * STEPS, step=STEP, integrator="rk4", tau=rows, limits="ignore")
    found = fmpy.simulate_fmu(
        str(path), stop_time=STEP * STEPS, output_interval=STEP, input=signals, output=outputs,
        fmi_type="CoSimulation", validate=True,
    )  # fmt: skip
    assert np.abs(columns(found, "q.") - run.q).max() < 1e-9
    assert np.abs(columns(found, "v.") - run.v).max() < 1e-9
    if model.loops:
        assert found["closure_error"].max() <= 2e-15


@pytest.mark.slow
def test_model_exchange_with_cvode_is_the_adaptive_motion_of_simulate(case):
    model, q, size, path = case
    gentle = size if model.loops else 0.01 * size  # the wrist of the arm has next to no inertia
    inputs, outputs = named(path, "input"), named(path, "output")
    rows = np.array([(0.0, 1.0), (2.5, 1.0), (2.5, -0.5), (5.0, -0.5)])  # a step of all torques
    signals = np.zeros(len(rows), dtype=[("time", float), *((n, float) for n in inputs)])
    signals["time"], tau = rows[:, 0], np.zeros(model.nv)
    for name in inputs:
        signals[name] = gentle * rows[:, 1]
        tau[model.v_slice(name.removeprefix("tau.")).start] = gentle
    how = {"integrator": sl.Integrator("DOP853", accuracy=1e-13), "limits": "ignore", "sample": 0.01}
    first = sl.simulate(model, q, duration=2.5, tau=tau, **how)
    second = sl.simulate(model, first.q[-1], first.v[-1], duration=2.5, tau=-0.5 * tau, start=2.5, **how)
    found = fmpy.simulate_fmu(
        str(path), stop_time=5.0, output_interval=0.01, input=signals, output=outputs, fmi_type="ModelExchange",
        relative_tolerance=1e-14, record_events=False, validate=True,
    )  # fmt: skip
    assert np.abs(columns(found, "q.") - np.concatenate([first.q, second.q[1:]])).max() < 1e-9
    if model.loops:
        assert found["closure_error"].max() < 1e-11


@pytest.mark.slow
def test_one_long_interval_is_many_short_ones(case):
    _, _, _, path = case
    with instances(path, "CoSimulation", "CoSimulation") as (a, b):
        for x in (a, b):
            x.initialize()
        for k in range(40):
            a.step(k * STEP, STEP)
        b.step(0.0, 40 * STEP)
        assert (a.all_of("q.") == b.all_of("q.")).all()
        assert (a.all_of("v.") == b.all_of("v.")).all()


def test_an_interval_that_is_no_multiple_of_the_step_ends_with_a_shorter_step(case):
    model, q, _, path = case
    T, fine = 0.0537, 1e-4
    run = sl.simulate(model, q, duration=T, step=fine, integrator="rk4", limits="ignore")
    with instances(path) as (a,):
        a.initialize()
        a.step(0.0, 0.0123)
        _, _, _, reached = a.step(0.0123, T - 0.0123)
        assert reached == pytest.approx(T, abs=1e-15)
        assert a.get("time")[0] == pytest.approx(T, abs=1e-15)
        assert np.abs(a.all_of("q.") - run.q[-1]).max() < 1e-9  # of fourth order: 1e-12 of the step


def test_two_instances_do_not_share_anything(case):
    model, _, _, path = case
    name = next(n for n in named(path, "input"))
    with instances(path, "CoSimulation", "CoSimulation", "ModelExchange") as (a, b, c):
        for x in (a, b, c):
            x.initialize()
        a.set_named({name: 1.0})
        for k in range(20):
            a.step(k * STEP, STEP)
            b.step(k * STEP, STEP)
        pushed = sl.simulate(model, c.all_of("q."), duration=0.02, step=STEP, tau=_first(model, name), limits="ignore")
        free = sl.simulate(model, c.all_of("q."), duration=0.02, step=STEP, limits="ignore")
        assert np.abs(a.all_of("q.") - pushed.q[-1]).max() < 1e-13
        assert np.abs(b.all_of("q.") - free.q[-1]).max() < 1e-13
        assert np.abs(pushed.q[-1] - free.q[-1]).max() > 1e-6


def _first(model: sl.Model, name: str) -> np.ndarray:
    tau = np.zeros(model.nv)
    tau[model.v_slice(name.removeprefix("tau.")).start] = 1.0
    return tau


def test_a_state_that_is_kept_serialized_and_set_again_gives_the_same_motion(case):
    _, _, _, path = case
    with instances(path) as (a,):
        a.initialize()
        a.step(0.0, 0.0105)
        kept = a.fmu.getFMUState()
        stored = a.fmu.serializeFMUState(kept)
        a.step(0.0105, 0.02)
        first = a.all_of("q.")
        a.fmu.setFMUState(kept)
        a.step(0.0105, 0.02)
        assert (a.all_of("q.") == first).all()
        again = a.fmu.deserializeFMUState(stored)
        a.fmu.setFMUState(again)
        a.step(0.0105, 0.02)
        assert (a.all_of("q.") == first).all()
        for x in (kept, again):
            a.fmu.freeFMUState(x)
    with instances(path) as (b,):
        b.initialize()
        other = b.fmu.deserializeFMUState(stored)  # by another instance, as of another process
        b.fmu.setFMUState(other)
        b.step(0.0105, 0.02)
        assert (b.all_of("q.") == first).all()
        with pytest.raises(Exception, match="fmi3DeserializeFMUState"):
            b.fmu.deserializeFMUState(b"x" * len(stored))
        b.fmu.freeFMUState(other)


def test_reset_begins_again(case):
    _, _, _, path = case
    with instances(path) as (a,):
        ends = []
        for _ in range(2):
            a.initialize(start=2.0)
            a.step(2.0, 0.01)
            ends.append(a.all_of("q."))
            a.fmu.reset()
        assert (ends[0] == ends[1]).all()


@pytest.mark.slow
def test_a_platform_on_six_legs_moves_in_both_interfaces(tmp_path):
    model, q = sl.zoo.stewart(), sl.zoo.stewart_start()
    path = export(model, tmp_path / "platform.fmu", q=q)
    run = sl.simulate(model, q, duration=0.1, step=STEP, limits="ignore")
    with instances(path) as (a,):
        a.initialize()
        a.step(0.0, 0.1)
        assert np.abs(a.all_of("q.") - run.q[-1]).max() < 1e-13
        assert np.abs(a.all_of("v.") - run.v[-1]).max() < 1e-13
        assert a.get("closure_error")[0] <= 2e-15
    outputs = named(path, "output")
    found = fmpy.simulate_fmu(str(path), stop_time=0.1, output=outputs, output_interval=0.01, fmi_type="ModelExchange",
                              relative_tolerance=1e-12, validate=True)  # fmt: skip
    assert np.abs(columns(found, "q.")[-1] - run.q[-1]).max() < 1e-9
    assert found["closure_error"].max() < 1e-9


@pytest.mark.slow
def test_a_ball_bounces(tmp_path):
    b = sl.Builder("ball").body("ball", 0.5, inertia=(2e-3,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    model = b.free("air", "world", "ball").build().with_ground(friction=0.5, restitution=0.6)
    q = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.15]
    path = export(model, tmp_path / "ball.fmu", q=q)
    assert fmpy.read_model_description(str(path)).modelExchange is None
    run = sl.simulate(model, q, duration=0.3, step=STEP)
    with instances(path) as (a,):
        a.initialize()
        a.step(0.0, 0.3)
        assert np.abs(a.all_of("q.") - run.q[-1]).max() < 1e-14
        assert run.v[:, 5].max() > 0.1  # it went up again
    with instances(path) as (a,):
        a.set_named({"q.air.pz": 0.3})
        with pytest.raises(Exception, match="fmi3ExitInitializationMode"):
            a.initialize()
        assert "the start cannot be changed" in a.said
