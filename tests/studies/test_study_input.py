"""Wrong input of studies: a message each, before the first run."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from study_cases import four_bar

import spanloop as sl
from spanloop.errors import FileError, InputError, SpanloopError, UnsupportedError
from spanloop.studies import execution

st = sl.studies
WRONG = {
    "a misspelled parameter": (
        {"vary": {"copler.mass": st.Uniform(1, 2)}},
        "nothing varies by the name 'copler.mass'; did you mean 'coupler.mass'?",
    ),
    "an unknown joint": ({"vary": {"v.crank": st.Uniform(1, 2)}}, "did you mean 'v.crank_hinge'?"),
    "a negative mass": (
        {"vary": {"coupler.mass": st.Normal(0.1, 0.1)}, "runs": 10_000},
        r"\d+ of 10000 draws \(1[56]\.\d %\) are impossible; the first is that of run \d+: 'coupler.mass' is -0.0\d+; "
        "must be >= 0",
    ),
    "an inertia that no body has": (
        {"vary": {"coupler.inertia.yy": st.Uniform(1.0, 2.0)}},
        r"37 of 37 draws \(100 %\) are impossible; the first is that of run 0: .*coupler",
    ),
    "a quantity that does not exist": (
        {"keep": {"x": st.Largest("coupler_tp.position.z")}},
        "there is no quantity 'coupler_tp.position.z'; did you mean 'coupler_tip.position.z'?",
    ),
    "an unknown joint of a quantity": ({"keep": ["v.crank"]}, "there is no joint 'crank' in 'four_bar'"),
    "a torque of an unknown joint": ({"keep": ["tau.crank"]}, "there is no joint 'crank' in 'four_bar'"),
    "no distribution": ({"vary": {"coupler.mass": 2.0}}, "expected a distribution of sl.studies: Uniform"),
    "a distribution upside down": (
        {"vary": lambda: {"coupler.mass": st.Uniform(2.0, 1.0)}},
        "low must be less than high",
    ),
    "no runs": ({"runs": 0}, "runs is 0; expected a whole number, at least 1"),
    "a design": ({"design": "sobel"}, "design is 'sobel'; expected one of 'random'"),
    "a grid of distributions": ({"design": "grid", "runs": None}, "a grid has levels"),
    "blocks of Saltelli": ({"design": "saltelli"}, r"has blocks of 5 runs. Try runs=5 \* 7"),
    "a name that the results have": (
        {"keep": {"outcome": "q.crank_hinge"}},
        "the results have a variable of this name",
    ),
    "a name twice": ({"keep": {"coupler.mass": "q.crank_hinge"}}, "what varies has this name, too"),
    "a quantity twice in a list": (
        {"keep": [st.Largest("q.crank_hinge"), st.Smallest("q.crank_hinge")]},
        r"keep lists 'q.crank_hinge' twice, .* give names: \{'most': sl.studies.Largest\('v.elbow'\)",
    ),
    "a number to keep": ({"keep": 5}, "keep is 5; expected {'name': sl.studies.Largest"),
    "an argument of simulate": ({"duraton": 1.0}, "there is no argument 'duraton'; did you mean 'duration'?"),
    "rows of q": ({"q": np.zeros((4, 3))}, r"q has shape \(4, 3\); expected \(3,\) finite numbers, of one run"),
    "a time between steps": ({"keep": {"x": st.Samples("q.crank_hinge", times=[0.0105])}}, "is not the end of a step"),
    "relative to zero": ({"vary": {"crank_hinge.damping": st.Uniform(1, 2, relative=True)}}, "own value, which is 0"),
    "assign without effect": (
        {"vary": {"legnth": st.Uniform(1, 2)}, "assign": lambda x: {"coupler.mass": 1.0}},
        "'legnth' is no quantity of the model, and assign does not read it",
    ),
    "assign reads what does not vary": (
        {"vary": {"length": st.Uniform(1, 2)}, "assign": lambda x: {"coupler.mass": x["legnth"]}},
        "assign reads 'legnth', which does not vary; did you mean 'length'?",
    ),
    "assign returns what varies by itself": (
        {
            "vary": {"length": st.Uniform(1, 2), "coupler.mass": st.Uniform(1, 2)},
            "assign": lambda x: {"coupler.mass": x["length"]},
        },
        "assign returns 'coupler.mass', which varies by itself, too",
    ),
    "a variable with a name of the store": (
        {"vary": {"zarr.json": st.Uniform(1, 2)}, "assign": lambda x: {"coupler.mass": x["zarr.json"]}},
        "'zarr.json' is no name of a variable",
    ),
    "a variable with the name of the trajectories": (
        {"vary": {"q": st.Uniform(1, 2)}, "assign": lambda x: {"coupler.mass": x["q"]}, "trajectories": True},
        "the results have 'q' for trajectories=True",
    ),
    "a variable with the name of times": (
        {
            "vary": {"time_s": st.Uniform(1, 2)},
            "assign": lambda x: {"coupler.mass": x["time_s"]},
            "keep": {"s": st.Samples("q.crank_hinge", times=[0.01])},
        },
        r"the results have 'time_s' for the times of keep\['s'\]",
    ),
    "a kept name of times": (
        {"keep": {"time_s": "q.crank_hinge", "s": st.Samples("q.crank_hinge", times=[0.01])}},
        r"the results have 'time_s' for the times of keep\['s'\]",
    ),
    "a kept name of the store": ({"keep": {"zarr.json": "q.crank_hinge"}}, "'zarr.json'"),
    "relative to a start that is not given": (
        {"vary": {"q.crank_hinge": st.Uniform(0.9, 1.1, relative=True)}, "q": None},
        "'q.crank_hinge' is relative, and q gives no number of it .* as q={'crank_hinge': number}",
    ),
    "relative to a torque that changes": (
        {"vary": {"tau.crank_hinge": st.Uniform(0.9, 1.1, relative=True)}, "tau": np.arange(150.0).reshape(50, 3)},
        "'tau.crank_hinge' is relative, and tau gives no number of it for the whole run",
    ),
    "relative that is a text": (
        {"vary": lambda: {"coupler.mass": st.Uniform(0.9, 1.1, relative="no")}},
        "Uniform: relative is 'no'; expected True or False",
    ),
    "a seed that is too large": ({"seed": 2**64}, r"seed is \d+; expected a whole number from 0 to 2\^63 - 1"),
    "runs without end": ({"runs": 10**15}, "a study has at most 1000000000. Make several studies"),
    "NaN in a table": (
        {"vary": None, "runs": None, "table": {"coupler.mass": [1.0, np.nan]}},
        "1 of 2 draws .* 'coupler.mass' is nan; must be finite. Correct these rows of the table",
    ),
    "assign to nothing": (
        {"vary": {"length": st.Uniform(1, 2)}, "assign": lambda x: {"coupler.mas": x["length"]}},
        "assign: nothing varies by the name 'coupler.mas'; did you mean 'coupler.mass'?",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_with_what_to_do(case):
    changed, words = WRONG[case]
    with pytest.raises(InputError) as refused:
        four_bar(**{n: x() if n == "vary" and callable(x) else x for n, x in changed.items()})
    assert re.search(words, str(refused.value)), str(refused.value)


@pytest.mark.parametrize("name", ["outcome", "reason", "end_time", "closure_error", "run", "time", "finished"])
def test_a_variable_of_ones_own_has_no_name_of_the_results(name):
    with pytest.raises(InputError, match=f"what varies has the name '{name}', and the results have a variable of this"):
        four_bar(vary={name: st.Uniform(1, 2)}, assign=lambda x: {"coupler.mass": x[name]})


@pytest.mark.parametrize("times", ["abc", 0.01, [], [None], [0.0, float("nan")], [[0.01], [0.0, 0.01]], [0.01j]])
def test_times_of_samples_are_finite_numbers_one_at_least(times):
    with pytest.raises(InputError, match=r"Samples: times is .*; expected finite times .s., at least one"):
        st.Samples("q.crank_hinge", times=times)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (-0.01, r"the time -0.01 s is outside the runs, which are from 0 to 0.05 s"),
        (0.06, r"the time 0.06 s is outside the runs"),
        (1e308, r"the time 1e\+308 s is outside the runs"),
        (0.0106, r"the time 0.0106 s is not the end of a step of 0.001 s; the nearest one is 0.011 s"),
    ],
)
def test_a_time_of_samples_that_no_step_ends_at_is_refused(time, words):
    with pytest.raises(InputError, match=rf"keep\['x'\]: {words}"):
        four_bar(keep={"x": st.Samples("q.crank_hinge", times=[0.0, time])})


def test_a_unit_of_what_is_kept_is_text():
    with pytest.raises(InputError, match="Last: unit is 3; expected a text"):
        st.Last("q.crank_hinge", unit=3)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: st.Uniform(None, 1), "Uniform: low is None"),
        (lambda: st.Levels(None, 1, 3), "Levels: low is None"),
        (lambda: st.Triangular(None, 0, 1), "Triangular: low is None"),
        (lambda: st.LogNormal(None, 1), "LogNormal: median is None"),
        (lambda: st.Normal(None, 1), "Normal: mean is None"),
        (lambda: st.Uniform(0, 10**400), "Uniform: high is 1000"),
        (lambda: st.Choice("12"), "Choice: values is '12'"),
    ],
)
def test_a_distribution_of_what_is_no_number_is_refused(made, words):
    with pytest.raises(InputError, match=f"{words}.*; expected .*finite number"):
        made()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda t, q, v: q[9], r"raised IndexError: .*; q has 3 numbers and v 3"),
        (lambda t, q, v: {}["a"], "raised KeyError: 'a'"),
        (lambda t, q, v: q.angle, "raised AttributeError"),
    ],
)
def test_a_quantity_that_raises_is_a_sentence_with_its_place(function, words):
    with pytest.raises(InputError, match=rf"keep\['x'\] {words}"):
        four_bar(keep={"x": function}).run()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"trajectories": "yes"}, "trajectories is 'yes'; expected True or False"),
        ({"inputs": np.array([1j])}, "inputs is .*; expected {'name': number} or an array of real numbers"),
        ({"inputs": {"gain": "1_0"}}, "inputs is .*; expected {'name': number} or an array of real numbers"),
        ({"q": np.array([1j, 0, 0])}, r"q is .*; expected real numbers \(3,\)"),
        ({"q": {"crank_hinge": "x"}}, r"q\['crank_hinge'\] is 'x'; expected a number"),
        ({"parameters": "x"}, "parameters is 'x'; expected real numbers"),
        ({"store": "."}, "store is '.'; expected the path of a folder of its own"),
        ({"store": "/"}, "store is '/'; expected the path of a folder of its own"),
        ({"store": "a/.."}, "store is 'a/..'; expected the path of a folder of its own"),
        ({"store": "x" * 300}, "store is 'xx.*: File name too long; give another path"),
    ],
)
def test_arguments_of_another_kind_are_refused(given, words):
    with pytest.raises(InputError, match=f"study: {words}"):
        four_bar(**given)


def test_options_of_runs_figures_and_searches_are_checked():
    pytest.importorskip("matplotlib")
    study = four_bar()
    with pytest.raises(InputError, match="progress is 'x'; expected True, False or None"):
        study.run(progress="x")
    with pytest.raises(InputError, match="best has no option 'generation'; did you mean 'generations'"):
        study.best("end", generation=3)
    study.run()
    for figure, name in (("histogram", "end"), ("fan", "path"), ("tornado", "end")):
        with pytest.raises(InputError, match="ax is a int; expected axes of matplotlib"):
            study.plot(figure, name, ax=3)


def test_settings_of_joints_that_do_not_vary_are_named_as_such():
    with pytest.raises(InputError, match=r"'crank_hinge.friction' does not vary: .* crank_hinge.damping does"):
        four_bar(vary={"crank_hinge.friction": st.Uniform(0, 1)})


def test_a_sentence_with_a_suggestion_ends_once():
    with pytest.raises(InputError, match=r"did you mean 'coupler.mass'\? Names of your own need assign="):
        four_bar(vary={"copler.mass": st.Uniform(0, 1)})


@pytest.mark.parametrize("threads", [-1, "2", 1.5, True])
def test_threads_are_a_whole_number(threads):
    with pytest.raises(InputError, match=f"threads is {threads!r}; expected a whole number, 0 for all cores"):
        four_bar().run(threads=threads)


@pytest.mark.parametrize("client", ["tcp://127.0.0.1:1", 3])
def test_a_client_is_one_of_dask(client):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=f"client is {client!r}; expected a dask.distributed.Client"):
        four_bar().run(client=client)


def test_a_function_that_cannot_be_sent_to_workers_is_named():
    pytest.importorskip("cloudpickle")
    lock = threading.Lock()

    def miss(t, q, v):
        assert lock is not None
        return q["crank_hinge"]

    with pytest.raises(InputError, match=r"keep\['x'\] cannot be sent to workers \(TypeError: cannot pickle .*lock"):
        execution.packed(four_bar(keep={"x": miss})._prepared.setup)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"integrator": "DOP853"}, "steps are of one length in all runs"),
        ({"integrator": sl.Integrator(accuracy=1e-6)}, "accuracy is given"),
        ({"controller": sl.control.callback(lambda t, q, v: np.zeros(3))}, "the controller is a callback"),
    ],
)
def test_what_a_study_does_not_do_is_refused(changed, words):
    with pytest.raises(UnsupportedError, match=words):
        four_bar(**changed)


def test_runs_that_cannot_start_are_kept_with_their_reason():
    """A ground longer than the other three bars together leaves the loop open: the triangle inequality."""
    study = four_bar(vary={"rocker_hinge.position.x": st.Uniform(1.0, 8.0)}, runs=40, chunk=7).run()
    found = study.results()
    far = found["rocker_hinge.position.x"].values > _longest_ground()
    refused = found["outcome"].values == "refused"
    assert far.any()
    assert not far.all()
    assert refused[far].all()
    assert np.isnan(found["fast"].values[far]).all()
    assert all("loops cannot be closed" in x for x in found["reason"].values[refused])
    assert set(study.failures()) == set(np.flatnonzero(refused).tolist())
    k = int(np.flatnonzero(refused)[0])
    assert f"run {k} (seed 3): the loops cannot be closed" in str(study.summary())
    with pytest.raises(SpanloopError, match="this run cannot start: the loops cannot be closed"):
        study.rerun(k)


def _longest_ground() -> float:
    """The sum of the lengths of crank, coupler and rocker."""
    model = sl.zoo.four_bar()
    lengths = [np.linalg.norm(model.joint("coupler_hinge").placement.position)]
    lengths += [np.linalg.norm(f.placement.position) for f in model.frames]
    return float(sum(lengths))


def test_one_bad_run_among_many_is_reported_and_run_again_alone():
    draws = np.full(500, 0.4)
    draws[321] = 1e7  # rad/s: lost in the first steps
    model = sl.zoo.pendulum(2)
    study = sl.Study(model, table={"v.hinge1": draws}, duration=0.05, keep={"end": "q.hinge1"}, chunk=100).run()
    assert list(study.failures()) == [321]
    assert "run 321 (of the table)" in str(study.summary())
    assert "1 failed" in str(study.summary())
    assert study.rerun(321).outcome.reason == study.results()["outcome"].values[321] != "finished"
    others = np.delete(study.results()["end"].values, 321)
    assert (others == others[0]).all()


@pytest.mark.parametrize("span", [(-3, 5), (0, 38), (5, 2), (0.0, 5), (0, "x")])
def test_draws_are_those_of_runs_that_there_are(span):
    assert len(four_bar().draws(36, 37)["coupler.mass"]) == 1
    with pytest.raises(InputError, match=r"draws\(.*\): there are runs 0 to 36"):
        four_bar().draws(*span)


def test_rerun_has_as_many_numbers_as_runs():
    with pytest.raises(InputError, match=r"rerun\(37\): there are runs 0 to 36"):
        four_bar().rerun(37)


CSV = {
    "coupler.mass;crank.mass\n1,5;2,0\n": "the first line has no comma, but ';'; expected commas between numbers, and",
    "coupler.mass\tcrank.mass\n1.5\t2.0\n": r"the first line has no comma, but '\\t'; expected commas between",
    "coupler.mass,crank.mass\n1,5,2,0\n": r"row 1 has 4 numbers; expected 2\. Are there decimal commas\?",
    'coupler.mass,crank.mass\n"1,5","2,0"\n': "row 1: 'coupler.mass' is '1,5'; expected a number with a decimal point",
    "coupler.mass\n1_0\n": "row 1: 'coupler.mass' is '1_0'; expected a number",
}


def test_a_table_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("coupler.mass,crank.mass\n1.0,2.0\n1.0\n")
    with pytest.raises(FileError, match=r"t.csv: row 2 has 1 numbers; expected 2"):
        four_bar(vary=None, runs=None, table=path)
    path.write_text("")
    with pytest.raises(FileError, match=r"t.csv: the file is empty; expected a table"):
        four_bar(vary=None, runs=None, table=path)
    path.write_text("coupler.mass\n1.0\nheavy\n")
    with pytest.raises(FileError, match=r"t.csv: row 2: 'coupler.mass' is 'heavy'; expected a number"):
        four_bar(vary=None, runs=None, table=path)
    for text, words in CSV.items():
        path.write_text(text)
        with pytest.raises(FileError, match=f"t.csv: {words}"):
            four_bar(vary=None, runs=None, table=path)
    for column in (np.array([1.0, 2.0j]), ["1.0", "1_0"], [1.0, "heavy"], [[1.0], [2.0, 3.0]], []):
        with pytest.raises(InputError, match=r"table\['coupler.mass'\] is .*; expected real numbers"):
            four_bar(vary=None, runs=None, table={"coupler.mass": column})
    with pytest.raises(InputError, match="different lengths"):
        four_bar(vary=None, runs=None, table={"coupler.mass": [1, 2], "crank.mass": [1]})
