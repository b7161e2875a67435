"""Starts of a study's runs are those of sl.simulate with the same numbers: open switches, joints that are held."""

from __future__ import annotations

import numpy as np
import pytest
from linkage import linkage

import spanloop as sl
from spanloop.errors import InputError

st = sl.studies
TIMES = [0.0, 0.05, 0.2]


def clutch():
    """Two shafts on one axis, and a coupling that can close."""
    b = sl.Builder("clutch").body("a", 1.0, (0.1, 0, 0), (0.01,) * 3).body("b", 1.0, (0.1, 0, 0), (0.01,) * 3)
    b = b.revolute("ja", "world", "a", "z").revolute("jb", "world", "b", "z", (0, 0, 0.2))
    return b.coupling("clutch", "ja", "jb", switchable=True).build()


@pytest.mark.parametrize("letter", ["q", "v"])
def test_a_coupling_that_attaches_later_begins_open(letter):
    """The second shaft rests until the clutch closes, and then has half the rate of the first: equal inertias."""
    events = [sl.events.Attach("clutch", at=0.1, capture=True)]
    keep = {"q": st.Samples("q.jb", times=TIMES), "v": st.Samples("v.jb", times=TIMES)}
    study = sl.Study(clutch(), {f"{letter}.ja": st.Uniform(1, 5)}, runs=3, duration=0.2, events=events, keep=keep).run()
    found = study.results()
    assert (found["q"].values[:, :2] == 0.0).all()
    assert (found["v"].values[:, :2] == 0.0).all()
    rates = found["v.ja"].values if letter == "v" else np.zeros(3)
    assert found["v"].values[:, 2] == pytest.approx(0.5 * rates, abs=1e-12)
    run = study.rerun(1)
    assert run["jb"].q[-1] == pytest.approx(found["q"].values[1, 2], abs=1e-12)


def test_rates_of_joints_in_no_closed_loop_stay():
    events = [sl.events.Attach("clutch", at=0.1, capture=True)]
    keep = {"v": st.Samples("v.jb", times=[0.0])}
    given = {"v": np.array([1.0, 2.0]), "runs": 2, "duration": 0.05, "keep": keep}
    found = sl.Study(clutch(), {"v.ja": st.Uniform(1, 5)}, events=events, **given).run().results()
    assert (found["v"].values == 2.0).all()


def test_loops_close_as_in_the_reference_run_at_every_angle_of_a_crank():
    """In one step of Newton's method a sixth of the angles led nowhere, and a fifth to the other way to close."""
    model = linkage("d")
    q = sl.Dynamics(model).assemble([-0.9, 0.8, -1.6])
    keep = {"b": st.Samples("q.b", times=[0.0]), "c": st.Samples("q.c", times=[0.0])}
    table = {"q.a": np.linspace(-3.1, 3.1, 50)}
    found = sl.Study(model, table=table, q=q, duration=1e-3, keep=keep).run().results()
    assert (found["outcome"].values == "finished").all()
    assert found["closure_error"].values.max() < 1e-12

    def side(a, b, c):  # of the coupler on which the rocker is
        return np.sign(np.sin(a + b - c))

    assert (side(found["q.a"].values, found["b"].values[:, 0], found["c"].values[:, 0]) == side(*q)).all()


def test_starts_that_no_angle_closes_are_refused_and_the_others_are_not():
    """A rocker at c puts its pin at the distance r of the crank's hinge; crank and coupler reach from 0.6 to 1.4."""
    model = linkage("d")
    q = sl.Dynamics(model).assemble([-0.9, 0.8, -1.6])
    found = sl.Study(model, table={"q.c": np.linspace(-3.0, 3.0, 61)}, q=q, duration=1e-3, keep=["q.a"]).run().results()
    r = np.abs(0.9 + 0.8 * np.exp(1j * found["q.c"].values))
    assert ((found["outcome"].values == "finished") == ((r > 0.6) & (r < 1.4))).all()


@pytest.mark.slow
def test_a_stone_flies_until_it_is_caught():
    """The start that loops would have to be closed for is legal, and is that of sl.simulate."""
    b = sl.Builder("catch").body("arm", 2.0, (0.3, 0, 0), (0.01, 0.06, 0.06)).body("stone", 0.5, inertia=(2e-3,) * 3)
    b = b.revolute("hinge", "world", "arm", "-y").free("flight", "world", "stone").frame("tip", "arm", (0.6, 0, 0))
    model = b.loop("tip", "stone", "fixed", name="grip", switchable=True).build()
    events = [sl.events.Attach("grip", when=lambda t, q, v: q["flight"][6] - 0.02, capture=True)]
    start = np.array([0.0, 1, 0, 0, 0, 0.6, 0, 0.2])
    keep = {"z": st.Samples("q.flight[6]", times=[0.0]), "caught": st.FirstEvent("attach"), "end": "q.hinge"}
    table = {"q.hinge": [-0.1, 0.2], "arm.mass": [1.5, 2.5]}
    study = sl.Study(model, table=table, q=start, duration=0.3, events=events, keep=keep).run()
    found = study.results()
    assert (found["z"].values == 0.2).all()
    for k in range(2):
        alone = sl.simulate(
            model.with_parameters({"arm.mass": table["arm.mass"][k]}),
            np.array([table["q.hinge"][k], *start[1:]]),
            duration=0.3,
            events=events,
        )
        assert found["caught"].values[k] == pytest.approx(alone.events.time[0], abs=1e-9)
        assert found["end"].values[k] == pytest.approx(alone.q[-1, 0], abs=1e-9)


def bars(ground):
    b = sl.Builder("bars")
    for name, length in (("crank", 0.3), ("coupler", 0.9), ("rocker", 0.7)):
        b.body(name, 2 * length, (length / 2, 0, 0), (0.001, length**3 / 6, length**3 / 6))
    b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", "y", (0.3, 0, 0))
    b.revolute("c", "world", "rocker", "y", (ground, 0, 0))
    return b.revolute("d", "rocker", "coupler", "y", (0.7, 0, 0), child_position=(0.9, 0, 0)).build()


@pytest.mark.slow
def test_joints_whose_q_is_given_by_name_are_held_while_lengths_vary():
    grounds = [0.75, 0.8, 0.85]
    keep = {"a": st.Samples("q.a", times=[0.0]), "c": st.Samples("q.c", times=[0.0]), "end": "q.c"}
    given = {"q": {"a": -0.9}, "v": {"a": 1.0}, "duration": 0.05, "limits": "ignore"}
    found = sl.Study(bars(0.8), table={"c.position.x": grounds}, keep=keep, **given).run().results()
    assert found["a"].values == pytest.approx(-0.9, abs=1e-12)  # rounding of the projection
    for k, ground in enumerate(grounds):
        alone = sl.simulate(bars(ground), **given)
        assert found["c"].values[k, 0] == pytest.approx(alone["c"].q[0], abs=1e-9)
        assert found["end"].values[k] == pytest.approx(alone["c"].q[-1], abs=1e-9)


def test_a_start_that_joints_held_leave_open_names_them():
    with pytest.raises(InputError, match=r"cannot be closed at the start with q of 'a', 'c' as given: .* is left open"):
        sl.Study(bars(0.8), {"q.c": st.Uniform(0.1, 0.2)}, q={"a": -0.9}, runs=2, duration=0.05, keep=["q.a"])
