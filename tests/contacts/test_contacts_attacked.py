"""Runs with contacts that once went wrong: found by comparing random mechanisms with a dense reference simulator."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, StateError


def tip() -> sl.Model:
    """A free body that touches the ground with one point."""
    b = sl.Builder("tip").body("body", 1.0, (0.01, -0.005, 0.002), (0.01, 0.012, 0.008)).free("free", "world", "body")
    point = ("body", sl.contacts.Point(position=(0.05, 0.02, -0.1)))
    return b.build().with_contact("tip", point, "ground", friction=0.75)


@pytest.mark.slow
def test_a_point_that_slides_after_a_located_impact_pushes_all_the_time():
    """Forces that are expected lift it by 1e-9 m in a step, which is no flight: there is one impact."""
    q = [-0.07206139, 0.19239566, 0.66079246, -0.72190331, 0.0, 0.0, 0.04403049]
    v = [4.26294607, 2.17828137, 2.53119799, 1.16486398, 0.78758822, 0.84407868]
    run = sl.simulate(tip(), q, v, duration=0.04, contacts="events")
    assert len(run.events) == 1
    after = run.times > run.events[0].time + 1e-3
    assert run.contacts["tip"].normal_force[after].min() > 3.0
    assert (run.contacts["tip"].state[after] == "slips").all()


# ---- balances


@pytest.mark.slow
@pytest.mark.parametrize("contacts", ["steps", "events"])
def test_the_work_of_a_conveyor_is_in_the_balance_of_energy(contacts):
    """A ball that falls on a belt which moves at 1 m/s and stands on a spring; impacts may add energy there."""
    ball, belt = sl.contacts.Sphere(0.1), ("belt", sl.contacts.Plane(rotation=(0, 0.1, 0)))
    b = sl.Builder("belt").body("ball", 2.0, inertia=(0.02, 0.03, 0.04), geometry=[ball])
    b.body("belt", 3.0, inertia=(0.1, 0.1, 0.1)).free("free", "world", "ball")
    b.prismatic("lift", "world", "belt", "z", stiffness=200.0)
    model = b.build().with_contact("ball", "ball", belt, friction=0.3, surface_velocity=(1.0, 0.2, -0.1))
    run = sl.simulate(model, [1, 0, 0, 0, 0, 0, 0.102, 0], [0, 0, 3.0, 0, 0.1, 0, 0], duration=0.2, contacts=contacts)
    audit = run.audit(energy=2e-4)
    assert audit.well, str(audit)
    assert run.energy[-1].sum() > run.energy[0].sum() + 0.03


@pytest.mark.slow
@pytest.mark.parametrize("contacts", ["steps", "events"])
def test_two_bodies_that_strike_each_other_lose_no_momentum_that_the_audit_minds(contacts):
    """In steps, where inside its step an impact is is uncertain: what this changes is no fault."""
    b = sl.Builder("pair", gravity=(0, 0, 0))
    b.body("a", 1.0, (0.01, 0, 0), (0.003, 0.004, 0.005), geometry=[sl.contacts.Sphere(0.05)])
    b.body("b", 2.0, inertia=(0.003, 0.004, 0.005), geometry=[sl.contacts.Box(0.2, 0.15, 0.1)])
    b.free("free_a", "world", "a").free("free_b", "world", "b")
    model = b.build().with_contact("ab", "a", "b", friction=0.6, restitution=0.5)
    q, v = [1, 0, 0, 0, 0.06, 0.03, 0.11, 1, 0, 0, 0, 0, 0, 0], [3, 2, 1, 0.3, 0.2, -1, 1, -2, 2, -0.2, 0.1, 0.5]
    run = sl.simulate(model, q, v, duration=0.05, contacts=contacts)
    audit = run.audit()
    assert audit.well, str(audit)
    assert np.abs(run.momentum[-1] - run.momentum[0]).max() < (1e-3 if contacts == "steps" else 1e-9)


# ---- runs side by side


@pytest.mark.slow
@pytest.mark.parametrize("contacts", ["steps", "events"])
def test_runs_side_by_side_have_the_bits_of_runs_alone(contacts):
    """Boxes that tumble: other points touch in other runs, impacts of one run are no concern of the others."""
    box = sl.Builder("box").body("box", 2.0, inertia=(0.02, 0.03, 0.04), geometry=[sl.contacts.Box(0.2, 0.15, 0.1)])
    model = box.free("free", "world", "box").build().with_ground(friction=0.4, restitution=0.3)
    random = np.random.default_rng(5)
    turns = np.concatenate([random.normal(size=(12, 3)), np.zeros((12, 3))], axis=1)
    q = sl.Dynamics(model).integrate([1.0, 0, 0, 0, 0, 0, 0.15], turns)
    v = 2.0 * random.normal(size=(12, 6))
    runs = sl.simulate(model, q, v, duration=0.3, contacts=contacts)
    for k in range(0, 12, 2):
        alone = sl.simulate(model, q[k], v[k], duration=0.3, contacts=contacts)
        np.testing.assert_array_equal(runs[k].q, alone.q)
        np.testing.assert_array_equal(runs[k].v, alone.v)


# ---- bodies on bodies, which come and go


def stack() -> sl.Model:
    """A ball on a ball on the ground."""
    b = sl.Builder("stack")
    for name, mass in (("low", 1.0), ("high", 2.0)):
        b.body(name, mass, inertia=(0.004 * mass,) * 3, geometry=[sl.contacts.Sphere(0.1)]).free(
            f"free_{name}", "world", name
        )
    return b.build().with_ground(friction=0.5).with_contact("stack", "high", "low")


STACKED = np.array([1.0, 0, 0, 0, 0, 0, 0.1, 1, 0, 0, 0, 0, 0, 0.3])


@pytest.mark.slow
def test_an_impact_on_a_body_that_stands_is_located_in_the_first_step():
    """The lower ball, whose force is not known yet, falls in the free motion as the upper one does."""
    for gap in (1e-9, 1e-7, 4e-6):
        q = STACKED + gap * (np.arange(14) == 13)
        run = sl.simulate(stack(), q, duration=0.01, contacts="events")
        np.testing.assert_allclose(run.events.time, [np.sqrt(2 * gap / 9.81)], rtol=1e-6)
        assert run.contacts["stack"].gap.min() > -1e-14
        assert run.audit().well


@pytest.mark.slow
def test_a_body_that_vanishes_from_a_stack_stays_where_it_was():
    run = sl.simulate(stack(), STACKED, duration=0.3, events=[sl.events.Vanish("high", at=0.1005)])
    np.testing.assert_allclose(run.q[-1], STACKED, atol=1e-14)
    np.testing.assert_allclose(run.contacts["low"].normal_force[-1], 9.81)
    assert run.audit().well


@pytest.mark.slow
def test_a_body_that_has_not_come_yet_touches_nothing():
    there = np.eye(4)
    there[:3, 3] = 0.01, 0.0, 0.4
    events = [sl.events.Appear("high", at=0.2005, pose=there)]
    run = sl.simulate(stack(), STACKED - 1e-9 * (np.arange(14) == 13), duration=0.3, contacts="events", events=events)
    assert list(run.events.kind) == ["appear"]


@pytest.mark.slow
def test_forces_of_a_run_in_float32_are_in_their_cones_to_float32():
    run = sl.simulate(tip(), [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 1.0, 0, 0], duration=0.1,
                      integrator=sl.Integrator("rk4", dtype="float32"))  # fmt: skip
    assert "cones" not in run.audit().faults


# ---- bad input


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r: r.delassus([1.0, 2.0]), InputError, "expected"),
        (lambda r: r.delassus("abc"), InputError, "q"),
        (lambda r: r.delassus([np.nan] * 7), StateError, "delassus: .*nan; every number must be finite"),
        (lambda r: r.delassus([2.0, 0, 0, 0, 0, 0, 0]), StateError, "delassus: .*length"),
        (lambda r: sl.contacts.Settings(overlap=True), InputError, "overlap is True"),
        (lambda r: sl.contacts.Settings(overlap=np.inf), InputError, "overlap is inf"),
    ],
)
def test_bad_input_of_contacts_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call(sl.Dynamics(tip()))


@pytest.mark.parametrize("friction", ["much", [], [[0.1], [0.2, 0.3]]])
def test_a_friction_of_runs_that_is_no_number_is_refused(friction):
    with pytest.raises(InputError, match="friction of 'tip' is"):
        sl.simulate(tip(), duration=0.01, contacts=sl.contacts.Settings(friction={"tip": friction}))


def test_batches_without_a_state_have_empty_answers():
    robot = sl.Dynamics(tip())
    q, v = np.zeros((0, 7)), np.zeros((0, 6))
    assert robot.delassus(q).shape == (0, 3, 3)
    assert robot.contact_solution(q, v, v).force.shape == (0, 1, 3)


def test_a_point_of_a_contact_is_named_by_a_whole_number():
    run = sl.simulate(tip(), [1, 0, 0, 0, 0, 0, 0.2], duration=0.001)
    for k in (1, "0", slice(0, 1)):
        with pytest.raises(InputError, match="contact 'tip' has 1 points; there is no point"):
            run.contacts["tip"][k]
