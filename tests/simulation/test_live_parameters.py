"""Simulation with live parameters: the start and the run are those of the mechanism that has these numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, ModelError, Reason, SpanloopWarning, StateError
from spanloop.model import Inertia

BAKED = zoo.five_bar(base=1.2)
WIDE = zoo.five_bar(base=1.3)
LIVE = WIDE.parameters().values
# two runs of the same steps on one machine, one with baked and one with live numbers: some 100 roundings
SAME = 1e-12


def start(base: float) -> np.ndarray:
    return zoo.five_bar_start(base=base)


@pytest.mark.slow
def test_a_start_that_is_closed_with_the_live_lengths_runs_as_the_mechanism_with_these_lengths():
    run = sl.simulate(BAKED, start(1.3), duration=0.1, parameters=LIVE)
    wide = sl.simulate(WIDE, start(1.3), duration=0.1)
    np.testing.assert_allclose(run.q, wide.q, atol=SAME)
    assert "note" not in run.settings
    assert run.model.parameters().values.tolist() == LIVE.tolist()
    assert run.closure_residual.max() < 1e-12
    np.testing.assert_allclose(run.energy, wide.energy, atol=1e-10)


def test_a_start_a_little_off_is_brought_to_the_loops_with_the_live_lengths():
    off = start(1.3)
    off[0] += 5e-4
    with pytest.warns(SpanloopWarning, match="the start was brought to the closed loops"):
        run = sl.simulate(BAKED, off, duration=0.01, parameters=LIVE)
    assert run.closure_residual.max() < 1e-12
    np.testing.assert_allclose(run.q[0], off, atol=1e-3)


@pytest.mark.parametrize("closures", ["project", "feedback", "minimal"])
def test_a_start_that_is_closed_with_the_models_own_lengths_only_is_refused(closures):
    with says(StateError, "is open by 0.1 m (with the live parameters)") as error:
        sl.simulate(BAKED, start(1.2), duration=0.1, parameters=LIVE, closures=closures)
    assert error.value.reason is Reason.OPEN_LOOP


def test_a_kernel_with_live_lengths_calls_an_open_loop_open():
    rest = np.zeros(BAKED.nv)
    for target in ("cpu", "python"):
        kernel = sl.compile(BAKED, "forward_dynamics", parameters="live", target=target)
        assert np.isfinite(kernel(start(1.3), rest, rest, LIVE)).all()
        with pytest.raises(StateError) as error:
            kernel(start(1.2), rest, rest, LIVE)
        assert error.value.reason is Reason.OPEN_LOOP


@pytest.mark.slow
def test_runs_with_lengths_of_their_own_are_runs_of_their_own_mechanisms(tmp_path):
    models = [zoo.five_bar(base=b) for b in (1.2, 1.3)]
    q = np.stack([start(1.2), start(1.3)])
    v = np.stack([sl.Dynamics(m).complete_velocity(x, [0.2, -0.1]) for m, x in zip(models, q, strict=True)])
    rows = np.stack([m.parameters().values for m in models])
    runs = sl.simulate(BAKED, q, v, duration=0.1, parameters=rows)
    runs.save(tmp_path / "runs.npz")
    for batch in (runs, sl.Trajectory.load(tmp_path / "runs.npz")):
        for k, m in enumerate(models):
            np.testing.assert_allclose(batch[k].q, sl.simulate(m, q[k], v[k], duration=0.1).q, atol=SAME)
            assert batch[k].closure_residual.max() < 1e-12
        with says(InputError, "the runs of this batch have parameters of their own"):
            _ = batch.energy


def test_the_neutral_start_is_assembled_with_the_live_lengths():
    rows = np.stack([BAKED.parameters().values, LIVE])
    runs = sl.simulate(BAKED, duration=0.002, parameters=rows)
    assert [bool(runs[k].closure_residual.max() < 1e-11) for k in range(2)] == [True, True]


@pytest.mark.slow
def test_loop_forces_act_at_the_frames_of_the_live_lengths():
    loops = sl.Closures(loop_forces={"meeting": [0.7]})
    run = sl.simulate(BAKED, start(1.3), duration=0.02, parameters=LIVE, closures=loops)
    wide = sl.simulate(WIDE, start(1.3), duration=0.02, closures=loops)
    np.testing.assert_allclose(run.q, wide.q, atol=SAME)
    with says(InputError, "loop_forces act at frames, and each run has lengths of its own"):
        sl.simulate(BAKED, start(1.3), duration=0.02, parameters=np.stack([LIVE, LIVE]), closures=loops)


IMPOSSIBLE = {
    "'near1.mass' is -1; must be >= 0": {"near1.mass": -1.0},
    "'near1.inertia.yy' is -0.1; must be >= 0": {"near1.inertia.yy": -0.1},
    "'drive1.damping' is -2; must be >= 0": {"drive1.damping": -2.0},
}


@pytest.mark.parametrize("sentence", IMPOSSIBLE)
def test_a_negative_mass_is_refused_by_name(sentence):
    wrong = BAKED.parameters().changed(IMPOSSIBLE[sentence]).values
    rest = np.zeros(BAKED.nv)
    kernel = sl.compile(BAKED, "forward_dynamics", parameters="live")
    with says(StateError, sentence) as error:
        kernel(start(1.2), rest, rest, wrong)
    assert error.value.reason is Reason.IMPOSSIBLE_PARAMETER
    rows = np.stack([BAKED.parameters().values, wrong])
    with pytest.warns(SpanloopWarning, match="1 of 2 states has no answer"):
        found = kernel(start(1.2), rest, rest, rows)
    assert np.isfinite(found).all(axis=1).tolist() == [True, False]
    with says(InputError, f"simulate: parameters of run 1: {sentence}"):
        sl.simulate(BAKED, start(1.2), duration=0.1, parameters=rows)


def test_an_inertia_that_is_negative_about_an_oblique_axis_is_refused_by_simulate():
    wrong = BAKED.parameters().changed({"near1.inertia.xy": 10.0})
    with says(InputError, "simulate: parameters: body 'near1': its principal moments of inertia are -"):
        sl.simulate(BAKED, start(1.2), duration=0.1, parameters=wrong)


def test_an_inertia_of_no_body_is_refused_of_the_run_that_has_it():
    base = BAKED.parameters()
    rows = np.stack([base.values, base.changed({"near1.inertia.xx": 50.0}).values])
    with says(InputError, "simulate: parameters of run 1: body 'near1': its principal moments of inertia are"):
        sl.simulate(BAKED, start(1.2), duration=0.1, parameters=rows)


@pytest.mark.parametrize("change", [{"link3.inertia.xy": 50.0}, {"link3.inertia.xx": 50.0}])
def test_with_parameters_refuses_an_inertia_that_no_body_has(change):
    puma = sl.zoo.puma()
    with says(ModelError, "model 'puma': parameters: body 'link3': its principal moments of inertia are"):
        puma.with_parameters(puma.parameters().changed(change))


def test_parameters_may_keep_and_scale_an_impossible_inertia_that_the_model_has():
    puma = sl.zoo.puma()
    flat = replace(puma.bodies[2], inertia=Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 3.0)))
    odd = replace(puma, bodies=(*puma.bodies[:2], flat, *puma.bodies[3:]))
    names, values = odd.parameters().names, odd.parameters().values
    scaled = np.where([".inertia." in n or n.endswith(".mass") for n in names], 2.0 * values, values)
    assert odd.with_parameters(scaled).bodies[2].inertia.moments == (2.0, 0.0, 0.0, 2.0, 0.0, 6.0)


# ---- loops that are open during a run


@pytest.mark.slow
def test_a_run_with_an_open_loop_is_audited_without_it():
    """Accelerations were those of the closed mechanism, and the audit called the open loop a fault."""
    model = sl.zoo.four_bar()
    model = replace(model, loops=tuple(replace(x, switchable=True) for x in model.loops))
    start, none = sl.zoo.four_bar_start(), np.zeros(3)
    free = sl.Closures(active_loops=[])
    run = sl.simulate(model, start, duration=0.1, closures=free)
    assert run.settings["open_loops"] == "closing"
    assert [x.name for x in run.model.loops] == []
    assert run.audit().well
    expected = sl.Dynamics(model).forward_dynamics(start, none, none, active_loops=[])
    np.testing.assert_allclose(run.a[0], expected, rtol=1e-12)
    assert [x.name for x in sl.simulate(model, start, duration=0.01).model.loops] == ["closing"]
    both = model.parameters()
    rows = np.tile(both.values, (2, 1))
    rows[1, both.names.index("coupler.mass")] *= 2.0
    runs = sl.simulate(model, start, duration=0.1, closures=free, parameters=rows)
    for k, one in enumerate(runs[i] for i in range(2)):
        (coupler,) = (x for x in one.model.bodies if x.name == "coupler")
        assert coupler.inertia.mass == rows[k, both.names.index("coupler.mass")]
        assert one.audit().well
