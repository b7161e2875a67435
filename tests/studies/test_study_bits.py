"""A run's numbers depend on the study and its own number alone: not on chunks, neighbours, threads or processes."""

from __future__ import annotations

import numpy as np
import pytest
from study_cases import arm, four_bar, same

from spanloop.studies.chunk import run_chunk


@pytest.mark.slow
@pytest.mark.parametrize("make", [four_bar, arm])
@pytest.mark.parametrize("chunk", [1, 5, 16])
def test_results_have_the_same_bits_in_chunks_of_any_size(make, chunk):
    same(make(chunk=37).run().results(), make(chunk=chunk).run(threads=2).results())


@pytest.mark.parametrize("make", [four_bar, arm])
def test_a_run_has_the_same_bits_beside_any_neighbours(make):
    study = make()
    rows, setup = study._rows(0, len(study)), study._prepared.setup
    order = np.random.default_rng(0).permutation(len(study))
    straight, mixed = run_chunk(setup, rows), run_chunk(setup, rows[order])
    for name, x in straight.items():
        assert x[order].astype(str).tolist() == mixed[name].astype(str).tolist(), name
        assert x.dtype == object or x[order].tobytes() == mixed[name].tobytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("make", [four_bar, arm])
def test_a_rerun_alone_gives_the_numbers_of_the_study(make):
    study = make().run()
    found = study.results()
    for k in (0, 11, 36):
        run = study.rerun(k)
        assert run.outcome.reason == found["outcome"].values[k]
        if make is four_bar:
            assert np.abs(run.v[:, 0]).max() == found["fast"].values[k]
            assert run["coupler_tip"].position[:, 2].min() == pytest.approx(found["low"].values[k], rel=1e-14)
            assert (run.q[::10, 0] == found["path"].values[k]).all()
            kinetic = np.trapezoid(run.energy[:, 0], run.times) / run.times[-1]
            assert kinetic == pytest.approx(found["mean"].values[k], rel=1e-12)
        else:
            assert run.times[-1] == pytest.approx(found["end_time"].values[k], abs=1e-9)
            assert run.q[-1, 1] == pytest.approx(found["end"].values[k], abs=1e-12)
            assert np.abs(run.v[:, 1]).max() == pytest.approx(found["fast"].values[k], rel=1e-12)
            work = np.trapezoid(run.tau[:, 0], run.times) / run.times[-1]
            assert work == pytest.approx(found["work"].values[k], rel=1e-9)


def test_some_runs_of_the_arm_end_at_the_event_and_some_do_not():
    """Otherwise the tests above would not compare located ends."""
    assert set(arm().run().results()["outcome"].values) == {"finished", "event"}


@pytest.mark.parametrize("design", ["random", "latin", "sobol", "saltelli"])
def test_draws_depend_on_the_seed_and_the_number_of_the_run_alone(design):
    study = four_bar(design=design, runs=40)
    whole = study._rows(0, 40)
    parts = [study._rows(a, b) for a, b in ((0, 1), (1, 7), (7, 32), (32, 40))]
    assert whole.tobytes() == np.concatenate(parts).tobytes()
    assert whole.tobytes() == four_bar(design=design, runs=40)._rows(0, 40).tobytes()
    assert not np.array_equal(whole, four_bar(design=design, runs=40, seed=5)._rows(0, 40))
