"""Pictures of runs with events: marks where something happens, and only what is closed and there at each time."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from event_motions import bouncing, carts_model, coupled_carts
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.view import animation, page
from spanloop.view.moving_scene import moving_scene
from spanloop.view.page.data import page_data
from spanloop.view.plots.canvas import MOST_NAMED
from spanloop.view.video.solids import solids
from spanloop.view.viewer.session import Session


def changed(run, **columns):
    """A run with another table of events."""
    whole = Segment(
        *(np.concatenate([getattr(s, n) for s in run.segments])[_grid(run)] for n in ("times", "q", "v", "tau"))
    )
    return Trajectory(
        run.model, (whole,), run.outcomes, run.settings, events=replace(run.events, begin_present=None, **columns)
    )


def _grid(run):
    """The samples of a run but for those before an event."""
    return np.append(np.diff(run.times) > 0.0, True)


@pytest.fixture(scope="module")
def carts():
    return coupled_carts()


@pytest.fixture(scope="module")
def broken(carts):
    return changed(carts, kind=["attach", "break"])


@pytest.fixture(scope="module")
def vanished(carts):
    return changed(carts, kind=["attach", "vanish"], name=["hook", "right"])


@pytest.fixture(scope="module")
def handed_over():
    """A cart alone for 0.1 s, then two carts: another model, with other joints."""
    small = carts_model().remove(["right"])
    times = np.linspace(0.0, 0.1, 11)
    first = Segment(times, 2.0 * times[:, None], np.full((11, 1), 2.0), np.zeros((11, 1)), model=small)
    q = np.column_stack([0.2 + 0.0 * times, 0.5 + times])
    second = Segment(
        0.1 + times, q, np.tile([0.0, 1.0], (11, 1)), np.zeros((11, 2)), model=carts_model().remove(["hook"])
    )
    return Trajectory(
        carts_model().remove(["hook"]), (first, second), Outcome("finished", "It ended.", 0.2), {"step": 0.01}
    )


# ---- what is there


def test_a_loop_is_seen_only_while_it_is_closed(carts):
    moved = moving_scene(carts)
    assert moved.closed.tolist() == [[False], [True], [False]]
    assert [(e.kind, e.name) for e in moved.events] == [("attach", "hook"), ("release", "hook")]
    assert moved.scene.bodies[moved.events[0].body].name == "right"
    np.testing.assert_array_equal(np.bincount(moved.segments), [len(s) for s in carts.segments])


def test_a_broken_grasp_leaves_a_mark(broken):
    moved = moving_scene(broken)
    assert moved.broken.tolist() == [[False], [False], [True]]


@pytest.mark.slow
def test_a_captured_loop_is_seen_where_it_holds(carts):
    here = carts.model.loops[0]
    elsewhere = replace(here, placement_b=replace(here.placement_b, position=(0.1, 0.0, 0.0)))
    other = replace(carts.model, loops=(elsewhere,))
    run = carts.changed(segments=(carts.segments[0], replace(carts.segments[1], model=other), carts.segments[2]))
    moved = moving_scene(run)
    assert [c.name for c in moved.scene.closures] == ["hook", "hook"]
    assert moved.scene.closures[1].placement_b.position == (0.1, 0.0, 0.0)
    assert moved.closed.tolist() == [[False, False], [False, True], [False, False]]
    assert page_data(run, "")["closed"] == [[], [1]]


def test_a_body_that_vanished_is_not_seen(vanished):
    moved = moving_scene(vanished)
    number = vanished.model.body_number["right"]
    assert moved.present[:, number].tolist() == [True, True, False]
    assert np.isnan(moved.corners()[-1]).any()
    assert np.isfinite(moved.corners()[0]).all()


def test_a_joint_at_its_stop_has_a_mark():
    run = bouncing(batch=False)
    resting = changed(run, on=np.ones((len(run.events), 1), bool))
    assert not moving_scene(run).held.any()
    moved = moving_scene(resting)
    assert [(x.name, x.joint, x.is_stop) for x in moved.holds] == [("slide stop", 0, True)]
    assert moved.held[:, 0].tolist() == [False] + [True] * (len(resting.segments) - 1)


def test_models_with_other_joints_are_seen_one_after_the_other(handed_over):
    moved = moving_scene(handed_over)
    assert [b.name for b in moved.scene.bodies] == ["world", "left", "left", "right"]
    assert moved.present.tolist() == [[True, True, False, False], [True, False, True, True]]
    assert np.isfinite(moved.poses).all()
    data = page_data(handed_over, "")
    names = {g["key"]: g["names"] for g in data["groups"]}
    assert names["q"] == ["left_rail", "right_rail"]
    with says(InputError, "show: the segments of this run have models with different joints"):
        handed_over.view(block=False)


# ---- pages


@pytest.mark.slow
def test_a_page_lists_the_events_and_what_is_closed(carts):
    data = page_data(carts, "")
    assert [(e["time"], e["kind"], e["name"], e["impulse"], e["lost"]) for e in data["events"]] == [
        (0.5, "attach", "hook", "1.5 N s", 1.5),
        (0.8, "release", "hook", "", 0.0),
    ]
    assert (data["closed"], data["broken"], data["present"]) == ([[1]], [[]], [None, None, None])
    assert len(data["segments"]) == 3


@pytest.mark.slow
def test_a_page_without_events_shows_all_loops_always():
    data = page_data(sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.01), "")
    assert (data["events"], data["segments"], data["closed"]) == ([], [0], [None])


def test_a_page_is_one_text(broken):
    assert "EventList" in page.text(broken)


# ---- plots


def lines(ax):
    """The curves of axes, without the marks of events."""
    return [x for x in ax.lines if len(x.get_xdata()) > 2]


def marks(ax):
    return [x for x in ax.lines if len(x.get_xdata()) == 2]


def test_no_line_crosses_a_jump_of_velocities(carts):
    ax = carts.plot("v")
    for line in lines(ax):
        t, y = line.get_xdata(), line.get_ydata()
        assert np.isnan(y).sum() == 2
        assert np.abs(np.diff(y)[np.isfinite(np.diff(y))]).max(initial=0.0) == 0.0
        assert t[0] == 0.0
    assert sorted(float(x.get_xdata()[0]) for x in marks(ax)) == [0.5, 0.8]
    assert [x.get_text() for x in ax.texts] == ["attach hook", "release hook"]


def test_energy_has_a_step_at_an_impact(carts):
    total = lines(carts.plot("energy"))[2]
    t, y = total.get_xdata(), total.get_ydata()
    (k,) = np.flatnonzero(np.abs(np.diff(y)) > 0.1)
    assert t[k] == t[k + 1] == 0.5
    assert y[k] - y[k + 1] == pytest.approx(1.5)


def test_the_error_of_an_open_loop_is_not_drawn(carts):
    (curve,) = [x for x in lines(carts.plot("closure_residual")) if x.get_label() == "hook"]
    t = curve.get_xdata()[np.isfinite(curve.get_ydata())]
    assert (t.min(), t.max()) == (0.5, 0.8)


def test_many_events_are_thin_and_have_no_names():
    run = bouncing(heights=(0.2,), restitution=0.95, duration=5.0, batch=False)
    assert len(run.events) > MOST_NAMED
    ax = run.plot("v")
    assert len(marks(ax)) == len(run.events)
    assert not ax.texts
    assert all(x.get_linewidth() <= 0.5 for x in marks(ax))


def test_joints_that_come_later_are_drawn_where_they_are(handed_over):
    left, right = lines(handed_over.plot("q"))
    assert np.isnan(right.get_ydata()[:11]).all()
    np.testing.assert_allclose(right.get_ydata()[12:], 0.5 + np.linspace(0.0, 0.1, 11))
    assert np.isfinite(left.get_ydata()[:11]).all()


def test_a_phase_portrait_ends_at_a_jump():
    (curve,) = [x for x in bouncing(batch=False).plot("phase").lines if len(x.get_xdata()) > 2]
    assert np.isnan(curve.get_ydata()).any()


# ---- videos and animations


def test_a_video_leaves_out_what_is_open_or_absent(carts, vanished):
    moved = moving_scene(carts)
    whole, marks = solids(moved.scene), np.concatenate([moved.closed, moved.broken], axis=1)
    open_, closed, _ = (whole.shown(*x) for x in zip(moved.present, marks, strict=True))
    assert set(whole.marks) == {-1, 0, 1}  # one that is closed, and one that has broken
    assert set(closed.marks) == {-1, 0}
    assert set(open_.marks) == {-1}
    gone = moving_scene(vanished)
    assert gone.scene.bodies[2].name == "right"
    assert 2 not in solids(gone.scene).shown(gone.present[2], np.zeros(2, bool)).bodies


def test_an_animation_hides_loops_that_are_open(carts):
    text = animation.animation(carts)
    assert re.search(r'attributeName="opacity" values="0;.*;1;.*;0" .*calcMode="discrete"', text)
    assert "<title>0.5 s: attach hook</title>" in text


# ---- the viewer


def test_the_viewer_knows_what_holds_at_each_time(carts, vanished):
    session = Session(carts.robot, carts.q[0], carts)
    found = {}
    for t in (0.2, 0.5, 0.6, 0.9):
        session.seek(t)
        found[t] = session.loops()[0] is not None
        assert session.errors()[0] < 1e-12
    assert found == {0.2: False, 0.5: True, 0.6: True, 0.9: False}
    assert [words for _, words in session.events()] == ["0.5000 s: attach hook", "0.8000 s: release hook"]
    late = Session(vanished.robot, vanished.q[0], vanished)
    late.seek(0.9)
    assert late.absent() == {vanished.model.body_number["right"]}
    late.seek(0.1)
    assert late.absent() == set()


def test_the_viewer_knows_broken_grasps_and_stops(broken):
    session = Session(broken.robot, broken.q[0], broken)
    for t, found in ((0.6, set()), (0.8, {"hook"}), (0.9, {"hook"})):
        session.seek(t)
        assert session.broken() == found
    run = bouncing(batch=False)
    resting = changed(run, on=np.ones((len(run.events), 1), bool))
    session = Session(resting.robot, resting.q[0], resting)
    session.seek(0.1)
    assert session.holds() == set()
    session.seek(1.1)
    assert session.holds() == {"slide stop"}


# ---- text


def test_the_printout_has_the_table(carts):
    assert "0.5       attach   hook  1.5 N s  1.5" in str(carts)
    assert "attach" in carts._repr_html_()
    assert "5 events: 5 impact." in str(bouncing(heights=(1.0, 0.5), duration=1.5))
