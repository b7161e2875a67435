"""What a study keeps of its runs: nothing of those that failed, events by kind and name, numbers of stiff runs."""

from __future__ import annotations

import functools
import math
import os
import types
import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, SpanloopWarning, UnsupportedError
from spanloop.simulation.stiffness import stiffest
from spanloop.studies import execution, stiff_draws
from spanloop.studies.setup import parameters_at, starts_of

st = sl.studies


def hinge(damping=0.1, **limits):
    b = sl.Builder("p").body("link", 1.0, (0.3, 0, 0), (0.01, 0.05, 0.05))
    return b.revolute("h", "world", "link", "y", damping=damping, **limits).build()


# ---- runs that failed


def test_numbers_of_runs_that_are_lost_are_nan_and_enter_no_statistic():
    keep = {"end": "q.h", "most": st.Largest("abs(v.h)"), "mean": st.Mean("q.h"), "path": st.Samples("q.h")}
    table = {"v.h": [1.0, 1e30, 2.0, 1e40]}
    study = sl.Study(hinge(0.0), table=table, duration=0.05, sample=0.01, keep=keep, trajectories=True).run()
    found, lost = study.results(), [1, 3]
    assert list(study.failures()) == lost
    for name in keep:
        assert np.isnan(found[name].values[lost]).all(), name
        assert np.isfinite(found[name].values[[0, 2]]).all(), name
    assert found["v"].values[lost, 0, 0].tolist() == [1e30, 1e40]
    assert found["v.h"].values.tolist() == table["v.h"]
    assert np.isfinite(found["end_time"].values).all()
    assert study.summary().counts["end"] == 2
    assert study.summary().numbers["end"]["mean"] == pytest.approx(found["end"].values[[0, 2]].mean())


# ---- events


def down(t, q, v):
    return 1.2 - q["h"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "limits"),
    [
        ({"down": down}, "end"),
        ([sl.events.End("down", down)], "ignore"),
        ([sl.events.End("down", down), sl.events.Stop("h")], "end"),
    ],
)
def test_ends_count_as_events(events, limits):
    """A condition that ends a run, at its start in run 2: the time is that of the end."""
    counts = {word: st.EventCount(word) for word in ("down", "end", "event")}
    keep = {**counts, "all": st.EventCount(), "first": st.FirstEvent("down")}
    model = hinge(upper=1.5, lower=-1.5)
    study = sl.Study(model, table={"q.h": [1.0, 1.1, 1.3, -1.0]}, v={"h": 1.0}, duration=0.2, events=events,
                     limits=limits, keep=keep)  # fmt: skip
    found = study.run().results()
    assert found["outcome"].values.tolist() == ["event", "event", "event", "finished"]
    for name in (*counts, "all"):
        assert found[name].values.tolist() == [1, 1, 1, 0], name
    assert found["first"].values[:3] == pytest.approx(found["end_time"].values[:3], abs=1e-9)
    assert found["first"].values[2] == 0.0
    assert math.isnan(found["first"].values[3])


def test_limits_that_end_runs_count_as_events():
    keep = {"n": st.EventCount("limit"), "h": st.EventCount("h"), "first": st.FirstEvent("end")}
    found = sl.Study(hinge(upper=0.5), table={"v.h": [-1.0, 3.0]}, duration=0.2, keep=keep).run().results()
    assert found["outcome"].values.tolist() == ["finished", "limit"]
    assert found["n"].values.tolist() == found["h"].values.tolist() == [0, 1]
    assert found["first"].values[1] == found["end_time"].values[1]


@pytest.mark.parametrize(
    ("word", "given", "message"),
    [
        ("dwon", {"events": {"down": down}}, "no event of the kind or name 'dwon'; did you mean 'down'"),
        ("impact", {"events": {"down": down}}, "no event of the kind or name 'impact'"),
        ("down", {}, "no events can happen in these runs; give events="),
        (3, {"events": {"down": down}}, "no event of the kind or name 3; expected a text"),
    ],
)
def test_events_that_cannot_happen_are_refused(word, given, message):
    with pytest.raises(InputError, match=message):
        sl.Study(hinge(), table={"v.h": [1.0]}, duration=0.1, keep={"n": st.EventCount(word)}, **given)


# ---- stiff draws


def test_one_stiff_run_after_the_first_ones_makes_the_steps_implicit():
    damping = [0.1] * 64 + [400.0]
    study = sl.Study(hinge(), table={"h.damping": damping}, duration=0.2, keep={"end": "q.h"}).run()
    alone = sl.simulate(hinge(400.0), duration=0.2)
    assert alone.settings["integrator"] == "implicit"
    assert study.results()["end"].values[-1] == pytest.approx(alone["h"].q[-1], rel=1e-12)


