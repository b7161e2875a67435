"""Draws: distributions against SciPy's, designs against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from study_cases import four_bar

import spanloop as sl

st = sl.studies
U = np.random.default_rng(1).random(2000)
PEERS = {
    "uniform": (st.Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    "normal": (st.Normal(2.0, 0.5), stats.norm(2.0, 0.5)),
    "cut normal": (st.Normal(2.0, 0.5, low=1.5), stats.truncnorm(-1.0, np.inf, 2.0, 0.5)),
    "cut on both sides": (st.Normal(2.0, 0.5, 1.5, 2.2), stats.truncnorm(-1.0, 0.4, 2.0, 0.5)),
    "lognormal": (st.LogNormal(2.0, 0.3), stats.lognorm(0.3, scale=2.0)),
    "triangular": (st.Triangular(1.0, 1.5, 4.0), stats.triang(0.5 / 3.0, 1.0, 3.0)),
}


@pytest.mark.parametrize("name", PEERS)
def test_a_distribution_is_that_of_scipy(name):
    ours, peer = PEERS[name]
    assert ours.value(U) == pytest.approx(peer.ppf(U), rel=1e-9, abs=1e-12)
    low, high = ours.bounds
    assert np.isfinite(ours.value(np.array([0.0, 1.0 - 2.0**-53]))).all()
    assert (ours.value(U) >= low).all()
    assert (ours.value(U) <= high).all()


def test_a_normal_distribution_cut_far_from_its_mean_is_that_of_scipy():
    """Bounds beyond 8 deviations, where probabilities round to 1, and beyond 38, where they are 0."""
    u = np.sort(U)
    for low in (3.0, 8.0, 9.0, 20.0, 37.0, 50.0, 1e3):
        above, below = st.Normal(0.0, 1.0, low=low).value(u), st.Normal(0.0, 1.0, high=-low).value(u)
        assert above == pytest.approx(stats.truncnorm(low, np.inf).ppf(u), rel=1e-9), low
        assert below == pytest.approx(stats.truncnorm(-np.inf, -low).ppf(u), rel=1e-9), low
        assert len(np.unique(above)) == len(np.unique(below)) == len(u), low
    band = st.Normal(2.0, 0.5, low=22.0, high=22.01).value(u)
    assert band == pytest.approx(stats.truncnorm(40.0, 40.02, 2.0, 0.5).ppf(u), rel=1e-9)
    assert band.min() > 22.0
    assert band.max() < 22.01
    ends = np.array([0.0, 1.0 - 2.0**-53])
    assert np.isfinite(st.Normal(0.0, 1.0, high=-9.0).value(ends)).all()


def test_choices_are_as_likely_as_their_weights():
    found = st.Choice([1.0, 2.0, 5.0], weights=[1, 2, 1]).value(np.linspace(0.0, 1.0, 4000, endpoint=False))
    assert [int((found == x).sum()) for x in (1.0, 2.0, 5.0)] == [1000, 2000, 1000]


def test_random_draws_are_uniform_and_independent():
    """Bounds of five standard deviations, and Kolmogorov's test at 1e-6."""
    cube = four_bar(runs=20_000)._prepared.design.cube(0, 20_000)
    assert all(stats.kstest(column, "uniform").pvalue > 1e-6 for column in cube.T)
    off = np.corrcoef(cube.T) - np.eye(3)
    assert np.abs(off).max() < 5.0 / np.sqrt(20_000)
    assert abs(np.corrcoef(cube[:-1, 0], cube[1:, 0])[0, 1]) < 5.0 / np.sqrt(20_000)


def test_a_latin_hypercube_has_one_run_in_each_slice():
    cube = four_bar(runs=500, design="latin")._prepared.design.cube(0, 500)
    for column in cube.T:
        assert sorted((column * 500).astype(int)) == list(range(500))


def test_a_sobol_design_is_that_of_scipy():
    design = four_bar(runs=100, design="sobol", seed=6)._prepared.design
    peer = stats.qmc.Sobol(3, seed=np.random.default_rng(6)).random(128)[:100]
    assert np.array_equal(design.cube(0, 100), peer)


def test_a_saltelli_block_has_a_and_b_and_columns_of_b_in_a():
    cube = four_bar(runs=50, design="saltelli")._prepared.design.cube(0, 50).reshape(10, 5, 3)
    for block in cube:
        a, b, *mixed = block
        assert not (a == b).any()
        for k, row in enumerate(mixed):
            assert row[k] == b[k]
            assert (np.delete(row, k) == np.delete(a, k)).all()


def test_a_grid_has_every_combination_the_last_fastest():
    vary = {"coupler.mass": st.Levels(1.0, 2.0, 3), "v.crank_hinge": st.Choice([0.1, 0.2])}
    study = four_bar(vary=vary, runs=None, design="grid")
    assert study._rows(0, 6).tolist() == [[m, v] for m in (1.0, 1.5, 2.0) for v in (0.1, 0.2)]


def test_a_table_and_a_csv_file_are_the_draws(tmp_path):
    rows = np.random.default_rng(0).uniform(0.9, 1.1, (20, 2))
    table = {"coupler.mass": rows[:, 0], "crank.mass": rows[:, 1]}
    path = tmp_path / "draws.csv"
    path.write_text("# masses\ncoupler.mass, crank.mass\n" + "\n".join(f"{float(a)!r},{float(b)!r}" for a, b in rows))
    for given in (table, path):
        study = four_bar(vary=None, runs=None, seed=0, table=given)
        assert np.array_equal(study._rows(0, 20), rows)


def test_relative_draws_multiply_the_models_own_value():
    model = sl.zoo.four_bar()
    study = four_bar(vary={"rocker_hinge.position.x": st.Uniform(0.99, 1.01, relative=True)})
    own = model.parameters().values[model.parameters().index("rocker_hinge.position.x")]
    found = study.draws()["rocker_hinge.position.x"] / own
    assert found.min() > 0.99
    assert found.max() < 1.01


def test_relative_draws_multiply_what_the_study_gives():
    given = {"q": {"hinge1": 0.5}, "v": {"hinge1": 2.0}}
    half = st.Choice([0.5], relative=True)

    def law(t, q, v, u):
        return {"hinge1": u[0]}

    for name, more in (
        ("tau.hinge1", {"tau": {"hinge1": 7.0}}),
        ("tau.hinge1", {"tau": [7.0]}),
        ("input.gain", {"inputs": {"gain": 7.0}, "controller": law}),
    ):
        vary = dict.fromkeys(("q.hinge1", "v.hinge1", name), half)
        keep = {"torque": "tau.hinge1"}
        study = sl.Study(sl.zoo.pendulum(), vary, runs=2, duration=0.01, keep=keep, **given, **more)
        assert [float(x[0]) for x in study.draws().values()] == [0.25, 1.0, 3.5]
        assert study.run().results()["torque"].values.tolist() == [3.5, 3.5]


def test_a_function_assigns_several_parameters_from_one_variable():
    vary = {"length": st.Uniform(0.95, 1.05, unit="m")}
    study = four_bar(
        vary=vary, assign=lambda x: {"coupler_hinge.position.x": x["length"], "crank.center.x": 0.5 * x["length"]}
    ).run()
    run = study.rerun(7)
    length = study.draws()["length"][7]
    assert run.model.joint("coupler_hinge").placement.position[0] == length
    assert run.model.body("crank").inertia.center[0] == 0.5 * length
    assert study.results()["length"].attrs["units"] == "m"
    assert np.abs(run.closure_error).max() < 1e-12
