"""Audits of runs with events: energy that impacts take and never give, momentum, closures while they are closed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from event_motions import bouncing, coupled_carts, meeting_bodies

import spanloop as sl
from spanloop.trajectory.events import EventTable


def with_table(run, **changes):
    """The run with another table, cut anew."""
    return replace(run, events=replace(run.events, **changes))


@pytest.mark.parametrize("at_grid", [True, False])
def test_an_impact_is_counted_and_the_balance_begins_anew(at_grid):
    audit = coupled_carts(at_grid=at_grid).audit()
    assert audit.well
    assert audit["impacts"].sentence.startswith("1 impact takes 1.5 J. None adds energy")
    assert audit["energy"].value < 1e-12
    assert audit["closure"].value < 1e-12  # only while the hook is closed: before, the carts are 1 m apart


def test_runs_of_a_batch_are_judged_each_cut_at_its_own_events():
    audit = bouncing((1.0, 0.5, 2.0)).audit()
    assert audit.well
    assert audit["impacts"].sentence.startswith("5 impacts take 31.5")
    assert audit["energy"].value < 1e-12


def test_energy_that_appears_in_an_impact_is_a_fault():
    run = bouncing(batch=False)
    after = np.array(run.events.v_after)
    after[0] = -1.001 * run.events.v_before[0]
    audit = with_table(run, v_after=after).audit()
    assert audit["impacts"].verdict == "not well"
    assert audit["impacts"].value == pytest.approx(0.5 * 2.0 * (1.001**2 - 1.0) * 2 * 9.81 + 7.0632, rel=1e-3)
    honest = with_table(run, v_after=after, energy_lost=[-0.03926, run.events.energy_lost[1]]).audit()
    assert honest["impacts"].verdict == "not well"
    assert "One adds 0.039 J, at 0.451524 s" in honest["impacts"].sentence


def test_a_table_that_misstates_the_loss_is_a_fault():
    audit = with_table(coupled_carts(), energy_lost=[1.0, 0.0]).audit()
    assert audit.faults == ("impacts",)
    assert "The table says that the impact, at 0.5 s takes 1 J, and it is 1.5 J." in audit["impacts"].sentence


def test_impacts_of_bodies_that_nothing_holds_keep_their_momentum():
    run = meeting_bodies()
    assert run.audit().well
    assert run.audit()["impact momentum"].value < 1e-15
    after = np.array(run.events.v_after)
    after[0, [3, 9]] = 0.4
    lost = 0.5 * 4.0 - 0.5 * 4.0 * 0.4**2
    audit = with_table(run, v_after=after, energy_lost=[lost]).audit()
    assert audit["impact momentum"].verdict == "not well"


def test_bodies_that_vanish_take_their_energy_along():
    run = meeting_bodies(vanish=True)
    audit = run.audit()
    assert audit.well
    assert [s.absent for s in run.segments] == [(), ("right",)]
    assert run.energy[-1, 0] == pytest.approx(2.0)
    assert "those that vanish take 6 J along" in audit["impacts"].sentence
    assert run.momentum[0, 3] == pytest.approx(2.0 - 6.0)
    assert run.momentum[-1, 3] == pytest.approx(2.0)


def test_an_empty_table_asks_for_nothing():
    run = bouncing(batch=False).between(0.0, 0.4)
    assert len(run.events) == 0
    assert "impacts" not in [f.name for f in run.audit().findings]
    assert len(EventTable()) == 0


@pytest.mark.slow
def test_a_free_body_that_bounces_on_the_floor_may_change_its_momentum():
    b = sl.Builder("rod").body("rod", 1.0, inertia=(0.01, 1 / 12, 1 / 12)).free("way", "world", "rod")
    b.frame("end", "rod", (0.5, 0, 0)).loop("world", "end", "point_on_plane", name="floor", switchable=True)
    q = [np.cos(0.15), 0, np.sin(0.15), 0, 0, 0, 0.3]
    run = sl.simulate(b.build(), q, duration=0.2, events=[sl.events.OneSided("floor", restitution=0.5)])
    assert run.events.kind.tolist() == ["impact"]
    assert "All is well" in str(run.audit())


def test_the_audit_of_stops_says_that_none_pulls():
    b = sl.Builder("slider").body("block", 1.0, inertia=(0.01,) * 3)
    model = b.prismatic("rail", "world", "block", "x", limits=(-0.01, 0.02)).build()
    stops = [sl.events.Stop("rail", restitution=0.9)]
    run = sl.simulate(model, v=[1.0], duration=0.1, events=stops)
    assert set(np.sign(run.events.impulse[:, 0])) == {-1.0, 1.0}
    assert run.audit()["impulses"].sentence.startswith("Stops pull with impulses of up to 0 N s, 'rail::stop'")
    assert with_table(run, impulse=-run.events.impulse).audit()["impulses"].verdict == "not well"