def test_steps_that_are_too_long_for_one_run_warn_of_it():
    with pytest.warns(SpanloopWarning, match=r"study: in run 70, the damping of joint 'h' .* asks for steps below"):
        sl.Study(hinge(), table={"h.damping": [0.1] * 70 + [400.0]}, duration=0.2, integrator="rk4", keep=["q.h"])


@pytest.mark.parametrize("loops", [False, True], ids=["tree", "loops"])
def test_rates_of_all_draws_are_those_of_the_runs_alone(loops):
    joints = ("crank_hinge", "coupler_hinge") if loops else ("hinge1", "hinge2")
    vary = {f"{joints[0]}.damping": st.LogNormal(1, 2), f"{joints[1]}.stiffness": st.LogNormal(10, 2)}
    vary |= {f"{joints[1]}.position.x": st.Uniform(0.95, 1.05, relative=loops)}
    model = sl.zoo.four_bar() if loops else sl.zoo.pendulum(2)
    q = sl.zoo.four_bar_start() if loops else None
    prepared = sl.Study(model, vary, runs=20, q=q, duration=0.01, keep=["t"])._prepared
    setup = prepared.setup
    rows = setup.variables.values(prepared.design.rows(0, 20))
    problem = setup.problem(starts_of(setup, np.stack([setup.reference] * 2)))
    p = parameters_at(setup, setup.variables.assigned(rows), 20)
    found = stiff_draws._rates(*stiff_draws._scaled(setup, problem, p, *stiff_draws._springs_and_dampers(problem, p)))
    alone = [stiffest(problem.system, problem.q[0], row).rate for row in p]
    assert found == pytest.approx(alone, rel=1e-9)


# ---- assign and target


RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("assign", "words"),
    [
        (lambda x: {"v.h": x["x"] * RNG.random()}, "where it is called again with the same draws"),
        (lambda x: {"v.h": x["x"] - x["x"].mean()}, "in another order, or with some of them alone"),
        (lambda x: {"v.h": np.sort(x["x"])}, "in another order, or with some of them alone"),
    ],
    ids=["random", "mean", "sorted"],
)
def test_assign_that_does_not_repeat_is_refused(assign, words):
    with pytest.raises(InputError, match=rf"assign returns 'v.h' = .* for run \d+, and .* {words}"):
        sl.Study(hinge(), {"x": st.Uniform(1, 2)}, runs=5, assign=assign, duration=0.1, keep=["q.h"])


@pytest.mark.parametrize(
    "assign",
    [
        lambda d: {"v.h": d["x"] / max(1.0, np.abs(d["x"]).max())},
        lambda d: {"v.h": np.where(d["x"] > 1.0, np.median(d["x"]), d["x"])},
        lambda d: {"v.h": d["x"] + np.cumsum(d["x"] > 1.0)},
    ],
    ids=["an extreme", "outliers", "an order"],
)
@pytest.mark.parametrize("outlier", [70, 300, 3999, 69_990])
def test_assign_that_depends_on_one_late_run_is_refused(assign, outlier):
    draws = np.linspace(0.1, 0.9, 70_000)
    draws[outlier] = 1.5
    with pytest.raises(InputError, match=r"assign returns 'v.h' = .* for run \d+, and .* with some of them alone"):
        sl.Study(hinge(), table={"x": draws}, assign=assign, duration=0.1, keep=["q.h"])


def test_assign_by_a_product_of_matrices_is_accepted():
    """Its last bits depend on how many rows there are, also where a sum cancels."""
    mixed = np.array([[1.0, 0.3], [-1.0, 0.7]])
    vary = {"a": st.Uniform(-1, 1), "b": st.Uniform(-1, 1)}

    def assign(d):
        both = np.stack([d["a"], d["b"]], axis=1) @ mixed
        return {"q.h": both[:, 0], "v.h": np.sin(both[:, 1])}

    assert len(sl.Study(hinge(), vary, runs=200_000, assign=assign, duration=0.1, keep=["q.h"])) == 200_000


ASSIGNED = {
    "raised TypeError: .* It receives arrays .n,., a number for each run": lambda d: {"v.h": math.sin(d["x"])},
    "raised ValueError: The truth value .* with np.where for choices": lambda d: {"v.h": 1 if d["x"] > 0.5 else 0},
    "raised ZeroDivisionError: division by zero": lambda d: {"v.h": d["x"] + 1 / 0},
    "returned None; expected numbers by name": lambda d: None,
    "returned a list; expected numbers by name": lambda d: [d["x"]],
    "returned {}; expected numbers by name": lambda d: {},
    "returns 'v.h' as complex numbers; expected real": lambda d: {"v.h": d["x"] + 1j},
    "returns 'v.h' as text; expected real numbers .5,., one for each run": lambda d: {"v.h": d["x"].astype(str)},
    "returns 'v.h' as a list of shape .2,.; expected real": lambda d: {"v.h": [d["x"][0], 1.0]},
    "returns 'v.h' as rows of different lengths": lambda d: {"v.h": [[d["x"][0]], [1.0, 2.0]]},
}


