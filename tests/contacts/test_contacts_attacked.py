"""Runs with contacts that once went wrong: found by comparing random mechanisms with a dense reference simulator."""

from __future__ import annotations

import spanloop as sl


def tip() -> sl.Model:
    """A free body that touches the ground with one point."""
    b = sl.Builder("tip").body("body", 1.0, (0.01, -0.005, 0.002), (0.01, 0.012, 0.008)).free("free", "world", "body")
    point = ("body", sl.contacts.Point(position=(0.05, 0.02, -0.1)))
    return b.build().with_contact("tip", point, "ground", friction=0.75)


def test_a_point_that_slides_after_a_located_impact_pushes_all_the_time():
    """Forces that are expected lift it by 1e-9 m in a step, which is no flight: there is one impact."""
    q = [-0.07206139, 0.19239566, 0.66079246, -0.72190331, 0.0, 0.0, 0.04403049]
    v = [4.26294607, 2.17828137, 2.53119799, 1.16486398, 0.78758822, 0.84407868]
    run = sl.simulate(tip(), q, v, duration=0.04, contacts="events")
    assert len(run.events) == 1
    after = run.times > run.events[0].time + 1e-3
    assert run.contacts["tip"].normal_force[after].min() > 3.0
    assert (run.contacts["tip"].state[after] == "slips").all()
