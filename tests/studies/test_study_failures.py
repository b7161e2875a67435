"""Runs that fail for a reason of their own: they are kept with it, and the others go on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError
from spanloop.trajectory import EndReason

st = sl.studies


def one_hinge(damping: float = 0.0) -> sl.Model:
    b = sl.Builder("arm").body("a", 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
    return b.revolute("j1", "world", "a", "y", damping=damping).build()


def root(t, q, v):
    return {"j1": np.sqrt(q["j1"])}  # no number where q is negative


def test_a_controller_that_stops_being_a_number_ends_its_own_run_alone():
    table = {"q.j1": [0.5, 0.01], "v.j1": [0.0, -1.0]}
    study = sl.Study(one_hinge(), table=table, controller=root, duration=0.05, keep={"e": "q.j1"}).run()
    assert study.results()["outcome"].values.tolist() == ["finished", "not_finite"]
    assert np.isfinite(study.results()["e"].values).tolist() == [True, False]
    q, v = np.array([[0.5], [0.01]]), np.array([[0.0], [-1.0]])
    run = sl.simulate(one_hinge(), q, v, duration=0.05, controller=root)
    assert [x.reason for x in run.outcomes] == [EndReason.FINISHED, EndReason.NOT_FINITE]


def test_a_start_beyond_a_one_sided_constraint_is_refused_for_its_own_run():
    b = sl.Builder("ball").body("ball", 1.0, inertia=(4e-3,) * 3).prismatic("fall", "world", "ball", "z")
    model = b.loop("world", "ball", sl.joints.PointOnPlane("z"), name="ground", switchable=True).build()
    ground = sl.events.OneSided("ground", restitution=0.5)
    study = sl.Study(
        model, table={"q.fall": [0.3, -0.02, 0.2, 0.1]}, q=[0.3], duration=0.05, events=[ground], keep={"z": "q.fall"}
    ).run()
    assert study.results()["outcome"].values.tolist() == ["finished", "refused", "finished", "finished"]
    assert "-0.02 m, and must be positive" in study.failures()[1]


def test_a_condition_that_is_no_number_at_the_start_is_a_failure():
    study = sl.Study(
        one_hinge(),
        table={"q.j1": [0.3, -0.1]},
        events={"low": lambda t, q, v: np.sqrt(q["j1"]) + 1.0},
        duration=0.01,
        keep={"e": "q.j1"},
    ).run()
    assert study.results()["outcome"].values.tolist() == ["finished", "not_finite"]
    assert "no number at the start" in study.failures()[1]


@pytest.mark.parametrize("name", ["a.mass", "a.inertia.yy", "tau.j1", "q.j1"])
def test_an_assigned_number_that_is_not_finite_is_refused_before_the_first_run(name):
    with pytest.raises(InputError, match=rf"1 of 4 draws .* run 2: '{name}' is nan; must be finite"):
        sl.Study(
            one_hinge(),
            table={"x": [0.02, 0.025, -1.0, 0.022]},
            assign=lambda d: {name: np.where(d["x"] > 0.0, d["x"], np.nan)},
            duration=0.01,
        )


def test_audit_and_figures_of_runs_that_all_failed():
    study = sl.Study(
        one_hinge(),
        table={"q.j1": [-0.3, -0.1]},
        events={"low": lambda t, q, v: np.sqrt(q["j1"]) + 1.0},
        duration=0.01,
        keep={"path": st.Samples("q.j1")},
    )
    assert study.audit().audits == {}
    assert str(study.run().audit()) == "no run has finished that did not fail"
    with pytest.raises(InputError, match="no run has a finite 'path'"):
        study.plot("fan", "path")


@pytest.mark.slow
def test_best_takes_implicit_steps_where_the_ranges_are_stiff_though_no_draw_is():
    b = (
        sl.Builder("two")
        .body("a", 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
        .body("c", 0.3, (0.1, 0, 0), (1e-3, 2e-3, 2e-3))
    )
    b.revolute("j1", "world", "a", "y", damping=0.1).revolute("j2", "a", "c", "y", (0.4, 0, 0), damping=0.01)
    model = b.build()
    start = {"q": [0.3, 0.2], "v": [0.0, 0.0], "duration": 0.05}
    study = sl.Study(
        model, {"j2.damping": st.Choice([0.01] * 9 + [8.2, 100.0])}, runs=1, keep={"e": "abs(v.j2)"}, **start
    )
    assert study.draws()["j2.damping"][0] == 0.01
    found = study.best("e", population=10, generations=6)
    assert found.values == {"j2.damping": 100.0}
    alone = sl.simulate(model, parameters=model.parameters().changed({"j2.damping": 100.0}), **start)
    assert found.objective == pytest.approx(abs(alone.v[-1, 1]), rel=1e-9)
    vary = {"j2.damping": st.Choice([0.01] * 9 + [8.2, 100.0])}
    with pytest.warns(sl.SpanloopWarning, match="at an end of the ranges"):
        sl.Study(model, vary, runs=1, integrator="rk4", keep={"e": "q.j2"}, **start).best("e", generations=1)


def test_best_judges_relative_ranges_by_the_numbers_that_runs_have():
    """A damping of 20 N m s/rad is slow for steps of 1 ms on 0.06 kg m², one of 500 is not."""
    given = {"runs": 1, "keep": {"e": "q.j1"}, "duration": 0.01, "step": 1e-3, "integrator": "rk4"}
    near = {"j1.damping": st.Uniform(0.9, 1.1, relative=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", sl.SpanloopWarning)
        sl.Study(one_hinge(20.0), near, **given).best("e", population=5, generations=1)
    far = {"j1.damping": st.Choice([1.0] * 9 + [1e4], relative=True)}
    study = sl.Study(one_hinge(0.05), far, **given)
    assert study.draws()["j1.damping"][0] == 0.05
    with pytest.warns(sl.SpanloopWarning, match="at an end of the ranges"):
        study.best("e", population=5, generations=1)