@pytest.mark.parametrize("words", ASSIGNED)
def test_what_assign_raises_or_returns_wrongly_is_a_sentence_about_assign(words):
    with pytest.raises(InputError, match=f"study: assign {words}"):
        sl.Study(hinge(), {"x": st.Uniform(1, 2)}, runs=5, assign=ASSIGNED[words], duration=0.1, keep=["q.h"])


GAIN = 1.0


class Scaled:
    """An assign with a number that may change."""

    factor = 1.0

    def __call__(self, d):
        return {"v.h": self.factor * d["x"]}


@pytest.mark.parametrize("changed", ["assign", "keep", "controller", "events"])
def test_an_argument_that_changes_before_the_run_is_refused_with_what_changed(changed, monkeypatch):
    assign = Scaled()
    functions = {
        "keep": {"end": lambda t, q, v: GAIN * q["h"]},
        "controller": lambda t, q, v: {"h": -GAIN * q["h"]},
        "events": {"far": lambda t, q, v: 10.0 * GAIN - q["h"]},
    }
    own = {changed: functions[changed]} if changed in functions else {}
    given = {"keep": {"end": "q.h"}, "assign": assign, "duration": 0.1, **own}
    study = sl.Study(hinge(), {"x": st.Uniform(1, 2)}, runs=5, **given)
    if changed == "assign":
        monkeypatch.setattr(assign, "factor", 2.0)
    else:
        monkeypatch.setitem(globals(), "GAIN", 2.0)
    for use in (study.run, lambda: study.rerun(0), lambda: study.best("end")):
        with pytest.raises(InputError, match=rf"changed since sl\.Study.* was called: .*{changed}.* was .* and is"):
            use()
    monkeypatch.undo()
    assert study.run().status().startswith("5 of 5 runs")


@functools.lru_cache
def cached_gain():
    return GAIN


HIDING = {
    "a cache": lambda d: {"v.h": cached_gain() * d["x"]},
    "a ufunc of Python": lambda d: {"v.h": np.frompyfunc(lambda x: GAIN * x, 1, 1)(d["x"])},
    "a read-only mapping": lambda d: {"v.h": types.MappingProxyType(globals())["GAIN"] * d["x"]},
    "the environment": lambda d: {"v.h": float(os.environ.get("GAIN", "1.0")) * d["x"]},
}


@pytest.mark.parametrize("what", HIDING)
def test_what_assign_reads_out_of_sight_belongs_to_the_definition_by_its_numbers(what, monkeypatch, tmp_path):
    def study():
        cached_gain.cache_clear()
        given = {"assign": HIDING[what], "duration": 0.01, "keep": {"end": "q.h"}, "store": tmp_path / "s"}
        return sl.Study(hinge(), {"x": st.Uniform(1, 2)}, runs=5, **given)

    study().run()
    assert study().run().status().startswith("5 of 5 runs")
    monkeypatch.setitem(globals(), "GAIN", 2.0)
    monkeypatch.setenv("GAIN", "2.0")
    with pytest.raises(InputError, match=r"is the store of another study: assign was .*numbers"):
        study().run()


def test_arrays_and_lists_are_those_of_the_time_when_the_study_was_made():
    tau, inputs, times, table = np.array([3.0]), np.array([1.0]), [0.05, 0.1], {"v.h": np.array([1.0, 2.0])}
    law = {"controller": lambda t, q, v, u: {"h": u[0]}}

    def study(**acts):
        return sl.Study(hinge(), table=table, duration=0.1, keep={"x": st.Samples("q.h", times=times)}, **acts)

    for acts, array in (({"tau": tau}, tau), ({"tau": {"h": tau}}, tau), ({**law, "inputs": inputs}, inputs)):
        expected = study(**acts).run().results()["x"].values.tolist()
        made = study(**acts)
        array[:], times[0], table["v.h"][:] = 99.0, 0.08, 7.0
        assert made.run().results()["x"].values.tolist() == expected
        array[:], times[0], table["v.h"][:] = 1.0, 0.05, (1.0, 2.0)


def test_a_target_other_than_the_cpu_is_refused():
    given = {"table": {"v.h": [1.0]}, "duration": 0.1, "keep": ["q.h"]}
    with pytest.raises(UnsupportedError, match="study: target is 'cuda'; studies run on the cores"):
        sl.Study(hinge(), target="cuda", **given)
    with pytest.raises(UnsupportedError, match="the integrator's target is 'cuda'"):
        sl.Study(hinge(), integrator=sl.Integrator("rk4", target="cuda"), **given)
    with pytest.raises(InputError, match="target is 'nonsense'; expected 'cpu'"):
        sl.Study(hinge(), target="nonsense", **given)


