"""Summary, sensitivities, figures' numbers and the best numbers, against closed forms and SciPy."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from scipy import stats

import spanloop as sl
from spanloop.compiler.runtime import machine
from spanloop.errors import InputError, SpanloopWarning
from spanloop.studies.progress import Bar

st = sl.studies
T = 0.5  # s
G = 9.81


def lift():
    """A mass on a vertical rail: z = z0 + v0 t − g t²/2."""
    b = sl.Builder("lift").body("car", 2.0, inertia=[0.1] * 3)
    return b.prismatic("rail", "world", "car", "z").build()


def falling(**changed):
    vary = {"q.rail": st.Uniform(0.0, 1.0), "v.rail": st.Uniform(0.0, 6.0)}
    keep = {
        "end": "q.rail",
        "top": st.Largest("q.rail"),
        "when": st.TimeOfLargest("q.rail"),
        "low": st.Smallest("car.position.z"),
        "mean": st.Mean("q.rail"),
        "energy": st.Last("energy.total"),
        "speed": st.Largest("car.speed"),
        "path": st.Samples("q.rail", times=[0.1, 0.3]),
    }
    given = {"vary": vary, "runs": 256, "duration": T, "step": 1e-3, "keep": keep}
    model = changed.pop("model", None) or lift().with_gravity((0, 0, -G))
    return sl.Study(model, **{**given, **changed})


@pytest.mark.slow
def test_statistics_over_time_are_those_of_the_closed_form():
    found = falling().run().results()
    z, v = found["q.rail"].values, found["v.rail"].values

    def at(t):
        return z + v * t - 0.5 * G * t * t

    peak = np.minimum(v / G, T)
    assert found["end"].values == pytest.approx(at(T), abs=1e-12)
    assert found["top"].values == pytest.approx(at(peak), abs=0.5 * G * 0.0005**2 + 1e-12)  # the nearest step
    assert found["when"].values == pytest.approx(peak, abs=0.0005 + 1e-9)
    assert found["low"].values == pytest.approx(np.minimum(z, at(T)), abs=1e-12)
    mean = z + v * T / 2.0 - G * T * T / 6.0
    assert found["mean"].values == pytest.approx(mean, abs=G * 1e-6)  # the trapezoidal rule
    assert found["energy"].values == pytest.approx(0.5 * 2.0 * v * v + 2.0 * G * z, rel=1e-12)
    assert found["speed"].values == pytest.approx(np.maximum(v, np.abs(v - G * T)), rel=1e-12)
    assert found["path"].values == pytest.approx(np.stack([at(0.1), at(0.3)], axis=1), abs=1e-12)
    assert found["path"].dims == ("run", "time_path")
    assert [found[n].attrs["units"] for n in ("top", "when", "energy", "speed")] == ["m", "s", "J", "m/s"]


@pytest.mark.slow
def test_statistics_of_runs_that_end_at_an_event_end_there():
    low = {"floor": lambda t, q, v: q["rail"] - 0.1}
    found = falling(vary={"q.rail": st.Uniform(0.2, 1.0)}, events=low).run().results()
    z = found["q.rail"].values
    met = z - 0.1 < 0.5 * G * T * T
    end = np.where(met, np.sqrt(2.0 * np.abs(z - 0.1) / G), T)
    assert (found["outcome"].values == np.where(met, "event", "finished")).all()
    assert found["end_time"].values == pytest.approx(end, abs=1e-9)
    assert found["end"].values[met] == pytest.approx(0.1, abs=1e-8)
    assert found["low"].values == pytest.approx(z - 0.5 * G * end**2, abs=1e-8)
    assert found["mean"].values == pytest.approx(z - G * end**2 / 6.0, abs=G * 1e-6)
    assert found["speed"].values == pytest.approx(G * end, rel=1e-8)
    late = end < 0.3
    assert np.isnan(found["path"].values[late, 1]).all()
    assert "condition 'floor' was met" in found["reason"].values[met][0]


def test_events_that_change_the_mechanism_are_counted():
    model = lift().with_gravity((0, 0, -G)).with_joint("rail", lower=0.0)
    keep = {"hits": st.EventCount("impact"), "first": st.FirstEvent("impact"), "end": "q.rail"}
    stop = [sl.events.Stop("rail", restitution=0.8)]
    given = {"vary": {"q.rail": st.Uniform(0.3, 1.0)}, "keep": keep, "duration": 1.0, "limits": "stop", "events": stop}
    study = falling(model=model, **given)
    found = study.run().results()
    z = found["q.rail"].values
    assert found["first"].values == pytest.approx(np.sqrt(2.0 * z / G), abs=1e-8)
    first = np.sqrt(2.0 * z / G)
    hits, t = np.zeros(len(z)), first.copy()
    for k in range(1, 10):  # times of flight shrink by the restitution
        hits += t < 1.0
        t = t + 2.0 * first * 0.8**k
    assert (found["hits"].values == hits).all()


def test_summary_has_outcomes_and_quantiles():
    study = falling().run()
    found, data = study.summary(), study.results()
    assert found.outcomes == {"finished": 256}
    assert found.numbers["end"]["95 %"] == np.quantile(data["end"].values, 0.95)
    assert found.numbers["end"]["deviation"] == pytest.approx(data["end"].values.std(ddof=1))
    assert "256 runs: 256 finished" in str(found)


def test_rank_correlations_are_those_of_scipy():
    study = falling().run()
    data, found = study.results(), study.sensitivity("top")
    for name in study.names:
        assert found.ranks[name] == pytest.approx(stats.spearmanr(data[name].values, data["top"].values).statistic)


def test_sobol_indices_of_a_linear_quantity_are_shares_of_its_variance():
    """end = z0 + T v0 − ...: variances 1/12 and T² 36/12; an error of 1 % of 1024 quasirandom blocks."""
    found = falling(design="saltelli", runs=4 * 1024).run().sensitivity("end")
    shares = np.array([1.0, T * T * 36.0])
    shares /= shares.sum()
    for k, name in enumerate(("q.rail", "v.rail")):
        assert found.first[name] == pytest.approx(shares[k], abs=0.01)
        assert found.total[name] == pytest.approx(shares[k], abs=0.01)


def test_the_best_numbers_are_those_of_the_closed_form():
    """To be at 0.8 m at the end from 0.2 m: one speed. To be highest: the largest of both."""
    keep = {"miss": lambda t, q, v: (q["rail"] - 0.8) ** 2, "top": st.Largest("q.rail")}
    study = falling(vary={"v.rail": st.Uniform(0.0, 9.0)}, q=[0.2], keep=keep)
    found = study.best("miss", population=20, generations=40, tolerance=1e-10)
    assert found.values["v.rail"] == pytest.approx((0.6 + 0.5 * G * T * T) / T, abs=1e-4)
    assert found.runs >= 20
    assert "miss = " in str(found)
    high = falling().best("top", largest=True, population=20, generations=30)
    assert high.values["q.rail"] == pytest.approx(1.0, abs=1e-3)
    assert high.values["v.rail"] == pytest.approx(6.0, abs=1e-2)


def test_the_best_of_levels_and_choices_is_one_of_them():
    """The end is z0 + v0 T − g T²/2; the nearest to 2 m of 5 × 3 ends, by going through all."""
    fall, keep = 0.5 * G * T * T, {"miss": lambda t, q, v: (q["rail"] - 2.0) ** 2}
    levels, speeds = np.linspace(0.0, 1.0, 5), [1.0, 7.0, 4.0]
    vary = {"q.rail": st.Levels(0.0, 1.0, 5), "v.rail": st.Choice([*speeds, 5.4], weights=[1, 1, 2, 0])}
    ends = levels[:, None] + T * np.array(speeds)[None] - fall
    k, j = np.unravel_index(np.argmin((ends - 2.0) ** 2), ends.shape)
    found = falling(vary=vary, keep=keep).best("miss", population=20, generations=20)
    assert found.values == {"q.rail": levels[k], "v.rail": speeds[j]}
    assert found.objective == pytest.approx((ends[k, j] - 2.0) ** 2, abs=1e-9)


@pytest.mark.parametrize(
    "option",
    [{"seed": -1}, {"population": 0}, {"generations": 1.5}, {"tolerance": "small"}, {"polish": 3}],
)
def test_an_option_of_best_that_is_no_such_number_is_refused(option):
    (name, value), *_ = option.items()
    with pytest.raises(InputError, match=f"best has {name}={value!r}; expected "):
        falling().best("top", **option)


def test_what_cannot_be_optimised_is_refused():
    with pytest.raises(InputError, match="there is no number 'tp' to optimise; did you mean 'top'"):
        falling().best("tp")
    with pytest.raises(
        InputError, match=r"which has no range; give Uniform\(low, high\), or a Normal with low= and high="
    ):
        falling(vary={"v.rail": st.Normal(1.0, 2.0)}).best("top")


def test_trajectories_are_kept_on_request():
    study = falling(trajectories=True, sample=0.1, keep={"top": st.Largest("q.rail")}, runs=5).run()
    found = study.results()
    assert found["q"].dims == ("run", "time", "coordinate")
    run = study.rerun(3)
    assert np.array_equal(found["q"].values[3], run.q[::100])
    assert np.array_equal(found["v"].values[3], run.v[::100])


@pytest.mark.slow
def test_contacts_have_surfaces_of_their_own():
    b = sl.Builder("slider").body("box", 1.0, inertia=[0.01] * 3)
    box = b.free("base", "world", "box").build()
    ground = ("world", sl.contacts.Plane())
    model = box.with_contact("sole", ("box", sl.contacts.Sphere(0.1)), ground, friction=0.5, restitution=0.0)
    vary = {"restitution.sole": st.Choice([0.2, 0.5, 0.9])}
    study = sl.Study(
        model,
        vary,
        runs=12,
        q=[1, 0, 0, 0, 0, 0, 0.3],
        duration=0.5,
        contacts="events",
        keep={"fast": st.Largest("v.base[5]")},
    ).run()
    found = study.results()
    hit = np.sqrt(2.0 * 9.81 * 0.2)
    speed = found["restitution.sole"].values * hit
    assert found["fast"].values == pytest.approx(speed, abs=9.81 * 1.1e-3)


def test_single_precision_has_the_same_statistics_to_its_digits():
    double, single = (falling(integrator=sl.Integrator("rk4", dtype=x)).run().results() for x in ("float64", "float32"))
    for name in ("end", "top", "low", "mean", "speed"):
        assert single[name].values == pytest.approx(double[name].values, abs=1e-5), name


def test_a_mean_in_single_precision_keeps_its_digits_over_many_steps():
    """A car that coasts; sums of 200 000 terms that lose what they round are off by 1e-3."""
    keep = {"mean": st.Mean("v.rail"), "one": st.Mean("1 + 0 * t"), "none": st.Mean(lambda t, q, v: np.sqrt(100.0 - t))}
    given = {"duration": 200.0, "step": 1e-3, "integrator": sl.Integrator("rk4", dtype="float32"), "keep": keep}
    model = lift().with_gravity((0, 0, 0))
    found = sl.Study(model, {"v.rail": st.Uniform(1e-3, 2e-3)}, runs=4, **given).run().results()
    assert found["mean"].values == pytest.approx(found["v.rail"].values, rel=1e-6)
    assert found["one"].values == pytest.approx(1.0, rel=1e-6)
    assert np.isnan(found["none"].values).all()


def test_a_quantity_that_is_not_a_number_is_nan_in_means_and_passed_over_in_extremes():
    def root(t, q, v):
        return np.sqrt(q["rail"] - 0.3)

    keep = {"top": st.Largest(root), "mean": st.Mean(root)}
    found = falling(vary={"q.rail": st.Uniform(0.1, 1.0)}, keep=keep, duration=0.2).run().results()
    z = found["q.rail"].values
    assert (found["outcome"].values == "finished").all()
    above = z - 0.5 * G * 0.04 > 0.3
    assert np.isfinite(found["mean"].values[above]).all()
    assert np.isnan(found["mean"].values[z < 0.3]).all()
    assert found["top"].values[z > 0.3] == pytest.approx(np.sqrt(z[z > 0.3] - 0.3), abs=1e-9)
    assert np.isnan(found["top"].values[z < 0.3]).all()


def test_the_bar_has_share_rate_time_left_and_failures(capsys):
    bar = Bar(1000, 200, True)
    bar.began = bar.last = bar.began - 10.0
    bar.draw(400, 3)
    words = capsys.readouterr().err
    assert "60 %" in words
    assert "40 runs/s" in words
    assert "10 s left  3 failed" in words
    bar.erase()


def test_the_audit_finds_the_run_whose_steps_are_too_long():
    def law(t, q, v, u):
        return {"hinge1": -u[0] * v["hinge1"]}

    gains = [*np.linspace(0.1, 0.2, 12), 950.0, *np.linspace(0.2, 0.3, 7)]  # 950: steps of 1 ms are unstable
    study = sl.Study(
        sl.zoo.pendulum(),
        table={"input.gain": gains},
        inputs={"gain": 0.1},
        controller=law,
        q=[0.3],
        v=[1.0],
        duration=0.1,
        step=1e-3,
        keep={"fast": st.Largest("abs(v.hinge1)"), "path": st.Samples("q.hinge1")},
        sample=0.05,
    )
    with pytest.warns(SpanloopWarning, match="too long for this motion"):
        found = study.run().audit(runs=2)
    assert next(iter(found.audits)) == 12
    assert not found.well
    assert "steps" in found.audits[12].faults
    assert str(found).startswith("run 12: ")
    others = sl.Study(
        sl.zoo.pendulum(), {"q.hinge1": st.Uniform(0.1, 0.2)}, runs=5, duration=0.1, keep={"a": "q.hinge1"}
    )
    assert others.run().audit().well
    with pytest.raises(InputError, match="1 at least"):
        others.audit(runs=0)


def test_a_number_that_no_run_has_is_a_line_with_no_runs():
    keep = {"never": st.FirstEvent("far"), "end": "q.hinge1"}
    far = {"far": lambda t, q, v: 99.0 - q["hinge1"]}
    vary = {"q.hinge1": st.Uniform(0.1, 0.2)}
    study = sl.Study(sl.zoo.pendulum(), vary, runs=5, duration=0.1, events=far, keep=keep).run()
    summary = study.summary()
    assert summary.counts["never"] == 0
    (line,) = (x for x in str(summary).splitlines() if x.startswith("never [s]"))
    assert line.split()[2:] == [*["nan"] * 7, "0"]


def test_losses_of_joints_have_units():
    model = sl.Builder("cart").body("rail", 1.0, (0, 0, 0), (1, 1, 1)).prismatic("slide", "world", "rail", "x")
    model = model.body("ball", 1.0, (0, 0, 0), (1, 1, 1)).spherical("ball_joint", "rail", "ball").build()
    known = {
        "slide.damping": "N s/m",
        "slide.stiffness": "N/m",
        "slide.armature": "kg",
        "ball_joint.damping.1": "N m s/rad",
        "ball_joint.armature.2": "kg m²",
        "rail.mass": "kg",
    }
    table = {name: [1.0, 2.0] for name in known}
    found = sl.Study(model, table=table, duration=0.01, keep=["q.slide"]).run().results()
    assert {name: found[name].attrs["units"] for name in known} == known


def test_checks_of_all_draws_are_reported_while_they_take_long(monkeypatch):
    said = []
    monkeypatch.setattr(machine, "reported", lambda what: said.append(what) or contextlib.nullcontext())
    sl.Study(sl.zoo.pendulum(), {"rod1.mass": st.Uniform(1, 2)}, runs=5, duration=0.1, keep=["t"])
    assert {"checking the draws of 5 runs", "searching 5 runs for the stiffest"} <= set(said)
