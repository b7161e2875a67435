"""Bodies that come and go have contacts only while they are there, and do not appear inside others."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl

ON_BOX = [1.0, 0, 0, 0, 0, 0, 0.1, 1.0, 0, 0, 0, 0, 0, 0.3]  # the ball rests on the box


@pytest.fixture(scope="module")
def pair() -> sl.Model:
    box, ball = sl.contacts.Box(0.2, 0.2, 0.2), sl.contacts.Sphere(0.1)
    b = sl.Builder("pair").body("box", mass=1.0, inertia=(0.004,) * 3, geometry=[box])
    b.body("ball", mass=1.0, inertia=(0.004,) * 3, geometry=[ball])
    model = b.free("fp", "world", "box").free("fs", "world", "ball").build()
    return model.with_ground(friction=0.3).with_contact("both", "ball", "box", friction=0.3)


def _appear(z: float, at: float = 0.01) -> sl.events.Appear:
    pose = np.eye(4)
    pose[2, 3] = z
    return sl.events.Appear("ball", at=at, pose=pose)


@pytest.mark.slow
@pytest.mark.parametrize("contacts", ["steps", "events"])
def test_a_body_that_appears_inside_another_ends_the_run(pair, contacts):
    run = sl.simulate(pair, ON_BOX, duration=0.03, contacts=contacts, events=[_appear(0.15)])
    assert run.outcome.reason == "overlap"
    assert "'ball' appears inside" in run.outcome.sentence
    assert "'both'" in run.outcome.sentence
    assert "150 mm" in run.outcome.sentence


@pytest.mark.slow
def test_a_body_that_appears_apart_or_where_overlap_is_allowed_goes_on(pair):
    assert sl.simulate(pair, ON_BOX, duration=0.03, events=[_appear(0.3)]).outcome.reason == "finished"
    allowed = sl.contacts.Settings(overlap=0.2)
    assert (
        sl.simulate(pair, ON_BOX, duration=0.03, contacts=allowed, events=[_appear(0.25)]).outcome.reason == "finished"
    )


@pytest.mark.slow
def test_what_is_not_there_at_the_start_does_not_overlap(pair):
    inside = [*ON_BOX[:-1], 0.15]
    assert sl.simulate(pair, inside, duration=0.03, events=[_appear(0.3)]).outcome.reason == "finished"


@pytest.mark.slow
def test_contacts_of_a_body_that_vanished_have_no_gap(pair):
    run = sl.simulate(pair, ON_BOX, duration=0.4, events=[sl.events.Vanish("box", at=0.01)])
    both = run.contacts["both"]
    there = run.times < 0.0095
    assert np.isfinite(both.gap[there]).all()
    assert np.isnan(both.gap[-1])
    assert both.state[-1] == "open"
    assert run.contacts["ball"].state[-1] == "sticks"  # it fell through where the box was
    assert run.audit().well
    assert "both" in str(run.contacts)


@pytest.mark.slow
def test_nothing_tunnels_through_what_is_not_there():
    b = sl.Builder("shot").body("bullet", mass=0.01, inertia=(1e-6,) * 3, geometry=[sl.contacts.Sphere(0.01)])
    b.body("ball", mass=1.0, inertia=(0.004,) * 3, geometry=[sl.contacts.Sphere(0.01)])
    model = b.free("fp", "world", "bullet").free("fs", "world", "ball").build().with_contact("hit", "ball", "bullet")
    q, v = [1.0, 0, 0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0.05, 0, 0], [0, 0, 0, 100.0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert sl.simulate(model, q, v, duration=0.003).outcome.reason == "tunnel"
    gone = [sl.events.Appear("ball", at=0.002, pose=np.eye(4))]
    assert sl.simulate(model, q, v, duration=0.003, events=gone).outcome.reason == "finished"