# ---- quantities as text


def test_arithmetic_that_begins_with_a_sign_or_a_number_is_no_name():
    keep = {"a": "-v.h", "b": "1-q.h", "c": "t-q.h", "v": "v.h", "q": "q.h"}
    found = sl.Study(hinge(), table={"v.h": [1.0, 2.0]}, duration=0.1, keep=keep).run().results()
    assert (found["a"].values == -found["v"].values).all()
    assert (found["b"].values == 1.0 - found["q"].values).all()
    assert found["c"].values == pytest.approx(0.1 - found["q"].values, abs=1e-15)


@pytest.mark.parametrize("given", ["1/(q.h-q.h)", lambda t, q, v: 1.0 / (q["h"] - q["h"])], ids=["text", "function"])
def test_a_quantity_that_divides_by_zero_is_refused(given):
    with pytest.raises(InputError, match=r"keep\['x'\].* has no value at any state: float division by zero"):
        sl.Study(hinge(), table={"v.h": [1.0]}, duration=0.1, keep={"x": given}).run()


def test_a_quantity_that_is_no_number_leaves_the_others():
    keep = {"bad": "sqrt(-1.0-q.h*q.h)", "good": "q.h"}
    found = sl.Study(hinge(), table={"v.h": [1.0, 2.0]}, duration=0.1, keep=keep).run().results()
    assert np.isnan(found["bad"].values).all()
    assert np.isfinite(found["good"].values).all()


def test_coordinates_of_flexible_bodies_are_kept_by_the_names_that_vary():
    boom = sl.flexible.beam(2.0, E=7e10, density=2700.0, section=sl.flexible.tube(0.03, 0.028), modes={"z": 1})
    model = sl.Builder("crane").body("boom", flexible=boom).revolute("hinge", "world", "boom", "y").build()
    given = {"table": {"q.boom.modes[0]": [0.0, 0.01]}, "duration": 0.01, "step": 2e-4}
    keep = {"first": st.Samples("q.boom.modes[0]", times=[0.0]), "size": st.Largest("abs(q.boom.modes[0])")}
    found = sl.Study(model, keep=keep, **given).run().results()
    assert found["first"].values[:, 0].tolist() == [0.0, 0.01]
    assert found["size"].values[1] >= 0.01


def test_a_rerun_takes_the_method_of_the_dynamics_that_was_given(monkeypatch):
    robot = sl.Dynamics(sl.zoo.four_bar(), method="dense")
    vary = {"v.crank_hinge": st.Uniform(0.5, 2.0)}
    study = sl.Study(robot, vary, runs=2, q=sl.zoo.four_bar_start(), duration=0.01, keep={"a": "q.crank_hinge"})
    taken = []
    monkeypatch.setattr("spanloop.studies.definition.simulate", lambda *_, **given: taken.append(given["method"]))
    study.rerun(0)
    study.rerun(1, method="elimination")
    assert taken == ["dense", "elimination"]


@pytest.mark.parametrize("runs", [3, 4, 6])
@pytest.mark.parametrize("by", ["inputs", "tau"])
def test_rows_for_the_steps_are_none_for_the_runs_though_a_chunk_has_as_many(by, runs):
    """Four steps; three runs and the reference are four rows. Quantities read the row of their own step."""
    rows = np.array([[1.0], [5.0], [2.0], [3.0]])
    keep = {"end": "tau.h", "most": st.Largest("tau.h"), "path": st.Samples("tau.h")}
    given = {"inputs": rows, "controller": lambda t, q, v, u: {"h": u[0]}} if by == "inputs" else {"tau": rows}
    given |= {"runs": runs, "keep": keep, "duration": 0.04, "step": 0.01, "sample": 0.01}
    found = sl.Study(hinge(), {"q.h": st.Uniform(0.1, 1.0)}, **given).run().results()
    assert found["end"].values.tolist() == [3.0] * runs
    assert found["most"].values.tolist() == [5.0] * runs
    assert found["path"].values.tolist() == [[1.0, 5.0, 2.0, 3.0, 3.0]] * runs


def test_studies_that_run_in_two_threads_leave_the_filters_of_warnings_as_they_were():
    """The first to begin ended first: its filters, and with them its silence, came back with the end of the second."""
    before = list(warnings.filters)
    first, second = (execution.on_threads(two(), [0, 1], lambda k: np.array([[0.5]]), 1) for _ in range(2))
    seen = [next(x)[0] for x in (first, second)]
    for run, k in zip((first, second), seen, strict=True):
        assert [j for j, _ in run] == [1 - k]
    assert warnings.filters == before


def two():
    study = sl.Study(hinge(), {"q.h": st.Uniform(0.1, 1.0)}, runs=2, keep={"e": "q.h"}, duration=0.02, step=0.01)
    return study._prepared.setup
